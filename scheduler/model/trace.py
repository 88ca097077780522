"""The trace context of jobs (W3C Trace Context), and the ids of their spans. Pure.

Every id follows from the job: the executor that passes the context of an attempt on, and the function that exports the attempt's span
later, derive the same one, and nothing is stored for it. So three rules decide the trace of a span, by facts that no longer change:

- The span `create` belongs to the trace of the request, or begins one. A run of a task has none, since no request made it.
- The span `wait` belongs to that trace if the job was scheduled for at most `NEAR_MS` after its creation. Else it begins one, the job's.
- The span of an attempt belongs to the trace of `wait` if the attempt was claimed at most `NEAR_MS` after the scheduled time. Else it
  begins one: a trace that stays open for days is lost by collectors, which decide after seconds whether they keep it.
"""

import re
from hashlib import blake2b
from typing import NamedTuple

from scheduler.model.job import Attempt, Job

NEAR_MS = 300_000
PARENT, STATE = "traceparent", "tracestate"
LONGEST_STATE, MOST_MEMBERS = 512, 32  # of tracestate: the W3C's own limit of members, and the length that everyone must pass on
_PARENT = re.compile(
    r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})(?P<more>-.*)?", re.ASCII
)
_KEY = r"[a-z][a-z0-9_*/-]{0,255}|[a-z0-9][a-z0-9_*/-]{0,240}@[a-z][a-z0-9_*/-]{0,13}"
_MEMBER = re.compile(rf"(?:{_KEY})=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{{0,255}}[\x21-\x2b\x2d-\x3c\x3e-\x7e]", re.ASCII)
# Of a trace id, by which samplers decide: https://opentelemetry.io/docs/specs/otel/trace/tracestate-probability-sampling/
_RANDOM_BITS = 56


class SpanContext(NamedTuple):
    """The part of a span that others refer to."""

    trace: str
    span: str
    is_sampled: bool
    state: str = ""  # the tracestate of its trace

    @property
    def parent(self) -> str:
        """The traceparent of the span's children."""
        return f"00-{self.trace}-{self.span}-{'01' if self.is_sampled else '00'}"


class Passed(NamedTuple):
    """The context that an attempt passes on to its receiver. `steady`: for a receiver that must get the same from each attempt."""

    parent: str
    steady: str
    state: str


def parse(parent: str | None, state: str | None = None) -> str | None:
    """The context of a request as a job stores it; None if there is no valid traceparent. A tracestate that is not valid is left out."""
    found = None if parent is None else _PARENT.fullmatch(parent.strip(" \t"))
    if found is None or found["version"] == "ff" or not int(found["trace"], 16) or not int(found["span"], 16):
        return None
    if found["more"] is not None and found["version"] == "00":
        return None  # a later version may have more fields
    read = SpanContext(found["trace"], found["span"], bool(int(found["flags"], 16) & 1))
    valid = "" if state is None else _state(state)
    return f"{read.parent} {valid}" if valid else read.parent


def _state(text: str) -> str:
    """A tracestate in one spelling; empty if it is too long or not valid."""
    members = [member for each in text[: 4 * LONGEST_STATE].split(",") if (member := each.strip(" \t"))]
    written = ",".join(members)
    names = {member.partition("=")[0] for member in members}
    is_valid = len(text) <= 4 * LONGEST_STATE and len(written) <= LONGEST_STATE and len(names) == len(members) <= MOST_MEMBERS
    return written if is_valid and all(map(_MEMBER.fullmatch, members)) else ""


def is_state(text: str) -> bool:
    """Whether a tracestate is valid, and of a length that everyone must pass on."""
    return bool(_state(text)) or not text.strip(" \t,")


def stored(text: str) -> SpanContext:
    """The context that `parse` returned."""
    parent, _, state = text.partition(" ")
    _, trace, span, flags = parent.split("-")
    return SpanContext(trace, span, flags == "01", state)


def created(job: Job, ratio: float) -> SpanContext:
    """The span of the creation of a job. `ratio`: of the traces that begin here, how many are sampled."""
    if job.trace is not None:
        return stored(job.trace)._replace(span=_span(job, "create"))
    return SpanContext(_trace(job, "create"), _span(job, "create"), _is_sampled(job, ratio))


def waited(job: Job, ratio: float) -> SpanContext:
    """The span of the wait of a job from its scheduled time to its first start."""
    if job.origin is None and job.scheduled_at - job.created_at <= NEAR_MS:
        return created(job, ratio)._replace(span=_span(job, "wait"))
    return SpanContext(_trace(job, "wait"), _span(job, "wait"), _is_sampled(job, ratio))


def unstarted(job: Job, ratio: float) -> SpanContext:
    """The span of the wait of a job that ended without a start in its present life: a redrive may start it later."""
    return waited(job, ratio)._replace(span=_span(job, f"unstarted {job.redrives}"))


def attempted(job: Job, fence: int, claimed_at: int, ratio: float) -> SpanContext:
    """The span of the attempt at a job that was claimed at this instant under this fence."""
    span = _span(job, f"attempt {fence}")
    if claimed_at - job.scheduled_at <= NEAR_MS:
        return waited(job, ratio)._replace(span=span)
    return SpanContext(_trace(job, f"attempt {fence}"), span, _is_sampled(job, ratio))


def of_attempt(job: Job, attempt: Attempt, ratio: float) -> SpanContext:
    """The span of an attempt in the history of a job."""
    return attempted(job, attempt.fence, attempt.picked_at, ratio)


def last(job: Job, ratio: float) -> SpanContext:
    """The last span of an ended job, to which its replay links."""
    started = [attempt for attempt in job.attempts if attempt.started_at is not None]
    return of_attempt(job, started[-1], ratio) if started else waited(job, ratio)


def passed_on(job: Job, ratio: float | None) -> Passed | None:
    """The context that the attempt at a claimed job passes on; None: there is none. `ratio`: None if the stage exports no spans.

    Without spans of its own, the stage passes the context of the request on as it is.
    """
    if ratio is None:
        if job.trace is None:
            return None
        requested = stored(job.trace)
        return Passed(requested.parent, requested.parent, requested.state)
    span = attempted(job, job.fence, job.claim.at if job.claim is not None else job.due_at, ratio)
    return Passed(span.parent, waited(job, ratio).parent, span.state)


def _trace(job: Job, name: str) -> str:
    return blake2b(f"trace {name} {job.owner} {job.id}".encode(), digest_size=16).hexdigest()


def _span(job: Job, name: str) -> str:
    return blake2b(f"span {name} {job.owner} {job.id}".encode(), digest_size=8).hexdigest()


def _is_sampled(job: Job, ratio: float) -> bool:
    """Whether the traces that begin with this job are sampled: all of them, or none."""
    return ratio >= 1 or int(_trace(job, "wait")[-_RANDOM_BITS // 4 :], 16) < ratio * 2**_RANDOM_BITS
