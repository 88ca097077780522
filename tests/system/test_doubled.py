"""What AWS delivers twice starts nothing twice: a tick, a dispatcher, a message."""

import json
import threading
import time
from datetime import UTC, datetime
from typing import Any

from local.client import Client
from local.samples import rfc3339
from scheduler import slots
from tests.system.conftest import Outage, System, ended, send_early, soon, until

DOUBLED = [f"/ok/doubled-tick-{n}" for n in range(20)]


def _invoke(system: System, function: str, event: dict[str, Any]) -> dict[str, Any]:
    answer = system.aws("lambda").invoke(FunctionName=system.outputs[function], Payload=json.dumps(event))
    assert "FunctionError" not in answer, answer["Payload"].read()
    result: dict[str, Any] = json.loads(answer["Payload"].read())
    return result


def _at_once(*calls: Any) -> None:
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_a_message_delivered_twice_starts_its_job_once(system: System, client: Client) -> None:
    path = "/ok/doubled-message"
    job = client.post_job("http", {"method": "POST", "url": system.receiver.url(path)}, execute_at=soon(6))
    for _ in range(2):
        send_early(system, client, job, seconds=3)
    (final,) = ended(client, [job], 30)
    assert (final["status"], len(final["attempts"])) == ("succeeded", 1)
    until(30, lambda: _is_drained(system))
    assert len(system.receiver.calls(path)) == 1


def test_ticks_and_dispatchers_at_work_twice_start_each_job_once(system: System, client: Client, outage: Outage) -> None:
    assert outage.over.wait(420)
    minute = slots.start_of(slots.first_safe_minute(round(time.time() * 1000) + 10_000))  # its dispatcher's, not handed over directly
    at = rfc3339(datetime.fromtimestamp(minute / 1000 + 5, UTC))
    calls = [{"method": "POST", "url": system.receiver.url(path)} for path in DOUBLED]
    posted = [client.post_job("http", call, execute_at=at) for call in calls]
    until(240, lambda: any(minute == at[:16] for minute in _open(system)))
    unit = {"minute": at[:16], "part": 0}
    _at_once(
        lambda: _invoke(system, "TickFunction", {}),
        lambda: _invoke(system, "TickFunction", {}),
        lambda: _invoke(system, "DispatchFunction", unit),
        lambda: _invoke(system, "DispatchFunction", unit),
    )
    jobs = ended(client, posted, 300)
    assert {job["status"] for job in jobs} == {"succeeded"}
    assert all(len(job["attempts"]) == 1 for job in jobs)
    until(30, lambda: _is_drained(system))
    assert [len(system.receiver.calls(path)) for path in DOUBLED] == [1] * len(DOUBLED)


def _open(system: System) -> list[str]:
    items = system.aws("dynamodb").query(
        TableName=system.outputs["LedgerTable"],
        KeyConditionExpression="pk = :open",
        ExpressionAttributeValues={":open": {"S": "open"}},
    )["Items"]
    return [item["sk"]["S"].partition("#")[0] for item in items]


def _is_drained(system: System) -> bool:
    """Nothing is to be delivered or in work. (Delayed messages are other tests' jobs, minutes ahead.)"""
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    found = system.aws("sqs").get_queue_attributes(QueueUrl=system.outputs["OneTimeQueueUrl"], AttributeNames=names)["Attributes"]
    return all(found[name] == "0" for name in names)
