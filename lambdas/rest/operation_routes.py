"""Routes of operations: one action on many jobs or tasks, at a rate, with progress and abort."""

import secrets
from typing import Annotated, Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body

from lambdas import _runtime
from lambdas._logger import logger
from lambdas.rest.access import needs
from lambdas.rest.envelope import answer
from lambdas.rest.operation_models import (
    CancelRequest,
    DeleteTasksRequest,
    EstimateShape,
    OperationShape,
    OperationsShape,
    PauseTasksRequest,
    ResumeTasksRequest,
    TasksRequest,
)
from lambdas.rest.parameters import Cursor, Limit
from lambdas.rest.resolver import Router, answers
from lambdas.rest.shapes import Answer
from lambdas.rest.task_routes import RUNS_OF_TASK
from scheduler.accounts.access import Need
from scheduler.model import ids, operation
from scheduler.model.operation import Action, Operation
from scheduler.operations import requests

router = Router()

STARTED = "Runs in the background: you can read its progress or abort it. With `dry_run`, it only counts the matches (200)."
STARTS: Any = answers(202, Answer[OperationShape], errors=(400, 401, 409, 413, 415, 503)) | answers(200, Answer[EstimateShape])


@router.post(
    "/api/v1/jobs/cancel",
    summary="Cancel jobs by a filter",
    description=f"Cancels the jobs that match the filter and have not started, at a rate. {STARTED}",
    tags=["operations"],
    responses=STARTS,
)
@needs(Need.JOBS_WRITE, foreign=True, action="operation.cancel_jobs", creates=1)
def cancel_jobs(body: Annotated[CancelRequest, Body()]) -> Response[str]:
    return _start(Action.CANCEL_JOBS, body)


@router.post(
    "/api/v1/tasks/pause",
    summary="Pause tasks by a filter",
    description=f"No further run of these tasks is planned or started. {STARTED}",
    tags=["operations"],
    responses=STARTS,
)
@needs(Need.TASKS_WRITE, foreign=True, action="operation.pause_tasks", creates=1)
def pause_tasks(body: Annotated[PauseTasksRequest, Body()]) -> Response[str]:
    return _start(Action.PAUSE_TASKS, body, reason=body.reason)


@router.post(
    "/api/v1/tasks/resume",
    summary="Resume tasks by a filter",
    description=f"Runs that were due during the pause are not made up. {STARTED}",
    tags=["operations"],
    responses=STARTS,
)
@needs(Need.TASKS_WRITE, foreign=True, action="operation.resume_tasks", creates=1)
def resume_tasks(body: Annotated[ResumeTasksRequest, Body()]) -> Response[str]:
    return _start(Action.RESUME_TASKS, body)


@router.post(
    "/api/v1/tasks/delete",
    summary="Delete tasks by a filter",
    description=f"Deletes their future runs too. Past runs stay in the history. {STARTED}",
    tags=["operations"],
    responses=STARTS,
)
@needs(Need.TASKS_WRITE, foreign=True, action="operation.delete_tasks", creates=1)
def delete_tasks(body: Annotated[DeleteTasksRequest, Body()]) -> Response[str]:
    return _start(Action.DELETE_TASKS, body)


@router.get(
    "/api/v1/operations",
    summary="List operations",
    description="Includes redrives. The first page begins with the running operations (at most five), which `limit` does not count.",
    tags=["operations"],
    responses=answers(200, Answer[OperationsShape], errors=(400, 401, 503)),
)
@needs(Need.JOBS_READ, foreign=True)
def list_operations(limit: Limit = 20, cursor: Cursor = None) -> Response[str]:
    found, following = requests.listing(router.owner, limit=limit, cursor=cursor, operations=_runtime.api().operations)
    return answer(OperationsShape.of(found, following))


@router.get(
    "/api/v1/operations/<operation_id>",
    summary="Get an operation",
    tags=["operations"],
    responses=answers(200, Answer[OperationShape], errors=(401, 404, 503)),
)
@needs(Need.JOBS_READ, foreign=True)
def get_operation(operation_id: str) -> Response[str]:
    return answer(OperationShape.of(requests.find(router.owner, operation_id, operations=_runtime.api().operations)))


@router.post(
    "/api/v1/operations/<operation_id>/abort",
    summary="Abort an operation",
    description="Within about a second, no further object is changed. Changes already made stay. Idempotent.",
    tags=["operations"],
    responses=answers(200, Answer[OperationShape], errors=(401, 404, 409, 503)),
)
@needs(Need.JOBS_WRITE, foreign=True, action="operation.abort")
def abort_operation(operation_id: str) -> Response[str]:
    return answer(OperationShape.of(requests.abort(router.owner, operation_id, _runtime.api())))


def _start(action: Action, body: CancelRequest | TasksRequest, reason: str | None = None) -> Response[str]:
    """Start the operation that a request describes, or count what it would change."""
    ports, random = _runtime.api(), secrets.randbits(ids.RANDOM_BITS)
    rate = body.rate
    if action is Action.RESUME_TASKS:
        rate = max(ports.quotas.within_rate(router.owner, rate * RUNS_OF_TASK) // RUNS_OF_TASK, 1)
    planned = operation.new(router.owner, ports.clock.now(), random, action, body.filter, rate=rate, limit=body.limit, reason=reason)
    return started(planned, dry_run=body.dry_run)


def started(planned: Operation, *, dry_run: bool) -> Response[str]:
    """Start the operation, or count what it would change."""
    ports = _runtime.api()
    if dry_run:
        return answer(EstimateShape.of(requests.estimate(planned, ports)))
    made = requests.start(planned, ports)
    logger.info("operation started", extra={"operation_id": made.id, "action": made.action, "rate": made.rate})
    return answer(OperationShape.of(made), 202, {"Location": f"/api/v1/operations/{made.id}"})
