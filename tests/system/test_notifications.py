"""Notifications of a task that fails, fails and succeeds, on the deployed stack, although notify is killed in between."""

import json
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from infra.settings import LOCAL
from local import process
from local.receiver import Call
from scheduler.notify.notify import CALL_S
from tests import webhook_receiver
from tests.system.conftest import System, ended, until

SECRET = "whsec_" + "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"
pytestmark = pytest.mark.apart

HOOK = "/ok/notified"


def mails(system: System, to: str) -> list[dict[str, Any]]:
    with urllib.request.urlopen(f"{system.stack.aws.endpoint}/_ministack/ses/messages") as answer:
        found = [mail for account in json.load(answer)["messages"].values() for mail in account]
    return [mail for mail in found if mail["To"] == [to]]


def webhook_calls(system: System) -> list[Call]:
    return system.receiver.calls(HOOK)


def lowered(call: Call) -> dict[str, str]:
    return {name.lower(): value for name, value in call.headers.items()}


def verified(call: Call) -> str:
    return webhook_receiver.verify(lowered(call), call.body, [SECRET], call.at)


@pytest.fixture
def killed_once(deployed: System) -> Iterator[list[int]]:
    """Kill notify while it calls the first webhook, after the e-mail of the same notice was sent and marked as sent."""
    pids = list[int]()

    def mail_is_marked(call: Call) -> bool:
        notice, _, _ = lowered(call)["webhook-id"].rpartition(".")
        found = deployed.aws("dynamodb").scan(
            TableName=deployed.outputs["NoticesTable"],
            FilterExpression="begins_with(sk, :notice) AND attribute_exists(done_at)",
            ExpressionAttributeValues={":notice": {"S": f"sending#{notice}."}},
        )
        return bool(found["Items"])

    def watch(call: Call) -> None:
        if call.path == HOOK and not pids:
            until(CALL_S - 2, lambda: mail_is_marked(call))
            for worker in process.naming(deployed.stack.home.scratch, deployed.outputs["NotifyFunction"]):
                pids.append(worker.pid)
                process.kill(worker)

    before, deployed.receiver.watch = deployed.receiver.watch, watch
    yield pids
    deployed.receiver.watch = before


def test_failures_are_notified_once_although_notify_is_killed(deployed: System, killed_once: list[int]) -> None:
    system = deployed
    client, address = system.client("notified"), "notified@example.com"
    system.aws("secretsmanager").create_secret(Name=f"{LOCAL.secret_prefix}{client.me().id}/hook", SecretString=SECRET)
    task = client.tasks.create(
        "Nightly <report>",
        "http",
        {"method": "POST", "url": system.receiver.url("/fail-twice/notified")},
        schedule={"cron": "0 0 1 1 *"},
        max_attempts=1,
        notifications={"emails": [address], "webhooks": [{"url": system.receiver.url(HOOK), "signing_secret": "hook"}]},
    ).raw
    statuses = []
    for _ in range(3):
        (run,) = ended(client, [client.request("POST", f"/tasks/{task['id']}/run", {})], 60)
        statuses.append(run["status"])
        if len(statuses) == 1:
            until(60, lambda: killed_once)
            # Notify repeats the interrupted call when its message becomes visible again. After the recovery's it would not.
            until(240, lambda: len(webhook_calls(system)) == 2)
    assert statuses == ["failed", "failed", "succeeded"]
    until(60, lambda: len(webhook_calls(system)) == 3 and len(mails(system, address)) == 2)
    time.sleep(5)  # for further calls, if any
    assert [mail["Subject"] for mail in mails(system, address)] == [
        "[Punctual] Nightly <report> failed",
        "[Punctual] Nightly <report> has recovered",
    ]
    failure = mails(system, address)[0]["BodyText"]
    assert "HTTP 500" in failure and task["id"] in failure and task["next_runs"][0]["at"][:16].replace("T", " ") in failure
    by_id: dict[str, set[bytes]] = {}
    for call in webhook_calls(system):
        by_id.setdefault(verified(call), set()).add(call.body)
    assert len(by_id) == 2 and all(len(bodies) == 1 for bodies in by_id.values()), "a repeated call has the same body"
    assert len(webhook_calls(system)) == 3, "the interrupted call is repeated once"
    types = sorted(json.loads(body)["type"] for (body,) in by_id.values())
    assert types == ["task.failure", "task.recovery"]
    queues = system.aws("sqs")
    for name in ("NoticesQueueUrl", "NoticesDlqUrl"):
        counts = queues.get_queue_attributes(QueueUrl=system.outputs[name], AttributeNames=["ApproximateNumberOfMessages"])["Attributes"]
        assert counts["ApproximateNumberOfMessages"] == "0", name


def test_a_failing_receiver_is_retried_and_delays_no_other(deployed: System) -> None:
    system = deployed
    client, address = system.client("retold"), "retold@example.com"
    system.aws("secretsmanager").create_secret(Name=f"{LOCAL.secret_prefix}{client.me().id}/hook", SecretString=SECRET)
    hooks = [{"url": system.receiver.url(path), "signing_secret": "hook"} for path in ("/fail-once/retold", "/status/404/retold")]
    task = client.tasks.create(
        "Succeeds",
        "log",
        {"message": "m"},
        schedule={"cron": "0 0 1 1 *"},
        notifications={"emails": [address], "webhooks": hooks, "on": ["success"]},
    ).raw
    (run,) = ended(client, [client.request("POST", f"/tasks/{task['id']}/run", {})], 60)
    assert run["status"] == "succeeded"
    until(60, lambda: mails(system, address))
    until(60, lambda: len(system.receiver.calls("/fail-once/retold")) == 2)
    first, second = system.receiver.calls("/fail-once/retold")
    assert verified(first) == verified(second) and first.body == second.body and second.at - first.at >= 9_000
    assert len(system.receiver.calls("/status/404/retold")) == 1, "a permanent error is not retried"
