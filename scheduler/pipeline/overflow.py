"""Dispatch the overflow: slots that are always open, for jobs due too soon for any minute whose owners exceed their direct share.

This works like the dispatch of a minute, with the same window. But new jobs keep arriving: the dispatcher reads the slots repeatedly, and
reconciles jobs that it sent long ago and that are still there. If it takes long to read them whole, it reads the new jobs in between.

It ends when no job has arrived for a while, and looks again with growing distance, for the index may lag. A process marks the unit as
wanted before it puts a job there, and sends its work item then; if it ends before, the next tick sends it. The shards of the overflow
are divided into units of `WIDTH` shards, so that several dispatchers share a flood.
"""

from dataclasses import dataclass, field, replace

from scheduler.model import slots
from scheduler.model.job import DueEntry, Unit, UnitKey
from scheduler.pipeline import leftover
from scheduler.pipeline.publisher import DispatchResult, Publisher
from scheduler.pipeline.reconcile import recheck
from scheduler.pipeline.slot_pages import SlotReader
from scheduler.pipeline.unit_lease import UnitLease
from scheduler.storage.ports import Ports

WIDTH = 8  # shards of one unit
READ_MS = 1_000  # from the end of a read to the next one, at least ...
READ_PAUSE = 3  # ... and this number of times as long as the read took: most of the time is for publishing
WHOLE_PAUSE = 5  # the same for a read of all jobs
NEW_MS, OLDEST_MS = 1_000, 20_000  # jobs are new that are due this long before the last read, or later: the index lags, puts take time
NEAR_MS = 5_000  # jobs due later than this from now are left to the next read of all jobs, or to a later one of new jobs
EMPTY_MS = 3_000  # the dispatcher stays this long after the last job was there: the next job then needs no start
LOOK_MS = 2_000  # an empty unit is read again after this time, then after twice as long each time ...
IDLE_MS = 3_600_000  # ... up to this
RECHECK_AGAIN_MS = 10_000  # the time until a job is reconciled again if the table refused


@dataclass(slots=True)
class Overflow:
    """One dispatcher of one unit of the overflow. `run` is its only entry point."""

    lease: UnitLease
    publisher: Publisher = field(init=False)
    _read_at: int = 0  # when to read on
    _whole_at: int = 0  # when to read all jobs next
    _new_at: int = 0  # when to read the new jobs next, ...
    _new_from: int = 0  # ... from about which due time on
    _new_ms: int = OLDEST_MS
    _reads_all: bool = False  # a pass of all jobs goes on
    _reads_new: bool = False  # a pass of the new jobs goes on, perhaps in the middle of another one
    _rechecked_at: int = 0
    _seen_at: int = 0  # the last time that a job was there
    _unseen: set[str] = field(default_factory=set)  # marks of known entries that a read of all jobs has not come across
    _out: dict[str, tuple[DueEntry, int]] = field(
        default_factory=dict
    )  # by mark: entries sent and still there at the last read of all jobs, and when they were sent (ms)

    def __post_init__(self) -> None:
        self.publisher = Publisher(self.lease, 0, self._progress)
        self.reader.wanted = self._seen

    @property
    def reader(self) -> SlotReader:
        return self.publisher.reader

    @property
    def ports(self) -> Ports:
        return self.lease.ports

    def run(self) -> DispatchResult:
        now = self.ports.clock.now()
        self._seen_at = self.lease.unit.handed_out_at or now  # no process wants it: this is one look
        if self._hand_out_all():
            self._leave()
        self.publisher.flow.close()
        return self.publisher.result

    def _hand_out_all(self) -> bool:
        """Publish jobs until none has been there for a while. False: this dispatcher lost or left the unit."""
        clock, publisher = self.ports.clock, self.publisher
        while not self._whole_at or clock.now() - self._seen_at < EMPTY_MS:
            now = clock.now()
            if not publisher.keep():
                return False
            if not publisher.stays(now):
                self.lease.leave(now, progress=self._progress(), handed_out_at=None)
                return False
            published = publisher.go_on(now)  # before each read, so that a long read never delays all jobs
            if published:
                sent_at = clock.now()
                self._out |= {entry.mark: (entry, sent_at) for entry in published}
            elif now >= self._read_at:
                self._read()
            elif now - self._rechecked_at >= READ_MS:
                self._recheck()
            elif published is None:
                clock.sleep_until(max(min([*publisher.wakes(), self.lease.renew_at, self._read_at]), now + 1))
            if clock.now() >= self._read_at + READ_MS * READ_PAUSE:
                self._read()  # publishing never ends under a flood
        return True

    def _leave(self) -> None:
        """Release the lease, and look again later: a process that put a job here may have found it taken, or the index lags."""
        now = self.ports.clock.now()
        quiet = now - self._seen_at
        self.lease.leave(now + min(max(quiet - READ_MS, LOOK_MS), IDLE_MS), progress=0, handed_out_at=self._seen_at)

    def _read(self) -> None:
        """Read the next piece of the slots, and plan its new jobs."""
        reader, clock = self.reader, self.ports.clock
        if clock.now() >= self._new_at and not self._reads_new:
            self._begin(clock.now())
        before = reader.passes
        if new := reader.read():
            self.publisher.plan(new)
        if reader.passes < before:
            self._ended(clock.now())
        self._read_at = min(self._new_at, reader.next_at() or self._new_at) if reader.passes else self._new_at
        if self._out or reader.has_missed or self.publisher.planned or len(self.publisher.flow):
            self._seen_at = clock.now()

    def _begin(self, now: int) -> None:
        """Begin to read all jobs; only the new ones if all are being read, or if the last read of all took long."""
        since, self._new_from = self._new_from - self._new_ms, now
        if not self.reader.goes_on and now >= self._whole_at:
            self._reads_all, self._new_at = True, now + READ_MS
            self._unseen = self._out.keys() | self.publisher.planned_marks()
            self.reader.begin()
        elif not self.reader.goes_on and self.reader.refill():
            self._new_at = now + READ_MS
        else:
            self._reads_new = True
            self.reader.begin(since, until=now + NEAR_MS, only=(), is_beside=True)

    def _ended(self, now: int) -> None:
        """Determine when to read next, after the end of a pass."""
        took = self.reader.took
        self._new_at = now + max(READ_MS, READ_PAUSE * took)
        if self._reads_new:
            self._reads_new = False
            self._new_ms = max(self._new_ms // 2, NEW_MS) if took > READ_MS // 4 else min(self._new_ms * 2, OLDEST_MS)
        elif self._reads_all:
            self._reads_all = False
            self._forget()
            self._whole_at = now + max(READ_MS, WHOLE_PAUSE * took)
            self._new_at = now + READ_MS

    def _seen(self, page: list[DueEntry]) -> list[DueEntry]:
        if page:
            self._seen_at = self.ports.clock.now()
            self._unseen.difference_update([entry.mark for entry in page])
        return page

    def _forget(self) -> None:
        """Forget the known jobs that have left the slots."""
        for gone in self._unseen & self._out.keys():
            del self._out[gone]
        self.publisher.forget(self._unseen)
        self._unseen = set()

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
    """Create a unit of the overflow that is wanted. Idempotent. Raises Unavailable."""
    ports.ledger.open_unit(replace(unit, opened_at=now, next_at=now))


def want(unit: Unit, ports: Ports, now: int) -> bool:
    """Mark a unit of the overflow as wanted, unless a dispatcher has it; return whether one has.

    A process does this before it puts jobs there: else no tick would send its work. Raises Unavailable.
    """
    found = ports.ledger.unit(unit.key)
    if found is None:
        open_unit(unit, ports, now)
    elif found.lease_until > now:
        return True
    elif found.handed_out_at is not None or found.next_at > now:
        ports.ledger.change_unit(found, replace(found, next_at=now, handed_out_at=None))
    return False


def overflow(lease: UnitLease) -> DispatchResult:
    """Dispatch a unit of the overflow that is leased to the caller; the same contract as `dispatch`."""
    unit = lease.unit
    last = unit_of(unit.slots[0], lease.ports.rules.shards).last_shard
    if last > unit.last_shard:  # the shards have grown
        lease.change(last_shard=last)
    return Overflow(lease).run()
