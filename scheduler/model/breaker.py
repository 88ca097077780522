"""The breaker of a circuit, while it is open or half-open. `scheduler/admission/breaker.py` has the rules."""

from dataclasses import dataclass
from typing import NamedTuple


class Circuit(NamedTuple):
    """The target of jobs that fail together: a named target, a host, an AWS resource.

    A raw URL or ARN is the circuit of its owner alone, because each owner chooses the calls, and so the failures. Users share the
    circuit of a named target.
    """

    name: str  # as shown in reasons
    owner: str | None = None  # None: all users share it


@dataclass(frozen=True, slots=True)
class Breaker:
    """A breaker that is open or half-open; a closed one is not stored. Every change is conditional on `version`."""

    circuit: Circuit
    opened_at: int  # when it last opened
    until: int  # no job starts before this; from the start of a probe on, when that started
    waits_ms: int  # how long it stays open, from `opened_at`
    probe_until: int | None = None  # a job tries, and has until this instant; None: no job tries
    version: int = 1
