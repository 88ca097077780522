"""Tell the receivers of tasks what became of their runs: decide of each piece of news once, and send each notice to each receiver once.

Two steps, with the queue between them. What is decided is stored with what has to be sent because of it; whoever dies after that is made
good for by the message that comes again. A sending is taken by a lease and marked once it is done. Between an effect on the outside and
its mark there is a gap that nobody can close: who dies just there sends again, under the same id.
"""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from scheduler.model.errors import Unavailable
from scheduler.model.job import Failure, FailureKind, Result
from scheduler.model.notifications import Notifications
from scheduler.notify import text
from scheduler.notify.messages import Message
from scheduler.notify.policy import Decision, Mark, News, Outbox, Sending, Standing, WindowEnd, decide, digest
from scheduler.notify.text import Links
from scheduler.storage.ports import Notices, Ports
from scheduler.tasks import planning
from scheduler.tasks.task import Task

TRIES = 5  # a decision that meets another one begins anew
MOST_TRIES = 10  # of a sending; with the waits between them a bit over four hours
FIRST_WAIT_S, LONGEST_WAIT_S = 10, 3_600
CALL_S = 10  # that a receiver may take
LEASE_MS = 60_000  # longer than any call, so that whoever finds it over finds its holder dead
AGAIN_S = 5  # until a message comes again that the table or the queue refused
KEPT_ERROR = 500

log = logging.getLogger(__name__)


class Incoming(NamedTuple):
    """A message in hand; `name` is what it is reported by."""

    name: str
    message: Message


@dataclass(frozen=True, slots=True)
class Post:
    """Sends what a notice says: to an address `mail` (its payload and the id), to a URL `call` (of whom, its payload and the id)."""

    mail: Callable[[dict[str, object], str], Result]
    call: Callable[[str, dict[str, object], str], Result]
    links: Links = field(default_factory=Links)


@dataclass(slots=True)
class Told:
    """What became of a batch. `again`: messages to be put back, and for how many seconds."""

    decided: int = 0
    sent: int = 0
    failed: int = 0
    given_up: int = 0
    again: dict[str, int] = field(default_factory=dict)


def notify(batch: Sequence[Incoming], ports: Ports, *, post: Post, threads: Executor) -> Told:
    """Work a batch off. Receivers are called side by side; a slow one delays those of its batch by `CALL_S` at most."""
    told = Told()
    sendings = [(item, item.message) for item in batch if isinstance(item.message, Sending)]
    answers = [(item, threads.submit(_send, message, post, ports)) for item, message in sendings]
    for item in batch:
        if isinstance(item.message, News | WindowEnd):
            _count(item, _decide(item.message, ports), told)
    for item, answer in answers:
        _count(item, answer.result(), told)
    return told


class _Answer(NamedTuple):
    """What became of one message: `again` seconds until it has to come again, None: never."""

    what: str
    again: int | None = None


def _count(item: Incoming, answer: _Answer, told: Told) -> None:
    if answer.again is not None:
        told.again[item.name] = answer.again
    if answer.what:
        setattr(told, answer.what, getattr(told, answer.what) + 1)


def _decide(message: News | WindowEnd, ports: Ports) -> _Answer:
    """Decide, unless that was done, and send on what follows from it. Both again if either was refused: neither doubles anything."""
    try:
        for _ in range(TRIES):
            standing, outbox = ports.notices.read(message.task, message.id)
            if outbox is None:
                now = ports.clock.now()
                if isinstance(message, WindowEnd) and now < message.at:
                    return _Answer("", -(-(message.at - now) // 1_000))
                task = ports.tasks.get(message.task)
                if task is None or task.notifications is None:
                    return _Answer("")
                decision = _decision(standing, message, task.notifications, now)
                if decision is None or decision == Decision(standing or Standing(message.task), None):
                    return _Answer("")
                outbox = decision.outbox and _completed(decision.outbox, task, now)
                if not ports.notices.decide(standing, decision.standing, message.id, outbox, now):
                    continue
            following: list[Message] = [] if outbox is None else [*outbox.sendings(), *outbox.ends]
            if following:
                ports.notices.send(following, ports.clock.now())
            return _Answer("decided")
    except Unavailable:
        pass
    return _Answer("", AGAIN_S)


def _decision(standing: Standing | None, message: News | WindowEnd, wanted: Notifications, now: int) -> Decision | None:
    if isinstance(message, News):
        return decide(standing or Standing(message.task), message, wanted, now)
    return None if standing is None else digest(standing, message, wanted, now)


def _completed(outbox: Outbox, task: Task, now: int) -> Outbox:
    """With what the task says: its name, and when it runs next."""
    runs = planning.next_runs(task, now, 1) if outbox.notices else []
    next_run = runs[0].at if runs else None
    return replace(outbox, notices=tuple(replace(notice, name=task.name, next_run=next_run) for notice in outbox.notices))


def _send(sending: Sending, post: Post, ports: Ports) -> _Answer:
    """One try at one sending, by whoever has its lease."""
    task = sending.notice.task
    try:
        known, now = ports.notices.mark(task, sending.id), ports.clock.now()
        if known is not None and known.done_at is not None:
            return _Answer("")
        if known is not None and known.lease_until > now:
            return _Answer("", -(-(known.lease_until - now) // 1_000))
        tries = 1 if known is None else known.tries + 1
        if not ports.notices.set_mark(known, Mark(task, sending.id, now + LEASE_MS, tries), now):
            return _Answer("", AGAIN_S)
    except Unavailable:
        return _Answer("", AGAIN_S)
    taken = Mark(task, sending.id, now + LEASE_MS, tries, version=1 if known is None else known.version + 1)
    return _settled(taken, _posted(sending, post), ports.notices, ports.clock.now())


def _posted(sending: Sending, post: Post) -> Result:
    notice, to = sending.notice, sending.receiver
    try:
        if isinstance(to, str):
            return post.mail({"to": [to], **text.mail(notice, post.links)}, sending.id)
        payload = {"method": "POST", "url": to.url, "body": text.webhook(notice, post.links)}
        more = {"signing_secret": to.signing_secret, "timeout_seconds": CALL_S}
        return post.call(notice.task.owner, payload | more, sending.id)
    except Exception as error:  # a bug of ours must not stop the others; what it says could hold a secret
        log.error("a notice could not be sent", extra={"sending": sending.id, "error": type(error).__name__})
        return Result(failure=Failure(FailureKind.RETRYABLE, f"it could not be sent: {type(error).__name__}"))


def _settled(taken: Mark, result: Result, notices: Notices, now: int) -> _Answer:
    """Mark what became of it. If that is refused after it went well, the message goes all the same: nobody sends it again then."""
    failure = result.failure
    error = None if failure is None else f"{failure.kind}: {failure.message}"[:KEPT_ERROR]
    over = failure is None or failure.kind is FailureKind.PERMANENT or taken.tries >= MOST_TRIES
    after = replace(taken, lease_until=0, done_at=now if over else None, error=error)
    try:
        notices.set_mark(taken, after, now)
    except Unavailable:
        if failure is not None:
            return _Answer("failed", LEASE_MS // 1_000)
    context = {"sending": taken.id, "user_id": taken.task.owner, "task_id": taken.task.id, "tries": taken.tries}
    if failure is None:
        log.info("notice sent", extra=context)
        return _Answer("sent")
    if over:
        log.warning("notice given up", extra=context | {"error": error})
        return _Answer("given_up")
    return _Answer("failed", wait_s(taken.tries, failure.retry_after_ms))


def wait_s(tries: int, asked_ms: int | None = None) -> int:
    """Seconds until a sending is tried again after so many tries; as its receiver asked, if that is longer.

    >>> [wait_s(tries) for tries in range(1, 10)]
    [10, 30, 90, 270, 810, 2430, 3600, 3600, 3600]
    """
    usual = min(FIRST_WAIT_S * int(3 ** (tries - 1)), LONGEST_WAIT_S)
    return usual if asked_ms is None else min(max(usual, -(-asked_ms // 1_000)), LONGEST_WAIT_S)
