"""The declaration of a target type: everything that the product knows about it, in the type's own module.

A module of `scheduler/targets/types/` assigns one `TargetType` to `TYPE`. The API, the executors, the breakers, the named targets
and the grants in `infra/targets.py` all read that record.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from scheduler.model.job import Awaited, Job, Result
from scheduler.targets import arns
from scheduler.targets.awaited_ends import AwaitedEnds
from scheduler.targets.base import Context, NotAllowed, Reach
from scheduler.targets.calls import Role
from scheduler.targets.job_context import JobContext

Fields = Mapping[str, Any]

_ARN = r"arn:aws[a-z-]*:{}:[a-z0-9-]+:\d{{12}}:{}"


@dataclass(frozen=True, slots=True)
class Permission:
    """An IAM action of the executors. `on` maps an allowed ARN, or a pattern of ARNs, to the ARN that IAM checks."""

    action: str
    on: Callable[[str], str] = str
    kind: str = ""  # the beginning of the last part of the ARNs that it is for, such as cluster/
    only: tuple[str, str] | None = None  # a condition key of IAM, and the kind of the allowed ARNs that are its values


@dataclass(frozen=True, slots=True)
class Resource:
    """The AWS resource that jobs of a type call. A job runs only if its deployment allows the ARN (`allowed_targets`)."""

    field: str  # the payload field that holds the ARN
    service: str  # as ARNs name it
    form: str  # regular expression of the last part of the ARN
    noun: str  # names the expected value in errors, such as "the ARN of a Lambda function"
    permissions: tuple[Permission, ...]

    def is_arn(self, text: str) -> bool:
        """A predicate for the payload's field: true for an ARN of this resource. Raises ValueError for any other text."""
        if re.fullmatch(_ARN.format(self.service, self.form), arns.queue(text)) is None:
            raise ValueError(f"must be {self.noun}")
        return True

    def check(self, payload: Fields, reach: Reach) -> None:
        """Raises NotAllowed if the stage does not allow the ARN of the payload, or if it belongs to the scheduler itself."""
        arn = arns.queue(payload[self.field])
        if arns.is_own(arn):
            raise NotAllowed(self.field, "belongs to the scheduler itself, so no job may call it")
        if not arns.is_allowed(arn, reach.arns):
            allowed = ", ".join(arns.of_service(arns.service(arn), reach.arns)) or "none (operators set the option allowed_targets)"
            raise NotAllowed(self.field, f"is not allowed for jobs of this stage; allowed: {allowed}")

    def account(self, payload: Fields) -> str:
        """The AWS account of a payload's resource."""
        return arns.account(arns.queue(payload[self.field]))


def _never(payload: Fields) -> bool:
    return False


def _nothing(payload: Fields) -> Fields:
    return {}


def _accept(payload: Fields, reach: Reach) -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetType:
    """One target type. Only `payload` and `run` are required."""

    payload: type[Any]
    """A frozen dataclass. The API checks its `Annotated` limits when a job is created, and shows its JSON Schema."""

    run: Callable[[Fields, Context], Result]
    """One attempt. Returns (or raises) by the deadline, and soon after `stop` is set."""

    is_work: Callable[[Fields], bool] = _never
    """Whether `run` computes in the executor itself. If so, it runs in a child process, which is killed at the deadline.

    That process has no credentials: its context has neither `reach` nor `calls`.
    """

    is_quick: Callable[[Fields], bool] = _never
    """Whether `run` neither waits nor computes for more than a millisecond.

    Such jobs of an executor share one thread: many of them start sooner than if each needed a thread of its own.
    """

    content: tuple[str, ...] = ()
    """The payload fields that jobs of a named target set. All other defaults of a target are locked, unless its `locked` differs."""

    resource: Resource | None = None
    """The AWS resource that its jobs call; None: none, or one without an ARN."""

    account: str = ""
    """The payload field with the AWS account of the call, which is optional; empty: its jobs call the account of `resource`."""

    check: Callable[[Fields, Reach], None] = _accept
    """Raises NotAllowed for a payload that breaks a rule beyond those of its fields. The payload may be a part, as a target's defaults."""

    implied: Callable[[Fields], Fields] = _nothing
    """The fields that a new payload gets because of its others. Payloads that are stored already stay as they are."""

    circuit: Callable[[Fields], str | None] | None = None
    """The name of the circuit of a payload: jobs of one owner and one circuit fail together.

    None here: the ARN of `resource`, if the type has one.
    """

    called: Callable[[Fields], str | None] | None = None
    """The name of what a payload calls, for lists. None here: the name in the ARN of `resource`, if the type has one."""

    time_limit: str = ""
    """The payload field with a time-out of the call itself, in seconds. It has a default; the job's own time-out applies as well."""

    calls_back: bool = False
    """Whether its jobs have a worker that can report by call-back."""

    callback_attributes: int | None = None
    """The most `attributes` of a payload that leave room for the two attributes of a call-back; None: any number."""

    equal_attempts: bool = False
    """Whether every attempt must send the same: a payload then cannot have the placeholder of the attempt's number."""

    encodings: Mapping[str, Callable[[str], str]] = field(default_factory=dict)
    """For payload fields whose strings are restricted: the encoding of a placeholder's value in them."""

    prepares: bool = False
    """Whether `run` is called ahead of the job's instant, to prepare its call, and then waits by `context.begin`.

    `run` of any other type is called at the instant.
    """

    ahead_ms: int = 0
    """The time (ms) before its instant at which a job is sent to the function that runs it, if the stage has such a function."""

    ends: AwaitedEnds | None = None
    """The way in which the ends of its jobs in AWS are awaited; None: a job ends with the answer to its call."""

    secrets: tuple[str, ...] = ()
    """The payload fields that name secrets."""

    destination: str = ""
    """The payload field with the address to which the secrets are sent."""

    def attempt(self, payload: Fields, context: Context) -> Result:
        """Call `run`. Raises what it raises, and TypeError for an answer that is no result or has parts of wrong types."""
        result = self.run(payload, context)
        if not isinstance(result, Result):
            raise TypeError(f"`run` returned {type(result).__name__} instead of Result")
        failure = result.failure
        texts = {"the output of a result": result.output, "the log of a result": result.log}
        texts |= {} if failure is None else {"the message of a failure": failure.message}
        for name, text in texts.items():
            if not isinstance(text, str | None):
                raise TypeError(f"{name} is text, not {type(text).__name__}")
        return result

    def awaits(self, payload: Fields) -> bool:
        """Whether a job with this payload runs until the work ends that it starts in AWS."""
        return self.ends is not None and self.ends.are_awaited(payload)

    def intent(self, payload: Fields, job: Job, context: JobContext) -> Awaited | None:
        """The work that the attempt of the claimed job will start in AWS; None: none whose end is awaited."""
        if self.ends is None or not self.ends.are_awaited(payload):
            return None
        return Awaited(job.fence, self.ends.request(payload, job, context))

    def check_end(self, job: Job, context: Context, now: int) -> Result:
        """Check the work in AWS of the job at `now` (ms): see `AwaitedEnds.check`. Raises TypeError for a type that awaits nothing."""
        if self.ends is None:
            raise TypeError(f"jobs of the type {job.spec.type} await nothing in AWS")
        return self.ends.check(job, context, now)

    def role_of(self, payload: Fields, reach: Reach) -> Role | None:
        """The role with which a payload is called; None: that of the executor. Raises NotAllowed for a role of other owners."""
        if self.account:
            return reach.role_in(payload[self.account], self.account) if payload.get(self.account) else None
        return None if self.resource is None else reach.role_in(self.resource.account(payload), self.resource.field)

    def circuit_of(self, payload: Fields) -> str | None:
        """The circuit of a payload; None: its jobs have no breaker."""
        if self.circuit is not None:
            return self.circuit(payload)
        found = None if self.resource is None else payload.get(self.resource.field)
        return None if found is None else str(found)

    def called_by(self, payload: Fields) -> str | None:
        """The name of what a payload calls; None: it calls nothing that has a name."""
        if self.called is not None:
            return self.called(payload)
        found = None if self.resource is None else payload.get(self.resource.field)
        return None if found is None else arns.name(str(found))

    def time_limit_ms(self, payload: Fields) -> int | None:
        """The time-out of the call itself (ms), which is the default one if the payload has none; None: the type has no such time-out."""
        if not self.time_limit:
            return None
        default = next(each.default for each in fields(self.payload) if each.name == self.time_limit)
        seconds: float = payload.get(self.time_limit, default)
        return round(seconds * 1000)
