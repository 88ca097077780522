"""Routes of tasks, and of the runs of each task."""

import secrets
from collections.abc import Callable, Mapping
from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Query

from lambdas import _runtime
from lambdas.rest import etags, idempotency, parameters
from lambdas.rest.access import needs
from lambdas.rest.beside import beside
from lambdas.rest.envelope import answer
from lambdas.rest.form_models import PreviewShape
from lambdas.rest.job_answers import JobShape, PageShape
from lambdas.rest.parameters import ANY_OF, ANY_STATUS, NO_TAGS, WHOLE, Cursor, Limit, OfStatus, Since, Tagged, Until, Upcoming
from lambdas.rest.resolver import CONDITIONAL, KEYED, Router, answers, resolved
from lambdas.rest.shapes import Answer
from lambdas.rest.task_models import (
    EXAMPLES,
    PATCHES,
    DeletedShape,
    PauseRequest,
    RunRequest,
    TaskEdit,
    TaskPageShape,
    TaskRequest,
    TaskShape,
)
from lambdas.rest.task_patch import TaskPatch, patched
from scheduler.accounts.access import Need
from scheduler.jobs.history import Query as HistoryQuery
from scheduler.jobs.history import history
from scheduler.model import ids
from scheduler.model.job import Receipt, TaskKey
from scheduler.model.task import Task, TaskStatus
from scheduler.tasks import service
from scheduler.tasks.preview import Preview, warnings, with_skipped
from scheduler.tasks.service import NewTask, Search

NEXT_RUNS = 10
ANY_TASK: list[TaskStatus] = []
RUNS_OF_TASK = 10  # jobs that are stored with a new task

router = Router()


@router.post(
    "/api/v1/tasks",
    summary="Create a task",
    description="The next runs are stored with the task.",
    tags=["tasks"],
    openapi_extensions=KEYED,
    responses=answers(201, Answer[TaskShape], errors=(400, 401, 409, 413, 415, 503)),
)
@needs(Need.TASKS_WRITE, action="task.create", creates=RUNS_OF_TASK)
def create_task(body: Annotated[TaskRequest, Body(openapi_examples=EXAMPLES)]) -> Response[str]:
    ports, receipt = _runtime.api(), _receipt()
    task = service.create(body.new_task(router.owner), ports, random=_random(receipt), receipt=receipt)
    # As of its creation, so that a repeated request has the same answer.
    return _task(task, task.created_at, 201, _created("tasks", task.id, receipt))


@router.get(
    "/api/v1/tasks",
    summary="List tasks",
    tags=["tasks"],
    responses=answers(200, Answer[TaskPageShape], errors=(400, 401, 503)),
)
@needs(Need.TASKS_READ, foreign=True)
def list_tasks(
    name: Annotated[str | None, Query(description="a part of the name, in upper or lower case")] = None,
    tag: Tagged = NO_TAGS,
    type: Annotated[str | None, Query()] = None,
    status: Annotated[list[TaskStatus], Query(description=ANY_OF)] = ANY_TASK,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Response[str]:
    ports = _runtime.api()
    page = service.search(Search(router.owner, name, tuple(tag), type, tuple(status), limit, cursor), ports)
    now = ports.clock.now()
    return answer(TaskPageShape.of(page, lambda task: service.next_runs(task, 1, now), now))


@router.get(
    "/api/v1/tasks/<task_id>", summary="Get a task", tags=["tasks"], responses=answers(200, Answer[TaskShape], errors=(401, 404, 503))
)
@needs(Need.TASKS_READ, foreign=True)
def get_task(task_id: str) -> Response[str]:
    ports = _runtime.api()
    return _task(service.find(router.task(task_id), ports), ports.clock.now())


@router.put(
    "/api/v1/tasks/<task_id>",
    summary="Replace a task",
    description=(
        "An absent field gets its default; to change only some fields, use PATCH. The body may be an answer of GET. "
        "After the answer no run of the old schedule starts, and the new runs are stored."
    ),
    tags=["tasks"],
    openapi_extensions=CONDITIONAL,
    responses=answers(200, Answer[TaskShape], errors=(400, 401, 404, 409, 412, 413, 415, 503)),
)
@needs(Need.TASKS_WRITE, foreign=True, action="task.edit", creates=RUNS_OF_TASK)
def replace_task(task_id: str, body: Annotated[TaskEdit, Body(openapi_examples=EXAMPLES)]) -> Response[str]:
    return _edited(router.task(task_id), lambda task: body)


@router.patch(
    "/api/v1/tasks/<task_id>",
    summary="Change some fields of a task",
    description=(
        "A JSON merge patch (RFC 7396): a field that is absent stays, null takes a field away. The result is validated as for PUT. "
        "`cron`, `every`, `rate` or `at` takes the place of the one that was there, as `message` or `target` takes the place of `type`."
    ),
    tags=["tasks"],
    openapi_extensions=CONDITIONAL,
    responses=answers(200, Answer[TaskShape], errors=(400, 401, 404, 409, 412, 413, 415, 503)),
)
@needs(Need.TASKS_WRITE, foreign=True, action="task.edit", creates=RUNS_OF_TASK)
def update_task(task_id: str, body: Annotated[TaskPatch, Body(openapi_examples=PATCHES)]) -> Response[str]:
    return _edited(router.task(task_id), lambda task: patched(task, body.fields))


def _edited(key: TaskKey, make_edit: Callable[[Task], TaskEdit | None]) -> Response[str]:
    """Answer the edit that is wanted of the task as it is; None: no edit."""
    ports = _runtime.api()

    def new(task: Task) -> NewTask | None:
        etags.check(router.event, etags.of_task(task))
        edit = make_edit(task)
        if edit is None:
            return None
        resolved(edit, key.owner)
        service.check_generation(task, edit.generation)
        return edit.new_task(key.owner)

    return _task(service.edit(key, new, ports), ports.clock.now())


@router.delete(
    "/api/v1/tasks/<task_id>",
    summary="Delete a task",
    description="Deletes its future runs too. Past runs stay in the history.",
    tags=["tasks"],
    openapi_extensions=CONDITIONAL,
    responses=answers(200, Answer[DeletedShape], errors=(401, 404, 412, 503)),
)
@needs(Need.TASKS_WRITE, foreign=True, action="task.delete")
def delete_task(task_id: str) -> Response[str]:
    gone = service.delete(router.task(task_id), _runtime.api(), check=lambda task: etags.check(router.event, etags.of_task(task)))
    return answer(DeletedShape.from_record(gone))


@router.post(
    "/api/v1/tasks/<task_id>/pause",
    summary="Pause a task",
    description="Until you resume it, no run is planned or started. Idempotent.",
    tags=["tasks"],
    responses=answers(200, Answer[TaskShape], errors=(400, 401, 404, 413, 415, 503)),
)
@needs(Need.TASKS_WRITE, foreign=True, action="task.pause")
def pause_task(task_id: str, body: Annotated[PauseRequest, Body()]) -> Response[str]:
    ports = _runtime.api()
    return _task(service.deactivate(router.task(task_id), body.reason, ports), ports.clock.now())


@router.post(
    "/api/v1/tasks/<task_id>/resume",
    summary="Resume a task",
    description="Runs that were due during the pause are not caught up. Idempotent.",
    tags=["tasks"],
    responses=answers(200, Answer[TaskShape], errors=(401, 404, 503)),
)
@needs(Need.TASKS_WRITE, foreign=True, action="task.resume", creates=RUNS_OF_TASK)
def resume_task(task_id: str) -> Response[str]:
    ports = _runtime.api()
    return _task(service.activate(router.task(task_id), ports), ports.clock.now())


@router.post(
    "/api/v1/tasks/<task_id>/run",
    summary="Run a task now",
    description="Starts a run in addition to the schedule. It is not counted for `max_runs`.",
    tags=["tasks"],
    openapi_extensions=KEYED,
    responses=answers(201, Answer[JobShape], errors=(400, 401, 404, 409, 413, 415, 503)),
)
@needs(Need.TASKS_WRITE, foreign=True, action="task.run", creates=1)
def run_task(task_id: str, body: Annotated[RunRequest, Body()]) -> Response[str]:
    ports, receipt = _runtime.api(), _receipt()
    job = service.run_now(router.task(task_id), ports, random=_random(receipt), overlap=body.overlap, group=body.group, receipt=receipt)
    return answer(JobShape.of(job, job.created_at, beside([job], job.created_at)), 201, _created("jobs", job.id, receipt))


@router.get(
    "/api/v1/tasks/<task_id>/next",
    summary="List the next runs of a task",
    description="In UTC and in local time, with skipped times and notes on changes of the clock. A paused task has none.",
    tags=["tasks"],
    responses=answers(200, Answer[PreviewShape], errors=(400, 401, 404, 503)),
)
@needs(Need.TASKS_READ, foreign=True)
def list_next_runs(task_id: str, count: Annotated[int, WHOLE, Query(ge=1, le=100)] = NEXT_RUNS) -> Response[str]:
    ports = _runtime.api()
    task, now = service.find(router.task(task_id), ports), ports.clock.now()
    runs = service.next_runs(task, count, now)
    if task.schedule is None or task.inactive_at is not None:
        return answer(PreviewShape.of(Preview([*runs], [])))
    until = task.schedule.end if len(runs) < count and task.schedule.max_runs is None else None
    return answer(PreviewShape.of(Preview(with_skipped(task.schedule, runs, now, until=until), warnings(task.schedule, runs))))


@router.get(
    "/api/v1/tasks/<task_id>/jobs",
    summary="List the jobs of a task",
    description="Runs that were due up to now, newest first. With `upcoming`: runs that are stored ahead, soonest first.",
    tags=["tasks"],
    responses=answers(200, Answer[PageShape], errors=(400, 401, 404, 503)),
)
@needs(Need.JOBS_READ, foreign=True)
def list_task_jobs(
    task_id: str,
    upcoming: Upcoming = None,
    status: OfStatus = ANY_STATUS,
    since: Since = None,
    until: Until = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Response[str]:
    ports = _runtime.api()
    task, now = service.find(router.task(task_id), ports), ports.clock.now()
    ahead = parameters.is_upcoming(upcoming, status)
    query = HistoryQuery(task.owner, ahead, task=task.id, statuses=tuple(status), since=since, until=until, limit=limit, cursor=cursor)
    page = history(query, jobs=ports.jobs, now=now)
    return answer(PageShape.of(page, now, beside(page.jobs, now)))


def _receipt() -> Receipt | None:
    return idempotency.of_request(router.event, router.owner, _runtime.api().clock.now())


def _random(receipt: Receipt | None) -> int:
    return secrets.randbits(ids.RANDOM_BITS) if receipt is None else receipt.random


def _created(path: str, made: str, receipt: Receipt | None) -> dict[str, str]:
    """The headers for a created object. If its id was not made with this receipt, an earlier request created it."""
    replayed = receipt is not None and not ids.is_made_with(receipt.random, made)
    return {"Location": f"/api/v1/{path}/{made}"} | (idempotency.REPLAYED if replayed else {})


def _task(task: Task, now: int, status: int = 200, headers: Mapping[str, str] | None = None) -> Response[str]:
    shown = TaskShape.of(task, service.next_runs(task, NEXT_RUNS, now), now)
    return answer(shown, status, etags.header(etags.of_task(task)) | dict(headers or {}))
