"""Routes of workers: that they live, and how it ended. Nobody signs in here: the token of the attempt is all it takes."""

from typing import Annotated, Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from lambdas import _runtime
from lambdas._callback_models import BeatShape, CompleteRequest, FailRequest, HeartbeatRequest, ReportedShape
from lambdas._envelope import answer
from lambdas._models import Answer
from lambdas._resolver import REPORTED, answers, bearer_of
from lambdas._runtime import logger
from scheduler import lifecycle, render
from scheduler.errors import Unauthorized
from scheduler.model import Result
from scheduler.services import callback
from scheduler.tokens import Ticket

router = APIGatewayHttpRouter()  # type: ignore[no-untyped-call]

ERRORS = (400, 401, 404, 409, 413, 415, 503)


@router.post(
    "/api/v1/jobs/<job_id>/heartbeat",
    summary="The worker of a job lives",
    description="Extends its lease. 409: this attempt is over, stop.",
    tags=["call-backs"],
    openapi_extensions=REPORTED,
    responses=answers(200, Answer[BeatShape], errors=ERRORS),
)
def heartbeat(job_id: str, body: Annotated[HeartbeatRequest, Body()]) -> Response[str]:
    world, ticket = _runtime.api(), _ticket(job_id)
    return answer(render.beat(callback.heartbeat(ticket, body.told, jobs=world.jobs, clock=world.clock)))


@router.post(
    "/api/v1/jobs/<job_id>/complete",
    summary="The worker of a job has done it",
    description="The job has succeeded. Doing it twice is as good as once.",
    tags=["call-backs"],
    openapi_extensions=REPORTED,
    responses=answers(200, Answer[ReportedShape], errors=ERRORS),
)
def complete(job_id: str, body: Annotated[CompleteRequest, Body()]) -> Response[str]:
    return _report(job_id, body.result)


@router.post(
    "/api/v1/jobs/<job_id>/fail",
    summary="The worker of a job could not do it",
    description="Another attempt follows as after any failure. Doing it twice is as good as once.",
    tags=["call-backs"],
    openapi_extensions=REPORTED,
    responses=answers(200, Answer[ReportedShape], errors=ERRORS),
)
def fail(job_id: str, body: Annotated[FailRequest, Body()]) -> Response[str]:
    return _report(job_id, body.result)


def _report(job_id: str, result: Result) -> Response[str]:
    world, ticket = _runtime.api(), _ticket(job_id)
    job = callback.report(
        ticket, result, jobs=world.jobs, tasks=world.tasks, orders=world.orders, lanes=world.lanes, clock=world.clock, rules=world.rules
    )
    logger.info("reported", extra=job.log_context())
    status: Any = lifecycle.status(job, world.clock.now())
    return answer({"id": job.id, "status": str(status)})


def _ticket(job_id: str) -> Ticket:
    """What the bearer token stands for. Raises Unauthorized."""
    world, token = _runtime.api(), bearer_of(router.current_event.raw_event)
    if token is None:
        raise Unauthorized("send the token that came with the job as the bearer token")
    return callback.admit(token, job_id, world.signing, world.clock.now())
