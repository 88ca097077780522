"""Default alerts of owners in memory: the same contract as on AWS."""

from collections.abc import Collection

from scheduler.model.alerts import DefaultAlerts


class MemoryOwnerAlerts:
    """The port `OwnerAlerts`."""

    def __init__(self) -> None:
        self.rows: dict[str, DefaultAlerts] = {}

    def of(self, owners: Collection[str]) -> dict[str, DefaultAlerts]:
        return {owner: self.rows[owner] for owner in owners if owner in self.rows}

    def put(self, before: DefaultAlerts | None, after: DefaultAlerts) -> bool:
        stored = self.rows.get(after.owner)
        if stored == after:
            return True
        if (stored and stored.version) != (before and before.version):
            return False
        self.rows[after.owner] = after
        return True

    def delete(self, owner: str) -> None:
        self.rows.pop(owner, None)
