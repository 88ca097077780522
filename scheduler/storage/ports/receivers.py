"""The named receivers of owners."""

from typing import Protocol

from scheduler.model.receiver import Health, NamedReceiver


class Receivers(Protocol):
    """The named receivers, in the users table."""

    def all(self, owner: str) -> list[NamedReceiver]:
        """Return all receivers of an owner, by name (strongly consistent)."""

    def find(self, owner: str, name: str) -> NamedReceiver | None:
        """Return a receiver, None if there is none (strongly consistent)."""

    def put(self, before: NamedReceiver | None, after: NamedReceiver) -> bool:
        """Replace a receiver if the stored one has the version of `before` (None: it must not exist).

        False if it has another one. True also if an earlier try, whose answer was lost, applied it.
        """

    def note(self, receiver: NamedReceiver, health: Health) -> None:
        """Replace the health of a receiver. Nothing is changed if the stored one has another version, or if there is none."""

    def delete(self, receiver: NamedReceiver) -> bool:
        """Delete a receiver. False if the stored one has another version, or if there is none."""
