"""The routes of monitors, and their pings from the first to the notice."""

import base64
from typing import Any

import pytest

from lambdas.rest import monitor_models, shapes
from scheduler.model.monitor import LONGEST_BODY
from scheduler.model.notice import Sending
from scheduler.model.notifications import Named
from scheduler.model.work import WorkItem, WorkKind
from scheduler.monitors import steps, tokens
from scheduler.monitors.throttle import MOST_WRONG, WINDOW_MS
from scheduler.notify import text
from tests.lambdas.gateway import NOW, Answered, World, send

pytestmark = pytest.mark.usefixtures("world")

MINUTE = 60_000
HOOK = {"url": "https://example.com/hook", "signing_secret": "hooks"}
SYNC: dict[str, Any] = {"name": "Sync", "period_seconds": 300, "grace_seconds": 60}


def put(key: str = "sync", **fields: Any) -> Answered:
    return send("PUT", f"/monitors/{key}", json_body={**SYNC, **fields})


def shown(key: str = "sync") -> Any:
    answered = send("GET", f"/monitors/{key}")
    shapes.Answer[monitor_models.MonitorShape].model_validate(answered.body)
    return answered.data


def history(key: str = "sync") -> list[tuple[str, str]]:
    answered = send("GET", f"/monitors/{key}/history")
    shapes.Answer[monitor_models.MonitorHistoryShape].model_validate(answered.body)
    return [(each["kind"], each["body"]) for each in answered.data["items"]]


def ping(signal: str = "", *, key: str = "sync", method: str = "GET", **rest: Any) -> Answered:
    path = shown(key)["ping_path"].removeprefix("/api/v1")
    return send(method, path + (f"/{signal}" if signal else ""), user=None, **rest)


def work_off(world: World, until: int) -> None:
    """Carry out the minutes of the engine and the wakes up to an instant, each when it is due."""
    minute = world.clock.now()
    while True:
        wakes = [sent.visible_at for sent in world.work.queued.values()]
        following = min([minute, *wakes])
        if following > until:
            world.clock.sleep_until(until)
            return
        world.clock.sleep_until(following)
        if minute <= world.clock.now():
            world.work.send([WorkItem(WorkKind.CHECKS)])
            minute += MINUTE
        for sent in world.work.receive(world.clock.now()):
            steps.step(sent, world, lambda: None)
            world.work.delete(sent.receipt)


def sent(world: World) -> list[str]:
    """The subjects of all notices, each once."""
    notices = {each.id: each for each in world.notices.sent if isinstance(each, Sending)}
    return [text.mail(each.notice, text.Links())["subject"] for each in notices.values()]


def test_a_monitor_is_created_once_and_replaced_under_its_key() -> None:
    first, second = put(), put(name="Other")
    assert (first.status, second.status) == (201, 200)
    assert second.data["ping_path"] == first.data["ping_path"] and second.data["name"] == "Other"
    assert put(name="Other").data == second.data
    assert first.data["state"] == "new" and first.data["grace_seconds"] == 60 and first.data["max_duration_seconds"] == 3600
    assert [each["key"] for each in send("GET", "/monitors").data["items"]] == ["sync"]


def test_a_list_has_pages() -> None:
    for key in ("a", "b", "c"):
        put(key)
    first = send("GET", "/monitors", query={"limit": "2"}).data
    second = send("GET", "/monitors", query={"limit": "2", "cursor": first["cursor"]}).data
    assert [each["key"] for each in first["items"] + second["items"]] == ["a", "b", "c"] and not second["has_more"]
    assert send("GET", "/monitors", query={"cursor": "?"}).fields == {"cursor": "must be the cursor of an earlier answer, unchanged"}


@pytest.mark.parametrize(
    "fields, field",
    [
        ({"period_seconds": None}, "body"),
        ({"schedule": {"cron": "0 3 * * *"}}, "body"),
        ({"period_seconds": 5}, "period_seconds"),
        ({"grace_seconds": 0}, "grace_seconds"),
        ({"period_seconds": None, "schedule": {"cron": "0 3 * *"}}, "schedule.cron"),
        ({"period_seconds": None, "schedule": {"cron": "0 3 * * *", "max_runs": 3}}, "schedule.max_runs"),
        ({"period_seconds": None, "schedule": {"at": "2027-01-01T00:00:00Z"}}, "schedule.at"),
        ({"notifications": {"webhooks": [HOOK], "after_failures": 3}}, "notifications.after_failures"),
        ({"notifications": {}}, "notifications"),  # there is no default receiver
        ({"notifications": {"receivers": ["nobody"]}}, "notifications.receivers.0"),
        ({"period_seconds": None, "schedule": {"cron": "0 3 * * *", "exclude": ["de-holidays"]}}, "schedule.exclude"),
    ],
)
def test_a_bad_monitor_is_refused_by_field_and_changes_nothing(fields: dict[str, Any], field: str) -> None:
    refused = put(**fields)
    assert refused.status == 400 and field in refused.fields, refused.text
    assert send("GET", "/monitors").data["items"] == []


def test_a_bad_key_and_an_unknown_one_are_refused() -> None:
    assert put("%20").status == 400
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/pause"), ("POST", "/resume"), ("POST", "/token"), ("GET", "/history")):
        assert send(method, f"/monitors/none{path}").status == 404


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_pings_need_no_sign_in(method: str, world: World) -> None:
    put()
    for signal, state in (("", "up"), ("start", "up"), ("fail", "failed"), ("0", "up"), ("3", "failed"), ("success", "up")):
        answered = ping(signal, method=method)
        assert (answered.status, answered.data, answered.headers["Cache-Control"]) == (200, {"state": state}, "no-store"), signal
        world.clock.at += 1_000
    assert [kind for kind, _ in history()][:3] == ["up", "success", "failed"]


def test_a_ping_url_in_capitals_counts_and_a_head_request_does_not() -> None:
    path = put().data["ping_path"].removeprefix("/api/v1/ping/")
    assert send("HEAD", f"/ping/{path}", user=None).status == 405 and shown()["state"] == "new"
    assert send("GET", f"/ping/{path.upper()}/START", user=None).status == 200 and shown()["running_since"] is not None


@pytest.mark.parametrize("signal", ["256", "-1", "begin", "1e3", "99999999999999999999"])
def test_a_signal_that_is_none_is_refused_and_changes_nothing(signal: str) -> None:
    put()
    assert "signal" in ping(signal).fields and shown()["state"] == "new"


def test_the_text_of_a_ping_is_cut_and_read_as_it_is(world: World) -> None:
    put()
    large = base64.b64encode(b"\xff\xfe" + b"<b>x</b>" * 131_072).decode()
    assert ping("1", method="POST", body=large, base64=True).status == 200
    (_, stored), *_ = [each for each in history() if each[0] == "fail"]
    assert len(stored) <= LONGEST_BODY and stored.startswith("��<b>x")
    assert ping(method="POST", body="not json", headers={"content-type": "text/plain"}).status == 200


def test_silence_is_one_notice_down_and_the_next_ping_one_up(world: World) -> None:
    put(notifications={"webhooks": [HOOK]})
    work_off(world, NOW + 2 * MINUTE)
    ping()
    at = world.clock.now()
    work_off(world, at + 6 * MINUTE - 1)
    assert shown()["state"] == "up" and sent(world) == []
    work_off(world, at + 6 * MINUTE + 1_000)
    assert shown()["state"] == "down" and sent(world) == ["[Punctual] Monitor Sync is down"]
    work_off(world, at + 30 * MINUTE)
    assert len(sent(world)) == 1
    ping()
    work_off(world, world.clock.now())
    assert sent(world) == ["[Punctual] Monitor Sync is down", "[Punctual] Monitor Sync is up again"]
    work_off(world, world.clock.now() + 7 * MINUTE)
    assert len(sent(world)) == 3


def test_a_monitor_that_names_nobody_notifies_the_default_receivers(world: World) -> None:
    def receiver(name: str, default: bool) -> None:
        body = {"kind": "slack", "address": "https://hooks.slack.com/services/x", "default": default}
        assert send("PUT", f"/receivers/{name}", json_body=body).status in (200, 201)

    receiver("ops", True)
    assert put(notifications={}).status == 201
    assert shown()["notifications"]["receivers"] == []
    put("quiet")
    receiver("later", True)
    receiver("other", False)
    work_off(world, NOW + 7 * MINUTE)
    found = [each for each in world.notices.sent if isinstance(each, Sending)]
    assert {(each.receiver, each.notice.name) for each in found} == {(Named("ops"), "Sync"), (Named("later"), "Sync")}
    for name in ("ops", "later"):
        assert send("DELETE", f"/receivers/{name}").status == 200
    ping()
    work_off(world, world.clock.now() + MINUTE)
    assert len([each for each in world.notices.sent if isinstance(each, Sending)]) == len(found), "nobody is left"


def test_pings_at_the_deadline_are_one_state_and_one_notice_each_way(world: World) -> None:
    put(notifications={"webhooks": [HOOK]})
    work_off(world, NOW + 6 * MINUTE + 1_000)
    for _ in range(50):
        ping()
        work_off(world, world.clock.now() + 20)
    assert len(sent(world)) == 2 and shown()["state"] == "up"


def test_a_ping_is_one_write(world: World) -> None:
    put()
    ping()
    before = (world.monitors.stored.copy(), world.monitors.armed.copy(), world.monitors.events.copy())
    world.clock.at += 1_000
    ping()
    assert (world.monitors.armed, world.monitors.events) == before[1:] and world.monitors.stored != before[0]


def test_a_pause_and_a_resume_begin_a_new_period(world: World) -> None:
    put(notifications={"webhooks": [HOOK]})
    assert send("POST", "/monitors/sync/pause").data["state"] == "paused"
    assert send("POST", "/monitors/sync/pause").data["state"] == "paused"
    work_off(world, NOW + 60 * MINUTE)
    assert send("POST", "/monitors/sync/resume").data["state"] == "new"
    work_off(world, NOW + 66 * MINUTE - 1)
    assert sent(world) == [] and shown()["state"] == "new"
    work_off(world, NOW + 66 * MINUTE + 1_000)
    assert len(sent(world)) == 1 and [kind for kind, _ in history()] == ["down", "new", "paused"]


def test_a_new_token_makes_the_former_wrong(world: World) -> None:
    former = put(notifications={"webhooks": [HOOK]}).data["ping_path"].removeprefix("/api/v1")
    assert send("POST", "/monitors/sync/token").data["ping_path"] != former
    assert send("GET", former, user=None).status == 404 and ping().status == 200
    work_off(world, NOW + 7 * MINUTE)
    assert sent(world) == ["[Punctual] Monitor Sync is down"]


def test_a_token_of_a_rotated_key_is_valid_and_not_shown(world: World) -> None:
    path = put().data["ping_path"].removeprefix("/api/v1")
    world.secrets.signing = (b"third", b"second")
    assert shown()["ping_path"] is None and send("GET", path, user=None).status == 200
    assert send("POST", "/monitors/sync/token").data["ping_path"] is not None


def test_a_deleted_monitor_takes_no_ping_and_is_never_down(world: World) -> None:
    path = put(notifications={"webhooks": [HOOK]}).data["ping_path"].removeprefix("/api/v1")
    assert send("DELETE", "/monitors/sync").data == {"key": "sync"}
    assert send("GET", path, user=None).status == 404
    work_off(world, NOW + 60 * MINUTE)
    assert sent(world) == [] and not world.monitors.armed


def test_wrong_tokens_are_throttled_by_source_and_write_nothing(world: World) -> None:
    put()
    ping()
    before = world.monitors.stored.copy()
    wrong = [send("GET", f"/ping/{tokens.derive('guess', number, b'')}", user=None).status for number in range(100)]
    assert wrong == [404] * MOST_WRONG + [429] * (100 - MOST_WRONG) and world.monitors.stored == before
    refused = send("GET", "/ping/none", user=None)
    assert refused.status == 429 and refused.headers["Retry-After"] == "60"
    assert ping().status == 200, "a token that was right before"
    world.clock.at += WINDOW_MS
    assert send("GET", "/ping/none", user=None).status == 404


def test_no_monitor_of_a_disabled_owner_is_notified(world: World) -> None:
    put(notifications={"webhooks": [HOOK]})
    world.users.set_disabled("sub-ann", NOW)
    work_off(world, NOW + 7 * MINUTE)
    assert sent(world) == []


def test_a_schedule_shows_its_times_and_a_warning() -> None:
    nightly = put(period_seconds=None, schedule={"cron": "30 2 * * *", "time_zone": "Europe/Berlin"}).data
    assert nightly["expected_at"] == "2026-11-21T01:30:00.000Z" == nightly["next_expected"][0]["at"]
    assert (
        nightly["next_expected"][0]["local_at"] == "2026-11-21T02:30:00+01:00"
        and len(nightly["next_expected"]) == 5
        and nightly["warning"] is None
    )
    assert "every five minutes" in put(period_seconds=None, schedule={"cron": "* 9 * * *"}).data["warning"]


def test_a_new_name_keeps_the_state_and_a_new_rhythm_begins_a_period(world: World) -> None:
    put()
    ping()
    assert put(name="Other").data["state"] == "up"
    assert put(name="Other", grace_seconds=90).data["state"] == "new"


def test_tokens_are_in_no_log(logged: pytest.LogCaptureFixture) -> None:
    path = put().data["ping_path"]
    ping("start")
    assert not any(path.rpartition("/")[2] in str(record.__dict__) for record in logged.records)
