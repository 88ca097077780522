"""Hand out one unit: read its slots, publish every job just ahead of its instant, read once more, and say so.

What is due beyond what a lane can take waits here for its turn (`flow`).

No job is written here. Whatever a dispatcher does twice, late or not at all is safe: executors claim by fence, and
what stays in the index is found by the recheck.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile
from operator import attrgetter

from scheduler.admission.lane_state import LOOK_MS, Watch
from scheduler.model import slots
from scheduler.model.job import DueEntry, Lane, Message, Unit, UnitKey
from scheduler.model.rules import Rules
from scheduler.pipeline import lead, leftover
from scheduler.pipeline.reconcile import read
from scheduler.sharing.window import Flow
from scheduler.storage.ports import Clock, Jobs, Lanes, Ledger, Topic, Users

LEASE_MS = 15_000
RENEW_MS = 5_000
STAY_MS = 480_000  # who has still something waiting then leaves it to another dispatcher: an invocation has ten minutes
WAKE_MS = 3_000  # a parked unit is due for a dispatcher this long before its minute
FRESH_MS = 120_000  # latencies older than this say nothing about the lane now
GATHER_MS = 100  # jobs that leave within this long go out together: fuller batches for a slightly longer hold
CALL = 10  # messages of one publish call
CHUNK = 500  # messages published between two looks at the clock
RATE = 0.5  # jobs a millisecond, until the first publish has been measured

log = logging.getLogger(__name__)
mark: Callable[[DueEntry], str] = attrgetter("mark")


@dataclass(slots=True)
class DispatchResult:
    """What one dispatcher did. `handed_out` is False if it lost or never had the unit, parked it, or left it to another one."""

    published: int = 0
    refused: int = 0
    waited: int = 0  # it was their time, and more was due than the lane could take
    held_back: int = 0  # left to the recheck: their lane was paused to the end of the minute
    handed_out: bool = False


@dataclass(slots=True)
class _Planned:
    leave: int
    entry: DueEntry


@dataclass(slots=True)
class Dispatch:
    """One dispatcher at work on one unit. `run` is its only entry."""

    unit: Unit
    jobs: Jobs
    ledger: Ledger
    topic: Topic
    lanes: Lanes
    users: Users
    clock: Clock
    rules: Rules
    result: DispatchResult = field(default_factory=DispatchResult)
    _rate: float = RATE
    _renew_at: int = 0
    _stay_until: int = 0
    _planned: list[_Planned] = field(default_factory=list)  # by the time at which they leave
    _sent: set[str] = field(default_factory=set)  # marks of what was published, or waits in the flow
    _held: list[_Planned] = field(default_factory=list)  # it is time for them, but their lane is paused
    _watch: Watch = field(init=False)
    _flow: Flow = field(init=False)

    def __post_init__(self) -> None:
        # Never read, a pause is unknown, and all is published: executors look for themselves before anything starts, so a
        # ledger that refuses starts nothing it should not. The other way round it would make every job late.
        self._watch = Watch(self.ledger, self.clock)
        self._flow = Flow(self.unit.key, self._outstanding, self.lanes.backlog, self.ledger, self.users, self.clock, self.rules)
        self._stay_until = self.clock.now() + STAY_MS

    def run(self) -> DispatchResult:
        start = slots.start_of(self.unit.key.minute)
        self._renew_at = self.clock.now() + RENEW_MS
        entries = read(self.unit, self.jobs)
        self._planned = self._plan([entry for entry in entries if entry.due_at >= max(start, self.unit.progress)])
        if not self._planned and entries and self.clock.now() < start - WAKE_MS:
            self._park(start)  # only nets: their jobs were handed over directly, and are looked at when the minute comes
            return self.result
        if entries and not self._publish_all(start):
            self._flow.close()
            return self.result
        self.result.handed_out = self._hand_out()
        return self.result

    def _publish_all(self, start: int) -> bool:
        """Publish each at its time, and at the start of the minute what a second read shows besides. False: lost or left the unit.

        What is held back for a paused lane goes out when that is resumed, or is left in its slot when the minute is over.
        """
        reread = False
        while self._planned or not reread or self._may_go_out(start + slots.MINUTE):
            now = self.clock.now()
            if not reread and now >= start:
                reread, self._planned = True, self._plan(self._left(start), self._planned)
                continue
            if not self._keep(now):
                return False
            if now >= self._stay_until and len(self._flow):
                self._change(replace(self.unit, lease_until=0))
                return False
            if not self._go_on(now):
                self.clock.sleep_until(max(min([*self._wakes(), *([] if reread else [start])]), now + 1))
        self.result.held_back = len(self._held) + len(self._flow)
        return True

    def _go_on(self, now: int) -> bool:
        """Do the next thing that is due. False: nothing is."""
        ready = _ready(self._planned, now)
        due_at = self._flow.next_at(self._watch.paused)
        if (ready or self._held or len(self._flow)) and self._watch.is_due():
            if self._watch.look():
                self._planned = self._plan((), self._planned)  # with what was held back
            return True
        if not ready and (due_at is None or due_at > now):
            return False
        self._planned = self._planned[len(ready) :]
        opened, before = self._open(ready), len(self._flow)
        self._sent.update(map(mark, opened))
        released = self._flow.release(opened, self._watch.paused)
        self.result.waited += max(len(self._flow) - before, 0)
        self._publish(released)
        return True

    def _wakes(self) -> list[int]:
        due_at = self._flow.next_at(self._watch.paused)
        looks = [self._watch.tried_at + LOOK_MS] if self._held or len(self._flow) else []
        return [self._renew_at, *(item.leave for item in self._planned[:1]), *([] if due_at is None else [due_at]), *looks]

    def _may_go_out(self, end: int) -> bool:
        """Whether something waits for its turn, or a resume could still let out what is held back: until a look after the minute's end."""
        paused = self._watch.paused
        if self._flow.next_at(paused) is not None:
            return True
        return bool(self._held or len(self._flow)) and self._watch.tried_at < end

    def _open(self, ready: Sequence[_Planned]) -> list[DueEntry]:
        """What of it may leave. The rest is held back."""
        self._held += [item for item in ready if item.entry.lane in self._watch.paused]
        return [item.entry for item in ready if item.entry.lane not in self._watch.paused]

    def _outstanding(self, lane: Lane, until: int) -> int:
        """How many jobs of the lane, due up to then, have been released and are not done: they are still in their slots."""
        start = slots.start_of(self.unit.key.minute)
        there = sum(self.jobs.count(slot, lane, since=start, until=until) for slot in self.unit.slots)
        waiting = [*self._flow.waiting(), *(item.entry for item in [*self._held, *self._planned])]
        return there - sum(1 for entry in waiting if entry.lane is lane and start <= entry.due_at <= until)

    def _left(self, start: int) -> list[DueEntry]:
        """What a second read shows that was not published yet: laggards of the index, and nets still there at their minute."""
        behind: dict[Lane, bool] = {}
        left = []
        for entry in read(self.unit, self.jobs):
            if entry.due_at < start and self._behind(entry.lane, behind):
                continue  # its message waits in the lane; a second one would not make it faster
            left.append(entry)
        return left

    def _behind(self, lane: Lane, known: dict[Lane, bool]) -> bool:
        if lane not in known:
            known[lane] = leftover.lane_is_behind(self.lanes.backlog(lane), self.rules.max_backlog)
        return known[lane]

    def _plan(self, entries: Sequence[DueEntry], planned: Sequence[_Planned] = ()) -> list[_Planned]:
        """The entries not sent yet, with those already planned or held back, by the time at which each must leave."""
        known = [item.entry for item in [*self._held, *planned]]
        self._held = []
        merged = {entry.mark: entry for entry in [*known, *entries]}
        waiting = self._flow.order(sorted((entry for of, entry in merged.items() if of not in self._sent), key=attrgetter("due_at")))
        since = self.clock.now() - FRESH_MS
        leads = {
            lane: lead.lead(self.ledger.latency(lane, since), self.rules.lead_ms, self.rules.hold_ms)
            for lane in sorted({entry.lane for entry in waiting})
        }
        leaves = lead.leave_times(
            [entry.due_at for entry in waiting],
            [leads[entry.lane] for entry in waiting],
            rate=self._rate,
            hold_ms=self.rules.hold_ms,
        )
        return [_Planned(leave, entry) for leave, entry in zip(leaves, waiting, strict=True)]

    def _publish(self, entries: Sequence[DueEntry]) -> None:
        if not entries:
            return
        now = self.clock.now()
        messages = [Message(entry.key, entry.fence, entry.lane, entry.due_at, sent_at=now) for entry in entries]
        refused = self.topic.publish(messages)
        if refused:
            refused = self.topic.publish(refused)  # what stays refused is in the index anyway
        took = max(self.clock.now() - now, 1)
        if len(entries) >= 50:
            self._rate = (self._rate + len(entries) / took) / 2
        self.result.published += len(messages) - len(refused)
        self.result.refused += len(refused)

    def _keep(self, now: int) -> bool:
        """Renew the lease in time, with how far we are. False once another dispatcher has the unit."""
        if now < self._renew_at:
            return True
        self._renew_at = now + RENEW_MS
        return self._change(replace(self.unit, lease_until=now + LEASE_MS, progress=self._progress()))

    def _progress(self) -> int:
        """Up to when everything has been published: the first due time of what has not."""
        first = [item.entry.due_at for item in [*self._planned[:1], *self._held]] + self._flow.first_dues()
        return max(min(first, default=self.unit.progress), self.unit.progress)

    def _park(self, start: int) -> None:
        self._change(replace(self.unit, lease_until=start - WAKE_MS))

    def _hand_out(self) -> bool:
        return self._change(replace(self.unit, handed_out_at=self.clock.now(), lease_until=0))

    def _change(self, after: Unit) -> bool:
        held = self.ledger.change_unit(self.unit, after)
        if held:
            self.unit = after
        return held


def _ready(planned: Sequence[_Planned], now: int) -> Sequence[_Planned]:
    """What goes out now: all that must leave, with what follows within `GATHER_MS`, in whole calls if those hold what must."""
    near = list(takewhile(lambda item: item.leave <= now + GATHER_MS, islice(planned, CHUNK)))  # they are in order of leaving
    whole = len(near) - len(near) % CALL
    if whole < len(near) and near[whole].leave > now:
        return near[:whole]
    return near


def take_lease(key: UnitKey, ledger: Ledger, now: int) -> Unit | None:
    """The unit, leased to us under a new epoch; None if it is handed out, unknown, or another dispatcher is at it."""
    unit = ledger.unit(key)
    if unit is None or unit.handed_out_at is not None or unit.lease_until > now:
        return None
    leased = replace(unit, epoch=unit.epoch + 1, lease_until=now + LEASE_MS)
    return leased if ledger.change_unit(unit, leased) else None


def dispatch(
    key: UnitKey, *, jobs: Jobs, ledger: Ledger, topic: Topic, lanes: Lanes, users: Users, clock: Clock, rules: Rules
) -> DispatchResult:
    """Dispatch one unit, if nobody else does. Raises Unavailable if a service refuses: the lease runs out and another one starts."""
    unit = take_lease(key, ledger, clock.now())
    if unit is None:
        return DispatchResult()
    return Dispatch(unit, jobs, ledger, topic, lanes, users, clock, rules).run()
