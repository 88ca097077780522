"""The shapes of requests and answers, as they are checked and as OpenAPI describes them."""

import json
import re
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any, Generic, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from lambdas import _runtime
from lambdas.rest import envelope, idempotency
from scheduler.model import instants
from scheduler.model.errors import Invalid
from scheduler.model.job import USUAL_RETRIES, CallBack, Jitter, Lane, Misfire, OnFailure, Ordering, Outcome, Overlap, RetryPolicy, Status
from scheduler.pipeline.submit import NewJob
from scheduler.targets import payload_schema, registry
from scheduler.targets.base import NotAllowed
from scheduler.targets.named_target import NAME, NamedTarget, merged, overridden

T = TypeVar("T")
WRITTEN_INSTANT = WithJsonSchema({"type": "string", "format": "date-time"})


def _from_query(value: Any) -> int:
    """A parameter that is given twice arrives as a list; a plus sign that was not percent-encoded as a space."""
    return instants.parse(value.replace(" ", "+") if isinstance(value, str) else value)


Instant = Annotated[int, BeforeValidator(instants.parse), WRITTEN_INSTANT]
QueryInstant = Annotated[int, BeforeValidator(_from_query), WRITTEN_INSTANT]
TAG = r"[A-Za-z0-9_.:/-]{1,32}"


def _tag(text: str) -> str:
    if re.fullmatch(TAG, text) is None:
        raise ValueError("must be 1 to 32 letters, digits or any of - _ . : /")
    return text


def _different(tags: list[str]) -> list[str]:
    twice = next((tag for number, tag in enumerate(tags) if tag in tags[:number]), None)
    if twice is not None:
        raise ValueError(f"names {twice} twice")
    return tags


def _key(text: str) -> str:
    if not idempotency.is_key(text):
        raise ValueError(idempotency.RULE)
    return text


ORDERING_KEY = r"[A-Za-z0-9_.:@-]{1,128}"
ORDERING_KEY_RULE = "must be 1 to 128 letters, digits or any of - _ . : @"


def is_ordering_key(text: str) -> bool:
    return re.fullmatch(ORDERING_KEY, text) is not None


def _ordering_key(text: str) -> str:
    if not is_ordering_key(text):
        raise ValueError(ORDERING_KEY_RULE)
    return text


OrderingKey = Annotated[str, AfterValidator(_ordering_key), WithJsonSchema({"type": "string", "pattern": f"^{ORDERING_KEY}$"})]
Key = Annotated[str, AfterValidator(_key), WithJsonSchema({"type": "string", "pattern": f"^{idempotency.KEY}$"})]
Tag = Annotated[str, AfterValidator(_tag), WithJsonSchema({"type": "string", "pattern": f"^{TAG}$"})]
Tags = Annotated[list[Tag], Field(max_length=10), AfterValidator(_different)]


def _target_name(text: str) -> str:
    if re.fullmatch(NAME, text) is None:
        raise ValueError("must be 1 to 63 lower-case letters, digits or any of . _ -, and begin with a letter or a digit")
    return text


TargetName = Annotated[str, AfterValidator(_target_name), WithJsonSchema({"type": "string", "pattern": f"^{NAME}$"})]


class Request(BaseModel):
    """A request body: unknown fields are refused, nothing is converted."""

    model_config = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True)


class Login(Request):
    """Who wants in."""

    username: Annotated[str, Field(min_length=1, max_length=128)]
    password: Annotated[str, Field(min_length=1, max_length=256)]


class Refresh(Request):
    """The refresh token, unless it comes as the bearer token."""

    refresh_token: Annotated[str, Field(min_length=1, max_length=8_192)] | None = None


class RetryRequest(Request):
    """How long to wait before another attempt, and until when to try."""

    base_seconds: Annotated[float, Field(ge=0.1, le=3_600)] = USUAL_RETRIES.base_ms / 1_000
    """The first wait at most; each one after it is twice the one before."""
    cap_seconds: Annotated[float, Field(ge=0.1, le=86_400)] = Field(USUAL_RETRIES.cap_ms / 1_000, validate_default=True)
    """No wait is longer."""
    jitter: Annotated[Jitter, Field(strict=False)] = USUAL_RETRIES.jitter
    """What chance takes off a wait: `full` any part of it, `equal` up to half, `none` nothing."""
    max_elapsed_seconds: Annotated[float, Field(ge=1, le=30 * 86_400)] | None = None
    """No attempt starts later than this after the first start. Absent: no such limit, but a day for throttled attempts."""
    on_timeout: bool = USUAL_RETRIES.on_timeout
    """Whether an attempt that ran into its time-out is followed by another."""

    @field_validator("cap_seconds")
    @classmethod
    def _above(cls, value: float, info: ValidationInfo) -> float:
        if value < info.data.get("base_seconds", value):
            raise ValueError(f"must be at least base_seconds; it is {value:g}")
        return value

    @property
    def policy(self) -> RetryPolicy:
        elapsed = self.max_elapsed_seconds
        return RetryPolicy(
            base_ms=_ms(self.base_seconds),
            cap_ms=_ms(self.cap_seconds),
            jitter=self.jitter,
            max_elapsed_ms=None if elapsed is None else _ms(elapsed),
            on_timeout=self.on_timeout,
        )


def _ms(seconds: float) -> int:
    return round(seconds * 1_000)


class CallBackRequest(Request):
    """That its worker reports how it ends, and how long it may be silent."""

    lease_seconds: Annotated[int, Field(ge=10, le=86_400)] = 300
    """Without a heartbeat for so long its worker is dead, and another attempt follows, twice at most."""
    max_seconds: Annotated[int, Field(ge=10, le=30 * 86_400)] = Field(86_400, validate_default=True)
    """Within so long from its start it must have reported, whatever the heartbeats say."""

    @field_validator("max_seconds")
    @classmethod
    def _above(cls, value: int, info: ValidationInfo) -> int:
        if value < info.data.get("lease_seconds", value):
            raise ValueError(f"must be at least lease_seconds; it is {info.data['lease_seconds']}")
        return value

    @property
    def policy(self) -> CallBack:
        return CallBack(self.lease_seconds * 1_000, self.max_seconds * 1_000)


class WorkRequest(Request):
    """What to run: `message` alone, short for type log, or `type` or `target` with a `payload`."""

    message: Annotated[str, Field(min_length=1)] | None = None
    """What to write to the log."""
    target: TargetName | None = None
    """A named target, instead of a type: its defaults complete the payload."""
    type: str | None = Field(None, validate_default=True)
    """The task type."""
    payload: dict[str, Any] | None = Field(None, validate_default=True)
    """What the task type needs; all in all at most 256 KB."""
    max_attempts: Annotated[int, Field(ge=1, le=25)] = 3
    """How often to try; 1 means no retry. Throttled attempts do not count."""
    retry: RetryRequest | None = None
    """How to try again. Absent: after at most 1 s, then 2, 4 and so on."""
    timeout_seconds: Annotated[int, Field(ge=1, le=840)] = 300
    """How long one attempt may take before it is killed."""
    callback: CallBackRequest | None = None
    """Given: a good answer of the target means that it took the job over; its worker reports how it ends. Absent: it is the end."""
    tags: Tags = []
    """Words of yours to find it by; a filter takes one of them."""
    ordering_key: OrderingKey | None = None
    """Your jobs of one key start one after the other, by scheduled time, then by creation. Absent: it waits for nobody."""
    on_failure: Annotated[OnFailure, Field(strict=False)] | None = None
    """With an ordering key, what its failure means for those behind it: `block` (absent: this), they go on once it is tried no more;
    `park`, they wait until the key is resumed, or it is retried and succeeds."""
    _kind: str | None = PrivateAttr(None)

    @field_validator("target")
    @classmethod
    def _registered(cls, value: str | None) -> str | None:
        target = None if value is None else _runtime.api().named.find(value)
        if value is not None and target is None:
            raise ValueError("there is no such target; GET /targets lists them")
        if target is not None and not target.enabled:
            raise ValueError("is disabled")
        return value

    @field_validator("type")
    @classmethod
    def _known(cls, value: str | None, info: ValidationInfo) -> str | None:
        given = [value, info.data.get("message"), info.data.get("target")]
        if {"message", "target"} <= info.data.keys() and sum(each is not None for each in given) != 1:
            raise ValueError("give either message alone, or type with its payload, or target with its payload")
        if value is not None and value not in registry.names():
            raise ValueError(f"there is no such type; known types: {', '.join(registry.names())}")
        _check_raw(value)
        return value

    @field_validator("payload")
    @classmethod
    def _fits(cls, value: dict[str, Any] | None, info: ValidationInfo) -> dict[str, Any] | None:
        """Runs after the type was found good or bad; a bad one is reported already."""
        if info.data.get("type") is not None:
            _check_payload(value or {}, info.data["type"])
        elif info.data.get("target") is not None:
            _check_for(_runtime.api().named.find(info.data["target"]), value or {})
        elif value is not None and "type" in info.data:
            raise ValueError("goes with type, not with message")
        return value

    @field_validator("callback")
    @classmethod
    def _reports(cls, value: CallBackRequest | None, info: ValidationInfo) -> CallBackRequest | None:
        if value is not None and {"type", "payload", "target"} <= info.data.keys():
            kind, payload = info.data["type"] or "log", info.data["payload"] or {}
            named = None if info.data["target"] is None else _runtime.api().named.find(info.data["target"])
            try:
                registry.check_callback(*((kind, payload) if named is None else (named.kind, merged(named, payload))))
            except NotAllowed as error:
                raise ValueError(str(error)) from None
        return value

    @property
    def chosen_callback(self) -> CallBack | None:
        return None if self.callback is None else self.callback.policy

    @field_validator("on_failure")
    @classmethod
    def _in_line(cls, value: OnFailure | None, info: ValidationInfo) -> OnFailure | None:
        """Runs after the key was found good or bad; a bad one is reported already."""
        if value is not None and "ordering_key" in info.data and info.data["ordering_key"] is None:
            raise ValueError("goes with an ordering_key")
        return value

    @property
    def chosen_ordering(self) -> Ordering | None:
        return None if self.ordering_key is None else Ordering(self.ordering_key, self.on_failure or OnFailure.BLOCK)

    @model_validator(mode="after")
    def _of_its_kind(self) -> Self:
        """As its payload was checked, a moment ago: this is the kind that is stored with it."""
        target = None if self.target is None else _runtime.api().named.find(self.target)
        self._kind = None if target is None else target.kind
        return self

    @property
    def chosen_type(self) -> str:
        return self.type or self._kind or "log"

    @property
    def chosen_retry(self) -> RetryPolicy:
        return USUAL_RETRIES if self.retry is None else self.retry.policy

    @property
    def chosen_payload(self) -> dict[str, Any]:
        return (self.payload or {}) if self.message is None else {"message": self.message}


class JobRequest(WorkRequest):
    """A one-time job: `message` alone, short for a job of type log, or `type` with its `payload`."""

    execute_at: Instant | None = None
    """When to start: RFC 3339 with an offset, to the millisecond. Absent: now. Up to a day past: due now, and late."""
    expires_at: Instant | None = None
    """It does not start, nor is it tried again, at this instant or later; it is skipped then. Absent: however late."""

    def asked(self, owner: str, now: int, within: str = "") -> NewJob:
        """The job to submit. Raises Invalid if its start or its end is out of bounds at `now`; `within` leads the field's name."""
        if self.execute_at is not None:
            instants.check_start(f"{within}execute_at", self.execute_at, now)
        if self.expires_at is not None:
            instants.check_end(f"{within}expires_at", self.expires_at, max(self.execute_at or now, now))
        return NewJob(
            owner=owner,
            type=self.chosen_type,
            payload=self.chosen_payload,
            execute_at=self.execute_at,
            max_attempts=self.max_attempts,
            retry=self.chosen_retry,
            timeout_ms=self.timeout_seconds * 1000,
            callback=self.chosen_callback,
            expires_at=self.expires_at,
            tags=tuple(self.tags),
            ordering=self.chosen_ordering,
            target=self.target,
        )


def _absent() -> Any:
    """The default of a field that may be left out but not be null."""
    return Field(default_factory=lambda: None)


class JobChange(Request):
    """What to change of a job that has not started; what is absent stays as it is."""

    execute_at: Instant = _absent()
    """When to start instead: as for POST."""
    message: Annotated[str, Field(min_length=1)] = _absent()
    """What to write to the log, of a job of type log."""
    payload: dict[str, Any] = _absent()
    """What the job's task type needs, as a whole. The type itself stays."""
    max_attempts: Annotated[int, Field(ge=1, le=25)] = _absent()
    retry: RetryRequest = _absent()
    """How to try again, as a whole: {} is the default."""
    timeout_seconds: Annotated[int, Field(ge=1, le=840)] = _absent()
    expires_at: Instant | None = None
    """When it is too late to start; null takes that away."""
    tags: Tags = _absent()

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError(f"give at least one of {', '.join(type(self).model_fields)}")
        if {"message", "payload"} <= self.model_fields_set:
            raise ValueError("give either message or payload")
        return self

    def wanted(self, job_type: str, now: int, target: str | None = None) -> dict[str, Any]:
        """The fields of a job of this type, and of this target, that change.

        Raises Invalid for a time out of bounds or a payload that is not of the type.
        """
        given = self.model_fields_set
        wanted: dict[str, Any] = {}
        if "execute_at" in given:
            instants.check_start("execute_at", self.execute_at, now)
            wanted["scheduled_at"] = self.execute_at
        if "message" in given:
            if job_type != "log":
                raise Invalid.field("message", f"goes with jobs of type log; this one is of type {job_type}: give its payload")
            wanted["payload"] = _checked({"message": self.message}, job_type, target)
        if "payload" in given:
            wanted["payload"] = _checked(self.payload, job_type, target)
        if "max_attempts" in given:
            wanted["max_attempts"] = self.max_attempts
        if "retry" in given:
            wanted["retry"] = self.retry.policy
        if "timeout_seconds" in given:
            wanted["timeout_ms"] = self.timeout_seconds * 1000
        if "expires_at" in given:
            wanted["start_by"] = self.expires_at
        if "tags" in given:
            wanted["tags"] = tuple(self.tags)
        return wanted


class BatchItem(JobRequest):
    """A one-time job of many, as for POST /me/jobs."""

    idempotency_key: Key | None = None
    """As the header Idempotency-Key of a single job. Absent: that of the call, if it has one, with `#` and the item's index."""


class BatchRequest(Request):
    """Many one-time jobs, each accepted or refused on its own."""

    jobs: Annotated[list[Any], Field(min_length=1, max_length=1_000)]
    """Each as for POST /me/jobs, and with a key of its own; all in all at most 4 MB."""


def _checked(payload: dict[str, Any], job_type: str, target: str | None) -> dict[str, Any]:
    """The payload, if it is one of the type, or of the target. Raises Invalid naming every broken rule."""
    try:
        if target is None:
            _check_payload(payload, job_type)
        else:
            _check_for(_runtime.api().named.find(target), payload)
    except ValidationError as error:
        errors = error.errors(include_url=False, include_input=False)
        raise envelope.violations([{**each, "loc": ("body", "payload", *each["loc"])} for each in errors]) from None
    return payload


def _check_payload(payload: dict[str, Any], job_type: str) -> None:
    """Raises ValidationError naming every broken rule, or what of AWS may not be reached."""
    payload_of(job_type).validate_json(json.dumps(payload), strict=True)
    try:
        registry.check_reach(job_type, payload, _runtime.api().reach)
    except NotAllowed as error:
        raise broken_rules(job_type, [((error.field,) if error.field else (), str(error))]) from None


def _check_raw(job_type: str | None) -> None:
    if job_type == "http" and not _runtime.api().rules.raw_http:
        raise ValueError("raw http is switched off in this stage: name a target (GET /targets lists them)")


def _check_for(target: NamedTarget | None, payload: dict[str, Any]) -> None:
    """Raises ValidationError if it is no payload for this target: by its own schema, by what is locked, or by its type."""
    if target is None:
        raise broken_rules("target", [((), "its target does not exist any more")])
    broken: list[tuple[tuple[str | int, ...], str]] = [((name,), "is set by the target and locked") for name in overridden(target, payload)]
    if target.payload_schema is not None:
        broken += payload_schema.broken(target.payload_schema, payload)
    if broken:
        raise broken_rules(target.name, broken)
    _check_payload(merged(target, payload), target.kind)


def broken_rules(title: str, rules: Sequence[tuple[tuple[str | int, ...], str]]) -> ValidationError:
    """The error that names these rules, each with its field."""
    errors = [
        InitErrorDetails(type=PydanticCustomError("value_error", "{error}", {"error": rule}), loc=field, input=None)
        for field, rule in rules
    ]
    return ValidationError.from_exception_data(title, errors)


@cache
def payload_of(job_type: str) -> TypeAdapter[Any]:
    """The check and the JSON Schema of a task type's payload."""
    return TypeAdapter(registry.load(job_type).Payload)


class Shape(BaseModel):
    """Part of an answer."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


WrittenTime = Annotated[str, WRITTEN_INSTANT]


class RetryShape(Shape):
    """How it is tried again, as it may be posted."""

    base_seconds: float
    cap_seconds: float
    jitter: Jitter
    max_elapsed_seconds: float | None
    """Null: no limit, but a day for throttled attempts."""
    on_timeout: bool


class CallBackShape(Shape):
    """How its worker reports, as it may be posted."""

    lease_seconds: int
    max_seconds: int


class ProgressShape(Shape):
    """What its worker told last."""

    fraction: float | None
    message: str | None


class FailureShape(Shape):
    kind: Literal["retryable", "permanent", "throttled", "timeout", "crashed", "buried"]
    message: str
    retry_after_seconds: float | None
    """How long its target asked to be left alone."""


class AttemptShape(Shape):
    number: int
    """Rises from attempt to attempt; a gap is a hand-over that never started."""
    picked_at: WrittenTime
    started_at: WrittenTime | None
    ended_at: WrittenTime
    outcome: Outcome
    failure: FailureShape | None
    output: str | None
    """The beginning of what it put out, or of the body of the answer it got; of the last one that is in `response`."""
    log: str | None
    """What was written while it ran, or the end of that."""
    output_kept: Literal["whole", "excerpt"]
    """Whether `/attempts/{number}/output` and `/log` have all of it, or only what is shown here."""


class ResponseShape(Shape):
    status: int
    headers: dict[str, str]
    body: str
    """As much of it as fits into 4 KB with the logs; the whole is at `/attempts/{number}/output`."""


class JobShape(Shape):
    """A job. Every field is always there; null where there is nothing to tell."""

    id: str
    type: str
    target: str | None
    """The named target whose defaults complete its payload; `type` is its kind."""
    status: Status
    lane: Lane
    shard_id: int | None
    """The shard of the minute that holds it; null once it is finished."""
    payload: dict[str, Any]
    created_at: WrittenTime
    scheduled_at: WrittenTime
    due_at: WrittenTime
    """When its next attempt may start."""
    picked_at: WrittenTime | None
    started_at: WrittenTime | None
    completed_at: WrittenTime | None
    failed_at: WrittenTime | None
    killed_at: WrittenTime | None
    cancelled_at: WrittenTime | None
    skipped_at: WrittenTime | None
    start_delay_ms: int | None
    """First start minus scheduled time."""
    late: bool
    cancel_requested_at: WrittenTime | None
    max_attempts: int
    retry: RetryShape
    timeout_seconds: int
    callback: CallBackShape | None
    """Null: what its target answers is the end."""
    lease_until: WrittenTime | None
    """Of one that waits for its call-back: until when it must be heard of."""
    heartbeat_at: WrittenTime | None
    """The last one of this attempt."""
    progress: ProgressShape | None
    attempts: list[AttemptShape]
    """The last five."""
    output: str | None
    response: ResponseShape | None
    reason: str | None
    fingerprint: str | None
    """Of a failed or killed job: the same for errors that differ in ids, numbers, times and addresses only."""
    redrives: int
    """How often it was retried after it had failed or was killed."""
    redriven_at: WrittenTime | None
    """When it was last."""
    tags: list[str]
    ordering_key: str | None
    """Those of one key start one after the other."""
    on_failure: OnFailure | None
    """What its failure means for those behind it; null without an ordering key."""
    expires_at: WrittenTime | None
    """If it has not started by then, it is skipped."""
    task_id: str | None
    """The task it is a run of."""
    generation: int | None
    """The task's when this run was planned."""
    nominal_at: WrittenTime | None
    """Its time by the schedule, before jitter; null if it was asked for by hand."""
    overlap: Overlap | None
    misfire: Misfire | None


class TextShape(Shape):
    """What an attempt put out, or what was logged meanwhile."""

    number: int
    """Of the attempt."""
    text: str
    complete: bool
    """False: more than 1 MB, or the rest could not be stored."""


class PageShape(Shape):
    jobs: list[JobShape]
    cursor: str | None
    """Ask again with it for the next page; null on the last one. A page may be short and still not be the last."""


class OrderingKeyShape(Shape):
    """How the line of an ordering key stands."""

    ordering_key: str
    job_id: str | None
    """The job whose turn it is: it runs, or waits for another attempt."""
    parked_by: str | None
    """The failed job that those behind it wait for; null: the key is not parked."""
    parked_at: WrittenTime | None
    """When that one failed."""
    waiting: int
    """How many of the next hundred jobs are waiting or scheduled."""
    more: bool
    """There are more than these."""


class AcceptedShape(Shape):
    """What is new of an accepted job; GET tells the rest."""

    id: str
    status: Status
    scheduled_at: WrittenTime


class ItemErrorShape(Shape):
    code: Literal["validation_failed", "payload_too_large", "conflict", "unavailable"]
    message: str
    details: list["Violation"]
    """The first broken rules, each field led by its item: `jobs[3].execute_at`."""


class ResultShape(Shape):
    """What became of one item: a job or an error."""

    index: int
    job: AcceptedShape | None = None
    error: ItemErrorShape | None = None
    replayed: Literal[True] | None = None
    """There if its idempotency key was used before: this is what was answered then, and nothing new was made."""


class BatchShape(Shape):
    accepted: int
    refused: int
    results: list[ResultShape]
    """One per item, in their order."""


class UserShape(Shape):
    id: str
    username: str
    job_weight: float


class RefreshedShape(Shape):
    token: str
    expire: WrittenTime
    refresh_token: str | None = None
    """There only if the old one was replaced."""


class SessionShape(Shape):
    token: str
    expire: WrittenTime
    refresh_token: str
    user: UserShape


class HealthShape(Shape):
    """That the API answers; with a token also how far behind the scheduler is."""

    status: Literal["ok"]
    oldest_open_minute: str | None = None
    """The oldest minute that is not proved to be done (with a token only)."""
    lag_seconds: float | None = None
    """For how long that minute has been over (with a token only). Minutes that wait only for a paused lane are not counted."""
    paused_lanes: list[Lane] | None = None
    """Lanes that administrators have paused (with a token only)."""


class Answer(Shape, Generic[T]):
    """Every answer that is not an error."""

    success: Literal[True]
    data: T


class Violation(Shape):
    field: str
    rule: str


class ErrorShape(Shape):
    code: str
    message: str
    details: list[Violation]
    """One entry per broken rule, if the request was at fault."""
    request_id: str


class ErrorAnswer(Shape):
    """Every error."""

    success: Literal[False]
    error: ErrorShape
