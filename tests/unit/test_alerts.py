"""Alerts from the judge to the receivers: incidents, texts, and runs that are not reported."""

from dataclasses import replace
from typing import Any

import pytest

from scheduler.model.alerts import Alert, Alerts
from scheduler.model.job import Job, JobKey, RunInfo, Status
from scheduler.model.notice import News, Notice, NotificationState, Sending
from scheduler.model.notifications import Notifications, Occasion
from scheduler.model.receiver import PagerDuty
from scheduler.model.run_timer import RunTimer
from scheduler.model.work import WorkDelivery, WorkItem, WorkKind
from scheduler.monitors import steps
from scheduler.notify import alerting, formats, text
from scheduler.notify.messages import decode, decode_state, encode, encode_decisions, encode_state
from scheduler.notify.policy import broke, of_change
from scheduler.notify.text import Links
from scheduler.storage.ports import Barred
from scheduler.storage.ports.run_timers import PARTS
from scheduler.tasks.run_timers import FAR_MS, item_of, request, set_to
from scheduler.tasks.timers import PAGE, PAGES
from tests.conftest import NOW
from tests.contract import make
from tests.unit.test_notify import Stage

MINUTE = 60_000
ALERTS = Alerts(late_after_ms=MINUTE, max_duration_ms=10 * MINUTE, done_by=420, missed=True)


class Watched(Stage):
    """A task with alerts and one run, whose timer is due."""

    def __init__(self, alerts: Alerts | None = ALERTS, **fields: Any) -> None:
        super().__init__(emails=(), **fields)
        self.task = replace(self.task, alerts=alerts, updated_at=0)
        self.tasks.rows[self.task.key] = self.task
        origin = RunInfo(self.task.id, 1, NOW, notify=True, watched=True)
        self.run = make.job(at=NOW, owner=self.task.owner, origin=origin)
        self.jobs.put(self.run)
        at = NOW + MINUTE + 2_000
        self.timer = RunTimer(at, self.run.key, NOW - 120_000, at)
        self.run_timers.arm([self.timer])
        self.clock.at = at

    def wake(self) -> None:
        steps.step(WorkDelivery(item_of(self.timer), "m", "m/1", 1), self, lambda: None)

    def write(self, after: Job) -> list[News]:
        before, self.jobs.rows[after.key] = self.jobs.rows[after.key], after
        return list(of_change(before, after))

    @property
    def types(self) -> list[tuple[str, str]]:
        return [(payload["body"]["type"], payload["body"]["data"]["alert"]) for _, payload in self.called.calls]


def take_all(stage: Watched, *news: News) -> None:
    stage.take(*news)
    while stage.notices.sent:
        messages, stage.notices.sent = stage.notices.sent, []
        for message in messages:
            if stage.take(message).again:
                stage.clock.advance(2_000)
                stage.notices.sent.append(message)


def test_a_run_that_does_not_start_is_reported_and_over_when_it_starts() -> None:
    stage = Watched()
    stage.wake()
    take_all(stage, *stage.sent())  # type: ignore[arg-type]
    assert stage.types == [("task.alert", "late")]
    stage.clock.advance(MINUTE)
    take_all(stage, *stage.write(replace(make.claimed(stage.run), due_at=stage.clock.at)))
    assert stage.types == [("task.alert", "late"), ("task.alert_over", "late")]


def test_a_repeated_judgement_and_repeated_messages_change_nothing() -> None:
    stage = Watched()
    stage.wake()
    (first,) = stage.notices.sent
    stage.run_timers.armed[stage.timer.position] = stage.timer  # the move was lost
    stage.wake()
    assert stage.sent() == [first, first]
    take_all(stage, first, first)  # type: ignore[arg-type]
    take_all(stage, first)  # type: ignore[arg-type]
    assert stage.types == [("task.alert", "late")]


def test_a_start_whose_news_came_before_the_alert_closes_it() -> None:
    stage = Watched()
    stage.wake()
    alert = stage.sent()
    started = stage.write(replace(make.claimed(stage.run), due_at=stage.clock.at))
    take_all(stage, *started)
    assert stage.types == []
    take_all(stage, *alert)  # type: ignore[arg-type]
    assert stage.types == [("task.alert", "late"), ("task.alert_over", "late")]


def test_a_claim_that_a_gate_has_requeued_closes_nothing() -> None:
    stage = Watched()
    stage.wake()
    take_all(stage, *stage.sent())  # type: ignore[arg-type]
    started = stage.write(replace(make.claimed(stage.run), due_at=stage.clock.at))
    stage.jobs.rows[stage.run.key] = stage.run
    take_all(stage, *started)
    assert stage.types == [("task.alert", "late")]


def test_the_timer_is_set_to_the_next_deadline_and_dropped_after_the_last() -> None:
    stage = Watched()
    stage.wake()
    (timer,) = stage.run_timers.armed.values()
    assert timer.next_at > stage.clock.at and timer.at == stage.timer.at and timer.judged_until == NOW + MINUTE
    stage.jobs.rows[stage.run.key] = replace(stage.run, slot=None, completed_at=stage.clock.at, delay_ms=MINUTE)
    stage.clock.at = timer.next_at
    stage.wake()
    assert not stage.run_timers.armed


def test_each_minute_asks_for_the_timers_that_are_due() -> None:
    stage = Watched()
    steps.step(WorkDelivery(WorkItem(WorkKind.CHECKS), "m", "m/1", 1), stage, lambda: None)
    assert [queued.item for queued in stage.work.queued.values()] == [item_of(stage.timer)]
    stage.run_timers.armed[stage.timer.position] = replace(stage.timer, next_at=stage.clock.at + 80_000)
    assert request(stage, stage.clock.at) == 0


def test_a_timer_with_a_far_deadline_is_placed_there() -> None:
    """It is read in the minute of its deadline alone, also if its process ended before the timer in the old place was deleted."""
    stage = Watched()
    former, far = stage.timer, replace(stage.timer, next_at=stage.clock.at + FAR_MS + 1, judged_until=NOW)
    set_to(former, far, stage, stage.clock.at)
    assert list(stage.run_timers.armed.values()) == [far.at_its_deadline] and far.at_its_deadline.at == far.next_at
    stage.run_timers.arm([former])
    set_to(former, far, stage, stage.clock.at)
    assert list(stage.run_timers.armed.values()) == [far.at_its_deadline]


def test_many_due_timers_are_requested_in_steps() -> None:
    stage = Watched()
    stage.run_timers.drop(stage.timer)
    runs = [RunTimer(NOW + number, JobKey("ann", f"r{number}"), NOW, NOW + number) for number in range(2 * PAGE * PAGES + 1_200)]
    stage.run_timers.arm(runs)
    stage.clock.at = NOW + 20_000
    reads = list[int]()
    read = stage.run_timers.timers
    stage.run_timers.timers = lambda part, *rest: (reads.append(part), read(part, *rest))[1]  # type: ignore[method-assign]
    steps.step(WorkDelivery(WorkItem(WorkKind.CHECKS), "m", "m/1", 1), stage, lambda: None)
    assert [reads.count(part) for part in range(PARTS)] == [PAGES] * PARTS
    woken = set[WorkItem]()
    while left := stage.work.queued:
        queued = [left.pop(name) for name in list(left)]
        woken |= {each.item for each in queued if each.item.kind is WorkKind.RUN_TIMERS}
        for each in (each for each in queued if each.item.kind is WorkKind.REQUEST_TIMERS):
            reads.clear()
            steps.step(WorkDelivery(each.item, "m", "m/1", 1), stage, lambda: None)
            assert len(reads) <= PAGES
    assert woken == {item_of(timer) for timer in runs}


@pytest.mark.parametrize("nominal, alerts", [(NOW, []), (None, [("task.alert", "late")])], ids=["scheduled", "by hand"])
def test_an_edit_replaces_scheduled_runs_and_leaves_those_by_hand(nominal: int | None, alerts: list[tuple[str, str]]) -> None:
    """As an executor does with runs that have not started."""
    stage = Watched()
    assert stage.run.origin is not None
    stage.jobs.rows[stage.run.key] = replace(stage.run, origin=replace(stage.run.origin, nominal_at=nominal))
    stage.tasks.rows[stage.task.key] = replace(stage.task, generation=stage.task.generation + 1)
    stage.wake()
    take_all(stage, *stage.sent())  # type: ignore[arg-type]
    assert stage.types == alerts


@pytest.mark.parametrize("gone", ["run", "task", "alerts", "notifications", "disabled"])
def test_the_timer_of_a_run_that_is_no_longer_watched_is_dropped(gone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Watched()
    if gone == "run":
        del stage.jobs.rows[stage.run.key]
    elif gone == "task":
        del stage.tasks.rows[stage.task.key]
    elif gone == "disabled":
        monkeypatch.setattr(stage.users, "barred", lambda: Barred(disabled=frozenset({stage.task.owner})))
    else:
        stage.tasks.rows[stage.task.key] = replace(stage.task, **{gone: None})
    stage.wake()
    assert not stage.run_timers.armed and stage.sent() == []


def test_the_timer_of_a_run_that_may_be_stored_soon_stays() -> None:
    stage = Watched()
    del stage.jobs.rows[stage.run.key]
    stage.run_timers.arm([replace(stage.timer, armed_at=stage.clock.at - 1_000)])
    stage.wake()
    assert stage.run_timers.armed and stage.sent() == []


def test_a_rule_that_was_removed_is_not_reported() -> None:
    stage = Watched()
    stage.wake()
    stage.tasks.rows[stage.task.key] = replace(stage.task, alerts=Alerts(missed=True))
    take_all(stage, *stage.sent())  # type: ignore[arg-type]
    assert stage.types == []


def test_a_missed_run_is_reported_until_a_later_one_succeeds() -> None:
    stage = Watched()
    stage.run = stage.jobs.rows[stage.run.key] = replace(stage.run, start_by=NOW + MINUTE)
    skipped = replace(stage.run, slot=None, skipped_at=stage.clock.at, reason="misfire: it could not start before 10:01")
    take_all(stage, *stage.write(skipped))
    assert stage.types == [("task.alert", "missed")]
    assert stage.called.calls[0][1]["body"]["data"]["job"]["error"] == "misfire: it could not start before 10:01"
    take_all(stage, stage.news(Status.SUCCEEDED, scheduled_at=NOW + 1, at=stage.clock.at + 1))
    assert stage.types[1:] == [("task.alert_over", "missed")]


def test_a_run_that_another_rule_skips_is_not_missed() -> None:
    stage = Watched()
    skipped = replace(stage.run, slot=None, skipped_at=stage.clock.at, reason="overlap: another run has not ended")
    assert [news.alert for news in stage.write(skipped)] == [None]


def news(alert: Alert | None = None, job: str = "j1", **fields: Any) -> News:
    base = broke(make.job(at=NOW, id=job), Alert.LATE, NOW)
    return replace(base, **{"id": f"{job}.{alert}", "alert": alert, "job": job} | fields)


def test_runs_that_break_a_rule_at_the_same_time_are_one_incident() -> None:
    state = NotificationState(make.task().key)
    state, opening = alerting.opened(state, news(Alert.LATE), NOW, 0)
    state, joined = alerting.opened(state, news(Alert.LATE, "j2"), NOW + 1, 0)
    state, first = alerting.closed(state, news(job="j1", ended=Status.SUCCEEDED, id="j1.0"), NOW + 2)
    state, last = alerting.closed(state, news(job="j2", ended=Status.CANCELLED, id="j2.0"), NOW + 3)
    assert (len(opening), joined, first, len(last)) == (1, [], [], 1)
    assert last[0].count == 2 and last[0].former == opening[0].opening and last[0].since == NOW


def test_an_edit_begins_another_incident() -> None:
    state, _ = alerting.opened(NotificationState(make.task().key), news(Alert.LATE), NOW, 0)
    _, again = alerting.opened(state, news(Alert.LATE, "j2"), NOW + 9, NOW + 5)
    assert len(again) == 1


def test_a_further_incident_waits_for_the_notice_of_the_end_before() -> None:
    state, _ = alerting.opened(NotificationState(make.task().key), news(Alert.LONG), NOW, 0)
    state, _ = alerting.closed(state, news(job="j1", ended=Status.FAILED, id="j1.0"), NOW + 1)
    _, again = alerting.opened(state, news(Alert.LONG, "j2"), NOW + 2, 0)
    assert again[0].former == "j1.0"
    _, later = alerting.opened(state, news(Alert.LONG, "j2"), NOW + alerting.FORMER_MS + 1, 0)
    assert later[0].former == ""


def test_incidents_and_messages_round_trip() -> None:
    state, (opening,) = alerting.opened(NotificationState(make.task().key), news(Alert.LATE), NOW, 0)
    assert decode_state(state.task, 0, encode_state(state), encode_decisions(state)) == state
    assert "incidents" not in encode_state(state)
    for message in (news(Alert.LATE), news(watched=True), Sending(opening, "ann@example.com", "s1")):
        assert decode(encode(message)) == message
    plain = encode(news(id="x"))
    assert not any(f'"{name}"' in plain for name in ("alert", "watched", "opening", "former"))


def notice(alert: Alert, occasion: Occasion = Occasion.FAILURE) -> Notice:
    return Notice("n", occasion, news(alert), 2, since=NOW, name="Nightly", zone="Europe/Berlin", alert=alert, opening="o")


@pytest.mark.parametrize(
    ("alert", "opened", "closed"),
    [
        (Alert.LATE, "Nightly is late: a run has not started in time", "Nightly is late no longer"),
        (Alert.LONG, "Nightly runs too long", "Nightly runs too long no longer"),
        (Alert.NOT_DONE, "Nightly is not done in time", "Nightly is done, or need not be done any more"),
        (Alert.MISSED, "Nightly has missed a run", "Nightly has succeeded again after a missed run"),
    ],
)
def test_people_read_what_is_wrong_and_that_it_is_over(alert: Alert, opened: str, closed: str) -> None:
    assert text.lead(notice(alert)) == opened and text.lead(notice(alert, Occasion.RECOVERY)) == closed
    facts = dict(text.facts(notice(alert)))
    assert facts["Skipped" if alert is Alert.MISSED else "Deadline"] == "2026-11-20 11:00+01:00 (Europe/Berlin)"
    assert dict(text.facts(notice(alert, Occasion.RECOVERY)))["Runs of the incident"] == "2"
    assert "Since the last notice" not in facts


def test_each_alert_of_a_task_is_an_incident_of_pagerduty_of_its_own() -> None:
    events = [
        formats.bodies(notice(alert, occasion), PagerDuty("key"), Links())[0]
        for alert in (Alert.LATE, Alert.LONG)
        for occasion in (Occasion.FAILURE, Occasion.RECOVERY)
    ]
    assert [event["event_action"] for event in events] == ["trigger", "resolve"] * 2
    keys = [event["dedup_key"] for event in events]
    assert keys[0] == keys[1] != keys[2] == keys[3] and "failure" not in keys[0]


def test_alerts_do_not_depend_on_the_occasions_of_notifications() -> None:
    stage = Watched()
    wanted = Notifications(webhooks=stage.task.notifications.webhooks, on=(Occasion.SUCCESS,))  # type: ignore[union-attr]
    stage.tasks.rows[stage.task.key] = replace(stage.task, notifications=wanted)
    stage.wake()
    take_all(stage, *stage.sent())  # type: ignore[arg-type]
    assert stage.types == [("task.alert", "late")]
