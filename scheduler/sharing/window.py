"""How much of what is due a dispatcher lets go, lane by lane, and whose: a window of work in hand, fair shares of it under load.

As long as what is due fits the window, everything goes at once and nothing is read. What is beyond waits here: the dispatcher looks twice
a second how much of what it released is done, tells the other dispatchers what it has waiting, and takes its share of the room.
"""

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter

from scheduler.model.errors import Unavailable
from scheduler.model.job import DueEntry, Lane, UnitKey
from scheduler.sharing import fair_queue
from scheduler.sharing.fair_queue import Backlog, Demand, FairQueue
from scheduler.storage.ports import Ports

STEP_MS = 500  # between two looks at a lane
NARROWEST = 40  # a lane is taken to hold at least this part of what it could: of short jobs few executors do all there is ...
LEAST = 50  # ... and at least so many jobs
WIDEN, NARROW = 1.3, 0.8  # a look at a lane with nothing waiting in it, with more work than should wait
KNOWN_LOOKS = 4  # so many looks that saw something done tell the rate of a lane well enough to narrow it
STILL_MS = 20_000  # a lane that has nothing waiting and did nothing for so long is not full, whatever is not done
RATED_MS = 5_000  # the rate of a lane is its mean over so long: batches end all at once
RESTED_MS = int(
    1000 * fair_queue.AHEAD_S
)  # without work for as long as work may wait in it, a lane is as new: what comes may be other jobs
PUBLISHED_MS = 3_000  # a backlog reported longer ago is a dead dispatcher's
WEIGHTS_MS = 30_000  # how long a weight is taken for the present one

log = logging.getLogger(__name__)


def narrowest(most: int) -> float:
    """What a lane is taken to hold that could hold so many, until looks tell more."""
    return min(max(most / NARROWEST, LEAST), most)


@dataclass(slots=True)
class _Gate:
    """One lane, as its dispatcher knows it."""

    lane: Lane
    most: int  # what it holds when all its executors are busy
    width: float  # what it is taken to hold
    looked_at: int
    tried_at: int
    queue: FairQueue[DueEntry] = field(default_factory=FairQueue)
    outstanding: int = 0  # at the last look: released and not done
    sent: int = 0  # since then
    until: int = 0  # the latest due time among the released
    credit: float = 0.0  # of the room at the last look, what is still to be released; less than one adds up
    moved_at: int = 0  # when something was last released or seen done
    written_off: int = 0  # released, not done, and no reason to wait any longer: lost, or work that takes its time
    told: bool = False  # our backlog is in the ledger
    backlog: int = 0  # about how many messages waited in the lane at the last look
    done: deque[tuple[int, int]] = field(default_factory=deque)  # (ms, jobs) of the last looks

    @property
    def rate(self) -> float:
        """Jobs done a second, over all of the last looks. One in which nothing waits may do more: what the last two saw, if that is it."""
        mean = _rate(self.done)
        return mean if self.backlog else max(mean, _rate([*self.done][-2:]))

    @property
    def in_hand(self) -> int:
        return self.outstanding + self.sent

    def base(self, due_at: int, now: int) -> int:
        """What the lane holds of jobs of which the first is due then: those ahead of their instant must be in executors when it comes."""
        return self.most if due_at > now else int(self.width)

    def room(self, due_at: int, now: int) -> int:
        return fair_queue.window(self.base(due_at, now), self.rate) - self.in_hand

    def fit(self, backlog: int) -> None:
        """So many messages wait in the lane: too much work means that it holds less than it could, none that it may hold more."""
        self.backlog = backlog
        known = sum(1 for _, jobs in self.done if jobs) >= KNOWN_LOOKS
        if backlog == 0:
            self.width = min(self.width * WIDEN, self.most)
        elif known and backlog > self.rate * fair_queue.AHEAD_S:
            self.width = max(self.width * NARROW, narrowest(self.most))

    def let(self, entries: Sequence[DueEntry], now: int) -> Sequence[DueEntry]:
        if entries:
            self.sent, self.moved_at = self.sent + len(entries), now
            if entries[-1].due_at > now:
                self.width = max(self.width, min(self.in_hand, self.most))  # they will be in executors, who then go on with what is late
        self.until = max(self.until, max((entry.due_at for entry in entries), default=0))
        return entries

    def learn(self, outstanding: int, now: int) -> None:
        """A look found so many of the released ones not done."""
        self.written_off = min(self.written_off, max(outstanding, 0))
        outstanding = min(max(outstanding - self.written_off, 0), self.in_hand)
        took, done = max(now - self.looked_at, 1), self.in_hand - outstanding
        self.outstanding, self.sent, self.looked_at = outstanding, 0, now
        self.moved_at = now if done else self.moved_at
        counted = min(took, 2 * STEP_MS)  # a look after a long time weighs no more than two usual ones
        self.done.append((counted, done * counted // took))
        while sum(ms for ms, _ in self.done) - self.done[0][0] >= RATED_MS:
            self.done.popleft()

    def forget(self) -> None:
        """It has rested: take it to hold as little, and to be as slow, as at first."""
        self.width, self.backlog = narrowest(self.most), 0
        self.done.clear()

    def write_off(self) -> None:
        self.written_off += self.outstanding
        self.outstanding, self.moved_at = 0, self.tried_at


@dataclass(slots=True)
class Flow:
    """What one dispatcher releases.

    `outstanding(lane, until)`: how many of its jobs due up to then were released and are not done. `backlog(lane)`: about how many
    messages wait in the lane; it comes late, so it only corrects.
    """

    unit: UnitKey
    outstanding: Callable[[Lane, int], int]
    backlog: Callable[[Lane], int]
    ports: Ports
    _gates: dict[Lane, _Gate] = field(default_factory=dict)
    _weights: dict[str, float] = field(default_factory=dict)
    _weighed_at: int | None = None

    def __len__(self) -> int:
        """How many jobs wait."""
        return sum(len(gate.queue) for gate in self._gates.values())

    def first_dues(self) -> list[int]:
        """The earliest due time of what waits, of each lane in which something does."""
        return [gate.queue.first_due() for gate in self._gates.values() if gate.queue]

    def waiting(self) -> Iterator[DueEntry]:
        return (entry for gate in self._gates.values() for entry in gate.queue)

    def next_at(self, paused: Collection[Lane]) -> int | None:
        """When to come again for what waits for lanes that are not paused; None if nothing does."""
        return min((gate.tried_at + STEP_MS for gate in self._gates.values() if gate.queue and gate.lane not in paused), default=None)

    def order(self, entries: Sequence[DueEntry]) -> list[DueEntry]:
        """The same, which come by due time; more of one instant than a lane can take in fair order, since the first will fill it."""
        least = min(self.ports.rules.windows.values(), default=len(entries))
        ordered: list[DueEntry] = []
        for _, group in groupby(entries, key=attrgetter("due_at")):
            together = list(group)
            if len(together) > least:
                queue: FairQueue[DueEntry] = FairQueue()
                queue.weigh(self._weights_of({entry.key.owner for entry in together}))
                for entry in together:
                    queue.add(entry.key.owner, entry.due_at, entry)
                together = queue.take(len(together))
            ordered += together
        return ordered

    def release(self, ready: Sequence[DueEntry], paused: Collection[Lane]) -> list[DueEntry]:
        """What may go now, of what is ready and of what waited; the rest waits."""
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

    def close(self) -> None:
        """Nothing waits here any more, or another dispatcher goes on."""
        for gate in self._gates.values():
            self._hide(gate)

    def _pass(self, lane: Lane, entries: Sequence[DueEntry]) -> Sequence[DueEntry]:
        """All of it if it fits; else none, and it waits for its turn."""
        if lane not in self.ports.rules.windows:
            return entries
        now = self.ports.clock.now()
        if lane not in self._gates:
            most = self.ports.rules.windows[lane]
            self._gates[lane] = _Gate(lane, most, narrowest(most), now, now)
        gate = self._gates[lane]
        if not gate.queue and now - max(gate.moved_at, gate.until) >= RESTED_MS:
            gate.forget()
        if not gate.queue and len(entries) <= gate.room(entries[0].due_at, now):
            return gate.let(entries, now)
        for entry in entries:
            gate.queue.add(entry.key.owner, entry.due_at, entry)
        return ()

    def _drain(self, gate: _Gate) -> Sequence[DueEntry]:
        now = self.ports.clock.now()
        if now - gate.tried_at >= STEP_MS:
            self._look(gate, now)
        elif not gate.told:
            gate.credit = float(gate.room(gate.queue.first_due(), now))  # what came was more than fits, but some of it does
            gate.queue.weigh(self._weights_of(gate.queue.counts()))
        went = gate.let(gate.queue.take(max(int(gate.credit), 0)), now)
        gate.credit -= len(went)
        if not gate.queue:
            self._hide(gate)
        return went

    def _look(self, gate: _Gate, now: int) -> None:
        """How much is done, what waits elsewhere, and so how much may go until the next look."""
        gate.tried_at = now
        try:
            gate.learn(self.outstanding(gate.lane, gate.until), now)
            gate.fit(self.backlog(gate.lane))
            if now - gate.moved_at >= STILL_MS and gate.backlog == 0 and gate.room(gate.queue.first_due(), now) <= 0:
                gate.write_off()
        except Unavailable as error:
            log.warning("not looked what is done; nothing goes until the next look", extra={"lane": gate.lane, "error": str(error)})
            return
        counts = gate.queue.counts()
        weights = self._weights_of(counts)
        gate.queue.weigh(weights)
        first = gate.queue.first_due()
        if len(gate.queue) <= gate.room(first, now) and not gate.told:
            gate.credit = float(gate.room(first, now))
            return
        mine = {name: Demand(weights.get(name, fair_queue.USUAL_WEIGHT), count) for name, count in counts.items()}
        others = self._tell(gate, Backlog(self.unit, gate.lane, now, gate.in_hand, gate.rate, fair_queue.published(mine)))
        rate, in_hand = gate.rate + sum(each.rate for each in others), gate.in_hand + sum(each.outstanding for each in others)
        backlogs: dict[str, Mapping[str, Demand]] = {_name(each.unit): _apart(each) for each in others}
        backlogs[_name(self.unit)] = mine
        share = fair_queue.quotas(fair_queue.window(gate.base(first, now), rate) - in_hand, backlogs)[_name(self.unit)]
        gate.credit = gate.credit % 1 + share.room
        gate.queue.weigh(share.weights)

    def _tell(self, gate: _Gate, mine: Backlog) -> list[Backlog]:
        """Report what waits here; what waits elsewhere. While the ledger refuses, everyone counts for themselves."""
        try:
            self.ports.ledger.report_backlog(mine)
            gate.told = True
            return [each for each in self.ports.ledger.backlogs(gate.lane, mine.at - PUBLISHED_MS) if each.unit != self.unit]
        except Unavailable as error:
            log.info("backlogs are not shared for now", extra={"lane": gate.lane, "error": str(error)})
            return []

    def _hide(self, gate: _Gate) -> None:
        if not gate.told:
            return
        gate.told = False
        try:
            self.ports.ledger.drop_backlog(self.unit, gate.lane)
        except Unavailable:
            log.info("a backlog is not taken back; it is out of date in seconds", extra={"lane": gate.lane})

    def _weights_of(self, users: Collection[str]) -> Mapping[str, float]:
        """The weights of those who wait, and more; read again after a while, or when somebody is new."""
        now, names = self.ports.clock.now(), set(users)
        if self._weighed_at is None or now - self._weighed_at >= WEIGHTS_MS or not names <= self._weights.keys():
            try:
                self._weights |= dict.fromkeys(names, fair_queue.USUAL_WEIGHT) | self.ports.users.weights(sorted(names))
                self._weighed_at = now
            except Unavailable as error:
                log.info("weights are not read for now", extra={"users": len(names), "error": str(error)})
        return self._weights


def _rate(looks: Collection[tuple[int, int]]) -> float:
    return 1000 * sum(jobs for _, jobs in looks) / max(sum(ms for ms, _ in looks), 1)


def _name(unit: UnitKey) -> str:
    return f"{unit.minute}#{unit.part}"


def _apart(backlog: Backlog) -> dict[str, Demand]:
    """Its users; those it does not name are nobody else's."""
    return {f"{name}{_name(backlog.unit)}" if name == fair_queue.REST else name: demand for name, demand in backlog.users.items()}
