"""Requests are signed as Standard Webhooks specifies."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.targets import webhooks
from tests import webhook_receiver

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
NOW = 1_614_265_330_000


def test_the_example_of_the_standard_gives_its_signature() -> None:
    given = webhooks.headers("msg_p5jXN8AQM9LWM0D4loKWxJek", NOW, b'{"test": 2432232314}', [SECRET])
    assert given == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


@given(st.binary(), st.binary(min_size=24, max_size=64), st.integers(-300, 300))
def test_a_signature_verifies_within_five_minutes(body: bytes, key: bytes, seconds: int) -> None:
    secret = webhooks.PREFIX + base64.b64encode(key).decode()
    assert webhook_receiver.verify(webhooks.headers("id", NOW, body, [secret]), body, [secret], NOW + seconds * 1000) == "id"


OLD, NEW, OTHER = ("o" * 32, "n" * 32, "x" * 32)


@pytest.mark.parametrize("known", [[OLD], [NEW], [OTHER, NEW]])
def test_during_a_rotation_either_secret_verifies(known: list[str]) -> None:
    given = webhooks.headers("id", NOW, b"body", [NEW, OLD])
    assert len(given["webhook-signature"].split(" ")) == 2
    assert webhook_receiver.verify(given, b"body", known, NOW) == "id"


@pytest.mark.parametrize(
    "change",
    [
        {"webhook-id": "other"},
        {"webhook-timestamp": str(NOW // 1000 + 1)},
        {"webhook-timestamp": str(NOW // 1000 - 301)},
        {"webhook-timestamp": str(NOW // 1000 + 301)},
        {"webhook-timestamp": "soon"},
        {"webhook-signature": ""},
        {"webhook-signature": "v1,"},
        {"webhook-signature": "v2,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="},
        {"webhook-signature": "é"},
    ],
)
def test_changed_headers_do_not_verify(change: dict[str, str]) -> None:
    with pytest.raises(webhook_receiver.NotSigned):
        webhook_receiver.verify(webhooks.headers("id", NOW, b"body", [NEW]) | change, b"body", [NEW], NOW)


def test_another_body_or_secret_does_not_verify() -> None:
    given = webhooks.headers("id", NOW, b"body", [NEW])
    for body, secret in ((b"bodY", NEW), (b"body", OLD)):
        with pytest.raises(webhook_receiver.NotSigned):
            webhook_receiver.verify(given, body, [secret], NOW)
    with pytest.raises(webhook_receiver.NotSigned):
        webhook_receiver.verify({}, b"body", [NEW], NOW)


@pytest.mark.parametrize("secret", ["short", "x" * 65, "whsec_!!!", "whsec_" + base64.b64encode(b"short").decode()])
def test_a_weak_or_malformed_secret_is_refused(secret: str) -> None:
    with pytest.raises(ValueError):
        webhooks.key(secret)
