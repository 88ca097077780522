"""The intake queue on the deployed stack: functions and roles without any secret create jobs by messages."""

import io
import json
import threading
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import boto3
import pytest
from botocore.config import Config
from punctual import Punctual

from local import process
from tests.system.conftest import System, ended, until
from tests.system.test_console import ARTEFACTS, stories

ROLE = "test-intake-sender"
PER_SECOND, SECONDS = 50, 60
LETTERS = "/intake/dead-letters"
FUNCTION = """
import os

import boto3

queue = boto3.client("sqs")


def handler(event, context):
    return queue.send_message(QueueUrl=os.environ["QUEUE_URL"], MessageBody=event)["MessageId"]
"""
BACK_S = 240  # the messages of a killed function come again after two minutes


@dataclass
class Sender:
    """A role of the account that is a principal of the first user."""

    sqs: Any
    url: str
    role: str  # its ARN
    unique_id: str

    def send(self, body: Any, **options: Any) -> str:
        """Send a message and return its id."""
        text = body if isinstance(body, str) else json.dumps(body)
        return str(self.sqs.send_message(QueueUrl=self.url, MessageBody=text, **options)["MessageId"])


def role_of(system: System, name: str) -> dict[str, str]:
    """A new role, which functions and the account may take, and which may only send to the queue `jobs`."""
    iam, account = system.aws("iam"), system.aws("sts").get_caller_identity()["Account"]
    takers = {"AWS": f"arn:aws:iam::{account}:root", "Service": "lambda.amazonaws.com"}
    trust = {"Effect": "Allow", "Principal": takers, "Action": "sts:AssumeRole"}
    role: dict[str, str] = iam.create_role(
        RoleName=name, AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    )["Role"]
    grant = {"Effect": "Allow", "Action": ["sqs:SendMessage", "sqs:SendMessageBatch"], "Resource": system.outputs["IntakeJobsQueueArn"]}
    iam.put_role_policy(RoleName=name, PolicyName="send", PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [grant]}))
    return role


def as_role(system: System, role: Mapping[str, str]) -> Any:
    """A client of SQS with the credentials of a session of the role."""
    taken = system.aws("sts").assume_role(RoleArn=role["Arn"], RoleSessionName="sender")["Credentials"]
    session = boto3.Session(taken["AccessKeyId"], taken["SecretAccessKey"], taken["SessionToken"], system.aws("sqs").meta.region_name)
    return session.client("sqs", endpoint_url=system.stack.aws.endpoint, config=Config(proxies={}))


def delete(system: System, role: str) -> None:
    iam = system.aws("iam")
    iam.delete_role_policy(RoleName=role, PolicyName="send")
    iam.delete_role(RoleName=role)


@pytest.fixture(scope="module")
def sender(deployed: System) -> Iterator[Sender]:
    client, role = deployed.client(), role_of(deployed, ROLE)
    mapped = {"arn": role["Arn"], "owner": client.me().id, "scopes": ["jobs:write"], "unique_id": role["RoleId"]}
    principal = client.request("POST", "/principals", mapped)
    yield Sender(as_role(deployed, role), deployed.outputs["IntakeJobsQueueUrl"], role["Arn"], role["RoleId"])
    client.request("DELETE", f"/principals/{principal['id']}")
    delete(deployed, ROLE)


@pytest.fixture(scope="module")
def invoke(deployed: System, sender: Sender) -> Iterator[Callable[[Any], None]]:
    """Invoke a new function of the account with the role of the sender. The function sends what it is invoked with; it has no secret."""
    functions, code = deployed.aws("lambda"), io.BytesIO()
    with zipfile.ZipFile(code, "w") as packed:
        packed.writestr("index.py", FUNCTION)
    functions.create_function(
        FunctionName=ROLE,
        Runtime="python3.13",
        Role=sender.role,
        Handler="index.handler",
        Code={"ZipFile": code.getvalue()},
        Environment={"Variables": {"QUEUE_URL": sender.url}},
    )

    def invoked(body: Any) -> None:
        answer = functions.invoke(FunctionName=ROLE, Payload=json.dumps(json.dumps(body)))
        payload = answer["Payload"].read()
        assert "FunctionError" not in answer, payload

    yield invoked
    functions.delete_function(FunctionName=ROLE)


def tagged(client: Punctual, tag: str, **query: Any) -> list[dict[str, Any]]:
    """All jobs with a tag."""
    found: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        page = client.request("GET", "/jobs", query={"tag": tag, "limit": 100} | query | cursor)
        found += page["items"]
        if not page["has_more"]:
            return found
        cursor = {"cursor": page["cursor"]}


def test_a_function_without_a_secret_creates_a_job(client: Punctual, invoke: Callable[[Any], None]) -> None:
    invoke({"message": "by a queue", "tags": ["intake-one"]})
    (job,) = until(60, lambda: tagged(client, "intake-one"))
    (done,) = ended(client, [job], 60)
    assert done["status"] == "succeeded" and done["output"] == "by a queue"


def test_the_same_job_sent_twice_with_a_key_is_created_once(client: Punctual, sender: Sender, invoke: Callable[[Any], None]) -> None:
    for _ in range(2):
        invoke({"message": "x", "delay": "1h", "tags": ["intake-key"], "idempotency_key": "intake-key"})
    sender.send({"message": "last", "delay": "1h", "tags": ["intake-key"]}, DelaySeconds=5)
    found = until(60, lambda: [job for job in tagged(client, "intake-key", upcoming="true") if job["payload"]["message"] == "last"])
    assert len(found) == 1 and len(tagged(client, "intake-key", upcoming="true")) == 2


def test_a_wrong_body_is_a_dead_letter_with_its_field(client: Punctual, sender: Sender) -> None:
    id = sender.send({"message": "x", "delay": "soon", "tags": ["intake-wrong"]})
    letter = until(60, lambda: next((each for each in client.request("GET", LETTERS)["items"] if each["message_id"] == id), None))
    assert [each["field"] for each in letter["errors"]] == ["delay"] and letter["sender"].startswith(f"{sender.unique_id}:")
    retried = client.request("POST", f"{LETTERS}/{id}/retry", {"body": {"message": "x", "tags": ["intake-wrong"]}})
    assert (retried["accepted"], retried["refused"]) == (1, 0)
    assert id not in [each["message_id"] for each in client.request("GET", LETTERS)["items"]]
    assert len(tagged(client, "intake-wrong")) == 1


def test_a_wrong_message_is_corrected_in_the_console(
    deployed: System, client: Punctual, sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = sender.send({"message": "x", "delay": "soon", "tags": ["intake-console"]})
    until(60, lambda: [each for each in client.request("GET", LETTERS)["items"] if each["message_id"] == id])
    monkeypatch.setenv("CONSOLE_MESSAGE", id)
    done = stories(deployed, ARTEFACTS, files="browser/intake.story.ts")
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    (job,) = until(60, lambda: tagged(client, "intake-console", upcoming="true"))
    assert job["payload"] == {"message": "x"}


def test_a_message_of_a_role_without_a_principal_is_refused(system: System, client: Punctual, sender: Sender) -> None:
    role = role_of(system, f"{ROLE}-unknown")
    try:
        id = as_role(system, role).send_message(QueueUrl=sender.url, MessageBody=json.dumps({"message": "x"}))["MessageId"]
        listed: Callable[[], Any] = lambda: client.request("GET", LETTERS, query={"unknown": "true"})["items"]  # noqa: E731
        letter = until(60, lambda: next((each for each in listed() if each["message_id"] == id), None))
        assert letter["owner"] is None and role["RoleId"] in letter["errors"][0]["rule"]
        client.request("DELETE", f"{LETTERS}/{id}")
    finally:
        delete(system, role["RoleName"])


@pytest.mark.apart  # on a stack of its own
@pytest.mark.soak  # it takes five minutes, and more on a busy machine
def test_a_killed_function_loses_no_message(deployed: System, sender: Sender) -> None:
    client, over = deployed.client(), threading.Event()

    def kill() -> None:
        while not over.wait(5):
            for each in deployed.workers("IntakeFunction"):
                process.kill(each)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        began = time.monotonic()
        for second in range(SECONDS):
            bodies = [{"message": f"{second}.{place}", "delay": "12h", "tags": ["intake-storm"]} for place in range(PER_SECOND)]
            for start in range(0, PER_SECOND, 10):
                entries = [{"Id": str(place), "MessageBody": json.dumps(body)} for place, body in enumerate(bodies[start : start + 10])]
                assert not sender.sqs.send_message_batch(QueueUrl=sender.url, Entries=entries).get("Failed")
            over.wait(max(began + second + 1 - time.monotonic(), 0))
    finally:
        over.set()
        killer.join()
    until(BACK_S, lambda: len(tagged(client, "intake-storm", upcoming="true")) >= PER_SECOND * SECONDS)
    made = Counter(job["payload"]["message"] for job in tagged(client, "intake-storm", upcoming="true"))
    assert len(made) == PER_SECOND * SECONDS and set(made.values()) == {1}
    dead = deployed.aws("sqs").get_queue_attributes(QueueUrl=deployed.outputs["IntakeDlqUrl"], AttributeNames=["All"])["Attributes"]
    assert dead["ApproximateNumberOfMessages"] == "0"
