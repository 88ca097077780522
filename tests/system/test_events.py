"""Events of ended jobs on the deployed stack, read through a rule that sends them to a queue; and receivers of one-time jobs."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from punctual import Punctual

from scheduler.notify.announce import DETAIL_TYPES
from tests.system.conftest import System, ended, soon, until

RULE = "test-events"


@pytest.fixture
def events(system: System) -> Iterator[list[dict[str, Any]]]:
    """The events that arrive at a rule; each read returns the new ones."""
    sqs, bridge, bus = system.aws("sqs"), system.aws("events"), system.outputs["EventBusName"]
    url = sqs.create_queue(QueueName=RULE)["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    bridge.put_rule(Name=RULE, EventBusName=bus, EventPattern=json.dumps({"source": ["punctual"]}))
    bridge.put_targets(Rule=RULE, EventBusName=bus, Targets=[{"Id": "1", "Arn": arn}])

    class Arrived(list[dict[str, Any]]):
        def of(self, job_ids: set[str]) -> list[dict[str, Any]]:
            for message in sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", []):
                self.append(json.loads(message["Body"]))
                sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
            return [event for event in self if event["detail"]["job_id"] in job_ids]

    yield Arrived()
    bridge.remove_targets(Rule=RULE, EventBusName=bus, Ids=["1"])
    bridge.delete_rule(Name=RULE, EventBusName=bus)
    sqs.delete_queue(QueueUrl=url)


def test_every_kind_of_end_is_put_on_the_bus_and_only_on_request(system: System, client: Punctual, events: Any) -> None:
    good = client.jobs.create("log", {"message": "m"}, events=True).raw
    bad = client.jobs.create("http", {"url": system.receiver.url("/status/404/events")}, events=True, max_attempts=1).raw
    silent = client.jobs.create("log", {"message": "m"}).raw
    cancelled = client.jobs.create("log", {"message": "m"}, events=True, execute_at=soon(3_600)).raw
    client.request("POST", f"/jobs/{cancelled['id']}/cancel", {})
    task = client.tasks.create("Announced", "log", {"message": "m"}, schedule={"cron": "0 0 1 1 *"}, events=True).raw
    run = client.request("POST", f"/tasks/{task['id']}/run", {})
    done = {job["id"]: job for job in ended(client, [good, bad, silent, run], 60)}

    wanted = {good["id"]: "succeeded", bad["id"]: "failed", cancelled["id"]: "cancelled", run["id"]: "succeeded"}
    until(60, lambda: {event["detail"]["job_id"] for event in events.of(set(wanted))} == wanted.keys())
    found = {event["detail"]["job_id"]: event for event in events.of(set(wanted))}
    for job_id, status in wanted.items():
        event = found[job_id]
        assert (event["source"], event["detail"]["status"]) == ("punctual", status)
        assert event["detail-type"] == f"Punctual Job {status.title()}" and event["detail-type"] in DETAIL_TYPES.values()
    assert found[run["id"]]["detail"]["task_id"] == task["id"]
    assert found[bad["id"]]["detail"]["ended_at"] == done[bad["id"]]["failed_at"] and "404" in found[bad["id"]]["detail"]["error"]
    assert not events.of({silent["id"]}), "its end was written before that of others that have arrived"


def test_receivers_of_a_one_time_job_are_notified_of_its_end(system: System, client: Punctual) -> None:
    hook = {"url": system.receiver.url("/ok/slack"), "format": "slack"}
    job = client.jobs.create("log", {"message": "m"}, notifications={"webhooks": [hook], "on": ["success"]}).raw
    ended(client, [job], 60)
    until(60, lambda: system.receiver.calls("/ok/slack"))
    (call,) = system.receiver.calls("/ok/slack")
    assert f"*Job {job['id']} succeeded*" in json.loads(call.body)["text"]
    assert "webhook-signature" not in {name.lower() for name in call.headers}
