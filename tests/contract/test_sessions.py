"""The port `Calls` with roles of other accounts: sessions are shared, renewed, bounded, and refused with a reason."""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.exceptions import ConnectTimeoutError, ReadTimeoutError

from scheduler.storage.aws import sessions
from scheduler.storage.aws.calls import QUICK, AwsCalls
from scheduler.storage.aws.sessions import RENEW_MS, SESSION_S, Opened, Sessions
from scheduler.targets.calls import Refused, Request, Role
from tests.conftest import NOW, FixedClock
from tests.contract.test_targets import left, raised
from tests.contract.wire import Wire

OTHER = "210987654321"
ROLE = Role(f"arn:aws:iam::{OTHER}:role/targets", "punctual/prod/ann")
SEND = Request("sqs", "send_message", {"QueueUrl": f"https://sqs.us-east-1.amazonaws.com/{OTHER}/orders", "MessageBody": "b"}, role=ROLE)
KEYS = {"AccessKeyId": "ASIA1", "SecretAccessKey": "very-secret", "SessionToken": "very-secret-token"}


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def calls(clock: FixedClock) -> AwsCalls:
    return AwsCalls(clock)


@pytest.fixture
def sts(calls: AwsCalls) -> Wire:
    """STS, which opens a session of an hour at each call."""
    wire = Wire(calls._client("sts", None, QUICK))
    ends = datetime.fromtimestamp(NOW / 1000 + SESSION_S, UTC)
    wire.answer("AssumeRole", {"Credentials": KEYS | {"Expiration": ends}})
    return wire


def test_a_message_arrives_in_the_queue_of_the_other_account(calls: AwsCalls, moto: None, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "scheduler")
    keys = boto3.client("sts").assume_role(RoleArn=ROLE.arn, RoleSessionName="test")["Credentials"]
    there: Any = boto3.client(
        "sqs", aws_access_key_id=keys["AccessKeyId"], aws_secret_access_key=keys["SecretAccessKey"], aws_session_token=keys["SessionToken"]
    )
    url = there.create_queue(QueueName="orders")["QueueUrl"]
    assert OTHER in url
    sent = [calls.send(SEND, left=left)["MessageId"] for _ in range(2)]
    assert sorted(each["MessageId"] for each in there.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]) == sorted(sent)
    assert not any("ASIA" in record.getMessage() for record in caplog.records)


def test_a_role_is_assumed_with_the_external_id_of_the_owner(calls: AwsCalls, sts: Wire) -> None:
    first, second = (calls._sessions.get(ROLE, left=left) for _ in range(2))
    (request,) = sts.sent("AssumeRole")
    assert first is second and request == {
        "RoleArn": ROLE.arn,
        "RoleSessionName": "punctual-prod-ann",
        "ExternalId": "punctual/prod/ann",
        "DurationSeconds": 3_600,
    }
    longest = Role(ROLE.arn, f"punctual/{'s' * 15}/{'o' * 64}")
    calls._sessions.get(longest, left=left)
    assert len(sts.sent("AssumeRole")[1]["RoleSessionName"]) == 64, "sessions of two owners are never shared"
    assert calls._client("sts", None, QUICK).meta.endpoint_url == "https://sts.us-east-1.amazonaws.com"


def test_a_session_is_renewed_before_it_ends(calls: AwsCalls, sts: Wire, clock: FixedClock) -> None:
    first = calls._sessions.get(ROLE, left=left)
    clock.advance(SESSION_S * 1000 - RENEW_MS)
    assert calls._sessions.get(ROLE, left=left) is first
    clock.advance(1)
    assert calls._sessions.get(ROLE, left=left) is not first


def test_a_session_that_aws_has_ended_is_opened_again(calls: AwsCalls, sts: Wire) -> None:
    session = calls._sessions.get(ROLE, left=left)
    Wire(session._client("sqs", None, left())).refuse("SendMessage", "ExpiredToken", 403)
    sts.refuse("AssumeRole", "AccessDenied", 403)
    with pytest.raises(Refused, match="AssumeRole"):
        calls.send(SEND, left=left)
    assert len(sts.sent("AssumeRole")) == 2
    assert not calls._sessions._sessions


@pytest.mark.parametrize(
    ("refuse", "retryable", "throttled", "part"),
    [
        (
            lambda wire: wire.refuse("AssumeRole", "AccessDenied", 403),
            False,
            False,
            "check that the role exists, and that its trust policy",
        ),
        (lambda wire: wire.refuse("AssumeRole", "RegionDisabledException", 403), False, False, "was refused: RegionDisabledException: so"),
        (lambda wire: wire.refuse("AssumeRole", "Throttling", 400), True, True, "Throttling"),
        (lambda wire: wire.refuse("AssumeRole", "InternalFailure", 500), True, False, "InternalFailure"),
        (lambda wire: raised(wire, "AssumeRole", ReadTimeoutError(endpoint_url="http://sts")), True, False, "ReadTimeoutError"),
        (lambda wire: raised(wire, "AssumeRole", ConnectTimeoutError(endpoint_url="http://sts")), True, False, "ConnectTimeoutError"),
    ],
)
def test_a_role_that_is_not_assumed_is_named_with_its_external_id(
    calls: AwsCalls, sts: Wire, refuse: Callable[[Wire], None], retryable: bool, throttled: bool, part: str
) -> None:
    refuse(sts)
    with pytest.raises(Refused) as found:
        calls.send(SEND, left=left)
    refused = found.value
    assert (refused.code, refused.retryable, refused.throttled, refused.unclear) == ("AssumeRole", retryable, throttled, False)
    assert f"{ROLE.arn} with the external id punctual/prod/ann was refused" in str(refused) and part in str(refused)


# The store of sessions.


def opened(made: list[Role]) -> Callable[[Role], Opened[object]]:
    def open_(role: Role) -> Opened[object]:
        made.append(role)
        return Opened(object(), NOW + SESSION_S * 1000)

    return open_


def test_only_the_sessions_used_last_are_stored(clock: FixedClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MOST_SESSIONS", 2)
    made: list[Role] = []
    store = Sessions(clock, opened(made))
    a, b, c = (Role(ROLE.arn, f"punctual/prod/{owner}") for owner in "abc")
    for role in (a, b, a, c, a, b):
        store.get(role, left=left)
    assert made == [a, b, c, b]


def test_calls_that_wait_for_a_session_share_its_refusal(clock: FixedClock) -> None:
    entered, go, waiting = threading.Event(), threading.Event(), threading.Semaphore(0)
    answers: list[Exception | None] = [Refused("AssumeRole", retryable=True), None]

    def open_(role: Role) -> Opened[object]:
        entered.set()
        assert go.wait(60)
        if (error := answers.pop(0)) is not None:
            raise error
        return Opened(object(), NOW + SESSION_S * 1000)

    def left_of_a_waiting_call() -> float:
        waiting.release()
        return 60.0

    store = Sessions(clock, open_)
    with ThreadPoolExecutor(4) as threads:
        calls = [threads.submit(store.get, ROLE, left=lambda: 60.0)]
        assert entered.wait(60)
        calls += [threads.submit(store.get, ROLE, left=left_of_a_waiting_call) for _ in range(3)]
        assert all(waiting.acquire(timeout=60) for _ in range(3))
        with pytest.raises(Refused, match="no time is left"):
            store.get(ROLE, left=lambda: 0.0)
        go.set()
        assert {type(call.exception(60)) for call in calls} == {Refused}
    assert len(answers) == 1, "the role was assumed once for all of them"
    assert store.get(ROLE, left=left) is store.get(ROLE, left=left)
