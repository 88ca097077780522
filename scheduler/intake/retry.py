"""Retry the dead letter of a message, perhaps with a corrected body, by the validation of every message."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from scheduler.intake.intake import Item, Services, remainder_of
from scheduler.intake.senders import Refused
from scheduler.model.errors import Conflict, Forbidden, Invalid, Unavailable
from scheduler.model.intake import IntakeLetter, IntakeMessage, Violation, shortened
from scheduler.pipeline.submit import Accepted, Refusal, Submission, submit_all
from scheduler.storage.ports import Ports


@dataclass(frozen=True, slots=True)
class Retried:
    """The items of the message, and what became of the valid ones, in order."""

    items: list[Item]
    made: list[Accepted | Refusal | None]
    is_single: bool  # the body has one job, and is no batch


def retry(letter: IntakeLetter, body: str | None, ports: Ports, services: Services) -> Retried:
    """Create the jobs of a letter; then it is gone, or has only the jobs that are refused.

    `body`: instead of the stored one. A repeated call creates no job twice. If no job is created, the letter is unchanged.
    Raises Forbidden for a sender that may create none, Invalid, TooMany, Conflict, Unavailable.
    """
    if body is None and letter.is_cut:
        raise Invalid.field("body", "is required: the end of the stored one is missing")
    message = letter.message if body is None else replace(letter.message, body=body)
    try:
        if letter.owner is None:
            owner = services.senders.owner_of(message)
        else:  # the caller may create its jobs
            services.senders.check(owner := letter.owner)
    except Refused as error:
        raise Forbidden(str(error)) from None
    parsed = services.read(message, owner, _key(message))
    submissions = [each for each in parsed.items if isinstance(each, Submission)]
    services.quotas.admit(owner, len(submissions))
    made = submit_all(submissions, ports, direct=services.direct) if submissions else []
    if any(each is None for each in made):
        raise Unavailable
    accepted = sum(isinstance(each, Accepted) for each in made)
    if accepted and not _replace(letter, remainder_of(message, parsed, made), accepted, ports):
        raise Conflict("the dead letter was changed or removed meanwhile; its jobs are created")
    return Retried(list(parsed.items), made, parsed.only is None)


def _replace(letter: IntakeLetter, rest: tuple[IntakeMessage, Sequence[Violation]] | None, accepted: int, ports: Ports) -> bool:
    """Remove the letter, or keep it for the refused jobs. False if it was changed or removed since."""
    if rest is None:
        return ports.intake_letters.remove(letter)
    message, errors = rest
    body, is_cut = shortened(message.body)
    after = replace(letter, message=replace(message, body=body), errors=tuple(errors), is_cut=is_cut)
    return ports.intake_letters.change(letter, replace(after, accepted=letter.accepted + accepted, version=letter.version + 1))


def _key(message: IntakeMessage) -> str:
    """The idempotency key of a retry: the same for the same body, and another than that of the message's own deliveries.

    Another body is another request, and the jobs of a batch have other places in it.
    """
    return f"{message.id}~{hashlib.sha256(message.body.encode(errors='replace')).hexdigest()[:16]}"
