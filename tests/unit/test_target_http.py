"""The `http` target, against a real server on loopback: requests, results, retries, refusals, and time-outs."""

import datetime
import email.utils
import ipaddress
import json
import re
import socket
import ssl
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from scheduler.model.job import Result
from scheduler.targets.base import Context, Reach
from scheduler.targets.job_context import JobContext
from scheduler.targets.types import http

PLAIN = Reach(plain_http=True)
GUARD_S = 60  # nothing takes so long


class Receiver(BaseHTTPRequestHandler):
    """Answers `/status/<n>`, `/echo` and the special paths below; records the requests."""

    seen: ClassVar[list[dict[str, Any]]] = []
    hang: ClassVar[threading.Event]

    def do_any(self) -> None:
        body = self.content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.seen.append({"method": self.command, "path": self.path, "headers": dict(self.headers), "body": body})
        route = self.path.partition("?")[0].split("/")
        if answer := self.odd().get(route[1]):
            answer()
        else:
            self.answer(int(route[2]) if route[1] == "status" else 200, b'{"ok": true}')

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = do_any

    def odd(self) -> dict[str, Callable[[], None]]:
        return {
            "big": self.big,
            "endless": self.endless,
            "broken": self.broken,
            "drip": self.drip,
            "stream": self.stream,
            "hang": self.wait,
            "reset": self.reset,
            "text": self.text,
            "raw": self.raw,
            "busy": self.busy,
        }

    def answer(self, status: int, body: bytes, content_type: str = "application/json", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": content_type, "Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        if 300 <= status < 400:
            self.send_header("Location", "/echo")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def big(self) -> None:
        self.answer(200, "é".encode() * 5_000_000, "text/plain; charset=utf-8", {f"X-{i}": "v" * 400 for i in range(40)})

    def endless(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(10**12))
        self.end_headers()
        while not self.hang.is_set():
            self.wfile.write(b"." * 65_536)  # until the client hangs up

    def broken(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(3_000_000))
        self.end_headers()
        self.wfile.write(b"." * 2_000_000)
        self.close_connection = True

    def text(self) -> None:
        self.answer(200, b"caf\xe9", "text/plain; charset=ISO-8859-1")

    def drip(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        while not self.hang.wait(0.02):
            self.wfile.write(b".")

    def stream(self) -> None:
        """The end of this answer is the close of the connection."""
        self.send_response(200)
        self.end_headers()
        while not self.hang.wait(0.02):
            self.wfile.write(b".")

    def wait(self) -> None:
        self.hang.wait()

    def reset(self) -> None:
        self.connection.shutdown(socket.SHUT_RDWR)

    def raw(self) -> None:
        """Sends the given bytes unchanged and closes the connection."""
        self.wfile.write(self.content)
        self.close_connection = True

    def busy(self) -> None:
        """`/busy/<status>?<Retry-After>`"""
        status, _, wish = self.path.removeprefix("/busy/").partition("?")
        self.answer(int(status), b"", headers={"Retry-After": urllib.parse.unquote(wish)})

    def date_time_string(self, timestamp: float | None = None) -> str:
        return "Fri, 20 Nov 2026 10:00:00 GMT"  # the server's own clock

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # these tests are about clients that close connections


@contextmanager
def serving(tls: ssl.SSLContext | None = None) -> Iterator[int]:
    Receiver.seen.clear()
    Receiver.hang = threading.Event()
    server = Server(("127.0.0.1", 0), Receiver)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        Receiver.hang.set()
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def port() -> Iterator[int]:
    with serving() as number:
        yield number


def context(seconds: float = 2 * GUARD_S, *, private: bool = True, stop: threading.Event | None = None) -> Context:
    return Context(JobContext("01JOB", 2), time.monotonic() + seconds, stop or threading.Event(), allow_private=private, reach=PLAIN)


def call(url: str, *, seconds: float = 2 * GUARD_S, private: bool = True, stop: threading.Event | None = None, **payload: Any) -> Result:
    return http.run({"url": url, **payload}, context(seconds, private=private, stop=stop))


def kind(result: Result) -> str | None:
    return result.failure.kind if result.failure else None


# Requests


def test_it_sends_method_path_headers_and_json_body(port: int) -> None:
    call(f"http://127.0.0.1:{port}/echo?a=1", method="PUT", headers={"X-One": "1"}, body={"n": [1, "é"]})
    [seen] = Receiver.seen
    assert (seen["method"], seen["path"], json.loads(seen["body"])) == ("PUT", "/echo?a=1", {"n": [1, "é"]})
    assert seen["headers"]["X-One"] == "1" and seen["headers"]["Content-Type"] == "application/json"


def test_it_names_the_job_and_itself(port: int) -> None:
    call(f"http://127.0.0.1:{port}/echo")
    headers = Receiver.seen[0]["headers"]
    assert (headers["Idempotency-Key"], headers["Punctual-Job-Id"], headers["User-Agent"]) == ("01JOB", "01JOB", "Punctual/1")
    assert headers["Host"] == f"127.0.0.1:{port}"


def test_a_string_body_is_sent_as_it_is_and_given_headers_win(port: int) -> None:
    call(f"http://127.0.0.1:{port}/echo", method="POST", body="<a/>", headers={"content-type": "text/xml", "user-agent": "mine"})
    headers = {name.lower(): value for name, value in Receiver.seen[0]["headers"].items()}
    assert Receiver.seen[0]["body"] == b"<a/>"
    assert (headers["content-type"], headers["user-agent"]) == ("text/xml", "mine")


def test_proxies_of_the_environment_are_not_used(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert call(f"http://127.0.0.1:{port}/echo").failure is None


# Results


def test_it_keeps_status_headers_and_body(port: int) -> None:
    response = call(f"http://127.0.0.1:{port}/echo").response
    assert response is not None
    assert (response["status"], response["body"], response["headers"]["content-type"]) == (200, '{"ok": true}', "application/json")


def test_the_first_megabyte_of_a_large_answer_is_kept(port: int) -> None:
    response = call(f"http://127.0.0.1:{port}/big").response
    assert response is not None
    assert response["body"] == "é" * 524_288
    assert sum(len(name) + len(value) for name, value in response["headers"].items()) <= 4_096


def test_an_endless_answer_is_no_success(port: int) -> None:
    result = call(f"http://127.0.0.1:{port}/endless", timeout_seconds=0.3)
    assert (kind(result), result.response) == ("retryable", None)


def test_a_large_answer_that_breaks_off_is_no_success(port: int) -> None:
    result = call(f"http://127.0.0.1:{port}/broken", timeout_seconds=GUARD_S)
    assert (kind(result), result.response) == ("retryable", None)


def test_the_log_has_the_request_and_its_end_without_the_query(port: int) -> None:
    first, second = (call(f"http://127.0.0.1:{port}/echo?token=secret#part").log or "").splitlines()
    assert first == f"GET http://127.0.0.1:{port}/echo"
    assert re.fullmatch(r"HTTP 200 after \d+ ms, 12 bytes", second)


def test_the_log_reports_a_call_without_an_answer() -> None:
    first, second = (call("http://127.0.0.1:1/nobody").log or "").splitlines()
    assert first == "GET http://127.0.0.1:1/nobody"
    assert re.fullmatch(r"NewConnectionError.* after \d+ ms|Connection.* after \d+ ms", second)


def test_latin_text_is_decoded_by_its_charset(port: int) -> None:
    assert (call(f"http://127.0.0.1:{port}/text").response or {})["body"] == "café"


# The meaning of answers


DATES_THAT_ARE_NONE = (
    "Fri, 20 Nov 99999 10:00:07 GMT",
    "Fri, 20 Nov 2026 10:00:07 +0200",
    "Fri, 20 Nov 2026 10:00:07 PST",
    "Fri, 20 Nov 2026 10:00:07",
    "Fri, 20 Nov 2026",
    "Tue, 31 Feb 2027 10:00:00 GMT",
    "Fri, 20 Nov 2026 25:00:00 GMT",
    "Fri, 20 Nov 2026 10:61:00 GMT",
    "Fri, 20 Ove 2026 10:00:07 GMT",
    "2026-11-20T11:00:00Z",
    "20 11 2026 11 00 00",
    "Fri, 01 Jan 0000 00:00:00 GMT",
)


@pytest.mark.parametrize(
    ("status", "expected"),
    [(200, None), (204, None), (299, None), (301, "permanent"), (302, "permanent"), (400, "permanent"), (404, "permanent")]
    + [(code, "permanent") for code in (101, 401, 403, 410, 422, 451, 499)]
    + [(code, "retryable") for code in (408, 425, 500, 502, 503, 504, 599, 999)]
    + [(429, "throttled")],
)
def test_the_status_decides_whether_a_failure_is_retryable(port: int, status: int, expected: str | None) -> None:
    result = call(f"http://127.0.0.1:{port}/status/{status}")
    assert kind(result) == expected
    assert (result.response or {})["status"] == status


@pytest.mark.parametrize(
    ("status", "wish", "expected", "wait"),
    [
        (429, "7", "throttled", 7_000),
        (503, "7", "throttled", 7_000),
        (500, "7", "retryable", 7_000),
        (408, " 120 ", "retryable", 120_000),
        (404, "7", "permanent", None),
        (429, "007", "throttled", 7_000),
        *((503, huge, "throttled", 999_999_999_000) for huge in ("9" * 5_000, "1234567890", "0" * 5_000 + "9" * 9)),
        (429, "\t7\t", "throttled", 7_000),
        (429, "fri, 20 nov 2026 10:00:07 gmt", "throttled", 7_000),
        (429, "Fri Nov 20 10:00:07 2026", "throttled", 7_000),
        (429, "Tue Dec  1 10:00:00 2026", "throttled", 11 * 86_400_000),
        (429, "Fri, 20 Nov 2026 10:59:60 GMT", "throttled", 3_600_000),
        (503, "Fri, 20 Nov 2026 10:00:07 GMT", "throttled", 7_000),
        (503, "Friday, 20-Nov-26 11:00:00 GMT", "throttled", 3_600_000),
        (503, "Fri, 20 Nov 2026 09:59:59 GMT", "retryable", None),
        *((429, useless, "throttled", None) for useless in ("", "0", "-7", "7.5", "soon", "7, 9", "7 s", "+7", "1e3", "0x7", "7;")),
        *((429, useless, "throttled", None) for useless in DATES_THAT_ARE_NONE),
        *((503, useless, "retryable", None) for useless in ("", "0", "-7", "7.5", "soon", "²")),
    ],
)
def test_an_answer_may_specify_the_wait_before_a_retry(port: int, status: int, wish: str, expected: str, wait: int | None) -> None:
    failure = call(f"http://127.0.0.1:{port}/busy/{status}?{urllib.parse.quote(wish, encoding='latin-1')}").failure
    assert failure is not None and (failure.kind, failure.retry_after_ms) == (expected, wait)


def test_a_retry_date_counts_from_now_if_the_answer_has_no_date(port: int) -> None:
    until = time.time() + 3_000
    answer = f"HTTP/1.1 429 Busy\r\nRetry-After: {email.utils.formatdate(until, usegmt=True)}\r\nContent-Length: 0\r\n\r\n"
    failure = call(f"http://127.0.0.1:{port}/raw", method="POST", body=answer).failure
    assert failure is not None and 2_900_000 < (failure.retry_after_ms or 0) <= 3_000_000


@pytest.mark.parametrize(("ahead", "expected"), [(1, True), (50, True), (51, False), (99, False)])
def test_two_digits_of_a_year_are_at_most_fifty_years_ahead(ahead: int, expected: bool) -> None:
    year = time.gmtime().tm_year + ahead
    assert (http._retry_after_ms({"Retry-After": f"Friday, 31-Dec-{year % 100:02} 00:00:00 GMT"}) is not None) == expected


@given(st.text(st.characters(max_codepoint=255)), st.text(st.sampled_from("0123456789 ,:-+GMTFriNov"), max_size=40))
def test_no_retry_header_raises_an_error(wish: str, date: str) -> None:
    for headers in ({"Retry-After": wish, "Date": date}, {"Retry-After": date, "Date": wish}):
        wait = http._retry_after_ms(headers)
        assert wait is None or wait > 0


def test_redirects_are_not_followed(port: int) -> None:
    call(f"http://127.0.0.1:{port}/status/302")
    assert [seen["path"] for seen in Receiver.seen] == ["/status/302"]


def test_a_connection_reset_is_retryable(port: int) -> None:
    assert kind(call(f"http://127.0.0.1:{port}/reset")) == "retryable"


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "SSH-2.0-OpenSSH_9.6\r\n",
        "HTTP/1.1 many OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
    ],
    ids=["nothing", "not http", "no status", "cut", "bad chunk", "cut chunk"],
)
def test_an_answer_that_cannot_be_read_is_retryable(port: int, answer: str) -> None:
    assert kind(call(f"http://127.0.0.1:{port}/raw", method="POST", body=answer)) == "retryable"


def test_a_closed_port_is_retryable() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        assert kind(call(f"http://127.0.0.1:{free.getsockname()[1]}/")) == "retryable"


def test_an_unknown_host_is_retryable(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*args: Any, **kwargs: Any) -> Any:
        raise socket.gaierror("no such host")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    result = call("http://nowhere.invalid/")
    assert kind(result) == "retryable" and "nowhere.invalid" in str(result.failure)


# Time-outs and stops


@pytest.mark.parametrize("path", ["hang", "drip", "stream"])
def test_the_call_s_own_time_out_is_retryable(port: int, path: str) -> None:
    result = call(f"http://127.0.0.1:{port}/{path}", timeout_seconds=0.15)
    assert kind(result) == "retryable" and "0.15 s" in str(result.failure)


@pytest.mark.parametrize("path", ["hang", "drip", "stream"])
def test_the_job_s_deadline_ends_a_call_as_a_time_out(port: int, path: str) -> None:
    assert kind(call(f"http://127.0.0.1:{port}/{path}", seconds=0.15)) == "timeout"


@pytest.mark.parametrize("path", ["hang", "drip", "stream"])
def test_a_stop_ends_a_call(port: int, path: str) -> None:
    stop = threading.Event()
    threading.Timer(0.1, stop.set).start()
    began = time.monotonic()
    assert kind(call(f"http://127.0.0.1:{port}/{path}", stop=stop)) == "timeout"
    assert time.monotonic() - began < GUARD_S


def test_one_thread_watches_all_calls_and_forgets_those_that_ended(port: int) -> None:
    with ThreadPoolExecutor(10) as threads:
        made = [threads.submit(call, f"http://127.0.0.1:{port}/hang", timeout_seconds=0.1 + number / 50) for number in range(10)]
        assert {kind(each.result()) for each in made} == {"retryable"}
        assert len([thread for thread in threading.enumerate() if thread.name == "watcher"]) == 1
    assert not http.WATCHER._lines


def test_a_call_is_cut_on_time_while_one_with_more_time_goes_on(port: int) -> None:
    with ThreadPoolExecutor(1) as threads:
        stop = threading.Event()
        longer = threads.submit(call, f"http://127.0.0.1:{port}/hang", stop=stop)
        while not http.WATCHER._lines:
            time.sleep(0.001)
        began = time.monotonic()
        assert kind(call(f"http://127.0.0.1:{port}/hang", timeout_seconds=0.1)) == "retryable"
        assert time.monotonic() - began < GUARD_S and not longer.done()
        stop.set()
        assert kind(longer.result()) == "timeout"


# Addresses


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "169.254.169.254", "10.0.0.1", "0.0.0.0", "2130706433", "0x7f.1"])
def test_non_public_addresses_are_a_permanent_failure(host: str) -> None:
    result = call(f"http://{host}:1/", private=False)
    assert kind(result) == "permanent" and "public addresses only" in str(result.failure)


def test_the_checked_address_is_the_called_one(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([[(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]])
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: next(answers))  # a second resolution would raise
    assert call("http://rebound.example/echo").failure is None
    assert Receiver.seen[0]["headers"]["Host"] == "rebound.example"


def test_only_the_public_ones_of_mixed_addresses_are_called(monkeypatch: pytest.MonkeyPatch) -> None:
    def dial(line: Any, family: int, address: Any) -> None:
        dialled.append(address[0])
        raise TimeoutError

    dialled: list[str] = []
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 80)) for address in ("127.0.0.1", "8.8.8.8", "10.0.0.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: found)
    monkeypatch.setattr(http._Line, "_dial", dial)
    call("http://mixed.example/", private=False)
    assert dialled == ["8.8.8.8"]


@pytest.mark.parametrize(
    ("address", "public"),
    [("8.8.8.8", True), ("2606:4700:4700::1111", True)]
    + [(text, False) for text in ("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0")]
    + [(text, False) for text in ("224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1")]
    + [(text, False) for text in ("::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1")]
    + [(text, False) for text in ("::ffff:127.0.0.1", "::ffff:10.0.0.1", "2002:7f00:1::", "2001:0:1::1", "64:ff9b::7f00:1", "::7f00:1")],
)
def test_is_public_accepts_only_public_addresses(address: str, public: bool) -> None:
    assert http.is_public(address) is public


@given(st.ip_addresses(v=4))
def test_no_mapped_address_is_more_public_than_the_address_itself(address: ipaddress.IPv4Address) -> None:
    assert http.is_public(f"::ffff:{address}") == http.is_public(str(address))


# TLS


@pytest.fixture
def certified(tmp_path: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's context and the client's that trusts it, for the name `secure.example`."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "secure.example")])
    now = datetime.datetime.now(datetime.UTC)
    built = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + datetime.timedelta(days=1))
    signed = built.add_extension(x509.SubjectAlternativeName([x509.DNSName("secure.example")]), False).sign(key, hashes.SHA256())
    pem = tmp_path / "server.pem"
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    pem.write_bytes(private + signed.public_bytes(serialization.Encoding.PEM))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(pem)
    return server, ssl.create_default_context(cafile=str(pem))


def at_loopback(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: found)


def test_tls_checks_the_certificate_against_the_name_in_the_url(certified: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    server, client = certified
    monkeypatch.setattr(http, "_trust", lambda: client)
    with serving(server) as port:
        at_loopback(monkeypatch, port)
        assert call("https://secure.example/echo").failure is None
        assert kind(call("https://other.example/echo")) == "retryable"


def test_tls_trusts_no_unknown_certificate(certified: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(certified[0]) as port:
        at_loopback(monkeypatch, port)
        result = call("https://secure.example/echo")
    assert kind(result) == "retryable" and "certificate" in str(result.failure).lower()
    assert not Receiver.seen


def test_a_hanging_tls_answer_is_cut(certified: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    server, client = certified
    monkeypatch.setattr(http, "_trust", lambda: client)
    with serving(server) as port:
        at_loopback(monkeypatch, port)
        began = time.monotonic()
        assert kind(call("https://secure.example/hang", seconds=0.2)) == "timeout"
        assert time.monotonic() - began < GUARD_S


# Payloads


@pytest.mark.parametrize(
    ("payload", "fields"),
    [
        ({}, {"url"}),
        ({"url": "ftp://a.example"}, {"url"}),
        ({"url": "http://"}, {"url"}),
        ({"url": "http://user:secret@a.example"}, {"url"}),
        ({"url": "http://a.example/a b"}, {"url"}),
        ({"url": "http://a.example", "headers": {"Host": "b"}}, {"headers.Host.[key]"}),
        ({"url": "http://a.example", "headers": {"X": "a\r\nY: b"}}, {"headers.X"}),
        ({"url": "http://a.example", "method": "get", "timeout_seconds": 0, "extra": 1}, {"method", "timeout_seconds", "extra"}),
    ],
)
def test_bad_payloads_are_refused_by_field(payload: dict[str, Any], fields: set[str]) -> None:
    with pytest.raises(ValidationError) as refused:
        TypeAdapter(http.Payload).validate_json(json.dumps(payload), strict=True)
    assert {".".join(str(part) for part in error["loc"]) for error in refused.value.errors()} == fields


@pytest.mark.parametrize(
    ("headers", "rule"),
    [
        *(({name: "x"}, "is set by the scheduler") for name in ("Expect", "upgrade", "TE", "Trailer", "Keep-Alive", "Host")),
        *(({name: "x"}, "must not carry credentials") for name in ("Authorization", "X-Vault-Token", "Private-Token", "cookie")),
        *(({name: "x"}, "must not carry credentials") for name in ("X-Amz-Security-Token", "X_Api_Key", "Ocp-Apim-Subscription-Key")),
        ({"X-A": "1", "x-a": "2"}, "names x-a twice"),
        *(({name: "x"}, "") for name in ("X-A", "Content-Type", "Accept", "X-Request-Id", "If-Match", "X-Key-Id")),
    ],
)
def test_headers_are_the_users_alone_and_no_credentials(headers: dict[str, str], rule: str) -> None:
    payload = json.dumps({"url": "https://example.com", "headers": headers})
    if not rule:
        TypeAdapter(http.Payload).validate_json(payload, strict=True)
        return
    with pytest.raises(ValidationError, match=rule):
        TypeAdapter(http.Payload).validate_json(payload, strict=True)


def test_the_error_of_an_unknown_host_names_the_host_and_nothing_of_ours() -> None:
    failure = call("https://no-such-host.invalid/").failure
    assert failure is not None and failure.kind == "retryable"
    assert failure.message.startswith("NameResolutionError: Failed to resolve 'no-such-host.invalid'") and "_Secure" not in failure.message
