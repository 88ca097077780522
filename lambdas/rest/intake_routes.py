"""Routes of the dead letters of the intake queues: messages that became no jobs."""

import json
from typing import Annotated, Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Query

from lambdas import _runtime
from lambdas.rest import access
from lambdas.rest.access import needs
from lambdas.rest.envelope import answer
from lambdas.rest.intake_models import (
    IntakeLetterDetailShape,
    IntakeLetterShape,
    IntakePageShape,
    IntakeRetriedShape,
    IntakeRetry,
    results,
)
from lambdas.rest.models import ResultShape
from lambdas.rest.parameters import Cursor, Limit, position
from lambdas.rest.resolver import Router, answers
from lambdas.rest.shapes import Answer
from scheduler.accounts.access import Need
from scheduler.intake import retry as retrying
from scheduler.model.errors import Conflict, NotFound, SchedulerError
from scheduler.model.intake import IntakeLetter

LETTERS = "/api/v1/intake/dead-letters"
RETRY = f"{LETTERS}/<message_id>/retry"
NONE = "this stage has no intake queue: its operators deploy one with the option intake"
CURSOR = r"[0-9A-Z]{10}#[A-Za-z0-9-]{1,80}"
Unknown = Annotated[bool, Query(description="those of unknown senders, for operators and administrators")]
EXAMPLES: dict[str, Any] = {
    "corrected": {"summary": "With a corrected body", "value": {"body": {"delay": "30m", "message": "order 17 has expired"}}},
}

router = Router()


@router.get(
    LETTERS,
    summary="List dead letters of the intake",
    description="Messages of the intake queues of which no job was made, the last sent first. 404: the stage has no intake queue.",
    tags=["intake"],
    responses=answers(200, Answer[IntakePageShape], errors=(400, 401, 403, 404, 503)),
)
@needs(Need.JOBS_READ, foreign=True)
def list_intake_dead_letters(unknown: Unknown = False, limit: Limit = 20, cursor: Cursor = None) -> Response[str]:
    ports = _runtime.api()
    if not ports.rules.intake:
        raise NotFound(NONE)
    if unknown:
        access.check(router.caller, Need.OVERSEE)
    letters, after = ports.intake_letters.page(None if unknown else router.owner, after=position(cursor, CURSOR), limit=limit)
    return answer(IntakePageShape.of(letters, after))


@router.get(
    f"{LETTERS}/<message_id>",
    summary="Get a dead letter of the intake",
    tags=["intake"],
    responses=answers(200, Answer[IntakeLetterDetailShape], errors=(401, 404, 503)),
)
@needs(Need.JOBS_READ, foreign=True)
def get_intake_dead_letter(message_id: str) -> Response[str]:
    return answer(IntakeLetterDetailShape.of(_found(message_id, Need.OVERSEE)))


@router.post(
    RETRY,
    summary="Retry a dead letter of the intake",
    description=(
        "Creates the jobs of the message, or of a corrected `body`, by the rules of `POST /jobs`. A delay is counted from the sending of "
        "the message. 200: all were accepted, and the dead letter is gone. 207: some were refused, and the dead letter has these. "
        "If none is accepted, the dead letter is unchanged. Idempotent."
    ),
    tags=["intake"],
    responses=answers(200, Answer[IntakeRetriedShape], 207, errors=(400, 401, 403, 404, 409, 413, 415, 429, 503)),
)
@needs(Need.JOBS_WRITE, foreign=True, action="intake.retry")
def retry_intake_dead_letter(message_id: str, body: Annotated[IntakeRetry, Body(openapi_examples=EXAMPLES)]) -> Response[str]:
    ports = _runtime.api()
    letter = _found(message_id, Need.ADMINISTER)
    corrected = None if body.body is None else json.dumps(body.body, ensure_ascii=False, separators=(",", ":"))
    retried = retrying.retry(letter, corrected, ports, ports.intake)
    ended = results(retried.items, retried.made)
    if retried.is_single and isinstance(ended[0], SchedulerError):
        raise ended[0]
    refused = sum(isinstance(each, SchedulerError) for each in ended)
    shown = [ResultShape.of(place, each) for place, each in enumerate(ended)]
    made = IntakeRetriedShape.from_record(None, accepted=len(ended) - refused, refused=refused, results=shown)
    return answer(made, 207 if refused else 200)


@router.delete(
    f"{LETTERS}/<message_id>",
    summary="Delete a dead letter of the intake",
    tags=["intake"],
    description="Returns the deleted one, without its body.",
    responses=answers(200, Answer[IntakeLetterShape], errors=(401, 404, 409, 503)),
)
@needs(Need.JOBS_WRITE, foreign=True, action="intake.delete")
def delete_intake_dead_letter(message_id: str) -> Response[str]:
    letter = _found(message_id, Need.ADMINISTER)
    if not _runtime.api().intake_letters.remove(letter):
        raise Conflict("the dead letter was changed meanwhile: read it again")
    return answer(IntakeLetterShape.of(letter))


def _found(message_id: str, need: Need) -> IntakeLetter:
    """The letter of a message of the owner. `need`: of a caller for a letter of an unknown sender. Raises NotFound."""
    letter = _runtime.api().intake_letters.get(message_id)
    visible = letter is not None and (router.caller.may(need) if letter.owner is None else letter.owner == router.owner)
    if letter is None or not visible:
        raise NotFound("there is no such dead letter")
    return letter
