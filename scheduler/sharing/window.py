"""Decide which due jobs a dispatcher releases, lane by lane: a window of unfinished jobs, and fair shares of it under load.

As long as the due jobs fit the window, the dispatcher releases them at once and reads nothing. Further jobs wait here: twice a second
the dispatcher counts its released jobs that are not finished, publishes its backlog to the other dispatchers, and takes its share of
the room.
"""

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from math import inf
from operator import attrgetter

from scheduler.model.backlog import Backlog, Demand
from scheduler.model.errors import Unavailable
from scheduler.model.job import DueEntry, Lane, UnitKey
from scheduler.model.rules import BATCH
from scheduler.sharing import fair_queue, pins
from scheduler.sharing.fair_queue import FairQueue
from scheduler.storage.cache import Cache
from scheduler.storage.ports import Ports

STEP_MS = 500  # between two polls of a lane
NARROWEST = 40  # lower bound of the window: 1 / NARROWEST of the lane's capacity, since few executors suffice for short jobs ...
LEAST = 50  # ... and at least this number of jobs ...
FEWEST = 2  # ... or this one, while the lane's capacity is only an estimate
# Such a window widens by a part of the jobs that end in it, since a job that does not end shows nothing about the lane; the second is the
# part once jobs have waited in the lane.
ENDED, ENDED_ABOVE = 0.5, 0.02
SHORT_S = 2.0  # jobs that take longer on average are not short: few of them wait in the lane ahead ...
PART_AHEAD = 0.5  # ... this part of a second's work
FREE = 0.75  # a window counts on this part of the executors: the others are free for what does not pass through a window
WIDEN, NARROW = 1.3, 0.8  # factors of the window at a poll: no message waits in the lane; more work waits than intended
KNOWN_POLLS = 4  # polls that saw finished jobs, before the rate is known well enough to narrow the window
STILL_MS = 20_000  # if no message waits in a lane and no job finishes for this time, the lane is not full: write off unfinished jobs
RATED_MS = 5_000  # the rate of a lane is its mean over this time: jobs of a batch finish at the same time
# A lane that was without work for this long starts like a new one: the next jobs may be of another kind.
RESTED_MS = int(1000 * fair_queue.AHEAD_S)
PUBLISHED_MS = 3_000  # an older backlog belongs to a dispatcher that has ended
WEIGHTS_MS = 30_000  # how long weights are cached

log = logging.getLogger(__name__)


def narrowest(most: int, *, estimated: bool = False) -> float:
    """Return the first window of a lane with a capacity of `most` jobs; polls correct it later.

    `estimated`: the capacity may be smaller.
    """
    return min(max(most / NARROWEST, FEWEST if estimated else LEAST), most)


@dataclass(slots=True)
class _Gate:
    """The window and the waiting jobs of one lane, in the view of one dispatcher."""

    lane: Lane
    most: int  # capacity: the lane's jobs when all its executors are busy
    crowd: int  # the jobs that all its executors can hold ahead of their instant; 0: no more than the window
    width: float  # the estimate of the jobs that the lane holds now
    polled_at: int
    tried_at: int
    batch: int  # jobs of one executor
    estimated: bool = False  # the capacity is an estimate
    queue: FairQueue[DueEntry] = field(default_factory=FairQueue)
    outstanding: int = 0  # jobs released and not finished at the last poll
    sent: int = 0  # jobs released since that poll
    until: int = 0  # the latest due time among the released jobs
    credit: float = 0.0  # jobs of the last poll's room that may still be released; fractions add up
    moved_at: int = 0  # when a job was last released or seen finished
    written_off: int = 0  # released and unfinished jobs that are ignored: lost, or running for long
    reported: bool = False  # this dispatcher's backlog is in the ledger
    backlog: int = 0  # about how many jobs waited in the lane at the last poll
    ceiling: float = inf  # of an estimated capacity: the window at which jobs last waited in the lane
    pins: Mapping[str, int] = field(default_factory=dict)  # executors that long jobs keep busy, by user
    bars: bool = False  # whether a user is at the bound of them
    done: deque[tuple[int, int]] = field(default_factory=deque)  # (ms, finished jobs) of the last polls

    @property
    def rate(self) -> float:
        """Finished jobs per second, over all of the last polls.

        A lane without waiting messages may be faster than its mean: then the last two polls count, if they saw more.
        """
        mean = _rate(self.done)
        return mean if self.backlog else max(mean, _rate([*self.done][-2:]))

    @property
    def in_hand(self) -> int:
        return self.outstanding + self.sent

    @property
    def pinned(self) -> int:
        """The executors that long jobs keep busy."""
        return sum(self.pins.values())

    @property
    def pack(self) -> int:
        """The jobs that leave together while others wait: as many as an executor is counted for, but few in a small lane."""
        return max(min(self.batch, int(self.width) // 8), 1)

    def full(self, weights: Mapping[str, float]) -> set[str]:
        """Return the users whose long jobs keep as many executors busy as one user may: their jobs wait."""
        executors = self.most // self.batch
        if self.estimated:
            executors = min(executors, max(round(self.width / FREE), 2))
        total = self.pinned
        return {
            owner
            for owner, mine in self.pins.items()
            if not pins.is_within(mine + 1, total - mine, executors, weights.get(owner, fair_queue.DEFAULT_WEIGHT))
        }

    def base(self, due_at: int, now: int, in_hand: int) -> int:
        """Return the lane's capacity for a batch whose first job is due at `due_at`, while `in_hand` jobs are released and not finished.

        Jobs ahead of their instant get all that executors can hold: they must be in executors when the instant comes. For others, the
        executors count that are not pinned, and the long jobs in hand beside what these hold. While a user is at its bound of long jobs,
        those do not use up the window: it is for the others.
        """
        if due_at > now and self.crowd:
            return self.crowd
        long = 0 if self.estimated else min(max(self.pinned - self.written_off, 0), in_hand)
        free = max(self.most - self.pinned * self.batch, self.batch)
        return int(min(self.width, free) + long if self.bars else min(self.width, free + long))

    def room(self, due_at: int, now: int, share: float = 1.0) -> int:
        """Return how many more jobs the dispatcher may release if it has this share of the lane."""
        base = max(int(self.base(due_at, now, self.in_hand) * share), 1)
        return fair_queue.window(base, self.ahead(base)) - self.in_hand

    def ahead(self, base: float, others: float = 0.0) -> float:
        """Return the jobs per second of which some may wait in the lane: all, if the jobs are short; else fewer than would fill the
        executors that stay free."""
        mean = _rate(self.done) + others
        if self.batch > 1 and mean >= base / SHORT_S:
            return self.rate + others
        return min(mean, base * (1 - FREE)) * PART_AHEAD

    def fit(self, backlog: int) -> None:
        """Adapt the window to `backlog`, the messages that wait in the lane: narrow it if too many wait, widen it if none does."""
        self.backlog = backlog
        if self.estimated:
            done = self.done[-1][1] if self.done else 0
            if backlog == 0:
                self.width = min(self.width + done * (ENDED if self.width < self.ceiling else ENDED_ABOVE), self.most * FREE)
            else:  # the others are in executors: these are all that the lane has for this dispatcher
                self.ceiling = max((self.in_hand - backlog) * FREE, FEWEST)
                self.width = min(self.width, self.ceiling)
            return
        known = sum(1 for _, jobs in self.done if jobs) >= KNOWN_POLLS
        if backlog == 0:
            self.width = max(min(self.width * WIDEN, self.most * FREE), min(self.width, self.most))
        elif known and backlog > self.rate * fair_queue.AHEAD_S:
            self.width = max(self.width * NARROW, narrowest(self.most))

    def let(self, entries: Sequence[DueEntry], now: int) -> Sequence[DueEntry]:
        if entries:
            self.sent, self.moved_at = self.sent + len(entries), now
            if entries[-1].due_at > now and self.crowd:
                self.width = max(
                    self.width, min(self.in_hand, self.most)
                )  # these jobs will be in executors, which then continue with late jobs
        self.until = max(self.until, max((entry.due_at for entry in entries), default=0))
        return entries

    def learn(self, outstanding: int, now: int) -> None:
        """Update the counts and the rate after a poll that found `outstanding` released jobs not finished."""
        self.written_off = min(self.written_off, max(outstanding, 0))
        outstanding = min(max(outstanding - self.written_off, 0), self.in_hand)
        took, done = max(now - self.polled_at, 1), self.in_hand - outstanding
        self.outstanding, self.sent, self.polled_at = outstanding, 0, now
        self.moved_at = now if done else self.moved_at
        counted = min(took, 2 * STEP_MS)  # a poll after a long time weighs at most as much as two regular polls
        self.done.append((counted, done * counted // took))
        while sum([ms for ms, _ in self.done]) - self.done[0][0] >= RATED_MS:
            self.done.popleft()

    def forget(self) -> None:
        """Reset the window and the rate of a lane that was without work."""
        self.width, self.backlog, self.ceiling = narrowest(self.most, estimated=self.estimated), 0, inf
        self.done.clear()

    def write_off(self) -> None:
        self.written_off += self.outstanding
        self.outstanding, self.moved_at = 0, self.tried_at


@dataclass(slots=True)
class Flow:
    """The jobs that one dispatcher releases, and the ones that wait in it.

    `outstanding(lane, until)` counts the dispatcher's jobs due by `until` that are released and not finished. `backlog(lane)` estimates
    how many messages wait in the lane; that figure lags behind, so it only corrects the window.
    """

    unit: UnitKey
    outstanding: Callable[[Lane, int], int]
    backlog: Callable[[Lane], int]
    ports: Ports
    pinned: Callable[[Lane], Mapping[str, int]] = lambda lane: {}  # executors that long jobs keep busy, by user
    share: float = 1.0  # of a lane that the dispatcher may fill without asking the others: its unit's share of the shards
    _gates: dict[Lane, _Gate] = field(default_factory=dict)
    _weights: Cache[str, float] = field(init=False)

    def __post_init__(self) -> None:
        self._weights = Cache("weights", self._read_weights, WEIGHTS_MS)

    def most_ahead(self, lane: Lane) -> float:
        """Return the number of jobs of a lane that may be released ahead of their instant: as many as its executors can start at once."""
        window = self.ports.rules.window(lane)
        return inf if window is None else max(self.ports.rules.crowds.get(lane, 0), window) * self.share

    def __len__(self) -> int:
        """Return how many jobs wait."""
        return sum([len(gate.queue) for gate in self._gates.values()])

    def first_dues(self) -> list[int]:
        """Return the earliest due time (ms) of the waiting jobs, for each lane that has any."""
        return [gate.queue.first_due() for gate in self._gates.values() if gate.queue]

    def count(self, lane: Lane, since: int, until: int) -> int:
        """The number of jobs that wait for the lane and are due from `since` to `until` (ms), both included."""
        return self._gates[lane].queue.count(since, until) if lane in self._gates else 0

    def waiting(self) -> Iterator[DueEntry]:
        return (entry for gate in self._gates.values() for entry in gate.queue)

    def next_at(self, paused: Collection[Lane]) -> int | None:
        """Return when to call `release` again for jobs that wait for lanes not paused (ms); None if there are none."""
        return min((gate.tried_at + STEP_MS for gate in self._gates.values() if gate.queue and gate.lane not in paused), default=None)

    def order(self, entries: Sequence[DueEntry]) -> list[DueEntry]:
        """Return the entries, which come sorted by due time.

        If more entries of one instant come than a lane can take, they are put in fair order: the first ones fill the lane.
        """
        least = min(self.ports.rules.windows.values(), default=len(entries))
        ordered: list[DueEntry] = []
        for _, group in groupby(entries, key=attrgetter("due_at")):
            together = list(group)
            if len(together) > least:
                users = {entry.key.owner for entry in together}
                if len(users) > 1:  # the jobs of one user stay in their order: no weight is read
                    together = _fair_order(together, self._weights_of(users))
            ordered += together
        return ordered

    def release(self, ready: Sequence[DueEntry], paused: Collection[Lane]) -> list[DueEntry]:
        """Return the entries to publish now, out of the `ready` and the waiting entries; the others wait."""
        lanes: dict[Lane, list[DueEntry]] = {}
        for entry in ready:
            lanes.setdefault(entry.lane, []).append(entry)
        released: list[DueEntry] = []
        for lane, entries in lanes.items():
            released += self._pass(lane, entries)
        for gate in self._gates.values():
            if gate.queue and gate.lane not in paused:
                released += self._drain(gate)
        return released

    def take_paused(self, paused: Collection[Lane], most: int) -> list[DueEntry]:
        """Remove and return entries that wait for these lanes, at most `most`."""
        taken: list[DueEntry] = []
        for gate in self._gates.values():
            if gate.queue and gate.lane in paused:
                taken += gate.queue.take(most - len(taken))
                if not gate.queue:
                    self._hide(gate)
        return taken

    def only_barred(self) -> bool:
        """Return whether jobs wait, and all of them are of users whose long jobs keep as many executors busy as one user may."""
        waiting = [gate for gate in self._gates.values() if gate.queue]
        return bool(waiting) and all(gate.pins and gate.queue.counts().keys() <= gate.full(self._weights.known()) for gate in waiting)

    def close(self) -> None:
        """Drop the published backlogs: no job waits here now, or another dispatcher takes over."""
        for gate in self._gates.values():
            self._hide(gate)

    def _pass(self, lane: Lane, entries: Sequence[DueEntry]) -> Sequence[DueEntry]:
        """Return all entries if they fit the window; else none, and all of them wait.

        Late entries of users at their bound of executors always wait, and those of others do not wait behind them.
        """
        now, most = self.ports.clock.now(), self.ports.rules.window(lane)
        if most is None:
            return entries
        if lane not in self._gates:
            batch, estimated = BATCH[lane], lane not in self.ports.rules.windows
            width = narrowest(most, estimated=estimated)
            crowd = 0 if lane is Lane.RETRY else round(self.most_ahead(lane) / self.share)
            self._gates[lane] = _Gate(lane, most, crowd, width, now, now, batch, estimated)
        gate = self._gates[lane]
        if not gate.queue and now - max(gate.moved_at, gate.until) >= RESTED_MS:
            gate.forget()
        gate.pins = self.pinned(lane)
        full = gate.full(self._weights_of(gate.pins)) if gate.pins else set[str]()
        gate.bars = bool(full)
        stay: Sequence[DueEntry] = [entry for entry in entries if entry.due_at <= now and entry.key.owner in full] if full else ()
        go = [entry for entry in entries if entry.due_at > now or entry.key.owner not in full] if stay else entries
        only_full = bool(full) and gate.queue.counts().keys() <= full
        if (gate.queue and not only_full) or (go and len(go) > gate.room(go[0].due_at, now, self.share)):
            stay, go = entries, ()
        for entry in stay:
            gate.queue.add(entry.key.owner, entry.due_at, entry)
        return gate.let(go, now)

    def _drain(self, gate: _Gate) -> Sequence[DueEntry]:
        now = self.ports.clock.now()
        if now - gate.tried_at >= STEP_MS:
            self._poll(gate, now)
        elif not gate.reported:
            gate.credit = float(gate.room(gate.queue.first_due(), now, self.share))  # more jobs came than fit, but some of them do
            gate.queue.weigh(self._weights_of(gate.queue.counts()))
        most = max(int(gate.credit), 0)
        if most < len(gate.queue):
            most -= most % gate.pack  # a message may keep an executor busy: no small ones
        went = gate.let(gate.queue.take(most, gate.full(self._weights.known()) if gate.pins else ()), now)
        gate.credit -= len(went)
        if not gate.queue:
            self._hide(gate)
        return went

    def _poll(self, gate: _Gate, now: int) -> None:
        """Poll the lane: count unfinished jobs, share backlogs, and determine the number of jobs to release until the next poll."""
        gate.tried_at, gate.pins = now, self.pinned(gate.lane)
        gate.bars = bool(gate.pins and gate.full(self._weights.known()))
        try:
            gate.learn(self.outstanding(gate.lane, gate.until), now)
            gate.fit(self.backlog(gate.lane))
            if now - gate.moved_at >= STILL_MS and gate.backlog == 0 and gate.room(gate.queue.first_due(), now) <= 0:
                gate.write_off()
        except Unavailable as error:
            log.warning("could not count finished jobs; releasing none until the next poll", extra={"lane": gate.lane, "error": str(error)})
            return
        counts = gate.queue.counts()
        weights = self._weights_of(counts)
        gate.queue.weigh(weights)
        first = gate.queue.first_due()
        if len(gate.queue) <= gate.room(first, now, self.share) and not gate.reported:
            gate.credit = float(gate.room(first, now, self.share))
            return
        mine = {name: Demand(weights.get(name, fair_queue.DEFAULT_WEIGHT), count) for name, count in counts.items()}
        others = self._tell(gate, Backlog(self.unit, gate.lane, now, gate.in_hand, gate.rate, fair_queue.published(mine)))
        in_hand = gate.in_hand + sum(each.outstanding for each in others)
        base = gate.base(first, now, in_hand)
        ahead = gate.ahead(base, sum(each.rate for each in others))
        backlogs: dict[str, Mapping[str, Demand]] = {_name(each.unit): _apart(each) for each in others}
        backlogs[_name(self.unit)] = mine
        share = fair_queue.quotas(fair_queue.window(base, ahead) - in_hand, backlogs)[_name(self.unit)]
        left = gate.credit if share.room < gate.pack else gate.credit % 1  # small shares add up to a message
        gate.credit = min(left, gate.pack) + share.room
        gate.queue.weigh(share.weights)

    def _tell(self, gate: _Gate, mine: Backlog) -> list[Backlog]:
        """Publish this dispatcher's backlog and return the others' backlogs. While the ledger refuses, each dispatcher decides alone."""
        try:
            self.ports.ledger.report_backlog(mine)
            gate.reported = True
            return [each for each in self.ports.ledger.backlogs(gate.lane, mine.at - PUBLISHED_MS) if each.unit != self.unit]
        except Unavailable as error:
            log.info("could not share backlogs; this dispatcher decides alone", extra={"lane": gate.lane, "error": str(error)})
            return []

    def _hide(self, gate: _Gate) -> None:
        if not gate.reported:
            return
        gate.reported = False
        try:
            self.ports.ledger.drop_backlog(self.unit, gate.lane)
        except Unavailable:
            log.info("could not drop a published backlog; it expires within seconds", extra={"lane": gate.lane})

    def _weights_of(self, users: Collection[str]) -> Mapping[str, float]:
        """Return the weights of at least these users, as far as they could be read, at most `WEIGHTS_MS` ago unless the table refuses."""
        with suppress(Unavailable):
            self._weights.get_all(sorted(users), self.ports.clock.now())
        return self._weights.known()

    def _read_weights(self, users: Sequence[str], now: int) -> dict[str, float]:
        return dict.fromkeys(users, fair_queue.DEFAULT_WEIGHT) | self.ports.users.weights(users)


def _fair_order(entries: Sequence[DueEntry], weights: Mapping[str, float]) -> list[DueEntry]:
    queue: FairQueue[DueEntry] = FairQueue()
    queue.weigh(weights)
    for entry in entries:
        queue.add(entry.key.owner, entry.due_at, entry)
    return queue.take(len(entries))


def _rate(polls: Collection[tuple[int, int]]) -> float:
    return 1000 * sum([jobs for _, jobs in polls]) / max(sum([ms for ms, _ in polls]), 1)


def _name(unit: UnitKey) -> str:
    return f"{unit.minute}#{unit.part}"


def _apart(backlog: Backlog) -> dict[str, Demand]:
    """Return the users of a backlog. Its sum of unnamed users gets a name of its own, so that it is not merged with another unit's."""
    return {f"{name}{_name(backlog.unit)}" if name == fair_queue.REST else name: demand for name, demand in backlog.users.items()}
