"""A meter of all that AWS would bill, and the layer that reports to it what is used."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from lab.world.layers import Layer
from scheduler.model.job import Job
from scheduler.storage.ports import Written


@dataclass(slots=True)
class Meter:
    """All that AWS would bill for some minutes. `calls`, `waited_ms`, `invocations` and `log_bytes` are by function."""

    minutes: int = 0
    calls: Counter[str] = field(default_factory=Counter)  # for whose answers the function waits, one after the other
    waited_ms: Counter[str] = field(default_factory=Counter)
    invocations: Counter[str] = field(default_factory=Counter)
    log_bytes: Counter[str] = field(default_factory=Counter)
    requests: Counter[str] = field(default_factory=Counter)  # by service: SQS, SQS with a message group, SNS, HTTP API, schedules
    reads: float = 0.0  # read units
    writes: int = 0  # write units
    metrics: set[str] = field(default_factory=set)  # our own metrics that were emitted
    verbs: Counter[str] = field(default_factory=Counter)  # of ports
    jobs: int = 0  # of users, that ended


class Counts(Protocol):
    """The stage that counts the use of ports."""

    def used(self, port: str, verb: str, arguments: Sequence[Any]) -> None:
        """Count the use of a verb."""

    def parallel(self, verb: str) -> AbstractContextManager[None]:
        """Return what surrounds the calls of a verb."""

    def written(self, before: Job | None, after: Job | None) -> None:
        """Follow a write of a job."""


class Metered(Layer):
    """A port whose use a stage counts."""

    def __init__(self, port: Any, name: str, counts: Counts) -> None:
        super().__init__(port)
        self._name, self._counts = name, counts

    def around(self, name: str, effect: Callable[..., Any]) -> Callable[..., Any]:
        port, counts = self._name, self._counts

        def use(*args: Any, **more: Any) -> Any:
            counts.used(port, name, [*args, *more.values()])
            with counts.parallel(name):
                answer = effect(*args, **more)
            for before, after in _changes(port, name, args, answer):
                counts.written(before, after)
            return answer

        return use


def _changes(port: str, verb: str, args: Sequence[Any], answer: Any) -> Iterator[tuple[Job | None, Job | None]]:
    """Yield the writes of jobs in the use of a verb."""
    if port == "jobs" and verb == "put" and answer:
        yield None, args[0]
    elif port == "jobs" and verb == "put_many":
        yield from ((None, job) for job, done in zip(args[0], answer, strict=True) if done is Written.YES)
    elif port == "jobs" and verb == "claim":
        yield from ((each.job, each.job) for each in answer if each is not None and each.won)
    elif port == "jobs" and verb == "change":
        yield from ((change.before, change.after) for change, done in zip(args[0], answer, strict=True) if done is Written.YES)
