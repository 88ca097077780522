"""notify under kills, refusals and repeated messages."""

import random
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import replace
from typing import Any

import pytest

from scheduler.model import instants
from scheduler.model.errors import Unavailable
from scheduler.model.job import Failure, FailureKind, Job, Result, Status
from scheduler.model.notice import DeliveryRecord, News, NoticeMessage, NotificationState, Sending, WindowEnd
from scheduler.model.notifications import Notifications, Occasion, Webhook, WebhookFormat
from scheduler.model.schedule import Cron, Schedule
from scheduler.model.spec import JobSpec
from scheduler.notify.calls import Answer, receiver_of
from scheduler.notify.messages import decode, encode
from scheduler.notify.notify import LEASE_MS, MOST_TRIES, REPEATED_MS, BatchResult, Incoming, Post, notify, wait_s
from scheduler.notify.policy import of_change
from scheduler.notify.text import Links
from scheduler.storage.memory.notices import MemoryNotices
from scheduler.storage.memory.ports import MemoryPorts
from scheduler.targets.types import http
from tests.conftest import NOW, FixedClock
from tests.contract import make
from tests.unit.stage import Wrapped, refuse

HOOK = Webhook("https://hooks.example.com/1", "hook")
FAILED, SUCCEEDED = Status.FAILED, Status.SUCCEEDED


class Killed(BaseException):
    """The process was killed: no code of ours catches this."""


class Receivers:
    """Receivers that record ids and answer as configured."""

    def __init__(self) -> None:
        self.mails: list[tuple[str, dict[str, Any]]] = []
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.answer: Callable[[str], Result] = lambda id: Result()

    def mail(self, owner: str, payload: dict[str, Any], id: str) -> Result:
        assert owner == "ada"
        self.mails.append((id, payload))
        return self.answer(id)

    def call(self, owner: str, payload: dict[str, Any], id: str) -> Result:
        assert owner == "ada"
        self.calls.append((id, payload))
        return self.answer(id)


class InTurn(Executor):
    """Runs calls one after the other, so that a seed always gives the same run: threads would draw random numbers in any order."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Killed as error:
            future.set_exception(error)
        return future


class Stage(MemoryPorts):
    """A task with receivers, and a queue that is processed message by message."""

    def __init__(self, *, links: Links | None = None, schedule: Schedule | None = None, **fields: Any) -> None:
        super().__init__(FixedClock())
        task = make.task(name="Nightly", notifications=Notifications(**({"emails": ("ann@example.com",), "webhooks": (HOOK,)} | fields)))
        self.task = replace(task, schedule=schedule or task.schedule)
        assert self.tasks.store(None, self.task, [])
        self.called = Receivers()
        self.post = Post(self.called.mail, self.called.call, links or Links())
        self.threads: Executor = InTurn()

    def news(self, ended: Status | None = FAILED, **fields: Any) -> News:
        now = self.clock.now()
        chosen: dict[str, Any] = {"task": self.task.key, "id": f"j{now}.0", "job": f"j{now}", "type": "http", "ended": ended, "at": now}
        return News(**(chosen | {"scheduled_at": now, "error": "retryable: HTTP 500" if ended is FAILED else None} | fields))

    def take(self, *messages: NoticeMessage) -> BatchResult:
        batch = [Incoming(f"m{number}", decode(encode(message))) for number, message in enumerate(messages)]
        return notify(batch, self, post=self.post, threads=self.threads)

    def know(self, sending: NoticeMessage) -> None:
        """Let the receiver be one that has answered in time, so that more than one call of it may be in progress."""
        assert isinstance(sending, Sending)
        call = self.post.calls.begin("known", receiver_of(sending), self.clock.monotonic())
        assert call is not None
        self.post.calls.answered(call, self.clock.monotonic())
        self.post.calls.end(call, Answer("sent"))

    def sent(self) -> list[NoticeMessage]:
        """Remove and return the messages of the queue."""
        messages, self.notices.sent = self.notices.sent, []
        return messages

    def work_off(self) -> None:
        """Process all messages that are due now."""
        while messages := [each for each in self.notices.sent if not isinstance(each, WindowEnd) or each.at <= self.clock.now()]:
            self.notices.sent = [each for each in self.notices.sent if each not in messages]
            assert self.take(*messages).again == {}

    @property
    def subjects(self) -> list[str]:
        return [payload["subject"] for _, payload in self.called.mails]


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_a_failure_and_a_recovery_reach_every_receiver_once(stage: Stage) -> None:
    for ended in (FAILED, FAILED, SUCCEEDED):
        stage.take(stage.news(ended))
        stage.clock.advance(1_000)
    stage.work_off()
    stage.clock.advance(1_000_000)
    stage.work_off()
    assert stage.subjects == ["[Punctual] Nightly failed", "[Punctual] Nightly has recovered"]
    assert [payload["body"]["type"] for _, payload in stage.called.calls] == ["task.failure", "task.recovery"]
    assert all(payload["signing_secret"] == "hook" and payload["url"] == HOOK.url for _, payload in stage.called.calls)
    assert len({id for id, _ in [*stage.called.mails, *stage.called.calls]}) == 4


def test_a_notice_has_the_next_run_of_the_task(stage: Stage) -> None:
    stage.take(stage.news())
    mail = stage.sent()[0]
    assert isinstance(mail, Sending) and mail.notice.name == "Nightly"
    assert mail.notice.next_run is not None and stage.clock.now() < mail.notice.next_run <= stage.clock.now() + 300_000


def test_a_mail_has_the_task_s_name_its_link_and_times_in_its_zone() -> None:
    stage = Stage(links=Links("https://console.example.com"), schedule=Schedule(Cron("0 8 3 * *", "Europe/Lisbon")))
    at = instants.parse("2026-07-03T07:00:00Z")
    stage.take(stage.news(at=at + 500, scheduled_at=at))
    stage.work_off()
    ((_, told),) = stage.called.mails
    assert told["subject"] == "[Punctual] Nightly failed"
    link = f"task: https://console.example.com/tasks/{stage.task.id}"
    for line in (f"Task: Nightly ({stage.task.id})", "Scheduled: 2026-07-03 08:00+01:00 (Europe/Lisbon)", link):
        assert line in told["text"].splitlines()


@pytest.mark.parametrize("change", ["gone", "nobody"])
def test_a_deleted_task_or_one_without_receivers_sends_nothing(stage: Stage, change: str) -> None:
    if change == "gone":
        stage.tasks.delete(stage.task)
    else:
        stage.tasks.store(stage.task, replace(stage.task, notifications=None, generation=2), [])
    assert stage.take(stage.news()).again == {} and stage.sent() == []


def test_repeated_news_are_decided_once_and_sent_under_the_same_ids(stage: Stage) -> None:
    one = stage.news()
    stage.take(one)
    first = stage.sent()
    stage.take(one, one)
    assert stage.sent() == first * 2 and len(first) == 2
    stage.take(*first, *first)
    stage.take(*first)
    assert (len(stage.called.mails), len(stage.called.calls)) == (1, 1)


def test_a_second_copy_of_a_sending_waits_for_the_lease(stage: Stage) -> None:
    stage.take(stage.news())
    mail = stage.sent()[0]

    def meanwhile(id: str) -> Result:
        stage.called.answer = lambda id: Result()
        told.append(stage.take(mail))
        return Result()

    told: list[BatchResult] = []
    stage.called.answer = meanwhile
    stage.know(mail)
    assert stage.take(mail).sent == 1
    assert told[0].again == {"m0": LEASE_MS // 1_000} and len(stage.called.mails) == 1


def test_a_sending_is_repeated_once_a_dead_holder_s_lease_is_over(stage: Stage) -> None:
    stage.take(stage.news())
    mail = stage.sent()[0]

    def die(id: str) -> Result:
        raise Killed

    stage.called.answer = die
    with pytest.raises(Killed):
        stage.take(mail)
    stage.called.answer = lambda id: Result()
    assert stage.take(mail).again == {"m0": LEASE_MS // 1_000}
    stage.clock.advance(LEASE_MS)
    assert stage.take(mail).sent == 1


def test_a_failing_receiver_is_retried_and_does_not_delay_the_others(stage: Stage) -> None:
    stage.take(stage.news())
    mail, hook = stage.sent()
    stage.called.answer = lambda id: Result(failure=Failure(FailureKind.RETRYABLE, "HTTP 503")) if id.endswith(".1") else Result()
    assert stage.take(mail, hook).sent == 1
    waits = [stage.take(hook).again.get("m0") for _ in range(MOST_TRIES - 1)]
    assert waits == [*(wait_s(tries) for tries in range(2, MOST_TRIES)), None]
    assert stage.take(hook) == BatchResult(), "notify has given up"
    assert len(stage.called.calls) == MOST_TRIES


@pytest.mark.parametrize(
    ("failure", "given_up"), [(Failure(FailureKind.PERMANENT, "HTTP 404"), 1), (Failure(FailureKind.THROTTLED, "HTTP 429", 120_000), 0)]
)
def test_a_receiver_s_answer_decides_about_retries(stage: Stage, failure: Failure, given_up: int) -> None:
    stage.take(stage.news())
    stage.called.answer = lambda id: Result(failure=failure)
    told = stage.take(stage.sent()[1])
    assert told.undelivered == given_up and told.again == ({} if given_up else {"m0": 120})


@pytest.mark.parametrize(
    ("on", "sent"),
    [
        ((Occasion.FAILURE, Occasion.RECOVERY), ["task.recovery"]),
        ((Occasion.KILLED, Occasion.FAILURE, Occasion.RECOVERY), ["task.recovery"]),
        ((Occasion.FAILURE,), ["task.failure"]),  # nothing else tells of the incident
        ((Occasion.FAILURE, Occasion.SUCCESS), ["task.success", "task.failure"]),
    ],
)
def test_a_failure_that_is_sent_again_never_arrives_after_its_recovery(on: tuple[Occasion, ...], sent: list[str]) -> None:
    stage = Stage(emails=(), on=on)
    stage.called.answer = lambda id: Result(failure=Failure(FailureKind.RETRYABLE, "HTTP 500"))
    stage.take(stage.news(FAILED))
    (failure,) = stage.sent()
    assert stage.take(failure).failed == 1
    stage.called.answer = lambda id: Result()
    stage.called.calls.clear()
    stage.clock.advance(3_000)
    stage.take(stage.news(SUCCEEDED))
    stage.work_off()
    stage.clock.advance(60_000)
    assert stage.take(failure).again == {}
    assert [payload["body"]["type"] for _, payload in stage.called.calls] == sent
    assert stage.take(failure).again == {}, "a copy"
    assert len(stage.called.calls) == len(sent)


RETRYABLE = Result(failure=Failure(FailureKind.RETRYABLE, "HTTP 500"))


def types(stage: Stage) -> list[str]:
    return [payload["body"]["type"] for _, payload in stage.called.calls]


def test_a_recovery_waits_for_the_first_try_of_its_failure() -> None:
    stage = Stage(emails=())
    stage.take(stage.news(FAILED))
    (failure,) = stage.sent()
    stage.clock.advance(3_000)
    stage.take(stage.news(SUCCEEDED))
    (recovery,) = stage.sent()
    assert stage.take(recovery).again == {"m0": 2}
    stage.clock.advance(400_000)
    assert stage.take(recovery).again == {"m0": 100}
    assert stage.take(failure).sent == stage.take(recovery).sent == 1
    assert types(stage) == ["task.failure", "task.recovery"]


def begun(stage: Stage, sending: NoticeMessage) -> None:
    """Let a process have taken the lease of a sending, and end before the call."""
    assert isinstance(sending, Sending)
    now = stage.clock.now()
    assert stage.notices.set_delivery(None, DeliveryRecord(sending.notice.task, sending.id, now + LEASE_MS, 1), now)


def test_a_failure_whose_process_ended_comes_before_its_recovery() -> None:
    stage = Stage(emails=())
    stage.take(stage.news(FAILED))
    (failure,) = stage.sent()
    begun(stage, failure)
    stage.clock.advance(3_000)
    stage.take(stage.news(SUCCEEDED))
    (recovery,) = stage.sent()
    stage.clock.advance(LEASE_MS)
    assert stage.take(recovery).sent == 0
    assert stage.take(failure).sent == stage.take(recovery).sent == 1
    assert types(stage) == ["task.failure", "task.recovery"]


def test_a_recovery_does_not_wait_for_ever_for_a_failure_without_a_result() -> None:
    stage = Stage(emails=())
    stage.take(stage.news(FAILED))
    (failure,) = stage.sent()
    begun(stage, failure)
    stage.clock.advance(3_000)
    stage.take(stage.news(SUCCEEDED))
    (recovery,) = stage.sent()
    stage.clock.advance(LEASE_MS + REPEATED_MS)
    assert stage.take(recovery).sent == 1 and stage.take(failure).sent == 0, "the failure would come after the recovery"
    assert types(stage) == ["task.recovery"]


def test_a_recovery_waits_for_a_failure_in_progress_and_no_retry() -> None:
    stage, told = Stage(emails=()), list[BatchResult]()
    stage.take(stage.news(FAILED))
    (failure,) = stage.sent()
    stage.know(failure)
    stage.clock.advance(3_000)
    stage.take(stage.news(SUCCEEDED))
    (recovery,) = stage.sent()

    def meanwhile(id: str) -> Result:
        told.append(stage.take(recovery))
        return RETRYABLE

    stage.called.answer = meanwhile
    assert stage.take(failure).failed == 1 and told[0].again == {"m0": 2}
    stage.called.answer = lambda id: Result()
    assert stage.take(recovery).sent == 1
    stage.clock.advance(60_000)
    assert stage.take(failure) == BatchResult()
    assert types(stage) == ["task.failure", "task.recovery"]


def test_an_old_failure_arrives_before_its_recovery() -> None:
    stage = Stage(emails=())
    stage.take(stage.news(SUCCEEDED))
    stage.take(stage.news(FAILED, id="j0.0", job="j0", at=NOW - 5_000))
    failure, recovery = stage.sent()
    assert stage.take(recovery).again == {"m0": 2}
    assert stage.take(failure).sent == stage.take(recovery).sent == 1
    assert types(stage) == ["task.failure", "task.recovery"]


def test_a_failure_that_no_recovery_waits_for_never_arrives_after_it() -> None:
    """Its first try is so late that another notice of failure has been sent since, or that its message should have been given up."""
    stage = Stage(emails=(), digest_ms=60_000)
    stage.take(stage.news(FAILED))
    (first,) = stage.sent()
    stage.clock.advance(61_000)
    stage.take(stage.news(FAILED))
    (second,) = stage.sent()
    stage.clock.advance(1_000)
    stage.take(stage.news(SUCCEEDED))
    (recovery,) = stage.sent()
    stage.clock.advance(6 * 3_600_000)
    assert stage.take(recovery).sent == 1
    assert stage.take(first, second) == BatchResult() == stage.take(first, second)
    assert types(stage) == ["task.recovery"]


def test_a_recovery_does_not_wait_for_a_receiver_that_heard_of_no_failure() -> None:
    stage = Stage(emails=())
    stage.take(stage.news(FAILED))
    failure = stage.sent()
    other = replace(stage.task, notifications=Notifications(webhooks=(HOOK, Webhook("https://other.example.com", "hook"))), generation=2)
    assert stage.tasks.store(stage.task, other, [])
    stage.clock.advance(1_000)
    stage.take(stage.news(SUCCEEDED))
    recoveries = stage.sent()
    assert [stage.take(each).sent for each in [*recoveries, *failure]] == [0, 1, 1]


def test_held_back_failures_go_before_the_digest_of_their_recovery() -> None:
    """The window of failures opened after that of recoveries, and so ends after it."""
    stage = Stage(emails=(), digest_ms=900_000)
    ends: list[WindowEnd] = []
    for after, ended in ((0, FAILED), (10_000, SUCCEEDED), (895_000, FAILED), (1_000, FAILED), (2_000, SUCCEEDED)):
        stage.clock.advance(after)
        stage.take(stage.news(ended))
        while messages := stage.sent():
            ends += [each for each in messages if isinstance(each, WindowEnd)]
            stage.take(*(each for each in messages if isinstance(each, Sending)))
    for end in sorted(ends, key=lambda each: each.at):
        stage.clock.advance(max(0, end.at - stage.clock.now()))
        stage.take(end)
        stage.work_off()
    assert types(stage) == ["task.failure", "task.recovery", "task.failure", "task.failure", "task.recovery"]


def test_the_failure_of_the_next_incident_is_sent_again() -> None:
    stage = Stage(emails=(), digest_ms=900_000)
    for ended in (FAILED, SUCCEEDED):
        stage.take(stage.news(ended))
        stage.clock.advance(1_000)
    stage.work_off()
    stage.clock.advance(1_000_000)  # the windows have ended
    stage.work_off()
    stage.called.answer = lambda id: Result(failure=Failure(FailureKind.RETRYABLE, "HTTP 500"))
    stage.take(stage.news(FAILED))
    failure = stage.sent()[-1]
    assert stage.take(failure).failed == 1
    stage.called.answer = lambda id: Result()
    stage.clock.advance(60_000)
    assert stage.take(failure).sent == 1


def test_a_digest_is_sent_at_the_end_of_its_window(stage: Stage) -> None:
    for _ in range(5):
        stage.take(stage.news())
        stage.clock.advance(1_000)
    (end,) = [each for each in stage.sent() if isinstance(each, WindowEnd)]
    assert stage.take(end).again == {"m0": 895}
    stage.clock.advance(895_000)
    stage.take(end, end)
    assert {each.id for each in stage.notices.sent} == {each.id for each in stage.notices.sent[:2]}
    stage.work_off()
    assert stage.subjects == ["[Punctual] Nightly failed 4 times"]


def test_a_decision_that_collides_with_another_is_repeated(stage: Stage) -> None:
    class Racing(MemoryNotices):
        others: int = 2

        def decide(self, before: NotificationState | None, after: NotificationState, id: str, outbox: Any, now: int) -> bool:
            if self.others:
                self.others -= 1
                stage.take(stage.news(id=f"other{self.others}.0"))
            return super().decide(before, after, id, outbox, now)

    stage.notices = Racing()
    assert stage.take(stage.news()).decided == 1
    assert stage.notices.states[stage.task.key].streak == 3 and len(stage.notices.outboxes) == 3


def test_a_refusing_queue_loses_no_notice(stage: Stage) -> None:
    usual, stage.notices = stage.notices, Wrapped(stage.notices, send=refuse)
    one = stage.news()
    assert "m0" in stage.take(one).again
    stage.notices = usual
    stage.take(one)
    stage.work_off()
    assert len(stage.called.mails) == 1


def test_an_unexpected_error_of_one_decision_stops_no_other(stage: Stage) -> None:
    def read(verb: Any, task: Any, id: str) -> Any:
        if id == "broken":
            raise LookupError("an item of another form")
        return verb(task, id)

    stage.notices = Wrapped(stage.notices, read=read)
    result = stage.take(stage.news(id="broken"), stage.news())
    assert result.decided == 1 and result.again == {"m0": 5}


class Mortal:
    """A port whose calls may kill the process before or after their effect; `refused`: the calls without an effect."""

    def __init__(self, port: Any, chance: random.Random, odds: float) -> None:
        self._port, self._chance, self._odds = port, chance, odds
        self.armed = True
        self.refused: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> Any:
            if self.armed and self._chance.random() < self._odds:
                self.refused.append((name, *arguments))
                raise self._chance.choice([Killed, Unavailable])()
            answer = getattr(self._port, name)(*arguments)
            if self.armed and self._chance.random() < self._odds:
                raise self._chance.choice([Killed, Unavailable])()
            return answer

        return call


@pytest.mark.parametrize("seed", range(30))
def test_each_end_is_notified_once_wherever_notify_is_killed(seed: int) -> None:
    """Messages arrive in any order and twice; the process is killed, and its table refuses, before or after any call."""
    chance = random.Random(seed)
    stage = Stage(on=(Occasion.FAILURE, Occasion.SUCCESS), digest_ms=60_000)
    notices = stage.notices
    stage.notices = Mortal(notices, chance, 0.08)
    news = [stage.news(chance.choice([FAILED, SUCCEEDED]), id=f"j{n}.0", job=f"j{n}", at=NOW + n * 500) for n in range(60)]
    waiting: list[NoticeMessage] = [*news, *news[::3]]  # a batch of the stream is delivered again
    rounds = 0
    while waiting:
        rounds += 1
        if rounds > 3_000:
            stage.notices.armed = False
        stage.clock.advance(chance.randint(0, 4_000))
        batch = [waiting.pop(chance.randrange(len(waiting))) for _ in range(min(len(waiting), chance.randint(1, 4)))]
        try:
            again = stage.take(*batch).again
            waiting += [message for number, message in enumerate(batch) if f"m{number}" in again]
        except Killed:
            waiting += batch
        waiting += notices.sent
        notices.sent = []
    mails = Counter(id for id, _ in stage.called.mails)
    told = {sending.id: sending for outbox in notices.outboxes.values() for sending in outbox.sendings()}
    assert mails.keys() | {id for id, _ in stage.called.calls} == told.keys(), "no receiver was left out"
    for occasion, ended in ((Occasion.FAILURE, FAILED), (Occasion.SUCCESS, SUCCEEDED)):
        counts = [notice.count for outbox in notices.outboxes.values() for notice in outbox.notices if notice.occasion is occasion]
        assert sum(counts) == sum(1 for one in news if one.ended is ended), "each end is in exactly one notice"
    done = {record.id for record in notices.deliveries.values() if record.done_at is not None}
    refused = {call[2].id for call in stage.notices.refused if call[0] == "set_delivery" and call[2].done_at is not None}
    assert told.keys() - done <= refused, "a delivery record is open only if its last write was refused"


def test_without_kills_no_receiver_is_notified_twice(stage: Stage) -> None:
    chance = random.Random(1)
    news = [stage.news(chance.choice([FAILED, SUCCEEDED]), id=f"j{n}.0", at=NOW + n * 500) for n in range(60)]
    waiting: list[NoticeMessage] = [*news, *news, *news]
    while waiting:
        stage.clock.advance(chance.randint(0, 9_000))
        batch = [waiting.pop(chance.randrange(len(waiting))) for _ in range(min(len(waiting), 4))]
        again = stage.take(*batch).again
        waiting += [message for number, message in enumerate(batch) if f"m{number}" in again] + stage.sent()
    ids = [id for id, _ in [*stage.called.mails, *stage.called.calls]]
    assert len(ids) == len(set(ids)) > 2
    assert isinstance(stage.notices.states[stage.task.key], NotificationState)


def a_job(stage: Stage, **fields: Any) -> Job:
    job = make.job(notifications=Notifications(**({"emails": ("bob@example.com",)} | fields)))
    stage.jobs.rows[job.key] = job
    return job


def ending(job: Job, end: Callable[[Job], Job] = make.failed) -> News:
    (news,) = of_change(make.claimed(job), end(make.claimed(job)))
    return news


def test_the_receivers_of_a_one_time_job_are_its_own(stage: Stage) -> None:
    stage.take(ending(a_job(stage)))
    stage.work_off()
    assert [(payload["to"], payload["subject"][:14]) for _, payload in stage.called.mails] == [(["bob@example.com"], "[Punctual] Job")]


@pytest.mark.parametrize(
    ("spec", "subject"),
    [
        (JobSpec("http", {"url": "https://example.com/orders/7?token=x"}, key="order-7"), "[Punctual] Job order-7 failed"),
        (JobSpec("http", {"url": "https://example.com/orders/7?token=x"}), "[Punctual] Job example.com/orders/7 failed"),
        (JobSpec("http", {"body": "invoice"}, target="invoices"), "[Punctual] Job invoices failed"),
    ],
)
def test_a_one_time_job_is_named_by_its_key_or_what_it_calls(stage: Stage, spec: JobSpec, subject: str) -> None:
    job = replace(a_job(stage), spec=spec)
    stage.jobs.rows[job.key] = job
    stage.take(ending(job))
    stage.work_off()
    ((_, payload),) = stage.called.mails
    assert payload["subject"] == subject and f"Job: {job.id}" in payload["text"]


def test_a_retried_job_recovers_and_its_further_failures_are_held_back(stage: Stage) -> None:
    job = a_job(stage)
    for redrives in range(3):
        stage.take(ending(replace(job, redrives=redrives)))
        stage.work_off()
    assert len(stage.subjects) == 1
    stage.clock.advance(900_000)
    stage.work_off()
    assert stage.subjects[1:] == [f"[Punctual] Job {job.id} failed 2 times"]
    later = stage.clock.now() + 1_000
    stage.take(ending(replace(job, redrives=3), lambda claimed: make.succeeded(claimed, later)))
    stage.work_off()
    assert stage.subjects[2:] == [f"[Punctual] Job {job.id} has recovered"]


@pytest.mark.parametrize("change", ["gone", "nobody"])
def test_a_job_that_is_gone_or_lost_its_receivers_sends_nothing(stage: Stage, change: str) -> None:
    job = a_job(stage)
    news = ending(job)
    stage.jobs.rows = {} if change == "gone" else {job.key: replace(job, notifications=None)}
    assert stage.take(news).again == {} and stage.sent() == []


@pytest.mark.parametrize("secret", [None, "hook"])
def test_a_slack_webhook_gets_one_text_signed_only_with_a_secret(stage: Stage, secret: str | None) -> None:
    hook = Webhook("https://hooks.slack.com/services/T/B/x", secret, WebhookFormat.SLACK)
    stage.take(ending(a_job(stage, emails=(), webhooks=(hook,))))
    stage.work_off()
    ((_, payload),) = stage.called.calls
    assert list(payload["body"]) == ["text"] and payload["url"] == hook.url
    assert payload.get("signing_secret") == secret
    http.Payload(**payload)
