"""Routes of the year of a schedule or a task: its runs by date, and the dates that are odd."""

from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Query

from lambdas import _runtime
from lambdas.rest.access import needs
from lambdas.rest.calendar_models import Day
from lambdas.rest.envelope import answer
from lambdas.rest.form_routes import calendars_of
from lambdas.rest.parameters import WHOLE
from lambdas.rest.resolver import Router, answers
from lambdas.rest.shapes import Answer
from lambdas.rest.year_models import EXAMPLES, ScheduleYearRequest, YearShape
from scheduler.accounts.access import Need
from scheduler.tasks import service, year_view
from scheduler.tasks.year import MOST_DAYS

router = Router()
First = Annotated[Day | None, Query(alias="from", description="the first date, in the time zone of the task; default: today")]
Days = Annotated[int, WHOLE, Query(ge=1, le=MOST_DAYS, description="the number of dates")]


@router.post(
    "/api/v1/schedules/calendar",
    summary="Show the year of a schedule",
    description="For each date: the number of runs, changes of the clock, excluded and moved runs. Nothing is saved.",
    tags=["schedules"],
    responses=answers(200, Answer[YearShape], errors=(400, 401, 403, 413, 415, 503)),
)
@needs(Need.SIGNED_IN, owned=True)
def show_schedule_year(body: Annotated[ScheduleYearRequest, Body(openapi_examples=EXAMPLES)]) -> Response[str]:
    now = _runtime.api().clock.now()
    return answer(YearShape.of(year_view.of_form(body.form, body.first_day, body.days, now, calendars_of(body, router))))


@router.get(
    "/api/v1/tasks/<task_id>/calendar",
    summary="Show the year of a task",
    description="For each date: the runs to come, the runs that were due by status, and what is odd about the date.",
    tags=["tasks"],
    responses=answers(200, Answer[YearShape], errors=(400, 401, 404, 503)),
)
@needs(Need.TASKS_READ, foreign=True)
def show_task_year(task_id: str, since: First = None, days: Days = MOST_DAYS) -> Response[str]:
    ports, caller, owner = _runtime.api(), router.caller, router.owner
    may_see_jobs = caller.may(Need.JOBS_READ, owner) or caller.may_as_staff(Need.JOBS_READ, owner)
    task = service.find(router.task(task_id), ports)
    return answer(YearShape.of(year_view.of_task(task, since, days, ports.clock.now(), ports.jobs if may_see_jobs else None)))
