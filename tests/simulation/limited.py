"""Named targets and keys with limits that many jobs share in a simulated world, and the oracles of their limits."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from lab.world.hub import Hub
from scheduler.admission import limits
from scheduler.model import callback_lease, lifecycle
from scheduler.model.job import Job, JobKey
from scheduler.model.named_target import NamedTarget
from scheduler.model.spec import Limit
from scheduler.storage.memory.targets import MemoryTargets

TARGETS = {
    "few": NamedTarget("few", "log", 0, 0, "ada", "ada", concurrency=3),
    "slow": NamedTarget("slow", "log", 0, 0, "ada", "ada", rate=2.0),
    "both": NamedTarget("both", "log", 0, 0, "ada", "ada", rate=5.0, concurrency=2),
    "free": NamedTarget("free", "log", 0, 0, "ada", "ada"),
}
SHARE = 0.1  # share of jobs with a named target
KEYS = {limit.key: limit for limit in (Limit("one", 1), Limit("two", 2), Limit("even", None, 60, 60_000), Limit("all", 2, 4, 1_000))}
KEY_SHARE = 0.05  # share of jobs with the limit of a key
WAITS_MS = 2_100  # a job that waits for a concurrency slot keeps its reserved start for this long
CLOCKS_MS = 1_000  # clocks differ, and a clearance may be 400 ms old
WINDOWS_MS = (1_000, 10_000, 60_000)


@dataclass
class Limited:
    """Chooses targets, and counts the running jobs of each."""

    hub: Hub
    random: Random
    of_keys: Random
    violation: Callable[[str, str], None]
    store: MemoryTargets = field(default_factory=MemoryTargets)
    targets: dict[str, NamedTarget] = field(default_factory=lambda: TARGETS)
    keys: dict[str, Limit] = field(default_factory=lambda: KEYS)
    _at_work: dict[str, dict[JobKey, int]] = field(default_factory=lambda: defaultdict(dict))  # the latest end of each running job
    _fences: dict[JobKey, int] = field(default_factory=dict)  # of its last start
    _starts: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        for target in self.targets.values():
            self.store.put(None, target)

    def choose(self) -> str | None:
        return self.random.choice(list(TARGETS)) if self.random.random() < SHARE else None

    def choose_limit(self) -> Limit | None:
        return self.of_keys.choice(list(self.keys.values())) if self.of_keys.random() < KEY_SHARE else None

    def _limiters(self, job: Job) -> dict[str, int | None]:
        """What limits the job, by name, with the number of jobs that may run at once."""
        found = {} if job.spec.target is None else {job.spec.target: self.targets[job.spec.target].concurrency}
        limit = job.spec.limit
        return found if limit is None else found | {f"{job.owner}/{limit.key}": self.keys[limit.key].concurrency}

    def started(self, job: Job) -> None:
        """Check a start. The work ends after its own duration, even if its executor or the table has not noticed that by then."""
        now = self.hub.time
        for name, most in self._limiters(job).items():
            working = self._at_work[name] = {key: until for key, until in self._at_work[name].items() if until > now}
            self._fences[job.key] = job.fence
            working[job.key] = now + min(int(job.spec.payload["takes"]), job.spec.timeout_ms)
            if most is not None and len(working) > most:
                self.violation("more_at_once", job.id)
            self._starts[name].append(now)

    def stopped(self, job: Job, ends: int) -> None:
        """Follow a cancel of work, which then ends at `ends`: its slot may be free before the table has its end.

        A cancel by an executor that lost the job does not end the work of the next one.
        """
        for name in self._limiters(job):
            working = self._at_work[name]
            if job.key in working and self._fences[job.key] == job.fence:
                working[job.key] = min(working[job.key], ends)

    def written(self, after: Job) -> None:
        """Follow a write of the jobs table: a job without a claim does not run, and one that waits for its call-back does until
        its lease ends."""
        for name in self._limiters(after):
            working = self._at_work[name]
            if after.claim is None:
                working.pop(after.key, None)
            elif lifecycle.waits(after) and after.key in working:
                working[after.key] = callback_lease.over_at(after)

    def at_work(self, target: str) -> int:
        """Return the number of running jobs of the target."""
        return sum(1 for until in self._at_work[target].values() if until > self.hub.time)

    def last_start(self, target: str) -> int:
        """Return the instant of the last start of a job of the target; 0: none has started."""
        return max(self._starts[target], default=0)

    def judge(self) -> None:
        """Check the rate of each target and key at the end of the run."""
        rates = {name: (target.rate, target.concurrency) for name, target in self.targets.items()}
        for name in set(self._starts) - set(rates):
            limit = self.keys[name.partition("/")[2]]
            rates[name] = limit.per_second, limit.concurrency
        for name, (rate, concurrency) in rates.items():
            if rate is None:
                continue
            slack = limits.LATE_MS + CLOCKS_MS + (WAITS_MS if concurrency is not None else 0)
            starts = sorted(self._starts[name])
            for window in WINDOWS_MS:
                most = rate * (window + slack) / 1_000 + 1
                first = 0
                for last, at in enumerate(starts):
                    while starts[first] <= at - window:
                        first += 1
                    if last - first + 1 > most:
                        self.violation("above_rate", f"{last - first + 1} of {name} in {window} ms up to {at}")
