"""How much of outputs, answers and logs a job's item holds. `scheduler.pipeline.output_store` stores what does not fit. Pure.

All excerpts of a job together have `ROOM`, whatever was tried how often, so that a job can always be settled: the last attempt
what the earlier ones leave, and these `FORMER` each for output and log once another one has begun.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from scheduler.model.job import Attempt, Job, Kept, Result

KEPT_ATTEMPTS = 5
ROOM = 4_096  # bytes of all excerpts of a job
FORMER = 256  # bytes of what an attempt put out, and of what it logged, once another one has followed
LEAST_LOG = 1_024  # bytes that a log has before an output that could take them all
WHOLE = 1_048_576  # bytes of an output, and of a log, that are stored at most


@dataclass(frozen=True, slots=True)
class Whole:
    """Everything an attempt put out and logged (up to `WHOLE` of each)."""

    output: str | None
    log: str | None


def output_of(output: str | None, response: Mapping[str, Any] | None) -> str | None:
    """What an attempt put out: its output, or the body of the answer it got."""
    return output if output is not None or response is None else response.get("body") or None


def split(job: Job, result: Result) -> tuple[Result, Whole | None]:
    """The result with as much as fits into the item of its claimed job; and the whole, if that is less."""
    output = output_of(result.output, result.response)
    earlier = [_former(each) for each in superseded(job).get("attempts", ())[1 - KEPT_ATTEMPTS :]]
    room = ROOM - sum(_size(each.log) + _size(each.output) for each in earlier)
    kept_output = _begin(output, room - min(_size(result.log), LEAST_LOG))
    kept_log = _end(result.log, room - _size(kept_output))
    if (kept_output, kept_log) == (output, result.log):
        return result, None
    fits = replace(result, log=kept_log, kept=Kept.STORED)
    if result.output is not None:
        fits = replace(fits, output=kept_output)
    elif result.response is not None:
        fits = replace(fits, response={**result.response, "body": kept_output or ""})
    return fits, Whole(_begin(output, WHOLE), _end(result.log, WHOLE))


def superseded(job: Job) -> dict[str, Any]:
    """What changes of the job, by name, when its output is its last attempt's no more: another attempt or another life begins."""
    if not job.attempts:
        return {}  # nor has it put out anything
    output = output_of(job.output, job.response)
    *earlier, last = job.attempts
    last = _former(replace(last, output=output) if output is not None else last)
    return {"output": None, "response": None, "attempts": (*earlier, last)}


def _former(attempt: Attempt) -> Attempt:
    output, log = _begin(attempt.output, FORMER), _end(attempt.log, FORMER)
    if (output, log) == (attempt.output, attempt.log):
        return attempt
    return replace(attempt, output=output, log=log, kept=attempt.kept if attempt.kept is Kept.STORED else Kept.CUT)


def _size(text: str | None) -> int:
    return len((text or "").encode("utf-8", "replace"))


def _begin(text: str | None, room: int) -> str | None:
    """As many whole characters from its beginning as the room has bytes for."""
    if text is None or _size(text) <= room:
        return text
    return text.encode("utf-8", "replace")[: max(room, 0)].decode("utf-8", "ignore")


def _end(text: str | None, room: int) -> str | None:
    """The same from its end."""
    if text is None or _size(text) <= room:
        return text
    return text.encode("utf-8", "replace")[-room:].decode("utf-8", "ignore") if room > 0 else ""
