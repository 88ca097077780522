"""What tells one kind of error from another: pure.

Two failures with the same fingerprint went wrong in the same way, whatever their ids, numbers, times and addresses are: a word
with a digit or an @ in it is such a detail. Only the status of an HTTP answer is none.
"""

import hashlib
import re

from scheduler.model.job import Failure, FailureKind, Job

LENGTH = 12  # hex digits
_WORD = re.compile(r"HTTP [1-5]\d\d(?!\w)|[\w.:+@-]+")


def of_job(job: Job) -> str:
    """The fingerprint of what a failed or killed job died of."""
    return of(error(job))


def of(failure: Failure) -> str:
    """`LENGTH` hex digits."""
    return hashlib.sha256(f"{failure.kind}\n{normal(failure.message)}".encode(errors="replace")).hexdigest()[:LENGTH]


def error(job: Job) -> Failure:
    """What the job died of: the failure of its last attempt, or the reason if that hand-over never became one."""
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
    if " " in word:  # the status of an answer
        return word
    return "#" if "@" in word or any(letter.isdigit() for letter in word) else word
