"""Limiters of the starts of jobs: a named target is one, and so is a key of an owner. `scheduler/admission/limits.py` has the rules.

The records of a limiter (usage, queue and its users, the slots of its waiting jobs) have its name. That of a key is derived from its owner
and the key, which may be any text.
"""

import hashlib
from dataclasses import dataclass
from typing import Protocol

from scheduler.model.spec import Limit

KEY = "~"  # begins the names of keys: no name of a target does
NOBODY = ""  # the owner of the keys of named targets: the jobs of all owners share such a key


class Limiter(Protocol):
    """The limits of a name."""

    @property
    def name(self) -> str: ...

    @property
    def rate(self) -> float | None:
        """Starts per second."""

    @property
    def concurrency(self) -> int | None:
        """Maximum of running jobs."""

    @property
    def beside(self) -> int:
        """Of these, the slots in further items."""


@dataclass(frozen=True, slots=True)
class KeyLimit:
    """The limit that a key has, as it is stored with the usage of the key."""

    limit: Limit
    by: str = ""  # the task or the target that set it, which may change it; none: a job set it
    until: int = 0  # a job with this limit is due by then: until then no job may name another limit


@dataclass(frozen=True, slots=True)
class KeyLimiter:
    """A key with its limit."""

    name: str
    limit: Limit
    beside: int = 0

    @property
    def rate(self) -> float | None:
        return self.limit.per_second

    @property
    def concurrency(self) -> int | None:
        return self.limit.concurrency


def name_of(owner: str, key: str) -> str:
    """The name of the limiter of this key of an owner."""
    return KEY + hashlib.sha256(f"{owner}\0{key}".encode()).hexdigest()[:32]


def is_key(name: str) -> bool:
    """Whether it is the name of the limiter of a key."""
    return name.startswith(KEY)
