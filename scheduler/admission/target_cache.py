"""A cache of named targets for one process: one read per batch, at most once a second; stale entries serve while the table refuses."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from scheduler.model.errors import Unavailable
from scheduler.model.named_target import NamedTarget
from scheduler.storage.ports import Ports

KNOWN_MS = 1_000  # an older entry is read again: a change applies after this time at the latest


@dataclass(slots=True)
class TargetCache:
    """Lives as long as its process. It also notes what the process has told target queues, so that it is not told for each job."""

    ports: Ports
    joined: dict[tuple[str, str], int] = field(default_factory=dict)  # when it noted that jobs of an owner wait for a target
    woken: dict[str, int] = field(default_factory=dict)  # when it requested a release step of a target
    _found: dict[str, NamedTarget | None] = field(default_factory=dict)
    _read_at: dict[str, int] = field(default_factory=dict)

    def look(self, names: Iterable[str]) -> dict[str, NamedTarget | None]:
        """The target of each name, or None if there is none. Raises Unavailable if a name was never read and cannot be read now."""
        now, distinct = self.ports.clock.now(), sorted(set(names))
        stale = [name for name in distinct if not 0 <= now - self._read_at.get(name, -KNOWN_MS) < KNOWN_MS]
        if stale:
            try:
                read = self.ports.targets.targets(stale)
            except Unavailable:
                if not all(name in self._found for name in stale):
                    raise
            else:
                if any(name not in self._found for name in read.unreadable):
                    raise Unavailable
                for name in stale:
                    self._found[name] = self._found[name] if name in read.unreadable else read.get(name)
                    self._read_at[name] = now
        return {name: self._found[name] for name in distinct}

    def find(self, name: str) -> NamedTarget | None:
        return self.look([name])[name]

    def forget(self, name: str) -> None:
        """Note that this process changed the target: the next call reads it again."""
        self._read_at.pop(name, None)
