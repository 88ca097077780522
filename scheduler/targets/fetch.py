"""One call of a URL for an executor, in a function without any rights. The function waits for the instant of the call."""

import logging
from collections.abc import Mapping
from typing import Any

from scheduler.model.job import Failure, FailureKind, Result
from scheduler.storage.ports import Clock
from scheduler.targets import fetch_call
from scheduler.targets.base import NotAllowed, Reach
from scheduler.targets.types import http

log = logging.getLogger(__name__)


def fetch(asked: Mapping[str, Any], reach: Reach, *, allow_private: bool, clock: Clock) -> dict[str, Any]:
    """Call the URL, not before the requested instant; returns the answer to the executor. See `fetch_call`.

    Any error is part of the answer. An error that is raised would be logged, with the secrets that its text may contain.
    """
    payload, secret, context = fetch_call.read(asked, reach, allow_private=allow_private)
    clock.sleep_until(context.not_before)
    began_at = clock.now()
    try:
        http.check(payload, reach)
        result = http.fetch(payload, secret, context)
    except NotAllowed as error:
        result = Result(failure=Failure(FailureKind.PERMANENT, f"{error.field} {error}"))
    except Exception as error:
        log.error("the call could not be made", extra={"error": type(error).__name__})
        result = Result(failure=Failure(FailureKind.RETRYABLE, f"the call could not be made: {type(error).__name__}"))
    return fetch_call.answering(result, began_at)
