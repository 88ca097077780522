"""Routes of the forecast, the crowded minutes and the statistics."""

from typing import Annotated, Literal

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Query

from lambdas import _runtime
from lambdas.rest import access
from lambdas.rest.access import needs
from lambdas.rest.envelope import answer
from lambdas.rest.parameters import WHOLE, Limit
from lambdas.rest.resolver import Router, answers
from lambdas.rest.shapes import Answer
from lambdas.rest.summary_models import CrowdedShape, ScheduledSummaryShape, TaskSummaryShape
from scheduler.accounts.access import Need
from scheduler.insight import crowded, summary
from scheduler.insight.counting import EVERYBODY

router = Router()

Scope = Annotated[
    Literal["own", "all"] | None,
    Query(description="the jobs to count: `all` is the default of operators and administrators, `own` that of others"),
]

Days = Annotated[int | None, WHOLE, Query(ge=1, le=90, description="the number of days in UTC, including today")]
CrowdedDays = Annotated[int, WHOLE, Query(ge=1, le=crowded.MOST_DAYS, description="the number of days of 24 hours")]


@router.get(
    "/api/v1/forecast",
    summary="Get the forecast of the next three hours",
    description="For each minute: the jobs, their expected work, and the executors required for it. Includes new jobs within seconds.",
    tags=["summaries"],
    responses=answers(200, Answer[ScheduledSummaryShape], errors=(400, 401, 403, 503)),
)
@needs(Need.JOBS_READ, foreign=True)
def get_forecast(scope: Scope = None) -> Response[str]:
    ports, (shown, owner) = _runtime.api(), _scope(scope)
    minutes = summary.ahead(owner, ports.clock.now(), ports.counters)
    return answer(ScheduledSummaryShape.of(shown, ports.rules.executors, minutes))


@router.get(
    "/api/v1/forecast/crowded",
    summary="List the minutes in which tasks run at the same time",
    description="The minutes of the next days in which the most runs of the owner's tasks begin, and of which tasks. To spread them, move "
    "schedules to minutes with few runs, or set `jitter_seconds`.",
    tags=["summaries"],
    responses=answers(200, Answer[CrowdedShape], errors=(400, 401, 403, 503)),
)
@needs(Need.TASKS_READ, foreign=True)
def get_crowded_minutes(days: CrowdedDays = 1, limit: Limit = 20) -> Response[str]:
    ports = _runtime.api()
    return answer(CrowdedShape.of(crowded.crowded(router.owner, ports.clock.now(), ports, days=days, limit=limit)))


@router.get(
    "/api/v1/statistics",
    summary="Get statistics of past jobs",
    description="Durations and outcomes by type, over the past year. With `days`: over that number of days, and for each day.",
    tags=["summaries"],
    responses=answers(200, Answer[TaskSummaryShape], errors=(400, 401, 403, 503)),
)
@needs(Need.JOBS_READ, foreign=True)
def get_statistics(scope: Scope = None, days: Days = None) -> Response[str]:
    ports, (shown, owner) = _runtime.api(), _scope(scope)
    now = ports.clock.now()
    since = now - (summary.YEAR if days is None else (days - 1) * summary.DAY)
    types = summary.by_type(owner, since, now, ports.counters)
    daily = None if days is None else summary.by_day(owner, since, now, ports.counters)
    return answer(TaskSummaryShape.of(shown, since, now, types, daily))


def _scope(requested: str | None) -> tuple[str, str]:
    """The scope's name in the answer, and the owner whose counters to read. Raises Forbidden if the caller may not see all jobs."""
    caller, owner = router.caller, router.owner
    if requested == "all":
        access.check(caller, Need.OVERSEE)
    everybody = caller.may(Need.OVERSEE) and owner == caller.owner if requested is None else requested == "all"
    return ("all", EVERYBODY) if everybody else ("own", owner)
