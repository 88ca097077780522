"""`python -m tests.simulation.fairness`: a flood of one user beside a few jobs of two others, with and without fair shares.

One lane runs 100 jobs a second (10 executors, batches of 10, jobs of a second). Anton posts 5,000 jobs, Berta (weight 1) and Carla
(weight 3) post 100 each, all for the same instant. With `now`, all jobs are due at once, and Berta's and Carla's follow Anton's.
"""

import argparse
import logging
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lab.world.faults import Rates
from scheduler.model import ids, slots
from scheduler.model.errors import Unavailable
from scheduler.model.job import Job, Lane, Message
from scheduler.model.rules import Rules
from scheduler.model.spec import JobSpec
from scheduler.pipeline.direct_path import DirectPath
from scheduler.pipeline.submit import Accepted, NewJob, Submission, submit_all
from tests.simulation.world import START, World

EXECUTORS, BATCH, TAKES_MS = 10, 10, 1_000
WEIGHTS = {"anton": 1.0, "berta": 1.0, "carla": 3.0}
FLOOD = {"anton": 5_000, "berta": 100, "carla": 100}
AT = START + 10 * slots.MINUTE
CALL = 1_000  # jobs of one call


@dataclass
class Seen:
    """The releases and starts of a run, in order: user and time of each release; user, time and delay of each start."""

    released: list[tuple[str, int]] = field(default_factory=list)
    starts: list[tuple[str, int, int]] = field(default_factory=list)
    violations: Counter[str] = field(default_factory=Counter)

    def waits(self, user: str) -> list[int]:
        return [wait for who, _, wait in self.starts if who == user]

    def released_while_all_wait(self) -> Counter[str]:
        """Return the releases per user while all users have waiting jobs: from the latest first release to the earliest last one."""
        first, last = _places([who for who, _ in self.released])
        if last.keys() != {who for who, _, _ in self.starts}:
            return Counter()  # all jobs of a user took the direct path
        return Counter(who for who, _ in self.released[max(first.values()) : min(last.values()) + 1])

    def started_while_all_wait(self) -> Counter[str]:
        """Return the starts per user in that time. Jobs released in it that start later are in the lane: about a second's work."""
        _, last = _places([who for who, _ in self.released])
        until = self.released[min(last.values())][1]
        return Counter(who for who, at, _ in self.starts if at <= until)

    def started_until_one_is_through(self) -> Counter[str]:
        """Return the starts per user until the first user's last start."""
        _, last = _places([who for who, _, _ in self.starts])
        return Counter(who for who, _, _ in self.starts[: min(last.values()) + 1])

    @property
    def rate(self) -> float:
        """Return the starts a second of the whole run."""
        return len(self.starts) * 1000 / (max(wait for _, _, wait in self.starts) + TAKES_MS)


class Flood(World):
    """A world without faults that contains only the jobs of these users."""

    def __init__(self, jobs: Mapping[str, int], *, fair: bool, units: int = 1, now: bool = False, seed: int = 1) -> None:
        windows = {Lane.ONE_TIME: EXECUTORS * BATCH} if fair else {}
        burst = Rules().direct_burst if fair else sum(jobs.values())
        rules = Rules(
            shards=4, units=units, steps=1_000, windows=windows, direct_burst=burst, ready_executors=sum(jobs.values())
        )  # no packs: an executor has ten jobs
        super().__init__(seed, Rates(lag_ms=300), rules=rules, concurrency=EXECUTORS)
        self.seen = Seen()
        self._note_releases()
        for user, weight in WEIGHTS.items():
            self.users.set_weight(user, weight)
        self.processes = [DirectPath(self.plain)]
        for place, (user, count) in enumerate(jobs.items()):
            # Jobs for now arrive while the flood is worked off: those of the others half a second after it.
            at = AT + (500 if place else 0) if now else START + slots.MINUTE
            for first in range(0, count, CALL):
                self._plan_call(user, min(CALL, count - first), at, None if now else AT)

    def flood(self, minutes: int = 30) -> Seen:
        self._schedule(self._tick, START + minutes * slots.MINUTE)
        self.hub.run(START + minutes * slots.MINUTE)
        self._judge()
        self.seen.violations = self.report.violations
        return self.seen

    def _plan_call(self, user: str, count: int, at: int, execute_at: int | None) -> None:
        requests = [NewJob(user, JobSpec("log", {"takes": TAKES_MS, "fails": 0}), execute_at)] * count
        self.hub.spawn(lambda: self._call(requests), at)

    def _call(self, requests: list[NewJob]) -> None:
        asked = [Submission(request, self.random.getrandbits(ids.RANDOM_BITS)) for request in requests]
        try:
            made = submit_all(asked, self._ports(), direct=self._direct())
        except Unavailable:
            raise AssertionError("this world has no faults") from None
        for done in made:
            assert isinstance(done, Accepted)
            self._accepted.add(done.job.key)

    def _started(self, job: Job, now: int) -> None:
        super()._started(job, now)
        self.seen.starts.append((job.owner, now, now - job.due_at))

    def _note_releases(self) -> None:
        publish = self.lanes.publish

        def noted(messages: Sequence[Message]) -> list[Message]:
            self.seen.released += [(single.key.owner, self.hub.time) for message in messages for single in message.singles()]
            return publish(messages)

        self.lanes.publish = noted  # type: ignore[method-assign]


def _places(users: Sequence[str]) -> tuple[dict[str, int], dict[str, int]]:
    """Return the first and the last position of each user."""
    first: dict[str, int] = {}
    for place, user in enumerate(users):
        first.setdefault(user, place)
    return first, {user: place for place, user in enumerate(users)}


def bound(user: str, count: int) -> int:
    """Return the longest wait of `count` jobs of a user according to `fairness`. It includes a second for the jobs already in the lane,
    half a second until the next check, and one and a half until the rate of the lane is known."""
    total, others = sum(WEIGHTS.values()), len(WEIGHTS) - 1
    return round((count * total / WEIGHTS[user] + others) * 1000 / (EXECUTORS * BATCH * 1000 / TAKES_MS)) + 3_000


LONG = {"anton": 5_000, "berta": 600, "carla": 1_800}  # long enough to see shares
SCENES: dict[str, tuple[dict[str, int], dict[str, Any]]] = {
    "same instant": (FLOOD, {}),
    "two dispatchers": (FLOOD, {"units": 2}),
    "at once": (FLOOD, {"now": True}),
    "longer": (LONG, {}),
    "longer, two": (LONG, {"units": 2}),
    "longer, at once": (LONG, {"now": True}),
    "only Anton": ({"anton": 5_000}, {}),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.fairness", description=(__doc__ or "").partition(":")[2].strip())
    parser.parse_args()
    logging.disable(logging.CRITICAL)
    heads = f"{'released while all wait':>24s} {'started until one is through':>29s} {'longest wait, s: A':>20s} {'B':>6s} {'C':>6s}"
    print(f"{'':16s} {'order':8s} {heads} {'starts/s':>9s}")
    for name, (jobs, options) in SCENES.items():
        for fair in (False, True):
            _print(name, fair, Flood(jobs, fair=fair, **options).flood())
    return 0


def _print(name: str, fair: bool, seen: Seen) -> None:
    released, started = (_told(shares) for shares in (seen.released_while_all_wait(), seen.started_until_one_is_through()))
    waits = {user: f"{max(seen.waits(user), default=0) / 1000:.1f}" if seen.waits(user) else "" for user in WEIGHTS}
    longest = f"{waits['anton']:>20s} {waits['berta']:>6s} {waits['carla']:>6s}"
    print(f"{name:16s} {'fair' if fair else 'arrival':8s} {released:>24s} {started:>29s} {longest} {seen.rate:9.1f}")
    if seen.violations:
        print("    violations", dict(seen.violations))


def _told(shares: Counter[str]) -> str:
    return " : ".join(str(shares[user]) for user in WEIGHTS) if shares else "none waits"


if __name__ == "__main__":
    sys.exit(main())
