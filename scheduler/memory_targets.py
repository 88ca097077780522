"""Named targets in memory, for tests and for the simulation: the same contract as on AWS, in a few lines each."""

from collections.abc import Sequence

from scheduler.limits import Usage
from scheduler.named_target import NamedTarget


class MemoryTargets:
    """The registry of named targets, and what of their limits is in use."""

    def __init__(self) -> None:
        self.rows: dict[str, NamedTarget] = {}
        self._usages: dict[str, Usage] = {}

    def all(self) -> list[NamedTarget]:
        return [self.rows[name] for name in sorted(self.rows)]

    def targets(self, names: Sequence[str]) -> dict[str, NamedTarget]:
        return {name: self.rows[name] for name in names if name in self.rows}

    def put(self, before: NamedTarget | None, after: NamedTarget) -> bool:
        stored = self.rows.get(after.name)
        if stored == after:
            return True
        if (stored and stored.version) != (before and before.version):
            return False
        self.rows[after.name] = after
        return True

    def delete(self, target: NamedTarget) -> bool:
        stored = self.rows.get(target.name)
        if stored is None or stored.version != target.version:
            return False
        del self.rows[target.name]
        self._usages.pop(target.name, None)
        return True

    def usages(self, names: Sequence[str]) -> dict[str, Usage]:
        return {name: self._usages[name] for name in names if name in self._usages}

    def use(self, changes: Sequence[tuple[Usage, Usage]]) -> list[bool | None]:
        return [self._use(before, after) for before, after in changes]

    def _use(self, before: Usage, after: Usage) -> bool:
        stored = self._usages.get(after.target)
        if stored == after:
            return True
        if (0 if stored is None else stored.version) != before.version:
            return False
        self._usages[after.target] = after
        return True
