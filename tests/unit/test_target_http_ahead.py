"""An `http` job ahead of its instant: the connection is open before, and nothing is sent. Against real servers on loopback."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from lambdas._pool import UNANSWERED_MS
from scheduler.model.job import Result
from scheduler.targets.base import Begin, Context, NotBegun, Reach, at_once
from scheduler.targets.job_context import JobContext
from scheduler.targets.types import http
from tests.unit.test_target_http import at_loopback, certified, kind

__all__ = ["certified"]  # a fixture
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
TLS_HANDSHAKE = 22
INSTANT = 4_000_000_000_000  # far in the future: only `begin` decides when it is reached


class SetTime:
    """The clocks of the module `time`, which stand still until they are moved."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.seconds = 1_800_000_000.0
        patch.setattr(time, "time", lambda: self.seconds)
        patch.setattr(time, "monotonic", lambda: self.seconds)
        patch.setattr(time, "time_ns", lambda: round(self.seconds * 1_000) * 1_000_000)

    def after(self, seconds: float) -> int:
        """The instant after this time (UTC ms)."""
        return round((self.seconds + seconds) * 1_000)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SetTime:
    return SetTime(monkeypatch)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        yield server


def call(url: str, begin: Begin, *, not_before: int = INSTANT, **payload: Any) -> Result:
    context = Context(
        JobContext("01JOB"),
        time.monotonic() + 600,
        threading.Event(),
        allow_private=True,
        not_before=not_before,
        begin=begin,
        reach=Reach(plain_http=True),
    )
    return http.run({"url": url, **payload}, context)


def port_of(listener: socket.socket) -> int:
    number: int = listener.getsockname()[1]
    return number


def answer(connection: socket.socket) -> bytes:
    with connection:
        connection.settimeout(60)
        request = connection.recv(65_536)
        connection.sendall(ANSWER)
        return request


def test_the_connection_is_open_ahead_but_the_request_waits(listener: socket.socket) -> None:
    waiting, instant = threading.Event(), threading.Event()

    def begin(first: Callable[[], None], *, is_quick: bool = False) -> None:
        waiting.set()
        assert is_quick and instant.wait(60)
        first()

    with ThreadPoolExecutor(1) as threads:
        calling = threads.submit(call, f"http://127.0.0.1:{port_of(listener)}/a", begin)
        connection, _ = listener.accept()
        assert waiting.wait(60)
        connection.setblocking(False)
        with pytest.raises(BlockingIOError):
            connection.recv(1)
        released = time.time_ns() // 1_000_000
        instant.set()
        assert answer(connection).startswith(b"GET /a HTTP/1.1")
        result = calling.result()
    assert result.failure is None and result.began_at is not None and result.began_at >= released


def test_a_job_that_is_stopped_before_its_instant_sends_nothing(listener: socket.socket) -> None:
    def begin(first: Callable[[], None], *, is_quick: bool = False) -> None:
        raise NotBegun

    with pytest.raises(NotBegun):
        call(f"http://127.0.0.1:{port_of(listener)}/", begin)
    connection, _ = listener.accept()
    with connection:
        assert connection.recv(1) == b""


def test_long_headers_are_not_sent_by_the_thread_of_quick_functions(listener: socket.socket) -> None:
    def begin(first: Callable[[], None], *, is_quick: bool = False) -> None:
        assert not is_quick
        first()

    with ThreadPoolExecutor(1) as threads:
        threads.submit(lambda: answer(listener.accept()[0]))
        assert call(f"http://127.0.0.1:{port_of(listener)}/", begin, headers={"X-Long": "x" * http.SHORT}).failure is None


@pytest.mark.parametrize(("seconds", "expected"), [(1.5, True), (0.5, False)])
def test_a_call_with_little_time_sends_by_itself(listener: socket.socket, clock: SetTime, seconds: float, expected: bool) -> None:
    begun: list[bool] = []

    def begin(first: Callable[[], None], *, is_quick: bool = False) -> None:
        begun.append(is_quick)
        first()

    with ThreadPoolExecutor(1) as threads:
        threads.submit(lambda: answer(listener.accept()[0]))
        call(f"http://127.0.0.1:{port_of(listener)}/", begin, timeout_seconds=seconds, not_before=clock.after(0.1))
    assert begun == [expected]
    assert http.QUICK_S * 1_000 >= 4 * UNANSWERED_MS  # the executor may read the answer so late


def test_a_server_that_is_up_only_at_the_instant_is_called(listener: socket.socket) -> None:
    port = port_of(listener)
    listener.close()
    with ThreadPoolExecutor(1) as threads:

        def begin(first: Callable[[], None], *, is_quick: bool = False) -> None:
            started = socket.create_server(("127.0.0.1", port))
            threads.submit(lambda: answer(started.accept()[0])).add_done_callback(lambda _: started.close())
            assert not is_quick  # it has to connect
            first()

        assert call(f"http://127.0.0.1:{port}/", begin).failure is None


def test_a_server_that_is_still_down_at_the_instant_fails_the_attempt(listener: socket.socket) -> None:
    begun: list[bool] = []

    def begin(first: Callable[[], None], *, is_quick: bool = False) -> None:
        begun.append(is_quick)
        first()

    port = port_of(listener)
    listener.close()
    result = call(f"http://127.0.0.1:{port}/", begin)
    assert (kind(result), begun) == ("retryable", [False]) and result.began_at is not None


def test_a_handshake_that_fails_ahead_is_made_again(certified: Any, listener: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    server, client = certified
    monkeypatch.setattr(http, "_trust", lambda: client)
    at_loopback(monkeypatch, port_of(listener))
    opened: list[bytes] = []

    def serve() -> bytes:
        first, _ = listener.accept()
        with first:
            opened.append(first.recv(5))
            first.sendall(b"no TLS here")
        second, _ = listener.accept()
        return answer(server.wrap_socket(second, server_side=True))

    with ThreadPoolExecutor(1) as threads:
        serving = threads.submit(serve)
        result = call("https://secure.example/", at_once)
        assert serving.result().startswith(b"GET / HTTP/1.1")
    assert result.failure is None and opened[0][0] == TLS_HANDSHAKE


def test_the_time_limit_of_a_call_begins_at_the_instant(listener: socket.socket, clock: SetTime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "POLL", 0.01)

    def begin(first: Callable[[], None], *, is_quick: bool = False) -> None:
        clock.seconds += 0.4
        threading.Event().wait(0.1)  # a thread that cuts calls would cut it now
        first()

    with ThreadPoolExecutor(1) as threads:
        threads.submit(lambda: answer(listener.accept()[0]))
        result = call(f"http://127.0.0.1:{port_of(listener)}/", begin, not_before=clock.after(0.4), timeout_seconds=0.2)
    assert result.failure is None
    assert " after 0 ms" in (result.log or "")


def test_a_name_that_is_resolved_slowly_delays_the_instant_once(clock: SetTime, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []

    def resolve(*_: Any, **__: Any) -> Any:
        steps.append("resolve")
        clock.seconds += 0.15
        raise socket.gaierror("no such host")

    def begin(first: Callable[[], None], *, is_quick: bool = False) -> None:
        steps.append("begin")
        first()

    monkeypatch.setattr(http, "_slow", {})
    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    for _ in range(2):
        assert kind(call("http://nowhere.example/", begin, not_before=clock.after(0.1))) == "retryable"
    assert steps == ["resolve", "begin", "resolve", "begin", "resolve"]


def test_a_server_that_connects_slowly_delays_the_instant_once(
    certified: Any, listener: socket.socket, clock: SetTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that is not begun at its instant would be deferred without an attempt, again and again."""
    server, client = certified
    monkeypatch.setattr(http, "_trust", lambda: client)
    monkeypatch.setattr(http, "_slow", {})
    at_loopback(monkeypatch, port_of(listener))
    opened, steps, dial = [], list[str](), http._Line._dial

    def serve() -> None:
        for late in (True, False, False):
            connection, _ = listener.accept()
            opened.append(connection)
            if not late:
                answer(server.wrap_socket(connection, server_side=True))

    def dialled(*given: Any) -> socket.socket:
        sock = dial(*given)
        clock.seconds += 0 if "dial" in steps else 0.2  # the handshake of the first connection never ends
        steps.append("dial")
        return sock

    def begin(first: Callable[[], None], *, is_quick: bool = False) -> None:
        steps.append("begin quick" if is_quick else "begin")
        first()

    monkeypatch.setattr(http._Line, "_dial", dialled)
    with ThreadPoolExecutor(1) as threads:
        serving = threads.submit(serve)
        for _ in range(2):
            assert call("https://secure.example/", begin, not_before=clock.after(0.1)).failure is None
        serving.result()
    opened[0].close()
    assert steps == ["dial", "begin", "dial", "begin", "dial"] and list(http._slow) == [f"secure.example:{443}"]
