"""Shapes of those who act for owners: API keys, teams with members and invitations, and AWS principals."""

from collections.abc import Iterable
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from lambdas.rest.models import Request
from lambdas.rest.shapes import Json, ListShape, Shape, WrittenTime
from scheduler.accounts import api_keys
from scheduler.accounts.teams import INVITATION_DAYS
from scheduler.model.account import ApiKey, Invitation, Membership, Principal, Profile, Scope, TeamRole
from scheduler.model.errors import Invalid


def _title(text: str) -> str:
    if text != text.strip() or not text.isprintable():
        raise ValueError("must not begin or end with a blank, and must have no control characters")
    return text


def _scopes(texts: list[str]) -> list[str]:
    try:
        api_keys.expand(texts)
    except Invalid as error:
        raise ValueError(str(error.details[0]["rule"])) from None
    return texts


Title = Annotated[str, Field(min_length=1, max_length=64), AfterValidator(_title)]
Scopes = Annotated[list[str], Field(min_length=1, max_length=10), AfterValidator(_scopes)]
Days = Annotated[int, Field(ge=api_keys.SHORTEST_DAYS, le=api_keys.LONGEST_DAYS)]


class KeyRequest(Request):
    """A new API key."""

    name: Title
    """A name for people, such as the program that uses the key."""
    scopes: Scopes
    """The scopes: `jobs:read`, `jobs:write`, `tasks:read`, `tasks:write`, `admin`; `jobs:*` and `tasks:*` stand for two each."""
    expires_in_days: Days | None = None
    """Null: the key does not expire."""


class RevokeRequest(Request):
    """A key that was found where it does not belong."""

    key: Annotated[str, Field(min_length=1, max_length=200)]


class KeyShape(Shape):
    """An API key, without its secret."""

    id: str
    name: str
    owner: str
    """The person or team whose jobs and tasks the key works with."""
    maker: str
    """The id of the person who made the key. The key may do what this person may do at present, within its scopes."""
    scopes: list[Scope]
    created_at: WrittenTime
    expires_at: WrittenTime | None
    used_at: WrittenTime | None
    """The last use, to the hour. Null: never used."""

    @classmethod
    def of(cls, key: ApiKey) -> Json:
        return cls.from_record(key, scopes=sorted(key.scopes))


class NewKeyShape(KeyShape):
    """A new API key, with its text."""

    key: str
    """The key. No other answer ever shows it."""

    @classmethod
    def made(cls, made: api_keys.Made) -> Json:
        return cls.from_record(made.key, scopes=sorted(made.key.scopes), key=made.text)


class KeysShape(ListShape):
    items: list[KeyShape]

    @classmethod
    def of(cls, keys: Iterable[ApiKey]) -> Json:
        return cls.page([KeyShape.of(key) for key in keys], None)


class RevokedShape(Shape):
    """A confirmation."""

    revoked: bool

    @classmethod
    def of(cls) -> Json:
        return cls.from_record(None, revoked=True)


class TeamRequest(Request):
    """A new team, or its new name."""

    name: Title


class TeamShape(Shape):
    id: str
    name: str
    role: TeamRole | None
    """The caller's role; null for an operator or administrator who is not a member."""
    created_at: WrittenTime

    @classmethod
    def of(cls, team: Profile, role: TeamRole | None) -> Json:
        return cls.from_record(team, role=role)


class TeamsShape(ListShape):
    items: list[TeamShape]

    @classmethod
    def of(cls, teams: Iterable[Json], cursor: str | None) -> Json:
        return cls.page(list(teams), cursor)


class MemberRequest(Request):
    """The role of a member."""

    role: Annotated[TeamRole, Field(strict=False)]


class MemberShape(Shape):
    user_id: str
    username: str | None
    """Null if it cannot be read now."""
    role: TeamRole
    since: WrittenTime

    @classmethod
    def of(cls, member: Membership, name: str | None) -> Json:
        return cls.from_record(member, user_id=member.person, username=name)


class MembersShape(ListShape):
    items: list[MemberShape]

    @classmethod
    def of(cls, members: Iterable[Json]) -> Json:
        return cls.page(list(members), None)


class InvitationRequest(Request):
    """A new invitation."""

    role: Annotated[TeamRole, Field(strict=False)] = TeamRole.EDITOR
    expires_in_days: Annotated[int, Field(ge=1, le=30)] = INVITATION_DAYS


class AcceptRequest(Request):
    """The token of an invitation."""

    token: Annotated[str, Field(min_length=1, max_length=200)]


class InvitationShape(Shape):
    """An invitation that was neither used nor withdrawn."""

    id: str
    team: str
    role: TeamRole
    made_by: str
    """The id of the person who made it."""
    created_at: WrittenTime
    expires_at: WrittenTime

    @classmethod
    def of(cls, invitation: Invitation) -> Json:
        return cls.from_record(invitation)


class NewInvitationShape(InvitationShape):
    """A new invitation, with its token."""

    token: str
    """Give it to the person whom you invite. No other answer ever shows it, and it is used once."""

    @classmethod
    def made(cls, invitation: Invitation, token: str) -> Json:
        return cls.from_record(invitation, token=token)


class InvitationsShape(ListShape):
    items: list[InvitationShape]

    @classmethod
    def of(cls, invitations: Iterable[Invitation]) -> Json:
        return cls.page([InvitationShape.of(each) for each in invitations], None)


class PrincipalRequest(Request):
    """An AWS role, and the owner for whom it acts."""

    arn: Annotated[str, Field(min_length=1, max_length=600)]
    """The ARN of the role. Its name may contain `*`; its account may not."""
    owner: Annotated[str, Field(min_length=1, max_length=64)]
    """The id of a person or team."""
    scopes: Scopes
    unique_id: Annotated[str, Field(min_length=1, max_length=140)] | None = None
    """The unique id of the role, `AROA…`, by which the intake queue knows a sender."""


class PrincipalChange(Request):
    """The changes of a principal. An absent field stays as it is."""

    owner: Annotated[str, Field(min_length=1, max_length=64)] = ""
    scopes: Scopes = Field(default_factory=list)
    unique_id: Annotated[str, Field(min_length=1, max_length=140)] = ""

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError(f"give at least one of {', '.join(type(self).model_fields)}")
        return self


class PrincipalShape(Shape):
    id: str
    arn: str
    owner: str
    scopes: list[Scope]
    unique_id: str | None
    made_by: str
    """The id of the administrator who made it."""
    created_at: WrittenTime

    @classmethod
    def of(cls, principal: Principal) -> Json:
        return cls.from_record(principal, scopes=sorted(principal.scopes))


class PrincipalsShape(ListShape):
    items: list[PrincipalShape]

    @classmethod
    def of(cls, principals: Iterable[Principal]) -> Json:
        return cls.page([PrincipalShape.of(each) for each in principals], None)
