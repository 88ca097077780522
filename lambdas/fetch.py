"""An invocation by an executor, for one job → `scheduler.targets.fetch`. This function's role may write its log, and nothing else."""

from typing import Any

from lambdas import _fetching, _init
from lambdas._logger import logger
from scheduler.targets.fetch import fetch

_init.end(_fetching.fetch)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Make one call. An event without a payload only makes sure that the function has started."""
    at = _fetching.fetch()
    if "payload" not in event:
        return {}
    answer = fetch(event, at.reach, allow_private=at.allow_private, clock=at.clock, own=at.own)
    response = answer["response"]
    logger.info("fetch", extra={"job_id": event["job_id"], "status": response and response["status"]})
    return answer
