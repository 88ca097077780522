"""Routes of workers: heartbeats and results. The attempt's token authenticates them; no user signs in."""

from collections.abc import Mapping
from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body

from lambdas import _runtime
from lambdas._logger import logger
from lambdas.rest.access import needs
from lambdas.rest.callback_models import CompleteRequest, FailRequest, HeartbeatRequest, HeartbeatShape, ReportedShape
from lambdas.rest.envelope import answer
from lambdas.rest.resolver import REPORTED, Router, answers
from lambdas.rest.shapes import Answer
from scheduler.accounts.access import Need
from scheduler.callbacks import reports
from scheduler.callbacks.tokens import AttemptKey
from scheduler.model.errors import Unauthorized
from scheduler.model.job import Result

router = Router()

ERRORS = (400, 401, 404, 409, 413, 415, 503)


def _admit(arguments: Mapping[str, str]) -> AttemptKey:
    """The attempt that the bearer token stands for. Raises Unauthorized."""
    ports, token = _runtime.api(), router.bearer
    if token is None:
        raise Unauthorized("send the token from the job's request as the bearer token")
    return reports.admit(token, arguments["job_id"], ports.secrets, ports.clock.now())


@router.post(
    "/api/v1/jobs/<job_id>/heartbeat",
    summary="Send a heartbeat",
    description="Extends the lease of the attempt. 409: the attempt has ended; the worker must stop.",
    tags=["call-backs"],
    openapi_extensions=REPORTED,
    responses=answers(200, Answer[HeartbeatShape], errors=ERRORS),
)
@needs(Need.OPEN, admit=_admit)
def send_heartbeat(job_id: str, body: Annotated[HeartbeatRequest, Body()]) -> Response[str]:
    ports, which = _runtime.api(), _admit({"job_id": job_id})
    return answer(HeartbeatShape.from_record(reports.heartbeat(which, body.reported, ports)))


@router.post(
    "/api/v1/jobs/<job_id>/complete",
    summary="Report that a job succeeded",
    description="The job ends as succeeded. Idempotent.",
    tags=["call-backs"],
    openapi_extensions=REPORTED,
    responses=answers(200, Answer[ReportedShape], errors=ERRORS),
)
@needs(Need.OPEN, admit=_admit)
def complete_job(job_id: str, body: Annotated[CompleteRequest, Body()]) -> Response[str]:
    return _report(job_id, body.result)


@router.post(
    "/api/v1/jobs/<job_id>/fail",
    summary="Report that a job failed",
    description="The job is retried as after any other failure. Idempotent.",
    tags=["call-backs"],
    openapi_extensions=REPORTED,
    responses=answers(200, Answer[ReportedShape], errors=ERRORS),
)
@needs(Need.OPEN, admit=_admit)
def fail_job(job_id: str, body: Annotated[FailRequest, Body()]) -> Response[str]:
    return _report(job_id, body.result)


def _report(job_id: str, result: Result) -> Response[str]:
    ports, which = _runtime.api(), _admit({"job_id": job_id})
    job = reports.report(which, result, ports)
    logger.info("reported", extra=job.log_context())
    return answer(ReportedShape.of(job, ports.clock.now()))
