"""The notifications of a task: requested, validated, stored and changed."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from lambdas import _runtime
from scheduler.targets.base import Reach
from tests.lambdas.gateway import Answered, World, send

MAIL = {"emails": ["ann@example.com"]}
HOOK = {"url": "https://hooks.example.com/1", "signing_secret": "hook"}
USUAL = {"emails": ["ann@example.com"], "webhooks": [], "on": ["failure", "recovery"], "after_failures": 1, "digest_seconds": 900}


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
    assert send("GET", "/tasks").data["tasks"][0]["notifications"] == USUAL
    assert all(job.origin is not None and job.origin.notify for job in world.jobs.rows.values()) and world.jobs.rows


def test_the_answered_notifications_may_be_posted_again(world: World) -> None:
    everything = {
        "emails": ["ann@example.com", "bob@example.com"],
        "webhooks": [HOOK],
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
        ({}, "notifications", "give emails, webhooks or both"),
        ({"emails": []}, "notifications", "give emails, webhooks or both"),
        ({"emails": ["ann"]}, "notifications.emails.0", "must be one bare e-mail address"),
        ({"emails": ["a@example.com\nBcc: b@example.com"]}, "notifications.emails.0", "must be one bare e-mail address"),
        ({"emails": [f"a{n}@example.com" for n in range(11)]}, "notifications.emails", "10"),
        ({"webhooks": [HOOK | {"url": "ftp://example.com"}]}, "notifications.webhooks.0.url", "must be an http:// or https:// URL"),
        ({"webhooks": [HOOK | {"url": "http://example.com"}]}, "notifications.webhooks.0.url", "must be an https:// URL"),
        ({"webhooks": [HOOK | {"url": "https://u:p@example.com"}]}, "notifications.webhooks.0.url", "must not carry a user name"),
        ({"webhooks": [{"url": HOOK["url"]}]}, "notifications.webhooks.0.signing_secret", "required"),
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
    assert "no sender" in post(MAIL).fields["notifications.emails.0"]
    assert "not on a host" in post({"webhooks": [HOOK]}).fields["notifications.webhooks.0.url"]
    assert post({"webhooks": [HOOK | {"url": "https://a.example.org/x"}]}).status == 201
    world.rules = replace(world.rules, raw_http=False)
    assert "switched off" in post({"webhooks": [HOOK | {"url": "https://a.example.org/x"}]}).fields["notifications.webhooks.0.url"]


def test_jobs_without_a_task_have_no_receivers(world: World) -> None:
    refused = send("POST", "/me/jobs", json_body={"message": "m", "notifications": MAIL})
    assert (refused.status, list(refused.fields)) == (400, ["notifications"])
