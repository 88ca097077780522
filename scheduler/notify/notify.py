"""Notify the receivers of tasks and of one-time jobs: decide once for each piece of news, and send each notice once to each receiver.

There are two steps, with the queue between them. A decision is stored together with its outbox: the notices that follow from it. If notify
ends after that, the message is delivered again and the outbox is sent. A sending is leased before its receiver is called, and its delivery
record is closed afterwards. A gap between the call and the record is unavoidable: if notify ends there, the notice is sent again under the
same id.
"""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from scheduler.model.errors import Unavailable, Unreadable
from scheduler.model.job import Failure, FailureKind, Job, JobKey, Result
from scheduler.model.notifications import Notifications, WebhookFormat
from scheduler.notify import text
from scheduler.notify.messages import Message
from scheduler.notify.policy import Decision, DeliveryRecord, News, NotificationState, Outbox, Sending, WindowEnd, decide, digest
from scheduler.notify.text import Links
from scheduler.storage.ports import Notices, Ports
from scheduler.tasks import planning
from scheduler.tasks.task import Task

TRIES = 5  # how often a decision that collides with another one is repeated
MOST_TRIES = 10  # of a sending; with the waits between them they take a bit over four hours
FIRST_WAIT_S, LONGEST_WAIT_S = 10, 3_600
CALL_S = 10  # time-out of a call of a receiver
LEASE_MS = 60_000  # longer than any call: after the end of a lease, no process sends under it
AGAIN_S = 5  # until a message is delivered again after the table or the queue refused a call
KEPT_ERROR = 500  # characters

log = logging.getLogger(__name__)


class Incoming(NamedTuple):
    """A received message; `name` identifies it in the result of the batch."""

    name: str
    message: Message


@dataclass(frozen=True, slots=True)
class Post:
    """Sends notices: `mail` (payload, id) to an e-mail address, `call` (owner, payload, id) to a URL."""

    mail: Callable[[dict[str, object], str], Result]
    call: Callable[[str, dict[str, object], str], Result]
    links: Links = field(default_factory=Links)


@dataclass(slots=True)
class BatchResult:
    """The result of a batch. `again`: the messages to deliver again, with the delay in seconds."""

    decided: int = 0
    sent: int = 0
    failed: int = 0
    given_up: int = 0
    again: dict[str, int] = field(default_factory=dict)


def notify(batch: Sequence[Incoming], ports: Ports, *, post: Post, threads: Executor) -> BatchResult:
    """Process a batch. Receivers are called in parallel; a slow one delays the others of its batch by at most `CALL_S`."""
    result = BatchResult()
    sendings = [(item, item.message) for item in batch if isinstance(item.message, Sending)]
    answers = [(item, threads.submit(_send, message, post, ports)) for item, message in sendings]
    for item in batch:
        if isinstance(item.message, News | WindowEnd):
            _count(item, _decide(item.message, ports), result)
    for item, answer in answers:
        _count(item, answer.result(), result)
    return result


class _Answer(NamedTuple):
    """The result of one message: the batch's counter to raise, and the seconds until its next delivery (None: never)."""

    what: str
    again: int | None = None


def _count(item: Incoming, answer: _Answer, result: BatchResult) -> None:
    if answer.again is not None:
        result.again[item.name] = answer.again
    if answer.what:
        setattr(result, answer.what, getattr(result, answer.what) + 1)


def _decide(message: News | WindowEnd, ports: Ports) -> _Answer:
    """Decide, unless that is done already, and send the outbox. If either is refused, both are repeated; both are idempotent."""
    try:
        for _ in range(TRIES):
            state, outbox = ports.notices.read(message.task, message.id)
            if outbox is None:
                now = ports.clock.now()
                if isinstance(message, WindowEnd) and now < message.at:
                    return _Answer("", -(-(message.at - now) // 1_000))
                told_of = ports.jobs.get(JobKey(*message.task)) if message.alone else ports.tasks.get(message.task)
                if told_of is None or told_of.notifications is None:
                    return _Answer("")
                decision = _decision(state, message, told_of.notifications, now)
                if decision is None or decision == Decision(state or NotificationState(message.task), None):
                    return _Answer("")
                outbox = decision.outbox and _completed(decision.outbox, told_of, now)
                if not ports.notices.decide(state, decision.state, message.id, outbox, now):
                    continue
            following: list[Message] = [] if outbox is None else [*outbox.sendings(), *outbox.ends]
            if following:
                ports.notices.send(following, ports.clock.now())
            return _Answer("decided")
    except (Unavailable, Unreadable):
        pass
    return _Answer("", AGAIN_S)


def _decision(state: NotificationState | None, message: News | WindowEnd, wanted: Notifications, now: int) -> Decision | None:
    if isinstance(message, News):
        return decide(state or NotificationState(message.task), message, wanted, now)
    return None if state is None else digest(state, message, wanted, now)


def _completed(outbox: Outbox, task: Task | Job, now: int) -> Outbox:
    """The outbox with the name and the next run of the task in each notice. A one-time job has neither."""
    if isinstance(task, Job):
        return outbox
    runs = planning.next_runs(task, now, 1) if outbox.notices else []
    next_run = runs[0].at if runs else None
    return replace(outbox, notices=tuple(replace(notice, name=task.name, next_run=next_run) for notice in outbox.notices))


def _send(sending: Sending, post: Post, ports: Ports) -> _Answer:
    """Try one sending once, under its lease."""
    task = sending.notice.task
    try:
        known, now = ports.notices.delivery(task, sending.id), ports.clock.now()
        if known is not None and known.done_at is not None:
            return _Answer("")
        if known is not None and known.lease_until > now:
            return _Answer("", -(-(known.lease_until - now) // 1_000))
        tries = 1 if known is None else known.tries + 1
        if not ports.notices.set_delivery(known, DeliveryRecord(task, sending.id, now + LEASE_MS, tries), now):
            return _Answer("", AGAIN_S)
    except Unavailable:
        return _Answer("", AGAIN_S)
    taken = DeliveryRecord(task, sending.id, now + LEASE_MS, tries, version=1 if known is None else known.version + 1)
    return _settled(taken, _posted(sending, post), ports.notices, ports.clock.now())


def _posted(sending: Sending, post: Post) -> Result:
    notice, to = sending.notice, sending.receiver
    try:
        if isinstance(to, str):
            return post.mail({"to": [to], **text.mail(notice, post.links)}, sending.id)
        body = text.slack(notice, post.links) if to.format is WebhookFormat.SLACK else text.webhook(notice, post.links)
        signed = {} if to.signing_secret is None else {"signing_secret": to.signing_secret}
        payload = {"method": "POST", "url": to.url, "body": body, "timeout_seconds": CALL_S}
        return post.call(notice.task.owner, payload | signed, sending.id)
    except Exception as error:  # a bug must not stop the other sendings; its text could contain a secret
        log.error("notice not sent: unexpected error", extra={"sending": sending.id, "error": type(error).__name__})
        return Result(failure=Failure(FailureKind.RETRYABLE, f"it could not be sent: {type(error).__name__}"))


def _settled(taken: DeliveryRecord, result: Result, notices: Notices, now: int) -> _Answer:
    """Record the result of a sending. If the table refuses that after a success, the message is still deleted: it is not sent again."""
    failure = result.failure
    error = None if failure is None else f"{failure.kind}: {failure.message}"[:KEPT_ERROR]
    over = failure is None or failure.kind is FailureKind.PERMANENT or taken.tries >= MOST_TRIES
    after = replace(taken, lease_until=0, done_at=now if over else None, error=error)
    try:
        notices.set_delivery(taken, after, now)
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
    """The seconds until a sending is tried again after `tries` tries; the delay that its receiver requested, if that is longer.

    >>> [wait_s(tries) for tries in range(1, 10)]
    [10, 30, 90, 270, 810, 2430, 3600, 3600, 3600]
    """
    backoff = min(FIRST_WAIT_S * int(3 ** (tries - 1)), LONGEST_WAIT_S)
    return backoff if asked_ms is None else min(max(backoff, -(-asked_ms // 1_000)), LONGEST_WAIT_S)
