"""What one process knows of named targets: read at most once a second, all of a batch at once, and kept while the table refuses."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from scheduler.model.errors import Unavailable
from scheduler.storage.ports import Ports
from scheduler.targets.named_target import NamedTarget

KNOWN_MS = 1_000  # what was read longer ago is read again: a change takes hold that soon


@dataclass(slots=True)
class Known:
    """Lives as long as its process."""

    ports: Ports
    _found: dict[str, NamedTarget | None] = field(default_factory=dict)
    _read_at: dict[str, int] = field(default_factory=dict)

    def look(self, names: Iterable[str]) -> dict[str, NamedTarget | None]:
        """What stands under each of the names; None: nothing. Raises Unavailable if of one nothing is known at all."""
        now, wanted = self.ports.clock.now(), sorted(set(names))
        stale = [name for name in wanted if not 0 <= now - self._read_at.get(name, -KNOWN_MS) < KNOWN_MS]
        if stale:
            try:
                read = self.ports.targets.targets(stale)
            except Unavailable:
                if not all(name in self._found for name in stale):
                    raise
            else:
                for name in stale:
                    self._found[name], self._read_at[name] = read.get(name), now
        return {name: self._found[name] for name in wanted}

    def find(self, name: str) -> NamedTarget | None:
        return self.look([name])[name]

    def forget(self, name: str) -> None:
        """It was changed here: the next one to ask reads it."""
        self._read_at.pop(name, None)
