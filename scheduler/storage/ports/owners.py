"""STUB: the part of the port `Owners` that the intake reads."""

from collections.abc import Sequence
from typing import Protocol

from scheduler.model.account import Principal


class Owners(Protocol):
    """Who acts for owners."""

    def principals(self) -> Sequence[Principal]:
        """Return all AWS principals, in no order."""
