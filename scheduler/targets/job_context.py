"""The context of a run: the facts about its job and its task that its receiver gets, in the form of its target's type. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any
from urllib.parse import quote

from scheduler.model import instants, lifecycle, trace
from scheduler.model.job import Job, TaskHead

_PRINTABLE = "".join(map(chr, range(0x20, 0x7F))).replace("%", "")


@dataclass(frozen=True, slots=True)
class JobContext:
    """One attempt at a job, as its receiver sees it. It is made once for each attempt.

    Only a job has a `scheduled_at`: a notice is sent like a job, but has no context besides its id.
    """

    job_id: str
    attempt: int = 1  # from 1; retries of a failed job continue the numbers
    scheduled_at: int | None = None
    nominal_at: int | None = None  # the time by the schedule, before jitter; of a replay: that of its original; else its `scheduled_at`
    job_key: str | None = None
    group_id: str | None = None  # the group that it belongs to, or is a call-back of
    task_id: str | None = None
    task_name: str | None = None  # as read just before the start
    task_key: str | None = None
    traceparent: str | None = None  # the attempt's span, or that of the request if the stage exports no spans
    tracestate: str | None = None
    steady_parent: str | None = None  # instead of `traceparent`, for a receiver that must get the same from each attempt

    @classmethod
    def of(cls, job: Job, task: TaskHead | None, trace_ratio: float | None = None) -> "JobContext":
        """The context of the next attempt at a job. `task`: its task, if it is a run of one. `trace_ratio`: see `trace.passed_on`."""
        made = cls._without_trace(job, task)
        passed = trace.passed_on(job, trace_ratio)
        if passed is None:
            return made
        return replace(made, traceparent=passed.parent, tracestate=passed.state or None, steady_parent=passed.steady)

    @classmethod
    def _without_trace(cls, job: Job, task: TaskHead | None) -> "JobContext":
        origin = job.origin
        nominal_at = lifecycle.nominal_at(job)
        if origin is None:
            return cls(job.id, lifecycle.next_attempt(job), job.scheduled_at, nominal_at, job.spec.key, job.group)
        name = None if task is None else task.name or None
        of_task = {"task_id": origin.task, "task_name": name, "task_key": job.task_key}
        return cls(job.id, lifecycle.next_attempt(job), job.scheduled_at, nominal_at, group_id=job.group, **of_task)

    @classmethod
    def read(cls, encoded: Mapping[str, Any]) -> "JobContext":
        """Read what `encoded` returned, perhaps in another version: a field that this version does not know is ignored."""
        return cls(**{name: encoded[name] for name in _FIELDS if name in encoded})

    def encoded(self) -> dict[str, Any]:
        """The context as JSON, for another process."""
        return {name: value for name in _FIELDS if (value := getattr(self, name)) is not None}

    def facts(self) -> dict[str, str | int]:
        """Everything but the job's id, by the names in JSON. Facts that the job does not have are absent."""
        if self.scheduled_at is None or self.nominal_at is None:
            return {}
        facts: dict[str, str | int] = {"scheduled_at": instants.render(self.scheduled_at), "nominal_at": instants.render(self.nominal_at)}
        facts["attempt"] = self.attempt
        return facts | {name: value for name in _TEXTS if (value := getattr(self, name)) is not None}

    def trace(self, *, is_steady: bool = False) -> dict[str, str]:
        """The trace context by its names in the W3C's headers; empty without one. `is_steady`: the same for each attempt."""
        parent = self.steady_parent if is_steady else self.traceparent
        if parent is None:
            return {}
        return {trace.PARENT: parent} | ({} if self.tracestate is None else {trace.STATE: self.tracestate})

    def headers(self) -> dict[str, str]:
        """The facts as headers."""
        return {HEADERS[name]: as_header(str(value)) for name, value in self.facts().items()}


_FIELDS = tuple(each.name for each in fields(JobContext))
_TEXTS = ("job_key", "group_id", "task_id", "task_name", "task_key")
_NO_FACTS = ("job_id", "traceparent", "tracestate", "steady_parent")
HEADERS = {name: f"Punctual-{name.replace('_', '-').title()}" for name in _FIELDS if name not in _NO_FACTS}


def as_header(text: str) -> str:
    """The text as the value of a header: every character but printable ASCII, and every %, is percent-encoded as UTF-8."""
    return quote(text, safe=_PRINTABLE, errors="replace")


def as_url_part(text: str) -> str:
    """The text as a part of a URL's path or query: only letters, digits and any of _ . - ~ are not percent-encoded."""
    return quote(text, safe="", errors="replace")
