"""The default alerts of owners."""

from collections.abc import Collection
from typing import Protocol

from scheduler.model.alerts import DefaultAlerts


class OwnerAlerts(Protocol):
    """The default alerts, in the users table."""

    def of(self, owners: Collection[str]) -> dict[str, DefaultAlerts]:
        """Return those of the owners that have some, by owner (strongly consistent)."""

    def put(self, before: DefaultAlerts | None, after: DefaultAlerts) -> bool:
        """Replace those of an owner if the stored ones have the version of `before` (None: there must be none).

        False if they have another one. True also if an earlier try, whose answer was lost, applied it.
        """

    def delete(self, owner: str) -> None:
        """Delete those of an owner, if there are some."""
