"""The records of operations on many jobs or tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # hot functions do not load these records
    from scheduler.model.operation import Operation


class Operations(Protocol):
    """The records of operations on many jobs or tasks. A record of an ended operation expires.

    An owner has a few places, and each running operation takes one. A place keeps the id of an operation that has ended until another
    one takes it.
    """

    def places(self, owner: str) -> dict[int, str]:
        """Return the ids of the operations that took places, by place (strongly consistent)."""

    def add(self, operation: Operation, place: int, former: str | None) -> bool:
        """Insert a new record and take a place, which must have the id `former` (None: no operation has taken it yet).

        False: it has another one, or the record exists; then nothing changes.
        """

    def get(self, owner: str, id: str) -> Operation | None:
        """Return the record, None if there is none or it has expired (strongly consistent)."""

    def running(self) -> list[Operation]:
        """Return the running operations of all owners, by owner and id (strongly consistent)."""

    def ended(self, owner: str, *, after: str | None, limit: int) -> tuple[list[Operation], str | None]:
        """Return a page of the ended operations of an owner, newest first, beyond the one with the id `after`, and the next page's cursor.

        The cursor is the id of the page's last record. Strongly consistent.
        """

    def change(self, before: Operation, after: Operation) -> bool:
        """Replace the record if the stored one has the version of `before`.

        False also if an earlier try, whose answer was lost, applied it.
        """
