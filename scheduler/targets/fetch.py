"""One call of a URL for an executor, in a function that can do nothing else. The function waits here until the job's instant."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from urllib3.util import parse_url

from scheduler.model.job import Failure, FailureKind, Result
from scheduler.storage.ports import Clock
from scheduler.targets import fetch_call, private_network
from scheduler.targets.base import NotAllowed, NotBegun, Reach
from scheduler.targets.types import http

log = logging.getLogger(__name__)


def fetch(event: Mapping[str, Any], reach: Reach, *, allow_private: bool, clock: Clock, own: str | None = None) -> dict[str, Any]:
    """Call the URL, neither before the requested instant nor too late after it. `own`: the host of the scheduler's API.

    The function in the private network (`reach.network`) calls private targets alone, and the other one never calls them.
    Errors are returned, not raised: a raised one would be logged with its content.
    """
    payload, secret, context = fetch_call.decode_event(event, reach, allow_private=allow_private)

    def begin(first: Callable[[], None], *, is_quick: bool = False) -> None:
        clock.sleep_until(context.not_before)
        if context.not_after is not None and clock.now() > context.not_after + fetch_call.LATE_MS:
            raise NotBegun
        first()

    try:
        if bool(context.reach.allow) != bool(reach.network):
            raise NotAllowed("url", "was sent to the function of another network")
        http.check(payload, context.reach)
        if context.reach.allow and own and private_network.is_host(parse_url(payload["url"]).host or "", own):
            raise NotAllowed("url", "is the scheduler's own API, which no private target reaches")
        result = http.fetch(payload, secret, replace(context, begin=begin))
    except NotBegun:
        result = fetch_call.unstarted("the function that calls URLs was not ready in time")
    except NotAllowed as error:
        result = Result(failure=Failure(FailureKind.PERMANENT, f"{error.field} {error}"))
    except Exception as error:
        log.error("URL not called: unexpected error", extra={"error": type(error).__name__})
        result = Result(failure=Failure(FailureKind.RETRYABLE, f"the call could not be made: {type(error).__name__}"))
    return fetch_call.encode_answer(result, clock.now() if result.began_at is None else result.began_at)
