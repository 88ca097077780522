"""The results of reads and writes of several objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum, auto
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Found(dict[K, V]):
    """The objects of a batch read that exist, by key. `unreadable`: the keys of items that this version cannot read, each with the reason.

    An unreadable object exists: no caller may treat it as deleted or ended.
    """

    def __init__(self, found: Mapping[K, V] | Iterable[tuple[K, V]] = (), unreadable: Mapping[K, str] | None = None) -> None:
        super().__init__(found)
        self.unreadable: dict[K, str] = dict(unreadable or {})

    def is_absent(self, key: K) -> bool:
        """Return whether no such object is stored, not even an unreadable one."""
        return key not in self and key not in self.unreadable


class Written(Enum):
    """The result of one conditional write. Compare it by identity: every member is true."""

    YES = auto()  # it is written, now or by an earlier try whose answer was lost
    NO = auto()  # its condition is not met; nothing was changed
    REFUSED = auto()  # AWS refused it or did not answer: it may or may not be written; try again later

    @classmethod
    def of(cls, written: bool) -> Written:
        """Return YES or NO for a write that was not refused."""
        return cls.YES if written else cls.NO
