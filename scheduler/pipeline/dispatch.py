"""Dispatch one unit: read its slots, publish every job just before it is due, read the slots once more, and mark the unit done.

Where more jobs are due than a lane can take, the dispatcher keeps the rest until the lane has room (`sharing.window`).

A dispatcher writes no job. Whatever it does twice, late or not at all is safe: executors claim jobs by fence, and reconciling finds
every job that is still in the index.
"""

from dataclasses import dataclass, field, replace

from scheduler.model import slots
from scheduler.model.job import DueEntry, Lane, Unit, UnitKey
from scheduler.pipeline import leftover
from scheduler.pipeline.publisher import LEASE_MS, DispatchResult, Publisher
from scheduler.pipeline.reconcile import read
from scheduler.storage.ports import Ledger, Ports

WAKE_MS = 3_000  # a parked unit gets a dispatcher this long before its minute


@dataclass(slots=True)
class Dispatch:
    """One dispatcher of one unit. `run` is its only entry point."""

    unit: UnitKey
    ports: Ports
    publisher: Publisher = field(init=False)

    @classmethod
    def of(cls, unit: Unit, ports: Ports) -> "Dispatch":
        """Return a dispatcher of a unit that is leased to it."""
        made = cls(unit.key, ports)
        made.publisher = Publisher(unit, ports, made._outstanding, made._progress)
        return made

    def run(self) -> DispatchResult:
        publisher, start = self.publisher, slots.start_of(self.unit.minute)
        publisher.renew_later()
        entries = read(publisher.unit, self.ports.jobs)
        publisher.plan([entry for entry in entries if entry.due_at >= max(start, publisher.unit.progress)])
        if not publisher.planned and entries and self.ports.clock.now() < start - WAKE_MS:
            self._park(start)  # only safety slots: their jobs were enqueued directly; the slots are read again when the minute comes
            return publisher.result
        if entries and not self._publish_all(start):
            publisher.flow.close()
            return publisher.result
        publisher.result.handed_out = self._hand_out()
        return publisher.result

    def _publish_all(self, start: int) -> bool:
        """Publish each job at its time; read the slots again at the start of the minute. False: this dispatcher lost or left the unit.

        Jobs of a paused lane are held back. They are published once the lane is resumed, or stay in their slots when the minute is over.
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
        """Return how many jobs of the lane, due by `until`, are released and not finished: they are still in their slots."""
        start = slots.start_of(self.unit.minute)
        there = sum(self.ports.jobs.count(slot, lane, since=start, until=until) for slot in self.publisher.unit.slots)
        return there - sum(1 for entry in self.publisher.waiting() if entry.lane is lane and start <= entry.due_at <= until)

    def _left(self, start: int) -> list[DueEntry]:
        """Return the entries of a second read to publish: late entries of the index, and safety slots that are still taken."""
        behind: dict[Lane, bool] = {}
        left = []
        for entry in read(self.publisher.unit, self.ports.jobs):
            if entry.due_at < start and self._behind(entry.lane, behind):
                continue  # its message waits in the lane; a second message would not make it faster
            left.append(entry)
        return left

    def _behind(self, lane: Lane, known: dict[Lane, bool]) -> bool:
        if lane not in known:
            known[lane] = leftover.lane_is_behind(self.ports.lanes.backlog(lane), self.ports.rules.max_backlog)
        return known[lane]

    def _progress(self) -> int:
        """Return the instant (ms) up to which everything is published: the earliest due time of the other jobs."""
        publisher, progress = self.publisher, self.publisher.unit.progress
        first = [item.entry.due_at for item in [*publisher.planned[:1], *publisher.held]] + publisher.flow.first_dues()
        return max(min(first, default=progress), progress)

    def _park(self, start: int) -> None:
        self.publisher.change(replace(self.publisher.unit, lease_until=start - WAKE_MS))

    def _hand_out(self) -> bool:
        return self.publisher.change(replace(self.publisher.unit, handed_out_at=self.ports.clock.now(), lease_until=0))


def take_lease(key: UnitKey, ledger: Ledger, now: int) -> Unit | None:
    """Lease the unit under a new epoch and return it; None if it is handed out, unknown, or leased to another dispatcher."""
    unit = ledger.unit(key)
    if unit is None or unit.handed_out_at is not None or unit.lease_until > now:
        return None
    leased = replace(unit, epoch=unit.epoch + 1, lease_until=now + LEASE_MS)
    return leased if ledger.change_unit(unit, leased) else None


def dispatch(key: UnitKey, ports: Ports) -> DispatchResult:
    """Dispatch one unit, unless another dispatcher does.

    Raises Unavailable if a service refuses: the lease then runs out, and the tick starts another dispatcher.
    """
    unit = take_lease(key, ports.ledger, ports.clock.now())
    return DispatchResult() if unit is None else Dispatch.of(unit, ports).run()
