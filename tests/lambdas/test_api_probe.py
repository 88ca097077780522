"""The check whether pings arrive: only the refusal of our own function shows it."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from lambdas._api_probe import PATH, probe


@contextmanager
def answering(status: int, body: bytes) -> Iterator[str]:
    """The address of a server that answers each request alike."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert self.path == PATH
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        thread.join()


@pytest.mark.parametrize(
    "status, body, expected",
    [
        (404, b'{"success":false,"error":{"code":"not_found"}}', True),
        (404, b'{"message":"Not Found"}', False),
        (429, b"", False),
        (503, b"", False),
        (200, b'"not_found"', False),
    ],
)
def test_only_the_refusal_of_the_function_counts(status: int, body: bytes, expected: bool) -> None:
    with answering(status, body) as address:
        assert probe(address)() is expected


def test_an_address_that_does_not_answer_is_not_reachable() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        assert probe(f"http://127.0.0.1:{taken.getsockname()[1]}")() is False
