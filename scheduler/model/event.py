"""The event that announces the end of a job. `docs/guides/events.md` has its schema."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Event:
    """An event on the bus. `at` is the instant of the end."""

    detail_type: str
    at: int
    detail: Mapping[str, Any]
