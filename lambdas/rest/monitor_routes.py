"""Routes of monitors, and the open routes of their pings."""

import base64
import re
from collections.abc import Mapping
from typing import Annotated, Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Query

from lambdas import _runtime
from lambdas.rest import parameters
from lambdas.rest.access import needs
from lambdas.rest.client_address import client_address
from lambdas.rest.envelope import answer
from lambdas.rest.monitor_models import (
    EXAMPLES,
    DeletedMonitorShape,
    MonitorHistoryShape,
    MonitorRequest,
    MonitorShape,
    MonitorsShape,
    PingShape,
)
from lambdas.rest.parameters import Cursor, Limit
from lambdas.rest.resolver import Router, answers
from lambdas.rest.shapes import Answer, Json
from scheduler.accounts.access import Need
from scheduler.model import own_keys
from scheduler.model.errors import Invalid
from scheduler.model.monitor import LONGEST_BODY, LONGEST_RUN, Monitor, Ping, PingIntake, PingKind
from scheduler.monitors import history, service, tokens
from scheduler.monitors.ping import ping

router = Router()

READ_ERRORS, WRITE_ERRORS = (400, 401, 404, 503), (400, 401, 404, 413, 415, 503)
PING_ERRORS = (400, 404, 429, 503)
KINDS = {"start": PingKind.START, "success": PingKind.SUCCESS, "fail": PingKind.FAIL}
SIGNALS = "start, success, fail, or an exit code from 0 to 255"
Run = Annotated[str | None, Query(max_length=LONGEST_RUN, description="the id of the run, if runs overlap")]


@router.get(
    "/api/v1/monitors", summary="List monitors", tags=["monitors"], responses=answers(200, Answer[MonitorsShape], errors=READ_ERRORS)
)
@needs(Need.TASKS_READ, foreign=True)
def list_monitors(limit: Limit = 20, cursor: Cursor = None) -> Response[str]:
    ports = _runtime.api()
    after = None if cursor is None else _cursor(cursor)
    found, last = ports.monitors.listing(router.owner, after=after, limit=limit)
    intake = ports.monitors.intake()
    return answer(MonitorsShape.page([_shown(each, intake) for each in found], None if last is None else _written(last)))


@router.put(
    "/api/v1/monitors/<key>",
    summary="Create or replace a monitor",
    description="200: replaced. 201: created. The ping URL stays the same.",
    tags=["monitors"],
    responses=answers(200, Answer[MonitorShape], 201, errors=WRITE_ERRORS),
)
@needs(Need.TASKS_WRITE, foreign=True, action="monitor.put")
def put_monitor(key: str, body: Annotated[MonitorRequest, Body(openapi_examples=EXAMPLES)]) -> Response[str]:
    monitor, created = service.put(body.new_monitor(router.owner, _key(key)), _runtime.api())
    return _answer(monitor, 201 if created else 200)


@router.get(
    "/api/v1/monitors/<key>", summary="Get a monitor", tags=["monitors"], responses=answers(200, Answer[MonitorShape], errors=READ_ERRORS)
)
@needs(Need.TASKS_READ, foreign=True)
def get_monitor(key: str) -> Response[str]:
    return _answer(service.find(router.owner, _key(key), _runtime.api()))


@router.delete(
    "/api/v1/monitors/<key>",
    summary="Delete a monitor",
    description="Its ping URL is invalid from then on.",
    tags=["monitors"],
    responses=answers(200, Answer[DeletedMonitorShape], errors=READ_ERRORS),
)
@needs(Need.TASKS_WRITE, foreign=True, action="monitor.delete")
def delete_monitor(key: str) -> Response[str]:
    return answer(DeletedMonitorShape.from_record(service.delete(router.owner, _key(key), _runtime.api())))


@router.get(
    "/api/v1/monitors/<key>/history",
    summary="Get the last pings of a monitor",
    description="Up to 100 pings and changes of the state, newest first. Entries with a text, and changes, are kept for 90 days.",
    tags=["monitors"],
    responses=answers(200, Answer[MonitorHistoryShape], errors=READ_ERRORS),
)
@needs(Need.TASKS_READ, foreign=True)
def get_monitor_history(key: str) -> Response[str]:
    ports = _runtime.api()
    return answer(MonitorHistoryShape.of(history.of(service.find(router.owner, _key(key), ports), ports)))


@router.post(
    "/api/v1/monitors/<key>/pause",
    summary="Pause a monitor",
    description="Pings are recorded, and nothing else happens. Idempotent.",
    tags=["monitors"],
    responses=answers(200, Answer[MonitorShape], errors=READ_ERRORS),
)
@needs(Need.TASKS_WRITE, foreign=True, action="monitor.pause")
def pause_monitor(key: str) -> Response[str]:
    return _answer(service.pause(router.owner, _key(key), _runtime.api()))


@router.post(
    "/api/v1/monitors/<key>/resume",
    summary="Resume a monitor",
    description="A new period begins. Idempotent.",
    tags=["monitors"],
    responses=answers(200, Answer[MonitorShape], errors=READ_ERRORS),
)
@needs(Need.TASKS_WRITE, foreign=True, action="monitor.resume")
def resume_monitor(key: str) -> Response[str]:
    return _answer(service.resume(router.owner, _key(key), _runtime.api()))


@router.post(
    "/api/v1/monitors/<key>/token",
    summary="Give a monitor a new ping URL",
    description="The former URL is invalid from then on.",
    tags=["monitors"],
    responses=answers(200, Answer[MonitorShape], errors=READ_ERRORS),
)
@needs(Need.TASKS_WRITE, foreign=True, action="monitor.token")
def renew_monitor_token(key: str) -> Response[str]:
    return _answer(service.renew_token(router.owner, _key(key), _runtime.api()))


_PING = "The token in the path authenticates it. The body is a text for people, up to 10 kB of it are stored."


@router.get(
    "/api/v1/ping/<token>",
    summary="Ping: success",
    description=_PING,
    tags=["pings"],
    responses=answers(200, Answer[PingShape], errors=PING_ERRORS),
)
@needs(Need.OPEN)
def get_ping(token: str, run: Run = None) -> Response[str]:
    return _pinged(token, "success", run)


@router.post(
    "/api/v1/ping/<token>",
    summary="Ping: success",
    description=_PING,
    tags=["pings"],
    responses=answers(200, Answer[PingShape], errors=PING_ERRORS),
)
@needs(Need.OPEN)
def post_ping(token: str, run: Run = None) -> Response[str]:
    return _pinged(token, "success", run)


@router.get(
    "/api/v1/ping/<token>/<signal>",
    summary="Ping: start, end or failure",
    description=f"`signal`: {SIGNALS}. {_PING}",
    tags=["pings"],
    responses=answers(200, Answer[PingShape], errors=PING_ERRORS),
)
@needs(Need.OPEN)
def get_ping_signal(token: str, signal: str, run: Run = None) -> Response[str]:
    return _pinged(token, signal, run)


@router.post(
    "/api/v1/ping/<token>/<signal>",
    summary="Ping: start, end or failure",
    description=f"`signal`: {SIGNALS}. {_PING}",
    tags=["pings"],
    responses=answers(200, Answer[PingShape], errors=PING_ERRORS),
)
@needs(Need.OPEN)
def post_ping_signal(token: str, signal: str, run: Run = None) -> Response[str]:
    return _pinged(token, signal, run)


def without_token(path: str) -> str:
    """The path of a request without the token of a ping."""
    return re.sub(r"(/ping/)[^/]+", r"\1…", path)


def _pinged(token: str, signal: str, run: str | None) -> Response[str]:
    ports, word = _runtime.api(), signal.lower()
    code = int(word) if word.isascii() and word.isdigit() and int(word[:4]) <= 255 else None
    kind = KINDS.get(word) if code is None else PingKind.FAIL if code else PingKind.SUCCESS
    if kind is None:
        raise Invalid.field("signal", f"must be {SIGNALS}")
    source = client_address(router.event, ports.settings.get("origin_secret"))
    monitor = ping(token, Ping(kind, code, run or None, _text(router.event)), source, ports, ports.pings)
    return answer(PingShape.from_record(monitor.pulse))


def _text(event: Mapping[str, Any]) -> str:
    """The beginning of the body, whatever it is: it is a text for people."""
    body = str(event.get("body") or "")
    raw = body.encode("utf-8", "replace")
    if event.get("isBase64Encoded"):
        try:
            raw = base64.b64decode(body)
        except ValueError:
            pass
    return raw[:LONGEST_BODY].decode("utf-8", "replace").replace("\x00", "").strip()


def _answer(monitor: Monitor, status: int = 200) -> Response[str]:
    return answer(_shown(monitor, _runtime.api().monitors.intake()), status)


def _shown(monitor: Monitor, intake: PingIntake | None) -> Json:
    ports = _runtime.api()
    now = ports.clock.now()
    return MonitorShape.of(monitor, intake, tokens.shown(monitor, ports.secrets.keys(now)), now)


def _key(text: str) -> str:
    if not own_keys.is_key(text):
        raise Invalid.field("key", own_keys.RULE)
    return text


def _written(key: str) -> str:
    return base64.urlsafe_b64encode(key.encode()).decode().rstrip("=")


def _cursor(cursor: str) -> str:
    """The key that a cursor was written from. Raises Invalid."""
    try:
        key = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except ValueError:
        key = ""
    return str(parameters.position(cursor, ".+" if own_keys.is_key(key) else "$^") and key)
