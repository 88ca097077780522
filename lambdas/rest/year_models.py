"""Shapes of the year of a schedule or a task."""

from typing import Annotated, Any

from pydantic import Field

from lambdas.rest.calendar_models import Day, WrittenDay
from lambdas.rest.form_models import WholeScheduleRequest
from lambdas.rest.shapes import Json, Shape, WrittenTime, optional
from scheduler.tasks import year
from scheduler.tasks.calendar_form import write_date
from scheduler.tasks.year_view import Year


class ScheduleYearRequest(WholeScheduleRequest):
    """A schedule whose days to show."""

    first_day: Day | None = None
    """The first date, in the time zone of the schedule. Default: today."""
    days: Annotated[int, Field(ge=1, le=year.MOST_DAYS)] = year.MOST_DAYS
    """The number of dates."""


class YearDayShape(Shape):
    """A date with runs, or with something odd."""

    date: WrittenDay
    """The date in the time zone of the schedule."""
    planned: int
    """The runs of the date that are still to come, by the schedule."""
    runs: dict[str, int] | None
    """The runs of the date that were due, by status. Null: not counted."""
    clock_change: bool
    """Whether the clock changes on the date, and the schedule names a time of it."""
    excluded: str | None
    """The reason why the runs of the date do not take place. Null: they do."""
    moved_to: WrittenDay | None
    """The date to which the runs of this excluded date are moved."""
    moved_from: list[WrittenDay]
    """The excluded dates whose runs are moved to this one."""

    @classmethod
    def of(cls, day: year.Day, runs: Json | None) -> Json:
        return cls.from_record(
            day,
            date=write_date(day.date),
            runs=runs,
            moved_to=optional(write_date, day.moved_to),
            moved_from=[write_date(each) for each in day.moved_from],
        )


class YearShape(Shape):
    """The dates with runs or marks. All other dates of the span have none."""

    time_zone: str
    """The time zone of the dates."""
    today: WrittenDay
    """The present date in the time zone."""
    first_day: WrittenDay
    """The first date of the span."""
    last_day: WrittenDay
    """The last date of the span."""
    days: list[YearDayShape]
    """The dates with runs or marks, in order."""
    counted_from: WrittenTime | None
    """Runs that were due before this instant are not counted, since the task has too many. Null: all are."""
    warnings: list[str]
    """Calendars that are not known for all of these dates."""

    @classmethod
    def of(cls, shown: Year) -> Json:
        past = {} if shown.past is None else shown.past.runs
        counts = {date: {str(status): number for status, number in sorted(runs.items())} for date, runs in past.items()}
        none = None if shown.past is None else dict[str, int]()
        dates = sorted({*shown.days, *counts})
        return cls.from_record(
            None,
            time_zone=shown.zone,
            today=write_date(shown.today),
            first_day=write_date(shown.first),
            last_day=write_date(shown.first + shown.count - 1),
            days=[YearDayShape.of(shown.days.get(date, year.Day(date)), counts.get(date, none)) for date in dates],
            counted_from=None if shown.past is None else shown.past.counted_from,
            warnings=shown.warnings,
        )


EXAMPLES: dict[str, Any] = {
    "nightly": {
        "summary": "The nights of a year",
        "value": {"cron": "30 2 * * *", "time_zone": "Europe/Berlin", "dst_gap": "skip"},
    },
    "month": {"summary": "Every 15 minutes, for 31 days", "value": {"rate": "rate(15 minutes)", "days": 31}},
}
