"""Dispatch the overflow: slots that are always open, for jobs due too soon for any minute whose owners exceed their direct share.

This works like the dispatch of a minute, with the same window. But jobs keep coming: the dispatcher reads the slots every second, and
reconciles jobs that it sent long ago and that are still there. It ends when no job has come for a while. The process that puts a job
into the overflow starts the dispatcher, and so does the tick every minute.
"""

from dataclasses import dataclass, field, replace

from scheduler.model import slots
from scheduler.model.job import DueEntry, Lane, Unit, UnitKey
from scheduler.pipeline import leftover
from scheduler.pipeline.publisher import LEASE_MS, DispatchResult, Publisher, mark
from scheduler.pipeline.reconcile import everything, read, recheck, remaining
from scheduler.storage.ports import Ports

OVERFLOW = UnitKey(slots.OVERFLOW, 0)
READ_MS = 1_000
SAME_LOOK_MS = 250  # lanes polled within this time share one read of the slots
EMPTY_MS = 3_000  # the dispatcher stays this long after the last job was there: the next job then needs no start
RECHECK_AGAIN_MS = 10_000  # the time until a job is reconciled again if the table refused


@dataclass(slots=True)
class Overflow:
    """One dispatcher of the overflow. `run` is its only entry point."""

    ports: Ports
    publisher: Publisher = field(init=False)
    _read_at: int = 0
    _rechecked_at: int = 0
    _seen_at: int = 0  # the last time that a job was there
    _entries: list[DueEntry] = field(default_factory=list)  # the entries of the last read, once they were planned ...
    _marks: set[str] = field(default_factory=set)  # ... and their marks
    _out: dict[str, tuple[DueEntry, int]] = field(
        default_factory=dict
    )  # by mark: entries sent and still there at the last read, and when they were sent (ms)

    @classmethod
    def of(cls, unit: Unit, ports: Ports) -> "Overflow":
        """Return a dispatcher of the overflow, which is leased to it."""
        made = cls(ports)
        made.publisher = Publisher(unit, ports, made._outstanding, made._progress)
        return made

    def run(self) -> DispatchResult:
        self._seen_at = self.ports.clock.now()
        while self._hand_out_all():
            if self._leave():
                break
        self.publisher.flow.close()
        return self.publisher.result

    def _hand_out_all(self) -> bool:
        """Publish jobs until none has been there for a while. False: this dispatcher lost or left the overflow."""
        clock, publisher = self.ports.clock, self.publisher
        while clock.now() - self._seen_at < EMPTY_MS:
            now = clock.now()
            if not publisher.keep(now):
                return False
            if not publisher.stays(now):
                publisher.leave_to_another()
                return False
            if reads := now - self._read_at >= READ_MS:
                self._read()
            if reads or now - self._rechecked_at >= READ_MS:  # under a flood, polls of a lane already keep the read fresh
                self._recheck()
                continue
            published = publisher.go_on(now)
            if published is None:
                clock.sleep_until(max(min([*publisher.wakes(), self._read_at + READ_MS]), now + 1))
            elif published:
                sent_at = clock.now()
                self._out |= {entry.mark: (entry, sent_at) for entry in published}
        return True

    def _leave(self) -> bool:
        """Release the lease and read once more: a process that put a job here meanwhile found the lease taken. False: go on."""
        clock, publisher = self.ports.clock, self.publisher
        publisher.unit = replace(publisher.unit, progress=0)
        if not publisher.change(replace(publisher.unit, lease_until=0)):
            return True
        clock.sleep_until(clock.now() + READ_MS)
        if not read(publisher.unit, self.ports.jobs):
            return True
        unit = take_lease(self.ports)
        if unit is None:
            return True
        publisher.unit, self._seen_at = unit, clock.now()
        return False

    def _read(self) -> None:
        """Read the slots and plan new jobs. Thousands of jobs may wait here for seconds, so most are planned or waiting already."""
        publisher, self._read_at = self.publisher, self.ports.clock.now()
        entries = everything(publisher.unit, self.ports.jobs)
        if entries:
            self._seen_at = self._read_at
        is_known = entries == self._entries
        marks = self._marks if is_known else {*map(mark, entries)}
        self._out = {of: sent for of, sent in self._out.items() if of in marks}
        if is_known:
            return  # each entry was sent, or is planned
        unsent = marks - publisher.sent
        publisher.planned = [item for item in publisher.planned if item.entry.mark in unsent]
        publisher.held = [item for item in publisher.held if item.entry.mark in unsent]
        if new := unsent - {item.entry.mark for item in [*publisher.planned, *publisher.held]}:
            publisher.plan([entry for entry in entries if entry.mark in new])
        self._entries, self._marks = entries, marks  # last: if planning was refused, the next read plans them

    def _outstanding(self, lane: Lane, until: int) -> int:
        if self.ports.clock.now() - self._read_at >= SAME_LOOK_MS:
            self._read()
        return sum(1 for entry, _ in self._out.values() if entry.lane is lane)

    def _recheck(self) -> None:
        """Reconcile jobs sent long ago that are still there: each one runs long, or its message was lost. They move to a minute's slots."""
        now = self._rechecked_at = self.ports.clock.now()
        old = [entry for entry, at in self._out.values() if at <= now - leftover.RECHECK_AFTER]
        if not old:
            return
        left = remaining(old, self.ports.jobs)
        recheck(left, self.ports, now=now, paused=self.publisher.watch.paused)
        again = now - leftover.RECHECK_AFTER + RECHECK_AGAIN_MS
        self._out |= {entry.mark: (entry, again) for entry in old}

    def _progress(self) -> int:
        """Return the due time (ms) of the oldest job not sent yet, or 0; the lag of the overflow is measured from it."""
        waiting = [item.entry.due_at for item in [*self.publisher.planned, *self.publisher.held]]
        return min(waiting + self.publisher.flow.first_dues(), default=0)


def open_intake(ports: Ports, now: int) -> None:
    """Create the unit of the overflow. A process does this before it puts jobs there: else no tick would read them. Idempotent."""
    ports.ledger.open_unit(Unit(OVERFLOW, 0, ports.rules.shards - 1, opened_at=now))


def take_lease(ports: Ports) -> Unit | None:
    """Lease the overflow under a new epoch and return its unit; None if it was never opened, or is leased to another dispatcher."""
    now = ports.clock.now()
    unit = ports.ledger.unit(OVERFLOW)
    if unit is None or unit.lease_until > now:
        return None
    last = max(unit.last_shard, ports.rules.shards - 1)
    leased = replace(unit, last_shard=last, epoch=unit.epoch + 1, lease_until=now + LEASE_MS)
    return leased if ports.ledger.change_unit(unit, leased) else None


def overflow(ports: Ports) -> DispatchResult:
    """Dispatch the overflow, unless another dispatcher does.

    Raises Unavailable if a service refuses: the tick then starts another dispatcher.
    """
    unit = take_lease(ports)
    return DispatchResult() if unit is None else Overflow.of(unit, ports).run()


def start_if_waiting(ports: Ports, now: int) -> bool:
    """Start a dispatcher if a job is in the overflow and no dispatcher is at work: the process that put the job there may have died."""
    unit = ports.ledger.unit(OVERFLOW)
    if unit is None or unit.lease_until > now:
        return False
    last = max(ports.rules.shards - 1, unit.last_shard)
    if not any(ports.jobs.due(slot)[0] for slot in Unit(OVERFLOW, 0, last).slots):
        return False
    ports.functions.start_dispatch(OVERFLOW)
    return True
