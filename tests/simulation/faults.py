"""What may go wrong, how often, and the wrapper that makes it go wrong between any two effects."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from scheduler.errors import Unavailable
from tests.simulation.hub import Hub, Killed


@dataclass(frozen=True)
class Rates:
    """Probabilities per effect unless said otherwise; all zero is a perfect world."""

    crash: float = 0.0  # the invocation dies before or after the effect
    refuse: float = 0.0  # the call fails; in half of the cases the effect has happened
    slow: float = 0.0  # the call takes 2 to 20 s
    freeze: float = 0.0  # the invocation stands still for 20 to 90 s, then goes on
    lose: float = 0.0  # per message: lost on its way
    double: float = 0.0  # per message: delivered twice, at once or later
    dead: float = 0.0  # per doubled message: the copy lands in the dead-letter queue
    purge: float = 0.0  # per executor that dies: its messages are gone with it
    redeliver: float = 0.0  # per receive: the same message is delivered again while it is in work
    missing_tick: float = 0.0  # per tick
    double_tick: float = 0.0  # per tick
    late_tick_ms: int = 0  # ticks come up to this much late
    lag_ms: int = 0  # the due index usually lags up to this much ...
    storm: float = 0.0  # ... and per minute with this probability, up to a minute; every fourth time up to seven
    skew_ms: int = 0  # clocks of invocations differ by up to this much, either way
    outage: float = 0.0  # per run: the tick is gone for 10 to 60 minutes
    cancel: float = 0.0  # per job: somebody cancels it
    change: float = 0.0  # per job: somebody changes it
    expire: float = 0.0  # per job: it is not wanted any more soon after its time
    retry: float = 0.0  # per job that failed or was killed: somebody retries it
    pause: float = 0.0  # per run: lanes are paused for a while


CALM = Rates(lag_ms=300)
ROUGH = Rates(
    crash=0.002,
    refuse=0.004,
    slow=0.0005,
    freeze=0.0002,
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
    skew_ms=250,
    outage=0.15,
    cancel=0.03,
    change=0.05,
    expire=0.05,
    retry=0.3,
    pause=0.3,
)


class Faults:
    """One seeded source of trouble. `counts` tells what was done, by kind. Off once the run winds down."""

    def __init__(self, rates: Rates, random: Random, hub: Hub) -> None:
        self.rates, self.random, self.hub = rates, random, hub
        self.counts: Counter[str] = Counter()
        self.on = True

    def strike(self, kind: str, probability: float) -> bool:
        """Whether the fault `kind` happens now."""
        if not self.on or not probability or self.random.random() >= probability:
            return False
        self.counts[kind] += 1
        return True

    def skew(self) -> int:
        return self.random.randint(-self.rates.skew_ms, self.rates.skew_ms) if self.on and self.rates.skew_ms else 0


class Faulty:
    """A port as one invocation sees it: each call takes time, may be refused, and the invocation may die around it."""

    def __init__(self, port: object, faults: Faults, *, latency: tuple[int, int] = (1, 6), freeze: int = 1) -> None:
        self._port, self._faults, self._latency, self._freeze = port, faults, latency, freeze

    def __getattr__(self, name: str) -> Callable[..., Any]:
        effect = getattr(self._port, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            faults = self._faults
            self._pass_time()
            if faults.strike("crash", faults.rates.crash):
                if faults.random.random() < 0.5:
                    effect(*args, **kwargs)
                raise Killed
            if faults.strike("refused", faults.rates.refuse):
                if faults.random.random() < 0.5:
                    effect(*args, **kwargs)
                raise Unavailable(f"simulated: {name}")
            answer = effect(*args, **kwargs)
            self._maybe_freeze()
            return answer

        self.__dict__[name] = call
        return call

    def _pass_time(self) -> None:
        faults = self._faults
        took = faults.random.randint(*self._latency)
        if faults.strike("slow", faults.rates.slow):
            took = faults.random.randint(2_000, 20_000)
        faults.hub.sleep_until(faults.hub.time + took)
        self._maybe_freeze()

    def _maybe_freeze(self) -> None:
        """Before the effect or between the effect and its answer: what was read may be old by then."""
        faults = self._faults
        if faults.strike("freeze", faults.rates.freeze * self._freeze / 2):
            faults.hub.sleep_until(faults.hub.time + faults.random.randint(20_000, 90_000))
