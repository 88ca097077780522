"""The users table on DynamoDB: weights, quotas and other settings, and the tallies that processes share. Identities are in Cognito."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from scheduler.model.account import Ceiling, Membership, OwnerKind, Profile, Quotas, Role, Stock, Tally, TeamRole
from scheduler.model.errors import Unavailable
from scheduler.storage.aws import errors, keys
from scheduler.storage.aws.keys import Term
from scheduler.storage.aws.table import Item, Table
from scheduler.storage.aws.updates import Update
from scheduler.storage.ports import Barred, OwnerRecord, Written

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

TALLY_RETENTION_MS = 30 * 86_400_000


class DynamoUsers:
    """The port `Users`: one item per user and one per tally. Adding takes one update, and a second one if the tally must restart."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._client = client
        self._table = Table(client, table)

    def weights(self, ids: Sequence[str]) -> dict[str, float]:
        found = self._table.get_many([keys.user(id) for id in dict.fromkeys(ids)], ["pk", "weight"])
        return {item["pk"]["S"]: float(item["weight"]["N"]) for item in found if "weight" in item}

    def set_weight(self, id: str, weight: float) -> None:
        (answer,) = self._table.update([Update(keys.user(id), {"weight": {"N": repr(weight)}}, (), ())])
        if answer.done is Written.REFUSED:
            raise Unavailable

    def profiles(self, ids: Sequence[str]) -> dict[str, Profile]:
        found = {item["pk"]["S"]: item for item in self._table.get_many([keys.user(id) for id in dict.fromkeys(ids)])}
        return {id: profile(id, found.get(id, {})) for id in ids}

    def set_quotas(self, id: str, quotas: Quotas) -> None:
        self._set(id, max_jobs=quotas.max_jobs, creates_per_second=quotas.creates_per_second)

    def set_disabled(self, id: str, at: int | None) -> None:
        self._set(id, disabled_at=at)
        self._list(f"{'DELETE' if at is None else 'ADD'} disabled :ids", id)

    def set_sessions_since(self, id: str, at: int) -> None:
        self._set(id, sessions_since=at)

    def delete(self, id: str, at: int) -> None:
        self._set(id, disabled_at=at)
        self._list("ADD deleted :ids DELETE disabled :ids", id)

    def barred(self) -> Barred:
        item: Item = self._table.get(keys.BARRED) or {}
        return Barred(*(frozenset(item[name]["SS"]) if name in item else frozenset() for name in ("disabled", "deleted")))

    def set_stock(self, id: str, stock: Stock) -> None:
        self._set(id, stock=stock.count, stock_total=stock.total, stock_at=stock.at, stock_freed=stock.freed)

    def free(self, id: str, jobs: int) -> None:
        with errors.translated():
            try:
                self._client.update_item(
                    TableName=self._table.name,
                    Key=keys.user(id),
                    UpdateExpression=keys.ADD_FREED,
                    ConditionExpression="attribute_exists(stock_at)",
                    ExpressionAttributeValues={":jobs": {"N": str(jobs)}},
                )
            except ClientError as error:
                if not errors.condition_failed(error):
                    raise

    def owner(self, id: str) -> OwnerRecord:
        items = {item["sk"]["S"]: item for item in self._table.all(keys.of_owner(id))}
        tally, user = items.pop("tally", None), items.pop("user", {})
        return OwnerRecord(profile(id, user), _tally(tally) if tally else Tally(), [membership(item) for item in items.values()])

    def add_to_tally(self, name: str, number: int, now: int) -> Tally:
        with errors.translated():
            answer = self._client.update_item(
                TableName=self._table.name,
                Key=keys.tally(name),
                UpdateExpression=keys.ADD_TO_TALLY,
                ExpressionAttributeNames=keys.TALLY_NAMES,
                ExpressionAttributeValues=_added(number, now),
                ReturnValues="ALL_NEW",
            )
        return _tally(answer["Attributes"])

    def add_within(self, name: str, number: int, now: int, ceiling: Ceiling, *, restart: bool) -> tuple[bool, Tally]:
        condition, bounds = keys.if_within(ceiling)
        with errors.translated():
            try:
                answer = self._client.update_item(
                    TableName=self._table.name,
                    Key=keys.tally(name),
                    UpdateExpression=keys.RESTART_TALLY if restart else keys.ADD_TO_TALLY,
                    ConditionExpression=condition,
                    ExpressionAttributeNames=keys.TALLY_NAMES,
                    ExpressionAttributeValues={**_added(number, now), **bounds},
                    ReturnValues="ALL_NEW",
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
            except ClientError as error:
                if not errors.condition_failed(error):
                    raise
                old: Any = error.response
                return False, _tally(old["Item"]) if old.get("Item") else Tally()
        return True, _tally(answer["Attributes"])

    def restart_tally(self, name: str, seen: Tally, number: int, now: int) -> bool:
        sets = {"count": {"N": str(number)}, "since": {"N": str(now)}}
        terms = [Term(("since",), "=", {"N": str(seen.since)})]
        (answer,) = self._table.update([Update(keys.tally(name), sets, (), terms)])
        if answer.done is Written.REFUSED:
            raise Unavailable
        return answer.done is Written.YES

    def _list(self, expression: str, id: str) -> None:
        """Add the user (`:ids`) to sets of `barred`, or remove it."""
        with errors.translated():
            self._client.update_item(
                TableName=self._table.name,
                Key=keys.BARRED,
                UpdateExpression=expression,
                ExpressionAttributeValues={":ids": {"SS": [id]}},
            )

    def _set(self, id: str, **values: float | None) -> None:
        sets = {"version": {"N": "1"}} | {name: {"N": repr(value)} for name, value in values.items() if value is not None}
        removes = [name for name, value in values.items() if value is None]
        (answer,) = self._table.update([Update(keys.user(id), sets, removes, ())])
        if answer.done is Written.REFUSED:
            raise Unavailable


def _added(number: int, now: int) -> Item:
    """The values of the expressions that add to a tally."""
    return {":number": {"N": str(number)}, ":now": {"N": str(now)}, ":expires": {"N": str((now + TALLY_RETENTION_MS) // 1000)}}


def _tally(item: Any) -> Tally:
    return Tally(*(int(item[attribute]["N"]) for attribute in ("count", "since", "total")))


def profile(id: str, item: Item) -> Profile:
    """The profile in an owner's item; an owner without an item gets the defaults."""

    def number(name: str) -> int | None:
        return int(item[name]["N"]) if name in item else None

    def text(name: str) -> str | None:
        return item[name]["S"] if name in item else None

    rate, weight = (float(item[name]["N"]) if name in item else None for name in ("creates_per_second", "weight"))
    sso_role = text("sso_role")
    return Profile(
        id,
        Quotas(number("max_jobs"), rate),
        number("disabled_at"),
        Stock(*(number(name) or 0 for name in ("stock", "stock_total", "stock_at", "stock_freed"))),
        number("sessions_since"),
        number("freed") or 0,
        weight,
        OwnerKind(text("kind") or OwnerKind.PERSON),
        text("name"),
        Role(text("role") or Role.USER),
        None if sso_role is None else Role(sso_role),
        text("account"),
        number("created_at") or 0,
        number("managers") or 0,
    )


def membership(item: Item) -> Membership:
    """A membership, as the partition of its person has it."""
    return Membership(item["sk"]["S"].removeprefix(keys.MEMBERSHIP), item["pk"]["S"], TeamRole(item["role"]["S"]), int(item["since"]["N"]))
