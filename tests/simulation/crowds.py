"""Worlds with up to a million jobs: the real tick and dispatch at their real costs, and executors that are only a rate.

Whole executors take a quarter of a millisecond of Python a job. In worlds about dispatch, `CrowdWorld` replaces them: a lane takes
`rates[lane]` jobs a second from its queue, a job takes `TAKES_MS`, and then leaves the table and with it its slot. As with executors,
a message of an ended or running job is dropped, a message that comes too early is hidden until its job is due, and the jobs of a paused
lane go to its waiting room.

Oracles: jobs that are `left` at the end, and `crashed` invocations. No start is early, since the lane itself keeps to the instant. Delays
are kept for each owner. The load counters stay empty: a message of several jobs, or units by forecast, would have to be taught to this
world (`_take`, `store`).
"""

from array import array
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from operator import attrgetter
from typing import Any

from lab.world.costs import PROD
from lab.world.faults import Rates
from scheduler.model import ids, slots
from scheduler.model.job import Delivery, DueEntry, Job, JobKey, Lane, Message, Unit
from scheduler.model.rules import Rules
from scheduler.model.spec import JobSpec
from scheduler.pipeline import bundles, waiting_room
from scheduler.storage.memory.stores import MemoryJobs
from tests.simulation.stepped import CostlyWorld
from tests.simulation.world import POLL_MS, START

TAKES_MS = 500
STEP_MS = 100  # a lane takes a tenth of its rate this often
SPEC = JobSpec("log", {"takes": TAKES_MS, "fails": 0})


class Shown:
    """The entries of one slot, like `stores._Shown`, for hundreds of thousands: sorted when read, not when changed."""

    __slots__ = ("_dues", "_new", "_sorted", "_stale", "by_key")

    def __init__(self) -> None:
        self.by_key: dict[JobKey, DueEntry] = {}
        self._sorted: list[DueEntry] = []
        self._new: list[DueEntry] = []
        self._stale = 0
        self._dues: dict[Lane, dict[int, int]] = {lane: defaultdict(int) for lane in Lane}

    def show(self, entry: DueEntry) -> None:
        self.drop(entry.key)
        self.by_key[entry.key] = entry
        self._new.append(entry)
        self._dues[entry.lane][entry.due_at] += 1

    def drop(self, key: JobKey) -> None:
        entry = self.by_key.pop(key, None)
        if entry is not None:
            self._stale += 1
            dues = self._dues[entry.lane]
            dues[entry.due_at] -= 1
            if not dues[entry.due_at]:
                del dues[entry.due_at]

    def entries(self) -> list[DueEntry]:
        """Return the entries, sorted. The caller must not change the list."""
        if self._stale:
            by_key = self.by_key
            self._sorted = [entry for entry in self._sorted if by_key.get(entry.key) is entry]
            self._new = [entry for entry in self._new if by_key.get(entry.key) is entry]
            self._stale = 0
        if self._new:
            self._new.sort(key=attrgetter("due_at", "key"))
            self._sorted = [*self._sorted, *self._new]
            self._new = []
            if any((one.due_at, one.key) > (other.due_at, other.key) for one, other in pairwise(self._sorted)):
                self._sorted.sort(key=attrgetter("due_at", "key"))
        return self._sorted

    def count(self, lane: Lane, since: int, until: int) -> int:
        return sum(count for at, count in self._dues[lane].items() if since <= at <= until)


class CrowdWorld(CostlyWorld):
    """See the module. `rates` are the jobs a second of each lane."""

    def __init__(
        self,
        rates: Mapping[Lane, float],
        *,
        rules: Rules,
        memory_mb: Mapping[str, int] = PROD,
        slowness: float = 1.0,
        seed: int = 1,
    ) -> None:
        super().__init__(seed, Rates(lag_ms=300), rules=rules, memory_mb=memory_mb, slowness=slowness)
        self.jobs._index = defaultdict(Shown)  # type: ignore[arg-type]
        self.rates = rates
        self.delays: dict[str, array[int]] = defaultdict(lambda: array("q"))  # by owner, in ms
        self.starts: dict[Lane, dict[int, int]] = {lane: defaultdict(int) for lane in Lane}  # by second
        self.stored = self.ended = self.duplicates = 0
        self._working: set[JobKey] = set()
        self._saved: dict[Lane, tuple[int, float]] = dict.fromkeys(Lane, (START, 0.0))
        self._number = 0

    # load

    def store(self, owner: str, lane: Lane, instants: Sequence[int], *, created_at: int) -> None:
        """Store jobs due at these instants, created so early that each is in the slot of its own minute."""
        put, shards = self.jobs.put, self.rules.shards
        for at in instants:
            self._number += 1
            job_id = ids.new(at, self._number)
            slot = slots.place(at, created_at, job_id, shards).slot
            put(Job(owner, job_id, SPEC, at, at, created_at, slot, lane))
        self.stored += len(instants)

    def keep_ticking(self, first: int, until: int) -> None:
        for at in range(first, until, slots.MINUTE):
            self.hub.spawn(self._tick, at)

    def each(self, step_ms: int, first: int, until: int, work: Callable[[int], Any]) -> None:
        """Call `work(at)`, which may not sleep, every `step_ms`."""

        def call(at: int) -> None:
            work(at)
            if at + step_ms < until:
                self.hub.at(at + step_ms, partial(call, at + step_ms))

        self.hub.at(first, partial(call, first))

    # executors

    def _poll(self, lane: Lane) -> None:
        """Take as many messages as the lane can work on until the next poll."""
        self._polls.discard(lane)
        now = self.hub.time
        at, saved = self._saved[lane]
        rate = self.rates.get(lane, 0.0)
        room = min(saved + (now - at) * rate / 1_000, max(2 * rate * STEP_MS / 1_000, 1.0))
        state = self.ledger.watched().lanes.get(lane)
        is_paused = state is not None and state.paused_at is not None
        taken: list[JobKey] = []
        batch: list[Delivery] = []
        while room >= 1 and (batch := self.lanes.receive(lane, 1, now)):
            began = [key for item in batch for key in self._take(lane, item, now, is_paused)]
            room -= len(began)
            taken += began
        self._saved[lane] = (now, room)
        if taken:
            self.hub.at(now + TAKES_MS, partial(self._end, taken))
        if room < 1:
            self.hub.at(now + STEP_MS - POLL_MS, partial(self._wake, lane))

    def _take(self, lane: Lane, item: Delivery, now: int, is_paused: bool) -> list[JobKey]:
        """Start the jobs of one message, let them wait, or hide the message; return the jobs that started."""
        if is_paused:
            waiting_room.enter({single.key: single.fence for single in item.message.singles()}, self.plain)
            self.lanes.delete(lane, item.receipt)
            return []
        found = [(single, self.jobs.rows.get(single.key)) for single in item.message.singles()]
        last = max((job.due_at for _, job in found if job is not None), default=0)
        if far := bundles.far_jobs(item.singles(), now, self.rules.hold_ms):
            self.lanes.send([each.message for each in far], now)
            self.lanes.delete(lane, item.receipt)
            gone = {each.message.key for each in far}
            found = [(single, job) for single, job in found if single.key not in gone]
            return self._start(found, lane, now)
        if last > now:  # an executor holds them, or hides the message
            self.lanes._show(self.lanes.queues[lane][item.message_id], last)
            self.lanes.queues[lane][item.message_id].receive_count -= 1
            return []
        self.lanes.delete(lane, item.receipt)
        return self._start(found, lane, now)

    def _start(self, found: Sequence[tuple[Message, Job | None]], lane: Lane, now: int) -> list[JobKey]:
        began: list[JobKey] = []
        for single, job in found:
            if job is None or job.fence != single.fence or single.key in self._working:
                self.duplicates += job is None or single.key in self._working
                continue
            self._working.add(single.key)
            self.delays[job.owner].append(now - job.scheduled_at)
            self.starts[lane][now // 1_000] += 1
            began.append(single.key)
        return began

    def _end(self, keys: Sequence[JobKey]) -> None:
        """Delete ended jobs: their slots are free, and nobody reads their history here."""
        jobs = self.jobs
        for key in keys:
            self._working.discard(key)
            job = jobs.rows.get(key)
            if job is not None:
                jobs._there[job.slot or ""].discard(key)
                jobs._placed.pop(key, None)
                MemoryJobs._remove(jobs, job)
                self.ended += 1

    # oracles: the ones of `World` follow every write of a job in detail, which a million jobs cannot afford

    def _watch(self, before: Job | None, after: Job) -> None:
        pass

    def _closed(self, unit: Unit) -> None:
        pass

    def waits(self, owners: str) -> dict[str, float]:
        """Return the delays of the owners whose names begin so, in seconds."""
        ordered = sorted(delay for owner, delays in self.delays.items() if owner.startswith(owners) for delay in delays)
        last = len(ordered) - 1
        if not ordered:
            return {"started": 0}
        return {
            "started": len(ordered),
            "p50_s": ordered[len(ordered) // 2] / 1_000,
            "p99_s": ordered[min(len(ordered) * 99 // 100, last)] / 1_000,
            "max_s": ordered[last] / 1_000,
        }

    def result(self) -> dict[str, Any]:
        """Return the figures that every scene has."""
        assert self.costs is not None
        return {
            "slowness": round(self.costs.slowness, 3),
            "stored": self.stored,
            "ended": self.ended,
            "left": self.stored - self.ended,
            "messages_for_nothing": self.duplicates,
            "violations": dict(self.report.violations),
            "examples": self.report.examples[:3],
        } | self.costs.summary()
