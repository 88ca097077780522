"""The simulated faults, their rates, and the wrapper of ports that causes them between any two effects."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from lab.world.hub import Hub, Killed
from lab.world.layers import Layer
from scheduler.model.errors import Unavailable


@dataclass(frozen=True)
class Rates:
    """Probabilities, per effect unless specified otherwise. Without any rate the world is perfect."""

    crash: float = 0.0  # the invocation dies before or after the effect
    refuse: float = 0.0  # the call fails; in half of the cases the effect has happened
    slow: float = 0.0  # the call takes 2 to 20 s
    freeze: float = 0.0  # the invocation stops for 20 to 90 s, then continues; every second time its monotonic clock stands still
    lose: float = 0.0  # per message: lost
    double: float = 0.0  # per message: delivered twice, at once or later
    dead: float = 0.0  # per doubled message: the copy lands in the dead-letter queue
    purge: float = 0.0  # per executor that dies: its messages are lost with it
    redeliver: float = 0.0  # per receive: the message is delivered again while it is processed
    missing_tick: float = 0.0  # per tick
    double_tick: float = 0.0  # per tick
    late_tick_ms: int = 0  # ticks are late by up to this much
    lag_ms: int = 0  # the due index normally lags by up to this much ...
    storm: float = 0.0  # ... and per minute with this probability by up to a minute, every fourth time by up to seven
    stale: float = 0.0  # per job of a glance that was written within the last second: it is returned as it was before
    skew_ms: int = 0  # clocks of invocations are wrong by up to this much, in either direction
    outage: float = 0.0  # per run: the tick is missing for 10 to 60 minutes
    cancel: float = 0.0  # per job: a user cancels it
    change: float = 0.0  # per job: a user changes it
    expire: float = 0.0  # per job: it expires soon after its time
    retry: float = 0.0  # per job that failed or was killed: a user retries it
    replay: float = 0.0  # per job that ended: a user replays it
    pause: float = 0.0  # per run: lanes are paused for a while


CALM = Rates(lag_ms=300)
ROUGH = Rates(
    crash=0.004,
    refuse=0.008,
    slow=0.001,
    freeze=0.0004,
    lose=0.003,
    double=0.01,
    dead=0.3,
    purge=0.3,
    redeliver=0.01,
    missing_tick=0.05,
    double_tick=0.1,
    late_tick_ms=15_000,
    lag_ms=2_000,
    storm=0.05,
    stale=0.2,
    skew_ms=250,
    outage=0.15,
    cancel=0.03,
    change=0.05,
    expire=0.05,
    retry=0.3,
    replay=0.02,
    pause=0.3,
)


class Faults:
    """A seeded source of faults. `counts` has the number of faults by kind. `on` is false once the run winds down."""

    def __init__(self, rates: Rates, random: Random, hub: Hub) -> None:
        self.rates, self.random, self.hub = rates, random, hub
        self.counts: Counter[str] = Counter()
        self.on = True

    def strike(self, kind: str, probability: float) -> bool:
        """Decide whether the fault `kind` happens now, and count it."""
        if not self.on or not probability or self.random.random() >= probability:
            return False
        self.counts[kind] += 1
        return True

    def skew(self) -> int:
        return self.between(-self.rates.skew_ms, self.rates.skew_ms) if self.on and self.rates.skew_ms else 0

    def between(self, low: int, high: int) -> int:
        """Draw evenly from `low` to `high`, as `randint` does, in about a third of its time."""
        return low + int(self.random.random() * (high - low + 1))


class Faulty(Layer):
    """A port as one invocation sees it: each call takes time and may be refused, and the invocation may die before or after it.

    One random number a call decides its duration and whether a fault affects it: most calls have none.
    """

    SLOWEST = 6  # ms; the quickest call takes one
    UNTOUCHED = frozenset({"check", "free"})  # methods that call no service, or of which a lost call only delays the next count

    def __init__(self, port: object, faults: Faults, *, freeze: int = 1) -> None:
        super().__init__(port)
        self._faults, self._freeze = faults, freeze
        rates = faults.rates
        self._troubles = (("crash", rates.crash), ("refused", rates.refuse), ("slow", rates.slow), ("freeze", rates.freeze * freeze))
        self._trouble = sum(rate for _, rate in self._troubles)

    def around(self, name: str, effect: Callable[..., Any]) -> Callable[..., Any]:
        faults, hub, random = self._faults, self._faults.hub, self._faults.random.random
        sleep_until, slowest, trouble = hub.sleep_until, self.SLOWEST, self._trouble
        if name in self.UNTOUCHED:
            return effect

        def call(*args: Any, **kwargs: Any) -> Any:
            draw = random()
            sleep_until(hub.time + 1 + int(draw * 6e6) % slowest)
            if draw < trouble and faults.on:
                return self._troubled(self._befalls(draw), name, lambda: effect(*args, **kwargs))
            return effect(*args, **kwargs)

        return call

    def _befalls(self, draw: float) -> str:
        """Return the kind of fault that the draw selects, and count it."""
        befallen = ""
        for kind, rate in self._troubles:
            befallen = kind
            if draw < rate:
                break
            draw -= rate
        self._faults.counts[befallen] += 1
        return befallen

    def _troubled(self, kind: str, name: str, effect: Callable[[], Any]) -> Any:
        """Make a call with a fault. A frozen invocation may stop before the effect, or between the effect and its answer: the data that
        it has read may be outdated by then. In half of the freezes its monotonic clock stands still."""
        hub, random = self._faults.hub, self._faults.random
        happens = random.random() < 0.5
        if kind in ("crash", "refused"):
            if happens:
                effect()
            raise Killed if kind == "crash" else Unavailable(f"simulated: {name}")
        pause = random.randint(2_000, 20_000) if kind == "slow" else random.randint(20_000, 90_000)
        answer = effect() if kind == "freeze" and happens else None
        hub.sleep_until(hub.time + pause)
        if kind == "freeze" and pause % 2:
            hub.stand_still(pause)
        return answer if kind == "freeze" and happens else effect()
