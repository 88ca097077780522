"""Enqueue the jobs that may continue after a write: retries that are due soon, jobs that waited for an ended job, call-backs of groups.

A job waits for another one by the overlap rule, in a row of late runs, in the queue of its ordering key, or because it names that job.

A wake-up may be lost (its sender ends, or the lane refuses): the waiting job is then picked up from its slot.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from scheduler.admission import overlap
from scheduler.admission.gate import Requeue
from scheduler.admission.limit_gate import free
from scheduler.admission.ordering_queue import leave_queues, next_in_line
from scheduler.admission.owner_gate import BarredOwners
from scheduler.admission.target_queue import wake_queues
from scheduler.groups.ends import try_count
from scheduler.model import ids, lifecycle, misfire, settlement, slots
from scheduler.model.errors import Unavailable
from scheduler.model.job import Job, JobKey, Lane, RequeueCause, TaskKey
from scheduler.model.lifecycle import is_open
from scheduler.model.work import WorkDelivery
from scheduler.pipeline import followers, leftover
from scheduler.pipeline.direct_path import DirectPath
from scheduler.pipeline.enqueue import try_enqueue
from scheduler.storage.ports import Change, Guard, Ports, Tasks, Written

DELAYED_MS = 900_000  # SQS delays a message for this long at most
EXPIRED_MS = 2_000  # from the expiry of a job to its message: delays are whole seconds, and clocks differ
ASK_LATER_MS = 10_000  # delay of a run that was requeued because its task could not be read

log = logging.getLogger(__name__)


@dataclass(slots=True)
class FollowUps:
    """Enqueues the jobs released by what a batch just wrote. A refused one is picked up from its slot.

    `renew_if_due` is called between any two reads, which may take seconds: the executor must keep its lease.
    """

    ports: Ports
    is_paused: Callable[[Lane], bool]
    owners: BarredOwners
    renew_if_due: Callable[[], object]
    direct: DirectPath

    def send(self, written: Sequence[Job], requeues: Mapping[JobKey, Requeue]) -> None:
        """Enqueue the successors of jobs just written: retries that are due soon, and jobs that waited for an ended job.

        `requeues` has the cause for each of them that was requeued.
        """
        now = self.ports.clock.now()
        go, over, ended, backs = list[Job](), list[Job](), list[Job](), list[tuple[Job, Requeue]]()
        moved = list[Job]()  # to the waiting rooms of their owners
        for job in written:
            back = requeues.get(job.key)
            if back is not None:
                backs.append((job, back))
            if not is_open(job):
                ended.append(job)
            elif slots.is_overflow(job.slot or ""):
                over += [job] if back is None or back.at is not None else []  # a job of a paused lane keeps its slot, and waits there
            elif (back is None or back.at is not None) and slots.is_direct(job.due_at, now):
                go.append(job)
            elif back is not None and back.room is not None:
                moved.append(job)
            elif back is not None and back.cause is RequeueCause.PAUSED and not self.is_paused(job.lane):
                go.append(job)  # the lane was resumed while the job was moved to its waiting room
        go += self._left_at_once(moved, now)
        free = released(backs, self.ports, now=now)
        go += [job for job in free if job.spec.ordering is None]
        self.renew_if_due()
        ended += followers.check_again([job for job, back in backs if back.cause is RequeueCause.AFTER], self.ports)
        most = followers.FEW_OF_EXECUTORS
        skipped, steps = followers.care_for(ended, self.ports, most=most, renew_if_due=self.renew_if_due)
        followers.request(steps, self.ports)
        ended += skipped
        go += successors(ended, self.ports, now=now)
        self.renew_if_due()
        go += in_line(ended, free, self.ports, now=now)
        go += try_count(ended, self.ports, now=now)
        self._enqueue(go)
        self.direct.start_for(over)
        self._enqueue([job for job, back in backs if back.cause is RequeueCause.REFUSED], after=now + ASK_LATER_MS)
        wake_queues({back.target for _, back in backs if back.target is not None and back.wake}, self.ports)

    def _left_at_once(self, moved: Sequence[Job], now: int) -> list[Job]:
        """Return those of the jobs just moved to the waiting rooms of their owners who were enabled or deleted in the meantime.

        Of the others, those that expire soon get a message for that instant, since many runs of a task would gather there otherwise.
        """
        if not moved:
            return []
        disabled = self.owners.refresh(0).disabled
        for job in moved:
            if job.owner in disabled and job.start_by is not None and now < job.start_by <= now + DELAYED_MS:
                self._enqueue([job] if misfire.too_late(job, job.start_by) else [], after=job.start_by + EXPIRED_MS)
        return [job for job in moved if job.owner not in disabled]

    def _enqueue(self, jobs: Sequence[Job], *, after: int = 0) -> None:
        """Enqueue the jobs, each once. Those of a paused lane go, too: an executor moves them to its waiting room."""
        if not jobs:
            return
        sent = list({job.key: job for job in jobs}.values())
        try_enqueue(sent, lanes=self.ports.lanes, now=self.ports.clock.now(), after=after)


def wake(ended: Sequence[Job], ports: Ports, *, now: int) -> None:
    """Enqueue the jobs that waited for one of the ended jobs. Never raises: a job not woken only starts later, from its slot."""
    for job in ended:
        if job.attempts:  # its executor may have ended before it freed its concurrency slots
            free(job, job.fence, ports)
    skipped, _ = followers.care_for(ended, ports)
    ended = [*ended, *skipped]
    go = successors(ended, ports, now=now) + in_line(ended, (), ports, now=now) + try_count(ended, ports, now=now)
    try_enqueue(list({job.key: job for job in go}.values()), lanes=ports.lanes, now=now)


def follow(delivery: WorkDelivery, ports: Ports) -> None:
    """Carry out a step that cares for followers of an ended job. Raises Unavailable."""
    skipped = followers.follow(delivery, ports)
    now = ports.clock.now()
    try_enqueue(in_line(skipped, (), ports, now=now), lanes=ports.lanes, now=now)


def wake_line(of: Job, ports: Ports, *, now: int) -> None:
    """Enqueue the head of the ordering queue that this job is or was in. Never raises."""
    try_enqueue(in_line((), [of], ports, now=now), lanes=ports.lanes, now=now)


def send_on(written: Job, ports: Ports, *, now: int) -> None:
    """Enqueue after the write of a job: the job itself if it is due soon; if it has ended, its successors. Never raises."""
    if is_open(written):
        try_enqueue([written] if slots.is_direct(written.due_at, now) else [], lanes=ports.lanes, now=now)
    else:
        wake([written], ports, now=now)


def successors(ended: Sequence[Job], ports: Ports, *, now: int) -> list[Job]:
    """Return the jobs that waited for one of the ended jobs and need a message. Empty while a table refuses."""
    runs = [job for job in ended if job.origin is not None]
    if not runs:
        return []
    try:
        keys = {*_queued(runs, ports.tasks), *_next_in_row(runs, now)}
        found = ports.jobs.get_many(sorted(keys)) if keys else {}
    except Unavailable:
        log.warning("could not read the waiting jobs; they are picked up from their slots", extra={"jobs": len(runs)})
        return []
    return [job for job in found.values() if waits(job, now)]


def in_line(ended: Sequence[Job], free: Sequence[Job], ports: Ports, *, now: int) -> list[Job]:
    """Return the heads of the ordering queues of these jobs: some have `ended`, others (`free`) were requeued after their blocker ended.

    Only one job of a queue is enqueued, for any number of requeued ones: the others would only have to wait again.
    """
    of = [job for job in (*ended, *free) if job.spec.ordering is not None]
    if not of:
        return []
    leave_queues(ended, orders=ports.orders)
    return [job for job in next_in_line(of, ports, now) if waits(job, now)]


def released(requeued: Sequence[tuple[Job, Requeue]], ports: Ports, *, now: int) -> list[Job]:
    """Return the jobs just requeued whose blocker (the job each waits for) ended in between: no other job wakes them.

    The same is true in an ordering queue whose head was requeued for later while it waited, and missed its wake-up: the queue must be
    read. A head that has lost its executor is taken back: its own slot may be hours away. Blockers that may wait themselves are returned
    too (`Requeue.wake`).
    """
    waiting = [(job, back.blocker, back.wake) for job, back in requeued if back.blocker is not None]
    if not waiting:
        return []
    try:
        found = ports.jobs.get_many(sorted({blocker for _, blocker, _ in waiting}))
        _take_back([job for job in found.values() if job.spec.ordering is not None], ports, now)
    except Unavailable:
        return []
    free = [job for job, blocker, _ in waiting if (holds := found.get(blocker)) is None or not is_open(holds) or _sleeps(holds, job)]
    return free + [found[blocker] for _, blocker, wake in waiting if wake and blocker in found and waits(found[blocker], now)]


def _take_back(heads: Sequence[Job], ports: Ports, now: int) -> None:
    """Take those of these jobs back that have lost their executors, as reconciling does."""
    rules = ports.rules
    lost = [job for job in heads if job.claim is not None and not lifecycle.waits(job) and leftover.is_lost(job, now)]
    after = [settlement.take_back(job, now, rules) for job in lost]
    if lost:
        results = ports.jobs.change([Change(job, back, Guard.LEASE) for job, back in zip(lost, after, strict=True)])
        log.warning("the executor died", extra={"jobs": [job.id for job in lost]})
        taken = [back for back, written in zip(after, results, strict=True) if written is Written.YES and is_open(back)]
        try_enqueue([back for back in taken if slots.is_direct(back.due_at, now)], lanes=ports.lanes, now=now)


def _sleeps(first: Job, behind: Job) -> bool:
    """Return whether the head of an ordering queue is picked up from its slot later than the job behind it.

    It is not if it is in a slot that is always open: a dispatcher of the overflow sends it, or a resume wakes it.
    """
    slot = first.slot or ""
    has_time = behind.spec.ordering is not None and first.claim is None and not slots.is_always_open(slot)
    return has_time and slots.minute(slot) > slots.minute(behind.slot or "")


def _queued(runs: Sequence[Job], tasks: Tasks) -> list[JobKey]:
    """Return the keys of jobs that wait for those runs that have the run lock of their task. Any other owner of a lock wakes its own."""
    by_task = {
        TaskKey(run.owner, run.origin.task): run.id for run in runs if run.origin is not None and run.origin.overlap in overlap.WAKES
    }
    holders = tasks.holders(sorted(by_task)) if by_task else {}
    return [JobKey(key.owner, holder.waiting) for key, holder in holders.items() if holder.job == by_task[key] and holder.waiting]


def _next_in_row(runs: Sequence[Job], now: int) -> list[JobKey]:
    origins = [(run.owner, run.origin) for run in runs if run.origin is not None]
    return [
        JobKey(owner, ids.run(origin.next_at, origin.task, origin.generation))
        for owner, origin in origins
        if origin.next_at is not None and origin.next_at <= now
    ]


def waits(job: Job, now: int) -> bool:
    """Return whether the job is due and needs a message. A job under its first fence was never requeued: it has its own message.

    A job in a target queue gets one from a release step.
    """
    return is_open(job) and job.claim is None and job.fence > 1 and job.due_at <= now and not slots.is_queued(job.slot or "")
