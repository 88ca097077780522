"""Shapes of the rules about time for the runs of a task."""

from typing import Annotated, Any

from pydantic import AfterValidator, Field, model_validator

from lambdas.rest.request import Request
from lambdas.rest.shapes import Json, Shape
from scheduler.model.alerts import LATE_AFTER_S, MAX_DURATION_S, Alerts, read_time, written_time


def _time(text: str) -> str:
    read_time(text)
    return text


class AlertsRequest(Request):
    """Rules about time: the receivers of the task get a notice when a run breaks one, and another one when that is over."""

    late_after_seconds: Annotated[int, Field(ge=LATE_AFTER_S[0], le=LATE_AFTER_S[1])] | None = None
    """A run that has not started this long after its scheduled time is late."""
    max_duration_seconds: Annotated[int, Field(ge=MAX_DURATION_S[0], le=MAX_DURATION_S[1])] | None = None
    """A run that has not ended this long after its first start takes too long. It is not stopped."""
    done_by: Annotated[str, Field(max_length=5), AfterValidator(_time)] | None = None
    """A local time in the zone of the schedule, such as `07:00`: a scheduled run must have succeeded by the next one. It must come within
    18 hours after each run."""
    missed: bool = False
    """True: a run that was skipped because it could not start in time is reported."""

    @model_validator(mode="after")
    def _has_a_rule(self) -> "AlertsRequest":
        if not self.record.kinds:
            raise ValueError("give late_after_seconds, max_duration_seconds, done_by or missed: true")
        return self

    @property
    def record(self) -> Alerts:
        late, longest = self.late_after_seconds, self.max_duration_seconds
        return Alerts(
            late_after_ms=None if late is None else late * 1_000,
            max_duration_ms=None if longest is None else longest * 1_000,
            done_by=None if self.done_by is None else read_time(self.done_by),
            missed=self.missed,
        )


class AlertsShape(Shape):
    """The rules, in the form that requests take. Rules that do not apply are absent."""

    late_after_seconds: int | None = None
    """The delay from which a run is late."""
    max_duration_seconds: int | None = None
    """The longest time from the first start of a run to its end."""
    done_by: str | None = None
    """The local time by which a run must have succeeded."""
    missed: bool | None = None
    """Whether a run that was skipped because it could not start in time is reported."""

    @classmethod
    def of(cls, alerts: Alerts) -> Json:
        fields: dict[str, Any] = {
            "late_after_seconds": alerts.late_after_ms and alerts.late_after_ms // 1_000,
            "max_duration_seconds": alerts.max_duration_ms and alerts.max_duration_ms // 1_000,
            "done_by": None if alerts.done_by is None else written_time(alerts.done_by),
            "missed": alerts.missed or None,
        }
        return {name: value for name, value in fields.items() if value is not None}
