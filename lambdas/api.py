"""`api`: the HTTP interface. Each route parses, calls one service and answers."""

import secrets
import time
from functools import cache
from typing import Annotated, Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Query

from lambdas import _batch, _form_routes, _runtime, _system_routes
from lambdas._envelope import answer
from lambdas._models import (
    Answer,
    BatchRequest,
    BatchShape,
    HealthShape,
    JobRequest,
    JobShape,
    Login,
    PageShape,
    QueryInstant,
    Refresh,
    RefreshedShape,
    SessionShape,
)
from lambdas._resolver import OPEN, Resolver, answers
from lambdas._runtime import logger
from scheduler import ids, render
from scheduler.errors import Invalid, NotFound, Unauthorized
from scheduler.model import JobKey, Status
from scheduler.services.cancel import cancel
from scheduler.services.health import lag
from scheduler.services.history import Query as HistoryQuery
from scheduler.services.history import find, history
from scheduler.services.submit import NewJob, submit, submit_many

BATCH = "/api/v1/me/jobs/batch"

app = Resolver(
    title="Punctual",
    description="A job scheduler: post a job for an instant, and it starts then. Errors all look alike: see ErrorAnswer.",
    large=[BATCH],
)

EXAMPLES: dict[str, Any] = {
    "message": {"summary": "A message, now", "value": {"message": "hello"}},
    "http": {
        "summary": "A call at an instant, tried up to five times",
        "value": {
            "execute_at": "2026-11-20T10:00:00.250+01:00",
            "type": "http",
            "payload": {"method": "POST", "url": "https://example.com/orders/7/expire", "body": {"reason": "unpaid"}},
            "max_attempts": 5,
            "timeout_seconds": 30,
        },
    },
}
app.include_router(_form_routes.router)
app.include_router(_system_routes.router)
LIST_PARAMETERS = ("upcoming", "status", "type", "from", "to", "limit", "cursor")


@app.get(
    "/api/v1/health",
    summary="Is it there, and (with a token) how far behind",
    tags=["system"],
    openapi_extensions=OPEN,
    responses=answers(200, Answer[HealthShape], errors=(401, 503)),
)
def health() -> Response[str]:
    """Open and cheap: nothing is asked of AWS unless a token comes with it, which no authorizer has seen on this route."""
    token = _bearer()
    if token is None:
        return answer({"status": "ok"})
    world = _runtime.api()
    world.accounts.user(token)
    behind = lag(world.ledger, world.clock.now())
    told = {"oldest_open_minute": behind.minute, "lag_seconds": behind.ms / 1000, "paused_lanes": behind.paused}
    return answer({"status": "ok"} | told)


@app.post(
    "/api/v1/auth/login",
    summary="Sign in",
    tags=["auth"],
    openapi_extensions=OPEN,
    responses=answers(200, Answer[SessionShape], errors=(400, 401, 413, 415, 503)),
)
def login(body: Annotated[Login, Body()]) -> Response[str]:
    return answer(render.session(_runtime.api().accounts.login(body.username, body.password)))


@app.post(
    "/api/v1/auth/refresh",
    summary="A new token for a refresh token",
    description="The refresh token comes as the bearer token, or in the body.",
    tags=["auth"],
    responses=answers(200, Answer[RefreshedShape], errors=(400, 401, 413, 415, 503)),
)
def refresh(body: Annotated[Refresh, Body()]) -> Response[str]:
    token = body.refresh_token or _bearer()
    if token is None:
        raise Unauthorized("send the refresh token as the bearer token or as refresh_token in the body")
    return answer(render.session(_runtime.api().accounts.refresh(token)))


@app.post(
    "/api/v1/me/jobs",
    summary="Post a job",
    tags=["jobs"],
    responses=answers(201, Answer[JobShape], errors=(400, 401, 413, 415, 503)),
)
def create_job(body: Annotated[JobRequest, Body(openapi_examples=EXAMPLES)]) -> Response[str]:
    world = _runtime.api()
    new = body.asked(app.owner, world.clock.now())
    job = submit(new, jobs=world.jobs, lanes=world.lanes, clock=world.clock, rules=world.rules, random=secrets.randbits(ids.RANDOM_BITS))
    return answer(render.job(job, world.clock.now()), 201, {"Location": f"/api/v1/me/jobs/{job.id}"})


@app.post(
    BATCH,
    summary="Post up to a thousand jobs",
    description="Each is accepted or refused on its own. 200: all were accepted; 207: some or all were not, see the results.",
    tags=["jobs"],
    responses=answers(200, Answer[BatchShape], 207, errors=(400, 401, 413, 415, 503)),
)
def create_jobs(body: Annotated[BatchRequest, Body()]) -> Response[str]:
    world = _runtime.api()
    asked = _batch.read(body.jobs, app.owner, world.clock.now())
    good = [each for each in asked if isinstance(each, NewJob)]
    randoms = [secrets.randbits(ids.RANDOM_BITS) for _ in good]
    jobs = submit_many(good, jobs=world.jobs, lanes=world.lanes, clock=world.clock, rules=world.rules, randoms=randoms)
    done = _batch.results(asked, jobs, world.clock.now())
    return answer(done, 207 if done["refused"] else 200)


@app.get(
    "/api/v1/me/jobs",
    summary="My jobs by scheduled time",
    description="What was due up to now, newest first; with `upcoming` what is ahead, soonest first.",
    tags=["jobs"],
    responses=answers(200, Answer[PageShape], errors=(400, 401, 503)),
)
def list_jobs(
    upcoming: Annotated[bool, Query(description="what is ahead instead of what was due")] = False,
    status: Annotated[Status | None, Query()] = None,
    type: Annotated[str | None, Query()] = None,
    since: Annotated[QueryInstant | None, Query(alias="from", description="scheduled at or after this instant (RFC 3339)")] = None,
    until: Annotated[QueryInstant | None, Query(alias="to", description="scheduled before this instant (RFC 3339)")] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    cursor: Annotated[str | None, Query(description="the cursor of the page before")] = None,
) -> Response[str]:
    _known_parameters()
    world = _runtime.api()
    now = world.clock.now()
    page = history(HistoryQuery(app.owner, upcoming, status, type, since, until, limit, cursor), jobs=world.jobs, now=now)
    return answer({"jobs": [render.job(job, now) for job in page.jobs], "cursor": page.cursor})


@app.get("/api/v1/me/jobs/<job_id>", summary="One job", tags=["jobs"], responses=answers(200, Answer[JobShape], errors=(401, 404, 503)))
def get_job(job_id: str) -> Response[str]:
    world = _runtime.api()
    return answer(render.job(find(_key(job_id), jobs=world.jobs), world.clock.now()))


@app.post(
    "/api/v1/me/jobs/<job_id>/cancel",
    summary="Cancel a job",
    description="At once if it has not started; a running job is asked to stop. Doing it twice is as good as once.",
    tags=["jobs"],
    responses=answers(200, Answer[JobShape], errors=(401, 404, 409, 503)),
)
def cancel_job(job_id: str) -> Response[str]:
    world = _runtime.api()
    return answer(render.job(cancel(_key(job_id), jobs=world.jobs, clock=world.clock, rules=world.rules), world.clock.now()))


@app.get("/api/v1/openapi.json", include_in_schema=False)
def openapi() -> Response[str]:
    return Response(200, "application/json", _document())


app.enable_swagger(path="/api/v1/docs", compress=True, persist_authorization=True)


@cache
def _document() -> str:
    return app.get_openapi_json_schema()


def _key(job_id: str) -> JobKey:
    """The caller's job of that id: somebody else's is not even looked for. Raises NotFound for what cannot be an id."""
    if not ids.is_job_id(job_id):
        raise NotFound("there is no such job")
    return JobKey(app.owner, job_id)


def _bearer() -> str | None:
    scheme, _, token = (app.current_event.headers.get("authorization") or "").partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


def _known_parameters() -> None:
    """A misspelt filter would silently list everything."""
    unknown = [name for name in app.current_event.query_string_parameters or {} if name not in LIST_PARAMETERS]
    if unknown:
        details = [{"field": name, "rule": "is not a known parameter"} for name in unknown]
        raise Invalid(f"unknown parameters: {', '.join(unknown)}", details=details)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """API Gateway → answer; one log line per request."""
    began = time.perf_counter()
    request = event["requestContext"]
    logger.append_keys(request_id=request["requestId"])
    answered = app.resolve(event, context)
    took = round((time.perf_counter() - began) * 1000, 1)
    logger.info(
        "request", extra={"method": request["http"]["method"], "path": event["rawPath"], "status": answered["statusCode"], "ms": took}
    )
    return answered
