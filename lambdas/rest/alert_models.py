"""Shapes of the rules about time for the runs of a task."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

from pydantic import AfterValidator, Field, model_validator

from lambdas.rest.operation_models import OperationShape
from lambdas.rest.request import Request
from lambdas.rest.shapes import Json, Shape, WrittenTime, optional
from scheduler.model.alerts import LATE_AFTER_S, MAX_DURATION_S, Alerts, DefaultAlerts, read_time, written_time
from scheduler.operations.default_alerts import PutAlerts
from scheduler.tasks.service import PutOutcome


def _time(text: str) -> str:
    read_time(text)
    return text


class DefaultAlertsRequest(Request):
    """Rules about time for the tasks that have notifications, and no alerts of their own. An absent rule does not apply."""

    late_after_seconds: Annotated[int, Field(ge=LATE_AFTER_S[0], le=LATE_AFTER_S[1])] | None = None
    """A run that has not started this long after its scheduled time is late."""
    max_duration_seconds: Annotated[int, Field(ge=MAX_DURATION_S[0], le=MAX_DURATION_S[1])] | None = None
    """A run that has not ended this long after its first start takes too long. It is not stopped."""
    missed: bool = False
    """True: a run that was skipped because it could not start in time is reported."""

    @model_validator(mode="before")
    @classmethod
    def _as_answered(cls, body: Any) -> Any:
        return {name: value for name, value in body.items() if name not in _ANSWERED} if isinstance(body, Mapping) else body

    @property
    def record(self) -> Alerts:
        return _record(self)


class AlertsRequest(Request):
    """Rules about time: the receivers of the task get a notice when a run breaks one, and another one when that is over. Empty: none."""

    late_after_seconds: Annotated[int, Field(ge=LATE_AFTER_S[0], le=LATE_AFTER_S[1])] | None = None
    """A run that has not started this long after its scheduled time is late."""
    max_duration_seconds: Annotated[int, Field(ge=MAX_DURATION_S[0], le=MAX_DURATION_S[1])] | None = None
    """A run that has not ended this long after its first start takes too long. It is not stopped."""
    done_by: Annotated[str, Field(max_length=5), AfterValidator(_time)] | None = None
    """A local time in the zone of the schedule, such as `07:00`: a scheduled run must have succeeded by the next one. It must come within
    18 hours after each run."""
    missed: bool = False
    """True: a run that was skipped because it could not start in time is reported."""

    @property
    def record(self) -> Alerts:
        return replace(_record(self), done_by=None if self.done_by is None else read_time(self.done_by))


def _record(rules: AlertsRequest | DefaultAlertsRequest) -> Alerts:
    late, longest = rules.late_after_seconds, rules.max_duration_seconds
    return Alerts(
        late_after_ms=None if late is None else late * 1_000,
        max_duration_ms=None if longest is None else longest * 1_000,
        missed=rules.missed,
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


class DefaultAlertsShape(Shape):
    """The default alerts of an owner."""

    late_after_seconds: int | None
    """The delay from which a run is late. Null: no rule."""
    max_duration_seconds: int | None
    """The longest time from the first start of a run to its end. Null: no rule."""
    missed: bool
    """Whether a run that was skipped because it could not start in time is reported."""
    updated_at: WrittenTime | None
    """Null: they were never set."""

    @classmethod
    def of(cls, found: DefaultAlerts | None, **others: Any) -> Json:
        rules = {"late_after_seconds": None, "max_duration_seconds": None, "missed": False}
        rules |= {} if found is None else AlertsShape.of(found.alerts)
        return cls.from_record(None, **rules, updated_at=None if found is None else found.updated_at, **others)


class PutDefaultAlertsShape(DefaultAlertsShape):
    """The default alerts of an owner, and what the request did."""

    outcome: PutOutcome
    """`created`, `updated`, or `unchanged` if they already matched the request."""
    operation: OperationShape | None
    """The operation that replaces the future runs of the tasks with the default alerts. Null: it began before, or there were never any."""

    @classmethod
    def of_put(cls, put: PutAlerts) -> Json:
        return cls.of(put.alerts, outcome=put.outcome, operation=optional(OperationShape.of, put.operation))


_ANSWERED = PutDefaultAlertsShape.model_fields.keys() - DefaultAlertsRequest.model_fields.keys()
