"""The changes of a batch's jobs. They are applied under the fences of the jobs; refused ones are tried again while the lease lasts."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from scheduler.admission.gate import Requeue
from scheduler.admission.limit_gate import free_waiting
from scheduler.model import callback_lease, lifecycle, settlement
from scheduler.model.errors import Unavailable
from scheduler.model.job import Finished, Job, Lane
from scheduler.model.lifecycle import is_open, waits
from scheduler.model.rules import Rules
from scheduler.pipeline.batch import Batch, parts
from scheduler.pipeline.follow_up import FollowUps
from scheduler.storage.ports import Change, Guard, Written

WRITE_PAUSES_MS = (500, 1_000, 2_000, 4_000, 5_000)  # between two tries of a change that the table refuses

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Write:
    """A change of a claimed job. `requeue`: the verdict that caused it, `done`: the finished work that it settles."""

    change: Change
    requeue: Requeue | None = None
    done: Finished | None = None

    def again(self, now: int, rules: Rules) -> "Write":
        """The same change after the table refused it for a while: it must write no slot that is not safe, and no lease that has passed.

        Otherwise it stays as it is, so that the table recognizes a change that it applied without an answer.
        """
        before, after, guard = self.change
        if self.done is not None and callback_lease.is_half_over(after, now):
            after = settlement.returned(self.done, now, rules)
        return Write(Change(before, settlement.still_safe(before, after, now, rules), guard), self.requeue, self.done)


@dataclass(slots=True)
class BatchWrites:
    """Applies the changes, and enqueues what may continue after them."""

    batch: Batch
    onward: FollowUps
    refused: list[Write] = field(default_factory=list)  # changes that the table refused; tried again at `again_at`
    again_at: int = 0
    _refusals: int = 0  # in a row

    def apply(self, writes: Sequence[Write]) -> None:
        """Apply changes under their fences; then enqueue the jobs that go to a lane at once. Refused changes are tried again later."""
        if not writes:
            return
        refused: list[Write] = []
        for part in parts(writes):
            if not self.batch.lease.renew_if_due():
                self.refused += part  # without its lease the executor writes nothing
                continue
            refused += self.apply_once(part)
        self._refusals = self._refusals + 1 if refused else 0
        if refused:
            self.refused += refused
            pause = WRITE_PAUSES_MS[min(self._refusals, len(WRITE_PAUSES_MS)) - 1]
            self.again_at = self.batch.ports.clock.now() + pause
            if self._refusals == 1:
                log.warning("the table refuses to settle jobs; they are tried again", extra={"jobs": len(self.refused)})

    def apply_again(self) -> None:
        """Try the refused changes again. The lease is renewed just before: a call to a table that does not answer takes long."""
        if not self.refused or (now := self.batch.ports.clock.now()) < self.again_at or not self.batch.lease.renew():
            return
        again, self.refused = [each.again(now, self.batch.ports.rules) for each in self.refused], []
        self.apply(again)

    def apply_once(self, writes: Sequence[Write]) -> list[Write]:
        """Apply the changes once; return the refused ones."""
        try:
            written = self.batch.ports.jobs.change([each.change for each in writes])
        except Unavailable:
            return list(writes)
        applied, refused, changed, ends = list[Write](), list[Write](), list[Write](), list[Write]()
        for each, ok in zip(writes, written, strict=True):
            change = each.change
            if ok is Written.REFUSED:
                refused.append(each)
                continue
            if ok is Written.NO and change.guard is Guard.CANCEL:
                changed.append(each)
                continue
            if ok is Written.NO and change.ends and change.before.followed is None:
                ends.append(each)
                continue
            self.batch.lease.in_hand.pop(change.before.key, None)
            if ok is Written.YES:
                applied.append(each)
            elif waits(change.after):
                log.info("the worker reported before its job was accepted, or the job has changed since", extra=change.before.log_context())
            else:
                _warn(change.before)
        free_waiting([each.change for each in applied], self.batch.ports)
        requeues = {each.change.before.key: each.requeue for each in applied if each.requeue is not None}
        self.onward.send([each.change.after for each in applied], requeues)
        return refused + self._cancel_instead(changed) + self._end_followed(ends)

    def _end_followed(self, ends: Sequence[Write]) -> list[Write]:
        """Apply the ends again of jobs that have got followers since the executor read them; return the refused ones."""
        if not ends:
            return []
        try:
            stored = self.batch.ports.jobs.get_many([each.change.before.key for each in ends])
        except Unavailable:
            return list(ends)
        again = list[Write]()
        for each in ends:
            before, after, guard = each.change
            now = stored.get(before.key)
            if self.still_ours(before, now) and now is not None and now.followed is not None:
                again.append(Write(Change(now, lifecycle.followed(after, now.followed), guard), each.requeue, each.done))
            else:
                self.batch.lease.in_hand.pop(before.key, None)
                _warn(before)
        return self.apply_once(again) if again else []

    def _cancel_instead(self, requeues: Sequence[Write]) -> list[Write]:
        """End jobs for which a cancel was requested while they were being requeued; return the writes that the table refused.

        A cancel that a job took along into its slot would be noticed only when the job is claimed again.
        """
        if not requeues:
            return []
        try:
            stored = self.batch.ports.jobs.get_many([each.change.before.key for each in requeues])
        except Unavailable:
            return list(requeues)
        ours = [each for each in requeues if self.still_ours(job := each.change.before, stored.get(job.key))]
        if len(ours) < len(requeues):
            log.warning("could not requeue jobs: their fences have changed", extra={"jobs": len(requeues) - len(ours)})
        flagged = {key: job for key, job in stored.items() if job.cancel_requested_at is not None}
        cancels = [
            cancelled(flagged[key], self.batch.ports.clock.now(), self.batch.ports.rules)
            for each in ours
            if (key := each.change.before.key) in flagged
        ]
        return [each for each in ours if each.change.before.key not in flagged] + (self.apply_once(cancels) if cancels else [])

    def place_retries(self, after: Sequence[Job], now: int) -> Sequence[Job]:
        """Return the jobs; the retries among them that are beyond the direct path are moved to the overflow slots."""
        retries = [job for job in after if job.lane is Lane.RETRY and job.claim is None and is_open(job)]
        if not retries:
            return after
        moved = {job.key: job for job in self.batch.process.direct.place(retries, now)}
        return [moved.get(job.key, job) for job in after]

    def still_ours(self, ours: Job, stored: Job | None) -> bool:
        if is_same(ours, stored):
            return True
        self.batch.lease.in_hand.pop(ours.key, None)
        return False


def _warn(job: Job) -> None:
    log.warning("could not settle a job: its fence has changed", extra=job.log_context())


def cancelled(job: Job, now: int, rules: Rules) -> Write:
    """Return the end of a job that does not start, for which a cancel was requested."""
    return Write(Change(job, settlement.cancel(job, now, rules)))


def is_same(ours: Job, stored: Job | None) -> bool:
    """Whether the stored job is open, under the claim of this executor."""
    return stored is not None and is_open(stored) and stored.fence == ours.fence and stored.claim == ours.claim
