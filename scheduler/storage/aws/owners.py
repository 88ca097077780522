"""Persons, teams and those who act for them, in the users table on DynamoDB. `keys` has the shapes of the items."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from scheduler.model.account import COGNITO, ApiKey, Invitation, Membership, OwnerKind, Principal, Profile, Role, Scope, Subject, TeamRole
from scheduler.model.errors import Unavailable
from scheduler.storage.aws import keys
from scheduler.storage.aws.table import Item, Table
from scheduler.storage.aws.updates import Update
from scheduler.storage.ports import Written

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_VERSION = {"version": {"N": "1"}}
_OF_PERSON = ("name", "role", "sso_role", "account")  # of the profile, erased with the person
_EXPIRED_INVITATION_S = 86_400  # after the expiry, so that the refusal can say that it has expired


class DynamoOwners:
    """The port `Owners`."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._table = Table(client, table)

    def person_of(self, subject: Subject) -> str | None:
        item = self._table.get(keys.subject(*subject))
        return None if item is None else str(item["person"]["S"])

    def add_person(self, profile: Profile, subject: Subject) -> bool:
        made = keys.user(profile.id) | _VERSION | _texts(kind=profile.kind, name=profile.name, role=profile.role, account=profile.account)
        made |= _numbers(created_at=profile.created_at, weight=profile.weight, **_quotas(profile))
        return self._table.transact(
            [
                self._put(made, **keys.IF_NEW),
                self._put(keys.subject(*subject) | _texts(person=profile.id), **keys.IF_NEW),
                self._put(keys.subject_of_person(profile.id, *subject)),
                self._put(keys.listed(keys.PEOPLE, profile.id)),
            ]
        )

    def subjects(self, person: str) -> list[Subject]:
        found = [item["sk"]["S"].split("#", 2) for item in self._table.all(keys.beginning(person, keys.SUBJECT))]
        return [Subject(issuer, id) for _, issuer, id in found]

    def link(self, subject: Subject, person: str) -> bool:
        unless_another = {
            "ConditionExpression": f"{keys.NEW} OR person = :person",
            "ExpressionAttributeValues": _texts(**{":person": person}),
        }
        return self._table.transact(
            [
                self._check(keys.listed(keys.PEOPLE, person)),
                self._put(keys.subject(*subject) | _texts(person=person), **unless_another),
                self._put(keys.subject_of_person(person, *subject)),
            ]
        )

    def unlink(self, subject: Subject, person: str) -> bool:
        if_theirs = {"ConditionExpression": "person = :person", "ExpressionAttributeValues": _texts(**{":person": person})}
        return self._table.transact(
            [self._delete(keys.subject(*subject), **if_theirs), self._delete(keys.subject_of_person(person, *subject))]
        )

    def set_role(self, person: str, role: Role) -> None:
        self._set(person, _texts(role=role))

    def set_sso_role(self, person: str, role: Role | None) -> None:
        self._set(person, {} if role is None else _texts(sso_role=role), ["sso_role"] if role is None else [])

    def people(self, cursor: str | None, limit: int) -> tuple[list[str], str | None]:
        return self._listed(keys.PEOPLE, cursor, limit)

    def erase_person(self, person: str, memberships: Sequence[Membership]) -> None:
        for each in memberships:
            self._all_or_nothing(self._without_member(each, last=True))
        for subject in self.subjects(person):
            if subject.issuer != COGNITO:
                self.unlink(subject, person)
        for key in self.keys(person):
            self.delete_key(key)
        self._set(person, {}, _OF_PERSON)
        self._table.delete(keys.listed(keys.PEOPLE, person))

    def add_team(self, profile: Profile, manager: str) -> bool:
        made = keys.user(profile.id) | _VERSION | _texts(kind=OwnerKind.TEAM, name=profile.name)
        made |= _numbers(created_at=profile.created_at, managers=1)
        first = Membership(profile.id, manager, TeamRole.MANAGER, profile.created_at)
        listed = self._put(keys.listed(keys.TEAMS, profile.id))
        return self._table.transact([self._put(made, **keys.IF_NEW), listed, *map(self._put, _member_items(first))])

    def teams(self, cursor: str | None, limit: int) -> tuple[list[str], str | None]:
        return self._listed(keys.TEAMS, cursor, limit)

    def rename(self, team: str, name: str) -> bool:
        names = {"#name": "name"}
        action = self._update(keys.user(team), "SET #name = :name", _texts(**{":name": name}), "attribute_exists(kind)", names)
        return self._table.transact([action, self._check(keys.listed(keys.TEAMS, team))])

    def delete_team(self, team: str) -> None:
        for each in self.members(team):
            self._all_or_nothing(self._without_member(each, last=True))
        for invitation in self.invitations(team):
            self.delete_invitation(team, invitation.id)
        for key in self.keys(team):
            self.delete_key(key)
        self._set(team, {}, ["name", "managers"])
        self._table.delete(keys.listed(keys.TEAMS, team))

    def members(self, team: str) -> list[Membership]:
        return [_of_team(item) for item in self._table.all(keys.beginning(team, keys.MEMBER))]

    def add_member(self, member: Membership) -> bool:
        return self._table.transact(self._with_member(member))

    def set_member_role(self, before: Membership, role: TeamRole) -> bool:
        items = _member_items(replace(before, role=role))
        actions = [self._put(item, **_if_role(before.role)) for item in items]
        return self._table.transact([*actions, *self._counted(before.team, before.role, role)])

    def remove_member(self, before: Membership) -> bool:
        return self._table.transact(self._without_member(before, last=False))

    def add_invitation(self, invitation: Invitation) -> None:
        texts = _texts(role=invitation.role, digest=invitation.digest, made_by=invitation.made_by)
        expires = invitation.expires_at // 1000 + _EXPIRED_INVITATION_S
        numbers = _numbers(created_at=invitation.created_at, expires_at=invitation.expires_at, expires=expires)
        self._table.put(keys.invitation(invitation.team, invitation.id) | texts | numbers, keys.IF_NEW)

    def invitation(self, team: str, id: str) -> Invitation | None:
        item = self._table.get(keys.invitation(team, id))
        return None if item is None else _invitation(item)

    def invitations(self, team: str) -> list[Invitation]:
        return [_invitation(item) for item in self._table.all(keys.beginning(team, keys.INVITATION))]

    def accept(self, invitation: Invitation, member: Membership) -> bool:
        used = self._delete(keys.invitation(invitation.team, invitation.id), **keys.IF_STORED)
        return self._table.transact([used, *self._with_member(member)])

    def delete_invitation(self, team: str, id: str) -> bool:
        return self._table.delete(keys.invitation(team, id), keys.IF_STORED)

    def add_key(self, key: ApiKey) -> None:
        texts = _texts(owner=key.owner, maker=key.maker, name=key.name, digest=key.digest)
        scopes = {"scopes": {"SS": sorted(key.scopes)}}
        item = keys.api_key(key.id) | texts | scopes | _numbers(created_at=key.created_at, expires_at=key.expires_at)
        self._table.transact([self._put(item, **keys.IF_NEW), self._put(keys.key_of_owner(key.owner, key.id))])

    def key(self, id: str) -> ApiKey | None:
        item = self._table.get(keys.api_key(id))
        return None if item is None else _key(item)

    def keys(self, owner: str) -> list[ApiKey]:
        listed = [item["sk"]["S"].removeprefix(keys.KEY) for item in self._table.all(keys.beginning(owner, keys.KEY))]
        return sorted(map(_key, self._table.get_many([keys.api_key(id) for id in listed])), key=lambda key: (key.created_at, key.id))

    def delete_key(self, key: ApiKey) -> bool:
        return self._table.transact(
            [self._delete(keys.api_key(key.id), **keys.IF_STORED), self._delete(keys.key_of_owner(key.owner, key.id))]
        )

    def note_key_use(self, id: str, at: int) -> None:
        self._table.transact([self._update(keys.api_key(id), "SET used_at = :at", _numbers(**{":at": at}), "attribute_exists(pk)")])

    def principals(self) -> list[Principal]:
        return [_principal(item) for item in self._table.all(keys.all_of(keys.PRINCIPALS) | {"ConsistentRead": True})]

    def put_principal(self, principal: Principal, *, new: bool) -> bool:
        texts = _texts(id=principal.id, owner=principal.owner, made_by=principal.made_by, unique_id=principal.unique_id)
        item = keys.listed(keys.PRINCIPALS, principal.arn) | texts | {"scopes": {"SS": sorted(principal.scopes)}}
        return self._table.put(item | _numbers(created_at=principal.created_at), keys.IF_NEW if new else keys.IF_STORED)

    def delete_principal(self, arn: str) -> bool:
        return self._table.delete(keys.listed(keys.PRINCIPALS, arn), keys.IF_STORED)

    def _with_member(self, member: Membership) -> list[Mapping[str, Any]]:
        puts = [self._put(item, **keys.IF_NEW) for item in _member_items(member)]
        return [*puts, self._check(keys.listed(keys.PEOPLE, member.person)), *self._counted(member.team, None, member.role)]

    def _without_member(self, before: Membership, *, last: bool) -> list[Mapping[str, Any]]:
        """The actions that remove a member; `last`: also the last manager of a team."""
        deletes = [self._delete({name: item[name] for name in ("pk", "sk")}, **_if_role(before.role)) for item in _member_items(before)]
        return [*deletes, *self._counted(before.team, before.role, None, least=0 if last else 1)]

    def _counted(self, team: str, before: TeamRole | None, after: TeamRole | None, least: int = 1) -> list[Mapping[str, Any]]:
        """The action that counts the managers of a team, of whom `least` remain, and checks that the team exists."""
        added = (after is TeamRole.MANAGER) - (before is TeamRole.MANAGER)
        condition, values = "attribute_exists(managers)", _numbers(**{":added": added})
        if added < 0:
            condition, values = "managers > :least", values | _numbers(**{":least": least})
        return [self._update(keys.user(team), "ADD managers :added", values, condition)]

    def _all_or_nothing(self, actions: Sequence[Mapping[str, Any]]) -> None:
        """Apply the actions of a deletion. Another request may have applied them already."""
        self._table.transact(actions)

    def _listed(self, partition: str, cursor: str | None, limit: int) -> tuple[list[str], str | None]:
        start = {} if cursor is None else {"ExclusiveStartKey": keys.listed(partition, cursor)}
        page = self._table.query(keys.all_of(partition) | {"Limit": limit, "ConsistentRead": True} | start)
        ids = [item["sk"]["S"] for item in page["Items"]]
        return ids, ids[-1] if ids and "LastEvaluatedKey" in page else None

    def _set(self, id: str, sets: Mapping[str, Any], removes: Sequence[str] = ()) -> None:
        (answer,) = self._table.update([Update(keys.user(id), {**_VERSION, **sets}, list(removes), ())])
        if answer.done is Written.REFUSED:
            raise Unavailable

    def _put(self, item: Mapping[str, Any], **condition: Any) -> Mapping[str, Any]:
        return {"Put": {"TableName": self._table.name, "Item": item, **condition}}

    def _delete(self, key: Mapping[str, Any], **condition: Any) -> Mapping[str, Any]:
        return {"Delete": {"TableName": self._table.name, "Key": key, **condition}}

    def _check(self, key: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"ConditionCheck": {"TableName": self._table.name, "Key": key, **keys.IF_STORED}}

    def _update(
        self, key: Mapping[str, Any], expression: str, values: Mapping[str, Any], condition: str, names: Mapping[str, str] | None = None
    ) -> Mapping[str, Any]:
        update = {"UpdateExpression": expression, "ConditionExpression": condition, "ExpressionAttributeValues": values}
        named = {"ExpressionAttributeNames": names} if names else {}
        return {"Update": {"TableName": self._table.name, "Key": key, **update, **named}}


def _member_items(member: Membership) -> tuple[Item, Item]:
    content = _texts(role=member.role) | _numbers(since=member.since)
    return keys.membership(member.person, member.team) | content, keys.member(member.team, member.person) | content


def _if_role(role: TeamRole) -> dict[str, Any]:
    names = {"#role": "role"}
    return {
        "ConditionExpression": "#role = :role",
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": _texts(**{":role": role}),
    }


def _of_team(item: Item) -> Membership:
    """A membership, as the partition of its team has it."""
    return Membership(item["pk"]["S"], item["sk"]["S"].removeprefix(keys.MEMBER), TeamRole(item["role"]["S"]), int(item["since"]["N"]))


def _invitation(item: Item) -> Invitation:
    id = item["sk"]["S"].removeprefix(keys.INVITATION)
    created_at, expires_at = (int(item[name]["N"]) for name in ("created_at", "expires_at"))
    return Invitation(id, item["pk"]["S"], TeamRole(item["role"]["S"]), item["digest"]["S"], item["made_by"]["S"], created_at, expires_at)


def _key(item: Item) -> ApiKey:
    owner, maker, name, digest = (item[each]["S"] for each in ("owner", "maker", "name", "digest"))
    created_at, expires_at, used_at = (int(item[each]["N"]) if each in item else None for each in ("created_at", "expires_at", "used_at"))
    id = item["pk"]["S"].removeprefix(keys.KEY)
    return ApiKey(id, owner, maker, name, frozenset(map(Scope, item["scopes"]["SS"])), digest, created_at or 0, expires_at, used_at)


def _principal(item: Item) -> Principal:
    id, arn, owner, made_by = (item[each]["S"] for each in ("id", "sk", "owner", "made_by"))
    unique_id = item["unique_id"]["S"] if "unique_id" in item else None
    return Principal(id, arn, owner, frozenset(map(Scope, item["scopes"]["SS"])), made_by, int(item["created_at"]["N"]), unique_id)


def _quotas(profile: Profile) -> dict[str, float | None]:
    return {"max_jobs": profile.quotas.max_jobs, "creates_per_second": profile.quotas.creates_per_second}


def _texts(**values: str | None) -> dict[str, Any]:
    return {name: {"S": str(value)} for name, value in values.items() if value is not None}


def _numbers(**values: float | None) -> dict[str, Any]:
    return {name: {"N": repr(value)} for name, value in values.items() if value is not None}
