"""Shapes of users and of the audit trail."""

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from lambdas.rest.models import Request
from lambdas.rest.shapes import Json, ListShape, Shape, WrittenTime
from scheduler.accounts.access import Caller
from scheduler.model.account import PASSWORD, Profile, Quotas, Role, Scope, TeamRole
from scheduler.model.audit import AuditEntry
from scheduler.sharing.fair_queue import DEFAULT_WEIGHT
from scheduler.storage.ports import Session

NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"
_UUID = r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"


def _name(text: str) -> str:
    if re.fullmatch(NAME, text) is None:
        raise ValueError("must be 1 to 64 letters, digits or any of - _ . and begin with a letter or digit")
    if re.fullmatch(_UUID, text) is not None:
        raise ValueError("must not look like the id of a user")
    return text


def _password(text: str) -> str:
    if re.fullmatch(PASSWORD, text) is None:
        raise ValueError("must be 1 to 256 characters, none of them a blank")
    return text


Username = Annotated[str, AfterValidator(_name), WithJsonSchema({"type": "string", "pattern": f"^{NAME}$"})]
Password = Annotated[str, AfterValidator(_password), WithJsonSchema({"type": "string", "pattern": f"^{PASSWORD}$"})]
Weight = Annotated[float, Field(ge=0.01, le=1_000)]


class QuotasRequest(Request):
    """The quotas of a user. Null or absent: the deployment's quotas."""

    max_jobs: Annotated[int, Field(ge=0, le=1_000_000_000)] | None = None
    """The maximum number of jobs that have not ended."""
    creates_per_second: Annotated[float, Field(ge=0.01, le=100_000)] | None = None
    """The average per second. A burst of ten seconds' worth is allowed."""

    @property
    def quotas(self) -> Quotas:
        return Quotas(self.max_jobs, self.creates_per_second)


class UserRequest(Request):
    """A new user."""

    username: Username
    password: Password
    """At least 12 characters, with upper-case and lower-case letters, a digit and a symbol."""
    role: Annotated[Role, Field(strict=False)] = Role.USER
    job_weight: Weight = 1.0
    """The fair-share weight: twice the weight, twice the share when more is due than can run."""
    quotas: QuotasRequest | None = None


class UserChange(Request):
    """The changes of a user. An absent field stays as it is."""

    role: Annotated[Role, Field(strict=False)] = Field(default_factory=lambda: Role.USER)
    job_weight: Weight = Field(default_factory=lambda: 1.0)
    quotas: QuotasRequest = Field(default_factory=QuotasRequest)
    """The new quotas, as a whole. `{}`: the deployment's quotas."""

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError(f"give at least one of {', '.join(type(self).model_fields)}")
        return self

    @property
    def changes(self) -> dict[str, Any]:
        changed: dict[str, Any] = {name: getattr(self, name) for name in self.model_fields_set}
        return changed | ({"quotas": self.quotas.quotas} if "quotas" in changed else {})


class PasswordRequest(Request):
    """A new password for a user who has lost the old one."""

    password: Password


class PasswordChange(Request):
    """Your old and new password."""

    current_password: Password
    new_password: Password


class SignOut(Request):
    """The sessions to end."""

    everywhere: bool = True
    """False: only the session of the refresh token."""
    refresh_token: Annotated[str, Field(min_length=1, max_length=8_192)] | None = None
    """The refresh token of the session to end, if `everywhere` is false. Default: the one in the cookie."""


class QuotasShape(Shape):
    max_jobs: int | None
    """Null: the deployment's quota. In `effective_quotas`, null means no limit."""
    creates_per_second: float | None


class AccountShape(Shape):
    id: str
    username: str
    role: Role
    """The role that an administrator set."""
    sso_role: Role | None
    """The role by the groups of the identity provider at the last sign-in. The higher one of both applies."""
    has_password: bool
    """False: the user signs in by the identity provider only."""
    enabled: bool
    job_weight: float
    quotas: QuotasShape
    """The quotas of their own. Null: the deployment's quota."""
    effective_quotas: QuotasShape
    """The quotas that apply to the user."""
    created_at: WrittenTime | None

    @classmethod
    def of(cls, known: Profile, allowed: Quotas) -> Json:
        return cls.from_record(
            known,
            username=known.name or "",
            has_password=known.account is not None,
            enabled=known.disabled_at is None,
            job_weight=DEFAULT_WEIGHT if known.weight is None else known.weight,
            quotas=QuotasShape.from_record(known.quotas),
            effective_quotas=QuotasShape.from_record(allowed),
            created_at=known.created_at or None,
        )


class AccountPageShape(ListShape):
    items: list[AccountShape]

    @classmethod
    def of(cls, users: Iterable[Json], cursor: str | None) -> Json:
        return cls.page(list(users), cursor)


class OwnTeamShape(Shape):
    """A team of the caller."""

    id: str
    name: str
    role: TeamRole


class MeShape(Shape):
    id: str
    """The id of the person, also for an API key of theirs; of an AWS role, its ARN."""
    username: str
    kind: Literal["person", "key", "principal"]
    """The kind of credential of the request."""
    role: Role | None
    """Null for an API key and an AWS role, which have scopes."""
    scopes: list[Scope]
    """Empty for a person, who needs none."""
    owner: str
    """The owner of the jobs and tasks that you create if you name no other one."""
    teams: list[OwnTeamShape]
    """The teams of a person, by name."""
    job_weight: float
    effective_quotas: QuotasShape
    """The quotas that apply: your own, else those of the deployment."""

    @classmethod
    def of(cls, caller: Caller, teams: Iterable[tuple[Profile, TeamRole]], weight: float, allowed: Quotas) -> Json:
        return cls.from_record(
            caller,
            username=caller.name,
            kind="person" if caller.scopes is None else "principal" if caller.key is None else "key",
            scopes=sorted(map(str, caller.scopes or ())),
            teams=[OwnTeamShape.from_record(team, role=role) for team, role in teams],
            job_weight=weight,
            effective_quotas=QuotasShape.from_record(allowed),
        )


class ChangedShape(Shape):
    """Confirmation, and a new session for the caller."""

    changed: bool
    token: str | None
    """Null: sign in with the new password."""
    expire: WrittenTime | None
    refresh_token: str | None
    """Null if the request came with the cookie: the answer sets it."""

    @classmethod
    def of(cls, session: Session | None) -> Json:
        tokens = dict.fromkeys(("token", "expire", "refresh_token")) if session is None else {}
        return cls.from_record(session, changed=True, **tokens)


class SignedOutShape(Shape):
    """A confirmation."""

    signed_out: bool

    @classmethod
    def of(cls) -> Json:
        return cls.from_record(None, signed_out=True)


class EntryShape(Shape):
    """One change, and the user or program that requested it."""

    id: str
    at: WrittenTime
    actor: str
    """The id of the person, or the ARN of the AWS role, that made the change."""
    actor_name: str | None
    """Null if the person was deleted, and for an AWS role."""
    key: str | None
    """The id of the API key by which the actor made the change; null for a sign-in."""
    owner: str
    """The id of the owner of the object; `system` if it concerns all users."""
    action: str
    object: str | None
    """The id of the changed object."""
    changes: dict[str, Any]
    """The requested change, without values that may be secret."""
    status: int | None
    """The HTTP status of the answer; below 300: the change was made. Null: the answer was not recorded; read the object."""
    ended_at: WrittenTime | None
    address: str
    request_id: str


class TrailShape(ListShape):
    items: list[EntryShape]

    @classmethod
    def of(cls, entries: Iterable[AuditEntry], cursor: str | None, names: Mapping[str, str]) -> Json:
        return cls.page([EntryShape.from_record(entry, actor_name=names.get(entry.actor)) for entry in entries], cursor)
