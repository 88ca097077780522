"""Shapes of the routes that concern the whole system."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator

from lambdas.rest.models import LINE, Request
from lambdas.rest.parameters import Part
from lambdas.rest.shapes import Json, ListShape, Shape, WrittenTime
from scheduler.model.breaker import Breaker, Circuit
from scheduler.model.job import Lane, LaneState


class LanesRequest(Request):
    """The lanes, and the reason."""

    lane: Annotated[Lane, Field(strict=False)] | None = None
    """One lane."""
    all: bool = Field(False, validate_default=True)
    """True: all lanes. A pause requires either this or `lane`. A resume without both applies to all lanes."""
    reason: Annotated[str, Field(min_length=1, max_length=200), LINE] | None = None
    """Of a pause: shown with the state, and to users with each job that waits for the lane."""

    @field_validator("all")
    @classmethod
    def _one_or_all(cls, value: bool, info: ValidationInfo) -> bool:
        """Runs after the lane was validated; an invalid one is reported already."""
        if value and info.data.get("lane") is not None:
            raise ValueError("must be absent or false beside lane")
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
    """When it was last resumed. Null while it is paused."""
    reason: str | None
    """The reason of the last pause or resume."""
    paused_by: str | None
    """The id of the user who paused it. Null while it is not paused, and if the scheduler itself paused it, after a restore."""
    paused_by_name: str | None
    """That user's name at the time of the pause. Null: the user was deleted, too."""

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

    circuit: Annotated[str, Field(min_length=1, max_length=5_000), LINE]
    """The circuit, as `GET /system/breakers` shows it."""
    owner: Annotated[str, Field(min_length=1, max_length=64), LINE] | None = None
    """The owner, as `GET /system/breakers` shows it, or the owner's name. Not required if only one breaker has this circuit."""
    reason: Annotated[str, Field(min_length=1, max_length=200), LINE] | None = None
    """Stored in the audit trail."""


class BreakerShape(Shape):
    circuit: str
    """The target: `target` and its name, `host` with host and port, or an ARN."""
    owner: str | None
    """The id of the user whose jobs wait. Null: the jobs of all users, who share the named target."""
    owner_name: str | None
    """The name of that user. Null: unknown, or all users."""
    state: Literal["open", "half-open"]
    """half-open: one job tries the target, now or as the next one."""
    opened_at: WrittenTime
    """When it opened, or opened again after a failed try."""
    until: WrittenTime
    """Open: no job starts before this instant. Half-open: when it became half-open, or when the last try began."""
    probe_until: WrittenTime | None
    """The latest end of the current try. Null: no job tries the target."""

    @classmethod
    def of(cls, breaker: Breaker, now: int, names: Mapping[str, str]) -> Json:
        tries = breaker.probe_until is not None and now < breaker.probe_until
        return cls.from_record(
            breaker,
            circuit=breaker.circuit.name,
            owner=breaker.circuit.owner,
            owner_name=names.get(breaker.circuit.owner or ""),
            state="open" if now < breaker.until else "half-open",
            probe_until=breaker.probe_until if tries else None,
        )


class BreakersShape(ListShape):
    items: list[BreakerShape]
    """All breakers that are not closed, the last opened first."""

    @classmethod
    def of(cls, breakers: Part[Breaker], now: int, names: Mapping[str, str]) -> Json:
        return cls.page([BreakerShape.of(breaker, now, names) for breaker in breakers.entries], breakers.cursor)


class CircuitShape(Shape):
    """A circuit and its owner."""

    circuit: str
    """The target: `target` and its name, `host` with host and port, or an ARN."""
    owner: str | None
    """The id of the user whose jobs waited. Null: the jobs of all users, who share the named target."""
    owner_name: str | None
    """The name of that user. Null: unknown, or all users."""


class ClosedShape(BreakersShape):
    """The breaker that was closed, and the others."""

    closed: CircuitShape
    """The breaker that the request closed."""

    @classmethod
    def of_closed(cls, closed: Circuit, others: Sequence[Breaker], now: int, names: Mapping[str, str]) -> Json:
        shown = {"circuit": closed.name, "owner": closed.owner, "owner_name": names.get(closed.owner or "")}
        return BreakersShape.of(Part(others), now, names) | {"closed": shown}
