"""The envelope of every answer, and the HTTP status of every error."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.content_types import APPLICATION_JSON
from aws_lambda_powertools.shared.cookies import Cookie
from pydantic import ValidationError

from lambdas.rest import unknown_fields
from lambdas.rest.etags import PreconditionFailed
from lambdas.rest.shapes import LONGEST_FIELD, LONGEST_RULE, ErrorShape, shortened
from scheduler.model.errors import (
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    SchedulerError,
    TooLarge,
    TooMany,
    Unauthorized,
    Unavailable,
    Unreadable,
)

RETRY_AFTER_S = 2
FAILED = "The server failed unexpectedly. Search the logs for the request id."
MOST_RULES = 50  # broken rules listed in an answer; one more entry has the number of the others
SHOWN_RULES = 5  # broken rules listed per item of a batch
SHOWN_FIELD, SHOWN_RULE = 80, 150  # characters of each


class MalformedJson(Invalid):
    """The body is not JSON."""

    code = "malformed_json"


class UnsupportedMediaType(Invalid):
    """Send the body as JSON in UTF-8, with the header Content-Type: application/json."""

    code = "unsupported_media_type"


class MethodNotAllowed(SchedulerError):
    """This path does not accept this method."""

    code = "method_not_allowed"

    def __init__(self, allowed: Sequence[str]) -> None:
        super().__init__(f"this path accepts only {', '.join(allowed)}")
        self.allowed = allowed


STATUS: dict[type[SchedulerError], int] = {
    Invalid: 400,
    Unauthorized: 401,
    Forbidden: 403,
    NotFound: 404,
    MethodNotAllowed: 405,
    Conflict: 409,
    Gone: 410,
    PreconditionFailed: 412,
    TooLarge: 413,
    UnsupportedMediaType: 415,
    TooMany: 429,
    Unavailable: 503,
    Unreadable: 503,
}


def answer(data: Any, status: int = 200, headers: Mapping[str, str] | None = None, cookies: list[Cookie] | None = None) -> Response[str]:
    return _response({"success": True, "data": data}, status, headers or {}, cookies)


def status(error: SchedulerError) -> int:
    """The HTTP status of the answer to an error; 500 for an error that is not in the table."""
    return next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), 500)


def refusal(error: SchedulerError, request_id: str) -> Response[str]:
    """The answer to an error. An error with status 500 is a bug of ours: its message is only logged."""
    code = status(error)
    shown = error if code != 500 else SchedulerError(FAILED)
    return _response({"success": False, "error": ErrorShape.of(shown, request_id)}, code, _headers(error))


def _headers(error: SchedulerError) -> dict[str, str]:
    if isinstance(error, Unavailable):
        return {"Retry-After": str(RETRY_AFTER_S)}
    if isinstance(error, TooMany):
        return {"Retry-After": str(-(-error.retry_after_ms // 1000))}
    return {"Allow": ", ".join(error.allowed)} if isinstance(error, MethodNotAllowed) else {}


def _response(body: Mapping[str, Any], status: int, headers: Mapping[str, str], cookies: list[Cookie] | None = None) -> Response[str]:
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return Response(status, APPLICATION_JSON, text, {"Cache-Control": "no-store", **headers}, cookies)


def violations(errors: Sequence[Mapping[str, Any]], model: Any = None) -> Invalid:
    """The error that lists the first broken rules and counts the others.

    `errors` are pydantic's; each `loc` begins with its place: body or query. `model`: of the body, for hints at the names of its fields.
    """
    details = [
        {"field": shortened(_field(error["loc"]), LONGEST_FIELD), "rule": shortened(_rule_of(error, model, 1), LONGEST_RULE)}
        for error in errors[: listed(len(errors))]
    ]
    if others := len(errors) - len(details):
        details.append({"field": str(errors[0]["loc"][0]), "rule": more(others)})
    return _broken(details)


def listed(number: int) -> int:
    """The number of broken rules that an answer lists, of this number. It never counts a single one: it lists that instead."""
    return number if number <= MOST_RULES + 1 else MOST_RULES


def more(others: int) -> str:
    return f"breaks {others:,} more rules"


def body_violations(error: ValidationError, model: Any = None) -> Invalid:
    """The same for a body that is invalid in this stage, or together with the job that it changes."""
    return violations([{**each, "loc": ("body", *each["loc"])} for each in error.errors(include_url=False, include_input=False)], model)


def item_violations(errors: Sequence[Mapping[str, Any]], item: str, model: Any) -> Invalid:
    """The same for the item of a batch at the path `item`; empty: the body itself.

    It is short: an answer must have room for a thousand of them.
    """
    details = []
    for error in errors[:SHOWN_RULES]:
        field = _field(("", *error["loc"]))[:SHOWN_FIELD] if error["loc"] else ""
        place = ".".join(filter(None, [item, field])) or "body"
        details.append({"field": place, "rule": _rule_of(error, model, 0)[:SHOWN_RULE]})
    return _broken(details)


def _broken(details: list[dict[str, str]]) -> Invalid:
    return Invalid("; ".join(f"{detail['field']}: {detail['rule']}" for detail in details), details=details)


def _field(loc: Sequence[str | int]) -> str:
    if loc[0] == "query":
        return str(loc[1])  # one of its values has no name of its own
    return ".".join('""' if part == "" else str(part) for part in loc[1:] if part != "[key]") or str(loc[0])


_RULES = {
    "missing": "is required",
    "extra_forbidden": "is not a known field",
    "unexpected_keyword_argument": "is not a known field",
    "string_type": "must be a string",
    "string_too_short": "must not be empty",
    "too_short": "must have at least {min_length} entry",
    "list_type": "must be a list",
    "string_too_long": "must have at most {max_length} characters",
    "too_long": "must have at most {max_length} entries",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "dataclass_type": "must be an object",
    "greater_than": "must be more than {gt:.10g}",
    "greater_than_equal": "must be at least {ge:.10g}",
    "less_than": "must be less than {lt:.10g}",
    "less_than_equal": "must be at most {le:.10g}",
    "json_invalid": "must not be nested deeper than 200 levels",  # the body is JSON: only its depth can be invalid here
    "literal_error": "must be one of {expected}",
    "enum": "must be one of {expected}",
    "value_error": "{error}",
}


def _rule_of(error: Mapping[str, Any], model: Any, start: int) -> str:
    """The broken rule of a request of this model, with a hint at the name of an unknown field. Its place begins at `start` in `loc`."""
    if error["type"] != "extra_forbidden":
        return rule(error)
    *place, name = error["loc"][start:]
    return rule(error) + unknown_fields.hint(str(name), unknown_fields.known_at(model, place))


def rule(error: Mapping[str, Any]) -> str:
    """One broken rule in plain words; pydantic's message if `_RULES` has none."""
    words = _RULES.get(error["type"])
    return str(error["msg"]) if words is None else words.format(**error.get("ctx", {}))
