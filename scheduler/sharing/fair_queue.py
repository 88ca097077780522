"""Who goes next when more is due than may leave: weighted fair queueing over users, and shares of what several units may release. Pure.

Each job of a user gets a finish time of a virtual clock: 1 / weight after that of the user's job before it, but no earlier than the
clock. The job with the earliest one goes next, and sets the clock. Hence, while users 1..n wait:

- starts are proportional to weights: of any two users who wait all the time, neither gets ahead by more than one job of each;
- the k-th waiting job of a user with weight w lets at most k x v / w + 1 jobs of another one, with weight v, go first. So it leaves
  after at most k x W / w + n - 1 jobs (W: all weights together), whatever the others have waiting, and starts about
  (k x W / w + n - 1) / rate seconds after it came, one more for what the lane had in hand, and about two more while a flood begins and
  the rate of the lane is not known yet;
- nothing is kept back while anything waits (work-conserving), and who was idle has saved up nothing.
"""

import heapq
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from scheduler.model.job import Lane, UnitKey

USUAL_WEIGHT = 1.0
AHEAD_S = 1.0  # how much work waits in a lane: enough until the next look, and for what the index does not show yet
LEAST_WEIGHT = 0.001  # a weight of nothing would wait for ever
NAMED = 50  # users of a published backlog
REST = "*"  # stands for all its others

T = TypeVar("T")


@dataclass(slots=True)
class _User(Generic[T]):
    waiting: list[tuple[int, int, T]] = field(default_factory=list)  # a heap: by due time, then as they came
    finish: float = 0.0  # of the last job that left


class FairQueue(Generic[T]):
    """What waits, by user. `take` gives it out in fair order; a user's own jobs come by due time."""

    def __init__(self) -> None:
        self._users: dict[str, _User[T]] = {}
        self._heads: list[tuple[float, int, str]] = []  # a heap: the finish time of each waiting user's first job
        self._weights: Mapping[str, float] = {}
        self._clock = 0.0
        self._numbers = itertools.count()
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T]:
        return (item for user in self._users.values() for _, _, item in user.waiting)

    def weigh(self, weights: Mapping[str, float]) -> None:
        """From the next job of each user on; who is not named weighs `USUAL_WEIGHT`."""
        self._weights = weights

    def counts(self) -> dict[str, int]:
        """How many jobs of each user wait."""
        return {name: len(user.waiting) for name, user in self._users.items() if user.waiting}

    def first_due(self) -> int:
        """The earliest due time of all that wait. Raises ValueError if nothing does."""
        return min(user.waiting[0][0] for user in self._users.values() if user.waiting)

    def add(self, name: str, due_at: int, item: T) -> None:
        user = self._users.get(name)
        if user is None:
            user = self._users[name] = _User()
        heapq.heappush(user.waiting, (due_at, next(self._numbers), item))
        self._length += 1
        if len(user.waiting) == 1:
            self._line_up(name, user)

    def take(self, limit: int) -> list[T]:
        """The next jobs, at most `limit`."""
        return [self._next() for _ in range(min(limit, self._length))]

    def _next(self) -> T:
        self._clock, _, name = heapq.heappop(self._heads)
        user = self._users[name]
        user.finish = self._clock
        _, _, item = heapq.heappop(user.waiting)
        self._length -= 1
        if user.waiting:
            self._line_up(name, user)
        return item

    def _line_up(self, name: str, user: _User[T]) -> None:
        finish = max(user.finish, self._clock) + 1 / max(self._weights.get(name, USUAL_WEIGHT), LEAST_WEIGHT)
        heapq.heappush(self._heads, (finish, next(self._numbers), name))


@dataclass(frozen=True, slots=True)
class Demand:
    """What one unit has waiting of one user."""

    weight: float
    count: int


@dataclass(frozen=True, slots=True)
class Backlog:
    """What waits in one dispatcher for one lane, as it tells the others: its users with the most by name, all others as `REST`."""

    unit: UnitKey
    lane: Lane
    at: int
    outstanding: int  # released and not done
    rate: float  # done a second
    users: Mapping[str, Demand]


@dataclass(frozen=True, slots=True)
class Quota:
    """What one unit may release: so many jobs (what is less than one adds up), its users by these weights."""

    room: float
    weights: Mapping[str, float]


def quotas(room: int, backlogs: Mapping[str, Mapping[str, Demand]]) -> dict[str, Quota]:
    """The shares of several units in the room of a lane; `backlogs` says by unit and user what waits.

    Water-filling: users share by weight, none gets more than it has waiting, and what it leaves goes to the others. What a
    user gets, and its weight, is spread over the units as its jobs are.
    """
    totals: dict[str, int] = {}
    weights: dict[str, float] = {}
    for users in backlogs.values():
        for name, demand in users.items():
            totals[name] = totals.get(name, 0) + demand.count
            weights[name] = max(demand.weight, LEAST_WEIGHT)
    level = _level(room, [(weights[name], count) for name, count in totals.items() if count])
    shares: dict[str, Quota] = {}
    for unit, users in backlogs.items():
        there = {name: demand.count for name, demand in users.items() if demand.count}
        split = {name: weights[name] * count / totals[name] for name, count in there.items()}
        shares[unit] = Quota(sum(min(count, level * split[name]) for name, count in there.items()), split)
    return shares


def _level(room: int, users: list[tuple[float, int]]) -> float:
    """How many jobs each unit of weight gets, if nobody gets more than it has."""
    left, weight = float(max(room, 0)), sum(weight for weight, _ in users)
    level = 0.0
    for each, count in sorted(users, key=lambda user: user[1] / user[0]):
        level = left / weight if weight > 0 else level
        if level * each < count:
            return level
        left -= count
        weight -= each
        level = count / each
    return level


def published(users: Mapping[str, Demand]) -> dict[str, Demand]:
    """The users with the most waiting, and the rest as one."""
    ordered = sorted(users, key=lambda name: users[name].count, reverse=True)
    rest = [users[name] for name in ordered[NAMED:]]
    named = {name: users[name] for name in ordered[:NAMED]}
    return named | ({REST: Demand(sum(each.weight for each in rest), sum(each.count for each in rest))} if rest else {})


def window(start: int, rate: float) -> int:
    """How many jobs of a lane may be released and not yet done: what it holds at once, and what it does (`rate` a second) in `AHEAD_S`.

    `start` is what its executors hold when all are busy. By Little's law the jobs in work are rate x time in hand, so no more than
    `start`: whatever the jobs take, a lane that could take more has work waiting, and no more than about a second of it.
    """
    return start + int(rate * AHEAD_S)
