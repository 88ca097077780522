"""Routes of dead letters: failed and killed jobs, grouped by error; retry one, or redrive many."""

import secrets
from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Query

from lambdas import _runtime
from lambdas._logger import logger
from lambdas.rest import parameters
from lambdas.rest.access import needs
from lambdas.rest.beside import beside
from lambdas.rest.dead_letter_models import OverviewShape, RedriveRequest, RedriveShape
from lambdas.rest.envelope import answer
from lambdas.rest.job_answers import JobShape, PageShape
from lambdas.rest.parameters import AnyLimit, Cursor, Limit, OfTask, Since, Until
from lambdas.rest.resolver import Router, answers
from lambdas.rest.shapes import Answer
from scheduler.accounts.access import Need
from scheduler.dead_letters.groups import listing, overview
from scheduler.jobs.retry_job import retry_job as retry
from scheduler.model import ids, operation
from scheduler.model.errors import NotFound
from scheduler.model.fingerprint import is_fingerprint
from scheduler.model.operation import Action, Filter, Operation
from scheduler.operations import requests

router = Router()


@router.post(
    "/api/v1/jobs/<job_id>/retry",
    summary="Retry a failed or killed job",
    description=(
        "The job starts now, with all its attempts. Its expiry and its misfire rule no longer apply. "
        "409 also if another job that has not ended has its `key`; the answer has the key and the id of that job."
    ),
    tags=["dead letters"],
    responses=answers(200, Answer[JobShape], errors=(401, 404, 409, 503)),
)
@needs(Need.JOBS_WRITE, foreign=True, action="job.retry", creates=1)
def retry_job(job_id: str) -> Response[str]:
    ports = _runtime.api()
    again = retry(router.job(job_id), ports, request=str(router.event["requestContext"]["requestId"]), direct=ports.direct)
    now = ports.clock.now()
    return answer(JobShape.of(again, now, beside([again], now)))


@router.get(
    "/api/v1/dead-letters",
    summary="List dead letters, grouped by error",
    description=(
        "Failed and killed jobs by fingerprint. "
        "Errors that differ only in ids, numbers, times and addresses have one fingerprint. The latest 10,000 jobs are counted."
    ),
    tags=["dead letters"],
    responses=answers(200, Answer[OverviewShape], errors=(400, 401, 503)),
)
@needs(Need.JOBS_READ, foreign=True)
def list_dead_letters(
    task: OfTask = None,
    type: Annotated[str | None, Query()] = None,
    since: Since = None,
    until: Until = None,
    limit: AnyLimit = None,
    cursor: Cursor = None,
) -> Response[str]:
    filter = Filter(parameters.task_id(task), type, None, since, until)
    return answer(OverviewShape.of(overview(router.owner, filter, jobs=_runtime.api().jobs), limit, cursor))


@router.get(
    "/api/v1/dead-letters/<fingerprint>/jobs",
    summary="List the dead letters of one error",
    description="By scheduled time, newest first.",
    tags=["dead letters"],
    responses=answers(200, Answer[PageShape], errors=(400, 401, 404, 503)),
)
@needs(Need.JOBS_READ, foreign=True)
def list_dead_letter_jobs(
    fingerprint: str,
    task: OfTask = None,
    type: Annotated[str | None, Query()] = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Response[str]:
    if not is_fingerprint(fingerprint):
        raise NotFound("there is no such fingerprint")
    filter = Filter(parameters.task_id(task), type, fingerprint, since, until)
    ports = _runtime.api()
    page, now = listing(router.owner, filter, limit=limit, cursor=cursor, jobs=ports.jobs), ports.clock.now()
    return answer(PageShape.of(page, now, beside(page.jobs, now)))


@router.post(
    "/api/v1/dead-letters/redrive",
    summary="Redrive dead letters",
    description=(
        "Retries the jobs that match the filter and have failed up to now, at a rate, the earliest first. "
        "It runs in the background: read its progress, or abort it. Its rate is at most the quota `creates_per_second` of the owner."
    ),
    tags=["dead letters"],
    responses=answers(202, Answer[RedriveShape], errors=(400, 401, 409, 413, 415, 503)),
)
@needs(Need.JOBS_WRITE, foreign=True, action="redrive.start", creates=1)
def start_redrive(body: Annotated[RedriveRequest, Body()]) -> Response[str]:
    ports, random = _runtime.api(), secrets.randbits(ids.RANDOM_BITS)
    rate = ports.quotas.within_rate(router.owner, body.rate)
    planned = operation.new(router.owner, ports.clock.now(), random, Action.REDRIVE, body.filter, rate=rate, limit=body.limit)
    made = requests.start(planned, ports)
    logger.info("redrive started", extra={"redrive_id": made.id, "rate": made.rate})
    return answer(RedriveShape.of(made), 202, {"Location": f"/api/v1/dead-letters/redrives/{made.id}"})


@router.get(
    "/api/v1/dead-letters/redrives/<redrive_id>",
    summary="Get a redrive",
    tags=["dead letters"],
    responses=answers(200, Answer[RedriveShape], errors=(401, 404, 503)),
)
@needs(Need.JOBS_READ, foreign=True)
def get_redrive(redrive_id: str) -> Response[str]:
    return answer(RedriveShape.of(_found(redrive_id)))


@router.post(
    "/api/v1/dead-letters/redrives/<redrive_id>/abort",
    summary="Abort a redrive",
    description="Within about a second, no further job is retried. Jobs that were retried already run. Idempotent.",
    tags=["dead letters"],
    responses=answers(200, Answer[RedriveShape], errors=(401, 404, 409, 503)),
)
@needs(Need.JOBS_WRITE, foreign=True, action="redrive.abort")
def abort_redrive(redrive_id: str) -> Response[str]:
    return answer(RedriveShape.of(requests.abort(router.owner, _found(redrive_id).id, _runtime.api())))


def _found(id: str) -> Operation:
    """The caller's redrive with this id. Raises NotFound, also for an operation of another kind."""
    found = requests.find(router.owner, id, operations=_runtime.api().operations)
    if found.action is not Action.REDRIVE:
        raise NotFound("there is no such redrive")
    return found
