"""Later checks of closed minutes, and the sweep: every job in the due index is found in the end.

A job that the index hid for longer than the canary could prove is found by a later check. The sweep reads the whole index, one page
a step, and finds jobs in slots that no unit covers: after a jobs table was restored, or the ledger emptied. The step also requests the
release steps of target queues whose messages are lost, and the checks of groups that are due.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from scheduler.admission.lane_state import paused_lanes
from scheduler.groups.check import request_due
from scheduler.model import slots
from scheduler.model.errors import Unavailable
from scheduler.model.job import DueEntry, LaterCheck
from scheduler.pipeline import leftover, release, slot_pages
from scheduler.pipeline.reconcile import recheck
from scheduler.pipeline.unit_lease import RENEW_MS
from scheduler.storage.ports import Clock, Ledger, Ports

STEP_MS = 45_000  # a step ends after this time; the next minute continues
ORPHAN_MS = 900_000  # a slot is swept this long after its minute: the minutes of a new ledger begin as early

log = logging.getLogger(__name__)


@dataclass(slots=True)
class ChecksResult:
    """The counts of one step. `found`: jobs in closed minutes. `swept`: jobs in slots that no unit covers. `failed`: checks that failed."""

    checks: int = 0
    found: int = 0
    swept: int = 0
    failed: int = 0


def check(ports: Ports, hide: Callable[[], None] = lambda: None) -> ChecksResult:
    """Carry out the later checks that are due, the earliest first, and sweep one page of the due index. A check that fails is tried again.

    `hide` renews the visibility of the step's message. Raises Unavailable if the ledger refuses.
    """
    result, until, renew = ChecksResult(), ports.clock.now() + STEP_MS, _sparingly(hide, ports.clock)
    for later_check in ports.ledger.later_checks(ports.clock.now()):
        if ports.clock.now() >= until:
            break
        try:
            renew()
            result.found += _check(later_check, ports, renew)
            result.checks += 1
        except Exception as error:
            result.failed += 1
            log.warning("a later check failed; the next minute tries it again", extra={"unit": later_check.unit.key, "error": repr(error)})
    _request_lost_releases(ports)
    _request_group_checks(ports)
    result.swept = _sweep(ports)
    return result


def _request_lost_releases(ports: Ports) -> None:
    """Request the release steps whose messages are lost. A refusal does not stop the sweep."""
    try:
        if items := release.lost(ports, ports.clock.now()):
            log.warning("release steps are overdue", extra={"targets": [item.of for item in items]})
            ports.work.send(items)
    except Exception as error:
        log.warning("could not check the target queues; the next minute tries it again", extra={"error": repr(error)})


def _request_group_checks(ports: Ports) -> None:
    """Request the checks of groups that are due. A refusal does not stop the sweep."""
    try:
        request_due(ports, ports.clock.now())
    except Exception as error:
        log.warning("could not request the checks of groups; the next minute tries it again", extra={"error": repr(error)})


def _sparingly(hide: Callable[[], None], clock: Clock) -> slot_pages.Renew:
    """Return a function that hides the message when it is time: a check reads dozens of pages, and each hiding is a billed request."""
    hidden_at = clock.now()

    def renew() -> None:
        nonlocal hidden_at
        if clock.now() >= hidden_at + RENEW_MS:
            hidden_at = clock.now()
            hide()

    return renew


def _check(later_check: LaterCheck, ports: Ports, renew: slot_pages.Renew) -> int:
    found = sum(_hand_on(page, ports) for page in slot_pages.pages(later_check.unit, ports.jobs, renew))
    if found:
        log.warning("found jobs in a closed minute", extra={"minute": later_check.unit.key.minute, "jobs": found})
    if later_check.number == 0:
        ports.jobs.drop_canary(later_check.unit.key)  # in case the step that closed the unit ended before it dropped the canary
    ports.ledger.replace_check(later_check, following(later_check))
    return found


def _sweep(ports: Ports) -> int:
    """Read one page of the due index, and reconcile the jobs in slots that no unit covers. An error of one page does not stop the sweep."""
    before = ports.ledger.sweep_cursor()
    page, after = ports.jobs.sweep(after=before)
    swept, past = 0, [entry for entry in page if _is_past(entry, ports.clock.now())]
    queued, past = [entry for entry in past if slots.is_queued(entry.slot)], [each for each in past if not slots.is_queued(each.slot)]
    for target, owner in sorted({slots.queue_of(entry.slot) for entry in queued}):
        ports.targets.join_queue(target, owner, ports.clock.now())  # the release steps know the user already, unless its item was lost
    try:
        swept = _hand_on(_uncovered(past, ports.ledger), ports)
    except Unavailable:
        raise  # the next minute reads this page again
    except Exception:
        log.exception("a page of the due index could not be swept; the sweep reads it again", extra={"jobs": len(past)})
    if swept:
        log.error("found jobs in slots that no unit covers", extra={"jobs": swept})
    if after != before:
        ports.ledger.set_sweep_cursor(after)
    return swept


def _is_past(entry: DueEntry, now: int) -> bool:
    has_minute = not slots.is_always_open(entry.slot) and not slots.is_queued(entry.slot)
    return (slots.start_of(slots.minute(entry.slot)) if has_minute else entry.due_at) < now - ORPHAN_MS


def _uncovered(entries: list[DueEntry], ledger: Ledger) -> list[DueEntry]:
    if not entries:
        return []
    covered = {slot for unit in (*ledger.open_units(), *ledger.overflow_units()) for slot in unit.slots}
    return [entry for entry in entries if entry.slot not in covered]


def _hand_on(entries: list[DueEntry], ports: Ports) -> int:
    """Reconcile jobs of slots that no unit covers. Returns their number.

    No job stays, even if its lane is paused: it moves to a slot of a minute that is not open yet.
    """
    if not entries:
        return 0
    paused = dict.fromkeys(paused_lanes(ports.ledger.watched().lanes), True)
    return sum(recheck(piece, ports, now=ports.clock.now(), behind=paused).found for piece in leftover.pieces(entries))


def following(later_check: LaterCheck) -> LaterCheck | None:
    """Return the check that follows this one, if there is one."""
    number = later_check.number + 1
    if number == len(leftover.CHECKS_MS):
        return None
    return replace(later_check, number=number, at=later_check.at + leftover.CHECKS_MS[number] - leftover.CHECKS_MS[later_check.number])
