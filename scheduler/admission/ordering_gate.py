"""The gate of a job with an ordering key: whether the job is at the head of its ordering queue.

It decides at the instant only, because a job with an earlier position may arrive before. Before it lets a job through, it writes
the job as the head under a condition, so two executors never let two jobs of a key through.
"""

import logging
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from scheduler.admission import ordering
from scheduler.admission.gate import UNDECIDED, Clear, Requeue, Verdict
from scheduler.admission.ordering import DecideLater, Decision, Repair, Start, Wait
from scheduler.admission.ordering_queue import HEAD, named
from scheduler.model.errors import Unavailable
from scheduler.model.job import Job, JobKey, OrderingQueue, OrderKey, QueueEntry, QueueHead, RequeueCause
from scheduler.storage.ports import Found, Ports, Written

ROUNDS = 5  # reads of queues that other executors change at the same time, or that must be cleaned up first

log = logging.getLogger(__name__)


@dataclass(slots=True)
class OrderingGate:
    """See `admission.Gate`. Of several jobs of one queue in one call, the first one is decided and the others wait behind it."""

    ports: Ports

    def concerns(self, job: Job) -> bool:
        return job.spec.ordering is not None

    def ahead(self, jobs: Sequence[Job]) -> dict[JobKey, Verdict]:
        return {}

    def decide(self, jobs: Sequence[Job]) -> dict[JobKey, Verdict]:
        """Return the verdicts on due jobs."""
        left, verdicts = _by_line(jobs), dict[JobKey, Verdict]()
        try:
            for _ in range(ROUNDS):
                if left:
                    verdicts |= self._round(left)
        except Unavailable:
            log.info("could not read ordering queues; their jobs are checked again", extra={"keys": len(left)})
        return dict.fromkeys((job.key for job in jobs), UNDECIDED) | verdicts

    def _round(self, left: dict[OrderKey, list[Job]]) -> dict[JobKey, Verdict]:
        """Decide with one read of all queues and one write of each kind. Removes the queues from `left` that need no other read now."""
        checked_at = self.ports.clock.now()
        lines = self.ports.orders.lines(sorted(left), limit=HEAD)
        known, unread = self._known(lines, left)
        decisions = {
            order: _decide(jobs, lines[order], known, checked_at) if unread.isdisjoint(named(lines[order])) else (jobs[0], DecideLater())
            for order, jobs in left.items()
        }
        self._tidy([decision for _, decision in decisions.values()])
        written = self._set_heads({order: decision for order, (_, decision) in decisions.items()}, lines)
        verdicts: dict[JobKey, Verdict] = {}
        for order, (first, decision) in decisions.items():
            if isinstance(decision, DecideLater) or (isinstance(decision, Start) and written.get(order) is Written.REFUSED):
                del left[order]  # undecided: the executor checks again, but not at once
            elif isinstance(decision, Wait) or (isinstance(decision, Start) and written.get(order, Written.YES) is Written.YES):
                verdicts |= _verdicts(first, left.pop(order), decision, lines[order], checked_at)
        return verdicts

    def _known(
        self, lines: Mapping[OrderKey, OrderingQueue], asking: Mapping[OrderKey, Sequence[Job]]
    ) -> tuple[dict[JobKey, Job], Set[JobKey]]:
        """The jobs to decide, as the executor has them, and the jobs that the queues name, read now. Then the unreadable ones of these.

        A job to decide that is already the head of its queue is read as well: an executor that was frozen may have lost it, and the
        job then runs elsewhere as that head. (If another of the jobs runs elsewhere, it became the head after this read; the write of
        a new head is conditional on the version read, and fails.)
        """
        ours = {job.key: job for jobs in asking.values() for job in jobs}
        heads = {line.head.key for line in lines.values() if line.head is not None}
        read = sorted({key for line in lines.values() for key in named(line)} - (ours.keys() - heads))
        found = self.ports.jobs.get_many(read) if read else Found[JobKey, Job]()
        return ours | found, found.unreadable.keys()

    def _tidy(self, decisions: Sequence[Decision]) -> None:
        missing = [decision.missing for decision in decisions if isinstance(decision, Repair) and decision.missing is not None]
        stale: list[QueueEntry] = [entry for decision in decisions if isinstance(decision, Start | Repair) for entry in decision.stale]
        if missing:
            log.info("ordering entries were missing and are stored again", extra={"jobs": [entry.job for entry in missing]})
            self.ports.orders.enqueue(missing)
        if stale:
            self.ports.orders.leave(stale)

    def _set_heads(self, decisions: Mapping[OrderKey, Decision], lines: Mapping[OrderKey, OrderingQueue]) -> dict[OrderKey, Written]:
        """Write the heads of these queues that have to be written, and return the result of each write."""
        changes: list[tuple[QueueHead | None, QueueHead]] = [
            (lines[order].head, decision.head)
            for order, decision in decisions.items()
            if isinstance(decision, Start) and decision.head is not None
        ]
        written = self.ports.orders.set_heads(changes) if changes else []
        return {after.order: done for (_, after), done in zip(changes, written, strict=True)}


def _by_line(jobs: Sequence[Job]) -> dict[OrderKey, list[Job]]:
    lines: dict[OrderKey, list[Job]] = {}
    for job in sorted(jobs, key=lambda job: ordering.entry_of(job).position):
        lines.setdefault(ordering.order_of(job), []).append(job)
    return lines


def _decide(jobs: Sequence[Job], line: OrderingQueue, known: Mapping[JobKey, Job], now: int) -> tuple[Job, Decision]:
    """The job that decides for all of these: a job that is already the head, else the first of them."""
    asking = {job.key for job in jobs if known[job.key].claim == job.claim}
    decisions = [(job, ordering.decide(job, line, known, now, asking=asking)) for job in jobs]
    return next((each for each in decisions if isinstance(each[1], Start) and each[1].head is None), decisions[0])


def _verdicts(first: Job, jobs: Sequence[Job], decision: Start | Wait, line: OrderingQueue, checked_at: int) -> dict[JobKey, Verdict]:
    paused = isinstance(decision, Wait) and decision.paused

    def wait(job: Job, reason: str, blocker: JobKey) -> Requeue:
        return Requeue(RequeueCause.ORDERING, reason, blocker, check_at=ordering.check_at(job, line, checked_at, paused=paused))

    if isinstance(decision, Wait) and paused:
        return {job.key: wait(job, decision.reason, decision.blocker) for job in jobs}
    verdict = Clear(checked_at) if isinstance(decision, Start) else wait(first, decision.reason, decision.blocker)
    behind: dict[JobKey, Verdict] = {job.key: wait(job, ordering.after(first.id), first.key) for job in jobs if job is not first}
    return behind | {first.key: verdict}
