"""The shapes of requests and answers, as they are checked and as OpenAPI describes them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PrivateAttr,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from lambdas.rest import envelope, idempotency, resolution
from lambdas.rest.job_answers import AFTER_FAILURE, AcceptedShape
from lambdas.rest.notification_models import NotificationsRequest
from lambdas.rest.request import Request as Request
from lambdas.rest.resolution import Broken, Stage
from lambdas.rest.shapes import WRITTEN_INSTANT, Json, Shape, Violation, WrittenTime, optional, present
from scheduler import VERSION
from scheduler.jobs.by_key import OnConflict, OnStarted
from scheduler.jobs.ordering_keys import LineView
from scheduler.model import durations, instants, own_keys
from scheduler.model.errors import Invalid, SchedulerError
from scheduler.model.job import Lane
from scheduler.model.spec import REQUESTED_RETRIES, CallBack, Jitter, JobSpec, OnFailure, Ordering, RetryPolicy
from scheduler.pipeline.lag import Lag
from scheduler.pipeline.submit import Accepted, NewJob
from scheduler.storage.ports import Session
from scheduler.targets import placeholders, registry
from scheduler.targets.named_target import NAME, NamedTarget, merged

T = TypeVar("T")


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


def _own_key(text: str) -> str:
    if not own_keys.is_key(text):
        raise ValueError(own_keys.RULE)
    return text


OrderingKey = Annotated[str, AfterValidator(_ordering_key), WithJsonSchema({"type": "string", "pattern": f"^{ORDERING_KEY}$"})]
Key = Annotated[str, AfterValidator(_key), WithJsonSchema({"type": "string", "pattern": f"^{idempotency.KEY}$"})]
OwnKeyText = Annotated[str, AfterValidator(_own_key), WithJsonSchema({"type": "string", "minLength": 1, "maxLength": own_keys.LONGEST})]
Delay = Annotated[int, BeforeValidator(durations.parse), WithJsonSchema({"type": "string"})]
Tag = Annotated[str, AfterValidator(_tag), WithJsonSchema({"type": "string", "pattern": f"^{TAG}$"})]
Tags = Annotated[list[Tag], Field(max_length=10), AfterValidator(_different)]


def _after_failure(value: Any) -> OnFailure:
    named = AFTER_FAILURE.get(value) if isinstance(value, str) else value
    if not isinstance(named, OnFailure):
        raise ValueError("must be continue or pause (earlier names: block, park)")
    return named


AfterFailure = Annotated[
    OnFailure, BeforeValidator(_after_failure), WithJsonSchema({"type": "string", "enum": ["continue", "pause", "block", "park"]})
]


def _target_name(text: str) -> str:
    if re.fullmatch(NAME, text) is None:
        raise ValueError("must be 1 to 63 lower-case letters, digits or any of . _ -, and begin with a letter or a digit")
    return text


TargetName = Annotated[str, AfterValidator(_target_name), WithJsonSchema({"type": "string", "pattern": f"^{NAME}$"})]


class Login(Request):
    """The credentials of a user."""

    username: Annotated[str, Field(min_length=1, max_length=128)]
    password: Annotated[str, Field(min_length=1, max_length=256)]
    cookie: bool = False
    """For browsers: set the refresh token as a cookie that scripts cannot read. `refresh_token` is empty then."""


class Refresh(Request):
    """The refresh token, unless it comes as the bearer token or in the cookie."""

    refresh_token: Annotated[str, Field(min_length=1, max_length=8_192)] | None = None
    cookie: bool = False
    """Set the refresh token as a cookie from now on, as `cookie` of a sign-in does."""


class RetryRequest(Request):
    """The waits before further attempts, and their end."""

    base_seconds: Annotated[float, Field(ge=0.1, le=3_600)] = REQUESTED_RETRIES.base_ms / 1_000
    """The longest first wait. Each further wait is twice as long."""
    cap_seconds: Annotated[float, Field(ge=0.1, le=86_400)] = Field(REQUESTED_RETRIES.cap_ms / 1_000, validate_default=True)
    """The longest wait."""
    jitter: Annotated[Jitter, Field(strict=False)] = REQUESTED_RETRIES.jitter
    """The random reduction of a wait: `full` by any part, `equal` by up to half, `none` by nothing."""
    max_elapsed_seconds: Annotated[float, Field(ge=1, le=30 * 86_400)] | None = None
    """No attempt starts later than this after the first start. Default: no limit, but a day for throttled attempts."""
    on_timeout: bool = REQUESTED_RETRIES.on_timeout
    """Whether an attempt that timed out is retried, like any other retryable failure."""

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
    """The rules for a worker that reports the end of the job."""

    lease_seconds: Annotated[int, Field(ge=10, le=86_400)] = 300
    """The heartbeat time-out. Without a heartbeat in that time the worker is considered dead, and the job is retried, at most twice."""
    max_seconds: Annotated[int, Field(ge=10, le=30 * 86_400)] = Field(86_400, validate_default=True)
    """The maximum duration from the start of the attempt to the report, heartbeats or not."""

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
    """The message to write to the log. It may have placeholders, such as `{{scheduled_at}}`."""
    target: TargetName | None = None
    """The name of a target, whose defaults complete the payload."""
    type: str | None = Field(None, validate_default=True)
    """The type. With a target it may be absent; if it is given, it must be the target's."""
    payload: dict[str, Any] | None = Field(None, validate_default=True)
    """The payload of the type. At most 256 KB in total. Its strings may have placeholders, such as `{{scheduled_at}}`."""
    max_attempts: Annotated[int, Field(ge=1, le=25)] = 3
    """The most attempts; 1 means no retry. Throttled attempts are not counted."""
    retry: RetryRequest | None = None
    """The retry policy. Default: waits of at most 1 s, 2 s, 4 s and so on, after a time-out too."""
    timeout_seconds: Annotated[int, Field(ge=1, le=840)] = 300
    """The time-out of one attempt. An attempt that takes longer is killed."""
    callback: CallBackRequest | None = None
    """If present, a success response of the target means that it accepted the job, and a worker reports the end. Default: the
    response of the target ends the job."""
    tags: Tags = Field(default_factory=list)
    """Labels for filters."""
    ordering_key: OrderingKey | None = None
    """Jobs of the caller with one key start one after the other, by scheduled time, then by creation. Default: none."""
    on_failure: AfterFailure | None = None
    """With an ordering key, what the jobs behind it do when it has failed: `continue` (absent: this), they start;
    `pause`, they wait until you resume the key, or retry the failed job and it succeeds. The earlier names are `block` and `park`."""
    notifications: NotificationsRequest | None = None
    """The receivers of notices when it fails, recovers, succeeds, starts late or is killed. Default: none."""
    events: bool = False
    """Whether each end is put on the stage's event bus, so that other systems can react to it."""
    key: OwnKeyText | None = None
    """A name of yours: no two jobs that have not ended have the same one, and no two tasks. Find and change it by `/by-key/{key}`."""
    _kind: str | None = PrivateAttr(None)  # of its target, once that is resolved
    _implied: dict[str, Any] = PrivateAttr(default_factory=dict)  # fields of the payload that follow from others

    @field_validator("type")
    @classmethod
    def _known(cls, value: str | None, info: ValidationInfo) -> str | None:
        message, target = info.data.get("message"), info.data.get("target")
        if {"message", "target"} <= info.data.keys() and (message is None) is (value is None and target is None):
            raise ValueError("give either message alone, or type with its payload, or target with its payload")
        if value is not None and value not in registry.names():
            raise ValueError(f"there is no such type; known types: {', '.join(registry.names())}")
        return value

    @field_validator("payload")
    @classmethod
    def _fits(cls, value: dict[str, Any] | None, info: ValidationInfo) -> dict[str, Any] | None:
        """Runs after the type was found good or bad; a bad one is reported already."""
        if info.data.get("type") is not None and info.data.get("target") is None:
            of_type, payload = info.data["type"], value or {}
            if broken := [*resolution.of_shape(of_type, payload), *resolution.of_placeholders(of_type, payload)]:
                raise resolution.error_of(broken)
        elif value is not None and "type" in info.data and info.data.get("target") is None:
            raise ValueError("goes with type, not with message")
        return value

    @field_validator("on_failure")
    @classmethod
    def _in_line(cls, value: OnFailure | None, info: ValidationInfo) -> OnFailure | None:
        """Runs after the key was found good or bad; a bad one is reported already."""
        if value is not None and "ordering_key" in info.data and info.data["ordering_key"] is None:
            raise ValueError("goes with an ordering_key")
        return value

    def broken(self, stage: Stage) -> Iterator[Broken]:
        """The kind by which the payload is checked is the one that is stored with it."""
        target = None if self.target is None else stage.find_target(self.target)
        if self.target is not None and target is None:
            yield ("target",), "there is no such target; GET /targets lists them"
        elif target is not None and not target.enabled:
            yield ("target",), "is disabled"
        elif target is not None and self.type not in (None, target.kind):
            yield ("type",), f"is not that of the target {target.name}: {target.kind}"
        elif target is None and self.type == "http" and not stage.raw_http:
            yield ("type",), "raw http is switched off in this stage: name a target (GET /targets lists them)"
        else:
            self._kind = None if target is None else target.kind
            self._implied = resolution.implied(self.type, target, self.payload or {})
            yield from self._broken_of(target, stage)
        if self.notifications is not None:
            yield from resolution.within("notifications", self.notifications.broken(stage))
        yield from resolution.of_events(self.events, stage)

    def _broken_of(self, target: NamedTarget | None, stage: Stage) -> Iterator[Broken]:
        payload = self.payload or {}
        if target is not None:
            broken = resolution.of_target(target, payload, stage)
        else:
            broken = [] if self.type is None else list(resolution.of_reach(self.type, payload, stage))
        if self.message is not None:
            yield from resolution.of_placeholders("log", {"message": self.message})
        yield from resolution.within("payload", broken)
        if self.callback is not None and not broken:
            given = payload if target is None else merged(target, payload)
            yield from resolution.within("callback", resolution.of_callback(self.chosen_type, given))

    @property
    def chosen_type(self) -> str:
        """Of a request that names a target, only once that is resolved."""
        assert self.target is None or self._kind is not None
        return self.type or self._kind or "log"

    @property
    def spec(self) -> JobSpec:
        """The request as the record that is stored; its target, if it names one, is resolved."""
        payload = (self._implied | (self.payload or {})) if self.message is None else {"message": self.message}
        return JobSpec(
            type=self.chosen_type,
            payload=payload,
            placeholders=placeholders.used_in(payload),
            target=self.target,
            tags=tuple(self.tags),
            max_attempts=self.max_attempts,
            retry=REQUESTED_RETRIES if self.retry is None else self.retry.policy,
            timeout_ms=self.timeout_seconds * 1_000,
            callback=None if self.callback is None else self.callback.policy,
            ordering=None if self.ordering_key is None else Ordering(self.ordering_key, self.on_failure or OnFailure.BLOCK),
            events=self.events,
            key=self.key,
        )


class JobRequest(WorkRequest):
    """A one-time job: `message` alone, short for a job of type log, or `type` with its `payload`."""

    execute_at: Instant | None = None
    """The instant to start: RFC 3339 with an offset, to the millisecond. Default: now. An instant up to a day in the past is
    due now, and late."""
    delay: Delay | None = None
    """How long after this request to start, instead of `execute_at`: 30m, 1h30m, 2d, or PT30M. Up to ten years."""
    delay_seconds: Annotated[float, Field(ge=0, le=instants.FUTURE_LIMIT // 1_000)] | None = None
    """The same as a number of seconds."""
    expires_at: Instant | None = None
    """The job neither starts nor is retried at this instant or later: it is skipped. Default: none."""

    @field_validator("delay", "delay_seconds")
    @classmethod
    def _one_time(cls, value: float | None, info: ValidationInfo) -> float | None:
        given = [name for name in ("execute_at", "delay") if info.data.get(name) is not None]
        if value is not None and given:
            raise ValueError(f"goes without {given[0]}: give one of execute_at, delay and delay_seconds")
        return value

    @property
    def delay_ms(self) -> int | None:
        return self.delay if self.delay_seconds is None else -int(-self.delay_seconds * 1_000 // 1)

    def asked(self, owner: str, now: int, within: str = "") -> NewJob:
        """The job to submit. Raises Invalid if its start or its end is out of bounds at `now`; `within` leads the field's name."""
        told = None if self.notifications is None else self.notifications.wanted
        new = NewJob(owner, self.spec, self.execute_at, self.expires_at, told, self.delay_ms)
        if self.execute_at is not None:
            instants.check_start(f"{within}execute_at", self.execute_at, now)
        if self.expires_at is not None:
            instants.check_end(f"{within}expires_at", self.expires_at, max(new.start(now), now))
        return new


class KeyedJobRequest(JobRequest):
    """A one-time job in the place of the one that has the key of the path; and what to do if there is one."""

    on_conflict: Annotated[OnConflict, Field(strict=False)] = OnConflict.REPLACE
    """If a job of this key has not ended: `replace` gives it this time and content, `keep` leaves it as it is, `extend` gives it this
    time only."""
    on_started: Annotated[OnStarted, Field(strict=False)] = OnStarted.REFUSE
    """If that job has started or is about to: `refuse` answers 409, `follow` creates a new job that takes the key."""

    @field_validator("on_conflict")
    @classmethod
    def _has_time(cls, value: OnConflict, info: ValidationInfo) -> OnConflict:
        """Runs after the times were found good or bad; a bad one is reported already."""
        times = [info.data.get(name, 0) for name in ("execute_at", "delay", "delay_seconds")]
        if value is OnConflict.EXTEND and all(time is None for time in times):
            raise ValueError("extend goes with a time: give execute_at, delay or delay_seconds")
        return value

    def of_key(self, owner: str, key: str, now: int) -> NewJob:
        """The job to put under the key of the path. Raises Invalid as `asked` does, and for another key in the body."""
        check_same_key(self.key, key)
        new = self.asked(owner, now)
        return replace(new, spec=replace(new.spec, key=key))


def check_same_key(given: str | None, key: str) -> None:
    """Raise Invalid if a body names another key than its path."""
    if given not in (None, key):
        raise Invalid.field("key", "must be the key in the path, or absent")


def _absent() -> Any:
    """The default of a field that may be left out but not be null."""
    return Field(default_factory=lambda: None)


class JobChange(Request):
    """The changes of a job that has not started. An absent field stays as it is."""

    execute_at: Instant = _absent()
    """The new instant to start, as for POST."""
    message: Annotated[str, Field(min_length=1)] = _absent()
    """The new message, if the job is of type log."""
    payload: dict[str, Any] = _absent()
    """The new payload, as a whole. The type cannot change."""
    max_attempts: Annotated[int, Field(ge=1, le=25)] = _absent()
    retry: RetryRequest = _absent()
    """The new retry policy, as a whole. `{}` is the default policy."""
    timeout_seconds: Annotated[int, Field(ge=1, le=840)] = _absent()
    expires_at: Instant | None = None
    """The new expiry. Null removes it."""
    tags: Tags = _absent()
    notifications: NotificationsRequest | None = None
    """The new receivers of notices, as a whole. Null: none. A run has the receivers of its task."""
    events: bool = _absent()
    """Whether its end is put on the stage's event bus."""

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError(f"give at least one of {', '.join(type(self).model_fields)}")
        if {"message", "payload"} <= self.model_fields_set:
            raise ValueError("give either message or payload")
        return self

    def broken(self, stage: Stage) -> Iterator[Broken]:
        if self.notifications is not None:
            yield from resolution.within("notifications", self.notifications.broken(stage))
        yield from resolution.of_events(self.events, stage)

    def wanted(self, job_type: str, now: int, target: str | None, stage: Stage) -> dict[str, Any]:
        """The fields of a job of this type, and of this target, that change; those of its `spec` by themselves.

        Raises Invalid for a time out of bounds or a payload that is not of the type.
        """
        given = self.model_fields_set
        wanted: dict[str, Any] = {}
        spec: dict[str, Any] = {}
        if "execute_at" in given:
            instants.check_start("execute_at", self.execute_at, now)
            wanted["scheduled_at"] = self.execute_at
        if "message" in given:
            if job_type != "log":
                raise Invalid.field("message", f"goes with jobs of type log; this one is of type {job_type}: give its payload")
            spec["payload"] = _checked({"message": self.message}, job_type, target, stage)
        if "payload" in given:
            spec["payload"] = _checked(self.payload, job_type, target, stage)
        if "payload" in spec:
            spec["placeholders"] = placeholders.used_in(spec["payload"])
        if "max_attempts" in given:
            spec["max_attempts"] = self.max_attempts
        if "retry" in given:
            spec["retry"] = self.retry.policy
        if "timeout_seconds" in given:
            spec["timeout_ms"] = self.timeout_seconds * 1000
        if "expires_at" in given:
            wanted["start_by"] = self.expires_at
        if "tags" in given:
            spec["tags"] = tuple(self.tags)
        if "notifications" in given:
            wanted["notifications"] = None if self.notifications is None else self.notifications.wanted
        if "events" in given:
            spec["events"] = self.events
        return wanted | {"spec": spec}


class BatchItem(JobRequest):
    """A one-time job of many, as for POST /me/jobs."""

    idempotency_key: Key | None = None
    """As the header Idempotency-Key of a single job. Absent: that of the call, if it has one, with `#` and the item's index."""


class BatchRequest(Request):
    """Many one-time jobs. Each is accepted or refused by itself."""

    jobs: Annotated[list[Any], Field(min_length=1, max_length=1_000)]
    """Each as for POST /me/jobs, and with a key of its own; all in all at most 4 MB."""


def _checked(payload: dict[str, Any], job_type: str, target: str | None, stage: Stage) -> dict[str, Any]:
    """The payload, if it is one of the type, or of the target. Raises Invalid naming every broken rule."""
    if target is None:
        broken = [*resolution.of_payload(job_type, payload, stage), *resolution.of_placeholders(job_type, payload)]
    else:
        broken = resolution.of_target(stage.find_target(target), payload, stage)
    if broken:
        raise envelope.body_violations(resolution.error_of(resolution.within("payload", broken)))
    named = None if target is None else stage.find_target(target)
    return resolution.implied(None if named else job_type, named, payload) | payload


class OrderingKeyShape(Shape):
    """The state of an ordering key."""

    ordering_key: str
    job_id: str | None
    """The current job: it runs, or waits for another attempt."""
    parked_by: str | None
    """The failed job that pauses the key. Null: the key is not paused."""
    parked_at: WrittenTime | None
    """The time of that failure."""
    waiting: int
    """How many of the next hundred jobs are waiting or scheduled."""
    more: bool
    """There are more than these."""

    @classmethod
    def of(cls, key: str, line: LineView) -> Json:
        parked = line.parked_by
        return cls.from_record(
            line,
            ordering_key=key,
            job_id=None if line.turn is None else line.turn.id,
            parked_by=None if parked is None else parked.id,
            parked_at=None if parked is None else parked.failed_at or parked.killed_at,
        )


class ItemErrorShape(Shape):
    code: Literal["validation_failed", "payload_too_large", "conflict", "unavailable"]
    message: str
    details: list[Violation]
    """The first broken rules, each field led by its item: `jobs[3].execute_at`."""


class ResultShape(Shape):
    """The result of one item: a job or an error."""

    index: int
    job: AcceptedShape | None = None
    error: ItemErrorShape | None = None
    replayed: Literal[True] | None = None
    """There if its idempotency key was used before: this is what was answered then, and nothing new was made."""

    @classmethod
    def of(cls, index: int, done: Accepted | SchedulerError) -> Json:
        if isinstance(done, SchedulerError):
            return {"index": index, "error": ItemErrorShape.from_record(done)}
        return present(
            cls.from_record(None, index=index, job=AcceptedShape.of(done.job, done.at), error=None, replayed=done.replayed or None)
        )


class BatchShape(Shape):
    accepted: int
    refused: int
    results: list[ResultShape]
    """One per item, in their order."""

    @classmethod
    def of(cls, results: Sequence[Json]) -> Json:
        accepted = sum("job" in result for result in results)
        return cls.from_record(None, accepted=accepted, refused=len(results) - accepted, results=results)


class UserShape(Shape):
    id: str
    username: str
    job_weight: float


class RefreshedShape(Shape):
    """The new token, by its names here and by those of OAuth 2."""

    token: str
    expire: WrittenTime
    access_token: str
    """The same as `token`."""
    token_type: Literal["Bearer"]
    expires_in: int
    """Seconds until `expire`."""
    refresh_token: str | None = None
    """Present only if the old one was replaced and is not in the cookie."""

    @classmethod
    def of(cls, session: Session, now: int, **others: Any) -> Json:
        left = max(0, session.expire - now) // 1000
        return present(cls.from_record(session, access_token=session.token, token_type="Bearer", expires_in=left, **others))


class SessionShape(RefreshedShape):
    refresh_token: str
    """Empty after a sign-in with `cookie`."""
    user: UserShape

    @classmethod
    def of(cls, session: Session, now: int, **others: Any) -> Json:
        return super().of(session, now, user=optional(UserShape.from_record, session.user))


class VersionShape(Shape):
    version: str
    """The release of the scheduler."""
    api: Literal["v1"]
    """The version in the path of every route."""

    @classmethod
    def of(cls) -> Json:
        return cls.from_record(None, version=VERSION, api="v1")


class HealthShape(Shape):
    """The state of the API and, with a token, the lag of the scheduler."""

    status: Literal["ok"]
    oldest_open_minute: str | None = None
    """The oldest minute that is not proved to be done, in UTC (with a token only)."""
    oldest_open_at: WrittenTime | None = None
    """The same as an instant."""
    lag_seconds: float | None = None
    """The time since the end of that minute (with a token only). Minutes that wait only for a paused lane are not counted."""
    paused_lanes: list[Lane] | None = None
    """Lanes that administrators have paused (with a token only)."""

    @classmethod
    def of(cls, behind: Lag | None) -> Json:
        if behind is None:
            return {"status": "ok"}
        return cls.from_record(
            behind,
            status="ok",
            oldest_open_minute=behind.minute,
            oldest_open_at=None if behind.minute is None else instants.parse(f"{behind.minute}:00Z"),
            lag_seconds=behind.ms / 1000,
            paused_lanes=behind.paused,
        )
