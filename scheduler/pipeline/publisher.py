"""The publisher of one dispatcher: the planned jobs of its unit, the jobs that wait for room in their lane, the publishing.

A dispatcher writes no job. Its repeated, late or missing messages do no harm: executors claim jobs by fence, and reconciling finds
every job that is still in the index.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter

from scheduler.admission.lane_state import LOOK_MS, LaneStateCache
from scheduler.model.errors import Unavailable
from scheduler.model.job import CANARY_OWNER, DueEntry, JobKey, Lane, Message, Unit
from scheduler.pipeline import bundles, lead, packs, turns
from scheduler.pipeline.latency import FRESH_MS
from scheduler.pipeline.slot_pages import SlotReader
from scheduler.pipeline.unit_lease import UnitLease
from scheduler.sharing.window import Flow
from scheduler.storage.ports import Ports

STAY_MS = 480_000  # a dispatcher leaves waiting jobs to a new one after this time: Lambda stops it at ten minutes
READY_FRESH_MS = 180_000  # an older report of pollers that are kept ready is ignored: `scale` reports every minute
GATHER_MS = 100  # jobs that leave within this time go out together: batches are fuller, and jobs wait a little longer in executors
CALL = 10  # messages of one publish call
CHUNK = 1_000  # jobs published between two readings of the clock
REFUSED_MS = (1_000, 2_000, 4_000)  # the pause before jobs are published again that the topic refused, by the refusals in a row
RATE = 0.5  # jobs a millisecond, until the first publish has been measured

Crowd = tuple[Lane, int]  # a lane, and the number of the span in which its jobs are due (`packs.second`)

mark: Callable[[DueEntry], str] = attrgetter("mark")


@dataclass(slots=True)
class DispatchResult:
    """The counts of one dispatcher. `handed_out` is False if it lost or never had the unit, parked it, or left it to another dispatcher."""

    published: int = 0
    canaries: int = 0  # those of the published jobs that are the scheduler's own
    refused: int = 0  # messages that the topic refused twice; they are sent again
    waited: int = 0  # jobs published late, since more were due than the lane could take
    held_back: int = 0  # jobs left to reconciling: their lane was paused to the end of the minute
    handed_out: bool = False


@dataclass(slots=True)
class Planned:
    leave: int
    entry: DueEntry


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
    held: list[Planned] = field(default_factory=list)  # entries that should leave now, but their lane is paused
    refused: list[Planned] = field(default_factory=list)  # entries that the topic refused; all leave again at `_again_at`
    at_once: bool = False  # entries leave now, however long ahead: an executor sends each on, delayed until shortly before its instant
    ports: Ports = field(init=False)
    watch: LaneStateCache = field(init=False)
    reader: SlotReader = field(init=False)
    flow: Flow = field(init=False)
    _crowds: Counter[Crowd] = field(default_factory=Counter)  # the number of jobs of each crowd, planned or published
    _gone: Counter[Crowd] = field(default_factory=Counter)  # the number of published jobs of each crowd
    _in_steps: set[Crowd] = field(default_factory=set)  # the crowds that leave pack by pack
    _ready: dict[Lane, int] = field(default_factory=dict)  # executors by the reports of `scale`, read when a crowd is published
    _each: dict[Lane, float] = field(default_factory=dict)  # jobs in a message, by the last publishing
    _leads: Mapping[Lane, int] = field(default_factory=dict)  # of early messages
    _unread: list[tuple[Lane, int]] = field(default_factory=list)  # lane and due time of the jobs released before the slots were read whole
    _rate: float = RATE
    _again_at: int = 0
    _refusals: int = 0  # in a row
    _began_at: int = field(init=False)
    _turn_at: int = field(init=False)  # when to check next whether another dispatcher needs the step

    def __post_init__(self) -> None:
        # As long as the lane states were never read, the dispatcher publishes all jobs. A ledger that refuses then starts nothing that
        # is paused: executors check the pause themselves before a job starts. Waiting for the ledger would make every job late.
        self.ports = self.lease.ports
        self.watch = LaneStateCache(self.ports)
        self._began_at = self.ports.clock.now()
        self._turn_at = self._began_at + turns.CHECK_MS
        self.reader = SlotReader(self.lease, self.sent, self.waiting, lambda: self.watch.paused)
        self.flow = Flow(
            self.unit.key, self._outstanding, self._backlog, self.ports, lambda lane: self.watch.pins.get(lane, {}), self.share
        )

    @property
    def unit(self) -> Unit:
        """The unit as this dispatcher last wrote it."""
        return self.lease.unit

    @property
    def share(self) -> float:
        """The unit's share of the shards."""
        return min(len(self.unit.slots) / self.ports.rules.shards, 1.0)

    @property
    def _usual_executors(self) -> float:
        """The executors of a quiet lane that are ready for the jobs of this unit: its share of them."""
        return self.ports.rules.ready_executors * self.flow.share

    def _kept_ready(self, lane: Lane) -> float:
        """The executors of the pollers that are kept ready for this unit's crowds of the lane; 0 if there are none."""
        if lane not in self._ready:
            try:
                self._ready[lane] = self.ports.ledger.ready(lane, self.ports.clock.now() - READY_FRESH_MS)
            except Unavailable:
                self._ready[lane] = 0
        return self._ready[lane] * self.flow.share

    def first_waiting(self) -> int:
        """Return the due time (ms) of the earliest job that is not published, at least the unit's progress so far."""
        return max(min(self.first_dues(), default=self.unit.progress), self.unit.progress)

    def first_dues(self) -> list[int]:
        """Return due times (ms) of jobs that are not published, the earliest among them; empty if all are."""
        planned = min((item.entry.due_at for item in self.planned), default=None)
        dues = [item.entry.due_at for item in [*self.held, *self.refused]] + self.flow.first_dues() + self.reader.first_dues()
        return dues if planned is None else [planned, *dues]

    def next_turn(self, now: int) -> int | None:
        """Return when the unit needs its next dispatcher (ms) if this one must leave: its time is over, or another one needs its step."""
        if now < self._turn_at:
            return None
        self._turn_at = now + turns.CHECK_MS
        if now >= self._began_at + STAY_MS:
            return now
        return now + turns.PAUSE_MS if turns.must_leave(self.unit, self.ports, now, self._began_at) else None

    def plan(self, entries: Sequence[DueEntry]) -> None:
        """Plan the entries not sent yet, with the ones planned, held back or refused before, by the time at which each must leave."""
        known = list(self._outside())
        self.held, self.refused = [], []
        merged = {entry.mark: entry for entry in [*known, *entries]}
        waiting = self.flow.order(sorted((entry for of, entry in merged.items() if of not in self.sent), key=attrgetter("due_at")))
        now = self.ports.clock.now()
        self._gone = Counter({crowd: jobs for crowd, jobs in self._gone.items() if crowd[1] >= packs.second(now)})
        self._crowds = self._gone + Counter([_crowd(entry) for entry in waiting])
        self._in_steps = set()
        if self.at_once:
            self._leads = self._delayed_leads(waiting)
            self.planned = [Planned(now, entry) for entry in waiting]
            return
        usual = self._usual_executors
        large = [crowd for crowd, jobs in self._crowds.items() if crowd[0] is not Lane.RETRY and packs.is_crowd(jobs, usual)]
        crowds = {crowd for crowd in large if packs.is_crowd(self._together(crowd), usual)}
        crowded = [entry for entry in waiting if _crowd(entry) in crowds] if crowds else []
        alone = [entry for entry in waiting if _crowd(entry) not in crowds] if crowds else waiting
        planned = self._plan_crowds(crowded) + self._plan_singly(alone)
        self.planned = sorted(planned, key=attrgetter("leave")) if crowded else planned

    def has_crowd(self, entries: Sequence[DueEntry]) -> bool:
        """Return whether a crowd is among these jobs, which leaves in packs."""
        crowds = Counter(_crowd(entry) for entry in entries if entry.lane is not Lane.RETRY)
        return any(packs.is_crowd(jobs, self._usual_executors) for jobs in crowds.values())

    def _together(self, crowd: Crowd) -> float:
        """Return how many jobs of a crowd leave ahead of their instant: no more than the lane's executors can start at once."""
        return min(self._crowds[crowd], self.flow.most_ahead(crowd[0]))

    def _plan_crowds(self, crowded: Sequence[DueEntry]) -> list[Planned]:
        """Plan the jobs of crowds, in order of their due times.

        Of packs that arrive together a poller takes up to ten, and other executors get none. So a crowd that needs no more packs than
        executors leaves pack by pack, each with the lead of the jobs that are left. A larger one leaves at once: an executor that has a
        pack takes no other before the instant.
        """
        usual = self._usual_executors
        together = {crowd: self._together(crowd) for crowd in {*map(_crowd, crowded)}}
        sizes = {crowd: packs.size(jobs, usual) for crowd, jobs in together.items()}
        leads = {crowd: self._crowd_lead(jobs) for crowd, jobs in together.items()}
        self._in_steps = {crowd for crowd, jobs in together.items() if jobs <= packs.MOST * max(usual, 1)}
        gone, leaves, planned = Counter(self._gone), dict[Crowd, int](), list[Planned]()
        for entry in crowded:
            crowd = _crowd(entry)
            leave = entry.due_at - leads[crowd]
            if crowd in self._in_steps:
                if crowd not in leaves or gone[crowd] % sizes[crowd] == 0:
                    leaves[crowd] = entry.due_at - self._crowd_lead(together[crowd] - gone[crowd])
                leave = leaves[crowd]
                gone[crowd] += 1
            planned.append(Planned(leave, entry))
        return planned

    def _crowd_lead(self, jobs: float) -> int:
        """Return the lead (ms) of jobs of a crowd. Other units have as many of it as their share of the slots."""
        return packs.lead(round(max(jobs, 0) / self.flow.share), self.ports.rules.crowd_hold_ms)

    def _plan_singly(self, waiting: Sequence[DueEntry]) -> list[Planned]:
        """Plan jobs that leave by the lead of their lane, in order of their due times."""
        leads = self._leads_of(waiting, self.ports.rules.lead_ms)
        leaves = lead.leave_times(
            [entry.due_at for entry in waiting],
            [leads[entry.lane] for entry in waiting],
            rate=self._rate,
            hold_ms=self.ports.rules.hold_ms,
        )
        return [Planned(leave, entry) for leave, entry in zip(leaves, waiting, strict=True)]

    def _delayed_leads(self, waiting: Sequence[DueEntry]) -> dict[Lane, int]:
        """Return the lead of each lane for delayed messages. While none was measured, one executor is warm: the one that sends them on."""
        jobs = Counter(entry.lane for entry in waiting)
        few = [entry for entry in waiting if jobs[entry.lane] <= packs.BATCH]
        more = [entry for entry in waiting if jobs[entry.lane] > packs.BATCH]
        return self._leads_of(few, lead.WARM_MS, delayed=True) | self._leads_of(more, self.ports.rules.lead_ms, delayed=True)

    def _leads_of(self, waiting: Sequence[DueEntry], default_ms: int, *, delayed: bool = False) -> dict[Lane, int]:
        """Return the lead of each lane; `default_ms`: if its latency was not measured lately."""
        since, hold_ms = self.ports.clock.now() - FRESH_MS, self.ports.rules.hold_ms
        lanes = sorted({entry.lane for entry in waiting})
        return {lane: lead.lead(self._latency(lane, since, delayed), default_ms, hold_ms) for lane in lanes}

    def _latency(self, lane: Lane, since: int, delayed: bool) -> int | None:
        """Return the measured latency (ms) of a lane, None if it is unknown: a ledger that refuses must not stop the publishing."""
        try:
            return self.ports.ledger.latency(lane, since, deployment=self.ports.rules.deployment, delayed=delayed)
        except Unavailable:
            return None

    def go_on(self, now: int) -> Sequence[DueEntry] | None:
        """Carry out the next due action; return the published entries. None: nothing is due."""
        if self.refused and now >= self._again_at:
            self.plan(())
        ready = self._ready_at(now)
        due_at = self.flow.next_at(self.watch.paused)
        if (ready or self.held or len(self.flow)) and self.watch.is_due():
            if self.watch.look():
                self.plan(())  # also plans the entries held back
            return ()
        if not ready and (due_at is None or due_at > now):
            return None
        self.planned = self.planned[len(ready) :]
        opened, before = self._open(ready), len(self.flow)
        self.sent.update(map(mark, opened))
        self._gone.update(map(_crowd, opened))
        released = self.flow.release(opened, self.watch.paused)
        if self.reader.unread_from() is not None:
            self._unread += [(entry.lane, entry.due_at) for entry in released]
        self.result.waited += max(len(self.flow) - before, 0)
        self._publish(released)
        return released

    def _ready_at(self, now: int) -> Sequence[Planned]:
        """Return what to publish: all entries that must leave and, unless the first is of a pack, those that follow within `GATHER_MS`.

        The last call is left out if it is not full and none of its entries must leave yet.
        """
        planned = self.planned  # sorted by the time of leaving
        is_pack = bool(planned) and _crowd(planned[0].entry) in self._in_steps
        near = planned[: min(bisect_right(planned, now if is_pack else now + GATHER_MS, key=attrgetter("leave")), CHUNK)]
        whole = len(near) - len(near) % CALL
        if whole < len(near) and near[whole].leave > now:
            return near[:whole]
        return near

    def wakes(self) -> list[int]:
        """Return the instants (ms) at which there is something to do next."""
        due_at = self.flow.next_at(self.watch.paused)
        looks = [self.watch.tried_at + LOOK_MS] if len(self.flow) else []
        looks += [self._again_at] if self.refused else []
        return [*(item.leave for item in self.planned[:1]), *([] if due_at is None else [due_at]), *looks]

    def may_go_out(self, end: int) -> bool:
        """Return whether jobs wait for room in their lane, were refused, or are held back and a resume could release them.

        Held-back jobs are waited for until the lane states are read after `end`, the end of the minute.
        """
        if self.flow.next_at(self.watch.paused) is not None or self.refused:
            return True
        return bool(self.held or len(self.flow)) and self.watch.tried_at < end

    def waiting(self) -> list[DueEntry]:
        """Return all entries that have not been published, in no order."""
        return [*self.flow.waiting(), *self._outside()]

    def _outside(self) -> Iterator[DueEntry]:
        """Yield the entries that wait for their time, for a resume or for the topic."""
        return (item.entry for item in chain(self.held, self.refused, self.planned))

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

        def kept(items: Sequence[Planned]) -> list[Planned]:
            return [item for item in items if item.entry.mark not in marks]

        self.planned, self.held, self.refused = kept(self.planned), kept(self.held), kept(self.refused)

    def take_paused(self, most: int) -> list[DueEntry]:
        """Remove and return entries that should leave now, but whose lanes are paused; at most `most`."""
        taken, self.held = [item.entry for item in self.held[:most]], self.held[most:]
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
        return round(self.ports.lanes.backlog(lane) * self._each.get(lane, 1.0))

    def _open(self, ready: Sequence[Planned]) -> list[DueEntry]:
        """Return the entries whose lanes are not paused; hold back the others."""
        paused = self.watch.paused
        self.held += [item for item in ready if item.entry.lane in paused]
        return [item.entry for item in ready if item.entry.lane not in paused]

    def _publish(self, entries: Sequence[DueEntry]) -> None:
        if not entries:
            return
        now = self.ports.clock.now()
        messages = self._packed(entries, now)
        refused = self.ports.lanes.publish(messages)
        if refused:
            refused = self.ports.lanes.publish(refused)
        keys = {single.key for message in refused for single in message.singles()}
        self._keep_refused(entries, keys)
        took = max(self.ports.clock.now() - now, 1)
        if len(entries) >= 50:
            self._rate = (self._rate + len(entries) / took) / 2
        self.result.published += len(entries) - len(keys)
        self.result.canaries += sum(entry.key.owner == CANARY_OWNER for entry in entries)
        self.result.refused += len(keys)

    def _packed(self, entries: Sequence[DueEntry], now: int) -> list[Message]:
        """Return the messages of these jobs; a crowd travels in packs."""
        together = Counter(entry.lane for entry in entries)

        def most(first: Message) -> int:
            if first.due_at <= now:
                return packs.size(together[first.lane], self._usual_executors, late=True)
            crowd, usual = self._together((first.lane, packs.second(first.due_at))), self._usual_executors
            return packs.size(crowd, usual, ready=self._kept_ready(first.lane)) if packs.is_crowd(crowd, usual) else 1

        messages = [self._message(entry, now) for entry in entries]
        early, rest = [each for each in messages if each.not_before], [each for each in messages if not each.not_before]
        packed = bundles.bundle(early) + packs.pack(rest, most, now)
        self._each |= {lane: jobs / sum(message.lane is lane for message in packed) for lane, jobs in together.items()}
        return packed

    def _message(self, entry: DueEntry, now: int) -> Message:
        is_early = self.at_once and entry.due_at > now + self.ports.rules.hold_ms
        not_before = entry.due_at - self._leads.get(entry.lane, lead.WARM_MS) if is_early else 0
        return Message(entry.key, entry.fence, entry.lane, entry.due_at, sent_at=now, not_before=not_before)

    def _keep_refused(self, entries: Sequence[DueEntry], keys: Collection[JobKey]) -> None:
        """Keep these entries, out of the published ones, to publish them again."""
        if not keys:
            self._refusals = 0
            return
        self._again_at = self.ports.clock.now() + REFUSED_MS[min(self._refusals, len(REFUSED_MS) - 1)]
        self._refusals += 1
        again = [entry for entry in entries if entry.key in keys]
        self.sent.difference_update(map(mark, again))
        self._gone.subtract(map(_crowd, again))
        self.refused += [Planned(self._again_at, entry) for entry in again]


def _crowd(entry: DueEntry) -> Crowd:
    return entry.lane, entry.due_at // packs.SPAN_MS  # as `packs.second`, without a call for each of thousands of entries
