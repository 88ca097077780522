"""An attempt's output and log: a preview in the job, and the full text in the output store where the preview is not all of it."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from scheduler.model import attempt_output, lifecycle
from scheduler.model.errors import Gone, NotFound, SchedulerError
from scheduler.model.job import Attempt, Job, Preview, Result
from scheduler.storage.ports import Outputs

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Text:
    """An output or a log. `complete` is False if a part of it was left out."""

    text: str
    complete: bool


def keep(job: Job, result: Result, outputs: Callable[[], Outputs]) -> Result:
    """Return the result with previews that fit into the job; a full text that does not fit is stored first.

    If the store refuses, only the full text is lost.
    """
    fits, whole = attempt_output.split(job, result)
    if whole is None:
        return fits
    try:
        outputs().put(job.key, job.fence, whole)
    except SchedulerError as error:
        log.warning("could not store the output: %s", error, extra=job.log_context())
        return replace(fits, preview=Preview.CUT)
    return fits


def output(job: Job, number: int, outputs: Outputs) -> Text:
    """Return the full output of an attempt, or the body of the response that it got. Raises NotFound, Gone."""
    attempt = _attempt(job, number)
    excerpt = attempt_output.output_of(job.output, job.response) if attempt is job.attempts[-1] else attempt.output
    return _text(job, (number, attempt), excerpt, "output", outputs)


def logged(job: Job, number: int, outputs: Outputs) -> Text:
    """Return the full log of an attempt. Raises NotFound, Gone."""
    attempt = _attempt(job, number)
    return _text(job, (number, attempt), attempt.log, "log", outputs)


def _attempt(job: Job, number: int) -> Attempt:
    found = dict(lifecycle.numbered_attempts(job)).get(number)
    if found is None:
        raise NotFound(f"there is no attempt {number} among the last {attempt_output.RETAINED_ATTEMPTS} that have ended")
    return found


def _text(job: Job, numbered: tuple[int, Attempt], excerpt: str | None, kind: str, outputs: Outputs) -> Text:
    number, attempt = numbered
    if attempt.preview is Preview.STORED:
        whole = outputs.get(job.key, attempt.fence)
        if whole is None:
            raise Gone(f"the full {kind} of attempt {number} is no longer stored; the job has its beginning or end")
        excerpt = whole.output if kind == "output" else whole.log
        complete = len((excerpt or "").encode("utf-8", "replace")) < attempt_output.WHOLE
    else:
        complete = attempt.preview is None
    if not excerpt:
        raise NotFound(f"attempt {number} has no {kind}")
    return Text(excerpt, complete)
