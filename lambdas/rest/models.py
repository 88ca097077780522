"""Shapes of requests and answers, for validation and for the OpenAPI document."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
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
from lambdas.rest.job_answers import AcceptedShape
from lambdas.rest.notification_models import NotificationsRequest
from lambdas.rest.request import Request as Request
from lambdas.rest.resolution import Broken, Stage
from lambdas.rest.shapes import WRITTEN_INSTANT, Json, Shape, Violation, WrittenTime, optional, present
from scheduler import VERSION
from scheduler.jobs.by_key import SINGLETON, OnConflict, OnStarted, PutRules, debounce, throttle
from scheduler.jobs.ordering_keys import LineView
from scheduler.model import durations, ids, instants, own_keys, texts, trace
from scheduler.model.after import MOST, When
from scheduler.model.errors import Invalid, SchedulerError
from scheduler.model.job import Lane
from scheduler.model.named_target import NamedTarget
from scheduler.model.spec import (
    AWAITED_TIMEOUT_MS,
    LONGEST_AWAITED_MS,
    LONGEST_PERIOD_MS,
    MOST_OF_KEY,
    MOST_STARTS_A_SECOND,
    REQUESTED_RETRIES,
    SHORTEST_PERIOD_MS,
    CallBack,
    Jitter,
    JobSpec,
    OnFailure,
    Ordering,
    RetryPolicy,
)
from scheduler.model.spec import Limit as KeyedLimit
from scheduler.pipeline.lag import Lag
from scheduler.pipeline.predecessors import Named
from scheduler.pipeline.submit import Accepted, NewJob
from scheduler.storage.ports import Session
from scheduler.targets import placeholders, registry
from scheduler.targets.named_target import NAME, merged

T = TypeVar("T")


def _from_query(value: Any) -> int:
    """A parameter that is given twice arrives as a list; a plus sign that was not percent-encoded as a space."""
    return instants.parse(value.replace(" ", "+") if isinstance(value, str) else value)


Instant = Annotated[int, BeforeValidator(instants.parse), WRITTEN_INSTANT]
Timeout = Annotated[int, Field(ge=1, le=LONGEST_AWAITED_MS // 1_000)]
QueryInstant = Annotated[int, BeforeValidator(_from_query), WRITTEN_INSTANT]
SHORTEST_RULE_MS = 1_000  # of debounce and throttle: a job cannot be changed in the last 400 ms before its start
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


def _id_of(kind: str) -> Callable[[str], str]:
    """The check that a text can be the id of a job or of a group: both have one form."""

    def check(text: str) -> str:
        if not ids.is_job_id(text):
            raise ValueError(f"must be the id of a {kind}")
        return text

    return check


def _line(text: str) -> str:
    if (rule := texts.broken_rule(text)) is not None:
        raise ValueError(rule)
    return text


def _lines(text: str) -> str:
    if (rule := texts.broken_rule(text, lines=True)) is not None:
        raise ValueError(rule)
    return text


def _trace_parent(text: str) -> str:
    if trace.parse(text) is None:
        raise ValueError("must be a traceparent, such as 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
    return text


def _trace_state(text: str) -> str:
    if not trace.is_state(text):
        raise ValueError("must be a tracestate of up to 512 characters and 32 members, such as vendor=value,other=value")
    return text


LINE, LINES = AfterValidator(_line), AfterValidator(_lines)  # of texts that people read
JobId = Annotated[str, AfterValidator(_id_of("job")), WithJsonSchema({"type": "string", "pattern": ids.PATTERN})]
GroupId = Annotated[str, AfterValidator(_id_of("group"))]
OrderingKey = Annotated[str, AfterValidator(_ordering_key), WithJsonSchema({"type": "string", "pattern": f"^{ORDERING_KEY}$"})]
Key = Annotated[str, AfterValidator(_key), WithJsonSchema({"type": "string", "pattern": f"^{idempotency.KEY}$"})]
TraceParent = Annotated[str, AfterValidator(_trace_parent)]
TraceState = Annotated[str, AfterValidator(_trace_state)]
OwnKeyText = Annotated[str, AfterValidator(_own_key), WithJsonSchema({"type": "string", "minLength": 1, "maxLength": own_keys.LONGEST})]
Delay = Annotated[int, BeforeValidator(durations.parse), WithJsonSchema({"type": "string"})]
Tag = Annotated[str, AfterValidator(_tag), WithJsonSchema({"type": "string", "pattern": f"^{TAG}$"})]
Tags = Annotated[list[Tag], Field(max_length=10), AfterValidator(_different)]


def _target_name(text: str) -> str:
    if re.fullmatch(NAME, text) is None:
        raise ValueError("must be 1 to 63 lower-case letters, digits or any of . _ -, and begin with a letter or a digit")
    return text


TargetName = Annotated[str, AfterValidator(_target_name), WithJsonSchema({"type": "string", "pattern": f"^{NAME}$"})]


OneTimeCode = Annotated[str, Field(pattern=r"^[0-9]{6}$")]


class Login(Request):
    """The credentials of a user."""

    username: Annotated[str, Field(min_length=1, max_length=128)]
    password: Annotated[str, Field(min_length=1, max_length=256)]
    cookie: bool = False
    """For browsers: set the refresh token as a cookie that scripts cannot read. `refresh_token` is empty then."""


class ChallengeReply(Request):
    """The answer to the challenge of a sign-in."""

    session: Annotated[str, Field(min_length=1, max_length=4_096)]
    """The `session` of the challenge."""
    code: OneTimeCode
    cookie: bool = False
    """As in the sign-in."""


class SignOnCode(Request):
    """The answer of the identity provider, as the browser brought it back."""

    code: Annotated[str, Field(min_length=1, max_length=2_048)]
    verifier: Annotated[str, Field(pattern=r"^[A-Za-z0-9._~-]{43,128}$")]
    """The text whose SHA-256 was the `code_challenge` (PKCE, RFC 7636)."""
    redirect_uri: Annotated[str, Field(min_length=1, max_length=2_048)]
    """The address to which the browser came back."""
    cookie: bool = False
    """For browsers: set the refresh token as a cookie that scripts cannot read. `refresh_token` is empty then."""


class Refresh(Request):
    """The refresh token, unless it comes as the bearer token or in the cookie."""

    refresh_token: Annotated[str, Field(min_length=1, max_length=8_192)] | None = None
    cookie: bool = False
    """Set the refresh token as a cookie from now on, as `cookie` of a sign-in does."""


class RetryRequest(Request):
    """The waits before further attempts, and when retries stop."""

    base_seconds: Annotated[float, Field(ge=0.1, le=3_600)] = REQUESTED_RETRIES.base_ms / 1_000
    """The longest first wait. Each further wait is twice as long."""
    cap_seconds: Annotated[float, Field(ge=0.1, le=86_400)] = Field(REQUESTED_RETRIES.cap_ms / 1_000, validate_default=True)
    """The longest wait."""
    jitter: Annotated[Jitter, Field(strict=False)] = REQUESTED_RETRIES.jitter
    """The random reduction of a wait: `full` by any part, `equal` by up to half, `none` by nothing."""
    max_elapsed_seconds: Annotated[float, Field(ge=1, le=30 * 86_400)] | None = None
    """No attempt starts later than this after the first start. Default: no limit, except a day for throttled attempts."""
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
    """The heartbeat time-out. Without a heartbeat in this time the worker is considered dead, and the job is retried, at most twice."""
    max_seconds: Annotated[int, Field(ge=10, le=30 * 86_400)] = Field(86_400, validate_default=True)
    """The maximum time from the start of the attempt to the report, regardless of heartbeats."""

    @field_validator("max_seconds")
    @classmethod
    def _above(cls, value: int, info: ValidationInfo) -> int:
        if value < info.data.get("lease_seconds", value):
            raise ValueError(f"must be at least lease_seconds; it is {info.data['lease_seconds']}")
        return value

    @property
    def policy(self) -> CallBack:
        return CallBack(self.lease_seconds * 1_000, self.max_seconds * 1_000)


class LimitRequest(Request):
    """A limit that your jobs with the same key share: how many run at one time, how many start in a period, or both."""

    key: OrderingKey
    """Your jobs with the same key share one limit. Give the same limit with each."""
    concurrency: Annotated[int, Field(ge=1, le=MOST_OF_KEY)] | None = None
    """The maximum number of jobs that run at one time. Default: no limit."""
    rate: Annotated[int, Field(ge=1)] | None = None
    """The maximum number of starts in a period, evenly spaced. Default: no limit."""
    period: Delay | None = Field(None, validate_default=True)
    """The period of the rate, from 1s to 7d, such as 1m. Required with a rate."""

    @field_validator("period")
    @classmethod
    def _of_rate(cls, value: int | None, info: ValidationInfo) -> int | None:
        if "rate" not in info.data or "concurrency" not in info.data:
            return value
        rate = info.data["rate"]
        if rate is None and value is None and info.data["concurrency"] is None:
            raise ValueError("give concurrency, or rate and period, or all three")
        if (rate is None) is not (value is None):
            raise ValueError("requires a rate" if rate is None else "is required with a rate")
        if value is not None and not SHORTEST_PERIOD_MS <= value <= LONGEST_PERIOD_MS:
            raise ValueError("must be from 1s to 7d")
        if value is not None and rate * 1_000 > value * MOST_STARTS_A_SECOND:
            raise ValueError(f"must be longer: a key has at most {MOST_STARTS_A_SECOND:,} starts a second")
        return value

    @property
    def record(self) -> KeyedLimit:
        return KeyedLimit(self.key, self.concurrency, self.rate, self.period or SHORTEST_PERIOD_MS)


_SPEC = {field.name for field in fields(JobSpec)}
# The field of the spec that a field of a request sets, and its value, unless both are the same.
CONVERTED: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "tags": ("tags", tuple),
    "retry": ("retry", lambda retry: REQUESTED_RETRIES if retry is None else retry.policy),
    "timeout_seconds": ("timeout_ms", lambda seconds: seconds * 1_000),
    "callback": ("callback", lambda callback: None if callback is None else callback.policy),
    "limit": ("limit", lambda limit: None if limit is None else limit.record),
}


def of_spec(request: Request, names: Iterable[str]) -> dict[str, Any]:
    """The fields of a spec that these fields of a request set. Others are left out."""
    found = {name: getattr(request, name) for name in names if name in _SPEC and name not in CONVERTED}
    for name in CONVERTED.keys() & names:
        field, convert = CONVERTED[name]
        found[field] = convert(getattr(request, name))
    return found


class WorkRequest(Request):
    """The work: `type` or `target` with a `payload`, or `message` alone, a short form of type log."""

    message: Annotated[str, Field(min_length=1)] | None = None
    """The message to write to the log. It may have placeholders, such as `{{scheduled_at}}`."""
    target: TargetName | None = None
    """The name of a target, whose defaults complete the payload."""
    type: str | None = Field(None, validate_default=True)
    """The task type. With a target it may be absent; if present, it must be the target's kind."""
    payload: dict[str, Any] | None = Field(None, validate_default=True)
    """The payload of the type. At most 256 KB in total. Its strings may have placeholders, such as `{{scheduled_at}}`."""
    max_attempts: Annotated[int, Field(ge=1, le=25)] = 3
    """The most attempts; 1 means no retry. Throttled attempts are not counted."""
    retry: RetryRequest | None = None
    """The retry policy. Default: waits of at most 1 s, 2 s, 4 s and so on, after a time-out too."""
    timeout_seconds: Timeout = 300
    """The time-out of one attempt. An attempt that takes longer is killed. At most 840 seconds, unless the job waits for work in AWS:
    then the default is 86,400."""
    callback: CallBackRequest | None = None
    """If present, a success response of the target only accepts the job, and a worker reports the result. Default: the response
    of the target ends the job."""
    tags: Tags = Field(default_factory=list)
    """Labels for filters."""
    ordering_key: OrderingKey | None = None
    """Your jobs with the same key start one after the other, by scheduled time, then by creation. Default: none."""
    on_failure: Annotated[OnFailure, Field(strict=False)] | None = None
    """The rule for the jobs with the same ordering key after this one has failed. `continue` (default): they start. `pause`: they wait
    until you resume the key, or retry the failed job and it succeeds."""
    limit: LimitRequest | None = None
    """The limit of a key: a job over it waits, and delays no other. Default: none."""
    notifications: NotificationsRequest | None = None
    """The receivers of notices when it fails, recovers, succeeds, starts late or is killed. Default: none."""
    events: bool = False
    """True: send each end to the stage's event bus, so that other systems can react to it."""
    key: OwnKeyText | None = None
    """A name that you choose, unique among your jobs that have not ended and among your tasks. Find and change it by `/by-key/{key}`."""
    _kind: str | None = PrivateAttr(None)  # of its target, once that is resolved
    _awaits: bool = PrivateAttr(False)  # whether it runs until work in AWS has ended
    _implied: dict[str, Any] = PrivateAttr(default_factory=dict)  # fields of the payload that follow from others

    @field_validator("type")
    @classmethod
    def _known(cls, value: str | None, info: ValidationInfo) -> str | None:
        message, target = info.data.get("message"), info.data.get("target")
        if {"message", "target"} <= info.data.keys() and (message is None) is (value is None and target is None):
            raise ValueError("give exactly one of: message alone; type with its payload; target with its payload")
        if value is not None and value not in registry.names():
            raise ValueError(f"there is no such type; known types: {', '.join(registry.names())}")
        return value

    @field_validator("payload")
    @classmethod
    def _fits(cls, value: dict[str, Any] | None, info: ValidationInfo) -> dict[str, Any] | None:
        """Runs after the type was validated; an invalid one is reported already."""
        if info.data.get("type") is not None and info.data.get("target") is None:
            of_type, payload = info.data["type"], value or {}
            if broken := [*resolution.of_shape(of_type, payload), *resolution.of_placeholders(of_type, payload)]:
                raise resolution.error_of(broken)
        elif value is not None and "type" in info.data and info.data.get("target") is None:
            raise ValueError("requires type or target instead of message")
        return value

    @field_validator("on_failure")
    @classmethod
    def _in_line(cls, value: OnFailure | None, info: ValidationInfo) -> OnFailure | None:
        """Runs after the key was validated; an invalid one is reported already."""
        if value is not None and "ordering_key" in info.data and info.data["ordering_key"] is None:
            raise ValueError("requires an ordering_key")
        return value

    def broken(self, stage: Stage) -> Iterator[Broken]:
        """The payload is validated by the kind that is stored with it."""
        target = None if self.target is None else stage.find_target(self.target)
        if self.target is not None and target is None:
            yield ("target",), "there is no such target; GET /targets lists them"
        elif target is not None and not target.enabled:
            yield ("target",), "is disabled"
        elif target is not None and self.type not in (None, target.kind):
            yield ("type",), f"must be the kind of the target {target.name}: {target.kind}"
        elif target is None and self.type == "http" and not stage.raw_http:
            yield ("type",), "type http is disabled in this stage: use a named target (GET /targets lists them)"
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
        yield from ((("timeout_seconds",), rule) for rule in resolution.of_timeout(self.chosen_type, self.timeout_seconds))
        if broken:
            return
        merged_payload = payload if target is None else merged(target, payload)
        self._awaits = self.message is None and registry.load(self.chosen_type).awaits(merged_payload)
        if self.callback is not None:
            yield from resolution.within("callback", resolution.of_callback(self.chosen_type, merged_payload))

    @property
    def chosen_type(self) -> str:
        """If the request names a target: only after the target is resolved."""
        assert self.target is None or self._kind is not None
        return self.type or self._kind or "log"

    @property
    def spec(self) -> JobSpec:
        """The request as the record that is stored; its target, if it names one, is resolved."""
        payload = (self._implied | (self.payload or {})) if self.message is None else {"message": self.message}
        ordering = None if self.ordering_key is None else Ordering(self.ordering_key, self.on_failure or OnFailure.CONTINUE)
        made: dict[str, Any] = {
            "type": self.chosen_type,
            "payload": payload,
            "placeholders": placeholders.used_in(payload),
            "ordering": ordering,
        }
        if self._awaits and "timeout_seconds" not in self.model_fields_set:
            made["timeout_ms"] = AWAITED_TIMEOUT_MS
        return JobSpec(**of_spec(self, WorkRequest.model_fields) | made)


def _absent() -> Any:
    """The default of a field that may be absent but not null."""
    return Field(default_factory=lambda: None)


class AfterRequest(Request):
    """A job or a group that must end before this job starts: give its `job`, its `key` or its `group`."""

    job: JobId = _absent()
    """The id of a job."""
    key: OwnKeyText = _absent()
    """The name that you chose for a job. It stands for the job that has the name now, or for a job of the same request."""
    group: GroupId = _absent()
    """The id of a sealed group, which ends when all its jobs have ended, and succeeds if all of them have succeeded by then."""
    when: Annotated[When, Field(strict=False)] = When.SUCCEEDED
    """`succeeded` (default): if it ends in another way, this job is skipped. `ended`: this job starts after any end."""

    @model_validator(mode="after")
    def _one_name(self) -> Self:
        if sum(each is not None for each in (self.job, self.key, self.group)) != 1:
            raise ValueError("give exactly one of job, key and group")
        return self

    @property
    def named(self) -> Named:
        return Named(self.when, self.job, self.key, self.group)


class JobRequest(WorkRequest):
    """A one-time job: `type` or `target` with a `payload`, or `message` alone, a short form of type log."""

    execute_at: Instant | None = None
    """When to start the job: RFC 3339 with an offset, to the millisecond. Default: now. An instant up to a day in the past is
    accepted; the job starts now and is marked as late."""
    delay: Delay | None = None
    """The time from this request to the start, instead of `execute_at`: 30m, 1h30m, 2d, or PT30M. Up to ten years."""
    delay_seconds: Annotated[float, Field(ge=0, le=instants.FUTURE_LIMIT // 1_000)] | None = None
    """The same in seconds."""
    expires_at: Instant | None = None
    """The expiry. At this instant or later the job neither starts nor is retried: it is skipped. Default: none."""
    group: GroupId | None = None
    """The id of an open group of yours that the job joins. Default: none."""
    after: Annotated[list[AfterRequest], Field(max_length=MOST)] = Field(default_factory=list)
    """The jobs that must end before this one starts. Its own time still applies."""

    @field_validator("delay", "delay_seconds")
    @classmethod
    def _one_time(cls, value: float | None, info: ValidationInfo) -> float | None:
        others = [name for name in ("execute_at", "delay") if info.data.get(name) is not None]
        if value is not None and others:
            raise ValueError(f"must be absent beside {others[0]}: give one of execute_at, delay and delay_seconds")
        return value

    @property
    def delay_ms(self) -> int | None:
        return self.delay if self.delay_seconds is None else -int(-self.delay_seconds * 1_000 // 1)

    def new_job(self, owner: str, now: int, within: str = "") -> NewJob:
        """The job to submit. Raises Invalid if its start or its end is out of bounds at `now`; `within` precedes the field's name."""
        notifications = None if self.notifications is None else self.notifications.record
        named = tuple(each.named for each in self.after)
        times = self.execute_at, self.expires_at
        new = NewJob(owner, self.spec, *times, notifications, self.delay_ms, group=self.group, after=named)
        if self.execute_at is not None:
            instants.check_start(f"{within}execute_at", self.execute_at, now)
        if self.expires_at is not None:
            instants.check_end(f"{within}expires_at", self.expires_at, max(new.start(now), now))
        return new


class KeyedJobRequest(JobRequest):
    """A one-time job for the key in the path, and the rules for an existing job of that key.

    One of debounce, throttle and singleton; or on_conflict and on_started.
    """

    debounce: Delay = _absent()
    """The delay, which each put restarts: the job starts this time after the last put, with its content. At least 1 s."""
    max_wait: Delay = _absent()
    """Of `debounce`: the longest time from the creation of the job to its start. Default: no limit."""
    throttle: Delay = _absent()
    """The period: the first put creates a job, and each further one in this time returns that job. From 1 s to the time for which
    ended jobs are kept."""
    singleton: bool = False
    """True: while a job of this key has not ended, a put returns that job."""
    on_conflict: Annotated[OnConflict, Field(strict=False)] = OnConflict.REPLACE
    """For a job of this key that has not ended: `replace` changes its time and content, `keep` changes nothing, `extend` changes
    its time only."""
    on_started: Annotated[OnStarted, Field(strict=False)] = OnStarted.REFUSE
    """For a job of this key that has started or is about to start: `refuse` answers 409, `follow` creates a new job with the key."""

    @field_validator("group")
    @classmethod
    def _alone(cls, value: str | None) -> str | None:
        if value is not None:
            raise ValueError("must be absent: a job joins a group when it is created by POST")
        return value

    @field_validator("debounce", "throttle", "singleton", "on_conflict", "on_started")
    @classmethod
    def _one_rule(cls, value: Any, info: ValidationInfo) -> Any:
        others = [name for name in ("debounce", "throttle", "singleton") if name != info.field_name and info.data.get(name)]
        if value and others:
            raise ValueError(f"must be absent beside {others[0]}, which is a rule of its own")
        return value

    @field_validator("debounce", "throttle")
    @classmethod
    def _long_enough(cls, value: int, info: ValidationInfo) -> int:
        if value < SHORTEST_RULE_MS:
            raise ValueError("must be at least 1s")
        times = [name for name in ("execute_at", "delay", "delay_seconds") if info.data.get(name) is not None]
        if info.field_name == "debounce" and times:
            raise ValueError(f"must be absent beside {times[0]}: debounce is the delay")
        return value

    @field_validator("max_wait")
    @classmethod
    def _of_debounce(cls, value: int, info: ValidationInfo) -> int:
        delay = info.data.get("debounce", value)  # an invalid debounce is reported already
        if delay is None:
            raise ValueError("needs debounce")
        if value < delay:
            raise ValueError("must be at least the time of debounce")
        return value

    @field_validator("on_conflict")
    @classmethod
    def _has_time(cls, value: OnConflict, info: ValidationInfo) -> OnConflict:
        """Runs after the times were validated; an invalid one is reported already."""
        times = [info.data.get(name, 0) for name in ("execute_at", "delay", "delay_seconds")]
        if value is OnConflict.EXTEND and all(time is None for time in times):
            raise ValueError("must not be extend without execute_at, delay or delay_seconds")
        return value

    @field_validator("after")
    @classmethod
    def _after_none(cls, value: list[AfterRequest]) -> list[AfterRequest]:
        if value:
            raise ValueError("must be absent: only POST /jobs takes predecessors, so that no change makes a circle")
        return value

    @property
    def delay_ms(self) -> int | None:
        return super().delay_ms if self.debounce is None else self.debounce

    def rules(self, retention_days: int) -> PutRules:
        """The rules of the put. `retention_days`: how long ended jobs are kept. Raises Invalid for a longer throttle."""
        if self.throttle is not None:
            if self.throttle > retention_days * 86_400_000:
                raise Invalid.field("throttle", f"must be at most {retention_days}d, for which ended jobs are kept")
            return throttle(self.throttle)
        if self.debounce is not None:
            return debounce(self.max_wait)
        return SINGLETON if self.singleton else PutRules(self.on_conflict, self.on_started)

    def of_key(self, owner: str, key: str, now: int) -> NewJob:
        """The job to store with the key of the path. Raises Invalid as `new_job` does, and for another key in the body."""
        check_same_key(self.key, key)
        new = self.new_job(owner, now)
        return replace(new, spec=replace(new.spec, key=key))


def check_same_key(body_key: str | None, key: str) -> None:
    """Raise Invalid if a body names another key than its path."""
    if body_key not in (None, key):
        raise Invalid.field("key", "must be the key in the path, or absent")


class JobChange(Request):
    """The changes of a job that has not started. An absent field stays as it is."""

    execute_at: Instant = _absent()
    """The new instant to start, as for POST."""
    delay: Delay = _absent()
    """The time from this request to the start, instead of `execute_at`, as for POST."""
    message: Annotated[str, Field(min_length=1)] = _absent()
    """The new message. Only for jobs of type log."""
    payload: dict[str, Any] = _absent()
    """The new payload, as a whole. The type cannot change."""
    max_attempts: Annotated[int, Field(ge=1, le=25)] = _absent()
    retry: RetryRequest = _absent()
    """The new retry policy, as a whole. `{}` is the default policy."""
    timeout_seconds: Timeout = _absent()
    expires_at: Instant | None = None
    """The new expiry. Null removes it."""
    tags: Tags = _absent()
    limit: LimitRequest | None = None
    """The new limit. With the same key, it applies to all jobs of the key, at once. Null: the job has none."""
    notifications: NotificationsRequest | None = None
    """The new receivers of notices, as a whole. Null: none. A run has the receivers of its task."""
    events: bool = _absent()
    """True: send each end to the stage's event bus."""

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError(f"give at least one of {', '.join(type(self).model_fields)}")
        if {"message", "payload"} <= self.model_fields_set:
            raise ValueError("give either message or payload")
        if {"execute_at", "delay"} <= self.model_fields_set:
            raise ValueError("give either execute_at or delay")
        return self

    def broken(self, stage: Stage) -> Iterator[Broken]:
        if self.notifications is not None:
            yield from resolution.within("notifications", self.notifications.broken(stage))
        yield from resolution.of_events(self.events, stage)

    def changes(self, job_type: str, now: int, target: str | None, stage: Stage) -> dict[str, Any]:
        """The fields of a job of this type, and of this target, that change; those of its `spec` by themselves.

        Raises Invalid for a time out of bounds or a payload that is invalid for the type.
        """
        names = self.model_fields_set
        changes: dict[str, Any] = {}
        spec = of_spec(self, names)
        for rule in resolution.of_timeout(job_type, self.timeout_seconds) if "timeout_seconds" in names else ():
            raise Invalid.field("timeout_seconds", rule)
        if "execute_at" in names:
            instants.check_start("execute_at", self.execute_at, now)
            changes["scheduled_at"] = self.execute_at
        if "delay" in names:
            changes["scheduled_at"] = now + self.delay
        if "message" in names:
            if job_type != "log":
                raise Invalid.field("message", f"is only for jobs of type log; this job has type {job_type}: give its payload")
            spec["payload"] = {"message": self.message}
        if "payload" in spec:
            spec["payload"] = _checked(spec["payload"], job_type, target, stage)
            spec["placeholders"] = placeholders.used_in(spec["payload"])
        if "expires_at" in names:
            changes["start_by"] = self.expires_at
        if "notifications" in names:
            changes["notifications"] = None if self.notifications is None else self.notifications.record
        return changes | {"spec": spec}


class BatchItem(JobRequest):
    """One job of the batch, with the fields of POST /jobs."""

    idempotency_key: Key | None = None
    """The idempotency key of this job. Default: the header's key, if present, with `#` and the item's index."""
    traceparent: TraceParent | None = None
    """The span that creates this job, in the form of the W3C's header. Default: that of the request, if present."""
    tracestate: TraceState | None = None
    """The `tracestate` beside it."""

    @property
    def trace(self) -> str | None:
        """Its trace context as a job stores it."""
        return trace.parse(self.traceparent, self.tracestate)


class BatchRequest(Request):
    """Up to 1,000 one-time jobs. Each is accepted or refused on its own."""

    jobs: Annotated[list[Any], Field(min_length=1, max_length=1_000)]
    """The jobs. The whole request has at most 2,048,000 bytes."""


def _checked(payload: dict[str, Any], job_type: str, target: str | None, stage: Stage) -> dict[str, Any]:
    """The payload, if it is valid for the type or the target. Raises Invalid naming every broken rule."""
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
    """The current job, which runs or waits for another attempt."""
    paused_by: str | None
    """The failed job that pauses the key. Null: the key is not paused."""
    paused_at: WrittenTime | None
    """When that job failed."""
    waiting: int
    """The number of waiting or scheduled jobs; at most 100 are counted."""
    more: bool
    """True: there are more jobs than `waiting` counts."""

    @classmethod
    def of(cls, key: str, line: LineView) -> Json:
        paused = line.paused_by
        return cls.from_record(
            line,
            ordering_key=key,
            job_id=None if line.head is None else line.head.id,
            paused_by=None if paused is None else paused.id,
            paused_at=None if paused is None else paused.failed_at or paused.killed_at,
        )


class ItemErrorShape(Shape):
    code: Literal["validation_failed", "payload_too_large", "conflict", "unavailable", "internal_error"]
    message: str
    details: list[Violation]
    """The first broken rules. Each field begins with its item: `jobs[3].execute_at`."""


class ResultShape(Shape):
    """The result of one item: a job or an error."""

    index: int
    job: AcceptedShape | None = None
    error: ItemErrorShape | None = None
    replayed: Literal[True] | None = None
    """True: the idempotency key was used before. This is the original result, and no new job was created."""

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
    """One result per item, in the order of the items."""

    @classmethod
    def of(cls, results: Sequence[Json]) -> Json:
        accepted = sum("job" in result for result in results)
        return cls.from_record(None, accepted=accepted, refused=len(results) - accepted, results=results)


class UserShape(Shape):
    id: str
    username: str
    job_weight: float


class RefreshedShape(Shape):
    """The new access token."""

    token: str
    expire: WrittenTime
    token_type: Literal["Bearer"]
    expires_in: int
    """The seconds until `expire`."""
    refresh_token: str | None = None
    """The new refresh token. Present only if the old one was replaced and the cookie does not carry it."""

    @classmethod
    def of(cls, session: Session, now: int, **others: Any) -> Json:
        left = max(0, session.expire - now) // 1000
        return present(cls.from_record(session, token_type="Bearer", expires_in=left, **others))


class SessionShape(RefreshedShape):
    refresh_token: str
    """Empty after a sign-in with `cookie`."""
    user: UserShape

    @classmethod
    def of(cls, session: Session, now: int, **others: Any) -> Json:
        return super().of(session, now, user=optional(UserShape.from_record, session.user))


class ChallengeShape(Shape):
    """The password was right, and the account has a second factor. Send a code to `/auth/challenge` within three minutes."""

    challenge: Literal["totp"]
    session: str
    """Send it with the code."""

    @classmethod
    def of(cls, session: str) -> Json:
        return cls.from_record(None, challenge="totp", session=session)


class SignOnShape(Shape):
    """The addresses for a single sign-on."""

    name: str
    """The name of the identity provider, for people."""
    provider: str
    """The name of the identity provider in paths, such as `/users/{user_id}/identities/{provider}`."""
    authorize_url: str
    """Add `redirect_uri`, `state`, `code_challenge` and `code_challenge_method=S256`, and let the browser go there."""
    sign_out_url: str
    """The address for the browser after the end of a session: the session at the identity provider ends there."""
    loopback_ports: list[int]
    """A program may use `http://127.0.0.1:<port>/signed-in` as `redirect_uri`."""


class SignOnPageShape(Shape):
    """The ways to sign in."""

    sso: SignOnShape | None
    """Null: there is no single sign-on."""
    passwords: bool
    """False: only few administrators sign in with a password."""


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
    oldest_open_minute: WrittenTime | None = None
    """The beginning of the oldest minute with unfinished jobs (with a token only)."""
    lag_seconds: float | None = None
    """The time since the end of that minute (with a token only). Minutes that wait only for a paused lane are ignored."""
    paused_lanes: list[Lane] | None = None
    """Lanes that administrators have paused (with a token only)."""

    @classmethod
    def of(cls, behind: Lag | None) -> Json:
        if behind is None:
            return {"status": "ok"}
        return cls.from_record(
            behind,
            status="ok",
            oldest_open_minute=None if behind.minute is None else instants.parse(f"{behind.minute}:00Z"),
            lag_seconds=behind.ms / 1000,
            paused_lanes=behind.paused,
        )
