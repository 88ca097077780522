"""The shapes of what is to come, and of what has been."""

from lambdas.rest.models import Shape, WrittenTime


class MinuteShape(Shape):
    scheduled_at: WrittenTime
    """The beginning of the minute."""
    jobs: int
    """That are to start in it: stored one-time jobs and retries, and runs of recurring tasks by their schedules."""
    compute_ms: int
    """By the average of each type; a second for a type of which none has ended lately."""
    required_instances: int
    """Executors that end so much work in 10 s with a tenth of each left free, one job at a time: ms / 9,000, rounded up."""


class ScheduledSummaryShape(Shape):
    scope: str
    """`own` or `all`."""
    available_instances: int
    """Executors that there may be at once."""
    minutes: list[MinuteShape]
    """Every minute of the next three hours, beginning with this one."""


class TypeSummaryShape(Shape):
    type: str
    runs: int
    """Jobs whose last attempt ran to an end."""
    average_ms: float | None
    p50_ms: int | None
    """Percentiles are off by a tenth at most."""
    p95_ms: int | None
    succeeded: int
    failed: int
    killed: int
    cancelled: int
    skipped: int
    late: int
    """Of all of them: started 10 s or more after their time, or posted for a time already past."""


class DaySummaryShape(Shape):
    day: str
    """In UTC: `2026-11-20`. Days on which nothing ended are left out."""
    types: list[TypeSummaryShape]


class TaskSummaryShape(Shape):
    scope: str
    """`own` or `all`."""
    since: WrittenTime
    until: WrittenTime
    types: list[TypeSummaryShape]
    daily: list[DaySummaryShape] | None
    """Null without `days`."""
