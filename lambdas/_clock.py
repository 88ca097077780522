"""The machine's clock: services read it only here."""

import time
from typing import Any

from scheduler.model import instants

BEHIND_MS = 60_000  # a schedule's event is never delivered before its time ...
AHEAD_MS = 180_000  # ... and at most two minutes after it: EventBridge and Lambda keep it for one minute each


class SystemClock:
    """The port `Clock` on the real clock. Instants are rounded down, so `now() >= at` is never true too early."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def sleep_until(self, at: int) -> None:
        while (left := seconds_until(at)) > 0:
            time.sleep(left)


class WrongClock(Exception):
    """This machine's clock is wrong by minutes."""


def compare(event: Any, now: int) -> None:
    """Compare the clock, which is at `now` (ms), with the time of a schedule's event, if it has one. Raises WrongClock."""
    try:
        at = instants.parse(event["time"])
    except (LookupError, TypeError, ValueError):
        return
    if not -BEHIND_MS <= now - at <= AHEAD_MS:
        raise WrongClock(f"the clock is at {instants.render(now)}, and the event is of {instants.render(at)}")


def seconds_until(at: int) -> float:
    """Seconds from now to the instant `at` (ms); negative once it has passed."""
    return at / 1000 - time.time_ns() / 1_000_000_000
