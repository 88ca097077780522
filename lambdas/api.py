"""`api`: the HTTP interface. Each route parses, calls one service and answers."""

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Annotated, Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Path, Query

from lambdas import _init, _runtime
from lambdas._logger import logger
from lambdas.rest import (
    api_key_routes,
    audit_routes,
    batch,
    calendar_routes,
    callback_routes,
    dead_letter_routes,
    default_alert_routes,
    etags,
    form_routes,
    group_routes,
    idempotency,
    intake_routes,
    key_routes,
    monitor_routes,
    operation_routes,
    order_routes,
    parameters,
    principal_routes,
    receiver_routes,
    refresh_cookie,
    replay_routes,
    sso_routes,
    status_routes,
    summary_routes,
    system_routes,
    target_routes,
    task_routes,
    team_routes,
    trace_headers,
    user_routes,
    year_routes,
)
from lambdas.rest.access import RULES, Rule, needs
from lambdas.rest.beside import beside
from lambdas.rest.client_address import client_address
from lambdas.rest.envelope import answer
from lambdas.rest.job_answers import JobShape, PageShape, TextShape
from lambdas.rest.models import (
    BatchRequest,
    BatchShape,
    ChallengeShape,
    HealthShape,
    JobChange,
    JobRequest,
    Login,
    Refresh,
    RefreshedShape,
    SessionShape,
    VersionShape,
)
from lambdas.rest.parameters import ANY_STATUS, NO_TAGS, Cursor, Limit, OfStatus, OfTask, Since, Tagged, Until, Upcoming
from lambdas.rest.resolver import CONDITIONAL, KEYED, Resolver, Router, answers, stage
from lambdas.rest.session_answers import signed_in
from lambdas.rest.shapes import Answer
from scheduler.accounts import api_keys, sso
from scheduler.accounts import login as accounts_login
from scheduler.accounts.access import Need
from scheduler.insight import archive
from scheduler.jobs.cancel import cancel
from scheduler.jobs.change import reschedule
from scheduler.jobs.history import Query as HistoryQuery
from scheduler.jobs.history import find, history
from scheduler.model import ids
from scheduler.model.errors import NotFound, Unauthorized, Unavailable
from scheduler.model.job import Job
from scheduler.pipeline import output_store
from scheduler.pipeline.lag import known_lag
from scheduler.pipeline.submit import Accepted, Refusal, Submission, submit_all
from scheduler.storage.ports import Challenge, Outputs

BATCH = "/api/v1/jobs/batch"

router = Router()

Number = Annotated[int, parameters.WHOLE, Path(ge=1, description="The `number` of the attempt in the job.")]
EXAMPLES: dict[str, Any] = {
    "message": {"summary": "A message, now", "value": {"message": "hello"}},
    "http": {
        "summary": "An HTTP call in half an hour, with up to five attempts",
        "value": {
            "delay": "30m",
            "type": "http",
            "payload": {"method": "POST", "url": "https://example.com/orders/7/expire", "body": {"reason": "unpaid"}},
            "max_attempts": 5,
            "timeout_seconds": 30,
        },
    },
}


@router.get(
    "/api/v1/health",
    summary="Health check",
    tags=["system"],
    responses=answers(200, Answer[HealthShape], errors=(401, 503)),
)
@needs(Need.OPEN)
def get_health() -> Response[str]:
    """Open and cheap: without a token it calls no AWS service. No authorizer checks tokens on this route, so the function does."""
    token = router.bearer
    if token is None:
        return answer(HealthShape.of(None))
    ports = _runtime.api()
    now = ports.clock.now()
    ports.identity.user(token, now)
    return answer(HealthShape.of(known_lag(ports.ledger, now)))


@router.get(
    "/api/v1/version",
    summary="Get the versions of the scheduler and the API",
    tags=["system"],
    responses=answers(200, Answer[VersionShape], errors=(400, 401)),
)
@needs(Need.SIGNED_IN)
def get_version() -> Response[str]:
    return answer(VersionShape.of())


@router.post(
    "/api/v1/auth/login",
    summary="Sign in",
    description=(
        "Returns an access token, which is valid for an hour, and a refresh token. "
        "202: the account has a second factor; send a code to `/auth/challenge`."
    ),
    tags=["auth"],
    responses=answers(200, Answer[SessionShape], errors=(400, 401, 413, 415, 429, 503)) | answers(202, Answer[ChallengeShape]),
)
@needs(Need.OPEN)
def login(body: Annotated[Login, Body()]) -> Response[str]:
    ports = _runtime.api()
    address = client_address(router.event, ports.settings.get("origin_secret"))
    option = sso.of_setting(ports.settings.get("sso"))
    session = accounts_login.login(body.username, body.password, address, ports, None if option is None else option.with_passwords)
    if isinstance(session, Challenge):
        return answer(ChallengeShape.of(accounts_login.written(session)), 202)
    return signed_in(session, ports.clock.now(), cookie=body.cookie)


@router.post(
    "/api/v1/auth/refresh",
    summary="Refresh a token",
    description="Send the refresh token in the body, as the bearer token, or in the cookie of a sign-in with `cookie`.",
    tags=["auth"],
    responses=answers(200, Answer[RefreshedShape], errors=(400, 401, 413, 415, 503)),
)
@needs(Need.OPEN)
def refresh_token(body: Annotated[Refresh, Body()]) -> Response[str]:
    presented = body.refresh_token or router.bearer
    token = presented or refresh_cookie.read(router.event)
    if token is None:
        raise Unauthorized("send the refresh token as the bearer token or as refresh_token in the body")
    ports = _runtime.api()
    session = ports.identity.refresh(token)
    if presented and not body.cookie:
        return answer(RefreshedShape.of(session, ports.clock.now()))
    cookie = refresh_cookie.holding(session.refresh_token or token)
    return answer(RefreshedShape.of(replace(session, refresh_token=None), ports.clock.now()), cookies=[cookie])


@router.post(
    "/api/v1/jobs",
    summary="Create a job",
    description=(
        "The job starts at `execute_at`, after `delay`, or now. Send an `Idempotency-Key` to repeat the request safely. "
        "With a header `traceparent` (W3C Trace Context) the job belongs to your trace; one that is not valid is ignored."
    ),
    tags=["jobs"],
    openapi_extensions=KEYED,
    responses=answers(201, Answer[JobShape], errors=(400, 401, 409, 413, 415, 503)),
)
@needs(Need.JOBS_WRITE, creates=1)
def create_job(body: Annotated[JobRequest, Body(openapi_examples=EXAMPLES)]) -> Response[str]:
    ports = _runtime.api()
    now = ports.clock.now()
    receipt = idempotency.of_request(router.event, router.owner, now)
    new = idempotency.judged(lambda at: body.new_job(router.owner, at), receipt, now, ports.receipts)
    if (context := trace_headers.read(router.event)) is not None:
        new = replace(new, trace=context)
    (done,) = _submit([Submission(new, secrets.randbits(ids.RANDOM_BITS), receipt)])
    if not isinstance(done, Accepted):
        raise done or Unavailable()
    return _created(done.job, done.at, idempotency.REPLAYED if done.replayed else None)


def _submit(submissions: Sequence[Submission]) -> list[Accepted | Refusal | None]:
    ports = _runtime.api()
    return submit_all(submissions, ports, direct=ports.direct)


def _created(job: Job, at: int, headers: Mapping[str, str] | None = None) -> Response[str]:
    return answer(JobShape.of(job, at), 201, {"Location": f"/api/v1/jobs/{job.id}", **(headers or {})})


@router.post(
    BATCH,
    summary="Create up to 1,000 jobs",
    description="Each job is accepted or refused on its own. 200: all were accepted. 207: at least one was refused; see `results`.",
    tags=["jobs"],
    openapi_extensions=KEYED,
    responses=answers(200, Answer[BatchShape], 207, errors=(400, 401, 413, 415, 503)),
)
@needs(Need.JOBS_WRITE)
def create_jobs(body: Annotated[BatchRequest, Body()]) -> Response[str]:
    ports = _runtime.api()
    ports.quotas.admit(router.owner, len(body.jobs))
    key = idempotency.header(router.event)
    trace = trace_headers.read(router.event)
    submissions = batch.read(body.jobs, router.owner, ports.clock.now(), key, ports.receipts, stage(router.owner), trace)
    good = [each for each in submissions if isinstance(each, Submission)]
    made = _submit(good)
    done = batch.results(submissions, made)
    return answer(done, 207 if done["refused"] else 200)


@router.get(
    "/api/v1/jobs",
    summary="List jobs by scheduled time",
    description="Jobs that were due up to now, newest first. With `upcoming`: jobs that are due later, soonest first.",
    tags=["jobs"],
    responses=answers(200, Answer[PageShape], errors=(400, 401, 503)),
)
@needs(Need.JOBS_READ, foreign=True)
def list_jobs(
    upcoming: Upcoming = None,
    task: OfTask = None,
    tag: Tagged = NO_TAGS,
    status: OfStatus = ANY_STATUS,
    type: Annotated[str | None, Query()] = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Response[str]:
    ahead = parameters.is_upcoming(upcoming, status)
    query = HistoryQuery(router.owner, ahead, parameters.task_id(task), tuple(tag), tuple(status), type, since, until, limit, cursor)
    ports = _runtime.api()
    now = ports.clock.now()
    page = history(query, jobs=ports.jobs, now=now)
    return answer(PageShape.of(page, now, beside(page.jobs, now)))


@router.get("/api/v1/jobs/<job_id>", summary="Get a job", tags=["jobs"], responses=answers(200, Answer[JobShape], errors=(401, 404, 503)))
@needs(Need.JOBS_READ, foreign=True)
def get_job(job_id: str) -> Response[str]:
    ports, key = _runtime.api(), router.job(job_id)
    now = ports.clock.now()
    try:
        return _job(find(key, jobs=ports.jobs), now)
    except NotFound:
        if hint := archive.where(job_id, now, ports.rules.retention.days, ports.settings.archive_database):
            raise NotFound(hint) from None
        raise


@router.patch(
    "/api/v1/jobs/<job_id>",
    summary="Change a job before it starts",
    description=(
        "Changes its time, its content or its rules. An absent field stays as it is. "
        "The id stays the same, and lists show the job at its new time."
    ),
    tags=["jobs"],
    openapi_extensions=CONDITIONAL,
    responses=answers(200, Answer[JobShape], errors=(400, 401, 404, 409, 412, 413, 415, 503)),
)
@needs(Need.JOBS_WRITE, foreign=True, action="job.change")
def update_job(job_id: str, body: Annotated[JobChange, Body()]) -> Response[str]:
    ports, event = _runtime.api(), router.event
    job = find(router.job(job_id), jobs=ports.jobs)
    changes = body.changes(job.spec.type, ports.clock.now(), job.spec.target, stage(job.owner))
    changed = reschedule(job.key, changes, ports, check=lambda job: etags.check(event, etags.of_job(job)))
    return _job(changed, ports.clock.now())


def _job(job: Job, now: int) -> Response[str]:
    return answer(JobShape.of(job, now, beside([job], now)), headers=etags.header(etags.of_job(job)))


@router.post(
    "/api/v1/jobs/<job_id>/cancel",
    summary="Cancel a job",
    description="A job that has not started is cancelled at once. A running job is requested to stop. Idempotent.",
    tags=["jobs"],
    responses=answers(200, Answer[JobShape], errors=(401, 404, 409, 503)),
)
@needs(Need.JOBS_WRITE, foreign=True, action="job.cancel")
def cancel_job(job_id: str) -> Response[str]:
    ports = _runtime.api()
    done, now = cancel(router.job(job_id), ports), ports.clock.now()
    return answer(JobShape.of(done, now, beside([done], now)))


@router.get(
    "/api/v1/jobs/<job_id>/attempts/<number>/output",
    summary="Get the full output of an attempt",
    description="The output, or the response body of the target, up to 1 MB. Stored as long as dead letters; afterwards 410.",
    tags=["jobs"],
    responses=answers(200, Answer[TextShape], errors=(400, 401, 404, 410, 503)),
)
@needs(Need.JOBS_READ, foreign=True)
def get_attempt_output(job_id: str, number: Number) -> Response[str]:
    return _full_text(job_id, number, output_store.output)


@router.get(
    "/api/v1/jobs/<job_id>/attempts/<number>/log",
    summary="Get the full log of an attempt",
    description="Up to 1 MB; of a longer log, the end. Stored as long as dead letters; afterwards 410.",
    tags=["jobs"],
    responses=answers(200, Answer[TextShape], errors=(400, 401, 404, 410, 503)),
)
@needs(Need.JOBS_READ, foreign=True)
def get_attempt_log(job_id: str, number: Number) -> Response[str]:
    return _full_text(job_id, number, output_store.logged)


def _full_text(job_id: str, number: int, read: Callable[[Job, int, Outputs], output_store.Text]) -> Response[str]:
    job = find(router.job(job_id), jobs=_runtime.api().jobs)
    return answer(TextShape.of(read(job, number, _runtime.api().outputs), number))


@router.get("/api/v1/openapi.json", include_in_schema=False)
@needs(Need.OPEN)
def openapi() -> Response[str]:
    return Response(200, "application/json", _document())


app = Resolver(
    title="Punctual",
    description="A precise job scheduler: create a job for an instant, and it starts within milliseconds. Every error is an ErrorAnswer.",
    large=[BATCH, group_routes.CREATE, intake_routes.RETRY],
)
ROUTERS = [key_routes.router, form_routes.router, task_routes.router, dead_letter_routes.router, callback_routes.router]
ROUTERS += [operation_routes.router, order_routes.router, status_routes.router, system_routes.router, target_routes.router]
ROUTERS += [replay_routes.router, api_key_routes.router, team_routes.router, principal_routes.router, sso_routes.router]
ROUTERS += [user_routes.router, audit_routes.router, summary_routes.router, intake_routes.router, group_routes.router]
ROUTERS += [monitor_routes.router, receiver_routes.router, default_alert_routes.router, calendar_routes.router]
ROUTERS += [year_routes.router, router]
for each in ROUTERS:  # those by key before those by id: a path is answered by the first route that it fits
    app.include_router(each)
app.enable_swagger(path="/api/v1/docs", compress=True, persist_authorization=True)
RULES["GET /docs"] = Rule(Need.OPEN)  # Powertools' own route


@cache
def _document() -> str:
    return app.get_openapi_json_schema()


_init.end(_runtime.api, "jobs", "tasks", "lanes", "ledger", "receipts", "users")


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answer one request of API Gateway; one log line each."""
    began = time.perf_counter()
    request = event["requestContext"]
    logger.append_keys(request_id=request["requestId"])
    answered = app.resolve(event, context)
    took = round((time.perf_counter() - began) * 1000, 1)
    logger.info(
        "request",
        extra={
            "method": request["http"]["method"],
            "path": monitor_routes.without_token(api_keys.without_secrets(event["rawPath"])),
            "status": answered["statusCode"],
            "ms": took,
        },
    )
    return answered
