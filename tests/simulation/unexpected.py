"""Errors that no port declares, batches that are answered in part, and old events, in a simulated world whose jobs are items.

    unexpected    a call of a function raises an error other than Unavailable, before or after its effect: a defect, a missing grant
    partly        a batch call refuses some of its entries; in half of these calls their effects have happened
    old event     a tick begins minutes after its time: Lambda delivers an event for hours if it throttles the function

An error that a function does not catch ends its invocation, as on Lambda, and is no violation; that a job is lost by it is one.
"""

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any

from lab.world.faults import ROUGH, Rates
from lab.world.hub import Killed
from lab.world.layers import Layer
from scheduler.model.job import Lane
from scheduler.pipeline.direct_path import DirectPath
from scheduler.storage.memory.ports import MemoryPorts
from scheduler.storage.ports import Written
from tests.simulation.item_faults import CodedWorld
from tests.simulation.world import PORTS

RAISED = 0.002  # share of calls
PARTLY = 0.03  # share of batch calls of two entries or more
OLD_EVENT = 0.2  # share of ticks that come a second time, so late:
OLD_MS = (60_000, 1_800_000)
AGAIN_MS = 30_000  # after this long, Lambda delivers the dead letters of a failed invocation again
REFUSALS: dict[str, Any] = {"claim": None, "change": Written.REFUSED, "withdraw": Written.REFUSED}  # the answer for a refused entry
RETURNING = frozenset({"publish", "send"})  # methods that return the refused entries


class Unexpected(Exception):
    """An error that no port declares."""


ERRORS = tuple(type(f"Unexpected{kind.__name__}", (Unexpected, kind), {}) for kind in (KeyError, OSError, RuntimeError, TypeError))


class Surprising(Layer):
    """A port whose calls raise errors that it does not declare, and answer batches in part."""

    def __init__(self, port: Any, world: "UnexpectedWorld") -> None:
        super().__init__(port)
        self._world = world

    def around(self, name: str, effect: Callable[..., Any]) -> Callable[..., Any]:
        world, chance = self._world, self._world.chance.random

        def call(*args: Any, **kwargs: Any) -> Any:
            if world.faults.on and chance() < RAISED:
                if chance() < 0.5:
                    effect(*args, **kwargs)
                world.faults.counts["unexpected"] += 1
                raise world.chance.choice(ERRORS)(name)
            if (name in REFUSALS or name in RETURNING) and len(args[0]) > 1 and world.faults.on and chance() < PARTLY:
                world.faults.counts["partly"] += 1
                return self._partly(name, lambda entries: effect(entries, *args[1:], **kwargs), args[0])
            return effect(*args, **kwargs)

        return call

    def _partly(self, name: str, effect: Callable[[Sequence[Any]], Any], entries: Sequence[Any]) -> Any:
        """Carry out a batch call that refuses each entry with a probability of one half."""
        refused = [self._world.chance.random() < 0.5 for _ in entries]
        done = entries if self._world.chance.random() < 0.5 else _those(entries, refused, False)
        answers = effect(done) if done else []
        if name in RETURNING:
            returned = _those(entries, refused, True)
            return [*returned, *(entry for entry in answers if entry not in returned)]
        left = iter(_those(answers, refused, False) if len(done) == len(entries) else answers)
        return [REFUSALS[name] if no else next(left) for no in refused]


def _those(entries: Iterable[Any], refused: Sequence[bool], which: bool) -> list[Any]:
    return [entry for entry, no in zip(entries, refused, strict=True) if no is which]


class UnexpectedWorld(CodedWorld):
    """See the module."""

    def __init__(self, seed: int, rates: Rates = ROUGH) -> None:
        self.chance = Random(seed + 6)
        self._surprising: dict[int, Surprising] = {}
        super().__init__(seed, rates)
        self.clients.ports = lambda: self._surprised(self._ports())
        self.processes = [DirectPath(self._surprised(process.ports)) for process in self.processes]

    def _begin(self, kind: str, ports: MemoryPorts) -> MemoryPorts:
        """Users and operators of the world are not part of the product: no error surprises the calls of kind `api`."""
        ports = super()._begin(kind, ports)
        return ports if kind == "api" else self._surprised(ports)

    def _surprised(self, ports: Any) -> Any:
        """Return the ports with errors. Wrappers are shared by all invocations, as the faulty ports are."""
        found = {}
        for name in (*PORTS, "targets"):
            port = getattr(ports, name)
            found[name] = self._surprising.setdefault(id(port), Surprising(port, self))
        return ports.but(**found)

    def _plan(self) -> None:
        self._kind = "plan"
        super()._plan()

    def _bury(self, lane: Lane) -> None:
        self._kind = "bury"
        try:
            super()._bury(lane)
        except (Unexpected, Killed):
            self.hub.at(self.hub.time + AGAIN_MS, lambda: self._wake(lane))
            raise

    def _maybe(self, heartbeat: Callable[[], None], due: int) -> None:
        super()._maybe(heartbeat, due)
        if self.faults.on and self.chance.random() < OLD_EVENT:
            self.faults.counts["old event"] += 1
            self.hub.spawn(heartbeat, due + self.chance.randint(*OLD_MS))

    def _guarded(self, work: Callable[[], Any]) -> None:
        def tolerant() -> None:
            try:
                work()
            except Unexpected:
                self.faults.counts["ended by an unexpected error"] += 1

        super()._guarded(tolerant)
