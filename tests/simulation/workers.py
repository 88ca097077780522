"""Workers that report by call-back: they send heartbeats, are slow, fall silent, report twice; and the oracles of leases."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from lab.world.faults import Faults
from lab.world.hub import Hub
from scheduler.callbacks.reports import heartbeat, report
from scheduler.callbacks.tokens import AttemptKey
from scheduler.model import callback_lease, lifecycle
from scheduler.model.errors import Conflict, NotFound, Unavailable
from scheduler.model.job import Failure, FailureKind, Job, Outcome, Progress, Result
from scheduler.model.spec import CallBack
from scheduler.storage.ports import Ports

POLICIES = (CallBack(10_000, 300_000), CallBack(60_000, 600_000), CallBack(60_000, 120_000), CallBack(600_000, 1_200_000))
TAKES = (500, 3_000, 30_000, 150_000, 400_000)
RESCUED_MS = 360_000  # without faults, the job of a silent worker is found this long after the lease at the latest


@dataclass
class Workers:
    """The workers to which targets pass jobs with a call-back."""

    hub: Hub
    faults: Faults
    random: Random
    ports: Callable[[], Ports]  # as one invocation sees them
    violation: Callable[[str, str], None]
    counts: Counter[str] = field(default_factory=Counter)
    tick_off_until: int = 0  # an outage of the tick is a fault that may outlast the others
    _calm_since: int | None = None
    _promised: dict[tuple[str, int], int] = field(default_factory=dict)  # by attempt: the lease that an answer named

    def policy(self) -> CallBack | None:
        """Return the call-back policy of a new job; usually None."""
        return self.random.choice(POLICIES) if self.random.random() < 0.05 else None

    def started(self, job: Job) -> None:
        """Follow the start of a job: its target passes it to a worker, before or after it answers."""
        if job.spec.callback is not None:
            ahead = self.random.choice((1, 50, 5_000))
            self.hub.spawn(lambda: self._work(job, job.spec.callback or CallBack()), self.hub.time + ahead)

    def _work(self, job: Job, policy: CallBack) -> None:
        which, number = AttemptKey(job.key, job.fence), self.random.random()
        until = self.hub.time + self.random.choice(TAKES)
        silent_at = self.hub.time + self.random.randint(0, 200_000) if number < 0.25 else None
        obeys = self.random.random() < 0.8
        while self.hub.time < until:
            pause = policy.lease_ms * self.random.choice((1, 3, 5, 5, 9)) // 10
            self.hub.sleep_until(min(self.hub.time + pause, until))
            if silent_at is not None and self.hub.time >= silent_at:
                self.counts["worker silent"] += 1
                return
            try:
                beat = heartbeat(which, Progress(0.5), self.ports())
            except Unavailable:
                continue
            except (Conflict, NotFound):
                self.counts["worker told that it is over"] += 1
                return
            self._promised[(job.id, job.fence)] = beat.lease_until
            if beat.cancel_requested and obeys:
                self.counts["worker told of a cancel"] += 1
                break
        kinds = (FailureKind.RETRYABLE, FailureKind.PERMANENT)
        result = Result("reported") if number < 0.75 else Result(failure=Failure(self.random.choice(kinds), "no"))
        for _ in range(self.random.choice((1, 1, 2)) + 3):  # some workers repeat a report that was answered
            try:
                ports = self.ports()
                self.faults.skew()  # one draw that nobody uses: a seed gives the run that it has always given
                report(which, result, ports)
                self.counts["worker reported"] += 1
            except Unavailable:
                self.hub.sleep_until(self.hub.time + 1_000)
            except (Conflict, NotFound):
                return

    def written(self, before: Job, after: Job) -> None:
        """Check a write of the jobs table: no worker loses a promised lease, and none keeps an expired lease for long."""
        if self._calm_since is None and not self.faults.on:
            self._calm_since = max(self.hub.time, self.tick_off_until)
        if not lifecycle.waits(before):
            if lifecycle.waits(after):
                self.counts["call-back accepted"] += 1
            return
        if after.claim is not None or after.attempts[-1].outcome is not Outcome.CRASHED:
            return
        self.counts["call-back rescued"] += 1
        ended = callback_lease.ends_at(before)
        if self.hub.time < max(ended, self._promised.get((before.id, before.fence), 0)):
            self.violation("rescued_early", after.id)
        if self._calm_since is not None and ended > self._calm_since and self.hub.time > ended + RESCUED_MS:
            self.violation("rescued_late", after.id)
