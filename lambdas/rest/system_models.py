"""The shapes of what administrators ask of the whole system."""

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator

from lambdas.rest.models import Request
from lambdas.rest.parameters import Part
from lambdas.rest.shapes import Json, ListShape, Shape, WrittenTime
from scheduler.admission.breaker import Breaker
from scheduler.model.job import Lane, LaneState


class LanesRequest(Request):
    """The lanes, and the reason."""

    lane: Annotated[Lane, Field(strict=False)] | None = None
    """One lane."""
    all: bool = Field(False, validate_default=True)
    """True: all lanes. To pause, give either this or `lane`; to resume, all lanes are meant if neither is given."""
    reason: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """Shown to administrators with the state."""

    @field_validator("all")
    @classmethod
    def _one_or_all(cls, value: bool, info: ValidationInfo) -> bool:
        """Runs after the lane was found good or bad; a bad one is reported already."""
        if value and info.data.get("lane") is not None:
            raise ValueError("goes without lane")
        return value

    @property
    def lanes(self) -> list[Lane]:
        return list(Lane) if self.lane is None else [self.lane]


class PauseLanesRequest(LanesRequest):
    """The lanes to pause, and the reason. An empty request pauses nothing: it is refused."""

    @field_validator("all")
    @classmethod
    def _something(cls, value: bool, info: ValidationInfo) -> bool:
        if not value and "lane" in info.data and info.data["lane"] is None:
            raise ValueError("must be true to pause all lanes; give lane to pause one")
        return value


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


class BreakerRequest(Request):
    """The breaker to close, and the reason."""

    circuit: Annotated[str, Field(min_length=1, max_length=5_000)]
    """As `GET /system/breakers` shows it."""
    owner: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    """The same; null or absent for a named target."""
    reason: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """Stored in the audit trail."""


class BreakerShape(Shape):
    circuit: str
    """The target: `target` and its name, `host` with host and port, or an ARN."""
    owner: str | None
    """The id of the user whose jobs wait. Null: those of all users, since they share a named target."""
    state: Literal["open", "half-open"]
    """half-open: a job tries the target, or the next job will."""
    opened_at: WrittenTime
    """When it opened, or opened again after a failed try."""
    until: WrittenTime
    """Open: no job starts before this. Half-open: when it became so, or when the last try began."""
    probe_until: WrittenTime | None
    """A job tries the target until this instant at the latest. Null: no job tries."""

    @classmethod
    def of(cls, breaker: Breaker, now: int) -> Json:
        tries = breaker.probe_until is not None and now < breaker.probe_until
        return cls.from_record(
            breaker,
            circuit=breaker.circuit.name,
            owner=breaker.circuit.owner,
            state="open" if now < breaker.until else "half-open",
            probe_until=breaker.probe_until if tries else None,
        )


class BreakersShape(ListShape):
    first_name = "breakers"
    breakers: list[BreakerShape]
    """All that are not closed; the one that opened last comes first."""
    items: list[BreakerShape]
    """The same as `breakers`."""

    @classmethod
    def of(cls, breakers: Part[Breaker], now: int) -> Json:
        return cls.page([BreakerShape.of(breaker, now) for breaker in breakers.entries], breakers.cursor)
