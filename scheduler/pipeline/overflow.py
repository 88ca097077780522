"""Dispatch the overflow: slots that are always open, for jobs due too soon for any minute whose owners exceed their direct share.

This works like the dispatch of a minute, with the same window. But new jobs keep arriving: the dispatcher reads the slots repeatedly, and
reconciles jobs that it sent long ago and that are still there. If it takes long to read them whole, it reads the new jobs in between.

It ends when no job has arrived for a while, and looks again with growing distance, for the index may lag. A process marks the unit as
wanted before it puts a job there, and sends its work item then; if it ends before, the next tick sends it. The shards of the overflow
are divided into units of `WIDTH` shards, so that several dispatchers share a flood. Entries of paused lanes leave the overflow for the
waiting rooms of their lanes.

The waiting rooms are dispatched in the same way, but only after the resume of their lanes: see `waiting_room`. The room of a disabled
user is the user's own overflow: a process marks its unit before it puts a job there, and the unit rests while the user is disabled. Once
the user is not disabled any more and the unit stays empty, it is closed like a unit of a minute: such rooms are many.
"""

from dataclasses import dataclass, field

from scheduler.admission.owner_gate import BarredOwners
from scheduler.model import slots
from scheduler.model.job import DueEntry, Lane, LaneState, LaterCheck
from scheduler.pipeline import leftover, waiting_room
from scheduler.pipeline.overflow_units import unit_of
from scheduler.pipeline.publisher import Publisher
from scheduler.pipeline.publishing import DispatchResult
from scheduler.pipeline.reconcile import recheck
from scheduler.pipeline.slot_pages import SlotReader
from scheduler.pipeline.unit_lease import UnitLease
from scheduler.storage.ports import Ports

READ_MS = 1_000  # from the end of a read to the next one, at least ...
READ_PAUSE = 3  # ... and this number of times as long as the read took: most of the time is for publishing
WHOLE_PAUSE = 5  # the same for a read of all jobs
NEW_MS, OLDEST_MS = 1_000, 20_000  # jobs are new that are due this long before the last read, or later: the index lags, puts take time
NEAR_MS = 5_000  # jobs due later than this from now are left to the next read of all jobs, or to a later one of new jobs
EMPTY_MS = 3_000  # the dispatcher stays this long after the last job was there: the next job then needs no start
READ_AGAIN_MS = 2_000  # an empty unit is read again after this time, then after twice as long each time ...
IDLE_MS = 3_600_000  # ... up to this
BARRED_MS = 10_000  # a unit is read again after this time in which wait only jobs of users with as many long jobs as they may have
RECHECK_AGAIN_MS = 10_000  # the time until a job is reconciled again if the table refused


@dataclass(slots=True)
class Overflow:
    """One dispatcher of one unit of the overflow, or of a waiting room. `run` is its only entry point."""

    lease: UnitLease
    publisher: Publisher = field(init=False)
    room: Lane | None = field(init=False)  # the lane of the waiting room
    owner: str | None = field(init=False)  # the user of the waiting room
    _owners: BarredOwners | None = None  # in the room of a user
    _is_proved: bool = False  # the index showed, before the slots were read, what was written before the last look
    _state: LaneState | None = None  # of that lane when this dispatcher began; None: unknown, or it was never paused
    _moved_at: int = 0  # when entries of paused lanes were last moved to waiting rooms
    _began_at: int = 0
    _sent_at: int = 0  # when a job was last published
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
        lane = slots.lane_of_room(self.lease.unit.key.minute)
        self.room = None if lane is None else Lane(lane)
        self.owner = slots.owner_of_room(self.lease.unit.key.minute)
        self.reader.select = self._seen
        self.reader.paused = tuple  # entries of paused lanes are read like others: they leave for the waiting rooms

    @property
    def reader(self) -> SlotReader:
        return self.publisher.reader

    @property
    def ports(self) -> Ports:
        return self.lease.ports

    def run(self) -> DispatchResult:
        now = self._began_at = self.ports.clock.now()
        self._seen_at = self.lease.unit.handed_out_at or now  # no process wants it: this is one look
        if self.room is not None:
            self.publisher.watch.refresh()
            self._state = self._stored_state()
            if self.room in self.publisher.watch.paused:
                self._rest()
                return self.publisher.result
            self._seen_at = now - EMPTY_MS  # of an empty room the dispatcher leaves at once
            self._read()
        if self.owner is not None:
            self._owners = BarredOwners.read(self.ports)
            if self.owner in self._owners.refresh().disabled:
                self._rest()
                return self.publisher.result
            self._is_proved = self._prove()
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
            if (next_at := publisher.next_dispatcher_at(now)) is not None:
                self.lease.leave(next_at, progress=self._progress(), handed_out_at=None)
                return False
            if self._was_paused():
                self._rest()
                return False
            published = publisher.go_on(now)  # before each read, so that a long read never delays all jobs
            if published:
                sent_at = self._sent_at = clock.now()
                self._out |= {entry.mark: (entry, sent_at) for entry in published}
            elif self._make_wait(now):
                pass  # others may be due by now
            elif now >= self._read_at:
                self._read()
            elif now - self._rechecked_at >= READ_MS:
                self._recheck()
            elif published is None and self._is_barred(now):
                self.lease.leave(now + BARRED_MS, progress=self._progress(), handed_out_at=None)
                return False
            elif published is None:
                clock.sleep_until(max(min([*publisher.wakes(), self.lease.renew_at, self._read_at]), now + 1))
            if clock.now() >= self._read_at + READ_MS * READ_PAUSE:
                self._read()  # publishing never ends under a flood
        return True

    def _is_barred(self, now: int) -> bool:
        """Whether only users wait here whose long jobs must end first, and nobody else's jobs were there for a while."""
        publisher = self.publisher
        is_quiet = now - max(self._sent_at, self._began_at) >= EMPTY_MS and not publisher.planned and not self.reader.goes_on
        return is_quiet and publisher.flow.only_barred()

    def _leave(self) -> None:
        """Release the lease, and look again later: a process that put a job here may have found it taken, or the index lags."""
        if self.room is not None:
            self._leave_room()
            return
        now = self.ports.clock.now()
        quiet = now - self._seen_at
        if self._is_proved and quiet >= leftover.CHECKS_MS[0] and self._close(now):
            return
        self.lease.leave(now + min(max(quiet - READ_MS, READ_AGAIN_MS), IDLE_MS), progress=0, handed_out_at=self._seen_at)

    def _leave_room(self) -> None:
        """Leave an empty waiting room, and look again with growing distance: jobs may still arrive, or the index may show them late."""
        now, resumed_at = self.ports.clock.now(), (self._state.resumed_at if self._state else None) or 0
        since = now - resumed_at
        if abs(since) < leftover.SKEW_MS:
            self.lease.leave(now + READ_MS, progress=0)
        else:
            following = next((check_ms for check_ms in leftover.CHECKS_MS if since < check_ms), leftover.REST_MS)
            self.lease.leave(now + following, progress=0, handed_out_at=max(now, resumed_at + leftover.SKEW_MS))

    def _prove(self) -> bool:
        """Whether the index shows the canary that an earlier look has put into this room; if not, put one."""
        unit, jobs = self.lease.unit, self.ports.jobs
        if unit.handed_out_at is None:
            return False
        if jobs.canary_visible(unit.key, unit.slots[0]):
            return True
        jobs.put_canary(unit.key, unit.slots[0], self.ports.clock.now())
        return False

    def _close(self, now: int) -> bool:
        """Close the unit of a user's waiting room; a process that puts a job there opens it again. False: it is wanted again."""
        unit = self.lease.unit
        closed = self.ports.ledger.close_unit(unit, now, LaterCheck(unit, 0, now + leftover.CHECKS_MS[0]))
        if closed:
            self.ports.jobs.drop_canary(unit.key)
        return closed

    def _rest(self) -> None:
        """Leave a waiting room whose jobs must wait, or had to. If they need not any more, the next step begins at once and publishes all.

        The state is read after the lease was released: a resume before that found the unit leased, and sent no work.
        """
        clock, watch = self.ports.clock, self.publisher.watch
        if not self.lease.leave(clock.now() + leftover.REST_MS, progress=0, handed_out_at=None):
            return
        if self._owners is not None:
            is_open = self.owner not in self._owners.refresh(0).disabled
        else:
            watch.refresh(at_once=True)
            is_open = self.room not in watch.paused
        if is_open:
            self.lease.leave(clock.now())

    def _was_paused(self) -> bool:
        """Whether the lane of this waiting room was paused since the dispatcher began: executors may have dropped what it has published.

        Jobs of a user who is disabled come back under another fence, so only the present state of the user matters.
        """
        if self._owners is not None:
            return self.owner in self._owners.refresh(READ_AGAIN_MS).disabled
        if self.room is None:
            return False
        self.publisher.watch.refresh()
        return self._stored_state() != self._state

    def _stored_state(self) -> LaneState | None:
        return (self.publisher.watch.known or {}).get(self.room) if self.room is not None else None

    def _make_wait(self, now: int) -> bool:
        """Move some of the entries of paused lanes to the waiting rooms. False: there are none, or the table refused them just now."""
        publisher = self.publisher
        if now < self._moved_at + READ_MS or not (entries := publisher.take_paused(leftover.PIECE)):
            return False
        moved = waiting_room.enter({entry.key: entry.fence for entry in entries}, self.ports)
        publisher.watch.refresh(at_once=True)  # a lane that was resumed in between: its entries are published here
        gone = {entry.mark for entry in entries if entry.key in moved and entry.lane in publisher.watch.paused}
        publisher.sent |= gone
        stay = [entry for entry in entries if entry.mark not in gone]
        publisher.sent -= {entry.mark for entry in stay}
        if stay:
            publisher.plan(stay)
            self._moved_at = now
        return True

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
        """Return the due time (ms) of the oldest job not sent yet, or 0; the lag of the overflow is measured from it.

        Jobs in the room of a user had to wait until now.
        """
        oldest = min(self.publisher.first_dues(), default=0)
        return max(oldest, self._began_at) if oldest and self.owner is not None else oldest


def overflow(lease: UnitLease) -> DispatchResult:
    """Dispatch a unit of the overflow that is leased to the caller; the same contract as `dispatch`."""
    unit = lease.unit
    last = unit_of(unit.slots[0], lease.ports.rules.shards).last_shard
    if last > unit.last_shard:  # the shards have grown
        lease.change(last_shard=last)
    return Overflow(lease).run()
