"""The shapes of what administrators ask of the whole system."""

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field

from lambdas.rest.models import Request
from lambdas.rest.shapes import Json, Shape, WrittenTime
from scheduler.model.job import Lane, LaneState


class LanesRequest(Request):
    """Which lanes, and why."""

    lane: Annotated[Lane, Field(strict=False)] | None = None
    """Absent: all lanes."""
    reason: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """Shown to administrators with the state."""

    @property
    def lanes(self) -> list[Lane]:
        return list(Lane) if self.lane is None else [self.lane]


class LaneShape(Shape):
    lane: Lane
    paused: bool
    paused_at: WrittenTime | None
    resumed_at: WrittenTime | None
    """When it was last resumed; null while it is paused."""
    reason: str | None
    """Why it was paused or resumed."""

    @classmethod
    def of(cls, state: LaneState) -> Json:
        return cls.from_record(state, paused=state.paused_at is not None)


class SystemShape(Shape):
    lanes: list[LaneShape]
    """All three."""

    @classmethod
    def of(cls, states: Iterable[LaneState]) -> Json:
        return {"lanes": [LaneShape.of(state) for state in states]}
