"""The port through which targets call AWS: a call per type of target, and one kind of refusal.

Every call is told by a function how many seconds are `left`: it ends by then or soon after, and once none are left (the
deadline has passed, or the job was asked to stop) nothing more is begun.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

Left = Callable[[], float]
KEPT_MESSAGE = 500  # characters of what AWS says


class Refused(Exception):
    """AWS, or the way to it, refused a call. `retryable`: it may go well another time."""

    def __init__(self, code: str, message: str = "", *, retryable: bool) -> None:
        super().__init__(f"{code}: {message}"[:KEPT_MESSAGE] if message else code)
        self.code = code
        self.retryable = retryable


@dataclass(frozen=True, slots=True)
class Invoked:
    """What a function answered. `error`: it failed, and the payload tells how."""

    payload: str
    error: bool = False
    log: str | None = None  # the end of what it wrote, as far as Lambda tells


@dataclass(frozen=True, slots=True)
class Execution:
    """How an execution of a state machine stands: RUNNING, SUCCEEDED, FAILED, TIMED_OUT, ABORTED or PENDING_REDRIVE."""

    status: str
    input: str
    output: str | None = None
    error: str | None = None
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """What goes to a queue or a topic. `unique`: FIFO queues and topics drop a second one of the same within five minutes."""

    body: str
    attributes: Mapping[str, str]
    subject: str | None = None
    group: str | None = None
    unique: str | None = None


@dataclass(frozen=True, slots=True)
class Mail:
    """An e-mail."""

    to: tuple[str, ...]
    subject: str
    text: str | None
    html: str | None
    headers: Mapping[str, str]


class Calls(Protocol):
    """All raise Refused."""

    def invoke(self, function_arn: str, event: str, *, wait: bool, left: Left) -> Invoked:
        """Call a function with a JSON text. Without `wait` it is only handed over, and the answer is empty."""

    def send(self, queue_arn: str, message: Message, *, left: Left) -> str:
        """Put a message into a queue. Returns its id."""

    def publish(self, topic_arn: str, message: Message, *, left: Left) -> str:
        """Publish to a topic. Returns the message's id."""

    def put_event(self, bus_arn: str, source: str, detail_type: str, detail: str, *, left: Left) -> str:
        """Put an event on a bus, its detail as JSON text. Returns the event's id."""

    def start(self, machine_arn: str, name: str, input: str, *, left: Left) -> str:
        """Start an execution of that name. Returns its ARN, also if there is one of that name with the same input already."""

    def look(self, execution_arn: str, *, left: Left) -> Execution:
        """How an execution stands."""

    def mail(self, mail: Mail, *, left: Left) -> str:
        """Send an e-mail from the stage's sender. Returns its id."""
