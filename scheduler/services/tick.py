"""Every minute: open the minutes ahead, keep a dispatcher on every open unit, recheck, close, look again later.

`now` decides, not the event that woke us: a tick that comes late, twice or not at all loses nothing, since each one
opens every minute from the ledger's cursor on, however long ago.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from scheduler import recheck as rule
from scheduler import slots
from scheduler.errors import Unavailable
from scheduler.model import Cursor, Look, Unit, UnitKey
from scheduler.ports import Clock, Dispatchers, Jobs, Lanes, Ledger
from scheduler.rules import Rules
from scheduler.services.recheck import is_due, over_at, read, recheck, remaining

WATCH_MS = 55_000  # a tick stays this long at most: the next one takes over
PASS_MS = 2_000  # pause between two looks at the open units
RESTART_MS = 5_000  # a dispatcher just started has this long to take its lease
FIRST_MINUTES = 15  # a new ledger starts this far back, or at the oldest slot the index holds

log = logging.getLogger(__name__)


@dataclass(slots=True)
class TickResult:
    """What one tick did, and the scheduler's lag as it left."""

    opened: int = 0
    started: int = 0
    rechecked: int = 0
    closed: int = 0
    looks: int = 0
    lag_ms: int = 0


@dataclass(slots=True)
class Tick:
    """One tick at work. `run` is its only entry."""

    jobs: Jobs
    ledger: Ledger
    lanes: Lanes
    dispatchers: Dispatchers
    clock: Clock
    rules: Rules
    result: TickResult = field(default_factory=TickResult)
    _started: dict[UnitKey, int] = field(default_factory=dict)

    def run(self) -> TickResult:
        """Do everything that is due, then watch the units that still have work, until the next tick is due."""
        until = self.clock.now() + WATCH_MS
        self._open()
        while True:
            waiting = self._pass()
            if not waiting or self.clock.now() + PASS_MS > until:
                break
            self.clock.sleep_until(self.clock.now() + PASS_MS)
        self._look_again()
        self.result.lag_ms = self._lag()
        return self.result

    def _open(self) -> None:
        cursor = self.ledger.cursor() or self._seed()
        last = slots.minute_of(self.clock.now() + slots.OPEN_AHEAD)
        shards = max(cursor.shards, self.rules.shards)
        while cursor.minute <= last:
            for unit in units(cursor.minute, shards, self.rules.units, self.clock.now()):
                self.jobs.put_canary(unit.key, unit.slots[0], slots.start_of(cursor.minute))
                self.result.opened += self.ledger.open_unit(unit)
            after = Cursor(slots.following(cursor.minute), shards, cursor.epoch + 1)
            if not self.ledger.advance(cursor, after):
                return  # another tick is opening the same minutes
            cursor = after

    def _seed(self) -> Cursor:
        """The first cursor, of an empty ledger: before anything the index holds, and before what it may not show yet."""
        oldest = self.jobs.oldest_slot()
        start = slots.minute_of(self.clock.now() - FIRST_MINUTES * slots.MINUTE)
        cursor = Cursor(min(start, slots.minute(oldest)) if oldest else start, self.rules.shards)
        self.ledger.advance(None, cursor)
        return self.ledger.cursor() or cursor

    def _pass(self) -> bool:
        """One look at every open unit. Whether any still has something to hand out."""
        waiting, overdue = False, 0
        for unit in self.ledger.open_units():
            if unit.handed_out_at is not None:
                self._tolerate(self._close, unit)
                continue
            waiting = True
            past = slots.start_of(unit.key.minute) + slots.MINUTE < self.clock.now()
            overdue += past
            if not past or overdue <= self.rules.overdue_units:
                self._tolerate(self._start, unit)
        return waiting

    def _tolerate(self, step: Callable[[Unit], None], unit: Unit) -> None:
        """A refusal stops this step only: the next pass or the next tick tries again."""
        try:
            step(unit)
        except Unavailable as error:
            log.warning("a service refuses for now", extra={"unit": unit.key, "step": step.__name__, "error": str(error)})

    def _start(self, unit: Unit) -> None:
        now = self.clock.now()
        if unit.lease_until > now or now - self._started.get(unit.key, 0) < RESTART_MS:
            return
        self._started[unit.key] = now
        self.dispatchers.start(unit.key)
        self.result.started += 1

    def _close(self, unit: Unit) -> None:
        """Close a handed-out unit once its minute is over, its slots are empty and the canary proves it; else recheck in time."""
        now = self.clock.now()
        if now < over_at(unit):
            return
        proved = self.jobs.canary_visible(unit.key, unit.slots[0])  # before the slots are read: it says nothing of an earlier look
        left = remaining(read(unit, self.jobs), self.jobs)
        if left and not is_due(unit, now):
            return
        if left:
            self.result.rechecked += len(left)
            recheck(left, jobs=self.jobs, lanes=self.lanes, now=now, rules=self.rules)
            left = remaining(read(unit, self.jobs), self.jobs)
        if not left and proved:
            self._closed(unit)

    def _closed(self, unit: Unit) -> None:
        now = self.clock.now()
        if self.ledger.close_unit(unit, now, Look(unit, 0, now + rule.LOOKS[0])):
            self.jobs.drop_canary(unit.key)
            self.result.closed += 1

    def _look_again(self) -> None:
        """Later looks: what an index hid for longer than the canary could prove is found here."""
        for look in self.ledger.looks(self.clock.now()):
            now = self.clock.now()
            left = remaining(read(look.unit, self.jobs), self.jobs)
            if left:
                log.warning("found in a closed minute", extra={"minute": look.unit.key.minute, "jobs": len(left)})
                recheck(left, jobs=self.jobs, lanes=self.lanes, now=now, rules=self.rules)
            if look.number == 0:
                self.jobs.drop_canary(look.unit.key)  # should the tick that closed the unit have died in between
            self.ledger.replace_look(look, following(look))
            self.result.looks += 1

    def _lag(self) -> int:
        units = self.ledger.open_units()
        return max(0, self.clock.now() - slots.start_of(units[0].key.minute) - slots.MINUTE) if units else 0


def following(look: Look) -> Look | None:
    """The look after this one, if there is any."""
    number = look.number + 1
    if number == len(rule.LOOKS):
        return None
    return replace(look, number=number, at=look.at + rule.LOOKS[number] - rule.LOOKS[look.number])


def units(minute: str, shards: int, count: int, now: int) -> list[Unit]:
    """The units of a minute: its shards in `count` ranges of nearly equal size."""
    count = min(count, shards)
    bounds = [shards * part // count for part in range(count + 1)]
    return [Unit(UnitKey(minute, part), bounds[part], bounds[part + 1] - 1, opened_at=now) for part in range(count)]


def tick(*, jobs: Jobs, ledger: Ledger, lanes: Lanes, dispatchers: Dispatchers, clock: Clock, rules: Rules) -> TickResult:
    """Run one tick to its end. Raises Unavailable if the ledger refuses: the next tick starts where this one stopped."""
    return Tick(jobs, ledger, lanes, dispatchers, clock, rules).run()
