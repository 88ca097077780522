"""The port through which targets call AWS: any operation of any service, and one error.

Every call gets a function that returns how many seconds are `left`; the call ends by then or soon after. When none are left, since the
deadline has passed or a stop was requested, no further request begins.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

Left = Callable[[], float]
KEPT_MESSAGE = 500  # characters of an error message of AWS


class Refused(Exception):
    """AWS, or the connection to it, refused a call. `retryable`: a later call may succeed."""

    def __init__(self, code: str, message: str = "", *, retryable: bool) -> None:
        super().__init__(f"{code}: {message}"[:KEPT_MESSAGE] if message else code)
        self.code = code
        self.retryable = retryable


@dataclass(frozen=True, slots=True)
class Request:
    """One call of AWS, with the names of boto3: `Request("sqs", "send_message", {"QueueUrl": ..., "MessageBody": ...})`."""

    service: str
    operation: str
    parameters: Mapping[str, Any]
    region: str | None = None  # None: the scheduler's own
    waits: bool = False  # True: the call may take all the time that is left; False: a few seconds
    again: bool = True  # whether it may be sent a second time at once, if its connection was found closed


class Calls(Protocol):
    """The port: sends requests to any service."""

    def send(self, request: Request, *, left: Left) -> Mapping[str, Any]:
        """Return the answer, with streamed bodies as bytes. Raises Refused, also if the answer lists a failed entry (`ErrorCode`)."""
