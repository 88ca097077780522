"""Shapes of the forecast, the crowded minutes and the statistics."""

from collections.abc import Iterable, Mapping
from typing import Annotated

from pydantic import WithJsonSchema

from lambdas.rest.shapes import Json, Shape, WrittenTime
from scheduler.insight.counting import LATE
from scheduler.insight.crowded import Beginning, Crowded, Minute
from scheduler.insight.forecast import Expected
from scheduler.insight.summary import TypeSummary
from scheduler.model.lifecycle import FINAL_TIMES


class MinuteShape(Shape):
    scheduled_at: WrittenTime
    """The beginning of the minute."""
    jobs: int
    """The number of starts in the minute: stored one-time jobs and retries, and runs of recurring tasks by their schedules."""
    compute_ms: int
    """The expected work: the average duration of each type, or one second for a type without recent jobs."""
    required_instances: int
    """The number of executors that finish this work in 10 s with nine tenths of their time: `compute_ms` / 9,000, rounded up."""

    @classmethod
    def of(cls, minute: Expected) -> Json:
        return cls.from_record(minute, scheduled_at=minute.at, required_instances=minute.executors)


class ScheduledSummaryShape(Shape):
    scope: str
    """`own` or `all`."""
    available_instances: int
    """The maximum number of executors at one time."""
    minutes: list[MinuteShape]
    """Every minute of the next three hours, beginning with this one."""

    @classmethod
    def of(cls, scope: str, executors: int, minutes: Iterable[Expected]) -> Json:
        return cls.from_record(None, scope=scope, available_instances=executors, minutes=[MinuteShape.of(minute) for minute in minutes])


class CrowdedTaskShape(Shape):
    id: str
    name: str
    runs: int
    """The runs of the task that begin in the minute."""

    @classmethod
    def of(cls, each: Beginning) -> Json:
        return cls.from_record(each.task, runs=each.runs)


class CrowdedMinuteShape(Shape):
    """A minute in which at least two runs begin."""

    at: WrittenTime
    """The beginning of the minute."""
    runs: int
    task_count: int
    """The number of tasks of which runs begin."""
    tasks: list[CrowdedTaskShape]
    """The first 20 of these tasks, those with the most runs first."""

    @classmethod
    def of(cls, minute: Minute) -> Json:
        return cls.from_record(minute, task_count=minute.tasks, tasks=[CrowdedTaskShape.of(each) for each in minute.beginning])


class CrowdedShape(Shape):
    since: WrittenTime
    until: WrittenTime
    minutes: list[CrowdedMinuteShape]
    """The most crowded minutes, those with the most runs first."""
    by_minute: list[int]
    """The runs by minute of the hour in UTC, from 0 to 59."""
    tasks: int
    """The number of active tasks that are counted."""
    complete: bool
    """Whether all runs are counted. False: there are too many tasks, or too many runs."""

    @classmethod
    def of(cls, found: Crowded) -> Json:
        return cls.from_record(found, minutes=[CrowdedMinuteShape.of(minute) for minute in found.minutes])


class TypeSummaryShape(Shape):
    type: str
    runs: int
    """Jobs whose last attempt ran to an end."""
    average_ms: float | None
    p50_ms: int | None
    """Percentiles are accurate to a tenth."""
    p95_ms: int | None
    succeeded: int
    failed: int
    killed: int
    cancelled: int
    skipped: int
    late: int
    """The number of jobs that started 10 s or more after their time, or were created for a time in the past."""

    @classmethod
    def of(cls, summary: TypeSummary) -> Json:
        average = None if summary.average_ms is None else round(summary.average_ms, 1)
        counts = {str(name): summary.counts.get(str(name), 0) for name in (*FINAL_TIMES, LATE)}
        return cls.from_record(summary, average_ms=average, **counts)


class DaySummaryShape(Shape):
    day: Annotated[str, WithJsonSchema({"type": "string", "format": "date"})]
    """The day in UTC: `2026-11-20`. Days on which no job ended are absent."""
    types: list[TypeSummaryShape]

    @classmethod
    def of(cls, day: str, types: Iterable[TypeSummary]) -> Json:
        return cls.from_record(None, day=day, types=[TypeSummaryShape.of(each) for each in types])


class TaskSummaryShape(Shape):
    scope: str
    """`own` or `all`."""
    since: WrittenTime
    until: WrittenTime
    types: list[TypeSummaryShape]
    daily: list[DaySummaryShape] | None
    """Null without `days`."""

    @classmethod
    def of(
        cls, scope: str, since: int, until: int, types: Iterable[TypeSummary], daily: Mapping[str, Iterable[TypeSummary]] | None
    ) -> Json:
        return cls.from_record(
            None,
            scope=scope,
            since=since,
            until=until,
            types=[TypeSummaryShape.of(each) for each in types],
            daily=None if daily is None else [DaySummaryShape.of(day, of_day) for day, of_day in daily.items()],
        )
