"""The collector of spans over HTTP: what it gets, and what becomes of spans that it does not take."""

import json
import logging
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from scheduler.notify import spans
from scheduler.storage.aws import clients, collector
from scheduler.storage.aws.collector import Collector
from tests.contract import make

NOW = make.NOW
SPANS = [{"traceId": "a" * 32, "spanId": "b" * 16, "name": "process log"}, {"traceId": "a" * 32, "spanId": "c" * 16, "name": "wait log"}]
RESOURCE = {"deployment.environment.name": "test"}


class Server(ThreadingHTTPServer):
    """An endpoint of OTLP on loopback. `answer`: status, headers and body."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen: list[tuple[str, dict[str, str], Any]] = []
        self.answer: tuple[int, dict[str, str], bytes] = (200, {}, b"{}")
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client that is gone
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1/traces"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen.append((self.path, {name.lower(): value for name, value in self.headers.items()}, json.loads(body)))
        self.server.may_answer.wait(30)
        status, headers, content = self.server.answer
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(content))}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield made
    made.may_answer.set()
    made.shutdown()
    made.server_close()


class Secrets:
    def __init__(self, text: str) -> None:
        self.text, self.reads = text, 0

    def get_secret_value(self, SecretId: str) -> dict[str, str]:
        self.reads += 1
        return {"SecretString": self.text}


def made(server: Server, secret: Secrets | None = None) -> Collector:
    return Collector(server.url, "punctual/collector" if secret else "", RESOURCE, lambda: secret)


def test_the_collector_gets_one_request_of_otlp(server: Server) -> None:
    assert made(server).export(SPANS, NOW) == 2
    ((path, headers, document),) = server.seen
    assert (path, headers["content-type"]) == ("/v1/traces", "application/json") and document == spans.document(SPANS, RESOURCE)


@pytest.mark.parametrize(("rejected", "taken"), [(1, 1), ("2", 0), ("nonsense", 2), (99, 0), (-1, 2)])
def test_spans_that_it_rejects_are_counted(server: Server, rejected: Any, taken: int) -> None:
    server.answer = (200, {}, json.dumps({"partialSuccess": {"rejectedSpans": rejected}}).encode())
    assert made(server).export(SPANS, NOW) == taken


@pytest.mark.parametrize("answer", [(b"", 200), (b"[]", 200), (b"\xff", 202)])
def test_an_answer_without_a_body_is_a_success(server: Server, answer: tuple[bytes, int]) -> None:
    server.answer = (answer[1], {}, answer[0])
    assert made(server).export(SPANS, NOW) == 2


@pytest.mark.parametrize("status", [301, 307, 400, 401, 429, 503])
def test_a_collector_that_refuses_gets_nothing_for_half_a_minute(server: Server, status: int) -> None:
    server.answer = (status, {"Location": server.url, "Retry-After": "1"}, b"")
    exporter = made(server)
    assert exporter.export(SPANS, NOW) == 0 and len(server.seen) == 1, "no redirect is followed, and nothing is repeated"
    server.answer = (200, {}, b"{}")
    assert exporter.export(SPANS, NOW + collector.PAUSE_MS - 1) == 0 and len(server.seen) == 1
    assert exporter.export(SPANS, NOW + collector.PAUSE_MS) == 2


def test_a_collector_that_does_not_answer_holds_up_nobody(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (collector.TIMEOUT.total, collector.TIMEOUT.connect_timeout) == (3, 1)
    monkeypatch.setattr(collector, "TIMEOUT", collector.urllib3.Timeout(total=0.05))
    server.may_answer.clear()
    assert made(server).export(SPANS, NOW) == 0


def test_a_collector_that_is_gone_loses_spans() -> None:
    gone = Server()
    gone.server_close()
    assert made(gone).export(SPANS, NOW) == 0


def test_the_headers_of_the_secret_are_read_every_five_minutes(server: Server) -> None:
    secret = Secrets('{"Authorization": "Bearer one"}')
    exporter = made(server, secret)
    for at in (NOW, NOW + 1, NOW + collector.CACHED_MS - 1):
        assert exporter.export(SPANS, at) == 2
    secret.text = '{"Authorization": "Bearer two"}'
    assert exporter.export(SPANS, NOW + collector.CACHED_MS) == 2
    assert [headers["authorization"] for _, headers, _ in server.seen] == ["Bearer one"] * 3 + ["Bearer two"] and secret.reads == 2


@pytest.mark.parametrize("text", ["s3cret", '["s3cret"]', '{"a": 1}', '{"a b": "s3cret"}', '{"a": "s3cret\\r\\nb: c"}', '{"": "s3cret"}'])
def test_a_secret_that_has_no_headers_is_reported_without_its_text(server: Server, text: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert made(server, Secrets(text)).export(SPANS, NOW) == 0
    (line,) = caplog.records
    assert not server.seen and "the secret has" in vars(line)["error"] and "s3cret" not in json.dumps(vars(line), default=str)


def test_a_request_to_x_ray_is_signed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"ACCESS_KEY_ID": "AKIDEXAMPLE", "SECRET_ACCESS_KEY": "s3cret", "DEFAULT_REGION": "eu-west-1"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    clients._session.cache_clear()
    try:
        headers = clients.signed("xray", "POST", "https://xray.eu-west-1.amazonaws.com/v1/traces", b"{}", dict(collector.JSON))
    finally:
        clients._session.cache_clear()
    assert headers["Authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
    assert "/eu-west-1/xray/aws4_request" in headers["Authorization"] and headers["Content-Type"] == "application/json"
    urls = {region: Collector("xray", "", {"cloud.region": region})._url for region in ("eu-west-1", "cn-north-1")}
    assert urls == {
        "eu-west-1": "https://xray.eu-west-1.amazonaws.com/v1/traces",
        "cn-north-1": "https://xray.cn-north-1.amazonaws.com.cn/v1/traces",
    }
