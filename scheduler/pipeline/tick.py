"""Every minute: open the minutes ahead and send their work, send unfinished work again, publish the lag.

The clock decides, not the event that started the tick: if a tick is late, repeated or missing, nothing is lost, since each tick
opens every minute from the ledger's cursor on, however long ago. A tick reads no slot and no job; it starts no function and waits
for none. A failure stops one part of it only.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from scheduler.admission.lane_state import pause
from scheduler.model import slots
from scheduler.model.job import Cursor, Lane, LaneState, Unit, UnitKey
from scheduler.model.work import WorkItem, WorkKind
from scheduler.pipeline import leftover
from scheduler.pipeline.lag import FIRST_MINUTES, lag, plan_lag
from scheduler.pipeline.overflow_units import open_unit, units_of
from scheduler.pipeline.step_sharing import awaits_step, is_overdue
from scheduler.pipeline.unit_lease import woken
from scheduler.storage.ports import Ports

READY_MS = 15_000  # the first step of a unit is due this long before its minute
LOST_MS = 30_000  # work that is not begun this long after it was due is sent again: its message is lost
REQUEST_LOST_MS = 2_000  # the same for the overflow: the process that wanted it may have ended
FAR_MS = 600_000  # no step of a unit whose jobs are not published is planned this far ahead: a clock was wrong

log = logging.getLogger(__name__)


@dataclass(slots=True)
class TickResult:
    """The counts of one tick, and the lags at its end. `resting`: units that wait for paused lanes; the lag leaves them out."""

    opened: int = 0
    sent: int = 0
    failed: int = 0  # parts of the tick that failed; the next tick tries them again
    lag_ms: int = 0
    plan_lag_ms: int = 0
    paused: tuple[Lane, ...] = ()
    resting: int = 0


@dataclass(slots=True)
class Tick:
    """One tick. `run` is its only entry point."""

    ports: Ports
    now: int
    result: TickResult = field(default_factory=TickResult)

    def run(self) -> TickResult:
        """Carry out every part; one that fails does not stop the others. Raises Unavailable if the lag cannot be read."""
        for part in (self._check_restored, self._open, self._drive, self._drive_overflow, self._drive_operations, self._check):
            self._tolerate(part)
        last = lag(self.ports.ledger, self.ports.clock.now())
        self.result.plan_lag_ms = plan_lag(self.ports.ledger, self.ports.clock.now())
        self.result.lag_ms, self.result.paused, self.result.resting = last.ms, last.paused, last.resting
        return self.result

    def _tolerate(self, part: Callable[[], None]) -> None:
        try:
            part()
        except Exception as error:
            self.result.failed += 1
            log.warning("a part of the tick failed; the next tick tries it again", extra={"part": part.__name__, "error": repr(error)})

    def _send(self, items: Sequence[WorkItem], delay_ms: int = 0) -> bool:
        """Return whether the queue took all items."""
        refused = self.ports.work.send(items, delay_ms=delay_ms) if items else []
        self.result.sent += len(items) - len(refused)
        return not refused

    def _check_restored(self) -> None:
        """Pause all lanes if the jobs table was restored from a backup: jobs in it that have run would run again.

        Each tick marks the jobs table, then the ledger, with the next number, and no mark goes back, even if a tick is late. So only a
        restored jobs table has a lower mark than the ledger, whatever the clocks of the ticks say.
        """
        marked, mark = self.ports.ledger.mark(), self.ports.jobs.mark()
        if 0 < mark < marked:
            log.error("the jobs table was restored: all lanes are paused", extra={"mark": mark, "expected": marked})
            back = f"to its state of about {marked - mark:,} minutes before"
            pause(tuple(Lane), f"the jobs table was restored {back}: check its open jobs, then resume", self.ports)
        number = max(mark, marked) + 1
        self.ports.jobs.set_mark(number)
        self.ports.ledger.set_mark(number)

    def _open(self) -> None:
        cursor = self.ports.ledger.cursor() or self._seed()
        last = slots.minute_of(self.now + slots.OPEN_AHEAD)
        while cursor.minute <= last:
            shards = max(cursor.shards, self.ports.rules.shards)
            for unit in units(cursor.minute, shards, self.ports.rules.units, self.now):
                self._open_unit(unit)
            after = Cursor(slots.following(cursor.minute), shards, cursor.epoch + 1)
            if not self.ports.ledger.advance(cursor, after):
                return  # another tick is opening the same minutes
            cursor = after

    def _open_unit(self, unit: Unit) -> None:
        try:
            self.ports.jobs.put_canary(unit.key, unit.slots[0], slots.start_of(unit.key.minute))
        except Exception as error:  # the unit is not closed without it: the step that closes it stores it again
            log.warning("could not store a canary", extra={"unit": unit.key, "error": repr(error)})
        self.result.opened += self.ports.ledger.open_unit(unit)
        if is_overdue(unit, self.now):
            return  # of overdue units, `_drive` sends the oldest only
        if not self._send([WorkItem.of_unit(unit.key)], max(unit.next_at - self.now, 0)):
            self.ports.ledger.change_unit(unit, replace(unit, next_at=self.now))  # so that the next tick sends it again, before its minute

    def _seed(self) -> Cursor:
        """Store the first cursor of an empty ledger."""
        cursor = Cursor(slots.minute_of(self.now - FIRST_MINUTES * slots.MINUTE), self.ports.rules.shards)
        self.ports.ledger.advance(None, cursor)
        return self.ports.ledger.cursor() or cursor

    def _drive(self) -> None:
        """Send unfinished work of units again, also of resting ones, and wake units of resumed lanes."""
        units = self.ports.ledger.open_units()
        self._correct(units)
        lost = [unit for unit in units if _is_lost(unit, self.now) and not awaits_step(unit, self.now)]
        self._send([WorkItem.of_unit(unit.key) for unit in lost])
        self.result.sent += wake_overdue(self.ports, self.now, units)

    def _correct(self, units: Sequence[Unit]) -> None:
        """Send the work of the coming minutes whose first steps a tick with a wrong clock has planned too late: it may have sent none."""
        for unit in units:
            if (at := first_step_at(unit, self.now)) is None or unit.next_at <= at or is_overdue(unit, self.now):
                continue
            if at <= self.now + slots.OPEN_AHEAD and self.ports.ledger.change_unit(unit, replace(unit, next_at=at)):
                log.warning("the first step of a unit was planned too late", extra={"unit": unit.key, "next_at": unit.next_at})
                self._send([WorkItem.of_unit(unit.key)], at - self.now)

    def _drive_overflow(self) -> None:
        """Send unfinished work of the overflow again, and that of waiting rooms whose jobs need not wait any more."""
        units = self.ports.ledger.overflow_units()
        lost = [unit for unit in units if unit.key.minute == slots.OVERFLOW and _is_lost(unit, self.now, REQUEST_LOST_MS)]
        self._send([WorkItem.of_unit(unit.key) for unit in lost])
        self.result.sent += wake_rooms(self.ports, self.now, units)

    def _drive_operations(self) -> None:
        lost = [each for each in self.ports.operations.running() if max(each.next_at, each.lease_until) + LOST_MS < self.now]
        self._send([WorkItem(WorkKind.OPERATION, each.owner, each.id) for each in lost])

    def _check(self) -> None:
        self._send([WorkItem(WorkKind.CHECKS)])


def first_step_at(unit: Unit, now: int) -> int | None:
    """When the first step of a unit of a minute is due (ms), at `now` or later; None: a worker has begun it.

    Until then only ticks have written `next_at`, and the clock of one may have been wrong.
    """
    if unit.message_id or unit.handed_out_at is not None or unit.lease_until >= now or slots.is_always_open(unit.key.minute):
        return None
    return max(slots.start_of(unit.key.minute) - READY_MS, now)


def _is_lost(unit: Unit, now: int, after_ms: int = LOST_MS) -> bool:
    return unit.next_at + after_ms < now and unit.lease_until < now


def wake_overdue(ports: Ports, now: int, units: Sequence[Unit] | None = None) -> int:
    """Wake units whose jobs wait to be published though their minutes are over, and units after the resume of a lane they wait for.

    The oldest go first, and at most `Rules.overdue_units` units of past minutes are at work at once. `units`: the open units, if the
    caller has just read them. Returns the number of woken units. Raises Unavailable.
    """
    states, allowed, chosen = ports.ledger.watched().lanes, ports.rules.overdue_units, []
    for unit in ports.ledger.open_units() if units is None else units:
        if unit.resting and not leftover.is_resumed(unit.resting, states, now):
            continue
        if unit.resting and not is_overdue(unit, now):
            chosen.append(unit)
        elif (unit.resting or awaits_step(unit, now)) and allowed:
            allowed -= 1
            chosen.append(unit)
    sent = [unit for unit in chosen if unit.lease_until < now and _wake(unit, ports, now)]
    ports.work.send([WorkItem.of_unit(unit.key) for unit in sent])
    return len(sent)


def _wake(unit: Unit, ports: Ports, now: int) -> bool:
    """Make the unit's next step due now."""
    believed_ms = FAR_MS if unit.message_id else leftover.SKEW_MS
    if not unit.resting and unit.opened_at < unit.next_at and now - LOST_MS < unit.next_at <= now + believed_ms:
        return False  # its message was just delivered, or will be
    return ports.ledger.change_unit(unit, woken(unit, now))


def wake_rooms(ports: Ports, now: int, units: Sequence[Unit] | None = None) -> int:
    """Send the work of the waiting rooms that have not been empty since their lanes were resumed, or are to be read again.

    The same for the rooms of users who are not disabled any more. Also create the missing units of lanes.

    `units`: those of the overflow and the rooms, if the caller has just read them. Returns the number of sent items. Raises Unavailable.
    """
    units = ports.ledger.overflow_units() if units is None else units
    sent = _wake_lanes(ports, now, {unit.key: unit for unit in units})
    rooms = [(unit, owner) for unit in units if (owner := slots.owner_of_room(unit.key.minute)) is not None and unit.lease_until <= now]
    disabled = ports.users.barred().disabled if rooms else frozenset[str]()
    due = [unit for unit, owner in rooms if owner not in disabled and (unit.handed_out_at is None or _is_lost(unit, now, REQUEST_LOST_MS))]
    return sent + len(due) - len(ports.work.send([WorkItem.of_unit(unit.key) for unit in due]) if due else [])


def _wake_lanes(ports: Ports, now: int, known: Mapping[UnitKey, Unit]) -> int:
    states = ports.ledger.watched().lanes
    if not states:
        return 0
    cursor, due = ports.ledger.cursor(), list[WorkItem]()
    shards = max(cursor.shards if cursor else 0, ports.rules.shards)
    for lane, state in states.items():
        for unit in units_of(slots.room_of(lane), shards):
            if unit.key not in known:
                open_unit(unit, ports, now)
            if _waits_for_resume(known.get(unit.key, unit), state, now):
                due.append(WorkItem.of_unit(unit.key))
    return len(due) - len(ports.work.send(due)) if due else 0


def _waits_for_resume(room: Unit, state: LaneState, now: int) -> bool:
    """Whether jobs may wait in this part of a waiting room though its lane was resumed: it was not seen empty `SKEW_MS` after the resume.

    A room that was seen empty is read again when its next step is due: the index may lag.
    """
    if state.paused_at is not None or state.resumed_at is None or room.lease_until > now:
        return False
    return (room.handed_out_at or 0) < state.resumed_at + leftover.SKEW_MS or _is_lost(room, now)


def units(minute: str, shards: int, count: int, now: int) -> list[Unit]:
    """Return the units of a minute: its shards in `count` ranges of nearly equal size."""
    count = min(count, shards)
    bounds = [shards * part // count for part in range(count + 1)]
    next_at = max(slots.start_of(minute) - READY_MS, now)
    return [Unit(UnitKey(minute, part), bounds[part], bounds[part + 1] - 1, opened_at=now, next_at=next_at) for part in range(count)]


def tick(ports: Ports) -> TickResult:
    """Run one tick to its end. Raises Unavailable if the ledger refuses: the next tick starts where this one stopped."""
    return Tick(ports, ports.clock.now()).run()
