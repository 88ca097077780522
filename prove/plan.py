"""The parts of a run, their instants and their duration. Pure: the time is an argument."""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from scheduler.model import slots

MEASURED = ("cold", "cold-burst", "spread", "warm-burst", "steady")  # by their start delays, in the order in which they are due
BEHAVIOURS = ("cron", "order", "killed", "cancelled", "http")
PEERS = "peers"
PARTS = (*MEASURED, *BEHAVIOURS, PEERS)
COMPARED = ("spread", "warm-burst")  # EventBridge Scheduler gets schedules for the instants of these parts
DELAYED = "spread"  # SQS gets delayed messages for these: of a crowd, one receiver would measure itself
QUIET_S = 300  # before the cold job
SOON_S = 12  # from posting the jobs of the behaviours to their instant
SETTLING_S = 30  # for the jobs of the behaviours: forty of one key run one after the other


class Size(NamedTuple):
    """The numbers of jobs, and their times in seconds."""

    ahead_s: int  # from posting to the first instant
    spread: int = 100
    spread_s: int = 120
    burst: int = 1_000
    per_second: int = 50
    steady_s: int = 120
    keyed: int = 40  # jobs of one ordering key
    runs: int = 2  # of the cron task, one a minute
    gap_s: int = 10  # between two parts
    patience_s: int = 120  # after the end of the plan, for jobs that have not ended
    peers_s: int = 65  # from an instant until the message of its schedule must have come: Scheduler promises a minute

    def streaming(self, minutes: int) -> "Size":
        """Return the size whose streams, `spread` and `steady`, last this long."""
        return self._replace(spread=50 * minutes, spread_s=60 * minutes, steady_s=60 * minutes)


# A job that is posted this far ahead is in the slot of its own minute, so it goes through dispatch. The wait holds the quiet minutes, too.
FULL = Size(ahead_s=max(QUIET_S, (slots.HORIZON + slots.MINUTE) // 1000) + 15)
SHORT = Size(ahead_s=90, spread=10, spread_s=10, burst=20, per_second=5, steady_s=5, keyed=5, runs=1, gap_s=3)
SHORT_LOCAL = SHORT._replace(ahead_s=15, patience_s=30, peers_s=25)  # nothing of the run has to get around in AWS first


@dataclass(frozen=True)
class Part:
    """Jobs that are measured together. `instants` are UTC milliseconds, in order."""

    key: str
    title: str
    instants: Sequence[int]


@dataclass(frozen=True)
class Plan:
    """The timetable of a run. All times are UTC milliseconds."""

    size: Size
    keys: Collection[str]
    parts: Sequence[Part]  # chosen parts of `MEASURED`, in the order in which they are due
    begin: int
    behaviours_at: int  # the instant of the jobs of the behaviours
    cron_from: int

    @property
    def end(self) -> int:
        """The time at which the last job should have ended."""
        ends = [part.instants[-1] for part in self.parts]
        if set(BEHAVIOURS) & set(self.keys):
            ends.append(self.behaviours_at + SETTLING_S * 1000)
        if "cron" in self.keys:
            ends.append(self.cron_from + self.size.runs * slots.MINUTE)
        if PEERS in self.keys:
            ends += [part.instants[-1] + self.size.peers_s * 1000 for part in self.compared]
        return max(ends) + 5_000

    @property
    def jobs(self) -> int:
        """The number of jobs, with the runs of the task."""
        counts = {"cron": self.size.runs, "order": self.size.keyed, "killed": 1, "cancelled": 1, "http": 1}
        return sum(len(part.instants) for part in self.parts) + sum(count for key, count in counts.items() if key in self.keys)

    @property
    def compared(self) -> list[Part]:
        """The parts for whose instants the peers run."""
        return [part for part in self.parts if part.key in COMPARED]


def planned(now: int, size: Size, keys: Collection[str]) -> Plan:
    """Return the timetable of a run that begins now. `keys` are some of `PARTS`."""
    first = math.ceil(now / 1000) + (size.ahead_s if set(MEASURED) & set(keys) else 0)
    parts = list(_parts(first, size, keys))
    last = parts[-1].instants[-1] // 1000 if parts else math.ceil(now / 1000)
    quiet = [part.instants[-1] for part in parts if part.key.startswith("cold")]
    return Plan(size, keys, parts, now, (last + SOON_S) * 1000, max(quiet, default=now))


def _parts(at: int, size: Size, keys: Collection[str]) -> Iterator[Part]:
    """Yield the chosen parts one after the other, from the second `at` on."""
    for key in MEASURED:
        if key not in keys:
            continue
        title, offsets = _shape(key, size)
        yield Part(key, title, [at * 1000 + offset for offset in offsets])
        at += math.ceil((offsets[-1] + 1) / 1000) + size.gap_s


def _shape(key: str, size: Size) -> tuple[str, list[int]]:
    """Return the title of a part, and the offsets of its jobs in milliseconds."""
    if key == "cold":
        return "one job, cold", [0]
    if key == "spread":  # whole seconds: an EventBridge schedule can name no others
        return f"{size.spread} jobs over {size.spread_s} s", [n * size.spread_s // size.spread * 1000 for n in range(size.spread)]
    if key == "steady":
        offsets = [n * 1000 // size.per_second for n in range(size.per_second * size.steady_s)]
        return f"{size.per_second} a second for {size.steady_s} s", offsets
    return f"{size.burst:,} at one instant, {key.removesuffix('-burst')}", [0] * size.burst


def minutes(plan: Plan, *, overhead_s: int = 90) -> int:
    """Return the duration of the run in minutes, rounded up. `overhead_s`: for creating, reading and deleting things."""
    return math.ceil(((plan.end - plan.begin) / 1000 + overhead_s) / 60)
