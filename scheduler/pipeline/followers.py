"""The end of a job that other jobs wait for: note it with each of them, skip those that must not start, and bring the others to their time.

Every call is idempotent, and writes only what is missing. The process that ends a job notes its end with a few followers at once. A step
of the work queue notes it with all of them, page by page: project requests one for each end that it sees in the stream of the jobs table.
So no end is missed.
"""

import logging
from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from scheduler.admission import after
from scheduler.model import lifecycle, slots
from scheduler.model.after import End, Kind, PredecessorKey, are_met, why_broken
from scheduler.model.errors import Unavailable
from scheduler.model.job import GroupKey, Job, JobKey
from scheduler.model.work import GROUP_PART, WorkDelivery, WorkItem, WorkKind
from scheduler.pipeline.direct_path import DirectPath
from scheduler.pipeline.enqueue import enqueue_if_due_soon
from scheduler.storage.ports import Change, Ports, Written

FEW = 10  # followers that the process that ends a job cares for: up to this number, released jobs need no fair order
FEW_OF_EXECUTORS = 25  # an executor ends a whole batch, and may release a crowd into the overflow
PAGE = 100  # followers of one step
NEAR_MS = slots.HORIZON + 2 * slots.MINUTE  # a slot that begins sooner than this is as near as a new slot can be

log = logging.getLogger(__name__)


class EndedJob(NamedTuple):
    """A job or a group that has ended, and the last of its followers that is cared for (None: none is)."""

    key: JobKey
    end: End
    cursor: str | None = None
    kind: Kind = Kind.JOB

    @property
    def work(self) -> WorkItem:
        """The step that cares for the other followers."""
        name = f"{GROUP_PART if self.kind is Kind.GROUP else ''}{self.key.id}"
        return WorkItem(WorkKind.FOLLOW, self.key.owner, name if self.cursor is None else f"{name} {self.cursor}")


def care_for(
    ended: Sequence[Job], ports: Ports, *, most: int = FEW, renew_if_due: Callable[[], object] = bool
) -> tuple[list[Job], list[WorkItem]]:
    """Care for at most `most` followers of jobs that have just ended. Returns the skipped jobs, and the steps for all other followers.

    Never raises: the step that project requests repeats it.
    """
    begun = [EndedJob(job.key, end) for job in ended if job.followed is not None and (end := after.end_of(job)) is not None]
    if not begun:
        return [], []
    try:
        skipped, left = _note(begun, ports, most, renew_if_due)
    except Unavailable:
        log.warning("could not note the ends of jobs; project requests it again", extra={"jobs": len(begun)})
        return [], []
    return skipped, [each.work for each in left]


def follow(delivery: WorkDelivery, ports: Ports) -> list[Job]:
    """Carry out one step: a page of the followers of an ended job or group, and of the jobs that are skipped with them. Returns the skipped
    jobs.

    Raises Unavailable.
    """
    name, _, cursor = delivery.item.part.partition(" ")
    kind = Kind.GROUP if name.startswith(GROUP_PART) else Kind.JOB
    key = JobKey(delivery.item.of, name.removeprefix(GROUP_PART))
    end = after.end_of(ports.jobs.get(key)) if kind is Kind.JOB else after.end_of_group(ports.groups.get(GroupKey(*key)))
    if end is None:
        return []  # it was redriven: its next end is noted
    skipped, left = _note([EndedJob(key, end, cursor or None, kind)], ports, PAGE)
    if ports.work.send([each.work for each in left]):
        raise Unavailable
    return skipped


def of_ended(before: Job | None, now: Job | None) -> WorkItem | None:
    """The step that a write of a job requires: the job has ended, or was deleted unstarted, and others wait for it."""
    known = now or before
    if known is None or known.followed is None or (before is not None and not lifecycle.is_open(before)):
        return None
    has_ended = now is None or not lifecycle.is_open(now)
    return WorkItem(WorkKind.FOLLOW, known.owner, known.id) if has_ended else None


def free(jobs: Collection[Job], ports: Ports, *, noted: Collection[JobKey] = ()) -> list[Job]:
    """Skip those of these jobs that must not start, and bring those to their time that wait for no other job. Returns the skipped ones.

    A job whose slot is near, and which has got no note in this call (`noted`), has its message. A claimed job is left to its executor.
    Raises Unavailable.
    """
    skipped, lost = _free(jobs, ports, noted)
    if not lost:
        return skipped
    stored = ports.jobs.get_many(lost)  # a job that has followers since it was read does not end without that knowledge
    return skipped + _free(stored.values(), ports, noted)[0]


def _free(jobs: Collection[Job], ports: Ports, noted: Collection[JobKey]) -> tuple[list[Job], list[JobKey]]:
    """Do it once. Returns the skipped jobs, and those that have changed since they were read. Raises Unavailable."""
    now, rules = ports.clock.now(), ports.rules
    idle = [job for job in jobs if lifecycle.is_open(job) and job.claim is None]
    ready = [job for job in idle if are_met(job.after) and _needs_message(job, noted, now)]
    direct = DirectPath(ports)
    placed = [lifecycle.move(job, slot=slots.place(job.due_at, now, job.id, rules.shards).slot) for job in ready]
    placed = direct.divert(placed, now) if len(placed) > FEW else placed
    there = [job for job, before in zip(placed, ready, strict=True) if job.slot == before.slot]
    changes = [Change.of_slot(before, job) for job, before in zip(placed, ready, strict=True) if job.slot != before.slot]
    changes += [
        Change(job, lifecycle.skip(job, now, reason=why, retention=rules.retention))
        for job in idle
        if (why := why_broken(job.after)) is not None
    ]
    results = ports.jobs.change(changes) if changes else []
    done = [change.after for change, written in zip(changes, results, strict=True) if written is Written.YES]
    released = [*there, *(job for job in done if lifecycle.is_open(job))]
    if released:
        enqueue_if_due_soon(released, now, ports)
        direct.start_for(released)
    if Written.REFUSED in results:
        raise Unavailable
    lost = [change.before.key for change, written in zip(changes, results, strict=True) if written is Written.NO]
    return [job for job in done if not lifecycle.is_open(job)], lost


def check_again(requeued: Sequence[Job], ports: Ports) -> list[Job]:
    """Free jobs that were just requeued to wait: an end that was noted while an executor had claimed them brought them to no time.

    Returns the jobs that were skipped. Never raises: they are checked again.
    """
    if not requeued:
        return []
    try:
        stored = ports.jobs.get_many([job.key for job in requeued])
        return free(stored.values(), ports, noted=stored.keys())
    except Unavailable:
        return []


def request(steps: Sequence[WorkItem], ports: Ports) -> None:
    """Request steps. Never raises: project requests the same."""
    try:
        refused = ports.work.send(steps) if steps else []
    except Unavailable:
        refused = list(steps)
    if refused:
        log.info("could not request steps for the followers of ended jobs; project does", extra={"steps": len(refused)})


def _note(
    begun: Sequence[EndedJob], ports: Ports, most: int, renew_if_due: Callable[[], object] = bool
) -> tuple[list[Job], list[EndedJob]]:
    """Note ends with at most `most` followers. Returns the jobs that were skipped, and the ended jobs with further followers."""
    left, all_skipped = deque(begun), list[Job]()
    while left and most > 0:
        renew_if_due()
        ended = left.popleft()
        keys, cursor = ports.followers.of(PredecessorKey(ended.key.owner, ended.kind, ended.key.id), after=ended.cursor, limit=most)
        most -= max(len(keys), 1)
        stored = ports.jobs.get_many(keys).values() if keys else ()
        jobs, noted = after.write_notes(stored, [note for job in stored for note in after.notes_of(job, ended.key.id, ended.end)], ports)
        skipped = free(jobs.values(), ports, noted=noted)
        all_skipped += skipped
        if cursor is not None:
            left.append(ended._replace(cursor=cursor))
        left += [EndedJob(job.key, end) for job in skipped if job.followed is not None and (end := after.end_of(job)) is not None]
    return all_skipped, list(left)


def _needs_message(job: Job, noted: Collection[JobKey], now: int) -> bool:
    slot = job.slot or ""
    if slots.is_always_open(slot) or slots.is_queued(slot):
        return False
    return job.key in noted or slots.start_of(slots.minute(slot)) > max(job.due_at, now) + NEAR_MS
