"""Routes of calendars: named sets of dates, on which tasks do not run."""

import re
import secrets
from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body

from lambdas import _runtime
from lambdas._logger import logger
from lambdas.rest.access import needs
from lambdas.rest.calendar_models import EXAMPLES, CalendarRequest, CalendarShape, CalendarsShape, DeletedCalendarShape, PutCalendarShape
from lambdas.rest.envelope import answer
from lambdas.rest.parameters import AnyLimit, Cursor, part
from lambdas.rest.resolver import Router, answers
from lambdas.rest.shapes import Answer
from scheduler.accounts.access import Need
from scheduler.model import ids
from scheduler.model.calendar import NAME
from scheduler.model.errors import Invalid
from scheduler.operations import calendars
from scheduler.operations.calendars import NewCalendar
from scheduler.tasks.service import PutOutcome

router = Router()


@router.get(
    "/api/v1/calendars",
    summary="List calendars",
    description="By name, without their dates.",
    tags=["calendars"],
    responses=answers(200, Answer[CalendarsShape], errors=(400, 401, 503)),
)
@needs(Need.TASKS_READ, foreign=True)
def list_calendars(limit: AnyLimit = None, cursor: Cursor = None) -> Response[str]:
    return answer(CalendarsShape.of(part(calendars.listing(router.owner, _runtime.api()), limit, cursor)))


@router.get(
    "/api/v1/calendars/<calendar_name>",
    summary="Get a calendar",
    tags=["calendars"],
    responses=answers(200, Answer[CalendarShape], errors=(401, 404, 503)),
)
@needs(Need.TASKS_READ, foreign=True)
def get_calendar(calendar_name: str) -> Response[str]:
    return answer(CalendarShape.of(calendars.find(router.owner, calendar_name, _runtime.api())))


@router.put(
    "/api/v1/calendars/<calendar_name>",
    summary="Create or replace a calendar",
    description=(
        "If tasks use the calendar and its dates change, the answer has an operation. It replaces the future runs of these tasks. "
        "Once it is done, no run starts on a date that is excluded now. Idempotent."
    ),
    tags=["calendars"],
    responses=answers(200, Answer[PutCalendarShape], errors=(400, 401, 404, 409, 413, 415, 503)),
)
@needs(Need.TASKS_WRITE, foreign=True, action="calendar.put")
def put_calendar(calendar_name: str, body: Annotated[CalendarRequest, Body(openapi_examples=EXAMPLES)]) -> Response[str]:
    if re.fullmatch(NAME, calendar_name) is None:
        raise Invalid.field("calendar_name", "must be a letter and up to 62 of a-z, 0-9, . _ -")
    new = NewCalendar(router.owner, calendar_name, frozenset(body.dates), body.source, body.covers_until)
    made = calendars.put(new, _runtime.api(), random=secrets.randbits(ids.RANDOM_BITS))
    if made.outcome is not PutOutcome.UNCHANGED:
        logger.info("calendar put", extra={"calendar": calendar_name, "dates": len(new.days)})
    return answer(PutCalendarShape.of_put(made))


@router.delete(
    "/api/v1/calendars/<calendar_name>",
    summary="Delete a calendar",
    description="Refused with 409 while a task uses it; the message names the tasks.",
    tags=["calendars"],
    responses=answers(200, Answer[DeletedCalendarShape], errors=(401, 404, 409, 503)),
)
@needs(Need.TASKS_WRITE, foreign=True, action="calendar.delete")
def delete_calendar(calendar_name: str) -> Response[str]:
    return answer(DeletedCalendarShape.from_record(calendars.delete(router.owner, calendar_name, _runtime.api())))
