"""Messages of the intake queues, and the dead letters of those that became no jobs."""

from dataclasses import dataclass
from typing import NamedTuple

PRINCIPALS = "principals"  # in the place of an owner's id: the principal that sent a message decides its owner
BODY_BYTES = 65_536  # of a body that a dead letter stores
RETENTION_DAYS = 14  # of a dead letter, as of a message in a queue of AWS


class Violation(NamedTuple):
    """A field of a message, and the rule that it breaks. `sender` and `owner` stand for the message's own."""

    field: str
    rule: str


@dataclass(frozen=True, slots=True)
class IntakeMessage:
    """A message as SQS delivers it."""

    id: str  # SQS gives it; all deliveries of the message have it
    queue: str  # the name of the queue in the stage's options
    sender: str  # the unique id of a role or a user, which may have `:session` behind it; of a service, an id of AWS
    sent_at: int
    body: str
    receives: int = 1  # deliveries up to this one
    trace: str | None = None  # its trace context, by its attributes `traceparent` and `tracestate`: `model.trace`


@dataclass(frozen=True, slots=True)
class IntakeLetter:
    """A dead letter: a message of which no job was made, or a batch of which some jobs were refused."""

    message: IntakeMessage
    errors: tuple[Violation, ...]
    refused_at: int
    owner: str | None = None  # None: the sender is unknown
    accepted: int = 0  # other jobs of the batch, which are created; the body has the refused ones only
    is_cut: bool = False  # the body is longer than `BODY_BYTES`, and its end is missing
    version: int = 1  # rises with each change


def shortened(body: str) -> tuple[str, bool]:
    """The body as a dead letter stores it, and whether its end is cut off."""
    raw = body.encode(errors="replace")
    return (body, False) if len(raw) <= BODY_BYTES else (raw[:BODY_BYTES].decode(errors="ignore"), True)
