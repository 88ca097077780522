"""Deliveries of EventBridge to functions: what is repeated, and for how long."""

import threading

import pytest

from local import deliveries

OK: dict[str, bool] = {}
FAILED, THROTTLED = {"error": True}, {"error": True, "throttle": True}


@pytest.mark.parametrize(
    ("answers", "settings", "delivered"),
    [
        ([OK], {}, True),
        ([THROTTLED] * 50 + [FAILED, FAILED, OK], {}, True),
        ([FAILED] * 3, {}, False),
        ([FAILED], {"MaximumRetryAttempts": 0}, False),
        ([THROTTLED] * 61, {"MaximumEventAgeInSeconds": 60}, False),
    ],
)
def test_throttled_events_are_repeated_until_they_are_too_old(
    answers: list[dict[str, bool]], settings: dict[str, int], *, delivered: bool
) -> None:
    now, left = [0.0], list(answers)

    def pause(seconds: float) -> None:
        now[0] += seconds

    found = deliveries.deliver(lambda: left.pop(0), settings, threading.Semaphore(1), lambda: now[0], pause)
    assert (found, left) == (delivered, [])
