"""Carries out one step of the work that a message of the work queue names.

The visibility of the message is the lease of the step: the worker renews it while it works, and hides the message until the next step
is due: for whole seconds, rounded up, since a step that begins early would have to wait in a running function. A step that begins up to
`EARLY_MS` before its time does no harm. The worker deletes the message once there is no next step.

Several messages may name the same unit; the unit's record names the one that drives it, and a worker that receives another one deletes
that.
"""

import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

from scheduler.admission import target_queue
from scheduler.model import slots
from scheduler.model.errors import Unavailable
from scheduler.model.job import Unit, UnitKey
from scheduler.model.work import WorkDelivery, WorkKind
from scheduler.pipeline import leftover
from scheduler.pipeline.closing import Closing
from scheduler.pipeline.dispatch import dispatch
from scheduler.pipeline.follow_up import follow
from scheduler.pipeline.later_checks import check
from scheduler.pipeline.overflow import overflow
from scheduler.pipeline.publishing import DispatchResult
from scheduler.pipeline.release import release
from scheduler.pipeline.step_sharing import ASK_MS, awaits_step, may_begin
from scheduler.pipeline.tick import first_step_at, wake_overdue, wake_rooms
from scheduler.pipeline.unit_lease import LEASE_MS, LeaseLost, UnitLease
from scheduler.storage.ports import Ports

VISIBLE_S = 17  # how long a message stays hidden after its worker ended early: just longer than the lease
SECOND_MS = 1_000  # SQS counts in seconds: a message hidden for less than one is delivered at once, again and again
EARLY_MS = 1_500  # a step may begin this much early: the tick sends its message rounded down, and clocks differ
AGAIN_MS = 5_000  # a step that failed is tried again after this time, and after twice as long each further time ...
LONGEST_MS = 300_000  # ... up to this
TIMERS = (WorkKind.MONITOR, WorkKind.RUN_TIMERS, WorkKind.REQUEST_TIMERS)
HIDDEN_MS = 300_000  # the message of an overflow unit is hidden for this long at most; of an idle one it is deleted

Hide = Callable[[], None]
Step = Callable[[WorkDelivery, Ports, Hide], int | None]  # returns when the next step is due (ms); None: there is none

log = logging.getLogger(__name__)


@dataclass(slots=True)
class WorkResult:
    """The result of one delivery. `next_at`: when its message must be visible again (ms); None: the caller deletes it."""

    next_at: int | None = None
    published: int = 0
    pulled: int = 0  # those of the published jobs that are jobs of users
    failed: bool = False


def work(delivery: WorkDelivery, ports: Ports, *, operation: Step, group: Step, monitor: Step) -> WorkResult:
    """Carry out the step that a message names. Never raises an Exception: a step that fails is tried again later, and harms no other.

    `operation` carries out the steps of operations, `group` the checks of groups, `monitor` the timers of monitors and of watched runs,
    and each minute what both need.
    """
    item, result = delivery.item, WorkResult()

    def hide() -> None:
        ports.work.hide(delivery.receipt, VISIBLE_S)

    try:
        if item.kind not in TIMERS:  # another message comes within a minute, and each hiding is a billed request
            hide()
        if item.kind is WorkKind.UNIT:
            result.next_at = _drive(UnitKey(item.of, int(item.part)), delivery, ports, hide, result)
        elif item.kind is WorkKind.CHECKS:
            _serve_monitors(monitor, delivery, ports, hide)
            log.info("checks", extra=asdict(check(ports, hide)))
        elif item.kind is WorkKind.RELEASE:
            result.next_at = release(delivery, ports)
        elif item.kind is WorkKind.FOLLOW:
            follow(delivery, ports)
        elif item.kind is WorkKind.RESUME:
            wake_overdue(ports, ports.clock.now())
            wake_rooms(ports, ports.clock.now())
            target_queue.wake_idle(ports)
        elif item.kind is WorkKind.GROUP:
            result.next_at = group(delivery, ports, hide)
        elif item.kind in TIMERS:
            result.next_at = monitor(delivery, ports, hide)
        else:
            result.next_at = operation(delivery, ports, hide)
    except LeaseLost:
        result.next_at = ports.clock.now() + LEASE_MS
    except Exception as error:
        refused = isinstance(error, Unavailable)
        level = logging.WARNING if refused else logging.ERROR
        log.log(level, "a step failed", exc_info=not refused, extra={"work": item, "error": repr(error)})
        result.failed = True
        if item.kind not in (WorkKind.CHECKS, WorkKind.RESUME, *TIMERS):  # the tick does the same every minute
            result.next_at = ports.clock.now() + pause(error, delivery)
    return result


def _serve_monitors(monitor: Step, delivery: WorkDelivery, ports: Ports, hide: Hide) -> None:
    """Carry out what monitors need each minute, before the checks, which may take most of it. A refusal does not stop them."""
    try:
        monitor(delivery, ports, hide)
    except Exception as error:
        log.warning("could not serve the monitors; the next minute tries it again", extra={"error": repr(error)})


def hidden_s(next_at: int, now: int) -> int:
    """Return for how many seconds the message is hidden whose step is due at `next_at` (ms)."""
    return max(-(-(next_at - now) // 1000), 0)


def pause(error: Exception, delivery: WorkDelivery) -> int:
    """Return how long to wait (ms) before a failed step is tried again."""
    return AGAIN_MS if isinstance(error, Unavailable) else min(AGAIN_MS << min(delivery.receive_count - 1, 10), LONGEST_MS)


def _drive(key: UnitKey, delivery: WorkDelivery, ports: Ports, hide: Hide, result: WorkResult) -> int | None:
    """Carry out the unit's step, if it is due and no other worker does."""
    now, unit = ports.clock.now(), ports.ledger.unit(key)
    if unit is None:
        return None  # it is closed
    # A resume wakes the waiting room of a lane, a process that has put jobs there any other unit without a minute: the step is due at once.
    is_requested = slots.lane_of_room(key.minute) is not None or (slots.is_always_open(key.minute) and unit.handed_out_at is None)
    first_at = first_step_at(unit, now)
    next_at = unit.next_at if first_at is None else first_at
    busy_until = max(unit.lease_until, 0 if is_requested else next_at - EARLY_MS)
    if busy_until > now:
        mine = unit.message_id in ("", delivery.message_id)  # none drives it yet: the tick's clock is ahead of this one
        return max(unit.lease_until + SECOND_MS, next_at) if mine else None
    if not may_begin(unit, ports, now):
        return now + ASK_MS
    leased = replace(unit, epoch=unit.epoch + 1, lease_until=now + LEASE_MS, message_id=delivery.message_id)
    if not ports.ledger.change_unit(unit, leased):
        return now + AGAIN_MS  # another worker took it just now
    lease = UnitLease(leased, ports, hide)
    try:
        return _step(unit, lease, result)
    except Exception as error:
        _release(lease, ports.clock.now() + pause(error, delivery))
        raise


def _step(unit: Unit, lease: UnitLease, result: WorkResult) -> int | None:
    """Carry out the step of a unit that is leased to this worker; `unit` is the unit before the lease. Returns when the next one is due."""
    clock, began = lease.ports.clock, lease.ports.clock.now()
    if slots.is_always_open(unit.key.minute):
        _count(overflow(lease), result)
        next_at = lease.unit.next_at
        most = HIDDEN_MS if slots.lane_of_room(unit.key.minute) is None else AGAIN_MS  # a resume wakes the waiting room of a lane
        return next_at if next_at <= clock.now() + most else None  # the tick sends another one
    if unit.handed_out_at is not None:
        closing = Closing(lease)
        closing.run()
        # Thousands of units may rest, and SQS keeps at most 120,000 messages in flight: a resume sends another one.
        rests = lease.unit.next_at >= began + leftover.REST_MS
        return None if closing.closed or rests else lease.unit.next_at
    done = dispatch(lease)
    _count(done, result)
    if done.handed_out and awaits_step(unit, began):
        wake_overdue(lease.ports, clock.now())
    return max(lease.unit.next_at, lease.unit.lease_until)  # it still has its old lease if this worker lost it


def _count(done: DispatchResult, result: WorkResult) -> None:
    result.published, result.pulled = done.published, max(done.published - done.canaries, 0)


def _release(lease: UnitLease, next_at: int) -> None:
    """Release the lease of a failed step, so that the next try need not wait for its end.

    The tick sends no second message before `next_at`: else each minute would add one that is tried as often.
    """
    try:
        stored = lease.ports.ledger.unit(lease.unit.key)  # a write of this step may have been applied though its answer was lost
        if stored is not None and stored.epoch == lease.unit.epoch:
            lease.unit = stored
            lease.leave(next_at)
    except Exception as error:
        log.warning("could not release a lease", extra={"unit": lease.unit.key, "error": repr(error)})
