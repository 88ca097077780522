"""Hand out one unit: read its slots, publish every job just ahead of its instant, read once more, and say so.

What is due beyond what a lane can take waits here for its turn (`flow`).

No job is written here. Whatever a dispatcher does twice, late or not at all is safe: executors claim by fence, and
what stays in the index is found by the recheck.
"""

from dataclasses import dataclass, field, replace

from scheduler.model import slots
from scheduler.model.job import DueEntry, Lane, Unit, UnitKey
from scheduler.pipeline import leftover
from scheduler.pipeline.publisher import LEASE_MS, DispatchResult, Publisher
from scheduler.pipeline.reconcile import read
from scheduler.storage.ports import Ledger, Ports

WAKE_MS = 3_000  # a parked unit is due for a dispatcher this long before its minute


@dataclass(slots=True)
class Dispatch:
    """One dispatcher at work on one unit. `run` is its only entry."""

    unit: UnitKey
    ports: Ports
    publisher: Publisher = field(init=False)

    @classmethod
    def of(cls, unit: Unit, ports: Ports) -> "Dispatch":
        """A dispatcher of a unit that is leased to it."""
        made = cls(unit.key, ports)
        made.publisher = Publisher(unit, ports, made._outstanding, made._progress)
        return made

    def run(self) -> DispatchResult:
        publisher, start = self.publisher, slots.start_of(self.unit.minute)
        publisher.renew_later()
        entries = read(publisher.unit, self.ports.jobs)
        publisher.plan([entry for entry in entries if entry.due_at >= max(start, publisher.unit.progress)])
        if not publisher.planned and entries and self.ports.clock.now() < start - WAKE_MS:
            self._park(start)  # only nets: their jobs were handed over directly, and are looked at when the minute comes
            return publisher.result
        if entries and not self._publish_all(start):
            publisher.flow.close()
            return publisher.result
        publisher.result.handed_out = self._hand_out()
        return publisher.result

    def _publish_all(self, start: int) -> bool:
        """Publish each at its time, and at the start of the minute what a second read shows besides. False: lost or left the unit.

        What is held back for a paused lane goes out when that is resumed, or is left in its slot when the minute is over.
        """
        publisher, reread = self.publisher, False
        while publisher.planned or not reread or publisher.may_go_out(start + slots.MINUTE):
            now = self.ports.clock.now()
            if not reread and now >= start:
                reread = True
                publisher.plan(self._left(start))
                continue
            if not publisher.keep(now):
                return False
            if not publisher.stays(now) and len(publisher.flow):
                publisher.leave_to_another()
                return False
            if publisher.go_on(now) is None:
                self.ports.clock.sleep_until(max(min([*publisher.wakes(), *([] if reread else [start])]), now + 1))
        publisher.result.held_back = len(publisher.held) + len(publisher.flow)
        return True

    def _outstanding(self, lane: Lane, until: int) -> int:
        """How many jobs of the lane, due up to then, have been released and are not done: they are still in their slots."""
        start = slots.start_of(self.unit.minute)
        there = sum(self.ports.jobs.count(slot, lane, since=start, until=until) for slot in self.publisher.unit.slots)
        return there - sum(1 for entry in self.publisher.waiting() if entry.lane is lane and start <= entry.due_at <= until)

    def _left(self, start: int) -> list[DueEntry]:
        """What a second read shows that was not published yet: laggards of the index, and nets still there at their minute."""
        behind: dict[Lane, bool] = {}
        left = []
        for entry in read(self.publisher.unit, self.ports.jobs):
            if entry.due_at < start and self._behind(entry.lane, behind):
                continue  # its message waits in the lane; a second one would not make it faster
            left.append(entry)
        return left

    def _behind(self, lane: Lane, known: dict[Lane, bool]) -> bool:
        if lane not in known:
            known[lane] = leftover.lane_is_behind(self.ports.lanes.backlog(lane), self.ports.rules.max_backlog)
        return known[lane]

    def _progress(self) -> int:
        """Up to when everything has been published: the first due time of what has not."""
        publisher, progress = self.publisher, self.publisher.unit.progress
        first = [item.entry.due_at for item in [*publisher.planned[:1], *publisher.held]] + publisher.flow.first_dues()
        return max(min(first, default=progress), progress)

    def _park(self, start: int) -> None:
        self.publisher.change(replace(self.publisher.unit, lease_until=start - WAKE_MS))

    def _hand_out(self) -> bool:
        return self.publisher.change(replace(self.publisher.unit, handed_out_at=self.ports.clock.now(), lease_until=0))


def take_lease(key: UnitKey, ledger: Ledger, now: int) -> Unit | None:
    """The unit, leased to us under a new epoch; None if it is handed out, unknown, or another dispatcher is at it."""
    unit = ledger.unit(key)
    if unit is None or unit.handed_out_at is not None or unit.lease_until > now:
        return None
    leased = replace(unit, epoch=unit.epoch + 1, lease_until=now + LEASE_MS)
    return leased if ledger.change_unit(unit, leased) else None


def dispatch(key: UnitKey, ports: Ports) -> DispatchResult:
    """Dispatch one unit, if nobody else does. Raises Unavailable if a service refuses: the lease runs out and another one starts."""
    unit = take_lease(key, ports.ledger, ports.clock.now())
    return DispatchResult() if unit is None else Dispatch.of(unit, ports).run()
