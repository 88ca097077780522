"""Every operation of the OpenAPI document has a method, which sends what the document allows and reads what it answers."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from docs_build.expanded import expanded
from fake_api import KEY, TEAM, Flavor

from punctual import fields
from punctual.records import Record

DOCUMENT: dict[str, Any] = expanded(json.loads((Path(__file__).parents[2] / "docs/reference/openapi.json").read_text()))
SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]
ELSEWHERE = {"login", "refreshToken", "sendHeartbeat", "completeJob", "failJob"}  # the session's and the worker's
ELSEWHERE |= {"answerChallenge", "getSignOn", "completeSignOn"}  # those of `punctual login`
ELSEWHERE |= {"getPing", "postPing", "getPingSignal", "postPingSignal"}  # those of `punctual monitor run`, which needs no client
ELSEWHERE |= {"getSecondFactor", "beginSecondFactor", "confirmSecondFactor", "removeSecondFactor"}  # those of the console
ID, AT = "01ARZ3NDEKTSV4RRFFQ69G5FAV", "2026-11-20T10:00:00.000Z"
CALLS: dict[str, Callable[[Any], Any]] = {
    "abortOperation": lambda c: c.operations.abort(ID),
    "acceptInvitation": lambda c: c.teams.accept("token"),
    "abortRedrive": lambda c: c.dead_letters.abort(ID),
    "cancelGroup": lambda c: c.groups.cancel(ID),
    "cancelJob": lambda c: c.jobs.cancel(ID),
    "cancelJobByKey": lambda c: c.jobs.cancel(key="order-17"),
    "cancelJobs": lambda c: c.jobs.cancel_many(tag="a", status=["scheduled"], from_=AT, rate=5),
    "changeMyPassword": lambda c: c.change_password("old", "new"),
    "closeBreaker": lambda c: c.system.close_breaker("host example.com"),
    "createGroup": lambda c: c.groups.create(
        [{"message": "m"}], name="n", on_complete={"message": "a"}, on_success={"message": "b"}, on_failure={"message": "c"}, seal_within=90
    ),
    "createJob": lambda c: c.jobs.create(http="https://example.com", delay="30m", tags=["a"], max_attempts=5),
    "createJobs": lambda c: c.jobs.create_many([{"message": "m"}, {"message": "n"}]),
    "createKey": lambda c: c.keys.create("ci", ["jobs:*"], expires_in_days=30, owner=TEAM),
    "createPrincipal": lambda c: c.principals.create("arn:aws:iam::123456789012:role/x", TEAM, ["jobs:write"], unique_id="AROAX"),
    "createTarget": lambda c: c.targets.create("billing", "http", defaults={"url": "https://example.com"}, rate=10),
    "createTask": lambda c: c.tasks.create("Nightly", message="m", cron="30 2 * * *", time_zone="Europe/Berlin", overlap="skip"),
    "createTeam": lambda c: c.teams.create("billing"),
    "createUser": lambda c: c.users.create("ann", "password", role="user", job_weight=2.0),
    "deleteCalendar": lambda c: c.calendars.delete("de"),
    "deleteIntakeDeadLetter": lambda c: c.intake.delete("m-1"),
    "deletePrincipal": lambda c: c.principals.delete("p-1"),
    "deleteReceiver": lambda c: c.receivers.delete("ops", owner=TEAM),
    "deleteTarget": lambda c: c.targets.delete("billing"),
    "deleteTask": lambda c: c.tasks.delete(ID),
    "deleteTasks": lambda c: c.tasks.delete_many(tag="a", status="ended"),
    "deleteTeam": lambda c: c.teams.delete(TEAM),
    "deleteUser": lambda c: c.users.delete(ID),
    "disableUser": lambda c: c.users.disable(ID),
    "enableUser": lambda c: c.users.enable(ID),
    "getAttemptLog": lambda c: c.jobs.log(ID, 1),
    "getAttemptOutput": lambda c: c.jobs.output(ID, 1),
    "getAwsAction": lambda c: c.aws_action("s3", "CopyObject"),
    "getCalendar": lambda c: c.calendars.get("de"),
    "getCrowdedMinutes": lambda c: c.tasks.crowded(days=2, limit=5),
    "getForecast": lambda c: c.forecast(scope="own"),
    "getGroup": lambda c: c.groups.get(ID),
    "getHealth": lambda c: c.health(),
    "getIntakeDeadLetter": lambda c: c.intake.get("m-1"),
    "getJob": lambda c: c.jobs.get(ID),
    "getJobByKey": lambda c: c.jobs.get(key="order-17"),
    "getKey": lambda c: c.keys.get("k2" * 8, owner=TEAM),
    "getMe": lambda c: c.me(),
    "getOperation": lambda c: c.operations.get(ID),
    "getOrderingKey": lambda c: c.ordering_keys.get("customer-7"),
    "getPrincipal": lambda c: c.principals.get("p-1"),
    "getRedrive": lambda c: c.dead_letters.get(ID),
    "getStatistics": lambda c: c.statistics(),
    "getStatus": lambda c: c.status(scope="all"),
    "getSystem": lambda c: c.system.status(),
    "getDefaultAlerts": lambda c: c.receivers.default_alerts(),
    "getReceiver": lambda c: c.receivers.get("ops"),
    "getTarget": lambda c: c.targets.get("billing"),
    "getTask": lambda c: c.tasks.get(ID),
    "getTaskByKey": lambda c: c.tasks.get(key="nightly"),
    "getTeam": lambda c: c.teams.get(TEAM),
    "getUser": lambda c: c.users.get(ID),
    "getVersion": lambda c: c.version(),
    "invite": lambda c: c.teams.invite(TEAM, "editor", expires_in_days=3),
    "listAuditEntries": lambda c: c.audit(everyone=True, limit=1),
    "listAwsActions": lambda c: c.aws_actions(scope="all"),
    "listCalendars": lambda c: c.calendars.list(),
    "listBreakers": lambda c: c.system.breakers(limit=1),
    "listDeadLetterJobs": lambda c: c.dead_letters.jobs("a" * 16, limit=1),
    "listDeadLetters": lambda c: c.dead_letters.list(limit=1),
    "linkIdentity": lambda c: c.users.link(ID, "corp", "ann@example.com"),
    "listIdentities": lambda c: c.users.identities(ID),
    "listIntakeDeadLetters": lambda c: c.intake.list(unknown=True, limit=1),
    "listInvitations": lambda c: c.teams.invitations(TEAM),
    "listGroupJobs": lambda c: c.groups.jobs(ID, status=["failed", "killed"], limit=1),
    "listGroups": lambda c: c.groups.list(limit=1),
    "listJobs": lambda c: c.jobs.list(status=["failed", "killed"], tag="a", from_=AT, limit=1),
    "listKeys": lambda c: c.keys.list(owner=TEAM),
    "listMembers": lambda c: c.teams.members(TEAM),
    "listMyAuditEntries": lambda c: c.audit(limit=1),
    "listNextRuns": lambda c: c.tasks.next(ID, 3),
    "listOperations": lambda c: c.operations.list(limit=1),
    "listPrincipals": lambda c: c.principals.list(),
    "listReceivers": lambda c: c.receivers.list(),
    "listTargets": lambda c: c.targets.list(limit=1),
    "listTaskJobs": lambda c: c.tasks.jobs(ID, limit=1),
    "listTasks": lambda c: c.tasks.list(tag="a", limit=1),
    "listTeams": lambda c: c.teams.list(all=True, limit=1),
    "listTypes": lambda c: c.types(),
    "listUsers": lambda c: c.users.list(limit=1),
    "logout": lambda c: c.logout(),
    "pauseLanes": lambda c: c.system.pause("retry", reason="incident"),
    "pauseTask": lambda c: c.tasks.pause(ID, reason="incident"),
    "pauseTasks": lambda c: c.tasks.pause_many(all=True, reason="incident"),
    "previewSchedule": lambda c: c.schedules.preview(cron="30 2 * * *", time_zone="Europe/Berlin", count=3),
    "putCalendar": lambda c: c.calendars.put("de", ["2027-12-25"], source="typed", covers_until="2027-12-31"),
    "putJobByKey": lambda c: c.jobs.create(message="m", key="order-17", on_conflict="keep", delay=60),
    "putTaskByKey": lambda c: c.tasks.put("nightly", name="Nightly", message="m", rate="10 minutes"),
    "removeMember": lambda c: c.teams.remove_member(TEAM, "u1"),
    "renameTeam": lambda c: c.teams.rename(TEAM, "payments"),
    "putDefaultAlerts": lambda c: c.receivers.put_default_alerts(late_after_seconds=60, max_duration_seconds=3_600, missed=True),
    "putReceiver": lambda c: c.receivers.put("ops", "pagerduty", "0" * 32, region="eu", default=True),
    "testReceiver": lambda c: c.receivers.test("ops"),
    "replaceTarget": lambda c: c.targets.replace("billing", "http", defaults={"url": "https://example.com"}),
    "replaceTask": lambda c: c.tasks.replace(ID, name="Nightly", message="m", cron="30 2 * * *"),
    "showScheduleYear": lambda c: c.schedules.calendar(cron="30 2 * * *", time_zone="Europe/Berlin", from_="2027-01-01", days=31),
    "showTaskYear": lambda c: c.tasks.calendar(ID, from_="2027-01-01", days=31),
    "resetSecondFactor": lambda c: c.users.reset_second_factor(ID),
    "resumeLanes": lambda c: c.system.resume("retry"),
    "resumeOrderingKey": lambda c: c.ordering_keys.resume("customer-7"),
    "resumeTask": lambda c: c.tasks.resume(ID),
    "resumeTasks": lambda c: c.tasks.resume_many(tag="a"),
    "replayJob": lambda c: c.jobs.replay(ID, payload={"message": "m"}, delay="5m", keep_ordering=True),
    "replayJobs": lambda c: c.jobs.replay_many(type="log", status="failed", from_=AT, payload={"message": "m"}, rate=5),
    "retryIntakeDeadLetter": lambda c: c.intake.retry("m-1", {"message": "m"}),
    "retryJob": lambda c: c.jobs.retry(ID),
    "revokeFoundKey": lambda c: c.keys.revoke_leaked(KEY),
    "revokeKey": lambda c: c.keys.revoke("k2" * 8, owner=TEAM),
    "deleteMonitor": lambda c: c.monitors.delete("sync"),
    "getMonitor": lambda c: c.monitors.get("sync"),
    "getMonitorHistory": lambda c: c.monitors.history("sync"),
    "listMonitors": lambda c: c.monitors.list(limit=1),
    "pauseMonitor": lambda c: c.monitors.pause("sync"),
    "putMonitor": lambda c: c.monitors.put(
        "sync", "Sync", period_seconds=300, grace_seconds=60, max_duration_seconds=60, notifications={"emails": ["ann@example.com"]}
    ),
    "renewMonitorToken": lambda c: c.monitors.renew_token("sync"),
    "resumeMonitor": lambda c: c.monitors.resume("sync"),
    "runTask": lambda c: c.tasks.run(ID, group=ID),
    "sealGroup": lambda c: c.groups.seal(ID),
    "setMember": lambda c: c.teams.set_member(TEAM, "u1", "viewer"),
    "setUserPassword": lambda c: c.users.set_password(ID, "password"),
    "startRedrive": lambda c: c.dead_letters.redrive(fingerprint="a" * 16, rate=20),
    "updateJob": lambda c: c.jobs.update(ID, http="https://example.com/2"),
    "unlinkIdentity": lambda c: c.users.unlink(ID, "corp"),
    "updatePrincipal": lambda c: c.principals.update("p-1", owner=TEAM, scopes=["jobs:read"], unique_id="AROAX"),
    "updateTask": lambda c: c.tasks.update(ID, name="New"),
    "updateUser": lambda c: c.users.update(ID, job_weight=3.0),
    "withdrawInvitation": lambda c: c.teams.withdraw(TEAM, "01INV"),
}


def operations() -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            if not operation.get("deprecated") and not operation["operationId"].endswith("Deprecated"):
                yield operation["operationId"], method.upper(), path, operation


OPERATIONS = {name: rest for name, *rest in operations()}


def test_every_operation_has_a_method() -> None:
    missing, gone = OPERATIONS.keys() - CALLS.keys() - ELSEWHERE, (CALLS.keys() | ELSEWHERE) - OPERATIONS.keys()
    assert not missing, f"CALLS lacks {sorted(missing)}: each operation has a method in client/src/punctual/_async"
    assert not gone, f"the API has no {sorted(gone)}"


@pytest.mark.parametrize("name", sorted(CALLS))
def test_a_method_sends_and_reads_what_the_document_says(flavor: Flavor, name: str) -> None:
    method, path, operation = OPERATIONS[name]
    status, example = next(
        (int(status), content["application/json"]["example"])
        for status, one in operation["responses"].items()
        if status.startswith("2") and (content := one.get("content"))
    )
    if name == "createJobs":
        example = {
            "success": True,
            "data": example["data"]
            | {"results": [{"index": n, "job": {"id": ID, "status": "scheduled", "scheduled_at": AT}} for n in (0, 1)]},
        }
    seen: list[httpx.Request] = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        data = example if "cursor" not in (example.get("data") or {}) else example | {"data": example["data"] | {"cursor": None}}
        return httpx.Response(status, json=data)

    result = flavor.run(handle, CALLS[name])
    (request,) = seen
    assert request.method == method
    assert re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", path), request.url.path)
    assert set(request.url.params) <= {one["name"] for one in operation.get("parameters", []) if one["in"] == "query"}
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    if request.content:
        assert set(json.loads(request.content)) <= properties(body)
    for record in result if isinstance(result, list) else [result]:
        if isinstance(record, Record):
            unknown = record.raw.keys() - {one.name.rstrip("_") for one in dataclasses.fields(record)}
            assert not unknown, f"{type(record).__name__} in client/src/punctual/records.py lacks {sorted(unknown)}"


def properties(schema: dict[str, Any]) -> set[str]:
    """Return the names of all fields that a schema allows, over its alternatives."""
    if "$ref" in schema:
        return properties(SCHEMAS[schema["$ref"].rsplit("/", 1)[1]])
    found = set(schema.get("properties", {}))
    for one in [*schema.get("oneOf", []), *schema.get("anyOf", []), *schema.get("allOf", [])]:
        found |= properties(one)
    return found


TYPED = {
    "RetryRequest": fields.RetryFields,
    "CallBackRequest": fields.CallbackFields,
    "LimitRequest": fields.LimitFields,
    "NotificationsRequest": fields.NotificationFields,
    "AlertsRequest": fields.AlertFields,
    "WebhookRequest": fields.WebhookFields,
    "ScheduleRequest": fields.ScheduleFields,
}


def names(typed: Any) -> set[str]:
    return set(typed.__annotations__)


def check(typed: Any, allowed: set[str], *others: str) -> None:
    """Check that a typed dictionary has the fields that the API allows, but `others`, and no further ones."""
    lacking, unknown = allowed - names(typed) - {*others}, names(typed) - allowed - {*others}
    assert not lacking, f"{typed.__name__} in client/src/punctual/fields.py lacks {sorted(lacking)}"
    assert not unknown, f"{typed.__name__} in client/src/punctual/fields.py has {sorted(unknown)}, which the API does not know"


@pytest.mark.parametrize("schema", TYPED)
def test_a_typed_dictionary_has_the_fields_of_its_schema(schema: str) -> None:
    check(TYPED[schema], properties(SCHEMAS[schema]))


def test_the_typed_fields_of_jobs_and_tasks_are_those_of_the_api() -> None:
    parts = names(fields.ScheduleFields)
    check(fields.JobChanges, properties(SCHEMAS["JobChange"]), "delay")
    check(fields.TaskFields, properties(SCHEMAS["TaskEdit"]) | parts, "http", "key")
    check(fields.TaskChanges, names(fields.TaskFields) - {"paused", "pause_reason"})
    content = ("type", "payload", "message", "target", "key", "execute_at", "delay", "delay_seconds", "on_conflict")
    check(fields.OneTimeOptions, properties(SCHEMAS["KeyedJobRequest"]), *content)
