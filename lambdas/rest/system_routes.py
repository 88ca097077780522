"""Routes that concern the jobs of all users, for administrators."""

from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body

from lambdas import _runtime
from lambdas._logger import logger
from lambdas.rest.access import needs
from lambdas.rest.envelope import answer
from lambdas.rest.parameters import AnyLimit, Cursor, part
from lambdas.rest.resolver import Router, answers
from lambdas.rest.shapes import Answer
from lambdas.rest.system_models import BreakerRequest, BreakersShape, ClosedShape, LanesRequest, PauseLanesRequest, SystemShape
from scheduler.accounts.access import Need
from scheduler.admission.breaker_gate import close, not_closed
from scheduler.admission.lane_state import PausedBy, pause, resume, states
from scheduler.model.breaker import Circuit

router = Router()


@router.get(
    "/api/v1/system",
    summary="Get the state of the lanes",
    description="Operators and administrators only.",
    tags=["system"],
    responses=answers(200, Answer[SystemShape], errors=(401, 403, 503)),
)
@needs(Need.OVERSEE)
def get_system() -> Response[str]:
    return answer(SystemShape.of(states(_runtime.api().ledger)))


@router.post(
    "/api/v1/system/pause",
    summary="Pause one lane, or all",
    description="Administrators only. New jobs are accepted and wait. Running jobs continue. Idempotent.",
    tags=["system"],
    responses=answers(200, Answer[SystemShape], errors=(400, 401, 403, 413, 415, 503)),
)
@needs(Need.ADMINISTER, action="system.pause")
def pause_lanes(body: Annotated[PauseLanesRequest, Body()]) -> Response[str]:
    ports = _runtime.api()
    logger.info("pause", extra={"lanes": body.lanes, "reason": body.reason})
    return answer(SystemShape.of(pause(body.lanes, body.reason, ports, PausedBy(router.caller.id, router.caller.name))))


@router.post(
    "/api/v1/system/resume",
    summary="Resume one lane, or all",
    description="Administrators only. Waiting jobs start at once, oldest first; runs of tasks follow their misfire rule. Idempotent.",
    tags=["system"],
    responses=answers(200, Answer[SystemShape], errors=(400, 401, 403, 413, 415, 503)),
)
@needs(Need.ADMINISTER, action="system.resume")
def resume_lanes(body: Annotated[LanesRequest, Body()]) -> Response[str]:
    ports = _runtime.api()
    logger.info("resume", extra={"lanes": body.lanes, "reason": body.reason})
    return answer(SystemShape.of(resume(body.lanes, body.reason, ports)))


@router.get(
    "/api/v1/system/breakers",
    summary="List circuit breakers that are not closed",
    description="Operators and administrators only. The targets of these breakers failed repeatedly, so their jobs wait.",
    tags=["system"],
    responses=answers(200, Answer[BreakersShape], errors=(400, 401, 403, 503)),
)
@needs(Need.OVERSEE)
def list_breakers(limit: AnyLimit = None, cursor: Cursor = None) -> Response[str]:
    ports = _runtime.api()
    return answer(BreakersShape.of(part(not_closed(ports.ledger), limit, cursor), ports.clock.now(), ports.names.all()))


@router.post(
    "/api/v1/system/breakers/close",
    summary="Close a circuit breaker",
    description=(
        "Administrators only. After a second the jobs of the target start again; a job that already waits starts at its `due_at`. "
        "If the target still fails, five more failures open the breaker again. "
        "The answer has the breaker that it closed, and lists the others. "
        "404: no breaker of this name and owner is open. 409: several owners have one of this name, and the request has no `owner`."
    ),
    tags=["system"],
    responses=answers(200, Answer[ClosedShape], errors=(400, 401, 403, 404, 409, 413, 415, 503)),
)
@needs(Need.ADMINISTER, action="system.close-breaker")
def close_breaker(body: Annotated[BreakerRequest, Body()]) -> Response[str]:
    ports = _runtime.api()
    logger.info("close breaker", extra={"circuit": body.circuit, "owner": body.owner, "reason": body.reason})
    names = ports.names.all()
    closed, others = close(Circuit(body.circuit, body.owner), ports.ledger, names)
    return answer(ClosedShape.of_closed(closed, others, ports.clock.now(), names))
