"""Secrets of `http` jobs: named in the payload, sent to the server, hidden in results."""

import base64
import json
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from scheduler.model.errors import NotFound, Unavailable
from scheduler.model.job import FailureKind, Result
from scheduler.targets import credentials, redaction
from scheduler.targets.base import Context, NotAllowed, Reach
from scheduler.targets.job_context import JobContext
from scheduler.targets.types import http
from tests import webhook_receiver

TOKEN, PASSWORD, KEY, SIGNING = "tok-7f3a9+/ü§"[:10] + "c1d2", 'pass"word & more', "key-55aa77cc", "s" * 32
HELD = {"token": [TOKEN], "password": [PASSWORD], "key": [KEY], "signing": [SIGNING, "p" * 32], "json": [json.dumps({"a": KEY, "n": 1})]}


class Echo(BaseHTTPRequestHandler):
    """Repeats in its answer everything that it received: in the body, in a header, quoted and encoded."""

    seen: ClassVar[list[dict[str, str]]] = []
    answer: ClassVar[Callable[[Mapping[str, str]], bytes]]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        told = {name.lower(): value for name, value in self.headers.items()}
        self.seen.append(told)
        body = type(self).answer(told)
        self.send_response(200)
        self.send_header("X-Echo", told.get("authorization", ""))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def everything(told: Mapping[str, str]) -> bytes:
    plain = json.dumps(dict(told), ensure_ascii=False)
    coded = [urllib.parse.quote(value, safe="") + " " + base64.b64encode(value.encode()).decode() for value in told.values()]
    return (plain + " " + " ".join(coded)).encode()


@pytest.fixture
def address() -> Iterator[str]:
    Echo.seen.clear()
    Echo.answer = everything
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()


def read(name: str) -> Sequence[str]:
    if name not in HELD:
        raise NotFound(f"there is no secret {name!r}")
    return HELD[name]


def context(secrets: Callable[[str], Sequence[str]] = read) -> Context:
    return Context(JobContext("01JOB"), time.monotonic() + 60, threading.Event(), True, reach=Reach(plain_http=True), secrets=secrets)


def call(url: str, secrets: Callable[[str], Sequence[str]] = read, **payload: Any) -> Result:
    return http.run({"url": url, "method": "POST", **payload}, context(secrets))


def test_a_bearer_token_is_sent_and_hidden_in_the_result(address: str) -> None:
    result = call(address, bearer_secret="token")
    assert Echo.seen[0]["authorization"] == f"Bearer {TOKEN}"
    assert result.failure is None and TOKEN not in str(result) and "[secret]" in (result.response or {})["body"]


def test_a_user_and_a_secret_password_are_sent(address: str) -> None:
    result = call(address, basic_user="ann", basic_secret="password")
    coded = base64.b64encode(f"ann:{PASSWORD}".encode()).decode()
    assert Echo.seen[0]["authorization"] == f"Basic {coded}"
    assert coded.rstrip("=") not in str(result) and PASSWORD not in str(result)


def test_api_keys_are_sent_as_headers_and_may_be_fields_of_a_secret(address: str) -> None:
    result = call(address, header_secrets={"X-Api-Key": "json#a", "Cookie": "token"})
    assert (Echo.seen[0]["x-api-key"], Echo.seen[0]["cookie"]) == (KEY, TOKEN)
    assert KEY not in str(result) and TOKEN not in str(result)


def test_a_request_is_signed_with_both_values_of_a_rotated_secret(address: str) -> None:
    call(address, signing_secret="signing", body={"a": 1})
    sent = Echo.seen[0]
    for known in HELD["signing"]:
        assert webhook_receiver.verify(sent, b'{"a": 1}', [known], time.time_ns() // 1_000_000) == "01JOB"
    assert sent["webhook-id"] == sent["idempotency-key"] == "01JOB"


def test_a_secret_cut_at_the_end_of_an_answer_is_hidden_too(address: str) -> None:
    Echo.answer = lambda told: b"x" * (http.READ_LIMIT - 8) + TOKEN.encode()
    body = (call(address, bearer_secret="token").response or {})["body"]
    assert body == "x" * (1_048_576 - 8)


def test_a_broken_call_hides_secrets_too() -> None:
    result = call("http://127.0.0.1:1/", bearer_secret="token")
    assert result.failure is not None and TOKEN not in str(result)


def test_an_exception_is_raised_without_secrets(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(payload: Any, secret: Mapping[str, str], context: Context) -> Result:
        raise LookupError(f"cannot do with {secret['Authorization']}")

    monkeypatch.setattr(http, "fetch", broken)
    with pytest.raises(RuntimeError, match=r"LookupError: cannot do with Bearer \[secret\]") as raised:
        call(address, bearer_secret="token")
    assert raised.value.__cause__ is None and raised.value.__suppress_context__


@pytest.mark.parametrize(
    ("secrets", "payload", "kind", "message"),
    [
        (read, {"bearer_secret": "none"}, "permanent", "the secret 'none' cannot be read: there is no secret 'none'"),
        (read, {"bearer_secret": "json#b"}, "permanent", "the secret 'json' has no field 'b'"),
        (read, {"bearer_secret": "json#n"}, "permanent", "the secret 'json' has no field 'n'"),
        (read, {"bearer_secret": "token#a"}, "permanent", "the secret 'token' has no field 'a'"),
        (lambda name: ["tiny"], {"bearer_secret": "t"}, "permanent", "shorter than 6 characters"),
        (lambda name: ["one\r\nX-Two: 2"], {"bearer_secret": "t"}, "permanent", "not printable ASCII on one line"),
        (lambda name: ["not enough"], {"signing_secret": "t"}, "permanent", "cannot sign: a signing secret has 24 to 64 bytes"),
    ],
)
def test_an_unusable_secret_is_a_permanent_failure_before_any_call(
    address: str, secrets: Any, payload: dict[str, Any], kind: str, message: str
) -> None:
    failure = call(address, secrets, **payload).failure
    assert failure is not None and failure.kind == kind and message in failure.message
    assert not Echo.seen and "X-Two" not in failure.message


def test_a_refusal_of_secrets_manager_is_retryable(address: str) -> None:
    def refuses(name: str) -> Sequence[str]:
        raise Unavailable

    failure = call(address, refuses, bearer_secret="token").failure
    assert failure is not None and failure.kind is FailureKind.RETRYABLE and not Echo.seen


@pytest.mark.parametrize(
    ("payload", "field"),
    [
        ({"basic_user": "ann"}, "basic_secret"),
        ({"basic_secret": "password"}, "basic_user"),
        ({"basic_user": "ann", "basic_secret": "password", "bearer_secret": "token"}, "bearer_secret"),
        ({"bearer_secret": "token", "header_secrets": {"authorization": "key"}}, "bearer_secret"),
        ({"basic_user": "ann", "basic_secret": "password", "header_secrets": {"Authorization": "key"}}, "basic_secret"),
        ({"headers": {"X-Key": "1"}, "header_secrets": {"x-key": "key"}}, "header_secrets"),
    ],
)
def test_incomplete_or_duplicate_credentials_are_refused_by_field(payload: dict[str, Any], field: str) -> None:
    with pytest.raises(NotAllowed) as refused:
        credentials.check(payload)
    assert refused.value.field == field


@given(
    st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=6, max_size=40).map(str.strip).filter(lambda text: len(text) >= 6)
)
def test_no_encoding_of_a_secret_remains(secret: str) -> None:
    secrets = credentials.read({"bearer_secret": "any"}, context(lambda name: [secret]))
    forms = [secret, urllib.parse.quote(secret), urllib.parse.quote_plus(secret), json.dumps(secret), repr(secret)]
    forms.append(base64.urlsafe_b64encode(secret.encode()).decode())
    told = Result(output=" ".join(forms), log=secret, response={"status": 200, "headers": {secret: secret}, "body": secret})
    assume(secret not in redaction.HIDDEN)  # a secret such as "secret" would be found in its replacement
    hidden = secrets.redacted(told)
    for text in (hidden.output, hidden.log, (hidden.response or {})["body"], *(hidden.response or {})["headers"]):
        assert all(form.strip("'\"=") not in text.replace(redaction.HIDDEN, "") for form in forms)
