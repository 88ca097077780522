"""Access rules: each route declares one, which is checked before the body is read. A route without a rule answers no request.

`docs/reference/roles.md` is the table of these rules; a test checks every cell of it.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from lambdas import _runtime
from lambdas._settings import ADMINISTRATORS, OPERATORS, RESOURCE_SERVER
from lambdas.rest import audit_trail
from scheduler.accounts import sessions
from scheduler.accounts.access import REFUSALS, Caller, Need, Scope, need_of_foreign
from scheduler.model.account import Role
from scheduler.model.errors import Forbidden, Invalid, Unauthorized

BASE = "/api/v1"
USER_ID = r"[A-Za-z0-9-]{1,64}"

Event = Mapping[str, Any]
Route = TypeVar("Route", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Rule:
    """The requirements of a route."""

    need: Need
    foreign: bool = False  # the route takes the parameter `owner`: the id of another owner whose objects the request is about
    action: str | None = None  # its name in the audit trail
    creates: int = 0  # jobs that are charged to the caller's create rate
    admit: Callable[[Mapping[str, str]], object] | None = None  # for an open route: checks a token of another kind


RULES: dict[str, Rule] = {}  # the rules of all registered routes, by method and path: `GET /me`
_declared: dict[Callable[..., Any], Rule] = {}


def needs(
    need: Need,
    *,
    foreign: bool = False,
    action: str | None = None,
    creates: int = 0,
    admit: Callable[[Mapping[str, str]], object] | None = None,
) -> Callable[[Route], Route]:
    """Declare the rule of a route, beside the function that answers it."""

    def declared(function: Route) -> Route:
        _declared[function] = Rule(need, foreign, action, creates, admit)
        return function

    return declared


def register(method: str, path: str, function: Callable[..., Any]) -> None:
    """Add the rule that the route's function declares, if it declares one."""
    if function in _declared:
        RULES[f"{method} {path.removeprefix(BASE)}"] = _declared[function]


def admit(event: Event, method: str, path: str, arguments: Mapping[str, str]) -> Rule:
    """The rule of a route, if the request satisfies it. Raises Unauthorized, Forbidden, Invalid."""
    rule = RULES[f"{method} {path.removeprefix(BASE)}"]
    if rule.need is Need.OPEN:
        if rule.admit is not None:
            rule.admit(arguments)
        return rule
    caller = caller_of(event)
    check(caller, rule.need)
    # A route that accepts any token shows no user's objects, so a program's token needs no read of the users table.
    if rule.need is not Need.SIGNED_IN or caller.role is not None:
        profile = _runtime.api().quotas.profile(caller.id)
        sessions.check(profile, _signed_in_at(event))
        if rule.need is not Need.SIGNED_IN and profile.disabled_at is not None:
            raise Forbidden("This account is disabled.")
    if not rule.foreign and _named(event) is not None:
        raise Invalid.field("owner", "is not a known parameter")
    subject_of(event)
    return rule


def passed(event: Event, rule: Rule, arguments: Mapping[str, Any], body: Mapping[str, Any], proceed: Callable[[], Any]) -> Any:
    """Answer a valid request within the caller's quota, and write an entry of the audit trail with its body.

    With the parameter `dry_run` it changes nothing: it is charged to no quota and leaves no entry.
    """
    if arguments.get("dry_run"):
        return proceed()
    if rule.creates:
        _runtime.api().quotas.admit(subject_of(event), rule.creates)
    if rule.action is None:
        return proceed()
    owner = "system" if rule.action.startswith(("system.", "target.")) else subject_of(event)
    return audit_trail.recorded(event, rule.action, caller_of(event), owner, arguments, body, proceed)


def subject_of(event: Event) -> str:
    """The id of the owner whose objects a request is about: `owner` if given, else the caller. Raises Unauthorized, Forbidden, Invalid."""
    caller, named = caller_of(event), _named(event)
    if named is None or named == caller.id:
        return caller.id
    check(caller, need_of_foreign(event["requestContext"]["http"]["method"]))
    if re.fullmatch(USER_ID, named) is None:
        raise Invalid.field("owner", "must be the id of an owner")
    return named


def caller_of(event: Event) -> Caller:
    """The caller in the token that the authorizer checked. Raises Unauthorized without a token, or if it is no access token."""
    claims = event["requestContext"].get("authorizer", {}).get("jwt", {}).get("claims", {})
    if not claims.get("sub") or claims.get("token_use") != "access":
        raise Unauthorized()
    id, name = str(claims["sub"]), claims.get("username")
    if name is None:  # client credentials
        granted = str(claims.get("scope", "")).split()
        return Caller(id, id, None, frozenset(scope for scope in Scope if f"{RESOURCE_SERVER}/{scope}" in granted))
    # The token contains a list; API Gateway passes it on as the text "[one two]".
    groups = str(claims.get("cognito:groups", "")).removeprefix("[").removesuffix("]").replace(",", " ").split()
    role = Role.ADMINISTRATOR if ADMINISTRATORS in groups else Role.OPERATOR if OPERATORS in groups else Role.USER
    return Caller(id, str(name), role)


def _signed_in_at(event: Event) -> int:
    """When the token's user signed in (ms). Refreshed tokens keep that time."""
    claims = event["requestContext"]["authorizer"]["jwt"]["claims"]
    return int(claims.get("auth_time") or claims.get("iat") or 0) * 1000


def check(caller: Caller, need: Need) -> None:
    """Raise Forbidden, naming the allowed roles, if the caller does not meet the requirement."""
    if not caller.may(need):
        raise Forbidden(REFUSALS[need])


def _named(event: Event) -> str | None:
    named = (event.get("queryStringParameters") or {}).get("owner")
    return None if named is None else str(named)
