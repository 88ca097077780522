"""Dispatch the overflow: slots that are always open, for jobs due too soon for any minute whose owners exceed their direct share.

This works like the dispatch of a minute, with the same window. But new jobs keep arriving: the dispatcher reads the slots repeatedly, and
reconciles jobs that it sent long ago and that are still there. It ends when no job has arrived for a while. The process that puts a job
into the overflow sends the work item of its unit, and so does the tick. The shards of the overflow are divided into units of
`WIDTH` shards, so that several dispatchers share a flood.
"""

from dataclasses import dataclass, field, replace

from scheduler.model import slots
from scheduler.model.job import DueEntry, Unit, UnitKey
from scheduler.pipeline import leftover, slot_pages
from scheduler.pipeline.publisher import DispatchResult, Publisher, mark
from scheduler.pipeline.reconcile import recheck
from scheduler.pipeline.unit_lease import UnitLease
from scheduler.storage.ports import Ports

WIDTH = 8  # shards of one unit
READ_MS = 1_000  # from the end of a read to the next one, at least ...
READ_PAUSE = 3  # ... and this number of times as long as the read took: most of the time is for publishing
EMPTY_MS = 3_000  # the dispatcher stays this long after the last job was there: the next job then needs no start
IDLE_MS = 300_000  # an empty unit is read again after this time: the process that put a job there may have ended
RECHECK_AGAIN_MS = 10_000  # the time until a job is reconciled again if the table refused


@dataclass(slots=True)
class Overflow:
    """One dispatcher of one unit of the overflow. `run` is its only entry point."""

    lease: UnitLease
    publisher: Publisher = field(init=False)
    _read_again_at: int = 0
    _rechecked_at: int = 0
    _seen_at: int = 0  # the last time that a job was there
    _through: int | None = None  # the last read left out the jobs due later than this instant; None: it left out none
    _out: dict[str, tuple[DueEntry, int]] = field(
        default_factory=dict
    )  # by mark: entries sent and still there at the last read, and when they were sent (ms)

    def __post_init__(self) -> None:
        self.publisher = Publisher(self.lease, 0, self._progress)

    @property
    def ports(self) -> Ports:
        return self.lease.ports

    def run(self) -> DispatchResult:
        self._seen_at = self.ports.clock.now()
        while self._hand_out_all():
            if self._leave():
                break
        self.publisher.flow.close()
        return self.publisher.result

    def _hand_out_all(self) -> bool:
        """Publish jobs until none has been there for a while. False: this dispatcher lost or left the unit."""
        clock, publisher = self.ports.clock, self.publisher
        while clock.now() - self._seen_at < EMPTY_MS:
            now = clock.now()
            if not publisher.keep():
                return False
            if not publisher.stays(now):
                publisher.leave(now)
                return False
            published = publisher.go_on(now)  # before each read, so that a long read never delays all jobs
            if published:
                sent_at = clock.now()
                self._out |= {entry.mark: (entry, sent_at) for entry in published}
            elif now >= self._read_again_at:
                self._read()
            elif now - self._rechecked_at >= READ_MS:
                self._recheck()
            elif published is None:
                clock.sleep_until(max(min([*publisher.wakes(), self.lease.renew_at, self._read_again_at]), now + 1))
            if clock.now() >= self._read_again_at + READ_MS * READ_PAUSE:
                self._read()  # publishing never ends under a flood
        return True

    def _leave(self) -> bool:
        """Release the lease and read again: a process that put a job here in between found the lease taken. False: continue."""
        clock = self.ports.clock
        if not self.lease.leave(clock.now() + IDLE_MS, progress=0):
            return True
        clock.sleep_until(clock.now() + READ_MS)
        if not any(slot_pages.pages(self.lease.unit, self.ports.jobs, lambda: None)):
            return True
        if not self.lease.renew(epoch=self.lease.unit.epoch + 1):
            return True
        self._seen_at = clock.now()
        return False

    def _read(self) -> None:
        """Read the slots and plan new jobs. Thousands of jobs may wait here for minutes, so most are planned or waiting already."""
        publisher, clock = self.publisher, self.ports.clock
        began = clock.now()
        found = slot_pages.read(publisher.unit, self.ports.jobs, self.lease.beat)
        ended = clock.now()
        self._read_again_at = ended + max(READ_MS, READ_PAUSE * (ended - began))
        if found.entries:
            self._seen_at = ended
        marks = {*map(mark, found.entries)}
        self._through = found.through
        for of in self._out.keys() - marks:
            if not self._is_beyond(self._out[of][0]):
                del self._out[of]
        unsent = marks - publisher.sent
        planned = publisher.planned_marks()
        if unsent == planned:
            return
        publisher.keep_planned(unsent, self._is_beyond)
        if new := unsent - planned:
            publisher.plan([entry for entry in found.entries if entry.mark in new])

    def _is_beyond(self, entry: DueEntry) -> bool:
        """Whether the last read may have left out this entry."""
        return self._through is not None and entry.due_at > self._through

    def _recheck(self) -> None:
        """Reconcile jobs sent long ago that are still there: each one runs long, or its message was lost. They move to a minute's slots."""
        now = self._rechecked_at = self.ports.clock.now()
        old = [entry for entry, at in self._out.values() if at <= now - leftover.RECHECK_AFTER][: leftover.PIECE]
        if not old:
            return
        recheck(old, self.ports, now=now, paused=self.publisher.watch.paused)
        again = now - leftover.RECHECK_AFTER + RECHECK_AGAIN_MS
        self._out |= {entry.mark: (entry, again) for entry in old}

    def _progress(self) -> int:
        """Return the due time (ms) of the oldest job not sent yet, or 0; the lag of the overflow is measured from it."""
        return min(self.publisher.first_dues(), default=0)


def unit_of(slot: str, shards: int) -> Unit:
    """The unit of the overflow to which a slot belongs, not leased yet; `shards` is the number of shards."""
    part = int(slot.rpartition("#")[2]) // WIDTH
    return Unit(UnitKey(slots.OVERFLOW, part), part * WIDTH, min((part + 1) * WIDTH, max(shards, part * WIDTH + 1)) - 1)


def open_unit(unit: Unit, ports: Ports, now: int) -> None:
    """Create a unit of the overflow. A process does this before it puts jobs there: else no tick would send its work.

    Idempotent. Raises Unavailable.
    """
    ports.ledger.open_unit(replace(unit, opened_at=now, next_at=now + IDLE_MS))


def overflow(lease: UnitLease) -> DispatchResult:
    """Dispatch a unit of the overflow that is leased to the caller; the same contract as `dispatch`."""
    unit = lease.unit
    last = unit_of(unit.slots[0], lease.ports.rules.shards).last_shard
    if last > unit.last_shard:  # the shards have grown
        lease.change(last_shard=last)
    return Overflow(lease).run()
