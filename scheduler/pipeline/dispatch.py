"""Dispatch one unit: read its slots, publish every job before it is due, read the slots again, and mark the unit done.

A few jobs are published at once, long ahead: their executors hide the messages until shortly before each instant, which costs less than
a dispatcher for each of them. Many jobs are sent just before they are due. If more jobs are due than a lane can take, the dispatcher
keeps the rest until the lane has room (`sharing.window`). If no job is due for a while, it stores its progress and ends; the unit's
message starts the next dispatcher in time.

A dispatcher writes no job. Its repeated, late or missing messages do no harm: executors claim jobs by fence, and reconciling finds
every job that is still in the index.
"""

import itertools
import logging
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from scheduler.model import slots
from scheduler.model.job import DueEntry, Lane, Unit, UnitKey
from scheduler.model.work import WorkItem
from scheduler.pipeline import leftover, step_sharing
from scheduler.pipeline.publisher import REFUSED_MS, Publisher
from scheduler.pipeline.publishing import DispatchResult
from scheduler.pipeline.slot_pages import SlotReader
from scheduler.pipeline.step_sharing import SPLIT_PARTS
from scheduler.pipeline.unit_lease import LeaseLost, UnitLease

SPARSE = 200  # a dispatcher with at most this number of jobs publishes them at once: docs/internals/cost-model.md shows what is cheaper
PARK_MS = 10_000  # a dispatcher without anything to do for longer than this ends ...
WAKE_MS = 2_000  # ... and the next one starts this long before the next job is sent
IDLE_MS = 1_000  # a dispatcher without any job to publish ends even if it has something to do this soon
SPLIT = 20_000  # a unit with more jobs than this is split: one dispatcher on a whole core takes about four seconds for them
CLOSE_AFTER_MS = 2_000  # a unit is closed this long after its minute at the earliest
MEASURED = 4  # a slot with more than this many times `SPLIT` entries is not counted further
BARRED_MS = 5_000, 30_000  # bounds of the pause while all waiting jobs are of users with as many long jobs as they may have

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Dispatch:
    """One dispatcher of one unit. `run` is its only entry point."""

    lease: UnitLease
    start: int = field(init=False)  # of the minute (ms)
    publisher: Publisher = field(init=False)
    _read_at: int = 0
    _behind: dict[Lane, bool] = field(default_factory=dict)  # lanes with too many messages, as the pass found them
    _reread: bool = False  # the slots have been read at the start of the minute, or later

    def __post_init__(self) -> None:
        self.start = slots.start_of(self.lease.unit.key.minute)
        self.publisher = Publisher(self.lease, self.start, self._progress)
        self.reader.select = self._select

    @property
    def reader(self) -> SlotReader:
        return self.publisher.reader

    def run(self) -> DispatchResult:
        """Publish the due jobs. The leased unit then has the time of its next step."""
        publisher, is_first = self.publisher, not self.lease.unit.progress and not self.lease.unit.early
        self._reread = publisher.ports.clock.now() >= self.start
        entries = self._read()
        if is_first and (self.reader.is_behind or len(entries) > SPLIT) and self._split():
            entries = self._read()
        self._plan(entries)
        if not self._publish_all():
            publisher.flow.close()
            return publisher.result
        publisher.result.left_paused = len(publisher.paused_entries) + len(publisher.flow)
        publisher.result.handed_out = self._hand_out()
        return publisher.result

    def _is_barred(self, now: int, end: int) -> bool:
        """Whether the minute is over, and only users wait here whose long jobs must end first."""
        publisher = self.publisher
        return now >= end and not publisher.planned and not self.reader.goes_on and publisher.flow.only_barred()

    def _plan(self, entries: Sequence[DueEntry]) -> None:
        """Plan the entries that have not been published, at once if they are few."""
        if not entries and self.reader.is_behind:
            return
        new = self._not_early(entries)
        self.publisher.departures.at_once = self._is_sparse(new)
        self.publisher.plan(new)

    def _is_sparse(self, new: Sequence[DueEntry]) -> bool:
        """Whether these entries, and those that wait here, are few, fit into their lanes, and are no crowd.

        Otherwise users get fair shares of the lanes, and crowds leave in packs.
        """
        if self.reader.is_behind or len(new) > SPARSE or len(entries := [*new, *self.publisher.waiting()]) > SPARSE:
            return False
        rules, share = self.publisher.ports.rules, self.publisher.flow.share
        if self.publisher.departures.has_crowd(entries):
            return False
        return all(count <= (rules.window(lane) or SPARSE) * share for lane, count in Counter(entry.lane for entry in entries).items())

    def _not_early(self, entries: Sequence[DueEntry]) -> Sequence[DueEntry]:
        """Leave out the entries that a dispatcher before this one published early."""
        early = set(self.publisher.unit.early)
        return [entry for entry in entries if _digest(entry.mark) not in early] if early else entries

    def _early(self) -> tuple[int, ...]:
        """Return the digests of the published entries, if they are few: the next dispatcher of the unit does not publish them again."""
        known, sent = self.publisher.unit.early, self.publisher.sent  # no entry of `sent` waits for room when a dispatcher ends
        digests = {*known, *map(_digest, sent)} if len(sent) <= SPARSE else ()
        return tuple(sorted(digests)) if 0 < len(digests) <= SPARSE else known

    def _progress(self) -> int:
        """Return the progress to store. Until the slots are read at the start of the minute, earlier jobs may still be hidden."""
        return self.publisher.first_waiting() if self._reread and not self.reader.goes_on else self.publisher.unit.progress

    def _publish_all(self) -> bool:
        """Publish each job at its time; read the slots again at the start of the minute. False: this dispatcher lost or left the unit.

        Jobs of a paused lane are held back. They are published once the lane is resumed, or stay in their slots when the minute is over.
        """
        publisher, clock, end = self.publisher, self.publisher.ports.clock, self.start + slots.MINUTE
        while publisher.planned or not self._reread or self.reader.is_behind or publisher.may_go_out(end):
            now = clock.now()
            if not self._reread and now >= self.start:
                self._reread = True
                self._plan(self._read())
                continue
            if self.reader.is_due(now):
                self._plan(self.reader.read())
                continue
            if not publisher.keep():
                return False
            if publisher.refused and now >= end:  # the outage may last for hours, and other units need the workers, too
                publisher.leave(now + REFUSED_MS[-1])
                return False
            if (next_at := publisher.next_dispatcher_at(now)) is not None and (len(publisher.flow) or self.reader.is_behind):
                publisher.leave(next_at)
                return False
            if publisher.go_on(now) is not None:
                continue
            if self._is_barred(now, end):
                publisher.leave(now + min(max((now - end) // 4, BARRED_MS[0]), BARRED_MS[1]))
                return False
            if self.reader.goes_on:
                self._plan(self.reader.read())
                continue
            wake = max(min([*self._wakes(now, end), *([] if self._reread else [self.start])]), now + 1)
            if self._ends(now, wake):
                return False
            clock.sleep_until(min(wake, self.lease.renew_at))
        return True

    def _ends(self, now: int, wake: int) -> bool:
        """End if there is nothing to do until `wake`. If jobs may be sent then, the next dispatcher starts a little before."""
        publisher = self.publisher
        more = bool(publisher.planned or publisher.refused or len(publisher.flow) or self.reader.is_behind)
        forgets = not self._reread and len(publisher.sent) > max(SPARSE, 0)  # the next dispatcher would publish all of these again
        if forgets or wake - now < (PARK_MS if more else IDLE_MS):
            return False
        next_at = wake - WAKE_MS if more else wake
        self.lease.rest(next_at, publisher.watch.read_at if publisher.paused_entries else 0, progress=self._progress(), early=self._early())
        return True

    def _wakes(self, now: int, end: int) -> list[int]:
        """Return the instants (ms) at which there is something to do next. Jobs of paused lanes only wait: a resume wakes the unit."""
        found = self.publisher.wakes()
        if (next_at := self.reader.next_at()) is not None:
            found.append(next_at)
        return found or [end]

    def _read(self) -> list[DueEntry]:
        """Begin to read the slots; return the first entries to publish."""
        self._read_at, self._behind = self.publisher.ports.clock.now(), {}
        self.reader.begin(0 if self._reread else self._own)
        return self.reader.read()

    @property
    def _own(self) -> int:
        return max(self.start, self.publisher.unit.progress)

    def _select(self, entries: list[DueEntry]) -> list[DueEntry]:
        """Return the entries to publish.

        From the start of the minute on these include jobs due before it: each was enqueued directly, and its message may be lost.
        """
        own = self._own
        if self._read_at >= self.start + slots.MINUTE:  # the messages of jobs that were enqueued directly may be lost
            return [entry for entry in entries if not self.start <= entry.due_at < own]
        return [entry for entry in entries if entry.due_at >= own or self._is_lost(entry, self._behind)]

    def _is_lost(self, entry: DueEntry, behind: dict[Lane, bool]) -> bool:
        """Whether the message of a job due before the minute may be lost: it does not just wait in its lane."""
        ports = self.publisher.ports
        if entry.due_at >= self.start:
            return False
        if entry.lane not in behind:
            behind[entry.lane] = leftover.lane_is_behind(ports.lanes.backlog(entry.lane), entry.lane, ports.rules)
        return not behind[entry.lane]

    def _split(self) -> bool:
        """Give parts of a unit with many jobs to other dispatchers. Returns whether it was split. Raises LeaseLost."""
        ports, unit = self.publisher.ports, self.publisher.unit
        loads = ports.jobs.tally(unit.slots, SPLIT * MEASURED)
        bounds = [unit.first_shard + part for part in parts_of(loads, most=step_sharing.most_parts(unit, ports))]
        if len(bounds) <= 2:
            return False
        now = ports.clock.now()
        others = [
            Unit(UnitKey(unit.key.minute, SPLIT_PARTS + low), low, high - 1, opened_at=now, next_at=now)
            for low, high in itertools.pairwise(bounds[1:])
        ]
        for other in others:
            ports.jobs.put_canary(other.key, other.slots[0], slots.start_of(other.key.minute))
            ports.ledger.open_unit(other)
        ports.work.send([WorkItem.of_unit(other.key) for other in others])
        log.info("a unit was split", extra={"unit": unit.key, "parts": len(others) + 1})
        if not self.lease.change(last_shard=bounds[1] - 1):
            raise LeaseLost
        self.publisher.flow.share = self.publisher.share
        return True

    def _hand_out(self) -> bool:
        now, publisher = self.publisher.ports.clock.now(), self.publisher
        resting = publisher.watch.read_at if publisher.result.left_paused or self.reader.has_missed else 0
        early = self._early() if now < self.start + slots.MINUTE else ()
        return self.lease.rest(max(now, self.start + slots.MINUTE) + CLOSE_AFTER_MS, resting, handed_out_at=now, early=early)


def parts_of(loads: Sequence[int], *, most: int) -> list[int]:
    """Return the bounds of the ranges into which slots with these numbers of entries are split: about `SPLIT` entries in each."""
    total = sum(loads)
    count, before, bounds, part = min(-(-total // SPLIT), most), 0, [0], 0
    for slot, load in enumerate(loads):
        here = (2 * before + load) * count // max(2 * total, 1)  # the part in which the middle of the slot lies
        if here > part and slot:
            bounds.append(slot)
        part, before = max(part, here), before + load
    return [*bounds, len(loads)]


def _digest(mark: str) -> int:
    return zlib.crc32(mark.encode())


def dispatch(lease: UnitLease) -> DispatchResult:
    """Dispatch a unit that is leased to the caller.

    Raises Unavailable if a service refuses, and LeaseLost: another dispatcher follows the lease.
    """
    return Dispatch(lease).run()
