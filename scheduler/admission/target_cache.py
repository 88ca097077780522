"""A cache of named targets for one process: one read per batch, at most once a second; stale entries serve while the table refuses."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from scheduler.model.named_target import NamedTarget
from scheduler.storage.cache import Cache
from scheduler.storage.ports import Ports

KNOWN_MS = 1_000  # an older entry is read again: a change applies after this time at the latest
MOST = 10_000  # names in memory: requests may name targets that do not exist


@dataclass(slots=True)
class TargetCache:
    """Lives as long as its process. It also notes what the process has told target queues, so that it is not told for each job."""

    ports: Ports
    joined: dict[tuple[str, str], int] = field(default_factory=dict)  # when it noted that jobs of an owner wait for a target
    woken: dict[str, int] = field(default_factory=dict)  # when it requested a release step of a target
    _targets: Cache[str, NamedTarget | None] = field(init=False)

    def __post_init__(self) -> None:
        self._targets = Cache("named targets", self._read, KNOWN_MS, most=MOST)

    def find_all(self, names: Iterable[str]) -> dict[str, NamedTarget | None]:
        """The target of each name, or None if there is none. Raises Unavailable if a name was never read and cannot be read now."""
        return self._targets.get_all(sorted(set(names)), self.ports.clock.now())

    def find(self, name: str) -> NamedTarget | None:
        return self.find_all([name])[name]

    def peek(self, name: str | None) -> NamedTarget | None:
        """The target as it was last read, however long ago; None: there is none, or it was never read."""
        return None if name is None else self._targets.peek(name)

    def forget(self, name: str) -> None:
        """Note that this process changed the target: the next call reads it again."""
        self._targets.forget(name)

    def _read(self, names: Sequence[str], now: int) -> dict[str, NamedTarget | None]:
        read = self.ports.targets.targets(names)
        return {name: read.get(name) for name in names if name not in read.unreadable}
