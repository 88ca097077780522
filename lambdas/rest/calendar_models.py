"""Shapes of calendars."""

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationInfo, WithJsonSchema, field_validator, model_validator

from lambdas.rest.models import LINE, Request
from lambdas.rest.operation_models import OperationShape
from lambdas.rest.parameters import Part
from lambdas.rest.shapes import Json, ListShape, Shape, WrittenTime, optional
from scheduler.model.calendar import MOST_DATES, Calendar
from scheduler.operations.calendars import PutCalendar
from scheduler.tasks import calendar_form
from scheduler.tasks.service import PutOutcome

_WRITTEN_DAY = WithJsonSchema({"type": "string", "format": "date"})
Day = Annotated[int, BeforeValidator(calendar_form.read_date), _WRITTEN_DAY]
WrittenDay = Annotated[str, _WRITTEN_DAY]


class CalendarRequest(Request):
    """A calendar: a set of dates. The body may be an answer of `GET`: fields that only answers have are ignored."""

    dates: Annotated[list[Day], Field(max_length=MOST_DATES)]
    """The dates, in any order, from 1970 to 2199."""
    source: Annotated[str, Field(min_length=1, max_length=200), LINE] | None = None
    """The origin of the dates, for people."""
    covers_until: Day | None = None
    """The last date up to which the dates are known. Tasks with later runs say so. Default: the dates are complete."""

    @model_validator(mode="before")
    @classmethod
    def _as_answered(cls, body: Any) -> Any:
        return {name: value for name, value in body.items() if name not in _ANSWERED} if isinstance(body, Mapping) else body

    @field_validator("covers_until")
    @classmethod
    def _covers(cls, value: int | None, info: ValidationInfo) -> int | None:
        last = max(info.data.get("dates") or [0])
        if value is not None and value < last:
            raise ValueError(f"must not be before the last of the dates, {date.fromordinal(last).isoformat()}")
        return value


class ListedCalendarShape(Shape):
    """A calendar without its dates."""

    name: str
    source: str | None
    """The origin of the dates."""
    covers_until: WrittenDay | None
    """The last date up to which the dates are known. Null: they are complete."""
    size: int
    """The number of its dates."""
    updated_at: WrittenTime

    @classmethod
    def facts(cls, calendar: Calendar, **others: Any) -> Json:
        until = optional(calendar_form.write_date, calendar.covers_until)
        return cls.from_record(calendar, covers_until=until, size=len(calendar.days), **others)


class CalendarShape(ListedCalendarShape):
    """A calendar."""

    dates: list[WrittenDay]
    """The dates, in order."""

    @classmethod
    def of(cls, calendar: Calendar, **others: Any) -> Json:
        return cls.facts(calendar, dates=[calendar_form.write_date(day) for day in sorted(calendar.days)], **others)


class PutCalendarShape(CalendarShape):
    """A calendar, and what the request did."""

    outcome: PutOutcome
    """`created`, `updated`, or `unchanged` if the calendar already matched the request."""
    operation: OperationShape | None
    """The operation that replaces the future runs of its tasks. Null: there is nothing to replace."""

    @classmethod
    def of_put(cls, put: PutCalendar) -> Json:
        return cls.of(put.calendar, outcome=put.outcome, operation=optional(OperationShape.of, put.operation))


_ANSWERED = PutCalendarShape.model_fields.keys() - {"dates", "source", "covers_until"}


class CalendarsShape(ListShape):
    items: list[ListedCalendarShape]

    @classmethod
    def of(cls, found: Part[Calendar]) -> Json:
        return cls.page([ListedCalendarShape.facts(each) for each in found.entries], found.cursor)


class DeletedCalendarShape(Shape):
    name: str


EXAMPLES: dict[str, Any] = {
    "holidays": {
        "summary": "The public holidays of a year",
        "value": {"dates": ["2027-01-01", "2027-12-25"], "source": "typed by hand", "covers_until": "2027-12-31"},
    },
}
