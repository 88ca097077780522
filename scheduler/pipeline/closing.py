"""Close a dispatched unit: once its minute is over, its slots are empty and the canary proves it; until then, reconcile the remaining jobs.

All reading goes page by page, and all reconciling in pieces of a few hundred jobs. A step that runs out of time ends; the next step
begins with the first slot again, which by then holds fewer jobs.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

from scheduler.admission.lane_state import paused_lanes
from scheduler.model import slots
from scheduler.model.job import Lane, LaterCheck, Unit
from scheduler.pipeline import leftover, slot_pages
from scheduler.pipeline.reconcile import recheck, remaining
from scheduler.pipeline.unit_lease import LeaseLost, UnitLease
from scheduler.storage.ports import Ports

STEP_MS = 60_000  # a step ends after this time
AGAIN_MS = (15_000, 30_000, 60_000)  # between two checks of a unit that is not empty, before it is reconciled


class _Left(NamedTuple):
    """The jobs that a step found in the slots. `waiting` of them wait for paused lanes. `through`: the step read all slots."""

    jobs: int = 0
    waiting: int = 0
    through: bool = True


@dataclass(slots=True)
class Closing:
    """One step of one unit, whose jobs are published. `run` is its only entry point."""

    lease: UnitLease
    closed: bool = False
    rechecked: int = 0  # jobs that were moved or taken back

    @property
    def ports(self) -> Ports:
        return self.lease.ports

    @property
    def unit(self) -> Unit:
        return self.lease.unit

    def run(self) -> None:
        """Carry out the step: close the unit, or store when its next step is due. Raises LeaseLost; Unavailable."""
        now = self.ports.clock.now()
        proved = self._is_proved()  # checked before the slots are read: a canary seen later proves nothing about this read
        left = self._reconcile(now) if now >= over_at(self.unit) + leftover.RECHECK_AFTER else self._count()
        if left.jobs or not left.through or not proved or not self._close():
            self._leave(now, left)

    def _is_proved(self) -> bool:
        unit = self.unit
        if self.ports.jobs.canary_visible(unit.key, unit.slots[0]):
            return True
        # It may never have been stored, or a frozen tick opened the unit again after it was closed.
        self.ports.jobs.put_canary(unit.key, unit.slots[0], slots.start_of(unit.key.minute))
        return False

    def _count(self) -> _Left:
        """Count the jobs left until one is found: before they are reconciled, it matters only whether the slots are empty."""
        for page in slot_pages.pages(self.unit, self.ports.jobs, self.lease.renew_if_due):
            for piece in leftover.pieces(page):
                found, unreadable = remaining(piece, self.ports.jobs)
                if found or unreadable:
                    return _Left(len(found) + len(unreadable))
        return _Left()

    def _reconcile(self, now: int) -> _Left:
        """Reconcile the remaining jobs in pieces, while there is time.

        Once the unit rests, entries of paused lanes are only counted: it was reconciled after it had begun to wait for them.
        """
        left = waiting = 0
        behind: dict[Lane, bool] = {}
        paused = paused_lanes(self.ports.ledger.watched().lanes)
        skipped = paused if self.unit.resting > over_at(self.unit) else ()
        for page in slot_pages.pages(self.unit, self.ports.jobs, self.lease.renew_if_due):
            entries = [entry for entry in page if entry.lane not in skipped]
            left, waiting = left + len(page) - len(entries), waiting + len(page) - len(entries)
            for piece in leftover.pieces(entries):
                self.lease.renew_if_due()
                done = recheck(piece, self.ports, now=self.ports.clock.now(), paused=paused, behind=behind)
                behind = done.lanes
                left, waiting = left + done.left, waiting + done.waiting
                self.rechecked += done.moved + done.taken_back
                if self.ports.clock.now() >= now + STEP_MS:
                    return _Left(left, waiting, through=False)
        return _Left(left, waiting)

    def _close(self) -> bool:
        now = self.ports.clock.now()
        check = LaterCheck(replace(self.unit, early=()), 0, now + leftover.CHECKS_MS[0])
        self.closed = self.ports.ledger.close_unit(self.unit, now, check)
        if self.closed:
            self.ports.jobs.drop_canary(self.unit.key)
        return self.closed

    def _leave(self, now: int, left: _Left) -> None:
        """Release the lease, and store when the next step is due."""
        due_at = over_at(self.unit) + leftover.RECHECK_AFTER
        resting, next_at = self.unit.resting, now + AGAIN_MS[0]
        if not left.through:
            next_at = self.ports.clock.now()
        elif left.jobs and left.jobs == left.waiting:
            resting, next_at = now, now + leftover.REST_MS
        elif left.jobs and now >= due_at:
            resting, next_at = 0, now + AGAIN_MS[-1]
        elif left.jobs:
            passed = now - over_at(self.unit)
            next_at = min(now + next((pause for pause in AGAIN_MS if passed < pause), AGAIN_MS[-1]), due_at)
        if not self.lease.rest(next_at, resting):
            raise LeaseLost


def over_at(unit: Unit) -> int:
    """Return the instant (ms) from which on the slots of a dispatched unit, once empty, stay empty."""
    return max(unit.handed_out_at or 0, slots.start_of(unit.key.minute) + slots.MINUTE)
