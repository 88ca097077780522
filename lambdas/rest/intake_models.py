"""Shapes of the dead letters of the intake queues."""

from collections.abc import Sequence
from typing import Any

from lambdas.rest.models import ResultShape
from lambdas.rest.request import Request
from lambdas.rest.shapes import Json, ListShape, Shape, Violation, WrittenTime
from scheduler.model.errors import SchedulerError
from scheduler.model.intake import IntakeLetter
from scheduler.pipeline.submit import Accepted, Refusal, Submission


class IntakeRetry(Request):
    """A retry of a dead letter."""

    body: dict[str, Any] | None = None
    """The corrected body, as for `POST /jobs` or `POST /jobs/batch`. Default: the body as it was sent. Required if `cut` is true."""


class IntakeLetterShape(Shape):
    """A message of an intake queue of which no job was made, or a batch of which some jobs were refused."""

    message_id: str
    """The id that SQS gave the message."""
    queue: str
    """The name of the queue in the stage's options."""
    sender: str
    """The sender as SQS names it: `AROA…:session` of a role."""
    owner: str | None
    """The owner of the message. Null: the sender is unknown."""
    errors: list[Violation]
    """The broken rules. `sender` and `owner` stand for those of the message, `jobs[0].delay` for a field of a job in the body."""
    accepted: int
    """The number of the jobs of the batch that were created. The body has only those that were refused."""
    received: int
    """The number of deliveries of the message by the queue when it was refused."""
    sent_at: WrittenTime
    refused_at: WrittenTime
    cut: bool
    """True: the body is longer than 64 KB, and only its beginning is stored."""

    @classmethod
    def of(cls, letter: IntakeLetter, **others: Any) -> Json:
        message = letter.message
        errors = [{"field": field, "rule": rule} for field, rule in letter.errors]
        named = {"message_id": message.id, "queue": message.queue, "sender": message.sender, "sent_at": message.sent_at}
        return cls.from_record(letter, **named, errors=errors, received=message.receives, cut=letter.is_cut, **others)


class IntakeLetterDetailShape(IntakeLetterShape):
    """The same, with the body."""

    body: str
    """The body of the message."""

    @classmethod
    def of(cls, letter: IntakeLetter, **others: Any) -> Json:
        return super().of(letter, body=letter.message.body)


class IntakePageShape(ListShape):
    items: list[IntakeLetterShape]

    @classmethod
    def of(cls, letters: Sequence[IntakeLetter], cursor: str | None) -> Json:
        return cls.page([IntakeLetterShape.of(letter) for letter in letters], cursor)


class IntakeRetriedShape(Shape):
    accepted: int
    refused: int
    """The number of the jobs that were refused. If some were accepted, the dead letter now has only the refused ones."""
    results: list[ResultShape]
    """One result for each job of the body, in order."""


def results(items: Sequence[Submission | SchedulerError], made: Sequence[Accepted | Refusal | None]) -> list[Accepted | SchedulerError]:
    """The result of each job of a body. `made`: of the valid ones; none of them is None."""
    done = iter(made)
    ended = [item if isinstance(item, SchedulerError) else next(done) for item in items]
    return [each for each in ended if each is not None]
