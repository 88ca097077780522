"""Shapes of replays: one ended job again, or many by a filter."""

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from lambdas.rest import envelope, resolution
from lambdas.rest.models import Delay, Instant, Request
from lambdas.rest.operation_models import ManyRequest, TaskId, several
from lambdas.rest.resolution import Broken, Stage
from scheduler.jobs.replay import replay
from scheduler.model import instants, operation
from scheduler.model.errors import Conflict
from scheduler.model.job import Job
from scheduler.model.operation import Filter
from scheduler.model.spec import JobSpec
from scheduler.pipeline.submit import NewJob
from scheduler.targets import registry

EndedStatus = Literal["succeeded", "failed", "killed", "cancelled", "skipped"]
LONGEST_FOR_ALL = 4_096  # bytes of a payload for many jobs: it is a part of the operation, which is written several times a second


class ReplayRequest(Request):
    """The time of the new job, and the differences from the original."""

    payload: dict[str, Any] | None = None
    """The payload, as a whole. Default: that of the original."""
    execute_at: Instant | None = None
    """When to start the new job, as for POST /jobs. Default: now."""
    delay: Delay | None = None
    """The time from this request to the start, instead of `execute_at`."""
    keep_ordering: bool = False
    """True: the new job has the ordering key of the original, and waits for the jobs before it. Default: it waits for no other."""

    @field_validator("delay")
    @classmethod
    def _one_time(cls, value: int | None, info: ValidationInfo) -> int | None:
        if value is not None and info.data.get("execute_at") is not None:
            raise ValueError("must be absent beside execute_at")
        return value

    def new_job(self, original: Job, now: int, stage: Stage, trace_ratio: float | None) -> NewJob:
        """The job to submit. Raises Invalid for a bad start or payload; Conflict if the stage no longer takes the work of the original."""
        if self.execute_at is not None:
            instants.check_start("execute_at", self.execute_at, now)
        if stale := list(_of_target(original.spec, stage)):
            raise _refused(stale)
        payload = None if self.payload is None else _implied(original.spec, self.payload, stage)
        broken = list(
            resolution.within("payload", _of_payload(original.spec, original.spec.payload if payload is None else payload, stage))
        )
        if broken:
            raise _refused(broken) if payload is None else envelope.body_violations(resolution.error_of(broken))
        times = {"execute_at": self.execute_at, "delay_ms": self.delay}
        return replay(original, payload=payload, **times, keep_ordering=self.keep_ordering, trace_ratio=trace_ratio)


class ReplayJobsRequest(ManyRequest):
    """The jobs to replay, and the speed."""

    task: TaskId | None = None
    """Runs of the task with this id."""
    status: Annotated[list[EndedStatus], Field(max_length=5), BeforeValidator(several)] = Field(default_factory=list)
    """Only in one of these states: a list, or a single state as a text. As in lists, failed jobs include killed ones.
    Default: succeeded, failed and killed."""
    since: Annotated[Instant | None, Field(alias="from")] = None
    """Scheduled at or after this instant."""
    until: Annotated[Instant | None, Field(alias="to")] = None
    """Scheduled before this instant."""
    payload: dict[str, Any] | None = None
    """The payload of each new job, at most 4 KB. It requires `type`, and jobs with a named target are left out."""
    rate: Annotated[int, Field(ge=1, le=operation.MAX_RATE)] = operation.DEFAULT_RATE
    """Jobs per second, at most the quota `creates_per_second` of the owner."""

    def broken(self, stage: Stage) -> Iterator[Broken]:
        yield from super().broken(stage)
        if self.payload is None:
            return
        if self.type not in registry.names():
            yield ("type",), "must be a known type beside payload"
        elif len(json.dumps(self.payload, ensure_ascii=False).encode()) > LONGEST_FOR_ALL:
            yield ("payload",), f"must have at most {LONGEST_FOR_ALL:,} bytes as JSON"
        else:
            spec = JobSpec(self.type, self.payload)
            yield from _of_target(spec, stage)
            yield from resolution.within("payload", _of_payload(spec, self.payload, stage))

    @property
    def filter(self) -> Filter:
        statuses = tuple(dict.fromkeys(self.status))
        return Filter(self.task, self.type, None, self.since, self.until, tuple(self.tag), statuses)

    @property
    def payload_for_all(self) -> dict[str, Any] | None:
        """The payload with the fields that follow from its others."""
        if self.payload is None or self.type is None:
            return None
        return resolution.implied(self.type, None, self.payload) | self.payload


def _of_target(spec: JobSpec, stage: Stage) -> Iterator[Broken]:
    """The rule that the type or the named target of a job breaks in the stage as it is now."""
    target = None if spec.target is None else stage.find_target(spec.target)
    if spec.target is not None and target is None:
        yield ("target",), f"the target {spec.target} no longer exists"
    elif target is not None and not target.enabled:
        yield ("target",), f"the target {target.name} is disabled"
    elif target is not None and target.kind != spec.type:
        yield ("target",), f"the target {target.name} is of kind {target.kind} now, not {spec.type}"
    elif spec.type not in registry.names():
        yield ("type",), f"the type {spec.type} no longer exists"
    elif target is None and spec.type == "http" and not stage.raw_http:
        yield ("type",), "type http is disabled in this stage: use a named target (GET /targets lists them)"


def _of_payload(spec: JobSpec, payload: Mapping[str, Any], stage: Stage) -> list[Broken]:
    """The rules that the payload breaks for the target of the spec, or for its type."""
    if spec.target is not None:
        return resolution.of_target(stage.find_target(spec.target), payload, stage)
    return [*resolution.of_payload(spec.type, payload, stage), *resolution.of_placeholders(spec.type, payload)]


def _implied(spec: JobSpec, payload: dict[str, Any], stage: Stage) -> dict[str, Any]:
    target = None if spec.target is None else stage.find_target(spec.target)
    return resolution.implied(None if target else spec.type, target, payload) | payload


def _refused(broken: list[Broken]) -> Conflict:
    """The stage no longer takes the work of the original as it was."""
    details = [{"field": ".".join(map(str, path)), "rule": rule} for path, rule in broken]
    return Conflict(f"the job cannot be replayed as it was: {details[0]['field']}: {details[0]['rule']}", details=details)
