"""The port through which targets call AWS: any operation of any service, and one error for all refusals.

Every call gets a function that returns the seconds `left`: the call ends by then or soon after. Once none are left (the deadline has
passed, or a stop was requested) no further call starts.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

Left = Callable[[], float]
LONGEST_MESSAGE = 500  # characters of a message of AWS
LONGEST_BODY = 750_000  # bytes, which base64 makes a third longer: an output has at most 1 MB


class Refused(Exception):
    """AWS refused a call, or could not be reached. `retryable`: a later call may succeed.

    `throttled`: AWS accepts no call for now. `unclear`: the call may have had its effect, since its answer is missing.
    """

    def __init__(self, code: str, message: str = "", *, retryable: bool, throttled: bool = False, unclear: bool = False) -> None:
        super().__init__(f"{code}: {message}"[:LONGEST_MESSAGE] if message else code)
        self.code = code
        self.retryable = retryable
        self.throttled = throttled
        self.unclear = unclear

    @property
    def is_denied(self) -> bool:
        """Whether the caller lacks a right."""
        return any(word in self.code for word in ("AccessDenied", "Unauthorized", "NotAuthorized"))


@dataclass(frozen=True, slots=True)
class Role:
    """A role of another account, as the jobs of one owner assume it. Its trust policy recognizes them by the external id."""

    arn: str
    external_id: str


@dataclass(frozen=True, slots=True)
class Request:
    """One call of AWS, in boto3's terms: `Request("sqs", "send_message", {"QueueUrl": ..., "MessageBody": ...})`.

    The operation may have its name in the API instead: `CopyObject`.
    """

    service: str
    operation: str
    parameters: Mapping[str, Any]
    region: str | None = None  # None: the scheduler's own
    waits: bool = False  # the call may take all the time that is left; else a few seconds
    again: bool = True  # may be sent a second time at once if its connection turns out to be closed
    # Of an operation that no type knows: botocore's retry data alone classifies its refusals, no part of its answer is a refusal, and a
    # streamed body ends after `LONGEST_BODY` bytes.
    is_any: bool = False
    role: Role | None = None  # the call is made with a session of it; None: with the executor's own rights


class Calls(Protocol):
    """Sends requests to any service of AWS."""

    def send(self, request: Request, *, left: Left) -> Mapping[str, Any]:
        """Return the answer, with streamed bodies read. Raises Refused, also if the answer lists a failed entry (`ErrorCode`)."""
