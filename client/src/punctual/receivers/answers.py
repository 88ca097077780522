"""The answers to a call, and the exceptions by which a handler chooses one."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from punctual.errors import InvalidArgument

BUSY_SECONDS = 10  # until Punctual repeats a call whose first delivery still runs
LONGEST_RETRY_SECONDS = 3_600  # Punctual waits no longer, whatever the answer requests
RETRIED = (408, 425, 429)  # the statuses below 500 after which Punctual tries again
JSON = "application/json"


class Retry(Exception):
    """Raise it to have the call repeated: the answer is 503.

    With `after`, Punctual repeats the call after this time in seconds (at most an hour), for up to 24 hours, and no attempt is used up.
    Without it, the failure uses up one of the job's attempts, and the job's own `retry` sets the wait.
    """

    def __init__(self, message: str = "try again", *, after: float | None = None) -> None:
        super().__init__(message)
        if after is not None and not after > 0:
            raise InvalidArgument(f"after must be more than 0 seconds, not {after}")
        self.after = None if after is None else min(math.ceil(after), LONGEST_RETRY_SECONDS)


class Permanent(Exception):
    """Raise it if no repeat can succeed: the job fails at once and is a dead letter. The answer is 422, or `status`."""

    def __init__(self, message: str, *, status: int = 422) -> None:
        super().__init__(message)
        if not 400 <= status < 500 or status in RETRIED:
            raise InvalidArgument(f"Punctual repeats a call that was answered with {status}: use 400 to 499, but not {RETRIED}")
        self.status = status


class StillRunning(Exception):
    """An earlier delivery of the same event still runs. Punctual repeats the call of the function, as after any error."""


@dataclass(frozen=True)
class Answer:
    """The answer to a call, without a framework: its status, body and content type, and further headers."""

    status: int = 200
    body: bytes = b""
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_success(self) -> bool:
        """Whether the job succeeds by it."""
        return 200 <= self.status < 300

    def all_headers(self) -> dict[str, str]:
        """Return the headers, with the content type if there is a body."""
        return {**({"Content-Type": self.content_type} if self.body else {}), **self.headers}


def failure(status: int, code: str, message: str, **headers: str) -> Answer:
    """Return an answer that is no success, with JSON for people. In the names of headers _ stands for -."""
    body = json.dumps({"error": code, "message": message}, ensure_ascii=False).encode()
    return Answer(status, body, headers={name.replace("_", "-"): value for name, value in headers.items()})


BUSY = failure(503, "still_running", "an earlier delivery of this call still runs", Retry_After=str(BUSY_SECONDS))


def error_answer(error: Retry | Permanent) -> Answer:
    """Return the answer by which an exception of the handler ends a call."""
    if isinstance(error, Permanent):
        return failure(error.status, "permanent", str(error))
    return failure(503, "retry", str(error), **({} if error.after is None else {"Retry_After": str(error.after)}))
