"""Weighted fair order and the shares of units: proportional, bounded, work-conserving, without credit for idle users."""

import itertools
import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.model.backlog import Demand
from scheduler.sharing.fair_queue import AHEAD_S, NAMED, REST, FairQueue, Quota, published, quotas, window

WEIGHTS = st.sampled_from([0.25, 0.5, 1.0, 2.0, 3.0, 10.0])
USERS = st.dictionaries(st.sampled_from("abcdef"), st.tuples(WEIGHTS, st.integers(1, 60)), min_size=1)
Users = dict[str, tuple[float, int]]


def queue_of(users: Users) -> FairQueue[str]:
    queue: FairQueue[str] = FairQueue()
    queue.weigh({name: weight for name, (weight, _) in users.items()})
    for name, (_, count) in users.items():
        for number in range(count):
            queue.add(name, number, name)
    return queue


@pytest.mark.long
@given(USERS, st.integers(0, 400))
def test_every_waiting_job_is_taken_once(users: Users, limit: int) -> None:
    queue = queue_of(users)
    total = sum(count for _, count in users.values())
    first = queue.take(limit)
    assert len(first) == min(limit, total) and len(queue) == total - len(first)
    assert Counter(first + queue.take(total)) == {name: count for name, (_, count) in users.items()}


@pytest.mark.long
@given(USERS, st.integers(0, 60), st.integers(0, 60))
def test_waiting_jobs_are_counted_by_due_time(users: Users, since: int, until: int) -> None:
    waiting = [number for _, count in users.values() for number in range(count)]
    assert queue_of(users).count(since, until) == sum(since <= number <= until for number in waiting)


@given(st.lists(st.integers(0, 9) | st.none(), max_size=60), st.integers(0, 9), st.integers(0, 9))
def test_jobs_of_one_user_leave_by_due_time_whenever_they_came(steps: list[int | None], since: int, until: int) -> None:
    """A number adds a job due then; None takes one."""
    queue, waiting = FairQueue[int](), list[int]()
    for due_at in steps:
        if due_at is not None:
            queue.add("ada", due_at, due_at)
            waiting = sorted([*waiting, due_at])
        else:
            assert queue.take(1) == waiting[:1]
            waiting = waiting[1:]
        assert sorted(queue) == waiting and len(queue) == len(waiting)
        assert queue.counts() == ({"ada": len(waiting)} if waiting else {})
        assert queue.count(since, until) == sum(since <= number <= until for number in waiting)
        assert not waiting or queue.first_due() == waiting[0]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 99)) | st.sets(st.sampled_from("abc"), max_size=2), max_size=60))
def test_no_job_waits_that_is_due_before_the_first_one(steps: list[tuple[str, int] | set[str]]) -> None:
    """Dispatchers that take over leave out what was due before. A pair adds a job of a user; a set takes one of any other user."""
    queue, waiting = FairQueue[tuple[str, int]](), Counter[tuple[str, int]]()
    for step in steps:
        if isinstance(step, tuple):
            queue.add(*step, step)
            waiting[step] += 1
        else:
            waiting.subtract(queue.take(1, step))
        if left := [due_at for (_, due_at), count in waiting.items() if count]:
            assert queue.first_due() == min(left)


@given(USERS)
def test_no_waiting_user_gets_ahead_by_more_than_one_job_of_each(users: Users) -> None:
    order = queue_of(users).take(10_000)
    left = {name: count for name, (_, count) in users.items()}
    got: Counter[str] = Counter()
    for name in order:
        got[name] += 1
        left[name] -= 1
        waiting = [each for each, count in left.items() if count]
        for one, other in itertools.combinations(waiting, 2):
            ahead = got[one] / users[one][0] - got[other] / users[other][0]
            assert abs(ahead) <= 1 / users[one][0] + 1 / users[other][0] + 1e-6


@given(USERS, st.integers(0, 100), WEIGHTS, st.integers(1, 20))
def test_a_later_user_waits_no_longer_than_the_bound(users: Users, before: int, weight: float, count: int) -> None:
    queue = queue_of(users)
    queue.take(before)
    others = {name: users[name][0] for name in queue.counts()}
    queue.weigh({name: each for name, (each, _) in users.items()} | {"late": weight})
    for number in range(count):
        queue.add("late", number, "late")
    order = queue.take(10_000)
    places = [place for place, name in enumerate(order, start=1) if name == "late"]
    total = weight + sum(others.values())
    for k, place in enumerate(places, start=1):
        assert place <= math.floor(k * total / weight + len(others) + 1e-6)


def test_an_idle_user_saves_up_no_share() -> None:
    queue: FairQueue[str] = FairQueue()
    for number in range(100):
        queue.add("busy", number, "busy")
    queue.take(50)
    for number in range(50):
        queue.add("idle", number, "idle")
    assert Counter(queue.take(20)) == {"busy": 10, "idle": 10}


def test_a_user_without_competitors_owes_no_share() -> None:
    queue: FairQueue[str] = FairQueue()
    for number in range(50):
        queue.add("a", number, "a")
    queue.take(50)
    queue.add("b", 0, "b")
    queue.add("a", 0, "a")
    queue.add("a", 1, "a")
    queue.add("b", 1, "b")
    assert Counter(queue.take(2)) == {"a": 1, "b": 1}


def test_the_jobs_of_one_user_are_ordered_by_due_time() -> None:
    queue: FairQueue[int] = FairQueue()
    for due in (30, 10, 20):
        queue.add("a", due, due)
    assert queue.take(2) == [10, 20]
    queue.add("a", 5, 5)
    assert queue.take(2) == [5, 30]


def test_a_new_weight_applies_from_the_next_job_on() -> None:
    queue = queue_of({"a": (1.0, 100), "b": (1.0, 100)})
    assert Counter(queue.take(20)) == {"a": 10, "b": 10}
    queue.weigh({"a": 3.0})
    got = Counter(queue.take(40))
    assert got["a"] == pytest.approx(30, abs=1)


def test_a_user_with_weight_zero_starts_late_but_starts() -> None:
    queue = queue_of({"a": (0.0, 1), "b": (1.0, 2_000)})
    assert "a" in queue.take(1_002)


BACKLOGS = st.dictionaries(
    st.sampled_from(["u1", "u2", "u3"]), st.dictionaries(st.sampled_from("abcd"), st.integers(0, 200), max_size=4), min_size=1
)


def demands(backlogs: dict[str, dict[str, int]], weights: dict[str, float]) -> dict[str, dict[str, Demand]]:
    return {unit: {name: Demand(weights[name], count) for name, count in users.items()} for unit, users in backlogs.items()}


@given(BACKLOGS, st.fixed_dictionaries(dict.fromkeys("abcd", WEIGHTS)), st.integers(0, 500))
def test_units_get_all_the_room_they_can_use(backlogs: dict[str, dict[str, int]], weights: dict[str, float], room: int) -> None:
    shares = quotas(room, demands(backlogs, weights))
    waiting = sum(sum(users.values()) for users in backlogs.values())
    assert sum(share.room for share in shares.values()) == pytest.approx(min(room, waiting))
    for unit, users in backlogs.items():
        assert shares[unit].room <= sum(users.values()) + 1e-6


def test_a_user_in_two_units_gets_no_more_than_in_one() -> None:
    shares = quotas(100, demands({"u1": {"a": 500}, "u2": {"a": 500, "b": 1_000}}, {"a": 1.0, "b": 1.0}))
    assert shares == {"u1": Quota(25, {"a": 0.5}), "u2": Quota(75, {"a": 0.5, "b": 1.0})}


def test_the_unused_share_of_a_user_goes_to_the_others_by_weight() -> None:
    shares = quotas(100, demands({"u1": {"a": 500}, "u2": {"b": 10}, "u3": {"c": 500}}, {"a": 1.0, "b": 1.0, "c": 2.0}))
    assert {unit: share.room for unit, share in shares.items()} == pytest.approx({"u1": 30, "u2": 10, "u3": 60})


def test_without_room_no_unit_gets_a_share() -> None:
    assert quotas(-5, {"u1": {"a": Demand(1.0, 10)}})["u1"].room == 0
    assert quotas(10, {}) == {}


@pytest.mark.parametrize("rate", [0.5, 20.0, 3_000.0])
@pytest.mark.parametrize("takes", [0.01, 1.0, 300.0])
def test_the_window_keeps_a_lane_busy_whatever_the_duration_of_jobs(rate: float, takes: float) -> None:
    holds = math.ceil(rate * takes)  # Little's law: the jobs being executed at this rate
    assert holds <= window(holds, rate) <= holds + rate * AHEAD_S


def test_a_backlog_names_the_fifty_users_with_the_most_jobs() -> None:
    users = {f"u{count}": Demand(2.0, count) for count in range(1, 54)}
    found = published(users)
    assert len(found) == NAMED + 1 == 51 and found[REST] == Demand(6.0, 1 + 2 + 3)
    assert published({"ann": Demand(1.0, 5)}) == {"ann": Demand(1.0, 5)}
