"""The notifications of a task and of a one-time job: requested, validated, stored and changed."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from lambdas import _runtime
from scheduler.targets.base import Reach
from tests.lambdas.gateway import Answered, World, send

MAIL = {"emails": ["ann@example.com"]}
HOOK = {"url": "https://hooks.example.com/1", "signing_secret": "hook", "format": "standard"}
SLACK = {"url": "https://hooks.slack.com/services/T/B/x", "signing_secret": None, "format": "slack"}
USUAL = {
    "emails": ["ann@example.com"],
    "webhooks": [],
    "receivers": [],
    "on": ["failure", "recovery"],
    "after_failures": 1,
    "digest_seconds": 900,
}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    made = World(reach=Reach(sender="punctual@example.com"))
    monkeypatch.setattr(_runtime, "api", lambda: made)
    yield made


def post(notifications: Any, **fields: Any) -> Answered:
    body = {"name": "n", "message": "m", "schedule": {"cron": "0 * * * *"}, "notifications": notifications} | fields
    return send("POST", "/tasks", json_body=body)


def test_failures_and_recoveries_are_notified_by_default(world: World) -> None:
    made = post(MAIL).data
    assert made["notifications"] == USUAL
    assert send("GET", f"/tasks/{made['id']}").data["notifications"] == USUAL
    assert send("GET", "/tasks").data["items"][0]["notifications"] == USUAL
    assert all(job.origin is not None and job.origin.notify for job in world.jobs.rows.values()) and world.jobs.rows


def test_the_answered_notifications_may_be_posted_again(world: World) -> None:
    everything = {
        "emails": ["ann@example.com", "bob@example.com"],
        "webhooks": [HOOK],
        "receivers": [],
        "on": ["killed", "late", "success"],
        "after_failures": 3,
        "digest_seconds": 60,
    }
    answered = post(everything).data["notifications"]
    assert answered == everything and post(answered).data["notifications"] == everything


def test_a_receiver_listed_twice_is_stored_once(world: World) -> None:
    told = post({"emails": ["ann@example.com"] * 2, "webhooks": [HOOK, HOOK], "on": ["late", "late"]}).data["notifications"]
    assert (told["emails"], told["webhooks"], told["on"]) == (["ann@example.com"], [HOOK], ["late"])


def test_an_edit_replaces_or_removes_the_notifications(world: World) -> None:
    made = post(MAIL).data
    body = {"name": "n", "message": "m", "schedule": {"cron": "0 * * * *"}}
    edited = send("PUT", f"/tasks/{made['id']}", json_body=body | {"notifications": {"webhooks": [HOOK]}}).data
    assert (edited["notifications"]["emails"], edited["notifications"]["webhooks"]) == ([], [HOOK])
    assert send("PUT", f"/tasks/{made['id']}", json_body=body).data["notifications"] is None
    assert not any(job.origin.notify for job in world.jobs.rows.values() if job.origin is not None and job.slot is not None)


def test_a_manual_run_is_notified_too(world: World) -> None:
    made = post(MAIL).data
    run = send("POST", f"/tasks/{made['id']}/run", json_body={}).data
    (job,) = [job for job in world.jobs.rows.values() if job.id == run["id"]]
    assert job.origin.notify


@pytest.mark.parametrize(
    ("notifications", "field", "rule"),
    [
        (
            {},
            "notifications",
            "give emails, webhooks or receivers: you have no default receiver (punctual receivers put NAME KIND --default)",
        ),
        (
            {"emails": []},
            "notifications",
            "give emails, webhooks or receivers: you have no default receiver (punctual receivers put NAME KIND --default)",
        ),
        ({"emails": ["ann"]}, "notifications.emails.0", "must be one bare e-mail address"),
        ({"emails": ["a@example.com\nBcc: b@example.com"]}, "notifications.emails.0", "must be one bare e-mail address"),
        ({"emails": [f"a{n}@example.com" for n in range(11)]}, "notifications.emails", "10"),
        ({"webhooks": [HOOK | {"url": "ftp://example.com"}]}, "notifications.webhooks.0.url", "must be an http:// or https:// URL"),
        ({"webhooks": [HOOK | {"url": "http://example.com"}]}, "notifications.webhooks.0.url", "must be an https:// URL"),
        ({"webhooks": [HOOK | {"url": "https://u:p@example.com"}]}, "notifications.webhooks.0.url", "must not contain a user name"),
        ({"webhooks": [{"url": HOOK["url"]}]}, "notifications.webhooks.0.signing_secret", "is required, unless format is slack or teams"),
        ({"webhooks": [HOOK | {"signing_secret": None}]}, "notifications.webhooks.0.signing_secret", "is required"),
        ({"webhooks": [HOOK | {"format": "discord"}]}, "notifications.webhooks.0.format", "'standard', 'slack' or 'teams'"),
        ({"webhooks": [HOOK | {"signing_secret": "../x"}]}, "notifications.webhooks.0.signing_secret", "must be the name of a secret"),
        ({"webhooks": [{**HOOK, "url": f"https://example.com/{n}"} for n in range(6)]}, "notifications.webhooks", "5"),
        (MAIL | {"on": []}, "notifications.on", "1"),
        (MAIL | {"on": ["cancelled"]}, "notifications.on.0", "failure"),
        (MAIL | {"after_failures": 0}, "notifications.after_failures", "1"),
        (MAIL | {"digest_seconds": 901}, "notifications.digest_seconds", "900"),
        (MAIL | {"digest_seconds": 59}, "notifications.digest_seconds", "60"),
        (MAIL | {"sms": []}, "notifications.sms", ""),
        ("ann@example.com", "notifications", "object"),
    ],
)
def test_invalid_notifications_are_refused_by_field_and_not_stored(world: World, notifications: Any, field: str, rule: str) -> None:
    answered = post(notifications)
    assert answered.status == 400
    assert list(answered.fields) == [field] and rule in answered.fields[field]
    assert not world.tasks.rows and not world.jobs.rows


def test_receivers_must_be_allowed_by_the_stage(world: World) -> None:
    world.reach = Reach(hosts=("*.example.org",))
    assert "cannot send e-mail" in post(MAIL).fields["notifications.emails.0"]
    assert "has a host that jobs of this stage may not call" in post({"webhooks": [HOOK]}).fields["notifications.webhooks.0.url"]
    assert post({"webhooks": [HOOK | {"url": "https://a.example.org/x"}]}).status == 201
    world.rules = replace(world.rules, raw_http=False)
    assert "disabled" in post({"webhooks": [HOOK | {"url": "https://a.example.org/x"}]}).fields["notifications.webhooks.0.url"]


def test_a_webhook_is_standard_unless_it_names_a_format(world: World) -> None:
    plain = {name: HOOK[name] for name in ("url", "signing_secret")}
    assert post({"webhooks": [plain]}).data["notifications"]["webhooks"] == [HOOK]


def test_a_slack_webhook_needs_no_secret_and_may_be_posted_again(world: World) -> None:
    told = post({"webhooks": [{"url": SLACK["url"], "format": "slack"}]}).data["notifications"]
    assert told["webhooks"] == [SLACK] and post(told).data["notifications"] == told
    signed = SLACK | {"signing_secret": "hook"}
    assert post({"webhooks": [signed]}).data["notifications"]["webhooks"] == [signed]


def post_job(**fields: Any) -> Answered:
    return send("POST", "/jobs", json_body={"message": "m", "execute_at": "2026-11-21T10:00:00Z"} | fields)


def test_a_one_time_job_may_have_receivers(world: World) -> None:
    made = post_job(notifications=MAIL | {"webhooks": [HOOK, SLACK]}).data
    assert made["notifications"] == USUAL | {"webhooks": [HOOK, SLACK]}
    assert send("GET", f"/jobs/{made['id']}").data["notifications"] == made["notifications"]
    assert post_job(notifications=made["notifications"]).data["notifications"] == made["notifications"]
    assert post_job().data["notifications"] is None


def test_the_receivers_of_a_job_follow_the_rules_of_a_task(world: World) -> None:
    refused = post_job(notifications={"emails": ["ann"]})
    assert (refused.status, list(refused.fields)) == (400, ["notifications.emails.0"])
    batch = send("POST", "/jobs/batch", json_body={"jobs": [{"message": "m", "notifications": {}}]}).data
    assert [detail["field"] for detail in batch["results"][0]["error"]["details"]] == ["jobs[0].notifications"]
    world.reach = Reach()
    assert "cannot send e-mail" in post_job(notifications=MAIL).fields["notifications.emails.0"]
    assert len(world.jobs.rows) == 0


def test_the_receivers_of_a_job_are_changed_and_removed_until_it_starts(world: World) -> None:
    job = post_job(notifications=MAIL).data
    path = f"/jobs/{job['id']}"
    assert send("PATCH", path, json_body={"message": "new"}).data["notifications"] == USUAL
    changed = send("PATCH", path, json_body={"notifications": {"webhooks": [SLACK]}}).data["notifications"]
    assert (changed["emails"], changed["webhooks"]) == ([], [SLACK])
    refused = send("PATCH", path, json_body={"notifications": {"emails": ["ann"]}})
    assert (refused.status, list(refused.fields)) == (400, ["notifications.emails.0"])
    assert send("PATCH", path, json_body={"notifications": None}).data["notifications"] is None


def test_a_run_gets_no_receivers_of_its_own(world: World) -> None:
    post(MAIL)
    run = next(job for job in world.jobs.rows.values() if job.origin is not None)
    refused = send("PATCH", f"/jobs/{run.id}", json_body={"notifications": MAIL})
    assert refused.status == 409 and "its task has the receivers" in refused.error["message"]
    assert send("GET", f"/jobs/{run.id}").data["notifications"] is None
