"""Step sharing: which of the dispatchers that may hold a step for minutes hold one now.

A dispatcher of a past minute or of the overflow stays until its lane has room for its jobs, and a part of a split minute until its last
job is sent. An account of 100 executions has five steps. So these dispatchers leave `OTHERS` steps to the minutes that begin, to release
steps and to operations. If more of them are due, each gives its step to another one after `TIME_SLICE_MS`. Parts of a minute that is not
over do not wait for the others.
"""

from scheduler.model import slots
from scheduler.model.errors import Unavailable
from scheduler.model.job import Unit
from scheduler.storage.ports import Ports

OTHERS = 2  # steps that such dispatchers leave free: for the minute that begins, and for what takes seconds
TIME_SLICE_MS = 10_000  # a dispatcher gives its step to another one that waits, after this time at work
CHECK_MS = 2_000  # between two checks of a dispatcher at work
ASK_MS = 1_000  # until one that waits asks again
PAUSE_MS = 2 * ASK_MS  # until one that has left asks again: one that waits takes the step before
PLENTY = 100  # with this number of steps, nobody is asked: a minute has dozens of parts at most
SPLIT_PARTS = 1_000  # the part of a split unit is this number plus its first shard


def is_overdue(unit: Unit, now: int) -> bool:
    """Whether the minute of the unit is over."""
    return slots.start_of(unit.key.minute) + slots.MINUTE < now


def awaits_step(unit: Unit, now: int) -> bool:
    """Whether the unit's jobs are published only when few older units are at work: its minute is over, and they are not published."""
    return unit.handed_out_at is None and is_overdue(unit, now)


def most_parts(unit: Unit, ports: Ports) -> int:
    """The most parts into which a unit may be split. All can be at work at once, so that no user's jobs wait in a part without a step."""
    if ports.rules.steps >= PLENTY:
        return len(unit.slots)
    return 1 if unit.key.part >= SPLIT_PARTS else _most(ports)


def may_begin(unit: Unit, ports: Ports, now: int) -> bool:
    """Whether a dispatcher of this unit may take a step now. Two may find the last one free at once; then one soon leaves.

    Raises Unavailable.
    """
    if ports.rules.steps >= PLENTY or not _shares_steps(unit, now):
        return True
    at_work = [other for other in _units(ports) if other.key != unit.key and _is_at_work(other, now)]
    return sum(_rank(other, now) <= _rank(unit, now) for other in at_work) < _most(ports)


def must_leave(unit: Unit, ports: Ports, now: int, began_at: int) -> bool:
    """Whether the dispatcher of this unit, at work since `began_at` (ms), gives its step back. False if the ledger refuses the reads.

    The time slice of a minute begins at its end. Slices from its begin were tried: quiet jobs waited in parts that had left.
    """
    if ports.rules.steps >= PLENTY or not _shares_steps(unit, now):
        return False
    try:
        units = [other for other in _units(ports) if _shares_steps(other, now)]
    except Unavailable:
        return False
    at_work = [_place(other, now) for other in units if _is_at_work(other, now)]
    if sum(place < _place(unit, now) for place in at_work) >= _most(ports):
        return True
    since = began_at if slots.is_always_open(unit.key.minute) else max(began_at, slots.start_of(unit.key.minute) + slots.MINUTE)
    return now >= since + TIME_SLICE_MS and len(at_work) >= _most(ports) and any(_waits(other, now) for other in units)


def _most(ports: Ports) -> int:
    """The most dispatchers of this kind at work: of fewer than five steps, half."""
    return max(ports.rules.steps - OTHERS, -(-ports.rules.steps // 2))


def _units(ports: Ports) -> list[Unit]:
    return [*ports.ledger.overflow_units(), *ports.ledger.open_units()]


def _is_at_work(unit: Unit, now: int) -> bool:
    """Whether a dispatcher of this unit holds a step for long. One of the overflow or of a room whose jobs all left soon ends."""
    return unit.lease_until >= now and _shares_steps(unit, now) and (not slots.is_always_open(unit.key.minute) or unit.progress > 0)


def _shares_steps(unit: Unit, now: int) -> bool:
    if slots.is_always_open(unit.key.minute):
        return True
    return unit.handed_out_at is None and (is_overdue(unit, now) or unit.key.part >= SPLIT_PARTS)


def _rank(unit: Unit, now: int) -> int:
    return int(slots.is_always_open(unit.key.minute) or is_overdue(unit, now))


def _place(unit: Unit, now: int) -> tuple[int, int, int]:
    """The order in which dispatchers keep their steps if there are too many: the overflow before minutes, and new minutes before old ones.

    Jobs that wait in an old minute are of users with many jobs.
    """
    began = now if slots.is_always_open(unit.key.minute) else slots.start_of(unit.key.minute)
    return _rank(unit, now), -began, unit.key.part


def _waits(unit: Unit, now: int) -> bool:
    return unit.lease_until < now and unit.handed_out_at is None and not unit.resting and unit.next_at <= now
