"""The spans of a job, made of its writes after the fact, in the JSON of OTLP. Pure.

Ids and times come from the job alone: a write that is delivered twice makes the same spans twice, and no span is ever open in memory.
A span has ids, types and times only: no payload, no output, no error message, and of a URL the host.
https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from scheduler.model import lifecycle, trace
from scheduler.model.change import Change
from scheduler.model.job import Attempt, Job, Outcome
from scheduler.model.trace import SpanContext

SYSTEM = "punctual"
INTERNAL, CLIENT, PRODUCER, CONSUMER = 1, 3, 4, 5  # kinds of spans; 2 is a server's
KINDS = {"sqs": PRODUCER, "sns": PRODUCER, "eventbridge": PRODUCER, "log": CONSUMER}  # of attempts, by type; those of other types call
Span = dict[str, Any]
OK: Mapping[str, int] = {}
ERROR: Mapping[str, int] = {"code": 2}
Attributes = Mapping[str, str | int | None]


def of_change(change: Change, ratio: float) -> Iterator[Span]:
    """The spans that end with a write of a job. `ratio`: of the traces that begin here, how many are sampled."""
    before, after = change.before, change.after
    if after is None:
        return
    if before is None and after.origin is None:
        yield from _create(after, ratio)
    if lifecycle.next_attempt(after) > (1 if before is None else lifecycle.next_attempt(before)):
        attempt = after.attempts[-1]
        if attempt.started_at is not None:
            if _is_first(after, attempt):
                yield from _wait(after, trace.waited(after, ratio), attempt.started_at, ratio)
            yield from _attempt(after, attempt, attempt.started_at, ratio)
    if not lifecycle.is_open(after) and (before is None or lifecycle.is_open(before)) and after.delay_ms is None:
        ended_at = getattr(after, lifecycle.FINAL_TIMES[lifecycle.state(after)])
        yield from _wait(after, trace.unstarted(after, ratio), ended_at, ratio)


def document(spans: Sequence[Span], resource: Attributes) -> dict[str, Any]:
    """The request that exports spans. `resource`: further attributes of what made them."""
    made = {"attributes": _attributes({"service.name": SYSTEM} | dict(resource))}
    return {"resourceSpans": [{"resource": made, "scopeSpans": [{"scope": {"name": SYSTEM}, "spans": list(spans)}]}]}


def _create(job: Job, ratio: float) -> Iterator[Span]:
    span = trace.created(job, ratio)
    parent = None if job.trace is None else trace.stored(job.trace).span
    links = [] if job.links_to is None else [_link(trace.stored(job.links_to), "original")]
    facts = _operation("create", "create") | {"punctual.scheduled_at": _nanoseconds(job.scheduled_at)}
    yield from _span(job, span, "create", PRODUCER, job.created_at, job.created_at, parent, links, facts)


def _wait(job: Job, span: SpanContext, until: int, ratio: float) -> Iterator[Span]:
    """The wait from the scheduled time to the first start, or to the end of a job that never started."""
    create = trace.created(job, ratio)
    is_child = job.origin is None and create.trace == span.trace
    links = [] if is_child or job.origin is not None else [_link(create, "create")]
    since = min(job.scheduled_at, until)
    facts: dict[str, str | int | None] = {"punctual.start_delay_ms": job.delay_ms}
    facts["punctual.status"] = None if lifecycle.is_open(job) else str(lifecycle.state(job))
    yield from _span(job, span, "wait", INTERNAL, since, until, create.span if is_child else None, links, facts)


def _attempt(job: Job, attempt: Attempt, started_at: int, ratio: float) -> Iterator[Span]:
    span, wait = trace.of_attempt(job, attempt, ratio), trace.waited(job, ratio)
    is_child = span.trace == wait.trace
    links = [_link(trace.of_attempt(job, each, ratio), "previous attempt") for each in _before(job, attempt)[-1:]]
    if not is_child and _is_first(job, attempt):
        links.append(_link(wait, "wait"))
    facts = (
        _operation("process", "process")
        | _of_http(job)
        | {
            "punctual.attempt": lifecycle.next_attempt(job) - 1,
            "punctual.outcome": attempt.outcome.value,
            "error.type": _error(job, attempt),
        }
    )
    kind = KINDS.get(job.spec.type, CLIENT)
    status = ERROR if attempt.outcome not in (Outcome.SUCCEEDED, Outcome.CANCELLED) else OK
    parent = wait.span if is_child else None
    yield from _span(job, span, "process", kind, started_at, attempt.ended_at, parent, links, facts, status)


def _span(
    job: Job,
    span: SpanContext,
    name: str,
    kind: int,
    start: int,
    end: int,
    parent: str | None,
    links: Sequence[Span],
    facts: Attributes,
    status: Mapping[str, int] = OK,
) -> Iterator[Span]:
    """The span, if it is sampled."""
    if not span.is_sampled:
        return
    made: Span = {"traceId": span.trace, "spanId": span.span}
    if span.state:
        made["traceState"] = span.state
    if parent is not None:
        made["parentSpanId"] = parent
    made |= {"flags": 1, "name": f"{name} {_destination(job)}", "kind": kind}
    made |= {"startTimeUnixNano": _nanoseconds(start), "endTimeUnixNano": _nanoseconds(max(end, start))}
    made["attributes"] = _attributes(_of_job(job) | dict(facts))
    if links:
        made["links"] = list(links)
    if status:
        made["status"] = dict(status)
    yield made


def _link(to: SpanContext, relation: str) -> Span:
    state = {"traceState": to.state} if to.state else {}
    return {"traceId": to.trace, "spanId": to.span, **state, "attributes": _attributes({"punctual.relation": relation})}


def _before(job: Job, attempt: Attempt) -> list[Attempt]:
    """The attempts before this one that started, as far as the history goes back."""
    return [each for each in job.attempts if each.fence < attempt.fence and each.started_at is not None]


def _is_first(job: Job, attempt: Attempt) -> bool:
    """Whether the attempt was the first start of the job."""
    return attempt.started_at is not None and attempt.started_at - job.scheduled_at == job.delay_ms and not _before(job, attempt)


def _destination(job: Job) -> str:
    return job.spec.target or job.spec.type


def _operation(name: str, kind: str) -> dict[str, str | int | None]:
    return {"messaging.operation.name": name, "messaging.operation.type": kind}


def _of_job(job: Job) -> dict[str, str | int | None]:
    return {
        "messaging.system": SYSTEM,
        "messaging.destination.name": _destination(job),
        "messaging.message.id": job.id,
        "punctual.owner": job.owner,
        "punctual.type": job.spec.type,
        "punctual.task_id": None if job.origin is None else job.origin.task,
        "punctual.group_id": job.group,
        "punctual.replay_of": job.replay_of,
    }


def _of_http(job: Job) -> dict[str, str | int | None]:
    """The request of an `http` attempt that just ended, as far as the job alone has it: a named target may have the rest."""
    if job.spec.type != "http":
        return {}
    payload, response = job.spec.payload, job.response or {}
    return {
        "http.request.method": payload.get("method"),
        "server.address": _host(payload.get("url")),
        "http.response.status_code": response.get("status"),
    }


def _host(url: Any) -> str | None:
    try:
        return None if not isinstance(url, str) or "{{" in url else urlsplit(url).hostname
    except ValueError:
        return None


def _error(job: Job, attempt: Attempt) -> str | None:
    """The low-cardinality class of an error: the status of a response, else the kind of the failure."""
    if attempt.failure is None:
        return None
    status = (job.response or {}).get("status") if job.spec.type == "http" else None
    return str(status) if isinstance(status, int) and status >= 300 else attempt.failure.kind.value


def _attributes(values: Attributes) -> list[Span]:
    return [{"key": name, "value": _value(value)} for name, value in values.items() if value is not None]


def _value(value: str | int) -> Span:
    return {"stringValue": value} if isinstance(value, str) else {"intValue": str(value)}


def _nanoseconds(at: int) -> str:
    return str(at * 1_000_000)


def of_changes(changes: Iterable[Change], ratio: float) -> list[Span]:
    return [span for change in changes for span in of_change(change, ratio)]
