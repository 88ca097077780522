"""The writes of claimed jobs that do not start: a verdict cancels, skips or requeues them."""

from dataclasses import dataclass, replace

from scheduler.admission.gate import Cancel, Requeue
from scheduler.admission.overlap import Skip
from scheduler.model import lifecycle, settlement, slots
from scheduler.model.job import Job, RequeueCause
from scheduler.pipeline.batch import Batch
from scheduler.pipeline.batch_writes import Write, cancelled
from scheduler.storage.ports import Change, Guard

ROOM_AGAIN_MS = 60_000  # a job that the ledger keeps out of its waiting room, or of the overflow, is checked again after this time

Dropping = Cancel | Skip | Requeue


@dataclass(slots=True)
class Verdicts:
    """Turns the verdicts on jobs of one batch into writes."""

    batch: Batch

    def write_of(self, job: Job, verdict: Dropping) -> Write:
        """Return the write that carries out the verdict."""
        now = self.batch.ports.clock.now()
        if isinstance(verdict, Requeue) and job.cancel_requested_at is not None:
            return cancelled(job, now, self.batch.ports.rules)
        if isinstance(verdict, Requeue):
            after = self._requeued(job, verdict, now)
            if verdict.room is not None and not self.batch.process.direct.want({after.slot or ""}, now):
                verdict = replace(verdict, at=now + ROOM_AGAIN_MS)  # the end of its wait would not be noticed there
                after = self._requeued(job, verdict, now)
            if verdict.cause is RequeueCause.CROWDED:
                direct, again = self.batch.process.direct, job.requeue_cause is RequeueCause.CROWDED
                # Messages of their own would fill the executors: of the jobs that fill this one, and of one that meets such jobs each time.
                (after,) = (direct.divert if again or job.owner in self.batch.work.owners() else direct.place)([after], now)
            elif verdict.cause is RequeueCause.SHARE:
                (after,) = self.batch.process.direct.divert([after], now)
                if not slots.is_overflow(after.slot or ""):  # the ledger refused; sent directly, the job would come back at once
                    verdict = replace(verdict, at=now + ROOM_AGAIN_MS)
                    after = self._requeued(job, verdict, now)
            return Write(Change(job, after, Guard.CANCEL), verdict)
        end = lifecycle.cancel if isinstance(verdict, Cancel) else lifecycle.skip
        return Write(Change(job, end(job, now, reason=verdict.reason, retention=self.batch.ports.rules.retention)))

    def _requeued(self, job: Job, verdict: Requeue, now: int) -> Job:
        return settlement.requeue(
            job,
            verdict.cause,
            verdict.reason,
            now,
            self.batch.ports.rules,
            at=verdict.at,
            check_at=verdict.check_at,
            target=verdict.target,
            room=verdict.room,
        )
