"""The forecast and the statistics, read from the counters."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduler.insight import forecast
from scheduler.insight.counting import (
    BUCKET,
    EVERYBODY,
    RUN_MS,
    RUNS,
    TASKS,
    day_of,
    hour_of,
    load_at,
    load_partition,
    read_recurrence,
    recurring_partition,
    stats_partition,
)
from scheduler.insight.forecast import Expected
from scheduler.insight.histogram import percentile
from scheduler.model.job import Lane
from scheduler.storage.ports import Counters

DAY = 86_400_000
YEAR = 365 * DAY
RECENT = 7 * DAY  # the forecast uses the average run times of this period
_LAST = "~"  # sorts after every name


@dataclass(frozen=True, slots=True)
class TypeSummary:
    """The ends of the jobs of one type, and the run times of their last attempts."""

    type: str
    counts: Mapping[str, int] = field(default_factory=dict)  # by status, and `late`
    runs: int = 0
    average_ms: float | None = None
    p50_ms: int | None = None
    p95_ms: int | None = None


def ahead(owner: str, now: int, counters: Counters, *, span: int = forecast.AHEAD) -> list[Expected]:
    """The expected starts in each minute of the next `span` ms, of one owner or of EVERYBODY.

    It reads one row per hour, one per distinct recurrence, and the statistics of a week, but no job and no task.
    """
    return forecast.together(by_lane(owner, now, counters, span=span).values())


def by_lane(owner: str, now: int, counters: Counters, *, span: int) -> dict[Lane, list[Expected]]:
    """The expected starts by lane; retries count as one-time jobs."""
    stored: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in counters.read(load_partition(owner), hour_of(now), hour_of(now + span) + _LAST):
        for at, type, jobs in load_at(row):
            stored[at][type] += jobs
    rows = counters.read(recurring_partition(owner), "0", _LAST)
    recurring = [(read_recurrence(row.about), row.amounts[TASKS]) for row in rows if row.about and row.amounts.get(TASKS, 0) > 0]
    average = {each.type: each.average_ms for each in by_type(EVERYBODY, now - RECENT, now, counters) if each.average_ms is not None}
    return {
        Lane.ONE_TIME: forecast.expected(stored, [], average, now, now + span),
        Lane.RECURRING: forecast.expected({}, recurring, average, now, now + span),
    }


def by_type(owner: str, since: int, until: int, counters: Counters) -> list[TypeSummary]:
    """The summaries of the types whose jobs ended on the days of the span, ordered by type."""
    total: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in counters.read(stats_partition(owner), day_of(since), day_of(until) + _LAST):
        for name, amount in row.amounts.items():
            total[row.name.partition("#")[2]][name] += amount
    return [_summary(type, total[type]) for type in sorted(total)]


def by_day(owner: str, since: int, until: int, counters: Counters) -> dict[str, list[TypeSummary]]:
    """The summaries day by day, in UTC: each day of the span on which jobs ended, the earliest first."""
    days: dict[str, dict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(int)))
    for row in counters.read(stats_partition(owner), day_of(since), day_of(until) + _LAST):
        day, _, type = row.name.partition("#")
        for name, amount in row.amounts.items():
            days[day][type][name] += amount
    return {day: [_summary(type, days[day][type]) for type in sorted(days[day])] for day in sorted(days)}


def _summary(type: str, amounts: Mapping[str, int]) -> TypeSummary:
    histogram = {int(name.removeprefix(BUCKET)): amount for name, amount in amounts.items() if name.removeprefix(BUCKET).isdigit()}
    counts = {name: amount for name, amount in amounts.items() if name not in (RUNS, RUN_MS) and not name.removeprefix(BUCKET).isdigit()}
    runs = amounts.get(RUNS, 0)
    if runs <= 0:
        return TypeSummary(type, counts)
    average = amounts.get(RUN_MS, 0) / runs
    return TypeSummary(type, counts, runs, average, percentile(histogram, 0.5), percentile(histogram, 0.95))
