"""The jobs that wait in a dispatcher, as it publishes them. `scheduler/sharing/fair_queue.py` divides lanes by these records."""

from collections.abc import Mapping
from dataclasses import dataclass

from scheduler.model.job import Lane, UnitKey


@dataclass(frozen=True, slots=True)
class Demand:
    """The demand of one user in one unit: the user's weight, and the number of waiting jobs."""

    weight: float
    count: int


@dataclass(frozen=True, slots=True)
class Backlog:
    """The jobs that wait in one dispatcher for one lane, as published to the other dispatchers.

    `users` names the users with the most jobs; the other users are together listed as `REST`.
    """

    unit: UnitKey
    lane: Lane
    at: int  # when it was published
    outstanding: int  # jobs released and not finished
    rate: float  # jobs finished per second
    users: Mapping[str, Demand]
