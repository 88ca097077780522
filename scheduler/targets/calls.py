"""The port through which targets call AWS: any operation of any service, and one kind of refusal.

A function tells every call how many seconds are `left`: the call ends by then or soon after. Once none are left (the deadline has
passed, or the job was asked to stop) nothing more is begun.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

Left = Callable[[], float]
KEPT_MESSAGE = 500  # characters of what AWS says


class Refused(Exception):
    """AWS, or the way to it, refused a call. `retryable`: it may go well another time."""

    def __init__(self, code: str, message: str = "", *, retryable: bool) -> None:
        super().__init__(f"{code}: {message}"[:KEPT_MESSAGE] if message else code)
        self.code = code
        self.retryable = retryable


@dataclass(frozen=True, slots=True)
class Request:
    """One call of AWS, in the words of boto3: `Request("sqs", "send_message", {"QueueUrl": ..., "MessageBody": ...})`."""

    service: str
    operation: str
    parameters: Mapping[str, Any]
    region: str | None = None  # None: the scheduler's own
    waits: bool = False  # the call may take all the time that is left; else a few seconds
    again: bool = True  # may be sent a second time at once, where its connection was found closed


class Calls(Protocol):
    """A request of any service."""

    def send(self, request: Request, *, left: Left) -> Mapping[str, Any]:
        """The answer, streamed bodies read. Raises Refused, also if the answer lists an entry that failed (`ErrorCode`)."""
