"""The executors that the long jobs of a user keep busy. `scheduler/sharing/pins.py` has the rules."""

from dataclasses import dataclass

from scheduler.model.job import Lane


@dataclass(frozen=True, slots=True)
class Pin:
    """The counter of one user in one lane and period."""

    lane: Lane
    owner: str
    period: int
    executors: int
