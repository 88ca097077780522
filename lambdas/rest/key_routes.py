"""Routes of jobs and tasks by the keys that their owners chose."""

import secrets
from dataclasses import replace
from typing import Annotated, Any
from urllib.parse import unquote

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Query

from lambdas import _runtime
from lambdas.rest import etags, idempotency, trace_headers
from lambdas.rest.access import needs
from lambdas.rest.beside import beside
from lambdas.rest.envelope import answer
from lambdas.rest.job_answers import JobShape, PutJobShape
from lambdas.rest.models import KeyedJobRequest
from lambdas.rest.resolver import KEYED_PUT, Router, answers
from lambdas.rest.shapes import Answer
from lambdas.rest.task_models import PutTaskShape, TaskEdit, TaskShape
from lambdas.rest.task_routes import NEXT_RUNS, RUNS_OF_TASK
from scheduler.accounts.access import Need
from scheduler.jobs import by_key
from scheduler.model import ids, own_keys
from scheduler.model.errors import Invalid
from scheduler.model.job import OwnKey
from scheduler.tasks import service

EXAMPLES: dict[str, Any] = {
    "expiry": {
        "summary": "An expiry that a later request moves",
        "value": {"delay": "30m", "message": "order 17 has expired", "on_conflict": "replace"},
    },
    "debounce": {
        "summary": "Once, a minute after the last change",
        "value": {"debounce": "1m", "max_wait": "10m", "message": "index the page"},
    },
    "throttle": {
        "summary": "At most once in an hour",
        "value": {"throttle": "1h", "message": "warn the team"},
    },
}

router = Router()


@router.put(
    "/api/v1/jobs/by-key/<key>",
    summary="Create or change the job of a key",
    description="201: a job was created, since no open job had this key. 200: `outcome` states what was done.",
    tags=["jobs"],
    responses=answers(201, Answer[PutJobShape], 200, errors=(400, 401, 409, 413, 415, 503)),
    openapi_extensions=KEYED_PUT,
)
@needs(Need.JOBS_WRITE, creates=1)  # as a job that is created, it leaves no entry in the audit trail
def put_job_by_key(key: str, body: Annotated[KeyedJobRequest, Body(openapi_examples=EXAMPLES)]) -> Response[str]:
    ports, own = _runtime.api(), _own(key)
    rules = body.rules(ports.rules.retention.days)
    put_by = idempotency.of_put(router.event)
    try:
        new = replace(body.of_key(own.owner, own.key, ports.clock.now()), put_by=put_by, trace=trace_headers.read(router.event))
    except Invalid:  # perhaps only since its instants are in the past by now
        found = by_key.find_repeated(own, put_by, rules.on_conflict, ports)
        if found is None:
            raise
        done = found
    else:
        random = secrets.randbits(ids.RANDOM_BITS)
        done = by_key.put(new, ports, random=random, rules=rules, direct=ports.direct)
    created = done.outcome is by_key.PutOutcome.CREATED
    headers = ({"Location": f"/api/v1/jobs/{done.job.id}"} if created else {}) | (idempotency.REPLAYED if done.repeated else {})
    return answer(PutJobShape.of_put(done, ports.clock.now()), 201 if created else 200, headers)


@router.get(
    "/api/v1/jobs/by-key/<key>",
    summary="Get the job of a key",
    description="The job that has the key. If that job has ended: the last job that had the key.",
    tags=["jobs"],
    responses=answers(200, Answer[JobShape], errors=(400, 401, 404, 503)),
)
@needs(Need.JOBS_READ, foreign=True)
def get_job_by_key(key: str) -> Response[str]:
    ports = _runtime.api()
    job, now = by_key.find_by_key(_own(key), ports), ports.clock.now()
    return answer(JobShape.of(job, now, beside([job], now)), headers=etags.header(etags.of_job(job)))


@router.post(
    "/api/v1/jobs/by-key/<key>/cancel",
    summary="Cancel the job of a key",
    description="A job that has not started is cancelled at once. A running job is requested to stop. Idempotent.",
    tags=["jobs"],
    responses=answers(200, Answer[JobShape], errors=(400, 401, 404, 409, 503)),
)
@needs(Need.JOBS_WRITE, foreign=True, action="job.cancel")
def cancel_job_by_key(key: str) -> Response[str]:
    ports = _runtime.api()
    return answer(JobShape.of(by_key.cancel_by_key(_own(key), ports), ports.clock.now()))


@router.put(
    "/api/v1/tasks/by-key/<key>",
    summary="Create or replace the task of a key",
    description=(
        "For schedules as code. A task that already matches the request stays unchanged. With `dry_run` nothing is changed: the request is "
        "checked, and the answer (200) has the task as it would be and its `changes`. The id of a new task is then not kept."
    ),
    tags=["tasks"],
    responses=answers(201, Answer[PutTaskShape], 200, errors=(400, 401, 409, 413, 415, 503)),
)
@needs(Need.TASKS_WRITE, action="task.put", creates=RUNS_OF_TASK)
def put_task_by_key(
    key: str,
    body: Annotated[TaskEdit, Body()],
    dry_run: Annotated[bool, Query(description="True: change nothing, and answer the effect.")] = False,
) -> Response[str]:
    ports, own = _runtime.api(), _own(key)
    new, random = body.of_key(own.owner, own.key), secrets.randbits(ids.RANDOM_BITS)
    if dry_run:
        before, after, outcome = service.would_put(new, ports, random=random, generation=body.generation)
        now = ports.clock.now()
        return answer(PutTaskShape.of_dry_run(body, before, after, outcome, service.next_runs(after, NEXT_RUNS, now), now))
    task, outcome = service.put(new, ports, random=random, generation=body.generation)
    now, created = ports.clock.now(), outcome is service.PutOutcome.CREATED
    shown = TaskShape.of(task, service.next_runs(task, NEXT_RUNS, now), now) | {"outcome": outcome, "changes": None}
    location = {"Location": f"/api/v1/tasks/{task.id}"} if created else {}
    return answer(shown, 201 if created else 200, etags.header(etags.of_task(task)) | location)


@router.get(
    "/api/v1/tasks/by-key/<key>",
    summary="Get the task of a key",
    tags=["tasks"],
    responses=answers(200, Answer[TaskShape], errors=(400, 401, 404, 503)),
)
@needs(Need.TASKS_READ, foreign=True)
def get_task_by_key(key: str) -> Response[str]:
    ports = _runtime.api()
    task, now = service.find_by_key(_own(key), ports), ports.clock.now()
    return answer(TaskShape.of(task, service.next_runs(task, NEXT_RUNS, now), now), headers=etags.header(etags.of_task(task)))


def _own(key: str) -> OwnKey:
    """The caller's key with this name. Raises Invalid for a text that is no valid key."""
    text = unquote(key)  # a gateway may pass the path on as it came; no key has a percent sign
    if not own_keys.is_key(text):
        raise Invalid.field("key", own_keys.RULE)
    return OwnKey(router.owner, text)
