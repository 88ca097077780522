"""The signing keys, and the secrets that jobs may use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Secrets(Protocol):
    """The keys that sign call-back tokens, and the secrets that jobs may use. A job can use secrets of its owner only."""

    def keys(self, now: int, *, newest: bool = False) -> Sequence[bytes]:
        """Return the valid signing keys, the one to sign with first; cached for some minutes. Raises Unavailable.

        `newest`: read them again, unless they were read a few seconds ago. If AWS refuses, the cached keys remain in use.
        """

    def values(self, owner: str, name: str, now: int) -> Sequence[str]:
        """Return the values of the owner's secret: the current one, then the one before its last change; cached for at most a minute.

        Raises NotFound if there is no such secret; Unavailable.
        """
