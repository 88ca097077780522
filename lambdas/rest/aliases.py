"""The clear names of routes, beside their earlier names. Both names mean the same request.

A request by a clear name is answered as if it had come by the name of its route, with the same access rule and the same
idempotency keys. The OpenAPI document lists the clear name, and the earlier one as deprecated.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from lambdas.rest.access import BASE, RULES

NAMES = {  # the beginning of a path: its clear name
    "/me/jobs": "/jobs",
    "/me/ordering-keys": "/ordering-keys",
    "/scheduled-tasks-summary": "/forecast",
    "/task-summary": "/statistics",
    "/task-types": "/types",
}
VERBS = {  # a route: its clear name
    "PUT /tasks/<task_id>/inactive": "POST /tasks/<task_id>/pause",
    "PUT /tasks/<task_id>/active": "POST /tasks/<task_id>/resume",
    "PUT /users/<user_id>/disabled": "POST /users/<user_id>/disable",
    "PUT /users/<user_id>/enabled": "POST /users/<user_id>/enable",
}


def clear_name(route: str) -> str | None:
    """The clear name of a route such as `GET /me/jobs`; None if its own name is the only one."""
    if route in VERBS:
        return VERBS[route]
    method, _, path = route.partition(" ")
    named = next((name for name in NAMES if path == name or path.startswith(f"{name}/")), None)
    return None if named is None else f"{method} {NAMES[named]}{path.removeprefix(named)}"


@cache
def table() -> dict[str, str]:
    """The route of each clear name."""
    return {name: route for route in RULES if (name := clear_name(route)) is not None and name not in RULES}


def by_route(event: dict[str, Any]) -> dict[str, Any]:
    """The event of a request (API Gateway, format 2.0) by the name of its route."""
    asked = event["requestContext"]["http"]["method"]
    for found, name in _matching(event["rawPath"].removeprefix(BASE)):
        if name.startswith(f"{asked} "):
            method, _, path = table()[name].partition(" ")
            for parameter, value in found.items():
                path = path.replace(f"<{parameter}>", value)
            return _renamed(event, method, BASE + path)
    return event


def methods(path: str) -> set[str]:
    """The methods that a path takes by a clear name."""
    return {name.partition(" ")[0] for _, name in _matching(path.removeprefix(BASE))}


def _matching(path: str) -> Iterator[tuple[Mapping[str, str], str]]:
    for pattern, name in _patterns():
        if (found := pattern.fullmatch(path)) is not None:
            yield found.groupdict(), name


@cache
def _patterns() -> list[tuple[re.Pattern[str], str]]:
    return [(re.compile(re.sub(r"<(\w+)>", r"(?P<\1>[^/]+)", name.partition(" ")[2])), name) for name in table()]


def _renamed(event: dict[str, Any], method: str, path: str) -> dict[str, Any]:
    context = event["requestContext"]
    return event | {"rawPath": path, "requestContext": context | {"http": context["http"] | {"method": method, "path": path}}}
