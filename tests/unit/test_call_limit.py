"""The calls that an executor has in flight, and those that wait for a place."""

from itertools import pairwise

import pytest

from lambdas._pool import THREADS
from scheduler.model.rules import Rules
from scheduler.targets.call_limit import (
    CHECK_MS,
    FROZEN_MS,
    GROW_MS,
    LEAST_WAIT_MS,
    MOST,
    MOST_MS,
    PAUSE_MS,
    PROBE_MS,
    RESTED_MS,
    START,
    WAITS_MS,
    CallLimit,
    CallWindow,
    Waiting,
    patience,
)


def filled(window: CallWindow, now: float) -> int:
    """Send as many calls as may be sent now; return the number in flight."""
    while window.take(now):
        pass
    return window.calls


def test_an_executor_has_as_many_calls_as_threads_at_most() -> None:
    assert MOST == THREADS == Rules().calls_at_once


def test_a_window_doubles_while_nothing_is_refused() -> None:
    window = CallWindow()
    sizes = [filled(window, at) for at in range(0, 500, PROBE_MS)]
    assert sizes[0] in (START, 2 * START) and sizes[-1] == MOST
    assert all(later == min(2 * earlier, MOST) for earlier, later in pairwise(sizes))


@pytest.mark.parametrize("most", [1, 6, START])
def test_no_window_is_larger_than_its_bound(most: int) -> None:
    window = CallWindow(most)
    assert [filled(window, at) for at in range(0, 10_000, 500)] == [most] * 20


def refused_but(window: CallWindow, accepted: int, now: float) -> None:
    for _ in range(filled(window, now) - accepted):
        window.refused(now + 20, 1.0)


def test_a_refusal_leaves_the_calls_that_were_accepted() -> None:
    window = CallWindow()
    refused_but(window, 5, 0)
    assert filled(window, 20 + PAUSE_MS[0] - 1) == 5 == filled(window, 20 + PAUSE_MS[0])
    window.answered(300)
    assert filled(window, 300) == 5, "another call has the place of one that ended"


def test_after_a_refusal_a_window_grows_slowly_and_then_faster() -> None:
    window = CallWindow()
    refused_but(window, 20, 0)
    assert [filled(window, 20 + times * GROW_MS) for times in range(1, 6)] == [22, 26, 36, 66, 133]
    window = CallWindow()
    refused_but(window, 1, 0)
    assert filled(window, 20 + GROW_MS) == 2, "by one call at least"


def test_pauses_double_while_every_call_is_refused_and_end_with_an_answer() -> None:
    window, now, pauses = CallWindow(), 0.0, []
    for _ in range(9):
        while not window.take(now):
            now += 1
        window.refused(now, 1.0)
        pauses.append(window.again_at(now) - now)
    assert pauses == [50, 100, 200, 400, 800, 1_600, 2_000, 2_000, 2_000]
    now += 2_000
    assert window.take(now)
    window.answered(now)
    assert window.take(now)
    window.refused(now, 1.0)
    assert window.again_at(now) - now == 50


def test_executors_that_are_refused_at_once_try_again_at_different_times() -> None:
    at = []
    for jitter in (0.0, 0.5, 1.0):
        window = CallWindow()
        window.take(0)
        window.refused(0, jitter)
        at.append(window.again_at(0))
    assert at == [25, 37.5, 50]


def test_a_window_that_rested_is_forgotten() -> None:
    window = CallWindow()
    window.take(0)
    window.refused(0, 1.0)
    assert filled(window, RESTED_MS) == 2, "of one, it has grown by one"
    for _ in range(2):
        window.answered(RESTED_MS)
    assert filled(window, 3 * RESTED_MS) >= START


@pytest.mark.parametrize(
    ("returns", "timeout_ms", "wait"),
    [(0, 60_000, WAITS_MS[0]), (1, 60_000, WAITS_MS[1]), (2, 60_000, WAITS_MS[2]), (9, 60_000, WAITS_MS[2]), (2, 700_000, 140_000)]
    + [(returns, MOST_MS, LEAST_WAIT_MS) for returns in range(3)],
)
def test_a_job_waits_longer_the_more_often_it_came_back_but_its_call_fits(returns: int, timeout_ms: int, wait: int) -> None:
    assert patience(returns, timeout_ms) == wait


class Executor:
    """A `CallLimit` with a settable clock; `sent` and `given_up` name the calls in order."""

    def __init__(self, most: int) -> None:
        self.now = 0.0
        self.limit = CallLimit(most, lambda: self.now, lambda: 1.0)
        self.sent, self.given_up = list[str](), list[str]()

    def add(self, name: str, until: float = 60_000) -> Waiting:
        waiting = Waiting(lambda: self.sent.append(name), lambda: self.given_up.append(name), until)
        self.limit.add(waiting)
        return waiting

    def check(self, now: float) -> None:
        self.now = now
        self.limit.check()


def test_places_are_given_in_the_order_of_the_calls() -> None:
    executor = Executor(2)
    for name in "abcde":
        executor.add(name)
    assert executor.sent == ["a", "b"] and executor.limit.calls == 2
    executor.limit.answered()
    assert executor.sent == ["a", "b", "c"]


def test_a_refused_call_goes_before_those_that_were_never_sent() -> None:
    executor = Executor(1)
    first = executor.add("first")
    executor.add("second")
    executor.limit.refused()
    executor.limit.add(first, again=True)
    executor.check(PAUSE_MS[0] - 1)
    assert executor.sent == ["first"], "the executor sends nothing for a while"
    executor.check(PAUSE_MS[0])
    assert executor.sent == ["first", "first"]


def test_a_call_without_a_place_gives_up_at_its_time() -> None:
    executor = Executor(1)
    executor.add("sent", until=100)
    executor.add("late", until=300)
    executor.add("soon", until=200)
    executor.check(199)
    assert executor.given_up == []
    executor.check(300)
    assert executor.given_up == ["soon", "late"] and executor.sent == ["sent"]
    executor.limit.answered()
    assert executor.sent == ["sent"]


def test_a_call_that_is_dropped_gives_up_once() -> None:
    executor = Executor(1)
    sent, dropped = executor.add("sent"), executor.add("dropped")
    for waiting in (dropped, dropped, sent):
        executor.limit.drop(waiting)
    executor.check(60_000)
    assert executor.given_up == ["dropped"]


def test_a_frozen_executor_sends_nothing_until_it_has_looked() -> None:
    """It may have lost its leases meanwhile."""
    executor = Executor(1)
    executor.add("first")
    executor.add("second")
    executor.now = FROZEN_MS + 1
    executor.limit.answered()
    assert executor.sent == ["first"]
    executor.check(executor.now)
    assert executor.sent == ["first", "second"]


def test_the_main_thread_looks_when_something_may_change() -> None:
    executor = Executor(1)
    assert executor.limit.next_check() is None
    first = executor.add("first")
    assert executor.limit.next_check() is None, "nothing waits"
    executor.add("second", until=300)
    assert executor.limit.next_check() == 300
    executor.limit.refused()
    executor.limit.add(first, again=True)
    assert executor.limit.next_check() == PAUSE_MS[0]
    executor.check(PAUSE_MS[0])
    executor.add("third")
    executor.check(400)
    assert executor.limit.next_check() == 400 + CHECK_MS


def test_what_an_executor_lost_is_neither_sent_nor_given_up() -> None:
    executor = Executor(1)
    for name in "abc":
        executor.add(name)
    executor.limit.clear()
    executor.limit.answered()
    executor.check(60_000)
    assert (executor.sent, executor.given_up) == (["a"], [])


def test_a_call_that_may_be_left_out_takes_no_place_of_others() -> None:
    executor = Executor(2)
    assert executor.limit.take() and executor.limit.take() and not executor.limit.take()
    executor.add("first")
    executor.limit.answered()
    assert executor.sent == ["first"] and not executor.limit.take()
