"""`log`: writes a message to the log. The simplest type of job, and a stand-in for slow work."""

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from annotated_types import Ge, Le, MinLen

from scheduler.model.job import Failure, FailureKind, Result
from scheduler.targets.base import Context
from scheduler.targets.target_type import TargetType

QUICK_LENGTH = 1_000  # characters of a text that is stored with its job in any case

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Payload:
    """A line to write, and a time to wait."""

    __pydantic_config__: ClassVar = {"extra": "forbid", "use_attribute_docstrings": True}

    message: Annotated[str, MinLen(1)]
    """The text to write."""
    sleep_seconds: Annotated[float, Ge(0), Le(600)] = 0
    """The wait after writing, in seconds."""


def is_work(payload: Mapping[str, Any]) -> bool:
    """Waiting stands for long-running work; writing a line alone does not need a child process."""
    return bool(payload.get("sleep_seconds"))


def is_quick(payload: Mapping[str, Any]) -> bool:
    """A line is written at once, unless its text is so long that its output goes to a bucket."""
    return not is_work(payload) and len(str(payload.get("message", ""))) < QUICK_LENGTH


def run(payload: Mapping[str, Any], context: Context) -> Result:
    """Write the message, then wait `sleep_seconds`. The output is the message."""
    request = Payload(**payload)
    logger.info("%s", request.message, extra=_extra(context))
    until = time.monotonic() + request.sleep_seconds
    if request.sleep_seconds and context.stop.wait(min(until, context.deadline) - time.monotonic()):
        return Result(failure=Failure(FailureKind.TIMEOUT, "stopped while it waited"))
    if until > context.deadline:
        return Result(failure=Failure(FailureKind.TIMEOUT, f"{context.time_out} passed while it waited"))
    return Result(output=request.message)


def _extra(context: Context) -> dict[str, str | int]:
    """The fields of the log line. A one-time job has two: logs cost by the byte, and its message can name its times by placeholders."""
    facts: dict[str, str | int] = {"attempt": context.attempt} if context.job.task_id is None else context.job.facts()
    return {"job_id": context.job_id, **facts}


TYPE = TargetType(payload=Payload, run=run, is_work=is_work, is_quick=is_quick, content=("message", "sleep_seconds"))
