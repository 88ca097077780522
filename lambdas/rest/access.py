"""Access rules: each route declares one, which is checked before the body is read. A route without a rule answers no request.

`docs/reference/roles.md` is the table of these rules; a test checks every cell of it.
"""

import re
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, TypeVar

from lambdas import _runtime
from lambdas.rest import audit_trail, envelope
from lambdas.rest.door import CREDENTIAL, TEMPLATE, Credential
from lambdas.rest.paths import BASE
from scheduler.accounts import principals, sso
from scheduler.accounts.access import READS, REFUSALS, WRITES, Caller, Need, need_of_foreign
from scheduler.accounts.callers import NotValid, Refusal
from scheduler.model.account import COGNITO, Scope, Subject
from scheduler.model.errors import Forbidden, Invalid, NotFound, SchedulerError, Unauthorized

OWNER_ID = r"[A-Za-z0-9-]{1,64}"
FOREIGN = "Nobody can create objects for an owner to whom they do not belong."
LONGEST_ROLE_TOKEN_S = 900  # AWS issues tokens of up to an hour, and an authorizer accepts them
ADMITTED = "admitted"  # the field of an event that `admit` adds

Event = MutableMapping[str, Any]
Route = TypeVar("Route", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Rule:
    """The requirements of a route."""

    need: Need
    foreign: bool = False  # the parameter `owner` may name an owner to whom the caller does not belong
    action: str | None = None  # its name in the audit trail
    creates: int = 0  # jobs that are charged to the caller's create rate
    admit: Callable[[Mapping[str, str]], object] | None = None  # for an open route: checks a token of another kind
    owned: bool = False  # the route is about the objects of one owner, whom the parameter `owner` names


@dataclass(frozen=True, slots=True)
class Admitted:
    """The caller of an admitted request, and the owner whose objects it is about."""

    caller: Caller
    owner: str


RULES: dict[str, Rule] = {}  # the rules of all registered routes, by method and path: `GET /me`
_declared: dict[Callable[..., Any], Rule] = {}


def needs(
    need: Need,
    *,
    foreign: bool = False,
    action: str | None = None,
    creates: int = 0,
    admit: Callable[[Mapping[str, str]], object] | None = None,
    owned: bool | None = None,
) -> Callable[[Route], Route]:
    """Declare the rule of a route, beside the function that answers it. By default, a route to jobs or tasks is owned."""
    of_owner = need in READS | WRITES if owned is None else owned

    def declared(function: Route) -> Route:
        _declared[function] = Rule(need, foreign, action, creates, admit, of_owner)
        return function

    return declared


def register(method: str, path: str, function: Callable[..., Any]) -> None:
    """Add the rule that the route's function declares, if it declares one."""
    if function in _declared:
        RULES[f"{method} {path.removeprefix(BASE)}"] = _declared[function]


def admit(event: Event, method: str, path: str, arguments: Mapping[str, str]) -> Rule:
    """The rule of a route, if the request satisfies it. Raises Unauthorized, Forbidden, Invalid, NotFound."""
    rule = RULES[f"{method} {path.removeprefix(BASE)}"]
    if rule.need is Need.OPEN:
        if CREDENTIAL in event:  # its limits are those of the route itself
            raise NotFound("there is no such path")
        if rule.admit is not None:
            rule.admit(arguments)
        return rule
    try:
        caller = _caller(event)
        event[ADMITTED] = Admitted(caller, caller.owner)
        try:
            owner = _owner(event, rule, caller)
        except Forbidden:
            caller = _runtime.api().callers.again(caller)
            owner = _owner(event, rule, caller)
        event[ADMITTED] = Admitted(caller, owner)
    except (Forbidden, NotValid) as error:
        _note(event, error, rule)
        raise
    return rule


def _owner(event: Event, rule: Rule, caller: Caller) -> str:
    """The owner whose objects a request is about: `owner` if given, else the caller's. Raises Forbidden, Invalid."""
    named = (event.get("queryStringParameters") or {}).get("owner")
    if named is not None and not rule.owned:
        if not caller.may(rule.need):
            raise Forbidden(REFUSALS[rule.need])
        raise Invalid.field("owner", "is not a known parameter")
    owner = caller.owner if named is None else str(named)
    belongs = caller.sees(owner)
    if not (belongs and caller.may(rule.need, owner)) and not (rule.foreign and caller.may_as_staff(rule.need, owner)):
        raise Forbidden(REFUSALS[rule.need] if belongs else REFUSALS[need_of_foreign(rule.need)] if rule.foreign else FOREIGN)
    if re.fullmatch(OWNER_ID, owner) is None:
        raise Invalid.field("owner", "must be the id of an owner")
    if rule.need is not Need.SIGNED_IN:
        _runtime.api().callers.may_act_for(caller, owner)
    return owner


def _note(event: Event, error: SchedulerError, rule: Rule) -> None:
    """Note in the audit trail that a key or a principal was refused. A person sees the refusal; that of a program must be found later."""
    if CREDENTIAL not in event:
        return
    admitted: Admitted | None = event.get(ADMITTED)
    if isinstance(error, Refusal):
        audit_trail.note_refusal(event, error.caller, rule.action or rule.need, envelope.status(error), error.key)
    elif admitted is not None:
        audit_trail.note_refusal(event, admitted.caller, rule.action or rule.need, envelope.status(error))


def passed(event: Event, rule: Rule, arguments: Mapping[str, Any], body: Mapping[str, Any], proceed: Callable[[], Any]) -> Any:
    """Answer a valid request within the caller's quota, and write an entry of the audit trail with its body.

    With the parameter `dry_run` it changes nothing: it is charged to no quota and leaves no entry.
    """
    if arguments.get("dry_run"):
        return proceed()
    if rule.creates:
        _runtime.api().quotas.admit(owner_of(event), rule.creates)
    if rule.action is None:
        return proceed()
    owner = "system" if rule.action.startswith(("system.", "target.", "principal.")) else owner_of(event)
    return audit_trail.recorded(event, rule.action, caller_of(event), owner, arguments, body, proceed)


def owner_of(event: Event) -> str:
    """The id of the owner whose objects an admitted request is about."""
    admitted: Admitted = event[ADMITTED]
    return admitted.owner


def caller_of(event: Event) -> Caller:
    """The caller of an admitted request."""
    admitted: Admitted = event[ADMITTED]
    return admitted.caller


def subject_of(claims: Mapping[str, Any], option: sso.Sso | None) -> Subject:
    """The person that a token of the user pool names. Raises Unauthorized for a token of single sign-on that names nobody.

    The app client tells the tokens of both kinds apart, not the user name: an account with a password might have any name.
    """
    if option is None or claims.get("client_id") != option.client_id:
        return Subject(COGNITO, str(claims["sub"]))
    at_provider = sso.subject_at(str(claims["username"]), option.provider)
    if at_provider is None:
        raise Unauthorized()
    return Subject(option.provider, at_provider)


def _caller(event: Event) -> Caller:
    """The caller by the credential of a request. Raises Unauthorized, Forbidden."""
    callers, settings = _runtime.api().callers, _runtime.api().settings
    claims = event["requestContext"].get("authorizer", {}).get("jwt", {}).get("claims", {})
    credential: Credential | None = event.get(CREDENTIAL)
    if credential is None:
        if not claims.get("sub") or claims.get("token_use") != "access" or not claims.get("username"):
            raise Unauthorized()
        subject = subject_of(claims, sso.of_setting(settings.get("sso")))
        signed_in_at = int(claims.get("auth_time") or claims.get("iat") or 0) * 1000  # refreshed tokens keep the time of the sign-in
        return callers.of_subject(subject, str(claims["username"]), signed_in_at)
    if credential.template:
        acting = event["requestContext"]["authorizer"][TEMPLATE]
        return callers.of_template(acting["name"], acting["owner"], frozenset(map(Scope, acting["scopes"])))
    if credential.account is None:
        return callers.of_key(bearer(event) or "")
    arn = str(claims.get("sub", ""))
    issuer = settings.issuers.get(credential.account)  # the authorizer of the route has checked it; a wrong route must not open the API
    if issuer is None or claims.get("iss") != issuer or principals.account_of(principals.role_of(arn) or "") != credential.account:
        raise Unauthorized()
    if int(claims.get("exp", 0)) - int(claims.get("iat", 0)) > LONGEST_ROLE_TOKEN_S:
        role = principals.role_of(arn) or arn
        raise NotValid("A role token may last 15 minutes at most.", Caller(role, role, "system"))
    return callers.of_role(arn)


def check(caller: Caller, need: Need) -> None:
    """Raise Forbidden, naming the rule, if the caller does not meet the requirement."""
    if not caller.may(need):
        raise Forbidden(REFUSALS[need])


def bearer(event: Mapping[str, Any]) -> str | None:
    """The bearer token of a request, not yet verified; None without one."""
    header = next((value for name, value in event.get("headers", {}).items() if name.lower() == "authorization"), "")
    scheme, _, token = str(header).partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None
