"""Run a batch of deliveries: lease the messages, claim the jobs, wait for each job's instant, start it, settle it.

A few jobs that are due are claimed beside the lease: they start only once both have answered.

A message names one job or several. All jobs of a message have its lease, but are handled separately: a job that has to wait is requeued
in a message of its own. A bundle names the few jobs of a whole minute: the executor sends them on, each delayed until shortly before its
instant.

The visibility of the messages is the lease: the executor sets it before the claim and renews it while work goes on. When it cannot be
renewed, the executor starts no further job. Messages whose ids are returned stay in their queue; the caller deletes all others.

The parts: `claims` leases and claims, `waiting_jobs` reads again and starts, `settling` settles, `batch_writes` writes all changes.
`admission` decides whether a job may start that depends on other jobs, limits or breakers; `follow_up` enqueues the jobs that waited
for a job that has ended.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from scheduler.admission.after_gate import AfterGate
from scheduler.admission.breaker_gate import BreakerGate
from scheduler.admission.gate import Admission, Gate
from scheduler.admission.limit_gate import LimitGate
from scheduler.admission.ordering_gate import OrderingGate
from scheduler.admission.owner_gate import OwnerGate
from scheduler.admission.run_gate import RunGate
from scheduler.admission.share_gate import ShareGate
from scheduler.model import lifecycle
from scheduler.model.job import Delivery, Failure, FailureKind, Finished, Job, Lane, Result
from scheduler.pipeline.batch import Batch
from scheduler.pipeline.batch_writes import BatchWrites
from scheduler.pipeline.claims import Claims
from scheduler.pipeline.follow_up import FollowUps
from scheduler.pipeline.lease import Lease
from scheduler.pipeline.process import Process
from scheduler.pipeline.running_jobs import RunningJobs
from scheduler.pipeline.settling import Settling
from scheduler.pipeline.verdicts import Verdicts
from scheduler.pipeline.waiting_jobs import WaitingJobs
from scheduler.sharing.pins import LONG_MS
from scheduler.storage.ports import Pool, Ports

LONGEST_MS = 900_000  # an invocation ends after this time: Lambda's most ...
STOP_MS = 10_000  # ... and an executor stops all work this long before
LEASE_REFUSED = Failure(FailureKind.REFUSED, "the queue refused to renew the lease of its executor")
CLOCK_JUMPED = Failure(FailureKind.REFUSED, "its executor was frozen, or the clock of its executor was set")

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Execution:
    """Runs one batch: its parts act in turn. `run` is its only entry point."""

    batch: Batch
    claims: Claims
    waiting: WaitingJobs
    settling: Settling
    writes: BatchWrites
    share: ShareGate

    @classmethod
    def of(cls, batch: Batch, deliveries: Sequence[Delivery], share: ShareGate) -> "Execution":
        """Return the execution of a batch; `deliveries`: one for each job."""
        process = batch.process
        onward = FollowUps(batch.ports, process.pauses.is_paused, process.owners, batch.lease.renew_if_due, process.direct)
        writes, verdicts = BatchWrites(batch, onward), Verdicts(batch)
        settling = Settling(batch, writes)
        waiting = WaitingJobs(batch, writes, verdicts, settling)
        return cls(batch, Claims(batch, writes, verdicts, waiting, deliveries), waiting, settling, writes, share)

    def run(self) -> list[str]:
        """Run until every job of the batch is done. Returns the ids of the messages to leave in the queue."""
        if self.claims.are_due():
            self.claims.claim_at_once()
        elif not self.claims.claim_ahead():
            return sorted(self.claims.returned)
        while self._is_busy():
            if not self.batch.lease.renew_if_due():
                self._stop()
                break
            if self.waiting.jobs:
                self.waiting.read_again()
                if self.batch.lease.is_lost():
                    continue  # the read outlasted the lease: the executor stops
                self.waiting.start_due()
                if self.waiting.admit() and not self.batch.lease.is_lost():
                    self.waiting.start_due()
                if not self._is_busy():
                    break  # all jobs were dropped: there is nothing to wait for
            if back := self.batch.work.wait(self._wake()):
                self.settling.came_back(back)
            if self.batch.lease.renew_if_due() and (killed := self.batch.work.check()):
                self.settling.came_back(killed)
            self._check_long_jobs()
            self.settling.settle(self.waiting.leaves)
            self.writes.apply_again()
        return sorted(self.claims.returned)

    def _check_long_jobs(self) -> None:
        """Count the owners whose jobs keep this executor busy for long."""
        now = self.batch.ports.clock.now()
        if self.share.is_due(now) and self.batch.lease.renew_if_due():
            here = self.batch.work.owners()
            self.share.check(self.batch.work.owners(now - LONG_MS), here | self.waiting.owners())

    def _stop(self) -> None:
        """Start no further job: other executors may already have these jobs, or the invocation ends."""
        lost = self.batch.lease.is_lost()
        log.warning(
            "the executor lost the lease of its batch" if lost else "the time of the invocation is over",
            extra={"jobs": len(self.batch.lease.in_hand), "unwritten": len(self.writes.refused), "refused": self.batch.lease.was_refused},
        )
        running, waiting = self.batch.work.stop(), self.waiting.drop([each.job.key for each in self.waiting.jobs])
        if lost and self.batch.lease.was_refused:
            self._let_go(running, waiting, LEASE_REFUSED)
        elif lost and self.batch.lease.has_jumped():
            self._let_go(running, waiting, CLOCK_JUMPED)
        self.claims.returned |= {item.message_id for item in self.batch.lease.in_hand.values()}

    def _let_go(self, running: Sequence[Job], waiting: Sequence[Job], failure: Failure) -> None:
        """Write the ends of the jobs although the lease is lost: settle the finished ones and requeue the others, charging nothing.

        Only if the jobs did not cause the loss: after any other one the executor writes nothing, and its jobs have crashed. The fence
        protects a job that another executor has by now.
        """
        now = self.batch.ports.clock.now()
        # A check of work in AWS is repeated by its message, and what a start has begun there is unclear.
        began = [(job, lifecycle.started_at(job)) for job in running if not lifecycle.waits(job)]
        cut = [Finished(job, start, now, Result(failure=failure, unstarted=start > now, unclear=True)) for job, start in began]
        cut += [Finished(job, now, now, Result(failure=failure, unstarted=True)) for job in waiting]
        again = [each.again(now, self.batch.ports.rules) for each in self.writes.refused]
        self.writes.apply_once([*again, *self.settling.settlements([*self.settling.done, *cut], now)])
        self.batch.admission.left(running)

    def _is_busy(self) -> bool:
        return bool(self.waiting.jobs or self.batch.work or self.settling.done or self.writes.refused)

    def _wake(self) -> int:
        """Return when there is something to do next (ms), unless a job finishes before."""
        now, check = self.batch.ports.clock.now(), self.batch.work.next_check()
        wake = now + self.batch.lease.next_renewal()
        if check is not None and check < wake:
            wake = check
        wake = self.waiting.wake(now, wake)
        if self.writes.refused:
            wake = min(wake, self.writes.again_at)
        return min(wake, self.settling.settle_at) if self.settling.done else wake


def execute(
    lane: Lane,
    deliveries: Sequence[Delivery],
    ports: Ports,
    process: Process,
    *,
    pool: Pool,
    request_id: str,
    left_ms: int = LONGEST_MS,
) -> list[str]:
    """Run one batch. Returns the ids of the messages to leave in the queue; the others may be deleted.

    `left_ms`: the time until the invocation is ended. Work that has not been settled shortly before that is left to another executor.
    """
    breakers, limits = BreakerGate(process.circuits, ports.clock), LimitGate(process.named, ports)
    owners, share = OwnerGate(process.owners, ports), ShareGate(lane, process.pauses, ports)
    # Limits last: a start uses up a slot. The share of executors just before: it takes a place.
    gates: tuple[Gate, ...] = (owners, AfterGate(ports), OrderingGate(ports), RunGate(ports), breakers, share, limits)
    lease, work = Lease(lane, ports, left_ms - STOP_MS), RunningJobs(pool, ports)
    batch = Batch(lane, request_id, ports, process, lease, Admission(gates, (breakers, limits), lease.renew_if_due), work)
    left = Execution.of(batch, [single for item in deliveries for single in item.singles()], share).run()
    share.close()
    process.owners.refresh()
    for meter in process.meters:
        meter.report(ports.ledger, ports.clock.now(), ports.rules.deployment)
    return left
