"""Every minute: open the minutes ahead, keep a dispatcher on every open unit, reconcile, close units, and check closed units later.

The clock decides, not the event that started the tick: if a tick comes late, twice or not at all, nothing is lost, since each tick
opens every minute from the ledger's cursor on, however long ago.
"""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from scheduler.admission.lane_state import LaneStateCache, resumed_lanes
from scheduler.model import slots
from scheduler.model.errors import Unavailable
from scheduler.model.job import Cursor, DueEntry, Job, Lane, LaterCheck, Unit, UnitKey
from scheduler.pipeline import leftover
from scheduler.pipeline.lag import lag
from scheduler.pipeline.overflow import start_if_waiting
from scheduler.pipeline.reconcile import is_due, over_at, read, recheck, remaining
from scheduler.storage.ports import Ports

WATCH_MS = 55_000  # a tick runs this long at most: the next tick takes over
PASS_MS = 2_000  # pause between two passes over the open units
RESTART_MS = 5_000  # a dispatcher just started has this long to take its lease
FIRST_MINUTES = 15  # a new ledger starts this far back, or at the oldest slot the index holds

log = logging.getLogger(__name__)


@dataclass(slots=True)
class TickResult:
    """The counts of one tick, and the scheduler's lag at its end. `resting`: idle units of paused lanes, which the lag leaves out."""

    opened: int = 0
    started: int = 0
    rechecked: int = 0
    closed: int = 0
    looks: int = 0
    lag_ms: int = 0
    paused: tuple[Lane, ...] = ()
    resting: int = 0


@dataclass(slots=True)
class Tick:
    """One tick. `run` is its only entry point."""

    ports: Ports
    result: TickResult = field(default_factory=TickResult)
    _started: dict[UnitKey, int] = field(default_factory=dict)
    _sung: set[UnitKey] = field(default_factory=set)  # units whose canary this tick stored again
    _watch: LaneStateCache = field(init=False)
    _room: int = 0  # how many jobs of resumed lanes this pass may still enqueue
    _behind: dict[Lane, bool] = field(default_factory=dict)  # by resumed lane, in this pass
    _unreleased: bool = False  # this pass left jobs of resumed lanes for the next pass

    def __post_init__(self) -> None:
        self._watch = LaneStateCache(self.ports)

    def run(self) -> TickResult:
        """Do everything that is due, then watch the units that still have work, until the next tick is due."""
        until = self.ports.clock.now() + WATCH_MS
        self._open()
        self._start_intake()
        while True:
            waiting = self._pass()
            if not waiting or self.ports.clock.now() + PASS_MS > until:
                break
            self.ports.clock.sleep_until(self.ports.clock.now() + PASS_MS)
        self._look_again()
        last = lag(self.ports.ledger, self.ports.clock.now())
        self.result.lag_ms, self.result.paused, self.result.resting = last.ms, last.paused, last.resting
        return self.result

    def _open(self) -> None:
        cursor = self.ports.ledger.cursor() or self._seed()
        last = slots.minute_of(self.ports.clock.now() + slots.OPEN_AHEAD)
        shards = max(cursor.shards, self.ports.rules.shards)
        while cursor.minute <= last:
            for unit in units(cursor.minute, shards, self.ports.rules.units, self.ports.clock.now()):
                self.ports.jobs.put_canary(unit.key, unit.slots[0], slots.start_of(cursor.minute))
                self.result.opened += self.ports.ledger.open_unit(unit)
            after = Cursor(slots.following(cursor.minute), shards, cursor.epoch + 1)
            if not self.ports.ledger.advance(cursor, after):
                return  # another tick is opening the same minutes
            cursor = after

    def _start_intake(self) -> None:
        try:
            now = self.ports.clock.now()
            self.result.started += start_if_waiting(self.ports, now=now)
        except Unavailable as error:
            log.warning("could not check the overflow; the next tick does", extra={"error": str(error)})

    def _seed(self) -> Cursor:
        """Store the first cursor of an empty ledger: before all jobs in the index, and before those that it may not show yet."""
        oldest = self.ports.jobs.oldest_slot()
        start = slots.minute_of(self.ports.clock.now() - FIRST_MINUTES * slots.MINUTE)
        cursor = Cursor(min(start, slots.minute(oldest)) if oldest else start, self.ports.rules.shards)
        self.ports.ledger.advance(None, cursor)
        return self.ports.ledger.cursor() or cursor

    def _pass(self) -> bool:
        """Check every open unit once. Returns whether a unit still has jobs to publish, or jobs of a resumed lane."""
        waiting, overdue = False, 0
        self._watch.look()
        self._room, self._behind, self._unreleased = self.ports.rules.max_backlog, {}, False
        for unit in self.ports.ledger.open_units():
            if unit.handed_out_at is not None:
                self._tolerate(self._close, unit)
                continue
            waiting = True
            past = slots.start_of(unit.key.minute) + slots.MINUTE < self.ports.clock.now()
            overdue += past
            if not past or overdue <= self.ports.rules.overdue_units:
                self._tolerate(self._start, unit)
        return waiting or self._unreleased

    def _tolerate(self, step: Callable[[Unit], None], unit: Unit) -> None:
        """Run one step. A refusal stops this step only: the next pass or the next tick tries again."""
        try:
            step(unit)
        except Unavailable as error:
            log.warning("a service refuses for now", extra={"unit": unit.key, "step": step.__name__, "error": str(error)})

    def _start(self, unit: Unit) -> None:
        now = self.ports.clock.now()
        if unit.lease_until > now or now - self._started.get(unit.key, 0) < RESTART_MS:
            return
        self._started[unit.key] = now
        self.ports.functions.start_dispatch(unit.key)
        self.result.started += 1

    def _close(self, unit: Unit) -> None:
        """Close a dispatched unit once its minute is over, its slots are empty and the canary proves it; else reconcile it in time.

        While the tick does not know which lanes are paused, this waits: jobs in the slots of a dispatched unit are not urgent.
        """
        now, states = self.ports.clock.now(), self._watch.known
        if states is None or now < over_at(unit) or leftover.rests(unit, states, now + leftover.REST_AGAIN_MS):
            return
        proved = self.ports.jobs.canary_visible(
            unit.key, unit.slots[0]
        )  # checked before the slots are read: a canary seen later proves nothing about this read
        if not proved and is_due(unit, now) and unit.key not in self._sung:
            # A frozen tick may have opened the unit again after it was closed, and its canary was dropped since.
            self._sung.add(unit.key)
            self.ports.jobs.put_canary(unit.key, unit.slots[0], slots.start_of(unit.key.minute))
        resumed = resumed_lanes(states, over_at(unit) - leftover.RESUME_SLACK)
        entries = self._release(unit, resumed) if resumed else read(unit, self.ports.jobs)
        unreleased = [entry for entry in entries if entry.lane in resumed]
        self._unreleased |= bool(unreleased)
        others = [entry for entry in entries if entry.lane not in resumed]
        if self._recheck(unit, others) and not unreleased and proved:
            self._closed(unit)

    def _recheck(self, unit: Unit, entries: Sequence[DueEntry]) -> bool:
        """Reconcile the jobs left in the slots, if it is time. Returns whether none is left."""
        now, paused, due = self.ports.clock.now(), self._watch.paused, is_due(unit, self.ports.clock.now())
        if not due and any(entry.lane in paused for entry in entries):
            return False  # they cannot start while the lane is paused: do not read them in every pass
        left = remaining(entries, self.ports.jobs)
        if not left or not due:
            return not left
        self.result.rechecked += len(left)
        self._act(left, now, paused=paused)
        left = remaining(read(unit, self.ports.jobs), self.ports.jobs)
        if left and all(job.lane in paused and job.claim is None for _, job in left):
            self.ports.ledger.change_unit(unit, replace(unit, lease_until=self._watch.read_at + leftover.REST_MS))
        return not left

    def _release(self, unit: Unit, resumed: frozenset[Lane]) -> Sequence[DueEntry]:
        """Enqueue jobs that waited for lanes now resumed, in order, as long as those are not behind. Returns the entries left then.

        In one pass, all units together enqueue at most as many jobs as may wait in a lane.
        """
        entries = read(unit, self.ports.jobs)
        first = [entry for entry in entries if entry.lane in resumed and not self._is_behind(entry.lane)][: self._room]
        if not first:
            return entries
        self._room -= len(first)
        left = remaining(first, self.ports.jobs)
        self.result.rechecked += len(left)
        now, paused = self.ports.clock.now(), self._watch.paused
        self._act(left, now, paused=paused, behind=self._behind)
        return read(unit, self.ports.jobs)

    def _act(
        self, left: Sequence[tuple[str, Job]], now: int, *, paused: Collection[Lane] = (), behind: Mapping[Lane, bool] | None = None
    ) -> None:
        """See `recheck`."""
        recheck(left, self.ports, now=now, paused=paused, behind=behind)

    def _is_behind(self, lane: Lane) -> bool:
        if lane not in self._behind:
            self._behind[lane] = leftover.lane_is_behind(self.ports.lanes.backlog(lane), self.ports.rules.max_backlog)
        return self._behind[lane]

    def _closed(self, unit: Unit) -> None:
        now = self.ports.clock.now()
        if self.ports.ledger.close_unit(unit, now, LaterCheck(unit, 0, now + leftover.LOOKS[0])):
            self.ports.jobs.drop_canary(unit.key)
            self.result.closed += 1

    def _look_again(self) -> None:
        """Check closed units: a job that the index hid for longer than the canary could prove is found here."""
        for look in self.ports.ledger.looks(self.ports.clock.now()):
            now = self.ports.clock.now()
            left = remaining(read(look.unit, self.ports.jobs), self.ports.jobs)
            if left:
                log.warning("found jobs in a closed minute", extra={"minute": look.unit.key.minute, "jobs": len(left)})
                # No job stays, even if its lane is paused: a closed minute is checked only a few times.
                behind = dict.fromkeys(self._watch.paused, True)
                self._act(left, now, behind=behind)
            if look.number == 0:
                self.ports.jobs.drop_canary(look.unit.key)  # in case the tick that closed the unit died before it dropped the canary
            self.ports.ledger.replace_look(look, following(look))
            self.result.looks += 1


def following(look: LaterCheck) -> LaterCheck | None:
    """Return the check that follows this one, if there is one."""
    number = look.number + 1
    if number == len(leftover.LOOKS):
        return None
    return replace(look, number=number, at=look.at + leftover.LOOKS[number] - leftover.LOOKS[look.number])


def units(minute: str, shards: int, count: int, now: int) -> list[Unit]:
    """Return the units of a minute: its shards in `count` ranges of nearly equal size."""
    count = min(count, shards)
    bounds = [shards * part // count for part in range(count + 1)]
    return [Unit(UnitKey(minute, part), bounds[part], bounds[part + 1] - 1, opened_at=now) for part in range(count)]


def tick(ports: Ports) -> TickResult:
    """Run one tick to its end. Raises Unavailable if the ledger refuses: the next tick starts where this one stopped."""
    return Tick(ports).run()
