"""Attempt output: the previews of outputs and logs in a job's item. `scheduler.pipeline.output_store` stores the full texts. Pure.

All previews of a job together have at most `ROOM` bytes, for any number of attempts, so that the job can always be settled.
The last attempt gets the bytes that the earlier attempts leave. Once another attempt has begun, an attempt keeps at most `FORMER`
bytes of its output and as many of its log.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from scheduler.model.job import Attempt, Job, Preview, Result

RETAINED_ATTEMPTS = 5
ROOM = 4_096  # bytes of all previews of a job together
BYTES = 4  # of a character at most
FORMER = 256  # bytes of the output, and of the log, of an attempt before the last one
HEADERS = 4_096  # characters of the names and values of a response's headers that are kept
LEAST_LOG = 1_024  # bytes reserved for a log, so that a long output cannot take them all
WHOLE = 1_048_576  # bytes of an output, and of a log, that are stored at most


@dataclass(frozen=True, slots=True)
class FullOutput:
    """The full output and log of an attempt, up to `WHOLE` bytes of each."""

    output: str | None
    log: str | None


def output_of(output: str | None, response: Mapping[str, Any] | None) -> str | None:
    """The output of an attempt, or else the body of its response; None if both are missing or the body is empty."""
    return output if output is not None or response is None else response.get("body") or None


def split(job: Job, result: Result) -> tuple[Result, FullOutput | None]:
    """Cut the result of a claimed job to the previews that fit into the job's item.

    Also returns the full output and log if something was cut, else None. The log loses its beginning, the output its end. The body of a
    response beside an output gets the bytes that those leave, at least `FORMER`.
    """
    if not job.attempts and not result.log and result.response is None and len(result.output or "") <= ROOM // BYTES:
        return result, None  # most results; the rest takes ten times as long, while other jobs of the same instant wait
    output = output_of(result.output, result.response)
    earlier = [_former(each) for each in superseded(job).get("attempts", ())[1 - RETAINED_ATTEMPTS :]]
    room = ROOM - sum(_size(each.log) + _size(each.output) for each in earlier)
    output_preview = _begin(output, room - min(_size(result.log), LEAST_LOG))
    log_preview = _end(result.log, room - _size(output_preview))
    body = (
        output_preview if result.output is None else _begin(_body(result), max(room - _size(output_preview) - _size(log_preview), FORMER))
    )
    if (output_preview, log_preview) == (output, result.log) and body == _body(result):
        return result, None
    fits = replace(result, log=log_preview, preview=Preview.STORED)
    if result.output is not None:
        fits = replace(fits, output=output_preview)
    if result.response is not None and body != _body(result):
        fits = replace(fits, response={**result.response, "body": body or ""})
    return fits, FullOutput(_begin(output, WHOLE), _end(result.log, WHOLE))


def first_headers(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The headers of a response that are kept: the first ones, up to `HEADERS` characters. Values of one name are joined by commas."""
    first: dict[str, str] = {}
    room = HEADERS
    for name, value in headers:
        room -= len(value) + len(", " if name in first else name)
        if room < 0:
            break
        first[name] = f"{first[name]}, {value}" if name in first else value
    return first


def superseded(job: Job) -> dict[str, Any]:
    """The fields of the job that change, by name, when another attempt or a redrive begins: its output moves to its last attempt."""
    if not job.attempts:
        return {}  # a job without attempts has no output either
    output = output_of(job.output, job.response)
    *earlier, last = job.attempts
    last = _former(replace(last, output=output) if output is not None else last)
    return {"output": None, "response": None, "attempts": (*earlier, last)}


def _body(result: Result) -> str | None:
    return (result.response or {}).get("body") or None


def _former(attempt: Attempt) -> Attempt:
    output, log = _begin(attempt.output, FORMER), _end(attempt.log, FORMER)
    if (output, log) == (attempt.output, attempt.log):
        return attempt
    return replace(attempt, output=output, log=log, preview=attempt.preview if attempt.preview is Preview.STORED else Preview.CUT)


def _size(text: str | None) -> int:
    return len((text or "").encode("utf-8", "replace"))


def _begin(text: str | None, room: int) -> str | None:
    """The beginning of the text: as many whole characters as fit into `room` bytes."""
    if text is None or _size(text) <= room:
        return text
    return text.encode("utf-8", "replace")[: max(room, 0)].decode("utf-8", "ignore")


def _end(text: str | None, room: int) -> str | None:
    """The end of the text: as many whole characters as fit into `room` bytes."""
    if text is None or _size(text) <= room:
        return text
    return text.encode("utf-8", "replace")[-room:].decode("utf-8", "ignore") if room > 0 else ""
