"""Named targets in memory, for tests and the simulation, with the same contract as on AWS."""

from collections.abc import Sequence

from scheduler.admission import limits
from scheduler.admission.limits import TargetUsage, UsageChange
from scheduler.storage.ports import ChangeResult, Found, Written
from scheduler.targets.named_target import ITEMS, NamedTarget, item_name


class MemoryTargets:
    """The registry of named targets, and how much of their limits is in use."""

    def __init__(self) -> None:
        self.rows: dict[str, NamedTarget] = {}
        self._usages: dict[str, TargetUsage] = {}

    def all(self) -> list[NamedTarget]:
        return [self.rows[name] for name in sorted(self.rows)]

    def targets(self, names: Sequence[str]) -> Found[str, NamedTarget]:
        return Found({name: self.rows[name] for name in names if name in self.rows})

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
        for number in range(ITEMS + 1):
            self._usages.pop(item_name(target.name, number), None)
        return True

    def usages(self, names: Sequence[str]) -> dict[str, TargetUsage]:
        return {name: self._usages[name] for name in names if name in self._usages}

    def use(self, uses: Sequence[UsageChange]) -> list[ChangeResult]:
        return [self._use(use) for use in uses]

    def _use(self, use: UsageChange) -> ChangeResult:
        stored = self._usages.get(use.target, TargetUsage(use.target))
        after = limits.used(stored, use)
        if after is None:
            return ChangeResult(Written.NO, stored)
        self._usages[use.target] = after
        return ChangeResult(Written.YES, after)
