"""The clocks of the world: one that a caller sets, and one of an invocation on the hub."""

from greenlet import getcurrent

from lab.world.hub import Hub
from scheduler.model.instants import parse

NOW = parse("2026-11-20T10:00:00Z")


class FixedClock:
    """The port `Clock`, standing still until it is moved; a sleep moves it."""

    def __init__(self, at: int = NOW) -> None:
        self.at = at
        self.frozen_ms = 0
        self.slept: list[int] = []

    def now(self) -> int:
        return self.at

    def monotonic(self) -> int:
        return self.at - self.frozen_ms

    def advance(self, ms: int) -> None:
        self.at += ms

    def freeze(self, ms: int) -> None:
        """The machine is frozen, and its monotonic clock stands still meanwhile."""
        self.at += ms
        self.frozen_ms += ms

    def sleep_until(self, at: int = NOW) -> None:
        self.slept.append(at)
        self.at = max(self.at, at)


class SimClock:
    """The clock of an invocation: virtual time plus this machine's error. Monotonic time has no error, but may stand still in a freeze."""

    def __init__(self, hub: Hub, skew: int) -> None:
        self._hub, self._skew = hub, skew

    def now(self) -> int:
        return self._hub.time + self._skew

    def monotonic(self) -> int:
        return self._hub.time - getattr(getcurrent(), "stood_still_ms", 0)

    def sleep_until(self, at: int = NOW) -> None:
        self._hub.sleep_until(max(at - self._skew, self._hub.time))
