"""Routes of replays: a new job does the work of an ended one again."""

import secrets
from dataclasses import replace
from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body

from lambdas import _runtime
from lambdas.rest import idempotency, trace_headers
from lambdas.rest.access import needs
from lambdas.rest.envelope import answer
from lambdas.rest.job_answers import JobShape
from lambdas.rest.operation_routes import STARTED, STARTS, started
from lambdas.rest.replay_models import ReplayJobsRequest, ReplayRequest
from lambdas.rest.resolver import KEYED, Router, answers, stage
from lambdas.rest.shapes import Answer
from scheduler.accounts.access import Need
from scheduler.insight import archive
from scheduler.jobs.history import find
from scheduler.jobs.replay import check_ended
from scheduler.model import ids, operation
from scheduler.model.errors import NotFound, Unavailable
from scheduler.model.job import Job, Receipt
from scheduler.model.operation import Action
from scheduler.pipeline.submit import Accepted, Submission, submit_all

router = Router()


@router.post(
    "/api/v1/jobs/<job_id>/replay",
    summary="Replay an ended job",
    description=(
        "A new job does the work of the ended one again, and names it in `replay_of`. The original stays as it is. "
        "409: it has not ended, or its target no longer takes its work. Send an `Idempotency-Key` to repeat the request safely."
    ),
    tags=["jobs"],
    openapi_extensions=KEYED,
    responses=answers(201, Answer[JobShape], errors=(400, 401, 404, 409, 413, 415, 503)),
)
@needs(Need.JOBS_WRITE, foreign=True, action="job.replay", creates=1)
def replay_job(job_id: str, body: Annotated[ReplayRequest, Body()]) -> Response[str]:
    ports = _runtime.api()
    now = ports.clock.now()
    receipt = idempotency.of_request(router.event, router.owner, now)
    original = _found(job_id, now)
    if not _is_repeated(receipt, now):
        check_ended(original, now)
    ratio = ports.rules.traced
    new = idempotency.judged(lambda at: body.new_job(original, at, stage(original.owner), ratio), receipt, now, ports.receipts)
    new = replace(new, trace=trace_headers.read(router.event))
    (done,) = submit_all([Submission(new, secrets.randbits(ids.RANDOM_BITS), receipt)], ports, direct=ports.direct)
    if not isinstance(done, Accepted):
        raise done or Unavailable()
    headers = {"Location": f"/api/v1/jobs/{done.job.id}"} | (idempotency.REPLAYED if done.replayed else {})
    return answer(JobShape.of(done.job, done.at), 201, headers)


@router.post(
    "/api/v1/jobs/replay",
    summary="Replay ended jobs by a filter",
    description=f"For each ended job that matches the filter, a new job does its work again, at a rate, the earliest first. {STARTED}",
    tags=["operations"],
    responses=STARTS,
)
@needs(Need.JOBS_WRITE, foreign=True, action="operation.replay_jobs", creates=1)
def replay_jobs(body: Annotated[ReplayJobsRequest, Body()]) -> Response[str]:
    ports = _runtime.api()
    rate, random = ports.quotas.within_rate(router.owner, body.rate), secrets.randbits(ids.RANDOM_BITS)
    planned = operation.new(
        router.owner,
        ports.clock.now(),
        random,
        Action.REPLAY_JOBS,
        body.filter,
        rate=rate,
        limit=body.limit,
        payload=body.payload_for_all,
    )
    return started(planned, dry_run=body.dry_run)


def _found(job_id: str, now: int) -> Job:
    """The job to replay. Raises NotFound; if the job may be in the archive only, with the query that finds it there."""
    ports, key = _runtime.api(), router.job(job_id)
    try:
        return find(key, jobs=ports.jobs)
    except NotFound:
        if hint := archive.where(job_id, now, ports.rules.retention.days, ports.settings.archive_database):
            raise NotFound(hint) from None
        raise


def _is_repeated(receipt: Receipt | None, now: int) -> bool:
    """Whether the same request was accepted before: the original may have been retried since."""
    earlier = None if receipt is None else _runtime.api().receipts.find(receipt.owner, receipt.key, now)
    return receipt is not None and earlier is not None and earlier.fingerprint == receipt.fingerprint
