"""Reconcile the jobs left in the slots of a minute: enqueue again the ones that never started, take back the ones without executor."""

import logging
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from scheduler.model import lifecycle, settlement, slots
from scheduler.model.job import DueEntry, Job, Lane, Unit
from scheduler.model.lifecycle import is_open
from scheduler.pipeline import leftover
from scheduler.pipeline.enqueue import enqueue
from scheduler.pipeline.follow_up import wake
from scheduler.storage.ports import Change, Guard, Jobs, Ports, Written

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Recheck:
    """The counts of one reconciling. `left` counts the entries that still keep the slots from being empty."""

    handed_over: int = 0
    moved: int = 0
    taken_back: int = 0
    left: int = 0
    lanes: dict[Lane, bool] = field(default_factory=dict)


def read(unit: Unit, jobs: Jobs) -> list[DueEntry]:
    """Return all entries that the due index shows in the slots of a unit, in order of due time."""
    return sorted(everything(unit, jobs), key=attrgetter("due_at"))


def everything(unit: Unit, jobs: Jobs) -> list[DueEntry]:
    """Return the same entries as `read`, slot by slot."""
    entries: list[DueEntry] = []
    for slot in unit.slots:
        cursor: str | None = None
        while True:
            page, cursor = jobs.due(slot, after=cursor)
            entries += page
            if cursor is None:
                break
    return entries


def remaining(entries: Sequence[DueEntry], jobs: Jobs) -> list[tuple[str, Job]]:
    """Return slot and job of the entries whose job really is in that slot: the index may still show jobs that have left."""
    stored = jobs.get_many([entry.key for entry in entries])
    found = ((entry.slot, stored.get(entry.key)) for entry in entries)
    return [(slot, job) for slot, job in found if job is not None and job.slot == slot]


def recheck(
    left: Sequence[tuple[str, Job]], ports: Ports, *, now: int, paused: Collection[Lane] = (), behind: Mapping[Lane, bool] | None = None
) -> Recheck:
    """Decide on every job left in its slot, apply the decisions that are still valid, then enqueue jobs.

    Jobs that waited for one that has ended are enqueued, too. Jobs of a `paused` lane that have not started stay in their slots.
    `behind` maps lanes to whether they are behind, as far as the caller knows that already.
    """
    done = Recheck(lanes=dict(behind or {}))
    planned = [_plan(slot, job, done, now, paused, ports) for slot, job in left]
    changes = [(change, send) for change, send in planned if change is not None]
    held = ports.jobs.change([change for change, _ in changes])
    written = [(change.after, send) for (change, send), ok in zip(changes, held, strict=True) if ok is Written.YES]
    sends = [after for after, send in written if send and after.lane not in paused]
    done.left = len([ok for ok in held if ok is Written.REFUSED])
    done.handed_over = len(sends) - enqueue(sends, lanes=ports.lanes, now=now)
    ended = [after for after, _ in written if not is_open(after)]
    wake(ended, ports, now=now)
    _report(changes, held)
    return done


def _plan(slot: str, job: Job, done: Recheck, now: int, paused: Collection[Lane], ports: Ports) -> tuple[Change | None, bool]:
    if job.lane not in done.lanes and job.lane not in paused:
        done.lanes[job.lane] = leftover.lane_is_behind(ports.lanes.backlog(job.lane), ports.rules.max_backlog)
    behind = done.lanes.get(job.lane, True)
    decision = leftover.decide(job, slot, now, shards=ports.rules.shards, behind=behind, paused=job.lane in paused)
    if isinstance(decision, leftover.Move):
        done.moved += 1
        moved = lifecycle.move(job, slot=decision.slot, looked=decision.hand_over, due_at=decision.due_at)
        return Change.of_slot(job, moved), decision.hand_over
    if isinstance(decision, leftover.TakeBack):
        done.taken_back += 1
        after = settlement.take_back(job, now, shards=ports.rules.shards, retention=ports.rules.retention)
        send = is_open(after) and slots.place(after.due_at, now, job.shard_key, ports.rules.shards).direct
        return Change(job, after, Guard.LEASE), send
    return None, False


def _report(changes: Sequence[tuple[Change, bool]], held: Sequence[Written]) -> None:
    kinds = Counter("taken back" if change.after.fence != change.before.fence else "moved" for change, _ in changes)
    if kinds:
        log.info("reconciled jobs left in their slots", extra={"kinds": dict(kinds), "held": sum(1 for ok in held if ok is Written.YES)})


def is_due(unit: Unit, now: int) -> bool:
    """Return whether it is time to act on the jobs left in the unit's slots; before, they are only counted."""
    return now >= over_at(unit) + leftover.RECHECK_AFTER


def over_at(unit: Unit) -> int:
    """Return the instant (ms) from which on the slots of a dispatched unit, once empty, stay empty."""
    return max(unit.handed_out_at or 0, slots.start_of(unit.key.minute) + slots.MINUTE)
