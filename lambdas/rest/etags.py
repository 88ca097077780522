"""Entity tags: which state of an object an answer shows, and whether a request may change the object as it is now."""

import hashlib
from collections.abc import Mapping
from typing import Any

from scheduler.model.errors import SchedulerError
from scheduler.model.job import Job
from scheduler.model.named_target import NamedTarget
from scheduler.model.task import Task

IF_MATCH = "If-Match"


class PreconditionFailed(SchedulerError):
    """The object was changed since the entity tag in If-Match was read. Read it again."""

    code = "precondition_failed"


def of_task(task: Task) -> str:
    return f'"{task.generation}"'


def of_target(target: NamedTarget) -> str:
    return f'"{target.version}"'


def of_job(job: Job) -> str:
    """The tag of the stored record. A change that only the clock makes, such as `scheduled` to `queued`, keeps the tag."""
    return f'"{hashlib.sha256(repr(job).encode()).hexdigest()[:16]}"'


def header(tag: str) -> dict[str, str]:
    return {"ETag": tag}


def check(event: Mapping[str, Any], tag: str) -> None:
    """Raises PreconditionFailed if the request has If-Match, and this is not one of its tags. `*` stands for any."""
    expected = _if_match(event)
    if expected is not None and expected.strip() != "*" and tag not in [each.strip() for each in expected.split(",")]:
        raise PreconditionFailed()


def _if_match(event: Mapping[str, Any]) -> str | None:
    return next((str(value) for name, value in event.get("headers", {}).items() if name.lower() == IF_MATCH.lower()), None)
