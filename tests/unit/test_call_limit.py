"""How many calls an executor has in flight: the window by itself, and its places among threads."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from lambdas._pool import THREADS
from scheduler.model.rules import Rules
from scheduler.targets.call_limit import GROW_MS, MOST, PAUSE_MS, PROBE_MS, RESTED_MS, START, CallLimit, CallWindow

NEVER = threading.Event()


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
    assert all(later == min(2 * earlier, MOST) for earlier, later in zip(sizes, sizes[1:], strict=False))


@pytest.mark.parametrize("most", [1, 6, START])
def test_no_window_is_larger_than_its_bound(most: int) -> None:
    window = CallWindow(most)
    assert [filled(window, at) for at in range(0, 10_000, 500)] == [most] * 20


def test_a_refusal_leaves_the_calls_that_were_accepted() -> None:
    window = CallWindow()
    sent = filled(window, 0)
    for _ in range(sent - 5):
        window.refused(20, 1.0)
    assert window.calls == 5 and filled(window, 20 + PAUSE_MS[0] - 1) == 5 == filled(window, 20 + PAUSE_MS[0])
    window.answered(300)
    assert filled(window, 300) == 5, "another call has the place of one that ended"


def test_after_a_refusal_a_window_grows_by_a_tenth_a_second() -> None:
    window = CallWindow()
    sent = filled(window, 0)
    for _ in range(sent - 20):
        window.refused(20, 1.0)
    grown = [filled(window, 20 + second * GROW_MS) for second in range(1, 5)]
    assert grown == [22, 24, 26, 29]


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
    assert window.size == 1
    assert filled(window, RESTED_MS) == 1 + 1, "it has grown by one"
    for _ in range(2):
        window.answered(RESTED_MS)
    assert filled(window, 3 * RESTED_MS) >= START


def test_a_place_is_given_to_the_call_that_waited_longest() -> None:
    limit, order = CallLimit(1), list[int]()

    def call(number: int) -> None:
        assert limit.take(time.monotonic() + 10, NEVER)
        order.append(number)
        limit.answered()

    assert limit.take(0, NEVER)
    with ThreadPoolExecutor(4) as threads:
        for number in range(4):
            threads.submit(call, number)
            while len(limit._waiting) <= number:
                time.sleep(0.001)
        limit.answered()
    assert order == [0, 1, 2, 3]


def test_a_call_without_a_place_gives_up_at_its_time_or_a_stop() -> None:
    limit, stop = CallLimit(1), threading.Event()
    assert limit.take(0, NEVER) and not limit.take(0, NEVER)
    stop.set()
    assert not limit.take(time.monotonic() + 10, stop) and not limit._waiting


def test_a_refused_call_goes_before_those_that_were_never_sent() -> None:
    limit, order = CallLimit(1), list[str]()

    def call(name: str, again: bool) -> None:
        assert limit.take(time.monotonic() + 10, NEVER, again=again)
        order.append(name)
        limit.answered()

    assert limit.take(0, NEVER)
    with ThreadPoolExecutor(2) as threads:
        for number, (name, again) in enumerate((("new", False), ("refused", True))):
            threads.submit(call, name, again)
            while len(limit._waiting) <= number:
                time.sleep(0.001)
        limit.refused()
    assert order == ["refused", "new"]
