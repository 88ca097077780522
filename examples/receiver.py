"""The web server of the examples: calls a function for each POST request.

Against `make run` it listens on a free port of this machine, which jobs of the local stage may call. For a stage on AWS, start an example
with PORT set, and RECEIVER_URL set to a public https address that forwards to that port, such as the one of a tunnel.
"""

import os
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

Handler = Callable[[str, Mapping[str, str], bytes], int]
"""Takes the path, the headers (names in lower case) and the body of a request, and returns the status of the answer."""


class Receiver:
    """A context manager: the server runs while the block does."""

    def __init__(self, handler: Handler) -> None:
        class Answer(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                status = handler(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *arguments: object) -> None:
                """Requests are not logged."""

        self._server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "0"))), Answer)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def url(self, path: str) -> str:
        """Return the address under which jobs call a path."""
        base = os.environ.get("RECEIVER_URL") or f"http://127.0.0.1:{self._server.server_address[1]}"
        return base.rstrip("/") + path

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
