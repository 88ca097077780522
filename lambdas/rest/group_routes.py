"""Routes of groups: jobs with common call-backs."""

import secrets
from collections.abc import Sequence
from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Query

from lambdas import _runtime
from lambdas._logger import logger
from lambdas.rest import batch, idempotency, parameters, trace_headers
from lambdas.rest.access import needs
from lambdas.rest.beside import beside
from lambdas.rest.envelope import answer
from lambdas.rest.group_models import MEMBER_STATUSES, GroupRequest, JobGroupShape, JobGroupsShape, MadeGroupShape
from lambdas.rest.job_answers import PageShape
from lambdas.rest.parameters import ANY_OF, Cursor, Limit
from lambdas.rest.resolver import KEYED, Router, answers, stage
from lambdas.rest.shapes import Answer
from scheduler.accounts.access import Need
from scheduler.groups import counting
from scheduler.jobs import groups
from scheduler.model import ids
from scheduler.model.errors import Invalid, SchedulerError
from scheduler.model.job import GroupKey, Page, Status
from scheduler.pipeline.submit import Submission

router = Router()

CREATE = "/api/v1/groups"
ANY: list[MEMBER_STATUSES] = []
EndedAs = Annotated[list[MEMBER_STATUSES], Query(description=f"only jobs that ended like this; {ANY_OF}. Default: all jobs, ended or not")]


@router.post(
    CREATE,
    summary="Create a group of jobs",
    description=(
        "Up to 1,000 jobs come with the request. Others join while the group is open: give its id as `group` when you create them. "
        "When all have ended, the call-backs start. Send an `Idempotency-Key` to repeat the request safely."
    ),
    tags=["groups"],
    openapi_extensions=KEYED,
    responses=answers(201, Answer[MadeGroupShape], errors=(400, 401, 409, 413, 415, 503)),
)
@needs(Need.JOBS_WRITE, creates=1)
def create_group(body: Annotated[GroupRequest, Body()]) -> Response[str]:
    ports = _runtime.api()
    now = ports.clock.now()
    if len(body.jobs) > 1:
        ports.quotas.admit(router.owner, len(body.jobs) - 1)
    receipt = idempotency.of_request(router.event, router.owner, now)
    jobs = _jobs(body, None if receipt is None else receipt.key, now)
    made = groups.create(
        body.new_group(router.owner), jobs, ports, random=secrets.randbits(ids.RANDOM_BITS), receipt=receipt, direct=ports.direct
    )
    logger.info("group created", extra={"group_id": made.group.id, "jobs": len(jobs)})
    shown = JobGroupShape.of(made.group, groups.counts(made.group, ports))
    done = MadeGroupShape.from_record(None, group=shown, results=batch.results(jobs, made.results)["results"])
    return answer(done, 201, {"Location": f"/api/v1/groups/{made.group.id}", **(idempotency.REPLAYED if made.replayed else {})})


@router.get(
    "/api/v1/groups",
    summary="List groups",
    description="The newest first.",
    tags=["groups"],
    responses=answers(200, Answer[JobGroupsShape], errors=(400, 401, 503)),
)
@needs(Need.JOBS_READ, foreign=True)
def list_groups(limit: Limit = 20, cursor: Cursor = None) -> Response[str]:
    return answer(JobGroupsShape.of(*groups.listing(router.owner, _runtime.api(), limit=limit, cursor=cursor)))


@router.get(
    "/api/v1/groups/<group_id>",
    summary="Get a group",
    description="With the number of its jobs by status.",
    tags=["groups"],
    responses=answers(200, Answer[JobGroupShape], errors=(401, 404, 503)),
)
@needs(Need.JOBS_READ, foreign=True)
def get_group(group_id: str) -> Response[str]:
    ports = _runtime.api()
    group = groups.find(_key(group_id), ports)
    return answer(JobGroupShape.of(group, groups.counts(group, ports)))


@router.get(
    "/api/v1/groups/<group_id>/jobs",
    summary="List the jobs of a group",
    description="In the order in which they joined.",
    tags=["groups"],
    responses=answers(200, Answer[PageShape], errors=(400, 401, 404, 503)),
)
@needs(Need.JOBS_READ, foreign=True)
def list_group_jobs(group_id: str, status: EndedAs = ANY, limit: Limit = 20, cursor: Cursor = None) -> Response[str]:
    ports, start = _runtime.api(), parameters.position(cursor, "[1-9][0-9]{0,6}")
    group, now = groups.find(_key(group_id), ports), ports.clock.now()
    ended = [counting.ENDS[Status(name)] for name in status]
    jobs, following = groups.members(group, ports, limit=limit, cursor=start, ended=ended)
    return answer(PageShape.of(Page(jobs, following), now, beside(jobs, now)))


@router.post(
    "/api/v1/groups/<group_id>/seal",
    summary="Seal a group",
    description="No other job can join. The call-backs start once all its jobs have ended; if they have, they start now. Idempotent.",
    tags=["groups"],
    responses=answers(200, Answer[JobGroupShape], errors=(401, 404, 409, 503)),
)
@needs(Need.JOBS_WRITE, foreign=True, action="group.seal")
def seal_group(group_id: str) -> Response[str]:
    ports = _runtime.api()
    group = groups.seal(_key(group_id), ports)
    return answer(JobGroupShape.of(group, groups.counts(group, ports)))


@router.post(
    "/api/v1/groups/<group_id>/cancel",
    summary="Cancel a group",
    description="Seals the group and cancels its jobs that have not started, within moments. Running jobs continue. Idempotent.",
    tags=["groups"],
    responses=answers(200, Answer[JobGroupShape], errors=(401, 404, 409, 503)),
)
@needs(Need.JOBS_WRITE, foreign=True, action="group.cancel")
def cancel_group(group_id: str) -> Response[str]:
    ports = _runtime.api()
    group = groups.cancel(_key(group_id), ports)
    return answer(JobGroupShape.of(group, groups.counts(group, ports)))


def _jobs(body: GroupRequest, key: str | None, now: int) -> Sequence[Submission]:
    """The jobs that come with the request. Raises the errors of all that are not valid: a group is created with all its jobs or not."""
    trace = trace_headers.read(router.event)
    read = batch.read(body.jobs, router.owner, now, key, _runtime.api().receipts, stage(router.owner), trace)
    refused = [each for each in read if isinstance(each, SchedulerError)]
    broken = [detail for error in refused for detail in error.details]
    for index, (item, each) in enumerate(zip(body.jobs, read, strict=True)):
        if isinstance(each, Submission) and "idempotency_key" in item:
            rule = "must be absent: the request has one key for all its jobs, the header Idempotency-Key"
            broken.append({"field": f"{batch.path_of(index)}.idempotency_key", "rule": rule})
        if isinstance(each, Submission) and each.request.spec.key is not None:
            broken.append({"field": f"{batch.path_of(index)}.key", "rule": "must be absent: give a job its key when it joins later"})
        if isinstance(each, Submission) and each.request.group is not None:
            broken.append({"field": f"{batch.path_of(index)}.group", "rule": "must be absent: the job joins the new group"})
    if len(refused) == 1 and len(broken) == len(refused[0].details):
        raise refused[0]
    if broken:
        raise Invalid(f"{len(broken)} rules are broken by the jobs of the group", details=broken[:100])
    return [each for each in read if isinstance(each, Submission)]


def _key(group_id: str) -> GroupKey:
    return GroupKey(router.owner, group_id)
