"""Notify the receivers of tasks and of one-time jobs: decide once for each piece of news, and send each notice once to each receiver.

There are two steps, with the queue between them. A decision is stored together with its outbox: the notices that follow from it. If notify
ends after that, the message is delivered again and the outbox is sent. A sending is leased before its receiver is called, and its delivery
record is closed afterwards. A gap between the call and the record is unavoidable: if notify ends there, the notice is sent again under the
same id.

A batch does not wait for receivers that hang. After `PATIENCE_MS` it leaves their calls behind, and a later batch of the same process
reports their results. Whether a call may begin is decided by `scheduler.notify.calls`.
"""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from scheduler.model.alerts import Alert
from scheduler.model.errors import Unavailable, Unreadable
from scheduler.model.job import Failure, FailureKind, Job, JobKey, Result
from scheduler.model.notice import DeliveryRecord, News, Notice, NoticeMessage, NotificationState, Outbox, Sending, WindowEnd
from scheduler.model.notifications import Named, Notifications, Occasion, Webhook
from scheduler.model.receiver import Health, NamedReceiver, PagerDuty
from scheduler.model.task import Task
from scheduler.notify import formats, text
from scheduler.notify.calls import Answer, Call, Calls, receiver_of
from scheduler.notify.policy import AWAITED_MS, INCIDENT, Decision, awaited, decide, digest, is_awaited, is_over, over
from scheduler.notify.receivers import with_default
from scheduler.notify.text import Links
from scheduler.storage.ports import Notices, Ports
from scheduler.targets import called
from scheduler.tasks import planning, watch

TRIES = 5  # how often a decision that collides with another one is repeated
MOST_TRIES = 10  # of a sending; with the waits between them they take a bit over four hours
FIRST_WAIT_S, LONGEST_WAIT_S = 10, 3_600
FIRST_CHECK_S, LONGEST_CHECK_S = 2, 300  # of a recovery, for the first try of the notice of failure
CALL_S = 10  # time-out of a call of a receiver
LEASE_MS = 60_000  # longer than any call: after the end of a lease, no process sends under it
REPEATED_MS = 120_000  # after its lease: the queue delivers the message of a process that ended again after two minutes
PATIENCE_MS, STEP_MS = 300, 10  # how long a batch waits for its calls, and how often it checks them
GIVE_UP_MS = AWAITED_MS  # a sending that has no place is given up this long after its message was sent
AGAIN_S = 5  # until a message is delivered again after the table or the queue refused a call
LONGEST_ERROR = 500  # characters
OVER = "its incident is over, and the notice of recovery tells of it"
DELETED = "its receiver was deleted"
OFF = "its receiver has refused too many notices: test it, or replace it"

log = logging.getLogger(__name__)


class Incoming(NamedTuple):
    """A received message; `name` identifies it in the result of the batch."""

    name: str
    message: NoticeMessage
    sent_at: int | None = None  # None: unknown


@dataclass(frozen=True, slots=True)
class Post:
    """Sends notices (owner, payload, id): `mail` to an e-mail address, `call` to a URL. Lives as long as the process."""

    mail: Callable[[str, dict[str, object], str], Result]
    call: Callable[[str, dict[str, object], str], Result]
    links: Links = field(default_factory=Links)
    calls: Calls = field(default_factory=Calls)


@dataclass(slots=True)
class BatchResult:
    """The result of a batch. `again`: the messages to deliver again, with the delay in seconds.

    `ended`: the messages of earlier batches whose calls were left behind and have ended; with the delay, None if nothing is left to do.
    Until then `again` names them with a delay that exceeds the call.
    """

    decided: int = 0
    sent: int = 0
    failed: int = 0
    undelivered: int = 0
    again: dict[str, int] = field(default_factory=dict)
    ended: dict[str, int | None] = field(default_factory=dict)


def notify(batch: Sequence[Incoming], ports: Ports, *, post: Post, threads: Executor) -> BatchResult:
    """Process a batch. Receivers are called in parallel; the batch waits for them for at most `PATIENCE_MS`."""
    result, begun = BatchResult(), ports.clock.monotonic()
    sendings = _Sendings(ports, post, threads)
    waiting = sendings.begin([item for item in batch if isinstance(item.message, Sending)], result)
    for item in batch:
        if isinstance(item.message, News | WindowEnd):
            _count(item.name, _decide(item.message, ports), result)
    while (waiting or sendings.in_progress) and ports.clock.monotonic() < begun + PATIENCE_MS:
        ports.clock.sleep_until(ports.clock.now() + STEP_MS)
        waiting = sendings.begin(waiting, result)
    for item in waiting:
        sendings.defer(item, result)
    sendings.leave(result)
    return result


def _count(name: str, answer: Answer, result: BatchResult) -> None:
    if answer.again is not None:
        result.again[name] = answer.again
    _increment(answer.what, result)


def _increment(counter: str, result: BatchResult) -> None:
    if counter:
        setattr(result, counter, getattr(result, counter) + 1)


@dataclass(slots=True)
class _Sendings:
    """The sendings of one batch."""

    ports: Ports
    post: Post
    threads: Executor
    begun: list[tuple[Call, "Future[Answer]"]] = field(default_factory=list)

    @property
    def in_progress(self) -> bool:
        return not all(call.is_over for call, _ in self.begun)

    def begin(self, items: Sequence[Incoming], result: BatchResult) -> list[Incoming]:
        """Begin the sendings that have a place, and defer those to slow receivers. Return the others: a place may become free soon."""
        waiting = []
        for item in items:
            assert isinstance(item.message, Sending)
            receiver, now = receiver_of(item.message), self.ports.clock.monotonic()
            call = self.post.calls.begin(item.name, receiver, now)
            if call is not None:
                self.begun.append((call, self.threads.submit(_run, call, item.message, self.post, self.ports)))
            elif self.post.calls.is_paced(receiver) or self.post.calls.is_slow(receiver, now):
                self.defer(item, result)
            else:
                waiting.append(item)
        return waiting

    def defer(self, item: Incoming, result: BatchResult) -> None:
        """Have the message delivered again when it may have a place. One that has waited for hours is given up: others wait behind it."""
        assert isinstance(item.message, Sending)
        sending, clock = item.message, self.ports.clock
        if item.sent_at is not None and clock.now() - item.sent_at >= GIVE_UP_MS:
            result.undelivered += 1
            context = {"sending": sending.id, "user_id": sending.notice.task.owner, "task_id": sending.notice.task.id}
            log.warning("notice given up", extra=context | {"error": "its owner's receivers answer too slowly"})
        else:
            result.again[item.name] = self.post.calls.retry_in_s(receiver_of(sending), clock.monotonic())

    def leave(self, result: BatchResult) -> None:
        """Count the calls that have ended, also those that earlier batches left behind, and leave the others behind."""
        for call, answer in self.begun:
            if self.post.calls.leave(call):
                result.again[call.name] = CALL_S + wait_s(call.tries)
            else:
                _count(call.name, answer.result(), result)
        for name, (what, again) in self.post.calls.take_late():
            result.ended[name] = again
            _increment(what, result)


def _run(call: Call, sending: Sending, post: Post, ports: Ports) -> Answer:
    """Send in a thread, and give the place back."""
    answer = Answer("", LEASE_MS // 1_000)
    try:
        answer = _send(call, sending, post, ports)
    except Exception as error:  # it must not stop the rest of the batch; its text could contain a secret
        log.error("notice not processed: unexpected error", extra={"sending": sending.id, "error": type(error).__name__})
    finally:
        post.calls.end(call, answer)
    return answer


def _decide(message: News | WindowEnd, ports: Ports) -> Answer:
    """Decide, unless that is done already, and send the outbox. If either is refused, both are repeated; both are idempotent."""
    try:
        for _ in range(TRIES):
            state, outbox = ports.notices.read(message.task, message.id)
            if outbox is None:
                now = ports.clock.now()
                if isinstance(message, WindowEnd) and now < message.at:
                    return Answer("", -(-(message.at - now) // 1_000))
                subject = ports.jobs.get(JobKey(*message.task)) if message.alone else ports.tasks.get(message.task)
                if subject is None or subject.notifications is None or not _applies(message, subject, state, ports):
                    return Answer("")
                edited_at = subject.updated_at if isinstance(subject, Task) else 0
                notifications = with_default(subject.notifications, message.task.owner, ports)
                decision = _decision(state, message, notifications, now, edited_at)
                if decision is None or decision == Decision(state or NotificationState(message.task), None):
                    return Answer("")
                outbox = decision.outbox and _completed(decision.outbox, subject, now)
                if not ports.notices.decide(state, decision.state, message.id, outbox, now):
                    continue
            following: list[NoticeMessage] = [] if outbox is None else [*outbox.sendings(), *outbox.ends]
            if following:
                ports.notices.send(following, ports.clock.now())
            if (ended := _already_over(message, ports)) is not None:
                return _decide(ended, ports)
            return Answer("decided")
    except (Unavailable, Unreadable):
        pass
    except Exception as error:  # as in `_run`; a decision knows no secret, and operators need to see a denied call
        log.error("notice not decided: unexpected error", extra={"message_id": message.id, "error": repr(error)})
    return Answer("", AGAIN_S)


def _applies(message: News | WindowEnd, subject: Task | Job, state: NotificationState | None, ports: Ports) -> bool:
    """Whether the news of an alert is about a rule that the task still has, and the news of a start about an incident, and true.

    A gate may have requeued the run just after an executor claimed it.
    """
    if not isinstance(message, News) or (message.alert is None and not message.watched):
        return True
    if not isinstance(subject, Task):
        return False
    if message.alert is not None:
        alerts = watch.rules([subject], ports).get(subject.key)
        return alerts is not None and message.alert in alerts.kinds
    if state is None or not state.incidents:
        return False
    if message.ended is not None:
        return True
    job = ports.jobs.get(JobKey(message.task.owner, message.job))
    return job is not None and over(job, Alert.LATE, ports.clock.now()) is not None


def _already_over(message: News | WindowEnd, ports: Ports) -> News | None:
    """The news that the run breaks the rule no longer, whose own message may have come before that of the alert."""
    if not isinstance(message, News) or message.alert in (None, Alert.MISSED):
        return None
    assert message.alert is not None
    job = ports.jobs.get(JobKey(message.task.owner, message.job))
    return None if job is None else over(job, message.alert, ports.clock.now())


def _decision(
    state: NotificationState | None, message: News | WindowEnd, notifications: Notifications, now: int, edited_at: int
) -> Decision | None:
    if isinstance(message, News):
        return decide(state or NotificationState(message.task), message, notifications, now, edited_at=edited_at)
    return None if state is None else digest(state, message, notifications, now)


def _completed(outbox: Outbox, task: Task | Job, now: int) -> Outbox:
    """The outbox with the name, the next run and the time zone of the task in each notice. Of a one-time job: its key, or what it calls."""
    if isinstance(task, Job):
        name = task.spec.key or called.calls(task.spec) or ""
        return replace(outbox, notices=tuple(replace(notice, name=name) for notice in outbox.notices))
    runs = planning.next_runs(task, now, 1) if outbox.notices else []
    next_run = runs[0].at if runs else None
    zone = "UTC" if task.schedule is None else task.schedule.spec.zone
    notices = (replace(notice, name=task.name, next_run=next_run, zone=zone) for notice in outbox.notices)
    return replace(outbox, notices=tuple(notices))


def _send(call: Call, sending: Sending, post: Post, ports: Ports) -> Answer:
    """Try one sending once, under its lease."""
    task = sending.notice.task
    try:
        known, now = ports.notices.delivery(task, sending.id), ports.clock.now()
        if known is not None and known.done_at is not None:
            return Answer("")
        if known is not None and known.lease_until > now:
            return Answer("", -(-(known.lease_until - now) // 1_000))
        tries = 1 if known is None else known.tries + 1
        state = ports.notices.read(task, sending.id)[0] if sending.notice.occasion in (*INCIDENT, Occasion.RECOVERY) else None
        if known is None and (wait := _wait_for_failures(sending, state, ports.notices, now)) is not None:
            return Answer("", wait)
        if is_over(sending.notice, state) and not (_is_first_try(known, now) and is_awaited(sending.notice, state, now)):
            record = known or DeliveryRecord(task, sending.id)
            ports.notices.set_delivery(known, replace(record, lease_until=0, done_at=now, error=OVER), now)
            log.info("notice dropped", extra={"sending": sending.id, "user_id": task.owner, "task_id": task.id, "reason": OVER})
            return Answer("")
        named = ports.receivers.find(task.owner, sending.receiver.name) if isinstance(sending.receiver, Named) else None
        if (reason := _unusable(sending, named)) is not None:
            record = known or DeliveryRecord(task, sending.id)
            ports.notices.set_delivery(known, replace(record, lease_until=0, done_at=now, error=reason), now)
            log.warning("notice given up", extra=_context(record) | {"error": reason})
            return Answer("undelivered")
        if not ports.notices.set_delivery(known, DeliveryRecord(task, sending.id, now + LEASE_MS, tries), now):
            return Answer("", AGAIN_S)
    except (Unavailable, Unreadable):
        return Answer("", AGAIN_S)
    taken = DeliveryRecord(task, sending.id, now + LEASE_MS, tries, version=1 if known is None else known.version + 1)
    call.tries, call.called_at = tries, ports.clock.monotonic()
    posted = _posted(sending, named, post)
    failure = posted.failure
    throttled = (failure.retry_after_ms or 0) if failure is not None and failure.kind is FailureKind.THROTTLED else None
    post.calls.answered(call, ports.clock.monotonic(), throttled)
    now, over = ports.clock.now(), _is_over(taken, posted, sending.notice)
    if named is not None and over:
        _note(named, posted, sending.notice, ports, now)
    answer = _settled(taken, posted, ports.notices, now, over=over)
    if throttled is None or answer.again is None:
        return answer
    return Answer(answer.what, max(-(-throttled // 1_000), post.calls.retry_in_s(call.receiver, ports.clock.monotonic())))


def _unusable(sending: Sending, named: NamedReceiver | None) -> str | None:
    """The reason why the named receiver of a sending is not called; None: it may be called, or the sending has none."""
    if not isinstance(sending.receiver, Named):
        return None
    if named is None:
        return DELETED
    return OFF if named.is_off and not sending.notice.test else None


def _is_over(taken: DeliveryRecord, result: Result, notice: Notice) -> bool:
    """Whether the sending is not tried again. A test is tried once: its owner waits for the result."""
    failure = result.failure
    return failure is None or failure.kind is FailureKind.PERMANENT or taken.tries >= MOST_TRIES or notice.test


def _note(named: NamedReceiver, result: Result, notice: Notice, ports: Ports, now: int) -> None:
    """Record how a named receiver answered, if that is news of it. It is no part of the delivery: a refusal by the table is ignored."""
    if (health := health_after(named.health, result, now, test=notice.test)) != named.health:
        with suppress(Unavailable):
            ports.receivers.note(named, health)


def health_after(health: Health, result: Result, now: int, *, test: bool) -> Health:
    """The health of a receiver after it accepted a notice, or after the notice was given up."""
    failure = result.failure
    if failure is None:
        return Health(tested_at=now if test else health.tested_at)
    refusals = health.refusals + (failure.kind is FailureKind.PERMANENT)
    return replace(health, refusals=refusals, error=failure.message[:LONGEST_ERROR], failed_at=now)


def _wait_for_failures(sending: Sending, state: NotificationState | None, notices: Notices, now: int) -> int | None:
    """The seconds until a recovery is tried, as its receiver must get the notices of failure before it. None: it may be sent.

    They have their first try before it; after it, a further try of them is dropped.
    """
    if sending.notice.alert is not None:
        return _wait_for_former(sending, notices, now)
    if sending.notice.occasion is not Occasion.RECOVERY:
        return None
    for occasion, window in awaited(state, now).items():
        outbox = notices.read(sending.notice.task, window.decision)[1] or Outbox()
        for other in outbox.sendings():
            notice = other.notice
            if notice.occasion is occasion and notice.news.at <= sending.notice.news.at and other.receiver == sending.receiver:
                known = notices.delivery(notice.task, other.id)
                if _is_first_try(known, now):
                    return min(max(FIRST_CHECK_S, (now - window.opened_at) // 4_000), LONGEST_CHECK_S)
    return None


def _is_first_try(known: DeliveryRecord | None, now: int) -> bool:
    """Whether the first try of a sending is yet to come, is under way, or is to be repeated because its process ended during it.

    The repeat is expected within `REPEATED_MS`. It may not come at all: a try whose result the table refused is not repeated.
    """
    return known is None or (known.done_at is None and known.tries == 1 and known.lease_until > 0 and known.lease_until + REPEATED_MS > now)


def _wait_for_former(sending: Sending, notices: Notices, now: int) -> int | None:
    """The seconds until a notice of an alert is tried: its receiver must get the one before it first, which opens or closes an incident."""
    notice, since = sending.notice, sending.notice.since or 0
    if not notice.former or now - since >= AWAITED_MS:
        return None
    outbox = notices.read(notice.task, notice.former)[1] or Outbox()
    for other in outbox.sendings():
        if other.notice.alert is notice.alert and other.notice.occasion is not notice.occasion and other.receiver == sending.receiver:
            known = notices.delivery(notice.task, other.id)
            if _is_first_try(known, now):
                return min(max(FIRST_CHECK_S, (now - since) // 4_000), LONGEST_CHECK_S)
    return None


def _posted(sending: Sending, named: NamedReceiver | None, post: Post) -> Result:
    notice, to = sending.notice, sending.receiver if named is None else named.target
    try:
        if isinstance(to, str):
            return post.mail(notice.task.owner, {"to": [to], **text.mail(notice, post.links)}, sending.id)
        assert isinstance(to, Webhook | PagerDuty)
        signed = {"signing_secret": to.signing_secret} if isinstance(to, Webhook) and to.signing_secret is not None else {}
        posted = Result()
        for body in formats.bodies(notice, to, post.links):
            payload = {"method": "POST", "url": to.url, "body": body, "timeout_seconds": CALL_S}
            posted = post.call(notice.task.owner, payload | signed, sending.id)
            if posted.failure is not None:
                break
        return posted
    except Exception as error:  # a bug must not stop the other sendings; its text could contain a secret
        log.error("notice not sent: unexpected error", extra={"sending": sending.id, "error": type(error).__name__})
        return Result(failure=Failure(FailureKind.RETRYABLE, f"it could not be sent: {type(error).__name__}"))


def _settled(taken: DeliveryRecord, result: Result, notices: Notices, now: int, *, over: bool) -> Answer:
    """Record the result of a sending. If the table refuses that after a success, the message is still deleted: it is not sent again."""
    failure = result.failure
    error = None if failure is None else f"{failure.kind}: {failure.message}"[:LONGEST_ERROR]
    after = replace(taken, lease_until=0, done_at=now if over else None, error=error)
    try:
        notices.set_delivery(taken, after, now)
    except Unavailable:
        if failure is not None:
            return Answer("failed", LEASE_MS // 1_000)
    context = _context(taken)
    if failure is None:
        log.info("notice sent", extra=context)
        return Answer("sent")
    if over:
        log.warning("notice given up", extra=context | {"error": error})
        return Answer("undelivered")
    return Answer("failed", wait_s(taken.tries, failure.retry_after_ms))


def _context(record: DeliveryRecord) -> dict[str, object]:
    return {"sending": record.id, "user_id": record.task.owner, "task_id": record.task.id, "tries": record.tries}


def wait_s(tries: int, requested_ms: int | None = None) -> int:
    """The seconds until a sending is tried again after `tries` tries; the delay that its receiver requested, if that is longer.

    >>> [wait_s(tries) for tries in range(1, 10)]
    [10, 30, 90, 270, 810, 2430, 3600, 3600, 3600]
    """
    backoff = min(FIRST_WAIT_S * int(3 ** (tries - 1)), LONGEST_WAIT_S)
    return backoff if requested_ms is None else min(max(backoff, -(-requested_ms // 1_000)), LONGEST_WAIT_S)
