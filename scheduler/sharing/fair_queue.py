"""Fair shares: which job is published next when more jobs are due than may be released, and how several units share a lane. Pure.

The rule is weighted fair queueing over users. Each job of a user gets a finish time on a virtual clock: 1 / weight after that of the
user's job before it, but no earlier than the clock. The job with the earliest finish time is next, and sets the clock to it. Hence,
while users 1..n have waiting jobs:

- Starts are proportional to weights. Of two users who always have waiting jobs, neither gets ahead by more than one job of each.
- At most k x v / w + 1 jobs of another user with weight v precede the k-th waiting job of a user with weight w. The job is therefore
  published after at most k x W / w + n - 1 jobs (W: the sum of all weights), however many jobs the other users have. It starts about
  (k x W / w + n - 1) / rate seconds after its arrival, plus one second for the jobs in the lane, plus about two seconds while a flood
  begins and the rate of the lane is unknown.
- No capacity is left unused while any job waits (work-conserving), and a user who had no jobs has saved up no share.
"""

import heapq
import itertools
from bisect import bisect_left, insort
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Generic, TypeVar

from scheduler.model.backlog import Demand

DEFAULT_WEIGHT = 1.0  # of a user without a weight
AHEAD_S = 1.0  # seconds of work that wait in a lane: enough until the next poll, and for jobs that the index does not show yet
LEAST_WEIGHT = 0.001  # lower bound: jobs of a user with weight 0 would never start
NAMED = 50  # users that a published backlog names
REST = "*"  # names all other users of a published backlog

T = TypeVar("T")


@dataclass(slots=True)
class _User(Generic[T]):
    # Sorted by due time, then by order of arrival; nearly all jobs come so. A step holds 120,000 (`slot_pages.MOST`): to add them takes
    # 0.1 s in order, and two seconds in the reverse order.
    waiting: list[tuple[int, int, T]] = field(default_factory=list)
    taken: int = 0  # the first ones of `waiting` were taken; they are removed once they are half of it
    step: float = 1 / DEFAULT_WEIGHT  # from the finish time of one job to that of the next: 1 / weight
    finish: float = 0.0  # finish time of the last job taken

    def __len__(self) -> int:
        return len(self.waiting) - self.taken

    def take(self) -> T:
        _, _, item = self.waiting[self.taken]
        self.taken += 1
        if self.taken * 2 >= len(self.waiting):
            del self.waiting[: self.taken]
            self.taken = 0
        return item

    def count(self, since: int, until: int) -> int:
        first = bisect_left(self.waiting, (since,), lo=self.taken)
        return bisect_left(self.waiting, (until + 1,), lo=first) - first


class FairQueue(Generic[T]):
    """The waiting jobs, by user. `take` returns them in fair order; the jobs of one user are ordered by due time."""

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
        return (item for user in self._users.values() for _, _, item in islice(user.waiting, user.taken, None))

    def weigh(self, weights: Mapping[str, float]) -> None:
        """Apply these weights, from the next job of each user on. A user not listed has `DEFAULT_WEIGHT`."""
        self._weights = weights
        for name, user in self._users.items():
            user.step = self._step(name)

    def counts(self) -> dict[str, int]:
        """The number of waiting jobs of each user who has any."""
        return {name: len(user) for name, user in self._users.items() if user}

    def count(self, since: int, until: int) -> int:
        """The number of waiting jobs that are due from `since` to `until` (ms), both included."""
        return sum([user.count(since, until) for user in self._users.values() if user.waiting])

    def first_due(self) -> int:
        """The earliest due time (ms) of all waiting jobs. Raises ValueError if no job waits."""
        return min(user.waiting[user.taken][0] for user in self._users.values() if user)

    def add(self, name: str, due_at: int, item: T) -> None:
        """Add a job of the user `name` that is due at `due_at` (ms)."""
        user = self._users.get(name)
        if user is None:
            user = self._users[name] = _User(step=self._step(name))
        insort(user.waiting, (due_at, next(self._numbers), item), lo=user.taken)
        self._length += 1
        if len(user.waiting) - user.taken == 1:
            heapq.heappush(self._heads, (max(user.finish, self._clock) + user.step, next(self._numbers), name))

    def take(self, limit: int, without: Collection[str] = ()) -> list[T]:
        """Remove and return the next jobs in fair order, at most `limit`, and none of the users `without`."""
        aside = [head for head in self._heads if head[2] in without] if without else []
        if not aside:
            return [self._next() for _ in range(min(limit, self._length))]
        self._heads = [head for head in self._heads if head[2] not in without]
        heapq.heapify(self._heads)
        taken: list[T] = []
        while self._heads and len(taken) < limit:
            taken.append(self._next())
        for head in aside:
            heapq.heappush(self._heads, head)
        return taken

    def _next(self) -> T:
        self._clock, _, name = self._heads[0]
        user = self._users[name]
        user.finish = self._clock
        item = user.take()
        self._length -= 1
        if user.waiting:
            heapq.heapreplace(self._heads, (user.finish + user.step, next(self._numbers), name))
        else:
            heapq.heappop(self._heads)
        return item

    def _step(self, name: str) -> float:
        return 1 / max(self._weights.get(name, DEFAULT_WEIGHT), LEAST_WEIGHT)


@dataclass(frozen=True, slots=True)
class Quota:
    """The share of one unit: the number of jobs that it may release, and the weights of its users. Fractions of a job add up."""

    room: float
    weights: Mapping[str, float]


def quotas(room: int, backlogs: Mapping[str, Mapping[str, Demand]]) -> dict[str, Quota]:
    """Divide `room`, the number of jobs that a lane still takes, among units; `backlogs` has the demand by unit and user.

    Water-filling: users share by weight, no user gets more than its waiting jobs, and the rest goes to the other users. The share of a
    user, and its weight, is divided among the units in proportion to its jobs there.
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
    """The number of jobs per weight of 1 that fills the room. `users`: weight and number of waiting jobs, beyond which a user gets none."""
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
    """The demand to publish: the `NAMED` users with the most waiting jobs, and the sum of all others as `REST`."""
    ordered = sorted(users, key=lambda name: users[name].count, reverse=True)
    rest = [users[name] for name in ordered[NAMED:]]
    named = {name: users[name] for name in ordered[:NAMED]}
    return named | ({REST: Demand(sum(each.weight for each in rest), sum(each.count for each in rest))} if rest else {})


def window(start: int, rate: float) -> int:
    """The number of released, unfinished jobs that a lane may have: `start`, plus those that it finishes in `AHEAD_S` at `rate` per second.

    `start` is the number of jobs that its executors have when all are busy. By Little's law the number of jobs being executed is
    rate x time per job, hence at most `start`. So a lane that could start more jobs always has waiting ones, whatever their duration,
    and no more than about a second of them.
    """
    return start + int(rate * AHEAD_S)
