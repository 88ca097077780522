"""Oracles for worlds without faults: a job that is late although its lane was free, and jobs that circle.

    late_though_free    a job started `LATE_MS` or more after its time, and its lane refused no poll for lack of executors meanwhile
    churn               a job was claimed more often than its attempts and its waits explain

Only a world without faults can be judged for lateness: there, nothing but a busy lane, a pause, or a rule for the job (order, overlap, a
limit) excuses it. `Churn` counts claims, reads and messages for each job that ended: figures to compare engines with.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from lab.world.faults import CALM, Rates
from lab.world.layers import Layer
from scheduler.model import lifecycle, slots
from scheduler.model.job import Job, JobKey, Lane
from scheduler.model.rules import Rules
from tests.simulation.stepped import SteppedWorld

LATE_MS = 1_000
CROWD_MS = 5_000  # ... and a job that waits for others this much later: several that are freed together go through the overflow
FULL_MS = 5_000  # a lane that was full this long before the job's time may still work on what had waited
CLAIMS_EACH = 3  # claims that an attempt may take: itself, one that was lost, one that was requeued
CLAIMS_A_MINUTE = 30  # ... and for each minute that the job was due: a job that waits for a rule is claimed every few seconds


class Counted(Layer):
    """A port that counts the jobs, messages and entries of its calls. `claimed` receives the keys of each claim."""

    SIZES = ("get_many", "glance", "claim", "change", "put_many", "publish", "send")

    def __init__(self, name: str, port: Any, counts: Counter[str], claimed: Callable[[Sequence[JobKey]], None]) -> None:
        super().__init__(port)
        self._name, self._counts, self._claimed = name, counts, claimed

    def around(self, name: str, effect: Callable[..., Any]) -> Callable[..., Any]:
        counts, label = self._counts, f"{self._name}.{name}"

        def call(*args: Any, **kwargs: Any) -> Any:
            counts[label] += len(args[0]) if name in self.SIZES else 1
            if name == "claim":
                self._claimed([request.key for request in args[0]])
            answer = effect(*args, **kwargs)
            if name == "due":
                counts["entries"] += len(answer[0])
            return answer

        return call


class WatchedWorld(SteppedWorld):
    """A world with these oracles."""

    late_ms = LATE_MS

    def __init__(self, seed: int, rates: Rates = CALM, *, rules: Rules | None = None, concurrency: int = 50) -> None:
        self.counts: Counter[str] = Counter()
        self.claims: Counter[JobKey] = Counter()
        self._full_at: dict[Lane, int] = defaultdict(int)
        super().__init__(seed, rates, rules=rules or Rules(shards=2), concurrency=concurrency)

    def _wrap(self, name: str, port: Any) -> Any:
        port = super()._wrap(name, port)
        return Counted(name, port, self.counts, self.claims.update) if name in ("jobs", "lanes") else port

    def _poll(self, lane: Lane) -> None:
        super()._poll(lane)
        if lane in self._full:
            self._full_at[lane] = self.hub.time

    def _started(self, job: Job, now: int) -> None:
        super()._started(job, now)
        spec = job.spec
        plain = not job.attempts and job.origin is None and spec.ordering is None and spec.target is None and spec.limit is None
        since = max(job.due_at, job.created_at, self.successors.free_since(job))
        free = job.lane not in self._full and self._full_at[job.lane] < since - FULL_MS
        if plain and free and now - since >= self.late_ms + (CROWD_MS if job.after else 0):
            self._violation("late_though_free", f"{job.id} by {now - since} ms")

    def _judge(self) -> Any:
        report = super()._judge()
        for key, claims in self.claims.items():
            job = self.jobs.rows.get(key)
            if job is not None and claims > CLAIMS_EACH * (len(job.attempts) + job.crashes + 1) + self._minutes(job) * CLAIMS_A_MINUTE:
                self._violation("churn", f"{key.id} claimed {claims} times")
        return report

    def _minutes(self, job: Job) -> float:
        """Return for how long the job was due and had not ended."""
        ended = (job.completed_at, job.failed_at, job.killed_at, job.cancelled_at, job.skipped_at)
        end = max((at for at in ended if at is not None), default=self.hub.time)
        return max(end - job.scheduled_at, 0) / slots.MINUTE

    def churn(self) -> dict[str, float]:
        """Return what a job that ended took on average."""
        ended = max(sum(1 for job in self.jobs.rows.values() if not lifecycle.is_open(job)), 1)
        counts = self.counts
        return {
            "claims": round(counts["jobs.claim"] / ended, 3),
            "reads": round((counts["jobs.get"] + counts["jobs.get_many"] + counts["jobs.glance"]) / ended, 3),
            "entries": round(counts["entries"] / ended, 3),
            "changes": round(counts["jobs.change"] / ended, 3),
            "messages": round((counts["lanes.publish"] + counts["lanes.send"]) / ended, 3),
        }
