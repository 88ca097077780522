"""The port through which targets call AWS: any operation of any service, and one error for all refusals.

Every call gets a function that returns the seconds `left`: the call ends by then or soon after. Once none are left (the deadline has
passed, or a stop was requested) no further call starts.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

Left = Callable[[], float]
LONGEST_MESSAGE = 500  # characters of a message of AWS


class Refused(Exception):
    """AWS refused a call, or could not be reached. `retryable`: a later call may succeed."""

    def __init__(self, code: str, message: str = "", *, retryable: bool) -> None:
        super().__init__(f"{code}: {message}"[:LONGEST_MESSAGE] if message else code)
        self.code = code
        self.retryable = retryable


@dataclass(frozen=True, slots=True)
class Request:
    """One call of AWS, in boto3's terms: `Request("sqs", "send_message", {"QueueUrl": ..., "MessageBody": ...})`."""

    service: str
    operation: str
    parameters: Mapping[str, Any]
    region: str | None = None  # None: the scheduler's own
    waits: bool = False  # the call may take all the time that is left; else a few seconds
    again: bool = True  # may be sent a second time at once if its connection turns out to be closed


class Calls(Protocol):
    """Sends requests to any service of AWS."""

    def send(self, request: Request, *, left: Left) -> Mapping[str, Any]:
        """Return the answer, with streamed bodies read. Raises Refused, also if the answer lists a failed entry (`ErrorCode`)."""
