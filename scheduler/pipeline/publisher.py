"""The publisher of one dispatcher: the planned jobs of its unit and the jobs that wait for room in their lane.

A dispatcher writes no job. Its repeated, late or missing messages do no harm: executors claim jobs by fence, and reconciling finds
every job that is still in the index.
"""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter

from scheduler.admission.lane_state import REFRESH_MS, LaneStateCache
from scheduler.model.job import DueEntry, JobKey, Lane, Unit
from scheduler.pipeline import step_sharing
from scheduler.pipeline.departures import Departures, Planned
from scheduler.pipeline.publishing import DispatchResult, Publishing
from scheduler.pipeline.slot_pages import SlotReader
from scheduler.pipeline.unit_lease import UnitLease
from scheduler.sharing.window import Flow
from scheduler.storage.ports import Ports

STAY_MS = 480_000  # a dispatcher leaves waiting jobs to a new one after this time: Lambda stops it at ten minutes
GATHER_MS = 100  # jobs that leave within this time go out together: batches are fuller, and jobs wait a little longer in executors
CALL = 10  # messages of one publish call
CHUNK = 1_000  # jobs published between two readings of the clock
REFUSED_MS = (1_000, 2_000, 4_000)  # the pause before jobs are published again that the topic refused, by the refusals in a row

mark: Callable[[DueEntry], str] = attrgetter("mark")


@dataclass(slots=True)
class Publisher:
    """Publishes the entries of one unit, each at its time.

    Only jobs due at `since` (ms) or later count as released by this unit. `progress()` returns the instant up to which every job of the
    unit is published.
    """

    lease: UnitLease
    since: int
    progress: Callable[[], int]
    result: DispatchResult = field(default_factory=DispatchResult)
    planned: list[Planned] = field(default_factory=list)  # in order of the time at which they leave
    sent: set[str] = field(default_factory=set)  # marks of the entries that were published, or wait in the flow
    paused_entries: list[Planned] = field(default_factory=list)  # entries that should leave now, but their lane is paused
    refused: list[Planned] = field(default_factory=list)  # entries that the topic refused; all leave again at `_again_at`
    ports: Ports = field(init=False)
    watch: LaneStateCache = field(init=False)
    reader: SlotReader = field(init=False)
    flow: Flow = field(init=False)
    departures: Departures = field(init=False)
    publishing: Publishing = field(init=False)
    _unread: list[tuple[Lane, int]] = field(default_factory=list)  # lane and due time of the jobs released before the slots were read whole
    _again_at: int = 0
    _refusals: int = 0  # in a row
    _began_at: int = field(init=False)
    _step_check_at: int = field(init=False)  # when to check next whether another dispatcher needs the step

    def __post_init__(self) -> None:
        # As long as the lane states were never read, the dispatcher publishes all jobs. A ledger that refuses then starts nothing that
        # is paused: executors check the pause themselves before a job starts. Waiting for the ledger would make every job late.
        self.ports = self.lease.ports
        self.watch = LaneStateCache(self.ports)
        self._began_at = self.ports.clock.now()
        self._step_check_at = self._began_at + step_sharing.CHECK_MS
        self.reader = SlotReader(self.lease, self.sent, self.waiting, lambda: self.watch.paused)
        self.flow = Flow(
            self.unit.key, self._outstanding, self._backlog, self.ports, lambda lane: self.watch.pins.get(lane, {}), self.share
        )
        self.departures = Departures(self.ports, self.flow)
        self.publishing = Publishing(self.ports, self.departures, self.result)

    @property
    def unit(self) -> Unit:
        """The unit as this dispatcher last wrote it."""
        return self.lease.unit

    @property
    def share(self) -> float:
        """The unit's share of the shards."""
        return min(len(self.unit.slots) / self.ports.rules.shards, 1.0)

    def first_waiting(self) -> int:
        """Return the due time (ms) of the earliest job that is not published, at least the unit's progress so far."""
        return max(min(self.first_dues(), default=self.unit.progress), self.unit.progress)

    def first_dues(self) -> list[int]:
        """Return due times (ms) of jobs that are not published, the earliest among them; empty if all are."""
        planned = min((item.entry.due_at for item in self.planned), default=None)
        dues = [item.entry.due_at for item in [*self.paused_entries, *self.refused]] + self.flow.first_dues() + self.reader.first_dues()
        return dues if planned is None else [planned, *dues]

    def next_dispatcher_at(self, now: int) -> int | None:
        """Return when the unit needs its next dispatcher (ms) if this one must leave: its time is over, or another one needs its step."""
        if now < self._step_check_at:
            return None
        self._step_check_at = now + step_sharing.CHECK_MS
        if now >= self._began_at + STAY_MS:
            return now
        return now + step_sharing.PAUSE_MS if step_sharing.must_leave(self.unit, self.ports, now, self._began_at) else None

    def plan(self, entries: Sequence[DueEntry]) -> None:
        """Plan the entries not sent yet, with the ones planned, held back or refused before, by the time at which each must leave."""
        known = list(self._outside())
        self.paused_entries, self.refused = [], []
        merged = {entry.mark: entry for entry in [*known, *entries]}
        waiting = self.flow.order(sorted((entry for of, entry in merged.items() if of not in self.sent), key=attrgetter("due_at")))
        self.planned = self.departures.plan(waiting, self.ports.clock.now(), self.publishing.rate)

    def go_on(self, now: int) -> Sequence[DueEntry] | None:
        """Carry out the next due action; return the published entries. None: nothing is due."""
        if self.refused and now >= self._again_at:
            self.plan(())
        ready = self._ready_at(now)
        due_at = self.flow.next_at(self.watch.paused)
        if (ready or self.paused_entries or len(self.flow)) and self.watch.is_due():
            if self.watch.refresh():
                self.plan(())  # also plans the entries held back
            return ()
        if not ready and (due_at is None or due_at > now):
            return None
        self.planned = self.planned[len(ready) :]
        opened, before = self._open(ready), len(self.flow)
        self.sent.update(map(mark, opened))
        self.departures.publish(opened)
        released = self.flow.release(opened, self.watch.paused)
        if self.reader.unread_from() is not None:
            self._unread += [(entry.lane, entry.due_at) for entry in released]
        self.result.waited += max(len(self.flow) - before, 0)
        if released:
            self._keep_refused(released, self.publishing.publish(released))
        return released

    def _ready_at(self, now: int) -> Sequence[Planned]:
        """Return what to publish: all entries that must leave and, unless the first is of a pack, those that follow within `GATHER_MS`.

        The last call is left out if it is not full and none of its entries must leave yet.
        """
        planned = self.planned  # sorted by the time of leaving
        is_pack = bool(planned) and self.departures.is_step(planned[0].entry)
        near = planned[: min(bisect_right(planned, now if is_pack else now + GATHER_MS, key=attrgetter("leave")), CHUNK)]
        whole = len(near) - len(near) % CALL
        if whole < len(near) and near[whole].leave > now:
            return near[:whole]
        return near

    def wakes(self) -> list[int]:
        """Return the instants (ms) at which there is something to do next."""
        due_at = self.flow.next_at(self.watch.paused)
        checks = [self.watch.tried_at + REFRESH_MS] if len(self.flow) else []
        checks += [self._again_at] if self.refused else []
        return [*(item.leave for item in self.planned[:1]), *([] if due_at is None else [due_at]), *checks]

    def may_go_out(self, end: int) -> bool:
        """Return whether jobs wait for room in their lane, were refused, or are held back and a resume could release them.

        Held-back jobs are waited for until the lane states are read after `end`, the end of the minute.
        """
        if self.flow.next_at(self.watch.paused) is not None or self.refused:
            return True
        return bool(self.paused_entries or len(self.flow)) and self.watch.tried_at < end

    def waiting(self) -> list[DueEntry]:
        """Return all entries that have not been published, in no order."""
        return [*self.flow.waiting(), *self._outside()]

    def _outside(self) -> Iterator[DueEntry]:
        """Yield the entries that wait for their time, for a resume or for the topic."""
        return (item.entry for item in chain(self.paused_entries, self.refused, self.planned))

    def keep(self) -> bool:
        """Renew the lease in time and store the progress with it. False once another dispatcher has the unit."""
        return not self.lease.is_due() or self.lease.renew(progress=self.progress())

    def leave(self, next_at: int) -> None:
        """Store the progress and release the lease: another dispatcher continues at `next_at`."""
        self.lease.leave(next_at, resting=0, progress=self.progress())

    def planned_marks(self) -> set[str]:
        """Return the marks of the entries that are planned, held back or refused."""
        return set(map(mark, self._outside()))

    def forget(self, marks: Collection[str]) -> None:
        """Forget these entries if they are planned, held back or refused: their jobs are no longer in the slots."""

        def remaining(items: Sequence[Planned]) -> list[Planned]:
            return [item for item in items if item.entry.mark not in marks]

        self.planned, self.paused_entries, self.refused = remaining(self.planned), remaining(self.paused_entries), remaining(self.refused)

    def take_paused(self, most: int) -> list[DueEntry]:
        """Remove and return entries that should leave now, but whose lanes are paused; at most `most`."""
        taken, self.paused_entries = [item.entry for item in self.paused_entries[:most]], self.paused_entries[most:]
        return [*taken, *self.flow.take_paused(self.watch.paused, most - len(taken))]

    def _outstanding(self, lane: Lane, until: int) -> int:
        """Return how many jobs of the lane, due by `until`, are released and not finished.

        They are still in their slots, and neither wait here nor were left there by the reader. Until the reader has read all slots once,
        those count as unfinished that are due later than it has read.
        """
        beyond, unread_from = 0, self.reader.unread_from()
        if unread_from is None:
            self._unread.clear()
        else:
            beyond, until = sum([of is lane and due_at >= unread_from for of, due_at in self._unread]), min(until, unread_from - 1)
        if until < self.since:
            return beyond
        there = self.ports.jobs.count(self.unit.slots, lane, since=self.since, until=until)
        outside = sum([entry.lane is lane and self.since <= entry.due_at <= until for entry in self._outside()])
        return there - self.flow.count(lane, self.since, until) - outside - self.reader.count(lane, self.since, until) + beyond

    def _backlog(self, lane: Lane) -> int:
        """Return about how many jobs wait in the lane: its messages, as large as the last ones published here."""
        return round(self.ports.lanes.backlog(lane) * self.publishing.jobs_a_message.get(lane, 1.0))

    def _open(self, ready: Sequence[Planned]) -> list[DueEntry]:
        """Return the entries whose lanes are not paused; hold back the others."""
        paused = self.watch.paused
        self.paused_entries += [item for item in ready if item.entry.lane in paused]
        return [item.entry for item in ready if item.entry.lane not in paused]

    def _keep_refused(self, entries: Sequence[DueEntry], keys: Collection[JobKey]) -> None:
        """Keep these entries, out of the published ones, to publish them again."""
        if not keys:
            self._refusals = 0
            return
        self._again_at = self.ports.clock.now() + REFUSED_MS[min(self._refusals, len(REFUSED_MS) - 1)]
        self._refusals += 1
        again = [entry for entry in entries if entry.key in keys]
        self.sent.difference_update(map(mark, again))
        self.departures.take_back(again)
        self.refused += [Planned(self._again_at, entry) for entry in again]
