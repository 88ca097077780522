"""The senders of messages in queues of the local AWS."""

import asyncio
import json
from typing import Any

import pytest
from ministack.services import iam, sqs

from local import senders

KEY = "Credential=AKIAROLE/20261120/us-east-1/sqs/aws4_request"


def call(handle: Any, action: str, **fields: Any) -> Any:
    headers = {"x-amz-target": f"AmazonSQS.{action}", "authorization": f"AWS4-HMAC-SHA256 {KEY}", "host": "localhost:4566"}
    status, _, body = asyncio.run(handle("POST", "/", headers, json.dumps(fields).encode(), {}))[:3]
    assert status == 200, body
    return json.loads(body) if body else {}


@pytest.mark.parametrize(("sender", "shown"), [("AROA1:session", "AROA1:session"), ("", "000000000000")])
def test_a_message_has_the_unique_id_of_its_sender(monkeypatch: pytest.MonkeyPatch, sender: str, shown: str) -> None:
    monkeypatch.setattr(sqs, "_build_send_sys_attrs", senders.named(sqs._build_send_sys_attrs))
    handle = senders.noting(sqs.handle_request, lambda key: sender if key == "AKIAROLE" else "another")
    url = call(handle, "CreateQueue", QueueName=f"senders-{sender[:5]}")["QueueUrl"]
    call(handle, "SendMessage", QueueUrl=url, MessageBody="x")
    (message,) = call(handle, "ReceiveMessage", QueueUrl=url, MessageSystemAttributeNames=["All"])["Messages"]
    assert message["Attributes"]["SenderId"] == shown


def test_a_function_gets_the_senders_of_its_batch() -> None:
    events: list[Any] = []
    run = senders.delivered(lambda mapping, function, event, batch, *rest: events.append(event))
    batch = [{"id": "m1", "sys": {"SenderId": "AROA1:s"}}, {"id": "m2"}]
    records = [{"messageId": f"m{number}", "attributes": {"SenderId": "000000000000"}} for number in (2, 1)]
    run({}, {}, {"Records": records}, batch, "url", "name")
    assert [record["attributes"]["SenderId"] for record in events[0]["Records"]] == ["000000000000", "AROA1:s"]


@pytest.mark.parametrize(
    ("arn", "id"),
    [
        ("arn:aws:sts::000000000000:assumed-role/sender/report", "AROA1:report"),
        ("arn:aws:sts::000000000000:assumed-role/unknown/report", "sender:report"),
        ("arn:aws:sts::000000000000:federated-user/sender", "sender:report"),
    ],
)
def test_the_session_of_a_function_has_the_unique_id_of_its_role(monkeypatch: pytest.MonkeyPatch, arn: str, id: str) -> None:
    monkeypatch.setitem(iam._roles, "sender", {"RoleName": "sender", "RoleId": "AROA1"})
    found: dict[str, Any] = {}
    senders.by_role(found.__setitem__)("ASIA1", {"Arn": arn, "UserId": "sender:report"})
    assert found["ASIA1"]["UserId"] == id and found["ASIA1"]["Arn"] == arn
