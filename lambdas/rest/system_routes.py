"""Routes for administrators: what holds for everybody's jobs."""

from collections.abc import Sequence
from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from lambdas import _runtime
from lambdas._runtime import logger
from lambdas.rest import render
from lambdas.rest.envelope import answer
from lambdas.rest.models import Answer
from lambdas.rest.resolver import answers
from lambdas.rest.system_models import LanesRequest, SystemShape
from scheduler.admission.lane_state import pause, resume, states
from scheduler.model.job import LaneState

router = APIGatewayHttpRouter()  # type: ignore[no-untyped-call]


@router.get(
    "/api/v1/system",
    summary="Which lanes are paused",
    description="Operators and administrators only.",
    tags=["system"],
    responses=answers(200, Answer[SystemShape], errors=(401, 403, 503)),
)
def get_system() -> Response[str]:
    return _lanes(states(_runtime.api().ledger))


@router.post(
    "/api/v1/system/pause",
    summary="Pause all lanes or one",
    description="Administrators only. Jobs are accepted and wait; what runs runs on. Doing it twice is as good as once.",
    tags=["system"],
    responses=answers(200, Answer[SystemShape], errors=(400, 401, 403, 413, 415, 503)),
)
def pause_lanes(body: Annotated[LanesRequest, Body()]) -> Response[str]:
    world = _runtime.api()
    logger.info("pause", extra={"lanes": body.lanes, "reason": body.reason})
    return _lanes(pause(body.lanes, body.reason, world))


@router.post(
    "/api/v1/system/resume",
    summary="Resume all lanes or one",
    description="Administrators only. What waited goes out at once, oldest first, by its misfire rule. Doing it twice is as good as once.",
    tags=["system"],
    responses=answers(200, Answer[SystemShape], errors=(400, 401, 403, 413, 415, 503)),
)
def resume_lanes(body: Annotated[LanesRequest, Body()]) -> Response[str]:
    world = _runtime.api()
    logger.info("resume", extra={"lanes": body.lanes, "reason": body.reason})
    return _lanes(resume(body.lanes, body.reason, world))


def _lanes(shown: Sequence[LaneState]) -> Response[str]:
    return answer({"lanes": [render.lane(state) for state in shown]})
