"""The browser's part of `punctual login --sso`: to the identity provider, and back to a port of this machine (RFC 8252, PKCE)."""

from __future__ import annotations

import base64
import hashlib
import secrets
import time
import webbrowser
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

from punctual.cli._app import NOT_SIGNED_IN, Refused

PATH = "/signed-in"
PATIENCE_S = 300.0  # for a person who signs in, perhaps with a second factor
DONE = "You are signed in. Close this window and go back to the terminal."
FAILED = "The sign-in failed. Go back to the terminal."


@dataclass(frozen=True)
class Code:
    """The code that the browser brought back, and what the API needs with it."""

    code: str
    verifier: str
    redirect_uri: str


class _Waiting(HTTPServer):
    """Waits for the one request that has our `state`. Everything else on this machine may also send requests: they change nothing."""

    state = ""
    answer: dict[str, str] | None = None


class _Back(BaseHTTPRequestHandler):
    server: _Waiting
    timeout = 1.0  # for a connection that sends nothing, such as one that a browser opens ahead: the next one must not wait for it

    def do_GET(self) -> None:
        place = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(place.query).items()}
        ours = place.path == PATH and secrets.compare_digest(query.get("state", "").encode(), self.server.state.encode())
        if ours:
            self.server.answer = query
        self._say(200 if ours else 404, DONE if ours and "code" in query else FAILED if ours else "")

    def _say(self, status: int, text: str) -> None:
        page = f"<!doctype html><meta charset=utf-8><title>Punctual</title><p>{text}".encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(page)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing: the address has the code."""


def sign_in(
    authorize_url: str,
    ports: Iterable[int],
    show: Callable[[str], None],
    *,
    open_page: Callable[[str], bool] = webbrowser.open,
    clock: Callable[[], float] = time.monotonic,
    patience_s: float = PATIENCE_S,
) -> Code:
    """Open the browser, and wait until it comes back. `show` prints the address, for a machine without a browser.

    Raises Refused if no port is free, if the provider refuses, or after `patience_s`.
    """
    verifier, state = secrets.token_urlsafe(48), secrets.token_urlsafe(24)
    with _listening(ports) as server:
        server.state = state
        back = f"http://127.0.0.1:{server.server_port}{PATH}"
        digest = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
        query = {"redirect_uri": back, "state": state, "code_challenge": digest, "code_challenge_method": "S256"}
        page = f"{authorize_url}&{urlencode(query)}"
        show(page)
        open_page(page)
        ends = clock() + patience_s
        while server.answer is None and (left := ends - clock()) > 0:
            server.timeout = left
            server.handle_request()
        answer = server.answer
    if answer is None:
        raise Refused(f"nobody signed in within {patience_s:.0f} seconds", hint="Start again: punctual login --sso", code=NOT_SIGNED_IN)
    if "code" not in answer:
        why = answer.get("error_description") or answer.get("error") or "it sent no code"
        raise Refused(f"the identity provider refused: {why}", code=NOT_SIGNED_IN)
    return Code(answer["code"], verifier, back)


def _listening(ports: Iterable[int]) -> _Waiting:
    tried = list(ports)
    for port in tried:
        with suppress(OSError):
            return _Waiting(("127.0.0.1", port), _Back)
    raise Refused(f"none of the ports {', '.join(map(str, tried))} is free: the identity provider can come back to these alone")
