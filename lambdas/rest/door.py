"""Names of routes beside the clear ones, read before the API looks for a route.

A request by a name in `PROMISED` is answered as if it had come by the clear name, with the same access rule and the same idempotency keys.
The OpenAPI document marks these names as deprecated. A name in `REMOVED` is not answered; the refusal has the clear name.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from lambdas.rest.paths import BASE

KEY_ROUTE = f"{BASE}/key/{{proxy+}}"  # of API Gateway: no authorizer, the function checks the API key
AWS_ROUTE = re.compile(rf"({BASE}/aws/([0-9]{{12}})/)\{{proxy\+\}}")  # one per account: an authorizer checks the token of its STS
CREDENTIAL = "credential"  # the field of an event that `by_credential` adds
TEMPLATE = "template"  # the authorizer of requests of `declare`, which calls the function itself: no request of API Gateway can have it

PROMISED = {  # a second name of a route: its clear name
    "POST /me/jobs": "POST /jobs",
    "GET /me/jobs": "GET /jobs",
    "GET /me/jobs/<job_id>": "GET /jobs/<job_id>",
    "POST /me/jobs/<job_id>/cancel": "POST /jobs/<job_id>/cancel",
    "PUT /tasks/<task_id>/inactive": "POST /tasks/<task_id>/pause",
    "GET /task-types": "GET /types",
    "GET /scheduled-tasks-summary": "GET /forecast",
    "GET /task-summary": "GET /statistics",
}
REMOVED = {  # a name that no route has any more: the clear name
    "POST /me/jobs/batch": "POST /jobs/batch",
    "POST /me/jobs/cancel": "POST /jobs/cancel",
    "PUT /me/jobs/by-key/<key>": "PUT /jobs/by-key/<key>",
    "GET /me/jobs/by-key/<key>": "GET /jobs/by-key/<key>",
    "POST /me/jobs/by-key/<key>/cancel": "POST /jobs/by-key/<key>/cancel",
    "PATCH /me/jobs/<job_id>": "PATCH /jobs/<job_id>",
    "POST /me/jobs/<job_id>/retry": "POST /jobs/<job_id>/retry",
    "GET /me/jobs/<job_id>/attempts/<number>/output": "GET /jobs/<job_id>/attempts/<number>/output",
    "GET /me/jobs/<job_id>/attempts/<number>/log": "GET /jobs/<job_id>/attempts/<number>/log",
    "GET /me/ordering-keys/<ordering_key>": "GET /ordering-keys/<ordering_key>",
    "POST /me/ordering-keys/<ordering_key>/resume": "POST /ordering-keys/<ordering_key>/resume",
    "PUT /tasks/<task_id>/active": "POST /tasks/<task_id>/resume",
    "PUT /users/<user_id>/disabled": "POST /users/<user_id>/disable",
    "PUT /users/<user_id>/enabled": "POST /users/<user_id>/enable",
}


@dataclass(frozen=True, slots=True)
class Credential:
    """The authorization of a request that no person makes: an API key; with `account`, the token of an AWS role; that of a template."""

    account: str | None = None
    template: bool = False


def by_credential(event: dict[str, Any]) -> dict[str, Any]:
    """The event of a request, without the prefix of its path. The route of API Gateway decides, which no sender can choose apart."""
    if TEMPLATE in event["requestContext"].get("authorizer", {}):
        return event | {CREDENTIAL: Credential(template=True)}
    route = str(event.get("routeKey", "")).partition(" ")[2]
    found = AWS_ROUTE.fullmatch(route)
    if found is not None:
        prefix, credential = found[1], Credential(found[2])
    elif route == KEY_ROUTE:
        prefix, credential = KEY_ROUTE.removesuffix("{proxy+}"), Credential()
    else:
        return event
    context = event["requestContext"]
    path = f"{BASE}/{event['rawPath'].removeprefix(prefix)}"
    return event | {"rawPath": path, "requestContext": context | {"http": context["http"] | {"path": path}}, CREDENTIAL: credential}


def by_clear_name(event: dict[str, Any]) -> dict[str, Any]:
    """The event of a request (API Gateway, format 2.0) by the clear name of its route."""
    requested = event["requestContext"]["http"]["method"]
    for arguments, name in _matching(PROMISED, event["rawPath"]):
        if name.startswith(f"{requested} "):
            method, path = in_words(PROMISED[name])
            return _renamed(event, method, path.format_map(arguments))
    return event


def methods(path: str) -> set[str]:
    """The methods that a path takes by a promised name."""
    return {name.partition(" ")[0] for _, name in _matching(PROMISED, path)}


def clear_name_of_removed(method: str, path: str) -> str | None:
    """The clear name of a removed one, such as `PATCH /api/v1/jobs/{job_id}`; None for any other request."""
    found = (name for _, name in _matching(REMOVED, path) if name.startswith(f"{method} "))
    name = next(found, None)
    return None if name is None else " ".join(in_words(REMOVED[name]))


def in_words(name: str) -> tuple[str, str]:
    """The method and the whole path of a name, as the OpenAPI document has them."""
    method, _, path = name.partition(" ")
    return method, BASE + path.replace("<", "{").replace(">", "}")


def _matching(names: Mapping[str, str], path: str) -> Iterator[tuple[Mapping[str, str], str]]:
    for name in names:
        if (found := _pattern(name).fullmatch(path)) is not None:
            yield found.groupdict(), name


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(BASE + re.sub(r"<(\w+)>", r"(?P<\1>[^/]+)", name.partition(" ")[2]))


def _renamed(event: dict[str, Any], method: str, path: str) -> dict[str, Any]:
    context = event["requestContext"]
    return event | {"rawPath": path, "requestContext": context | {"http": context["http"] | {"method": method, "path": path}}}
