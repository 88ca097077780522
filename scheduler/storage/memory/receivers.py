"""Named receivers in memory: the same contract as on AWS."""

from dataclasses import replace

from scheduler.model.receiver import Health, NamedReceiver


class MemoryReceivers:
    """The port `Receivers`."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], NamedReceiver] = {}

    def all(self, owner: str) -> list[NamedReceiver]:
        return [self.rows[key] for key in sorted(self.rows) if key[0] == owner]

    def find(self, owner: str, name: str) -> NamedReceiver | None:
        return self.rows.get((owner, name))

    def put(self, before: NamedReceiver | None, after: NamedReceiver) -> bool:
        stored = self.rows.get((after.owner, after.name))
        if stored == after:
            return True
        if (stored and stored.version) != (before and before.version):
            return False
        self.rows[after.owner, after.name] = after
        return True

    def note(self, receiver: NamedReceiver, health: Health) -> None:
        stored = self.rows.get((receiver.owner, receiver.name))
        if stored is not None and stored.version == receiver.version:
            self.rows[receiver.owner, receiver.name] = replace(stored, health=health)

    def delete(self, receiver: NamedReceiver) -> bool:
        stored = self.rows.get((receiver.owner, receiver.name))
        if stored is None or stored.version != receiver.version:
            return False
        del self.rows[receiver.owner, receiver.name]
        return True
