"""The notices of news, and those held back for a digest."""

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.model import lifecycle
from scheduler.model.job import Claim, Failure, FailureKind, Job, Result, RunInfo, Status, TaskKey
from scheduler.model.notice import News, Notice, NotificationState, Outbox, Sending, Window, WindowEnd
from scheduler.model.notifications import Notifications, Occasion, Webhook, WebhookFormat
from scheduler.notify.messages import (
    decode,
    decode_notifications,
    decode_outbox,
    decode_state,
    encode,
    encode_decisions,
    encode_notifications,
    encode_outbox,
    encode_state,
)
from scheduler.notify.policy import decide, digest, of_change
from tests.contract import make
from tests.contract.make import NOW

TASK = TaskKey("ada", "t1")
HOOK = Webhook("https://hooks.example.com/1", "hook")
WANTED = Notifications(("ann@example.com",), (HOOK,))
ALL = tuple(Occasion)
MINUTE = 60_000
DIGEST = WANTED.digest_ms


def news(ended: Status | None = Status.FAILED, at: int = NOW, **fields: Any) -> News:
    job = f"j{at}"
    return News(**{"task": TASK, "id": f"{job}.0", "job": job, "type": "http", "ended": ended, "at": at, "scheduled_at": at} | fields)


class Task:
    """A task and its notification state."""

    def __init__(self, wanted: Notifications = WANTED) -> None:
        self.wanted, self.state = wanted, NotificationState(TASK)
        self.ends: list[WindowEnd] = []

    def hears(self, *ends: Status | None, at: int = NOW, every: int = 1_000) -> list[tuple[str, int]]:
        """The notices of runs that end like this, one after the other."""
        told: list[tuple[str, int]] = []
        for number, ended in enumerate(ends):
            told += self.hear(news(ended, at + number * every), at + number * every)
        return told

    def hear(self, one: News, now: int) -> list[tuple[str, int]]:
        decision = decide(self.state, one, self.wanted, now)
        self.state = decision.state
        outbox = decision.outbox or Outbox()
        self.ends += outbox.ends
        return [(str(notice.occasion), notice.count) for notice in outbox.notices]

    def passes(self, now: int) -> list[tuple[str, int]]:
        """The digests that are due by this instant."""
        told: list[tuple[str, int]] = []
        for end in [end for end in self.ends if end.at <= now]:
            self.ends.remove(end)
            if decision := digest(self.state, end, self.wanted, now):
                self.state = decision.state
                told += [(str(notice.occasion), notice.count) for notice in (decision.outbox or Outbox()).notices]
        return told


FAILED, SUCCEEDED, KILLED = Status.FAILED, Status.SUCCEEDED, Status.KILLED


def test_two_failures_and_a_success_give_a_failure_and_a_recovery() -> None:
    task = Task()
    assert task.hears(FAILED, FAILED, SUCCEEDED) == [("failure", 1), ("recovery", 1)]
    assert task.passes(NOW + DIGEST + MINUTE) == [], "the recovery has counted the failures"


def test_a_recovery_has_the_number_and_the_start_of_failures() -> None:
    task = Task()
    task.hears(FAILED, FAILED, FAILED)
    decision = decide(task.state, news(SUCCEEDED, NOW + 9_000), WANTED, NOW + 9_000)
    assert decision.outbox is not None
    (notice,) = decision.outbox.notices
    assert (notice.occasion, notice.failures, notice.since, notice.news.job) == (Occasion.RECOVERY, 3, NOW, f"j{NOW + 9_000}")


def test_successes_and_recoveries_are_separate_occasions() -> None:
    assert Task().hears(SUCCEEDED, SUCCEEDED) == []
    assert Task(replace(WANTED, on=(Occasion.SUCCESS,))).hears(SUCCEEDED, every=DIGEST) == [("success", 1)]
    assert Task(replace(WANTED, on=ALL)).hears(FAILED, SUCCEEDED) == [("failure", 1), ("recovery", 1), ("success", 1)]


def test_a_killed_run_is_a_failure_unless_killed_is_chosen() -> None:
    assert Task().hears(KILLED, SUCCEEDED) == [("failure", 1), ("recovery", 1)]
    assert Task(replace(WANTED, on=ALL)).hears(KILLED) == [("killed", 1)]
    only = Task(replace(WANTED, on=(Occasion.KILLED,)))
    assert only.hears(FAILED, KILLED, SUCCEEDED) == [("killed", 1)]


def test_failures_and_recoveries_are_reported_after_enough_failures() -> None:
    task = Task(replace(WANTED, after_failures=3))
    assert task.hears(FAILED, FAILED, SUCCEEDED, FAILED, FAILED) == []
    assert task.hears(FAILED, SUCCEEDED, at=NOW + MINUTE) == [("failure", 1), ("recovery", 1)]


def test_a_killed_run_does_not_wait_for_enough_failures() -> None:
    task = Task(replace(WANTED, after_failures=3, on=(*WANTED.on, Occasion.KILLED)))
    assert task.hears(KILLED, SUCCEEDED) == [("killed", 1), ("recovery", 1)]


def test_a_late_start_is_reported_and_changes_no_state() -> None:
    task = Task(replace(WANTED, on=(Occasion.LATE,)))
    assert task.hears(None) == [("late", 1)]
    assert Task().hears(None) == [] and Task().state == NotificationState(TASK)


def test_constant_failures_give_four_notices_an_hour_that_count_all() -> None:
    task, told = Task(), list[tuple[str, int]]()
    for second in range(3_600):
        now = NOW + second * 1_000
        told += task.passes(now) + task.hear(news(FAILED, now), now)
    told += task.passes(NOW + 3_600_000 + DIGEST)
    assert [count for _, count in told] == [1, 899, 900, 900, 900] and {name for name, _ in told} == {"failure"}


def test_alternating_failures_and_recoveries_are_limited_too() -> None:
    task, told = Task(), list[tuple[str, int]]()
    for second in range(3_600):
        now = NOW + second * 1_000
        told += task.passes(now) + task.hear(news(SUCCEEDED if second % 2 else FAILED, now), now)
    assert len(told) <= 2 * 5


def test_held_back_news_are_in_the_next_notice_if_a_digest_is_lost() -> None:
    task = Task()
    task.hears(FAILED, FAILED, FAILED)
    assert task.hears(FAILED, at=NOW + DIGEST + MINUTE) == [("failure", 3)]
    assert task.passes(NOW + 2 * DIGEST) == [], "another window has replaced it"


def test_the_end_of_a_window_does_not_close_the_next_one() -> None:
    task = Task()
    task.hears(FAILED, FAILED)
    (late,) = task.ends
    task.hears(FAILED, FAILED, at=NOW + DIGEST + MINUTE)
    assert digest(task.state, late, WANTED, NOW + DIGEST + 2 * MINUTE) is None


def test_a_digest_names_the_first_of_its_events() -> None:
    task = Task()
    task.hears(FAILED, FAILED, FAILED)
    decision = digest(task.state, task.ends[0], WANTED, NOW + DIGEST)
    assert decision is not None and decision.outbox is not None
    (notice,) = decision.outbox.notices
    assert (notice.count, notice.first_at, notice.news.at, notice.failures) == (2, NOW + 1_000, NOW + 2_000, 3)


def test_an_empty_window_ends_without_a_notice() -> None:
    task = Task()
    task.hears(FAILED)
    assert task.ends == [] and digest(task.state, WindowEnd(TASK, Occasion.FAILURE, NOW, NOW + DIGEST), WANTED, NOW + DIGEST) is None


def test_a_digest_of_an_unchosen_occasion_is_not_sent() -> None:
    task = Task()
    task.hears(FAILED, FAILED)
    task.wanted = replace(WANTED, on=(Occasion.SUCCESS,))
    assert task.passes(NOW + DIGEST) == []


def test_a_success_before_a_later_failure_is_no_recovery() -> None:
    task = Task()
    task.hear(news(FAILED, NOW + 5_000), NOW + 5_000)
    assert task.hear(news(SUCCEEDED, NOW), NOW + 5_001) == []
    assert task.hear(news(SUCCEEDED, NOW + 9_000), NOW + 9_000) == [("recovery", 1)]


def test_a_failure_before_a_reported_success_includes_its_recovery() -> None:
    task = Task()
    task.hear(news(SUCCEEDED, NOW + 5_000), NOW + 5_000)
    decision = decide(task.state, news(FAILED, NOW), WANTED, NOW + 5_001)
    assert decision.outbox is not None
    told = [(notice.occasion, notice.news.job) for notice in decision.outbox.notices]
    assert told == [(Occasion.FAILURE, f"j{NOW}"), (Occasion.RECOVERY, f"j{NOW + 5_000}")]
    assert task.hear(news(SUCCEEDED, NOW + 9_000), NOW + 9_000) == []


def test_every_receiver_gets_its_own_sending_under_a_stable_id() -> None:
    decision = decide(NotificationState(TASK), news(), WANTED, NOW)
    assert decision.outbox is not None
    first, again = (list(decision.outbox.sendings()) for _ in range(2))
    assert first == again and [sending.receiver for sending in first] == ["ann@example.com", HOOK]
    assert len({sending.id for sending in first}) == 2 and all(sending.id.startswith("notice_t1.") for sending in first)


# The news of a change of a job.


def a_run(**fields: Any) -> Job:
    return make.job(**{"origin": RunInfo("t1", 1, NOW, notify=True)} | fields)


def test_an_end_is_news_with_its_error_and_the_response_beginning() -> None:
    claimed = make.claimed(a_run(max_attempts=1))
    result = Result(response={"status": 503, "headers": {}, "body": "x" * 9_000}, failure=Failure(FailureKind.RETRYABLE, "HTTP 503"))
    ended = lifecycle.fail(claimed, NOW + 70, started_at=NOW, result=result)
    (told,) = of_change(claimed, ended)
    assert (told.task, told.id, told.ended, told.at) == (TASK, f"{claimed.id}.0", FAILED, NOW + 70)
    assert (told.error, told.attempts, told.delay_ms) == ("retryable: HTTP 503", 1, 0)
    assert told.response is not None and told.response.startswith("HTTP 503\nxxx") and len(told.response) == 500


def test_jobs_without_receivers_give_no_news() -> None:
    for job in (make.job(), make.job(origin=RunInfo("t1", 1, NOW))):
        claimed = make.claimed(job)
        assert list(of_change(claimed, make.failed(claimed))) == []


@pytest.mark.parametrize("end", [make.cancelled, lambda job: make.moved(job, "2026-11-20T10:09#03"), lambda job: None])
def test_a_job_that_neither_succeeds_nor_fails_gives_no_news(end: Any) -> None:
    job = a_run()
    assert list(of_change(job, end(job))) == []


def test_each_life_of_a_job_has_one_end_that_is_reported_once() -> None:
    claimed = make.claimed(a_run())
    first = make.failed(claimed)
    again = make.claimed(make.redriven(first))
    second = make.succeeded(again)
    ids = [each.id for pair in ((claimed, first), (first, make.redriven(first)), (again, second)) for each in of_change(*pair)]
    assert ids == [f"{claimed.id}.0", f"{claimed.id}.1"]
    assert list(of_change(first, replace(first, output="x"))) == []


def test_a_start_ten_seconds_late_is_news_at_its_claim() -> None:
    def started(after: int) -> list[News]:
        job = a_run()
        claim = Claim("m1", "n1", NOW + after, False)
        return list(of_change(job, lifecycle.claim(job, claim=claim)))

    assert started(9_999) == []
    (late,) = started(10_000)
    assert (late.ended, late.at, late.delay_ms, late.id.endswith(".late")) == (None, NOW + 10_000, 10_000, True)


def test_a_retry_is_no_late_start() -> None:
    claimed = make.claimed(a_run())
    waiting = make.retried(claimed, "2026-11-20T10:09#03", NOW + MINUTE)
    again = lifecycle.claim(waiting, claim=Claim("m2", "n2", NOW + MINUTE, True))
    assert list(of_change(claimed, waiting)) == [] and list(of_change(waiting, again)) == []


# Encoding and decoding.


def test_messages_and_stored_records_round_trip() -> None:
    one = news(error="e", response="r", started_at=NOW, delay_ms=3, attempts=1, max_attempts=3)
    notice = Notice("n1", Occasion.RECOVERY, one, 3, NOW, 2, NOW - 1, "näme", NOW + 5)
    end = WindowEnd(TASK, Occasion.KILLED, NOW, NOW + DIGEST)
    for message in (one, news(None), end, Sending(notice, "ann@example.com", "s1"), Sending(notice, HOOK, "s2")):
        assert decode(encode(message)) == message
    outbox = Outbox((notice, notice), (end,), WANTED.receivers)
    assert decode_outbox(encode_outbox(outbox)) == outbox
    standing = NotificationState(TASK, 2, NOW, NOW, NOW - 1, "j", True, {Occasion.FAILURE: Window(NOW, NOW + 1, 2, NOW, one)}, 7)
    assert decode_state(TASK, 7, encode_state(standing)) == standing


@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 60))
def test_each_failure_is_in_exactly_one_notice_in_any_order(seed: int, after_failures: int, size: int) -> None:
    """Except for failures of a streak that was too short, and failures that a recovery counts."""
    chance = random.Random(seed)
    task = Task(replace(WANTED, on=(Occasion.FAILURE,), after_failures=after_failures))
    stream = [news(FAILED, NOW + n * chance.randint(1, 90_000)) for n in range(size)]
    told, now = list[tuple[str, int]](), NOW
    for one in sorted(stream, key=lambda _: chance.random()):
        now += chance.randint(0, 200_000)
        told += task.passes(now) + task.hear(one, now)
    told += task.passes(now + 2 * DIGEST)
    assert sum(count for _, count in told) == max(0, size - after_failures + 1)


def test_only_jobs_with_receivers_and_runs_that_notify_have_news() -> None:
    own = make.job(notifications=WANTED)
    (told,) = of_change(make.claimed(own), make.failed(make.claimed(own)))
    assert (told.task, told.alone) == (TaskKey(own.owner, own.id), True)
    for silent in (make.job(), make.job(notifications=WANTED, origin=RunInfo("t1", 1))):
        assert not list(of_change(make.claimed(silent), make.failed(make.claimed(silent))))


def test_messages_about_tasks_are_read_as_they_were_written() -> None:
    end = WindowEnd(TASK, Occasion.FAILURE, NOW, NOW + 1)
    sending = Sending(Notice("n", Occasion.FAILURE, news()), HOOK, "s")
    alone = replace(news(), alone=True)
    slack = Webhook("https://hooks.slack.com/x", None, WebhookFormat.SLACK)
    zoned = replace(sending, notice=replace(sending.notice, zone="Europe/Lisbon"))
    messages = (news(), end, sending, zoned, alone, replace(end, alone=True), Sending(Notice("n", Occasion.FAILURE, alone), slack, "s"))
    for message in messages:
        assert decode(encode(message)) == message
    state = NotificationState(TASK, windows={Occasion.FAILURE: Window(NOW, NOW + 1, 1, NOW, alone)})
    assert decode_state(TASK, 0, encode_state(state)) == state


def test_the_decisions_of_a_state_are_beside_its_text() -> None:
    """The version before refuses a text with fields that it does not know."""
    plain = NotificationState(TASK, windows={Occasion.FAILURE: Window(NOW, NOW + 1)})
    state = replace(plain, windows={Occasion.FAILURE: Window(NOW, NOW + 1, decision="j0.0")})
    assert encode_state(state) == encode_state(plain)
    assert decode_state(TASK, 0, encode_state(state), encode_decisions(state)) == state


def test_receivers_are_read_as_they_were_stored() -> None:
    mixed = replace(WANTED, webhooks=(HOOK, Webhook("https://hooks.slack.com/x", None, WebhookFormat.SLACK)))
    assert decode_notifications(encode_notifications(mixed)) == mixed and decode_notifications(encode_notifications(WANTED)) == WANTED
