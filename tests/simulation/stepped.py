"""A world whose invocations belong to functions with names: the base of the worlds with costs, outages, bad items and deployments.

It needs of `World` only that each invocation takes its ports from a view (`_view(...).but(...)`), and that `_tick` begins with `_ports()`.
A subclass wraps ports in two places:

    `_wrap(name, port)`      once for each view: faults that belong to no single invocation
    `_begin(kind, ports)`    for each invocation: what belongs to it (its costs, its settings). `kind` is one of `KINDS`

An invocation that ends with an error other than `Unavailable` is a violation: `crashed`.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self
from unittest.mock import patch

from lab.world.costs import PROD, Costly, Costs
from lab.world.faults import Rates
from lab.world.hub import Killed
from scheduler.model.errors import Unavailable
from scheduler.model.rules import Rules
from scheduler.model.spec import JobSpec
from scheduler.pipeline import dispatch, slot_pages
from scheduler.pipeline.submit import NewJob
from scheduler.storage.memory.ports import MemoryPorts
from tests.simulation.world import DISPATCHERS_FREEZE, EXECUTORS_FREEZE, World

# "api" includes plan, bury and the people's calls. "execute" is a process: executors keep their ports from one batch to the next.
KINDS = ("api", "tick", "dispatch", "execute")
OWN = ("clock", "rules", "order", "begin")  # fields of a view that are no ports of a service


class Invoked(MemoryPorts):
    """The ports of a function. `but` begins an invocation and returns its ports."""

    begin: Callable[[MemoryPorts], Any]

    @classmethod
    def of(cls, ports: MemoryPorts, begin: Callable[[MemoryPorts], Any]) -> "Invoked":
        made = cls.__new__(cls)
        vars(made).update(vars(ports), begin=begin)
        return made

    def but(self, **ports: Any) -> Self:
        plain = MemoryPorts.__new__(MemoryPorts)
        vars(plain).update({name: port for name, port in vars(self).items() if name != "begin"}, **ports)
        begun: Self = self.begin(plain)
        return begun


class SteppedWorld(World):
    """See the module."""

    def __init__(self, seed: int, rates: Rates, *, rules: Rules | None = None, concurrency: int = 50) -> None:
        self._kind = "api"
        super().__init__(seed, rates, rules=rules, concurrency=concurrency)
        spawn = self.hub.spawn
        self.hub.spawn = lambda work, when=None: spawn(lambda: self._guarded(work), when)  # type: ignore[method-assign]

    def _wrap(self, name: str, port: Any) -> Any:
        """Return the port `name` as every invocation of the world sees it."""
        return port

    def _begin(self, kind: str, ports: MemoryPorts) -> MemoryPorts:
        """Return the ports of an invocation that begins now."""
        return ports

    def _view(self, freeze: Mapping[str, int]) -> MemoryPorts:
        view = super()._view(freeze)
        wrapped = view.but(**{name: self._wrap(name, port) for name, port in vars(view).items() if name not in OWN})
        if not freeze:
            return Invoked.of(wrapped, lambda ports: self._begin(self._take_kind(), ports))
        kind = "execute" if freeze == EXECUTORS_FREEZE else "dispatch"
        assert kind == "execute" or freeze == DISPATCHERS_FREEZE
        return Invoked.of(wrapped, lambda ports: self._begin(kind, ports))

    def _tick(self) -> None:
        self._kind = "tick"
        super()._tick()

    def post_one(self, at: int, execute_at: int | None = None, takes_ms: int = 1) -> None:
        """Let a client post a job at `at`, which succeeds after `takes_ms`, besides the jobs of `run`."""
        spec = JobSpec("log", {"takes": takes_ms, "fails": 0}, timeout_ms=300_000)
        self.hub.spawn(lambda: self._post([NewJob("user", spec, execute_at)]), at)

    def _take_kind(self) -> str:
        kind, self._kind = self._kind, "api"
        return kind

    def _guarded(self, work: Callable[[], Any]) -> None:
        """Run an invocation. An error ends it, as on Lambda, and no other one."""
        try:
            work()
        except (Killed, AssertionError):
            raise
        except Unavailable:
            self.faults.counts["invocation refused"] += 1
        except Exception as error:
            self._violation("crashed", f"{type(error).__name__}: {str(error)[:100]}")


class CostlyWorld(SteppedWorld):
    """A world whose calls have costs. `memory_mb` has the memory of each kind of function."""

    def __init__(
        self,
        seed: int,
        rates: Rates,
        *,
        rules: Rules | None = None,
        concurrency: int = 50,
        memory_mb: Mapping[str, int] = PROD,
        slowness: float = 1.0,
    ) -> None:
        self.costs: Costs | None = None
        self._memory_mb, self._slowness = memory_mb, slowness
        super().__init__(seed, rates, rules=rules, concurrency=concurrency)

    def _begin(self, kind: str, ports: MemoryPorts) -> MemoryPorts:
        ports = super()._begin(kind, ports)
        if self.costs is None:
            self.costs = Costs(self.hub, self.faults, self._memory_mb, self._slowness)
        step = self.costs.step(kind)
        return ports.but(**{name: Costly(name, port, self.costs, step) for name, port in vars(ports).items() if name not in OWN})


@contextmanager
def scaled(slowness: float) -> Iterator[None]:
    """Let a step hold, and split, fewer jobs, in proportion to the slower cores."""
    split, most = max(int(dispatch.SPLIT / slowness), 1), max(int(slot_pages.MOST / slowness), 1)
    with patch.object(dispatch, "SPLIT", split), patch.object(slot_pages, "MOST", most):
        yield
