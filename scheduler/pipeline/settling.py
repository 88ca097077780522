"""Settle the finished jobs of a batch in few writes, at a moment at which that delays no other job."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from scheduler.model import settlement
from scheduler.model.job import Finished
from scheduler.model.lifecycle import waits
from scheduler.pipeline.batch import Batch
from scheduler.pipeline.batch_writes import BatchWrites, Write
from scheduler.storage.ports import Change, Guard

CLEAR_MS = 50  # settling also waits for a job that leaves within this time: it would be late, as the executor waits for the write ...
BEGUN_MS = 5  # ... and until its thread has surely begun ...
DEFER_MS = 500  # ... but a finished job is settled this long after its end at the latest

Leaves = Callable[[int], Iterable[int]]  # when the waiting jobs go to the pool (ms), by the present time


@dataclass(slots=True)
class Settling:
    """The jobs of one batch that have finished and are not settled yet."""

    batch: Batch
    writes: BatchWrites
    done: list[Finished] = field(default_factory=list)
    settle_at: int = 0

    def came_back(self, done: Sequence[Finished]) -> None:
        """Note the results of jobs, and report them to the gates that follow these jobs."""
        self.done += done
        self.batch.admission.ended([each for each in done if not each.result.unstarted])
        self.batch.admission.left([each.job for each in done])

    def settle(self, leaves: Leaves) -> None:
        """Settle the finished jobs in one write, once the other jobs of their instant have started and none leaves soon."""
        if not self.done or (now := self.batch.ports.clock.now()) < self.settle_at:
            return
        if (at := self._clear_at(now, leaves)) > now:
            self.settle_at = at
            return
        done, self.done = self.done, []
        self.writes.apply(self.settlements(done, now))

    def _clear_at(self, now: int, leaves: Leaves) -> int:
        """When to look again whether the finished jobs can be settled (ms); `now`: at once, also if other jobs wait for their ends."""
        leaving = [at for at in leaves(now) if abs(at - now) <= CLEAR_MS]  # some may be due, but not started yet
        if not leaving or any(self.batch.admission.concerns(each.job) for each in self.done):
            return now
        return min(max(now, *leaving) + BEGUN_MS, self.done[0].ended_at + DEFER_MS)

    def settlements(self, done: Sequence[Finished], now: int) -> list[Write]:
        """Return the writes that settle these jobs."""
        rules = self.batch.ports.rules
        after = self.writes.place_retries([settlement.returned(each, now, rules) for each in done], now)
        # The write that accepts a job may be repeated after a lost answer; it must not undo a lease that a heartbeat got in between.
        guards = [Guard.LEASE if waits(job) else Guard.FENCE for job in after]
        changes = [Change(each.job, job, guard) for each, job, guard in zip(done, after, guards, strict=True)]
        return [Write(change, done=each) for change, each in zip(changes, done, strict=True)]
