"""The publisher of one dispatcher: the lease of its unit, the planned jobs, the jobs that wait for room in their lane, the publishing.

A dispatcher writes no job. Whatever it does twice, late or not at all is safe: executors claim jobs by fence, and reconciling finds
every job that is still in the index.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile
from operator import attrgetter

from scheduler.admission.lane_state import LOOK_MS, LaneStateCache
from scheduler.model.job import DueEntry, Lane, Message, Unit
from scheduler.pipeline import lead
from scheduler.sharing.window import Flow
from scheduler.storage.ports import Ports

LEASE_MS = 15_000
RENEW_MS = 5_000
STAY_MS = 480_000  # a dispatcher leaves waiting jobs to a new one after this time: Lambda stops it at ten minutes
FRESH_MS = 120_000  # older latencies are ignored
GATHER_MS = 100  # jobs that leave within this time go out together: batches are fuller, and jobs wait a little longer in executors
CALL = 10  # messages of one publish call
CHUNK = 500  # messages published between two readings of the clock
RATE = 0.5  # jobs a millisecond, until the first publish has been measured

mark: Callable[[DueEntry], str] = attrgetter("mark")


@dataclass(slots=True)
class DispatchResult:
    """The counts of one dispatcher. `handed_out` is False if it lost or never had the unit, parked it, or left it to another dispatcher."""

    published: int = 0
    refused: int = 0
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

    For `outstanding(lane, until)` see `Flow`. `progress()` returns the instant up to which every job of the unit is published.
    """

    unit: Unit
    ports: Ports
    outstanding: Callable[[Lane, int], int]
    progress: Callable[[], int]
    result: DispatchResult = field(default_factory=DispatchResult)
    planned: list[Planned] = field(default_factory=list)  # in order of the time at which they leave
    sent: set[str] = field(default_factory=set)  # marks of the entries that were published, or wait in the flow
    held: list[Planned] = field(default_factory=list)  # entries that should leave now, but their lane is paused
    watch: LaneStateCache = field(init=False)
    flow: Flow = field(init=False)
    _rate: float = RATE
    _renew_at: int = 0
    _stay_until: int = 0

    def __post_init__(self) -> None:
        # As long as the lane states were never read, the dispatcher publishes all jobs. A ledger that refuses then starts nothing that
        # is paused: executors check the pause themselves before a job starts. Waiting for the ledger would make every job late.
        self.watch = LaneStateCache(self.ports)
        self.flow = Flow(self.unit.key, self.outstanding, self.ports.lanes.backlog, self.ports)
        self._stay_until = self.ports.clock.now() + STAY_MS

    def stays(self, now: int) -> bool:
        """Return whether this dispatcher still has time for the unit."""
        return now < self._stay_until

    def plan(self, entries: Sequence[DueEntry]) -> None:
        """Plan the entries not sent yet, with the ones already planned or held back, by the time at which each must leave."""
        rules = self.ports.rules
        known = [item.entry for item in [*self.held, *self.planned]]
        self.held = []
        merged = {entry.mark: entry for entry in [*known, *entries]}
        waiting = self.flow.order(sorted((entry for of, entry in merged.items() if of not in self.sent), key=attrgetter("due_at")))
        since = self.ports.clock.now() - FRESH_MS
        leads = {
            lane: lead.lead(self.ports.ledger.latency(lane, since), rules.lead_ms, rules.hold_ms)
            for lane in sorted({entry.lane for entry in waiting})
        }
        leaves = lead.leave_times(
            [entry.due_at for entry in waiting],
            [leads[entry.lane] for entry in waiting],
            rate=self._rate,
            hold_ms=rules.hold_ms,
        )
        self.planned = [Planned(leave, entry) for leave, entry in zip(leaves, waiting, strict=True)]

    def go_on(self, now: int) -> Sequence[DueEntry] | None:
        """Do the next thing that is due; return the published entries. None: nothing is due."""
        ready = _ready(self.planned, now)
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
        released = self.flow.release(opened, self.watch.paused)
        self.result.waited += max(len(self.flow) - before, 0)
        self._publish(released)
        return released

    def wakes(self) -> list[int]:
        """Return the instants (ms) at which there is something to do next."""
        due_at = self.flow.next_at(self.watch.paused)
        looks = [self.watch.tried_at + LOOK_MS] if self.held or len(self.flow) else []
        return [self._renew_at, *(item.leave for item in self.planned[:1]), *([] if due_at is None else [due_at]), *looks]

    def may_go_out(self, end: int) -> bool:
        """Return whether jobs wait for room in their lane, or are held back and a resume could release them.

        Held-back jobs are waited for until the lane states are read after `end`, the end of the minute.
        """
        if self.flow.next_at(self.watch.paused) is not None:
            return True
        return bool(self.held or len(self.flow)) and self.watch.tried_at < end

    def waiting(self) -> list[DueEntry]:
        """Return all entries that have not been published, in no order."""
        return [*self.flow.waiting(), *(item.entry for item in [*self.held, *self.planned])]

    def renew_later(self) -> None:
        """Note that the lease was taken just now."""
        self._renew_at = self.ports.clock.now() + RENEW_MS

    def keep(self, now: int) -> bool:
        """Renew the lease in time and store the progress with it. False once another dispatcher has the unit."""
        if now < self._renew_at:
            return True
        self._renew_at = now + RENEW_MS
        return self.change(replace(self.unit, lease_until=now + LEASE_MS, progress=self.progress()))

    def leave_to_another(self) -> None:
        """Release the lease: another dispatcher goes on."""
        self.change(replace(self.unit, lease_until=0))

    def change(self, after: Unit) -> bool:
        """Write the unit. False if another dispatcher has it."""
        held = self.ports.ledger.change_unit(self.unit, after)
        if held:
            self.unit = after
        return held

    def _open(self, ready: Sequence[Planned]) -> list[DueEntry]:
        """Return the entries whose lanes are not paused; hold back the others."""
        self.held += [item for item in ready if item.entry.lane in self.watch.paused]
        return [item.entry for item in ready if item.entry.lane not in self.watch.paused]

    def _publish(self, entries: Sequence[DueEntry]) -> None:
        if not entries:
            return
        now = self.ports.clock.now()
        messages = [Message(entry.key, entry.fence, entry.lane, entry.due_at, sent_at=now) for entry in entries]
        refused = self.ports.lanes.publish(messages)
        if refused:
            refused = self.ports.lanes.publish(refused)  # a job refused twice is found in the index
        took = max(self.ports.clock.now() - now, 1)
        if len(entries) >= 50:
            self._rate = (self._rate + len(entries) / took) / 2
        self.result.published += len(messages) - len(refused)
        self.result.refused += len(refused)


def _ready(planned: Sequence[Planned], now: int) -> Sequence[Planned]:
    """Return what to publish now: all entries that must leave, and those that follow within `GATHER_MS`.

    The last call is left out if it is not full and none of its entries must leave yet.
    """
    near = list(takewhile(lambda item: item.leave <= now + GATHER_MS, islice(planned, CHUNK)))  # sorted by the time of leaving
    whole = len(near) - len(near) % CALL
    if whole < len(near) and near[whole].leave > now:
        return near[:whole]
    return near
