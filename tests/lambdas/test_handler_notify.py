"""The handler of notify, and its parts."""

import json
import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pytest
from moto import mock_aws

from lambdas import _notifying, _runtime, notify
from lambdas._settings import Settings
from local.receiver import Receiver
from scheduler.insight import metrics
from scheduler.model.job import Failure, FailureKind, Result, Status
from scheduler.model.notice import News, NoticeMessage, WindowEnd
from scheduler.model.notifications import Notifications
from scheduler.model.rules import Rules
from scheduler.notify.messages import encode
from scheduler.notify.notify import Post
from scheduler.notify.text import Links
from scheduler.storage.aws import clients
from scheduler.storage.memory.ports import MemoryPorts
from scheduler.storage.memory.stores import MemorySecrets
from scheduler.targets.base import Reach
from tests import webhook_receiver
from tests.conftest import NOW, FixedClock
from tests.contract import make
from tests.lambdas.test_handlers_counting import emitted
from tests.unit.test_notify import InTurn

SECRET = "whsec_" + "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"
RULES = Rules(allow_private_http=True)
SETTINGS = Settings(
    stage="test",
    api_url="{endpoint}/api",
    console_address="/punctual/test/console-url",
    rules=RULES,
    reach=Reach(plain_http=True),
)


class World(MemoryPorts):
    """The ports of `notify`, in memory. The world is also its queue of notices."""

    def __init__(self) -> None:
        super().__init__(FixedClock())
        self.task = make.task(name="Nightly", notifications=Notifications(("ann@example.com",)))
        self.tasks.store(None, self.task, [])
        self.answer, self.back, self.notice_queue = Result(), list[tuple[str, int]](), self
        self.threads = InTurn()
        self.post = Post(lambda owner, payload, id: self.answer, lambda owner, payload, id: self.answer)

    def put_back(self, delays: Mapping[str, int]) -> None:
        self.back += delays.items()

    def delete(self, receipts: Sequence[str]) -> None:
        assert not receipts, "Lambda deletes the messages of the event"


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()
    monkeypatch.setattr(_notifying, "notify", lambda: made)
    return made


def a_sender(rules: Rules = RULES, **secrets: str) -> _notifying.Sender:
    """One of a stage in which ada has these secrets."""
    ports = _runtime.AwsPorts(Settings(stage="test", rules=rules, reach=SETTINGS.reach))
    vars(ports)["secrets"] = MemorySecrets({("ada", name): [value] for name, value in secrets.items()})
    return _notifying.Sender(ports)


def news(world: World) -> News:
    return News(world.task.key, "j1.0", "j1", "http", Status.FAILED, NOW, NOW)


def event(*messages: NoticeMessage | str) -> dict[str, Any]:
    bodies = [each if isinstance(each, str) else encode(each) for each in messages]
    return {"Records": [{"messageId": f"m{n}", "receiptHandle": f"r{n}", "body": body} for n, body in enumerate(bodies)]}


def failures(answer: dict[str, Any]) -> list[str]:
    return [each["itemIdentifier"] for each in answer["batchItemFailures"]]


def test_news_become_sendings_that_are_sent_and_counted(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert failures(notify.handler(event(news(world)), None)) == []
    assert failures(notify.handler(event(*world.notices.sent), None)) == []
    assert emitted(capsys)[metrics.SENT] == [1.0]


def test_an_early_message_is_deferred_until_its_time(world: World) -> None:
    end = WindowEnd(world.task.key, "failure", NOW, NOW + 5_000)  # type: ignore[arg-type]
    assert failures(notify.handler(event(news(world), end), None)) == ["m1"]
    assert world.back == [("r1", 5)]
    world.answer = Result(failure=Failure(FailureKind.RETRYABLE, "HTTP 500"))
    assert failures(notify.handler(event(*world.notices.sent), None)) == ["m0"]
    assert world.back[1:] == [("r0", 10)]


def test_a_given_up_notice_is_deleted_and_counted(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    notify.handler(event(news(world)), None)
    world.answer = Result(failure=Failure(FailureKind.PERMANENT, "HTTP 404"))
    assert failures(notify.handler(event(*world.notices.sent), None)) == []
    assert emitted(capsys)[metrics.UNDELIVERED] == [1.0]


def test_an_unreadable_record_is_left_to_the_dead_letter_queue(world: World) -> None:
    assert failures(notify.handler(event("what is this", news(world)), None)) == ["m0"]
    assert len(world.notices.sent) == 1 and world.back == [("r0", notify.POISON_S)]


# Its parts.


def test_a_webhook_is_called_like_an_http_job_signed_under_its_id() -> None:
    sender = a_sender(hook=SECRET)
    with Receiver() as receiver:
        payload = {"method": "POST", "url": receiver.url("/ok/hook"), "body": {"type": "task.failure"}, "signing_secret": "hook"}
        assert sender.call("ada", payload, "notice_t1.n1.0").failure is None
        (call,) = receiver.calls("/ok/hook")
    told = {name.lower(): value for name, value in call.headers.items()}
    assert webhook_receiver.verify(told, call.body, [SECRET], call.at) == "notice_t1.n1.0"
    assert (told["punctual-notice-id"], told["idempotency-key"]) == ("notice_t1.n1.0",) * 2 and "punctual-job-id" not in told
    assert json.loads(call.body) == {"type": "task.failure"}


def test_a_notice_whose_answer_is_cut_is_not_delivered(monkeypatch: pytest.MonkeyPatch) -> None:
    sender = a_sender(hook=SECRET)
    with Receiver() as receiver:
        for path, expected in (("/stream/0.05/hook", None), ("/stream/20/hook", FailureKind.RETRYABLE)):
            payload = {"method": "POST", "url": receiver.url(path), "body": {}, "timeout_seconds": 0.2 if expected else 20}
            failure = sender.call("ada", payload, "notice_x").failure
            assert (failure and failure.kind) == expected
        monkeypatch.setattr(_notifying, "CALL_S", 0.2 - _notifying.GRACE_S)
        failure = sender.call("ada", {"url": receiver.url("/stream/20/hook")}, "notice_x").failure
        assert failure is not None and failure.kind is FailureKind.TIMEOUT


def test_a_private_address_is_refused_as_for_jobs() -> None:
    sender = a_sender(Rules(), hook=SECRET)
    with Receiver() as receiver:
        payload = {"method": "POST", "url": receiver.url("/ok/hook"), "body": {}, "signing_secret": "hook"}
        result = sender.call("ada", payload, "notice_x")
        assert result.failure is not None and result.failure.kind is FailureKind.PERMANENT and receiver.calls() == []


def test_no_mail_is_sent_without_a_sender() -> None:
    sender = a_sender()
    failure = sender.mail("ada", {"to": ["ann@example.com"], "subject": "s", "text": "t"}, "notice_x").failure
    assert failure is not None and failure.kind is FailureKind.PERMANENT


@pytest.mark.parametrize("console", ["https://console.example.com", None])
def test_notify_is_configured_by_its_environment(monkeypatch: pytest.MonkeyPatch, console: str | None) -> None:
    for name, value in SETTINGS.render().items():
        monkeypatch.setitem(os.environ, name, value)
    with mock_aws():
        if console:
            clients.parameters().put_parameter(Name="/punctual/test/console-url", Value=console, Type="String")
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
        monkeypatch.setattr(clients, "parameters", partial(clients.parameters, endpoint_url="https://ssm.us-east-1.amazonaws.com"))
        _notifying.notify.cache_clear()
        made = _notifying.notify()
    assert made.post.links == Links(console or "", "http://127.0.0.1:9/api"), "a stage without a console has no links to it"
    _notifying.notify.cache_clear()
