"""The machine's clock: services read it only here."""

import time


class SystemClock:
    """The port `Clock` on the real clock. Instants are rounded down, so `now() >= at` is never true too early."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def sleep_until(self, at: int) -> None:
        while (left := seconds_until(at)) > 0:
            time.sleep(left)


def seconds_until(at: int) -> float:
    """Seconds from now to the instant `at` (ms); negative once it has passed."""
    return at / 1000 - time.time_ns() / 1_000_000_000
