"""Make jobs of the messages of a batch. Each message ends in one of three ways, whatever the others do:

- Its jobs are stored. A repeated delivery finds them: the message's id, or the item's own key, is the idempotency key.
- It breaks a rule, or one of its jobs does: a dead letter is stored, before the queue forgets the message.
- It must wait: the quota is used up, or a service refuses. It stays in the queue, and comes again after a growing time.
"""

import logging
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import NamedTuple

from scheduler.accounts.quota import QuotaGate
from scheduler.intake.senders import Refused, Senders
from scheduler.model.errors import Conflict, Invalid, SchedulerError, TooMany, Unavailable
from scheduler.model.intake import IntakeLetter, IntakeMessage, Violation, shortened
from scheduler.pipeline.direct_path import DirectPath
from scheduler.pipeline.submit import Accepted, Refusal, Submission, submit_all
from scheduler.storage.ports import Ports

FIRST_S, LONGEST_S = 2, 3_600  # the time until a message that must wait comes again; it doubles with each delivery
LISTED = 50  # broken rules in a letter; one more entry counts the others

log = logging.getLogger(__name__)

Item = Submission | SchedulerError  # of a message: a job to store, or why it is refused


class Parsed(NamedTuple):
    """The jobs of a message, and the text of a message with some of them only: those at these places. None: it has one job alone."""

    items: Sequence[Item]
    only: Callable[[Sequence[int]], str] | None = None


# Of a message, its owner, and the idempotency key of jobs that have none. Raises Invalid for a body that requests no jobs.
Read = Callable[[IntakeMessage, str, str], Parsed]
Submit = Callable[[Sequence[Submission]], Sequence[Accepted | Refusal | None]]  # of one owner: see `submit_all`


@dataclass(frozen=True, slots=True)
class Services:
    """The services that a process keeps from one batch to the next, and the reader of bodies."""

    senders: Senders
    quotas: QuotaGate
    read: Read
    direct: DirectPath | None = None


@dataclass(slots=True)
class Intake:
    """The result of a batch. `again`: the seconds until a message comes again, by its id; the queue may delete all others."""

    accepted: int = 0  # jobs
    refused: int = 0  # messages with a dead letter
    again: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Draft:
    message: IntakeMessage
    owner: str
    parsed: Parsed

    @property
    def submissions(self) -> list[Submission]:
        return [each for each in self.parsed.items if isinstance(each, Submission)]


def intake(messages: Sequence[IntakeMessage], ports: Ports, services: Services) -> Intake:
    """Process a batch."""
    done = Intake()
    drafts: list[_Draft] = []
    for message in _without_settled(messages, ports, done):
        with _alone(message, done):
            draft = _draft(message, ports, services, done)
            drafts += [draft] if draft else []
    drafts.sort(key=lambda draft: draft.owner)
    for _, of_owner in groupby(drafts, lambda draft: draft.owner):
        group = list(of_owner)
        try:
            results = iter(_submit(group, ports, services))
        except Unavailable:
            done.again |= {draft.message.id: pause_s(draft.message) for draft in group}
            continue
        except Exception:  # of one message perhaps: it must not stop the others
            log.exception("unexpected error with several messages: each is processed alone")
            results = None
        for draft in group:
            with _alone(draft.message, done):
                made = [next(results) for _ in draft.submissions] if results else _submit([draft], ports, services)
                _settle(draft, made, ports, done)
    return done


def pause_s(message: IntakeMessage, least_ms: int = 0) -> int:
    """The seconds until a message that must wait comes again. They differ by message, so that a backlog does not come back at once."""
    spread = zlib.crc32(f"{message.id}#{message.receives}".encode()) / 2**32
    doubled = FIRST_S << min(message.receives - 1, 20)
    return max(min(round(doubled * (0.5 + spread)), LONGEST_S), -(-least_ms // 1_000), 1)


def _without_settled(messages: Sequence[IntakeMessage], ports: Ports, done: Intake) -> list[IntakeMessage]:
    """The messages without those that have a dead letter: an earlier delivery stored it, and then failed to delete the message."""
    repeated = [message.id for message in messages if message.receives > 1]
    try:
        had = ports.intake_letters.had(repeated) if repeated else set()
    except Unavailable:
        done.again |= {message.id: pause_s(message) for message in messages if message.receives > 1}
        had = set(repeated)
    return [message for message in messages if message.id not in had]


def _draft(message: IntakeMessage, ports: Ports, services: Services, done: Intake) -> _Draft | None:
    """The jobs of a message within the quota of its owner; None if it has a dead letter now. Raises TooMany, Unavailable."""
    owner: str | None = None
    try:
        owner = services.senders.owner_of(message)
        parsed = services.read(message, owner, message.id)
    except Refused as error:
        _bury(message, error.owner, [error.violation], ports, done)
        return None
    except Invalid as error:
        _bury(message, owner, _listed([broken_rules(error)]), ports, done)
        return None
    draft = _Draft(message, owner, parsed)
    services.quotas.admit(owner, len(draft.submissions))
    return draft


def _submit(drafts: Sequence[_Draft], ports: Ports, services: Services) -> list[Accepted | Refusal | None]:
    submissions = [each for draft in drafts for each in draft.submissions]
    return submit_all(submissions, ports, direct=services.direct) if submissions else []


def _settle(draft: _Draft, made: Sequence[Accepted | Refusal | None], ports: Ports, done: Intake) -> None:
    """Count the jobs of a message, and store the letter of those that are refused. Raises Unavailable unless each job is decided."""
    if any(each is None for each in made):
        raise Unavailable
    remainder = remainder_of(draft.message, draft.parsed, made)
    if remainder is not None:
        message, errors = remainder
        _bury(message, draft.owner, errors, ports, done, accepted=_accepted(made))
    done.accepted += _accepted(made)


def remainder_of(
    message: IntakeMessage, parsed: Parsed, made: Sequence[Accepted | Refusal | None]
) -> tuple[IntakeMessage, list[Violation]] | None:
    """The message with its refused jobs only, and the rules that they break; None if none is refused. `made`: of the valid ones."""
    results = iter(made)
    ended = [each if isinstance(each, SchedulerError) else next(results) for each in parsed.items]
    refused = {place: each for place, each in enumerate(ended) if isinstance(each, SchedulerError)}
    if not refused:
        return None
    if parsed.only is None:
        return message, _listed(broken_rules(each) for each in refused.values())
    named = (broken_rules(error, f"jobs[{place}]", f"jobs[{number}]") for number, (place, error) in enumerate(refused.items()))
    return replace(message, body=parsed.only(list(refused))), _listed(named)


def broken_rules(error: SchedulerError, path: str = "", shown: str = "") -> list[Violation]:
    """The rules that a body breaks, or the item at this path. `shown`: the path of the item in the letter."""
    unnamed = "idempotency_key" if isinstance(error, Conflict) else "" if path else "body"
    found = []
    for detail in error.details or [{"field": unnamed, "rule": error.message}]:
        field = detail["field"].removeprefix(path)  # the errors of some rules name the item already
        found.append(Violation(f"{shown}.{field.removeprefix('.')}" if shown and field else field or shown, detail["rule"]))
    return found


def _listed(parts: Iterable[list[Violation]]) -> list[Violation]:
    found = [each for part in parts for each in part]
    more = len(found) - LISTED
    return found if more <= 1 else [*found[:LISTED], Violation("body", f"breaks {more:,} more rules")]


def _accepted(made: Sequence[Accepted | Refusal | None]) -> int:
    return sum(isinstance(each, Accepted) for each in made)


def _bury(message: IntakeMessage, owner: str | None, errors: Sequence[Violation], ports: Ports, done: Intake, *, accepted: int = 0) -> None:
    body, is_cut = shortened(message.body)
    letter = IntakeLetter(replace(message, body=body), tuple(errors), ports.clock.now(), owner, accepted, is_cut)
    ports.intake_letters.add(letter)
    done.refused += 1
    log.warning("a message is refused", extra={"message_id": message.id, "queue": message.queue, "owner": owner, "errors": errors[:3]})


@contextmanager
def _alone(message: IntakeMessage, done: Intake) -> Iterator[None]:
    """Note that a message comes again if it must wait, or if an error of ours stops it."""
    try:
        yield
    except TooMany as error:
        done.again[message.id] = pause_s(message, error.retry_after_ms)
    except Unavailable:
        done.again[message.id] = pause_s(message)
    except Exception:
        log.exception("unexpected error with a message", extra={"message_id": message.id})
        done.again[message.id] = pause_s(message)
