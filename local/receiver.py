"""A small HTTP server for `http` jobs: it records every call, and can refuse the first calls of a path.

/ok/<name>                    answers 200
/fail-once/<name>             answers 500 to the first call, 200 from then on
/fail-twice/<name>            answers 500 to the first two calls, 200 from then on
/throttled/<seconds>/<name>   answers 429 with Retry-After: <seconds> to the first call, 200 from then on
/status/<n>/<name>            answers n
/slow/<seconds>/<name>        answers 200 after this many seconds
/stream/<seconds>/<name>      answers 200 without a length: the body goes on for this many seconds, then the connection closes
/large/<bytes>/<name>         answers 200 with a body of that size
/broken/<name>                answers with bytes that are not HTTP
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

FAILURES = {"fail-once": 1, "fail-twice": 2}  # how many calls of a path fail, by its first part


@dataclass(frozen=True)
class Call:
    """One request as it arrived, `at` in UTC milliseconds."""

    method: str
    path: str
    at: int
    headers: Mapping[str, str]
    body: bytes
    status: int
    port: int  # of the caller's connection, which identifies its process


class Receiver:
    """A context manager: listens on a free port of the loopback."""

    def __init__(self) -> None:
        self.watch: Callable[[Call], None] = lambda call: None  # receives each call before it is answered
        self._calls: list[Call] = []
        self._open: list[Call] = []
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.receiver = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def port(self) -> int:
        return self._server.server_address[1]

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def calls(self, path: str | None = None) -> list[Call]:
        """Return the calls so far, of one path or of all, in order of arrival."""
        with self._lock:
            return [call for call in self._calls if path is None or call.path == path]

    def open_calls(self) -> list[Call]:
        """Return the calls for which no byte of an answer was sent yet."""
        with self._lock:
            return list(self._open)

    def counts(self) -> Counter[str]:
        return Counter(call.path for call in self.calls())

    @contextmanager
    def answering(self, method: str, path: str, at: int, headers: Mapping[str, str], body: bytes, port: int) -> Iterator[int]:
        """Record a call, which is open until its answer may be sent; yields the status of the answer."""
        with self._lock:
            status = answer(path, sum(1 for call in self._calls if call.path == path))
            call = Call(method, path, at, headers, body, status, port)
            self._calls.append(call)
            self._open.append(call)
        try:
            self.watch(call)
            if path.startswith("/slow/"):
                time.sleep(float(path.split("/")[2]))
        finally:
            with self._lock:
                self._open.remove(call)
        yield status


def answer(path: str, earlier: int) -> int:
    """Return the status for a call whose path was called `earlier` times before."""
    kind, _, rest = path.lstrip("/").partition("/")
    if earlier < FAILURES.get(kind, 0):
        return HTTPStatus.INTERNAL_SERVER_ERROR
    if kind == "throttled" and earlier == 0:
        return HTTPStatus.TOO_MANY_REQUESTS
    if kind == "status":
        return int(rest.partition("/")[0])
    return HTTPStatus.OK


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024  # a thousand jobs may call at one instant
    receiver: Receiver

    def handle_error(self, request: object, client_address: object) -> None:
        """Print nothing: some callers are meant to close the connection during an answer."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _answer(self) -> None:
        at = time.time_ns() // 1_000_000
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            with self.server.receiver.answering(self.command, self.path, at, dict(self.headers), body, self.client_address[1]) as status:
                self._respond(status)
        except OSError:
            self.close_connection = True  # the caller was killed

    def _respond(self, status: int) -> None:
        content = f'{{"received": "{self.path}", "status": {status}}}'.encode()
        kind, _, rest = self.path.lstrip("/").partition("/")
        if kind == "large":
            content = b"x" * int(rest.partition("/")[0])
        elif kind == "broken":
            self.wfile.write(b"what is this\r\n\r\n")
            self.close_connection = True
            return
        elif kind == "stream":
            self._stream(float(rest.partition("/")[0]))
            return
        self.send_response(status)
        if status == HTTPStatus.TOO_MANY_REQUESTS and self.path.startswith("/throttled/"):
            self.send_header("Retry-After", self.path.split("/")[2])
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _stream(self, seconds: float) -> None:
        self.close_connection = True
        self.send_response(HTTPStatus.OK)
        self.end_headers()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.wfile.write(b"working\n")
            time.sleep(0.02)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer

    def log_message(self, format: str, *arguments: object) -> None:
        """Print nothing: the terminal shows the live table."""
