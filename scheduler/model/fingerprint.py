"""Fingerprints of errors: failures of the same kind have the same one. Pure.

Ids, numbers, times and addresses do not change a fingerprint: every word with a digit or an @ is such a detail. The only
exception is the status of an HTTP response.
"""

import hashlib
import re

from scheduler.model.job import Failure, FailureKind, Job

LENGTH = 12  # hex digits
_WORD = re.compile(r"HTTP [1-5]\d\d(?!\w)|[\w.:+@-]+")


def of_job(job: Job) -> str:
    """The fingerprint of the `error` of a failed or killed job."""
    return of(error(job))


def of(failure: Failure) -> str:
    """The fingerprint of a failure: the first `LENGTH` hex digits of the SHA-256 of its kind and normalized message."""
    return hashlib.sha256(f"{failure.kind}\n{normal(failure.message)}".encode(errors="replace")).hexdigest()[:LENGTH]


def error(job: Job) -> Failure:
    """The error of a failed or killed job: the failure of its last attempt.

    A job that failed under a fence without an attempt, as its messages reached a dead-letter queue, has its reason as error.
    """
    last = job.attempts[-1] if job.attempts else None
    if last is not None and last.fence == job.fence and last.failure is not None:
        return last.failure
    return Failure(FailureKind.BURIED, job.reason or "")


def normal(message: str) -> str:
    """The message with `#` for each detail, and single spaces."""
    return _WORD.sub(_without_detail, " ".join(message.split()))


def is_fingerprint(text: str) -> bool:
    return re.fullmatch(rf"[0-9a-f]{{{LENGTH}}}", text) is not None


def _without_detail(found: re.Match[str]) -> str:
    word = found[0]
    if " " in word:  # the status of an HTTP response
        return word
    return "#" if "@" in word or any(letter.isdigit() for letter in word) else word
