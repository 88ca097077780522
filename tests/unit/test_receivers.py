"""Named receivers: what an owner does with them, and how notify uses them."""

from dataclasses import replace
from typing import Any

import pytest

from scheduler.accounts import teams
from scheduler.model.errors import Conflict, Invalid, NotFound
from scheduler.model.job import Failure, FailureKind, Result, Status
from scheduler.model.monitor import Monitor
from scheduler.model.notifications import Named, Notifications
from scheduler.model.receiver import MOST, MOST_REFUSALS, Health, NamedReceiver, ReceiverKind
from scheduler.monitors import rules
from scheduler.notify import receivers
from scheduler.notify.notify import DELETED, OFF, health_after
from scheduler.notify.receivers import NewReceiver
from tests.conftest import NOW
from tests.unit.test_notify import FAILED, RETRYABLE, SUCCEEDED, Stage

URL = "https://hooks.slack.com/services/T/B/secret"
KEY = "0123456789abcdef0123456789abcdef"
GONE = Result(failure=Failure(FailureKind.PERMANENT, "HTTP 410"))


def new(name: str = "ops", kind: ReceiverKind = ReceiverKind.SLACK, address: str | None = URL, **fields: Any) -> NewReceiver:
    return NewReceiver("ada", name, kind, address, **fields)


def staged(*names: str, **fields: Any) -> Stage:
    """A task that notifies these receivers, and no others."""
    return Stage(emails=(), webhooks=(), named=names, **fields)


def notified(stage: Stage, ended: Status) -> None:
    stage.take(stage.news(ended))
    stage.clock.advance(1_000)


def health(stage: Stage, name: str = "ops") -> Health:
    found: NamedReceiver = stage.receivers.find("ada", name)
    return found.health


def test_a_receiver_is_created_and_replaced() -> None:
    stage = Stage()
    first, is_new = receivers.put(new(), stage)
    assert is_new and (first.version, first.created_at, first.address) == (1, NOW, URL)
    stage.clock.advance(5)
    second, is_new = receivers.put(new(address=None, default=True), stage)
    assert not is_new and (second.version, second.created_at, second.updated_at) == (2, NOW, NOW + 5)
    assert second.address == URL and second.default, "the address stays"
    assert receivers.put(new(address=first.shown_address), stage)[0].address == URL, "an answer may be sent back"
    assert receivers.find("ada", "ops", stage).version == 3


@pytest.mark.parametrize(
    ("kind", "address", "shown"),
    [
        (ReceiverKind.EMAIL, "ann@example.com", "ann@example.com"),
        (ReceiverKind.SLACK, URL, "https://hooks.slack.com/…cret"),
        (ReceiverKind.PAGERDUTY, KEY, "…cdef"),
    ],
)
def test_of_a_secret_address_only_the_end_is_shown(kind: ReceiverKind, address: str, shown: str) -> None:
    assert receivers.put(new(kind=kind, address=address), Stage())[0].shown_address == shown


@pytest.mark.parametrize(
    ("stored", "wanted", "rule"),
    [
        (None, new(address=None), "is required"),
        (new(), new(kind=ReceiverKind.TEAMS, address=None), "is required"),
        (new(), new(address="https://hooks.slack.com/…else"), "must be a whole address"),
    ],
)
def test_an_address_that_cannot_stay_is_refused(stored: NewReceiver | None, wanted: NewReceiver, rule: str) -> None:
    stage = Stage()
    before = None if stored is None else receivers.put(stored, stage)[0]
    with pytest.raises(Invalid) as refused:
        receivers.put(wanted, stage)
    assert refused.value.details[0]["field"] == "address" and rule in refused.value.details[0]["rule"]
    assert stage.receivers.find("ada", "ops") == before


def test_an_owner_has_a_bounded_number_of_receivers() -> None:
    stage = Stage()
    for number in range(MOST):
        receivers.put(new(f"r{number}"), stage)
    with pytest.raises(Conflict, match="at most 50"):
        receivers.put(new(), stage)
    receivers.put(new("r0", default=True), stage)


def test_a_receiver_in_use_is_not_deleted() -> None:
    stage = staged("ops")
    receivers.put(new(), stage)
    with pytest.raises(Conflict, match=stage.task.id):
        receivers.delete("ada", "ops", stage)
    stage.tasks.delete(stage.task)
    receivers.delete("ada", "ops", stage)
    for name in ("ops", "No name"):
        with pytest.raises(NotFound):
            receivers.delete("ada", name, stage)


def test_a_receiver_that_a_monitor_names_is_not_deleted() -> None:
    stage = staged("other")
    receivers.put(new(), stage)
    values: dict[str, Any] = {"grace_ms": 1, "max_duration_ms": 1, "created_at": NOW, "updated_at": NOW, "pulse": rules.created(NOW)}
    monitor = Monitor("ada", "backup", "id", "Backup", "hash", 1, notifications=Notifications(named=("ops",)), **values)
    assert stage.monitors.put(None, monitor)
    with pytest.raises(Conflict, match="monitors notify this receiver: backup"):
        receivers.delete("ada", "ops", stage)
    stage.monitors.delete(monitor)
    receivers.delete("ada", "ops", stage)


def test_a_deleted_team_leaves_no_receivers() -> None:
    stage = Stage()
    team = teams.create("billing", "ann", stage)
    receivers.put(replace(new(), owner=team.id), stage)
    teams.delete(team.id, False, stage)
    assert stage.receivers.all(team.id) == []


def test_a_notice_reaches_a_named_receiver_at_its_present_address() -> None:
    stage = staged("ops")
    receivers.put(new(), stage)
    notified(stage, FAILED)
    receivers.put(new(address="https://hooks.slack.com/services/new"), stage)
    stage.work_off()
    ((_, payload),) = stage.called.calls
    assert payload["url"].endswith("/new") and set(payload["body"]) == {"text"} and "signing_secret" not in payload


def test_a_signed_receiver_has_its_secret() -> None:
    stage = staged("hook")
    receivers.put(new("hook", ReceiverKind.WEBHOOK, "https://example.com", signing_secret="s"), stage)
    notified(stage, FAILED)
    stage.work_off()
    assert [(payload["signing_secret"], payload["body"]["type"]) for _, payload in stage.called.calls] == [("s", "task.failure")]


def test_notifications_without_receivers_are_for_the_default_ones() -> None:
    stage = staged()
    receivers.put(new("other"), stage)
    receivers.put(new("mail", ReceiverKind.EMAIL, "ann@example.com", default=True), stage)
    notified(stage, FAILED)
    stage.work_off()
    assert stage.subjects == ["[Punctual] Nightly failed"] and not stage.called.calls


def test_five_failures_and_a_success_are_one_incident_of_pagerduty() -> None:
    stage = staged("oncall", digest_ms=60_000)
    receivers.put(new("oncall", ReceiverKind.PAGERDUTY, KEY), stage)
    for ended in (FAILED,) * 5 + (SUCCEEDED,):
        notified(stage, ended)
        stage.work_off()
        stage.clock.advance(61_000)
        stage.work_off()
    told = [(payload["body"]["event_action"], payload["body"]["dedup_key"]) for _, payload in stage.called.calls]
    key = f"ada/{stage.task.id}/failure"
    assert {each for each, _ in told} == {"trigger", "resolve"} and {each for _, each in told} == {key}
    assert told[-1] == ("resolve", key) and told.count(("resolve", key)) == 1


def test_an_incident_is_resolved_last_though_its_opening_is_retried() -> None:
    stage = staged("oncall")
    receivers.put(new("oncall", ReceiverKind.PAGERDUTY, KEY), stage)
    stage.called.answer = lambda id: RETRYABLE
    notified(stage, FAILED)
    (opening,) = stage.sent()
    assert stage.take(opening).failed == 1
    stage.called.answer = lambda id: Result()
    notified(stage, SUCCEEDED)
    stage.work_off()
    stage.clock.advance(60_000)
    stage.take(opening)
    assert [payload["body"]["event_action"] for _, payload in stage.called.calls] == ["trigger", "resolve"]


def test_a_deleted_receiver_gives_its_notices_up() -> None:
    stage = staged("ops")
    notified(stage, FAILED)
    (sending,) = stage.sent()
    assert stage.take(sending).undelivered == 1 and stage.take(sending).undelivered == 0
    assert [each.error for each in stage.notices.deliveries.values()] == [DELETED] and not stage.called.calls


def test_a_receiver_that_refuses_is_off_until_a_test_reaches_it() -> None:
    stage = staged("ops", digest_ms=60_000)
    receivers.put(new(), stage)
    stage.called.answer = lambda id: GONE
    for _ in range(MOST_REFUSALS + 2):
        notified(stage, FAILED)
        stage.work_off()
        stage.clock.advance(61_000)
        stage.work_off()
    assert len(stage.called.calls) == MOST_REFUSALS and health(stage).refusals == MOST_REFUSALS
    assert [each.error for each in stage.notices.deliveries.values()].count(OFF) > 0
    receivers.send_test("ada", "ops", stage)
    stage.work_off()
    assert health(stage).refusals == MOST_REFUSALS + 1, "a test is sent nevertheless"
    stage.called.answer = lambda id: Result()
    stage.clock.advance(10_000)
    at = receivers.send_test("ada", "ops", stage)
    stage.work_off()
    assert health(stage) == Health(tested_at=at)


def test_a_test_goes_the_way_of_all_notices_once() -> None:
    stage = Stage()
    receivers.put(new(), stage)
    with pytest.raises(NotFound):
        receivers.send_test("ada", "other", stage)
    receivers.send_test("ada", "ops", stage)
    receivers.send_test("ada", "ops", stage)
    (first, second) = stage.notices.sent
    assert first == second and first.receiver == Named("ops")
    stage.work_off()
    ((_, payload),) = stage.called.calls
    assert payload["body"]["text"].startswith("*Test of the receiver ops: notices arrive here*")
    assert health(stage).tested_at == NOW


def test_a_test_is_tried_once() -> None:
    stage = Stage()
    receivers.put(new(), stage)
    stage.called.answer = lambda id: RETRYABLE
    receivers.send_test("ada", "ops", stage)
    (sending,) = stage.sent()
    assert stage.take(sending).undelivered == 1
    assert health(stage) == Health(0, "HTTP 500", NOW), "nothing was refused for good"


def test_health_changes_with_the_last_answer() -> None:
    ill = health_after(Health(tested_at=3), GONE, NOW, test=False)
    assert ill == Health(1, "HTTP 410", NOW, 3) and health_after(ill, GONE, NOW + 1, test=False).refusals == 2
    assert health_after(ill, Result(), NOW + 1, test=False) == Health(tested_at=3)
    assert health_after(ill, RETRYABLE, NOW + 1, test=False) == Health(1, "HTTP 500", NOW + 1, 3)
