"""Reconcile the jobs left in the slots of a minute: enqueue again the ones that never started, take back the ones without executor."""

import logging
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from scheduler.admission.limit_gate import free_waiting
from scheduler.model import lifecycle, settlement, slots
from scheduler.model.job import DueEntry, Job, JobKey, Lane
from scheduler.model.lifecycle import is_open
from scheduler.pipeline import leftover
from scheduler.pipeline.enqueue import enqueue
from scheduler.pipeline.follow_up import wake
from scheduler.storage.ports import Change, Guard, Jobs, Ports, Written

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Recheck:
    """The counts of one reconciling.

    `found` counts the jobs and unreadable items that really are in the slots, `left` those of them that stay there, and `waiting` those
    that stay only because their lane is paused.
    """

    found: int = 0
    handed_over: int = 0
    moved: int = 0
    taken_back: int = 0
    set_aside: int = 0
    left: int = 0
    waiting: int = 0
    lanes: dict[Lane, bool] = field(default_factory=dict)


def remaining(entries: Sequence[DueEntry], jobs: Jobs) -> tuple[list[tuple[str, Job]], list[DueEntry]]:
    """Return slot and outline of the jobs that really are in the slots of these entries, and the entries of unreadable items.

    The index may still show jobs that have left.
    """
    stored = jobs.outlines([entry.key for entry in entries])
    found = ((entry.slot, stored.get(entry.key)) for entry in entries)
    there = [(slot, job) for slot, job in found if job is not None and job.slot == slot]
    return there, [entry for entry in entries if entry.key in stored.unreadable]


def recheck(
    entries: Sequence[DueEntry],
    ports: Ports,
    *,
    now: int,
    paused: Collection[Lane] = (),
    behind: Mapping[Lane, bool] | None = None,
) -> Recheck:
    """Reconcile the jobs of at most a few hundred entries: decide on each, write the decisions that still hold, then enqueue jobs.

    Jobs that waited for an ended job are enqueued too. Jobs of a `paused` lane that have not started stay in their slots.
    Unreadable items move to later slots; a job that cannot be decided on stays, and stops no other. `behind` maps lanes to whether they
    are behind, as far as the caller has determined it.
    """
    there, unreadable = remaining(entries, ports.jobs)
    done = Recheck(len(there) + len(unreadable), lanes=dict(behind or {}))
    decided = [(slot, job, _decide(slot, job, done, now, paused, ports)) for slot, job in there]
    moves = [_move(job, decision) for _, job, decision in decided if isinstance(decision, leftover.Move)]
    lost = {job.key: slot for slot, job, decision in decided if isinstance(decision, leftover.TakeBack)}
    taken = [_take_back(job, now, ports) for job in _still_lost(lost, done, now, paused, ports)]
    planned = moves + taken
    results = ports.jobs.change([change for change, _ in planned])
    written = [(change.after, send) for (change, send), ok in zip(planned, results, strict=True) if ok is Written.YES]
    sends = [after for after, send in written if send]
    done.moved, done.taken_back = len(moves), len(taken)
    done.waiting = sum(1 for _, _, decision in decided if isinstance(decision, leftover.Stay))
    done.left = len(there) - len(planned) + results.count(Written.REFUSED) + _set_aside(unreadable, done, now, ports)
    done.handed_over = len(sends) - enqueue(sends, lanes=ports.lanes, now=now)
    free_waiting([change for (change, _), ok in zip(planned, results, strict=True) if ok is Written.YES], ports)
    ended = [after for after, _ in written if not is_open(after)]
    wake(ended, ports, now=now)
    _report([change for change, _ in planned], results)
    return done


def _set_aside(unreadable: Sequence[DueEntry], done: Recheck, now: int, ports: Ports) -> int:
    """Move unreadable items to slots in which they are checked again: an update may read them. Returns the number of refused items."""
    if not unreadable:
        return 0
    at = now + leftover.UNREADABLE_AGAIN_MS
    moves = [(each.key, each.slot, slots.place(at, now, each.key.id, ports.rules.shards).slot) for each in unreadable]
    answers = ports.jobs.set_aside(moves)
    done.set_aside = answers.count(Written.YES)
    log.error("set aside items that this version cannot read", extra={"items": len(moves), "first": moves[0][0]})
    return answers.count(Written.REFUSED)


def _decide(slot: str, job: Job, done: Recheck, now: int, paused: Collection[Lane], ports: Ports) -> leftover.Decision | None:
    """Decide on a job; None: an error of this job alone prevents that."""
    if job.lane not in done.lanes and job.lane not in paused:
        done.lanes[job.lane] = leftover.lane_is_behind(ports.lanes.backlog(job.lane), job.lane, ports.rules)
    behind = done.lanes.get(job.lane, True)
    try:
        return leftover.decide(job, slot, now, ports.rules, behind=behind, paused=job.lane in paused)
    except Exception:
        log.exception("could not decide on a job; it stays in its slot", extra=job.log_context())
        return None


def _move(job: Job, decision: leftover.Move) -> tuple[Change, bool]:
    """Return the change, and whether to enqueue the job afterwards."""
    moved = lifecycle.move(job, slot=decision.slot, reconciled=decision.hand_over, due_at=decision.due_at)
    return Change.of_slot(job, moved), decision.hand_over


def _still_lost(lost: Mapping[JobKey, str], done: Recheck, now: int, paused: Collection[Lane], ports: Ports) -> list[Job]:
    """Return the jobs, which have lost their executors by their outlines, read whole: an outline lacks the attempts.

    A job that has changed in between is omitted: another executor may have it.
    """
    whole = ports.jobs.get_many(list(lost)) if lost else {}
    return [job for key, job in whole.items() if isinstance(_decide(lost[key], job, done, now, paused, ports), leftover.TakeBack)]


def _take_back(job: Job, now: int, ports: Ports) -> tuple[Change, bool]:
    """Return the change, and whether to enqueue the job afterwards."""
    after = settlement.take_back(job, now, ports.rules)
    return Change(job, after, Guard.LEASE), is_open(after) and slots.is_direct(after.due_at, now)


def _report(changes: Sequence[Change], results: Sequence[Written]) -> None:
    kinds = Counter("taken back" if change.after.fence != change.before.fence else "moved" for change in changes)
    if kinds:
        log.info("reconciled jobs left in their slots", extra={"kinds": dict(kinds), "held": list(results).count(Written.YES)})
