"""Announce what became of jobs: put an event on the stage's event bus for each end of a job that has `events`, and export spans.

A collector that does not answer loses spans: it delays no event, and no span is sent again.
`docs/guides/events.md` has the schema of an event for its receivers; a test compares both.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from scheduler.model import lifecycle
from scheduler.model.change import Change
from scheduler.model.event import Event
from scheduler.model.instants import render as instant
from scheduler.model.job import Job, Status
from scheduler.notify import spans
from scheduler.notify.policy import error_of
from scheduler.storage.ports import Ports

SOURCE = "punctual"
VERSION = 1  # of the schema; only a change that breaks receivers raises it
DETAIL_TYPES: Mapping[Status, str] = {status: f"Punctual Job {status.value.title()}" for status in lifecycle.FINAL_TIMES}


@dataclass(slots=True)
class AnnounceResult:
    """The result of one batch. `refused`: the position of the first change whose event is not on the bus; None: all events are."""

    sent: int = 0
    refused: int | None = None
    spans: int = 0  # that the collector took
    dropped: int = 0  # spans that it did not take


def announce(changes: Sequence[Change], ports: Ports) -> AnnounceResult:
    """Put the events of a batch of one shard on the bus, and export its spans. The caller delivers the batch again from the first refused
    change.

    The events after that one may then be put again, under the same ids.
    """
    done = _put(changes, ports) if ports.rules.events else AnnounceResult()
    ratio = ports.rules.traced
    made = [] if ratio is None else spans.of_changes(changes[: done.refused], ratio)
    if made:
        done.spans = ports.traces.export(made, ports.clock.now())
        done.dropped = len(made) - done.spans
    return done


def _put(changes: Sequence[Change], ports: Ports) -> AnnounceResult:
    ended = [
        (place, event)
        for place, change in enumerate(changes)
        if change.after is not None and (ports.rules.all_events or change.after.spec.events)
        for event in of_change(change)
    ]
    accepted = ports.events.put([event for _, event in ended]) if ended else []
    refused = [place for (place, _), ok in zip(ended, accepted, strict=True) if not ok]
    return AnnounceResult(sent=sum(accepted), refused=min(refused, default=None))


def of_change(change: Change) -> Iterable[Event]:
    """The event of a write that ended a job; none of any other write."""
    before, after = change.before, change.after
    if after is None or lifecycle.is_open(after) or (before is not None and not lifecycle.is_open(before)):
        return ()
    return (_event(after),)


def _event(job: Job) -> Event:
    status = lifecycle.state(job)
    ended_at: int = getattr(job, lifecycle.FINAL_TIMES[status])
    origin, ordering = job.origin, job.spec.ordering
    detail = {
        "version": VERSION,
        "id": f"{job.id}.{job.redrives}",
        "owner": job.owner,
        "job_id": job.id,
        "key": None if job.own_key is None else job.own_key.key,
        "status": status.value,
        "type": job.spec.type,
        "target": job.spec.target,
        "tags": list(job.spec.tags),
        "ordering_key": None if ordering is None else ordering.key,
        "task_id": None if origin is None else origin.task,
        "task_key": job.task_key,
        "nominal_at": _written(job.nominal_at if origin is None else origin.nominal_at),
        "created_at": instant(job.created_at),
        "scheduled_at": instant(job.scheduled_at),
        "started_at": _written(job.started_at),
        "ended_at": instant(ended_at),
        "start_delay_ms": job.delay_ms,
        "attempts": job.charged,
        "max_attempts": job.spec.max_attempts,
        "redrives": job.redrives,
        "replay_of": job.replay_of,
        "error": error_of(job) if status in lifecycle.DEAD else None,
        "fingerprint": job.fingerprint,
        "reason": job.reason,
    }
    return Event(DETAIL_TYPES[status], ended_at, detail)


def _written(at: int | None) -> str | None:
    return None if at is None else instant(at)
