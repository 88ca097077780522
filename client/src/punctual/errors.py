"""The exceptions of this package. All of them are a `PunctualError`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from punctual.texts import without_keys

if TYPE_CHECKING:
    import httpx


class PunctualError(Exception):
    """The base of all exceptions of this package. None of them contains an API key."""

    def __init__(self, message: str = "") -> None:
        super().__init__(without_keys(message))


class NotConfigured(PunctualError):
    """There is no address or there are no credentials. The message says how to specify them."""


class NoRoleToken(NotConfigured):
    """AWS gives this program no token of its role, for `auth="aws"`. The message has the reason and what to do."""


class InvalidArgument(PunctualError, ValueError):
    """An argument breaks a rule, so that nothing was sent. The message names it and the rule."""


class NoAnswer(PunctualError):
    """The API did not answer, after all repeats: no connection, or a broken one. A request that changes something may have been applied."""


class UnexpectedAnswer(PunctualError):
    """The answer is not one of this API: probably another server, or another path, is at this address."""


class WaitTimeout(PunctualError):
    """A job or an operation has not ended within the time that the caller waits."""


@dataclass(frozen=True)
class FieldError:
    """One field of a request that breaks a rule: `field` is its path, such as `schedule.cron`; `rule` says what is allowed."""

    field: str
    rule: str

    def __str__(self) -> str:
        return f"{self.field}: {self.rule}"


class ApiError(PunctualError):
    """The API refused a request.

    `status` is the HTTP status, `code` the API's name of the error. `details` has all fields that break a rule. `request_id` finds the
    request in the logs; it is empty if API Gateway refused it. `retry_after` is the wait in seconds that the API requests, or None.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        details: tuple[FieldError, ...] = (),
        request_id: str = "",
        retry_after: float | None = None,
    ) -> None:
        listed = "".join(f"\n  {detail}" for detail in details)
        super().__init__(f"{status} {code}: {message}{listed}")
        self.status = status
        self.code = code
        self.message = without_keys(message)
        self.details = tuple(FieldError(without_keys(one.field), without_keys(one.rule)) for one in details)
        self.request_id = request_id
        self.retry_after = retry_after


class InvalidRequest(ApiError):
    """The request breaks a rule; `details` has the fields. Statuses 400, 405, 413, 415 and 422. A repeat fails in the same way."""


class NotAuthenticated(ApiError):
    """The API accepts no token of this client, or the sign-in failed. Status 401."""


class NotAllowed(ApiError):
    """The role or the scopes of the token do not allow the request, or the account is disabled. Status 403."""


class NotFound(ApiError):
    """There is no such object among those of this user, or an output has expired. Statuses 404 and 410."""


class Conflict(ApiError):
    """The object is in another state than the request needs, or was changed since. Statuses 409 and 412."""


class Throttled(ApiError):
    """Too many requests, after all repeats. Status 429. Nothing was changed."""


class QuotaExceeded(Throttled):
    """A quota of the user is used up, or too many sign-ins failed. `retry_after` says when to try again. Status 429."""


class Unavailable(ApiError):
    """The API cannot answer now, after all repeats. Statuses of 500 and more. A change may or may not have been applied."""


class InvalidSignature(PunctualError):
    """A request was not signed with the secret, its body was changed, or it is too old. Answer it with 401 and do nothing."""


class CallbackEnded(PunctualError):
    """The attempt of this worker is over: it was taken back, cancelled or replaced by another attempt. Stop the work."""


BY_STATUS: Mapping[int, type[ApiError]] = {
    400: InvalidRequest,
    401: NotAuthenticated,
    403: NotAllowed,
    404: NotFound,
    405: InvalidRequest,
    409: Conflict,
    410: NotFound,
    412: Conflict,
    413: InvalidRequest,
    415: InvalidRequest,
    422: InvalidRequest,
}


def parsed(answer: httpx.Response) -> Any:
    """Return the JSON of an answer, or its text if it has none that can be read. Raises nothing, whatever was answered."""
    try:
        return answer.json()
    except (ValueError, RecursionError):
        return answer.content.decode(errors="replace")


def from_answer(status: int, body: Any, retry_after: float | None = None) -> ApiError:
    """Return the exception for an answer with an error status. `body` is the parsed JSON, or the text if it is none."""
    error = body.get("error") if isinstance(body, Mapping) else None
    if not isinstance(error, Mapping):  # API Gateway: {"message": ...}
        text = body.get("message", error) if isinstance(body, Mapping) else body
        return _kind(status, False)(status, _code(status), without_keys(str(text or "no reason given"))[:500], retry_after=retry_after)
    listed = error.get("details")
    named = [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []
    details = tuple(FieldError(str(one.get("field", "")), str(one.get("rule", ""))) for one in named)
    code, message = str(error.get("code", _code(status))), str(error.get("message", ""))
    return _kind(status, True)(status, code, message, details, str(error.get("request_id", "")), retry_after)


def _kind(status: int, enveloped: bool) -> type[ApiError]:
    if status == 429:
        return QuotaExceeded if enveloped else Throttled
    return Unavailable if status >= 500 else BY_STATUS.get(status, ApiError)


def _code(status: int) -> str:
    return {401: "unauthorized", 403: "forbidden", 404: "not_found", 429: "too_many_requests"}.get(status, "unexpected_answer")
