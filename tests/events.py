"""Any event of the lifecycle by its name, for tests that draw events: the program calls the one function of each."""

import inspect
from collections.abc import Callable
from typing import Any

from scheduler.model import lifecycle
from scheduler.model.job import Job
from scheduler.model.lifecycle import Event

FUNCTIONS: dict[Event, Callable[..., Job]] = {event: getattr(lifecycle, event) for event in Event}
_TAKES = {event: inspect.signature(function).parameters.keys() for event, function in FUNCTIONS.items()}


def happen(job: Job, event: Event, at: int, **data: Any) -> Job:
    """The job after `event` at `at`: its function gets those of `data` that it takes."""
    return FUNCTIONS[event](job, **{name: value for name, value in {"at": at, **data}.items() if name in _TAKES[event]})
