"""Who may call what: a rule for each route, asked before a body is even read. A route without a rule answers nobody.

`docs/roles.md` is this table in words; a test walks every cell of it.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lambdas import _runtime
from lambdas._settings import ADMINISTRATORS, OPERATORS, RESOURCE_SERVER
from lambdas.rest import audit_trail, request_body
from scheduler.accounts.access import REFUSALS, Caller, Need, Role, Scope, need_of_foreign
from scheduler.model.errors import Forbidden, Invalid, Unauthorized

BASE = "/api/v1"
USER_ID = r"[A-Za-z0-9-]{1,64}"
RUNS_OF_TASK = 10  # a task is stored with so many jobs

Event = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Rule:
    """What a route asks of its caller."""

    need: Need
    foreign: bool = False  # takes `user`: the id of another one whose objects are meant
    action: str | None = None  # what the audit trail calls it
    creates: int = 0  # jobs that count against the quota of creates


RULES: dict[str, Rule] = {
    "GET /health": Rule(Need.OPEN),
    "GET /openapi.json": Rule(Need.OPEN),
    "GET /docs": Rule(Need.OPEN),
    "POST /auth/login": Rule(Need.OPEN),
    "POST /auth/refresh": Rule(Need.OPEN),
    "POST /auth/password": Rule(Need.PERSON, action="user.password"),
    "POST /jobs/<job_id>/heartbeat": Rule(Need.OPEN),
    "POST /jobs/<job_id>/complete": Rule(Need.OPEN),
    "POST /jobs/<job_id>/fail": Rule(Need.OPEN),
    "GET /me": Rule(Need.SIGNED_IN),
    "POST /me/jobs": Rule(Need.WRITE, creates=1),
    "POST /me/jobs/batch": Rule(Need.WRITE),  # counts its own
    "GET /me/jobs": Rule(Need.READ, foreign=True),
    "GET /me/jobs/<job_id>": Rule(Need.READ, foreign=True),
    "PATCH /me/jobs/<job_id>": Rule(Need.WRITE, foreign=True, action="job.change"),
    "POST /me/jobs/<job_id>/cancel": Rule(Need.WRITE, foreign=True, action="job.cancel"),
    "POST /me/jobs/<job_id>/retry": Rule(Need.WRITE, foreign=True, action="job.retry", creates=1),
    "GET /me/jobs/<job_id>/attempts/<number>/output": Rule(Need.READ, foreign=True),
    "GET /me/jobs/<job_id>/attempts/<number>/log": Rule(Need.READ, foreign=True),
    "GET /me/ordering-keys/<ordering_key>": Rule(Need.READ, foreign=True),
    "POST /me/ordering-keys/<ordering_key>/resume": Rule(Need.WRITE, foreign=True, action="ordering-key.resume"),
    "GET /dead-letters": Rule(Need.READ, foreign=True),
    "GET /dead-letters/<fingerprint>/jobs": Rule(Need.READ, foreign=True),
    "POST /dead-letters/redrive": Rule(Need.WRITE, foreign=True, action="redrive.start"),
    "GET /dead-letters/redrives/<redrive_id>": Rule(Need.READ, foreign=True),
    "POST /dead-letters/redrives/<redrive_id>/abort": Rule(Need.WRITE, foreign=True, action="redrive.abort"),
    "POST /tasks": Rule(Need.WRITE, action="task.create", creates=RUNS_OF_TASK),
    "GET /tasks": Rule(Need.READ, foreign=True),
    "GET /tasks/<task_id>": Rule(Need.READ, foreign=True),
    "PUT /tasks/<task_id>": Rule(Need.WRITE, foreign=True, action="task.edit", creates=RUNS_OF_TASK),
    "DELETE /tasks/<task_id>": Rule(Need.WRITE, foreign=True, action="task.delete"),
    "PUT /tasks/<task_id>/inactive": Rule(Need.WRITE, foreign=True, action="task.pause"),
    "PUT /tasks/<task_id>/active": Rule(Need.WRITE, foreign=True, action="task.resume", creates=RUNS_OF_TASK),
    "POST /tasks/<task_id>/run": Rule(Need.WRITE, foreign=True, action="task.run", creates=1),
    "GET /tasks/<task_id>/next": Rule(Need.READ, foreign=True),
    "GET /tasks/<task_id>/jobs": Rule(Need.READ, foreign=True),
    "GET /scheduled-tasks-summary": Rule(Need.READ, foreign=True),
    "GET /task-summary": Rule(Need.READ, foreign=True),
    "POST /schedules/preview": Rule(Need.SIGNED_IN),
    "GET /task-types": Rule(Need.SIGNED_IN),
    "GET /targets": Rule(Need.READ),
    "GET /targets/<name>": Rule(Need.READ),
    "POST /targets": Rule(Need.ADMINISTER, action="target.create"),
    "PUT /targets/<name>": Rule(Need.ADMINISTER, action="target.change"),
    "DELETE /targets/<name>": Rule(Need.ADMINISTER, action="target.delete"),
    "GET /system": Rule(Need.OVERSEE),
    "POST /system/pause": Rule(Need.ADMINISTER, action="system.pause"),
    "POST /system/resume": Rule(Need.ADMINISTER, action="system.resume"),
    "POST /users": Rule(Need.ADMINISTER, action="user.create"),
    "GET /users": Rule(Need.OVERSEE),
    "GET /users/<user_id>": Rule(Need.OVERSEE),
    "PATCH /users/<user_id>": Rule(Need.ADMINISTER, action="user.change"),
    "PUT /users/<user_id>/disabled": Rule(Need.ADMINISTER, action="user.disable"),
    "PUT /users/<user_id>/enabled": Rule(Need.ADMINISTER, action="user.enable"),
    "PUT /users/<user_id>/password": Rule(Need.ADMINISTER, action="user.password"),
    "GET /me/audit": Rule(Need.READ, foreign=True),
    "GET /audit": Rule(Need.OVERSEE),
}


def admit(event: Event, method: str, path: str) -> Rule:
    """The rule of a route, which this request satisfies. Raises Unauthorized, Forbidden, Invalid."""
    rule = RULES[f"{method} {path.removeprefix(BASE)}"]
    if rule.need is Need.OPEN:
        return rule
    caller = caller_of(event)
    check(caller, rule.need)
    # What any token may see is nobody's, and costs no look at the table.
    if rule.need is not Need.SIGNED_IN and _runtime.api().quotas.profile(caller.id).disabled_at is not None:
        raise Forbidden("This account is disabled.")
    if not rule.foreign and _named(event) is not None:
        raise Invalid.field("user", "is not a known parameter")
    subject_of(event)
    return rule


def passed(event: Event, rule: Rule, arguments: Mapping[str, str], proceed: Callable[[], Any]) -> Any:
    """What a request that was found good is answered: within its quota, and with its entry in the audit trail."""
    if rule.creates:
        _runtime.api().quotas.admit(subject_of(event), rule.creates)
    if rule.action is None:
        return proceed()
    owner = "system" if rule.action.startswith(("system.", "target.")) else subject_of(event)
    return audit_trail.recorded(event, rule.action, caller_of(event), owner, arguments, _asked(event), proceed)


def _asked(event: Event) -> Any:
    """The body, of a route that has read it and found it good; others take anything."""
    try:
        return request_body.read(event)
    except Invalid:
        return {}


def subject_of(event: Event) -> str:
    """Whose objects a request is about: the caller's, unless it names a `user` and may. Raises Unauthorized, Forbidden, Invalid."""
    caller, named = caller_of(event), _named(event)
    if named is None or named == caller.id:
        return caller.id
    check(caller, need_of_foreign(event["requestContext"]["http"]["method"]))
    if re.fullmatch(USER_ID, named) is None:
        raise Invalid.field("user", "must be the id of a user")
    return named


def caller_of(event: Event) -> Caller:
    """Whom the authorizer found behind the token. Raises Unauthorized if it was not asked, or if that is no access token."""
    claims = event["requestContext"].get("authorizer", {}).get("jwt", {}).get("claims", {})
    if not claims.get("sub") or claims.get("token_use") != "access":
        raise Unauthorized()
    id, name = str(claims["sub"]), claims.get("username")
    if name is None:  # client credentials
        given = str(claims.get("scope", "")).split()
        return Caller(id, id, None, frozenset(scope for scope in Scope if f"{RESOURCE_SERVER}/{scope}" in given))
    # A list in the token, which arrives as the text "[one two]".
    groups = str(claims.get("cognito:groups", "")).removeprefix("[").removesuffix("]").replace(",", " ").split()
    role = Role.ADMINISTRATOR if ADMINISTRATORS in groups else Role.OPERATOR if OPERATORS in groups else Role.USER
    return Caller(id, str(name), role)


def check(caller: Caller, need: Need) -> None:
    """Raises Forbidden, saying who may."""
    if not caller.may(need):
        raise Forbidden(REFUSALS[need])


def _named(event: Event) -> str | None:
    named = (event.get("queryStringParameters") or {}).get("user")
    return None if named is None else str(named)
