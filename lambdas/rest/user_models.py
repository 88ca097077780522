"""Shapes of users and of the audit trail."""

import re
from collections.abc import Iterable
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from lambdas.rest.models import Request
from lambdas.rest.shapes import Json, ListShape, Shape, WrittenTime
from scheduler.accounts.access import Caller, Scope
from scheduler.accounts.user_admin import KnownUser
from scheduler.model.account import PASSWORD, Quotas, Role
from scheduler.model.audit import AuditEntry
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
    role: Role | None
    """Null for a machine client, whose scopes the deployment sets."""
    enabled: bool
    job_weight: float
    quotas: QuotasShape
    """The quotas of their own. Null: the deployment's quota."""
    effective_quotas: QuotasShape
    """The quotas that apply to the user."""
    created_at: WrittenTime | None

    @classmethod
    def of(cls, known: KnownUser, allowed: Quotas, *, machine: bool) -> Json:
        hidden = {"role": None, "created_at": None} if machine else {}
        return cls.from_record(
            known.account, quotas=QuotasShape.from_record(known.profile.quotas), effective_quotas=QuotasShape.from_record(allowed), **hidden
        )


class AccountPageShape(ListShape):
    items: list[AccountShape]
    clients: list[AccountShape]
    """The machine clients of the deployment, on the first page."""

    @classmethod
    def of(cls, users: Iterable[Json], clients: Iterable[Json], cursor: str | None) -> Json:
        return cls.page(list(users), cursor, clients=list(clients))


class MeShape(Shape):
    id: str
    username: str
    role: Role | None
    """Null: a machine client."""
    scopes: list[Scope]
    """Of a machine client."""
    job_weight: float
    effective_quotas: QuotasShape
    """The quotas that apply: your own, else those of the deployment."""

    @classmethod
    def of(cls, caller: Caller, weight: float, allowed: Quotas) -> Json:
        scopes = sorted(map(str, caller.scopes))
        quotas = QuotasShape.from_record(allowed)
        return cls.from_record(caller, username=caller.name, scopes=scopes, job_weight=weight, effective_quotas=quotas)


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
    """The id of the user or machine client that made the change."""
    actor_name: str
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
    def of(cls, entries: Iterable[AuditEntry], cursor: str | None) -> Json:
        return cls.page([EntryShape.from_record(entry) for entry in entries], cursor)
