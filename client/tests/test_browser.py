"""`punctual login --sso`: the way of the browser."""

from __future__ import annotations

import base64
import hashlib
import socket
import threading
from collections.abc import Callable
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlencode, urlsplit
from urllib.request import urlopen

import pytest

from punctual.cli import browser
from punctual.cli._app import Refused

PAGE = "https://pages.example.com/oauth2/authorize?client_id=sso"


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class Browser:
    """Goes to the address, and comes back with what `answer` makes of the query."""

    def __init__(self, *answers: Callable[[dict[str, str]], dict[str, str]]) -> None:
        self.answers, self.query, self.statuses = answers, dict[str, str](), list[int]()
        self.thread: threading.Thread | None = None

    def __call__(self, page: str) -> bool:
        self.query = {name: values[0] for name, values in parse_qs(urlsplit(page).query).items()}
        self.thread = threading.Thread(target=self._return)
        self.thread.start()
        return True

    def _return(self) -> None:
        for answer in self.answers:
            self.statuses.append(_status(f"{self.query['redirect_uri']}?{urlencode(answer(self.query))}"))


def _status(page: str) -> int:
    try:
        with urlopen(page, timeout=60) as answered:
            return int(answered.status)
    except HTTPError as error:
        return error.code


def code(query: dict[str, str]) -> dict[str, str]:
    return {"code": "from-the-provider", "state": query["state"]}


def sign_in(opened: Callable[[str], bool], port: int, **more: float) -> browser.Code:
    return browser.sign_in(PAGE, [port], lambda page: None, open_page=opened, **more)  # type: ignore[arg-type]


def test_the_browser_comes_back_with_a_code(port: int) -> None:
    opened = Browser(code)
    found = sign_in(opened, port)
    assert (found.code, found.redirect_uri) == ("from-the-provider", f"http://127.0.0.1:{port}/signed-in")
    digest = hashlib.sha256(found.verifier.encode()).digest()
    assert opened.query["code_challenge"] == base64.urlsafe_b64encode(digest).decode().rstrip("=")
    assert (opened.query["code_challenge_method"], opened.query["client_id"]) == ("S256", "sso")
    assert 43 <= len(found.verifier) <= 128


def test_a_request_with_another_state_changes_nothing(port: int) -> None:
    opened = Browser(lambda query: {"code": "planted", "state": "another"}, lambda query: {"code": "planted"}, code)
    assert sign_in(opened, port).code == "from-the-provider"
    assert opened.thread is not None
    opened.thread.join()
    assert opened.statuses == [404, 404, 200]


def test_a_refusal_of_the_provider_is_shown(port: int) -> None:
    opened = Browser(lambda query: {"error": "access_denied", "error_description": "not for you", "state": query["state"]})
    with pytest.raises(Refused, match="not for you"):
        sign_in(opened, port)


def test_a_machine_without_a_browser_shows_the_address(port: int) -> None:
    shown: list[str] = []
    by_hand = Browser(code)

    def show(page: str) -> None:
        shown.append(page)
        by_hand(page)

    assert browser.sign_in(PAGE, [port], show, open_page=lambda page: False).code == "from-the-provider"
    assert shown[0].startswith(f"{PAGE}&redirect_uri=http%3A%2F%2F127.0.0.1")


def test_nobody_waits_for_ever(port: int) -> None:
    with pytest.raises(Refused, match="nobody signed in within 0 seconds"):
        sign_in(lambda page: True, port, patience_s=0.05)


@pytest.mark.long
def test_a_connection_that_says_nothing_does_not_hold_up_the_code(port: int) -> None:
    """Browsers open connections ahead of their requests."""
    silent, comes_back = list[socket.socket](), Browser(code)

    def opened(page: str) -> bool:
        silent.append(socket.create_connection(("127.0.0.1", port)))
        return comes_back(page)

    try:
        assert sign_in(opened, port).code == "from-the-provider"
    finally:
        for each in silent:
            each.close()


def test_the_next_port_is_used_if_one_is_taken(port: int) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        other = taken.getsockname()[1]
        found = browser.sign_in(PAGE, [other, port], lambda page: None, open_page=Browser(code))
        assert str(port) in found.redirect_uri
        with pytest.raises(Refused, match=str(other)):
            sign_in(Browser(code), other)
