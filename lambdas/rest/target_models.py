"""Shapes of named targets: requests of administrators, and answers to all users."""

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError, ValidationInfo, field_validator

from lambdas.rest import envelope, resolution
from lambdas.rest.job_answers import LimitShape
from lambdas.rest.models import LINES, LimitRequest, Request, TargetName
from lambdas.rest.parameters import Part
from lambdas.rest.resolution import Broken, Stage, caller_schema, payload_of
from lambdas.rest.shapes import Json, ListShape, Shape, WrittenTime, optional
from scheduler.model.named_target import PRIVATE, PUBLIC, NamedTarget
from scheduler.targets import payload_schema, placeholders, private_network, registry
from scheduler.targets.named_target import LEAST_PER_SECOND, MOST_AT_ONCE, MOST_PER_SECOND, NO_NETWORK, default_locks, own_secrets

MOST_DEFAULTS = 32_768  # bytes of all defaults
EARLIER = ("missing", "missing_argument")  # rules of fields that the jobs will give


def _schema(value: dict[str, Any]) -> dict[str, Any]:
    payload_schema.check(value)
    return value


Entry = Annotated[str, AfterValidator(private_network.check_entry)]


class TargetEdit(Request):
    """A named target: a destination, its defaults, and the fields that jobs may set. An absent field gets its default, not the
    old value."""

    kind: str
    """One of the task types. The kind of a registered target cannot change."""
    defaults: dict[str, Any] = Field(default_factory=dict)
    """Default values of payload fields. Jobs set the other fields, and may override defaults that are not locked."""
    locked: Annotated[list[str], Field(max_length=100)] | None = Field(None, validate_default=True)
    """The defaults that no job may override. Default: all, except content fields such as the body."""
    payload_schema: Annotated[dict[str, Any], AfterValidator(_schema)] | None = None
    """The JSON Schema of the payloads of jobs, checked when they are created. Default: the fields that complete the defaults."""
    rate: Annotated[float, Field(ge=LEAST_PER_SECOND, le=MOST_PER_SECOND)] | None = None
    """The maximum starts per second, over the jobs of all users. Default: no limit."""
    concurrency: Annotated[int, Field(ge=1, le=MOST_AT_ONCE)] | None = None
    """The maximum number of jobs that run at one time. Default: no limit."""
    limit: LimitRequest | None = None
    """The limit of a key that it shares with the other targets that name the key. Default: none."""
    description: Annotated[str, Field(max_length=1_000), LINES] | None = None
    network: Literal["public", "private"] = "public"
    """private: its jobs call the hosts and ranges of `allow` in the stage's private network. For the kind http, with the option network."""
    allow: Annotated[list[Entry], Field(max_length=50)] = Field(default_factory=list)
    """The hosts, such as *.internal.example.com, and ranges, such as 10.0.0.0/16, that jobs of a private target may call."""
    enabled: bool = True
    """False: new jobs are refused, and existing ones fail when they start."""
    version: Annotated[int, Field(ge=1)] | None = None
    """The version that you read. If the target was changed since, the request is refused. Default: no check."""

    @field_validator("kind")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in registry.names():
            raise ValueError(f"there is no such type; known types: {', '.join(registry.names())}")
        return value

    @field_validator("defaults")
    @classmethod
    def _fit(cls, value: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        if len(json.dumps(value).encode()) > MOST_DEFAULTS:
            raise ValueError(f"must not have more than {MOST_DEFAULTS:,} bytes")
        if (kind := info.data.get("kind")) is not None:
            _check_defaults(value, kind)
        return value

    @field_validator("locked")
    @classmethod
    def _defaulted(cls, value: list[str] | None, info: ValidationInfo) -> list[str] | None:
        unknown = sorted(set(value or ()) - set(info.data.get("defaults", value or ())))
        if unknown:
            raise ValueError(f"has no default to lock: {', '.join(unknown)}")
        if (kind := info.data.get("kind")) is not None:
            _check_secrets(kind, info.data.get("defaults", {}), value)
        return value

    def broken(self, stage: Stage) -> Iterator[Broken]:
        if broken := list(self._broken_network(stage)):
            yield from broken
            return
        stage = stage.within(self.allow)
        resource = registry.load(self.kind).resource
        if resource is None or resource.field in self.defaults:  # else jobs give it, and are checked then
            yield from resolution.within("defaults", resolution.of_reach(self.kind, self.defaults, stage))

    def _broken_network(self, stage: Stage) -> Iterator[Broken]:
        if self.network == PUBLIC:
            if self.allow:
                yield ("allow",), "belongs to network private: jobs of a public target call public addresses"
        elif self.kind != "http":
            yield ("network",), f"cannot be private for kind {self.kind}: only targets of kind http can"
        elif not stage.reach.network:
            yield ("network",), NO_NETWORK
        elif not self.allow:
            yield ("allow",), "is missing: a private target lists the hosts and ranges that its jobs may call"
        for number, entry in enumerate(self.allow if self.network == PRIVATE and stage.reach.network else ()):
            if not private_network.is_within(entry, stage.reach.network):
                yield ("allow", number), f"is not within the option network, which allows {', '.join(stage.reach.network)}"

    @property
    def fields(self) -> dict[str, Any]:
        """The fields that replace those of the target."""
        return {
            "defaults": self.defaults,
            "placeholders": placeholders.used_in(self.defaults),
            "locked": default_locks(self.kind, self.defaults) if self.locked is None else tuple(sorted(set(self.locked))),
            "payload_schema": self.payload_schema,
            "rate": self.rate,
            "concurrency": self.concurrency,
            "limit": None if self.limit is None else self.limit.record,
            "allow": tuple(self.allow),
            "description": self.description,
            "enabled": self.enabled,
        }


class TargetRequest(TargetEdit):
    """A named target to register."""

    name: TargetName
    """The name by which jobs refer to it."""


def _check_defaults(defaults: Mapping[str, Any], kind: str) -> None:
    """Raises ValidationError if a default is invalid for the type."""
    try:
        payload_of(kind).validate_json(json.dumps(defaults), strict=True)
    except ValidationError as error:
        errors = [each for each in error.errors(include_url=False, include_input=False) if each["type"] not in EARLIER]
        if errors:
            raise resolution.error_of([(each["loc"], envelope.rule(each)) for each in errors]) from None
    if broken := list(resolution.of_placeholders(kind, defaults)):
        raise resolution.error_of(broken)


def _check_secrets(kind: str, defaults: Mapping[str, Any], locked: list[str] | None) -> None:
    """A caller who could choose where the target's secrets are sent could read them. Raises ValueError."""
    fixed = default_locks(kind, defaults) if locked is None else locked
    destination = registry.load(kind).destination
    if own_secrets(kind, fixed) and destination not in fixed:
        raise ValueError(f"must include {destination}, with a default: else a job could choose where the target's secrets are sent")


class TargetShape(Shape):
    """A named target. A field without a value is null."""

    name: str
    kind: str
    description: str | None
    enabled: bool
    job_payload_schema: dict[str, Any]
    """The JSON Schema of the payload of a job."""
    rate: float | None
    """The maximum starts per second, over the jobs of all users."""
    concurrency: int | None
    """The maximum number of jobs that run at one time."""
    limit: LimitShape | None
    """The limit of a key that it shares with other targets."""
    network: Literal["public", "private"]
    """private: its jobs call hosts of the stage's private network."""
    defaults: dict[str, Any] | None
    """The defaults. `defaults`, `locked`, `payload_schema` and `allow` may be confidential: null unless the caller is an administrator."""
    locked: list[str] | None
    payload_schema: dict[str, Any] | None
    allow: list[str] | None
    """The hosts and ranges that jobs of a private target may call."""
    version: int
    created_at: WrittenTime
    created_by: str | None
    """`created_by` and `updated_by` are null unless the caller is an administrator."""
    updated_at: WrittenTime
    updated_by: str | None

    @classmethod
    def of(cls, target: NamedTarget, *, whole: bool) -> Json:
        """`whole`: with the fields for administrators."""
        hidden = {} if whole else dict.fromkeys(("defaults", "locked", "payload_schema", "allow", "created_by", "updated_by"))
        limit = optional(LimitShape.of, target.limit)
        return cls.from_record(target, job_payload_schema=caller_schema(target), limit=limit, **hidden)


class TargetsShape(ListShape):
    items: list[TargetShape]
    """By name."""

    @classmethod
    def of(cls, targets: Part[NamedTarget], *, whole: bool) -> Json:
        return cls.page([TargetShape.of(target, whole=whole) for target in targets.entries], targets.cursor)


class DeletedTargetShape(Shape):
    name: str


EXAMPLES: dict[str, Any] = {
    "http": {
        "summary": "A service that takes 20 calls a second, 5 at once",
        "value": {
            "name": "invoices",
            "kind": "http",
            "defaults": {"method": "POST", "url": "https://example.com/invoices"},
            "payload_schema": {
                "type": "object",
                "properties": {"body": {"type": "object", "required": ["number"], "properties": {"number": {"type": "integer"}}}},
                "required": ["body"],
                "additionalProperties": False,
            },
            "rate": 20,
            "concurrency": 5,
        },
    },
}
