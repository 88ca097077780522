"""Answers of `http` targets are cut at every byte, in every way. Only an answer whose end was seen is a success. On loopback sockets."""

import itertools
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from scheduler.model.job import Result
from scheduler.targets import http_answer
from scheduler.targets.base import Context
from scheduler.targets.job_context import JobContext
from scheduler.targets.types import http
from tests.unit.test_target_http import PLAIN, at_loopback, certified, kind

__all__ = ["certified"]  # a fixture
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"

# Name: the method, the answer, its body. These have an end of their own ...
FRAMED: dict[str, tuple[str, bytes, str]] = {
    "length": ("GET", OK + b"Content-Length: 5\r\n\r\nhello", "hello"),
    "length 0": ("POST", OK + b"Content-Length: 0\r\n\r\n", ""),
    "length twice": ("GET", OK + b"Content-Length: 2, 2\r\ncontent-length:2\r\n\r\nok", "ok"),
    "length in 1.0": ("GET", b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok"),
    "length, bare LF": ("GET", b"HTTP/1.1 200\nContent-Length: 2\n\nok", "ok"),
    "chunks": ("GET", CHUNKED + b"2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n", "hello"),
    "no chunk": ("GET", CHUNKED + b"0\r\n\r\n", ""),
    "chunks and length": ("GET", OK + b"Content-Length: 3\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", "ok"),
    "trailers": ("GET", CHUNKED + b"2\r\nok\r\n0\r\nX-Sum: 5\r\nX-B: c\r\n\r\n", "ok"),
    "identity": ("GET", OK + b"Transfer-Encoding: identity\r\nContent-Length: 2\r\n\r\nok", "ok"),
    "204": ("DELETE", b"HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\n", ""),
    "head": ("HEAD", OK + b"Content-Length: 9\r\n\r\n", ""),
    "head of chunks": ("HEAD", CHUNKED, ""),
    "head of anything": ("HEAD", OK + b"\r\n", ""),
    "continue": ("POST", b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"Content-Length: 2\r\n\r\nok", "ok"),
    "hints": (
        "GET",
        b"HTTP/1.1 102 P\r\n\r\nHTTP/1.1 103 Hints\r\nLink: </a>\r\nContent-Length: 7\r\n\r\n" + OK + b"Content-Length: 2\r\n\r\nok",
        "ok",
    ),
}
# ... and these end with the connection.
UNFRAMED: dict[str, tuple[str, bytes, str]] = {
    "close": ("GET", OK + b"X-A: b\r\n\r\nhello", "hello"),
    "close in 1.0": ("GET", b"HTTP/1.0 200 OK\r\n\r\nhello", "hello"),
    "close, no content": ("GET", OK + b"Connection: close\r\n\r\n", ""),
    "other coding": ("GET", OK + b"Transfer-Encoding: gzip\r\nContent-Length: 2\r\n\r\nhello", "hello"),
    "hints and close": ("GET", b"HTTP/1.1 103 Hints\r\n\r\n" + OK + b"\r\nhello", "hello"),
}
ALL = FRAMED | UNFRAMED


def shut(connection: socket.socket) -> None:
    """End cleanly: TLS announces the end, too."""
    if isinstance(connection, ssl.SSLSocket):
        connection.unwrap()
    else:
        connection.shutdown(socket.SHUT_WR)


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def hold(connection: socket.socket) -> None:
    connection.recv(1)  # until the caller closes the connection


class Peer:
    """A server on the loopback. The path `/<number>` of a request selects the bytes that it sends and how it then ends."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self._numbers = itertools.count()
        self._scripts: dict[int, tuple[bytes, Callable[[socket.socket], None]]] = {}
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port: int = self._listener.getsockname()[1]
        self.called = 0

    def script(self, sent: bytes, end: Callable[[socket.socket], None]) -> str:
        """A path for one call."""
        number = next(self._numbers)
        self._scripts[number] = sent, end
        return f"/{number}"

    def accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError):
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True)
            request = b""
            while b"\r\n\r\n" not in request:
                request += connection.recv(4_096)
            sent, end = self._scripts[int(request.split(b" ", 2)[1].strip(b"/"))]
            self.called += 1
            connection.sendall(sent)
            end(connection)
        connection.close()


@contextmanager
def peer_of(tls: ssl.SSLContext | None = None) -> Iterator[Peer]:
    made = Peer(tls)
    threading.Thread(target=made.accept, daemon=True).start()
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def peer() -> Iterator[Peer]:
    with peer_of() as made:
        yield made


def call(url: str, *, seconds: float = 60.0, stop: threading.Event | None = None, **payload: Any) -> Result:
    context = Context(JobContext("01JOB"), time.monotonic() + seconds, stop or threading.Event(), allow_private=True, reach=PLAIN)
    return http.run({"url": url, **payload}, context)


def each(calls: Sequence[Callable[[], Result]]) -> list[Result]:
    with ThreadPoolExecutor(32) as threads:
        return [made.result() for made in [threads.submit(one) for one in calls]]


def answered(peer: Peer, answer: bytes, end: Callable[[socket.socket], None] = shut, method: str = "GET", **given: Any) -> Result:
    return call(f"http://127.0.0.1:{peer.port}{peer.script(answer, end)}", method=method, **given)


def at_each_byte(
    peer: Peer, base: str, end: Callable[[socket.socket], None], among: dict[str, tuple[str, bytes, str]] = ALL, **given: Any
) -> dict[tuple[str, int], Result]:
    """The results of calls whose answers end after every number of bytes."""
    cases = [(name, size) for name, (_, answer, _) in among.items() for size in range(len(answer) + 1)]

    def one(name: str, size: int) -> Callable[[], Result]:
        method, answer, _ = among[name]
        return lambda: call(base + peer.script(answer[:size], end), method=method, **given)

    return dict(zip(cases, each([one(*case) for case in cases]), strict=True))


def expected_of_a_clean_end(name: str, size: int) -> bool:
    """Whether it is a success that the server closes the connection after this many bytes."""
    _, answer, body = ALL[name]
    return size == len(answer) or (name in UNFRAMED and size >= len(answer) - len(body))


def successes(results: dict[tuple[str, int], Result]) -> set[tuple[str, int]]:
    for (name, size), result in results.items():
        if result.failure is None:
            assert result.response is not None and ALL[name][2].startswith(result.response["body"])
            assert size < len(ALL[name][1]) or result.response["body"] == ALL[name][2]
        else:
            assert result.response is None
    return {case for case, result in results.items() if result.failure is None}


# Cut by the server


@pytest.mark.long
def test_an_answer_that_a_server_closes_early_is_retryable(peer: Peer) -> None:
    results = at_each_byte(peer, f"http://127.0.0.1:{peer.port}", shut)
    assert successes(results) == {case for case in results if expected_of_a_clean_end(*case)}
    assert {kind(result) for result in results.values()} == {None, "retryable"}


@pytest.mark.long
def test_an_answer_that_a_server_resets_is_retryable(peer: Peer) -> None:
    results = at_each_byte(peer, f"http://127.0.0.1:{peer.port}", reset)
    whole = {(name, len(answer)) for name, (_, answer, _) in FRAMED.items()}
    assert successes(results) <= whole, "the end of these was seen before the reset"
    assert {kind(result) for case, result in results.items() if case not in whole} == {"retryable"}


TLS = {name: ALL[name] for name in ("length", "trailers", "204", "head", "hints", "close", "close in 1.0")}


@pytest.mark.long
def test_an_end_that_tls_does_not_announce_is_retryable(certified: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    server, client = certified
    monkeypatch.setattr(http, "_trust", lambda: client)
    with peer_of(server) as peer:
        at_loopback(monkeypatch, peer.port)
        results = at_each_byte(peer, "https://secure.example", lambda connection: None, TLS)
    assert successes(results) == {(name, len(TLS[name][1])) for name in TLS if name in FRAMED}
    assert {kind(result) for result in results.values()} == {None, "retryable"}


@pytest.mark.long
def test_an_end_that_tls_announces_is_an_end(certified: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    server, client = certified
    monkeypatch.setattr(http, "_trust", lambda: client)
    with peer_of(server) as peer:
        at_loopback(monkeypatch, peer.port)
        results = at_each_byte(peer, "https://secure.example", shut, TLS)
    assert successes(results) == {case for case in results if expected_of_a_clean_end(*case)}


# Cut by ourselves


def test_an_answer_with_an_end_of_its_own_needs_no_close(peer: Peer) -> None:
    for method, answer, body in FRAMED.values():
        result = answered(peer, answer, hold, method)
        assert result.failure is None and result.response is not None and result.response["body"] == body


def unfinished(name: str, size: int) -> bool:
    return name in UNFRAMED or size < len(ALL[name][1])


@pytest.mark.long
def test_an_answer_that_the_call_s_time_out_cuts_is_retryable(peer: Peer) -> None:
    results = at_each_byte(peer, f"http://127.0.0.1:{peer.port}", hold, timeout_seconds=0.03)
    cut = {case: result for case, result in results.items() if unfinished(*case)}
    assert not successes(cut)
    assert {(kind(result), str(result.failure and result.failure.message)) for result in cut.values()} == {
        ("retryable", "no answer within 0.03 s, the timeout_seconds of its payload")
    }


@pytest.mark.long
def test_an_answer_that_the_job_s_deadline_cuts_is_a_time_out(peer: Peer) -> None:
    results = at_each_byte(peer, f"http://127.0.0.1:{peer.port}", hold, seconds=0.03)
    assert {kind(result) for case, result in results.items() if unfinished(*case)} == {"timeout"}


def test_an_answer_that_a_stop_cuts_is_a_time_out(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The executor makes a cancelled job of it, or drops it with a lost lease."""
    monkeypatch.setattr(http, "POLL", 0.01)
    cases = [(name, size) for name in ("length", "trailers", "close", "head") for size in range(len(ALL[name][1]) + 1)]

    def one(name: str, size: int) -> Callable[[], Result]:
        stop = threading.Event()

        def end(connection: socket.socket) -> None:
            stop.set()
            hold(connection)

        return lambda: answered(peer, ALL[name][1][:size], end, ALL[name][0], stop=stop)

    results = each([one(*case) for case in cases])
    assert {kind(result) for case, result in zip(cases, results, strict=True) if unfinished(*case)} == {"timeout"}


@pytest.mark.long
def test_a_cut_tls_answer_is_no_success(certified: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    server, client = certified
    monkeypatch.setattr(http, "_trust", lambda: client)
    with peer_of(server) as peer:
        at_loopback(monkeypatch, peer.port)
        for given, expected in (({"timeout_seconds": 0.1}, "retryable"), ({"seconds": 0.1}, "timeout")):
            results = at_each_byte(peer, "https://secure.example", hold, {"close": UNFRAMED["close"]}, **given)
            assert {kind(result) for result in results.values()} == {expected}


@pytest.mark.long
def test_a_server_that_goes_on_with_its_answer_is_cut(peer: Peer) -> None:
    def drip(connection: socket.socket) -> None:
        while True:
            connection.sendall(b"x")
            time.sleep(0.005)

    for head in (b"HTTP/1.1 200 O", OK + b"X: ", OK + b"\r\n", CHUNKED + b"fffff\r\n", CHUNKED + b"0\r\nX: "):
        assert kind(answered(peer, head, drip, timeout_seconds=0.1)) == "retryable"
        assert kind(answered(peer, head, drip, seconds=0.1)) == "timeout"


def test_a_time_out_of_the_system_is_not_the_job_s(monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(line: Any, family: int, address: Any) -> None:
        raise TimeoutError(110, "Connection timed out")

    monkeypatch.setattr(http._Line, "_dial", connect)
    result = call("http://127.0.0.1:1/", seconds=20)
    assert kind(result) == "retryable" and "Connection timed out" in str(result.failure)


# Interim answers


@pytest.mark.parametrize("status", [100, 102, 103, 104, 199])
def test_interim_answers_are_read_past(peer: Peer, status: int) -> None:
    interim = f"HTTP/1.1 {status} Wait\r\nX-Interim: yes\r\nContent-Length: 5\r\n\r\n".encode()
    for final, expected in ((OK, None), (b"HTTP/1.1 404 No\r\n", "permanent"), (b"HTTP/1.1 503 No\r\n", "retryable")):
        result = answered(peer, interim * 3 + final + b"X-Final: yes\r\nContent-Length: 2\r\n\r\nok")
        assert kind(result) == expected and result.response is not None
        assert (result.response["headers"].keys(), result.response["body"]) == ({"x-final", "content-length"}, "ok")


def test_interim_answers_alone_are_no_answer(peer: Peer) -> None:
    interim = b"HTTP/1.1 103 Hints\r\n\r\n" * 2
    assert kind(answered(peer, interim)) == "retryable"
    assert kind(answered(peer, interim, hold, timeout_seconds=0.05)) == "retryable"
    assert kind(answered(peer, interim, hold, seconds=0.05)) == "timeout"


def test_an_endless_row_of_interim_answers_is_cut(peer: Peer) -> None:
    sent = 0

    def flood(connection: socket.socket) -> None:
        nonlocal sent
        while True:
            connection.sendall(b"HTTP/1.1 102 Processing\r\n\r\n" * 100)
            sent += 2_700

    result = answered(peer, b"", flood)
    assert kind(result) == "retryable" and "no final answer" in str(result.failure)
    assert sent < 20 * http_answer.HEADS_LIMIT, "what the sockets buffered"


def test_a_change_of_protocol_is_an_error(peer: Peer) -> None:
    switching = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
    for answer, end in ((switching, hold), (switching + b"\x81\x05hello", shut), (switching + OK + b"Content-Length: 0\r\n\r\n", shut)):
        result = answered(peer, answer, end)
        assert kind(result) == "permanent" and result.response is not None
        assert (result.response["status"], result.response["body"]) == (101, "")
    for size in range(len(switching)):
        assert kind(answered(peer, switching[:size])) == "retryable"


@pytest.mark.parametrize("status", [300, 304, 404])
def test_failed_answers_need_their_end_as_well(peer: Peer, status: int) -> None:
    answer = f"HTTP/1.1 {status} No\r\nContent-Length: 2\r\n\r\n".encode()
    assert kind(answered(peer, answer + b"no")) == "permanent"
    assert kind(answered(peer, answer)) == ("permanent" if status == 304 else "retryable")


# Large and odd heads


@pytest.mark.parametrize("status", [200, 404, 500])
@pytest.mark.parametrize("headers", [b"X: 1\r\n" * 2_000, b"X: " + b"x" * 200_000 + b"\r\n", b"X: 1\r\n" + b" folded\r\n" * 50_000])
def test_the_size_of_a_head_is_no_failure(peer: Peer, status: int, headers: bytes) -> None:
    result = answered(peer, f"HTTP/1.1 {status} x\r\n".encode() + headers + b"Content-Length: 2\r\n\r\nok")
    assert kind(result) == {200: None, 404: "permanent", 500: "retryable"}[status]
    assert result.response is not None and (result.response["status"], result.response["body"]) == (status, "ok")
    assert sum(len(name) + len(value) for name, value in result.response["headers"].items()) <= 4_096


@pytest.mark.parametrize("start", [OK, OK + b"X: ", CHUNKED + b"2\r\nok\r\n0\r\n"])
def test_an_endless_head_is_permanent(peer: Peer, start: bytes) -> None:
    def flood(connection: socket.socket) -> None:
        while True:
            connection.sendall((b"x" if start.endswith(b": ") else b"X: 1\r\n") * 10_000)

    result = answered(peer, start, flood)
    assert kind(result) == "permanent" and "HTTP 200 with" in str(result.failure)


@pytest.mark.parametrize(
    "head",
    [
        "Content-Length: -1",
        "Content-Length: 5, 6",
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: five",
        "Content-Length: +5",
        "Content-Length: 5.0",
        "Content-Length: " + "9" * 5_000,
    ],
)
def test_an_answer_without_a_valid_length_is_no_http(peer: Peer, head: str) -> None:
    assert kind(answered(peer, OK + head.encode() + b"\r\n\r\nhello")) == "retryable"


@pytest.mark.parametrize(
    "chunks",
    [
        b"5\r\nhelloX\r\n0\r\n\r\n",
        b"zz\r\n",
        b"-1\r\n",
        b"\r\n0\r\n\r\n",
        b"5\r\nhello\r\n",
        b"0x5\r\nhello\r\n0\r\n\r\n",
        b"1" * 70_000,
        b"f" * 20 + b"\r\n",
    ],
)
def test_malformed_chunks_are_no_answer(peer: Peer, chunks: bytes) -> None:
    assert kind(answered(peer, CHUNKED + chunks)) == "retryable"


@pytest.mark.parametrize(
    "start",
    [
        b"hello",
        b"HTTP/2.0 200 OK",
        b"HTTP/1.1 2000 OK",
        b"HTTP/1.1 20 OK",
        b"HTTP/1.1 +20 OK",
        b"HTTP/1.1200 OK",
        b"\r\nHTTP/1.1 200 OK",
        b"H",
    ],
)
def test_a_malformed_status_line_is_no_answer(peer: Peer, start: bytes) -> None:
    for end in (b"\r\n\r\n", b""):
        assert kind(answered(peer, start + end)) == "retryable"


def test_odd_header_lines_do_not_end_the_head(peer: Peer) -> None:
    result = answered(peer, OK + b" first\r\nno colon\r\n: no name\r\nX-A : 1\r\nX-B: 2\r\n\t3\r\nX-C: a\rb\r\nContent-Length: 2\r\n\r\nok")
    assert result.response is not None
    assert result.response["headers"] == {"x-a": "1", "x-b": "2 3", "x-c": "a b", "content-length": "2"}


def test_an_answer_of_exactly_the_limit_needs_its_end(peer: Peer) -> None:
    body = b"x" * http.READ_LIMIT
    chunk = CHUNKED + b"%x\r\n" % len(body) + body + b"\r\n"
    assert answered(peer, chunk + b"0\r\n\r\n").failure is None
    assert kind(answered(peer, chunk)) == "retryable"


# Headers that are kept


def test_repeated_headers_are_all_kept(peer: Peer) -> None:
    result = answered(peer, OK + b"Link: </a>\r\nSet-Cookie: a=1\r\nlink: </b>\r\nSet-Cookie: b=2\r\nContent-Length: 0\r\n\r\n")
    assert result.response is not None
    assert result.response["headers"] == {
        "link": "</a>, </b>",
        "set-cookie": "a=[secret], b=[secret]",
        "content-length": "0",
    }


def test_credentials_of_an_answer_are_hidden(peer: Peer) -> None:
    hidden = ("Authorization", "Proxy-Authorization", "X-Auth-Token", "X_Access_Token", "X-CSRFToken", "X-Api-Key", "Cookie")
    hidden += ("Authentication-Info", "X-Client-Secret", "X-Session-Id", "X-Auth", "Access-Key", "Set-Cookie2-Token")
    shown = ("WWW-Authenticate", "ETag", "X-RateLimit-Remaining-Tokens", "Idempotency-Key", "Content-Type", "Surrogate-Key")
    lines = "".join(f"{name}: the-value\r\n" for name in (*hidden, *shown))
    cookie = "Set-Cookie: id=the-value; Path=/; HttpOnly\r\nSet-Cookie: the-value\r\n"
    result = answered(peer, OK + (lines + cookie).encode() + b"Content-Length: 0\r\n\r\n")
    assert result.response is not None
    kept = result.response["headers"]
    assert {kept[name.lower()] for name in hidden} == {"[secret]"} and {kept[name.lower()] for name in shown} == {"the-value"}
    assert kept["set-cookie"] == "id=[secret]; Path=/; HttpOnly, [secret]"
