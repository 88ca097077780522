"""From the stream to the receivers, with the real handlers and adapters; tables and queue are moto's, the webhook is a real server."""

import json
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.client import BaseClient
from moto import mock_aws

from lambdas import _notifying, _runtime, notify, project
from lambdas._settings import Settings
from local.receiver import Receiver
from scheduler.model.job import Job, RunInfo
from scheduler.model.notifications import Notifications, Webhook
from scheduler.model.rules import Rules
from scheduler.notify.notify import LEASE_MS, Post
from scheduler.notify.text import Links
from scheduler.storage.aws import clients
from scheduler.storage.aws.calls import AwsCalls
from scheduler.storage.memory.ports import MemoryPorts
from scheduler.targets.base import Reach
from scheduler.targets.calls import Request
from tests import webhook_receiver
from tests.conftest import FixedClock
from tests.contract import make, tables
from tests.lambdas.test_handlers_counting import event, record
from tests.unit.test_notify import InTurn


@pytest.mark.parametrize(
    ("console", "api", "endpoint", "shown"),
    [
        ("https://d1.cloudfront.net", "https://a.example.com", "", Links("https://d1.cloudfront.net", "https://a.example.com")),
        (
            "http://d1.cloudfront.localhost:{port}",
            "{endpoint}/_aws/execute-api/a1/$default",
            "http://127.0.0.1:4850",
            Links("http://d1.cloudfront.localhost:4850", "http://127.0.0.1:4850/_aws/execute-api/a1/$default"),
        ),
        (None, "https://a.example.com", "", Links("", "https://a.example.com")),
    ],
)
def test_the_links_of_notices_open(console: str | None, api: str, endpoint: str, shown: Links) -> None:
    assert _notifying.links(console, api, endpoint) == shown


SECRET = "whsec_" + "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"
HOOK = "/ok/notified"


class Killed(BaseException):
    """notify was killed."""


class World(SimpleNamespace):
    """The test receives from the queue itself; SQS redelivers in between."""

    def end(self, make_end: Any, at: int) -> None:
        """A run of the task ends; the stream delivers it twice."""
        job = make.job(at=at, owner=self.task.owner, origin=RunInfo(self.task.id, 1, at, notify=True))
        claimed: Job = make.claimed(job)
        batch = event(record(at % 1_000_000, claimed, make_end(claimed, at + 100)))
        for _ in range(2):
            project.handler(batch, None)

    def work_off(self) -> None:
        while messages := self.sqs.receive_message(QueueUrl=self.url, MaxNumberOfMessages=10, VisibilityTimeout=0).get("Messages"):
            records = [{"messageId": each["MessageId"], "receiptHandle": each["ReceiptHandle"], "body": each["Body"]} for each in messages]
            failed = {each["itemIdentifier"] for each in notify.handler({"Records": records}, None)["batchItemFailures"]}
            for each in messages:
                if each["MessageId"] not in failed:
                    self.sqs.delete_message(QueueUrl=self.url, ReceiptHandle=each["ReceiptHandle"])
            if len(failed) == len(messages):
                return


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with mock_aws(), Receiver() as receiver:
        client, sqs = clients.dynamodb(), clients.sqs()
        for name in ("tasks", "notices", "jobs", "ledger", "users"):
            client.create_table(TableName=name, **getattr(tables, name.upper()))
        clients.secrets().create_secret(Name="punctual/test/ada/hook", SecretString=SECRET)
        url = sqs.create_queue(QueueName="notices")["QueueUrl"]
        settings = Settings(
            stage="test",
            tasks_table="tasks",
            notices_table="notices",
            users_table="users",
            notices_queue_url=url,
            secret_prefix="punctual/test/",
            rules=Rules(allow_private_http=True),
            reach=Reach(sender="punctual@example.com", plain_http=True),
        )
        mails: list[Any] = []
        atomic, make_call = threading.Lock(), BaseClient._make_api_call

        def one_at_a_time(*given: Any) -> Any:
            """Moto checks the condition of a write in one step and writes in another; DynamoDB does not let two threads pass."""
            with atomic:
                return make_call(*given)

        monkeypatch.setattr(BaseClient, "_make_api_call", one_at_a_time)

        def take(self: AwsCalls, request: Request, *, left: Any) -> dict[str, str]:
            mails.append(request.parameters)
            return {"MessageId": "id"}

        monkeypatch.setattr(AwsCalls, "send", take)
        clock, at = FixedClock(make.NOW), _notifying.Notifier(settings)
        monkeypatch.setattr(at.notice_queue, "put_back", lambda delays: None)  # here a received message stays visible
        receivers = Notifications(("ann@example.com",), (Webhook(receiver.url(HOOK), "hook"),))
        task = make.task(name="Nightly", notifications=receivers)
        assert at.tasks.store(None, task, [])
        sender = _notifying.Sender(_runtime.AwsPorts(settings))
        made = World(task=task, clock=clock, mails=mails, receiver=receiver, sqs=sqs, url=url, sender=sender)
        at.clock, at.post, at.threads = clock, Post(sender.mail, made_call(made), Links()), InTurn()
        monkeypatch.setattr(_notifying, "notify", lambda: at)
        monkeypatch.setattr(_runtime, "ports", lambda: MemoryPorts(clock, notices=at.notices))
        made.dies = False
        yield made


def made_call(world: World) -> Any:
    def call(owner: str, payload: Any, id: str) -> Any:
        result = world.sender.call(owner, payload, id)
        if world.dies:
            world.dies = False
            raise Killed
        return result

    return call


def test_a_notice_by_mail_counts_in_the_budget_of_its_owner(world: World) -> None:
    settings = Settings(stage="test", users_table="users", rules=Rules(mails_per_day=2), reach=Reach(sender="punctual@example.com"))
    sender = _notifying.Sender(_runtime.AwsPorts(settings))
    mail = {"to": ["ann@example.com"], "subject": "s", "text": "t"}
    sent = [sender.mail(owner, mail, "n1").failure is None for owner in ("ada", "ada", "ada", "eve")]
    assert sent == [True, True, False, True] and len(world.mails) == 3


def test_failure_and_recovery_reach_each_receiver_though_notify_dies(world: World) -> None:
    world.dies = True
    world.end(make.failed, make.NOW)
    with pytest.raises(Killed):
        world.work_off()
    world.clock.advance(LEASE_MS)
    world.work_off()
    for number, end in enumerate((make.failed, make.succeeded), 1):
        world.end(end, make.NOW + number * 10_000)
        world.clock.advance(10_000)
    world.work_off()
    world.clock.advance(LEASE_MS)
    world.work_off()
    contents = [mail["Content"]["Simple"] for mail in world.mails]
    assert [each["Subject"]["Data"] for each in contents] == ["[Punctual] Nightly failed", "[Punctual] Nightly has recovered"]
    assert all(mail["Destination"]["ToAddresses"] == ["ann@example.com"] for mail in world.mails)
    assert all(each["Body"]["Html"]["Data"] for each in contents)
    calls = world.receiver.calls(HOOK)
    ids = [
        webhook_receiver.verify({name.lower(): value for name, value in each.headers.items()}, each.body, [SECRET], each.at)
        for each in calls
    ]
    assert len(ids) == 3 and len(set(ids)) == 2, "the interrupted sending was repeated under its id"
    assert sorted({json.loads(each.body)["type"] for each in calls}) == ["task.failure", "task.recovery"]
    world.clock.advance(2_000_000)
    world.work_off()
    assert len(world.mails) == 2 and len(world.receiver.calls(HOOK)) == 3
