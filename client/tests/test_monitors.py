"""`punctual monitors` and `punctual monitor run`, against an API of a few lines."""

from __future__ import annotations

import json
import sys
from datetime import datetime, timedelta, timezone
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner, Result

from punctual.cli import build
from punctual.cli._app import Setup

URL = "https://api.example.com/api/v1/ping/token"
NOW = datetime(2026, 11, 20, 9, 59, 50, tzinfo=timezone.utc)
MONITOR: dict[str, Any] = {
    "key": "sync",
    "name": "Sync",
    "state": "up",
    "since": "2026-11-20T09:00:00.000Z",
    "grace_seconds": 60,
    "max_duration_seconds": 3600,
    "created_at": "2026-11-20T09:00:00.000Z",
    "updated_at": "2026-11-20T09:00:00.000Z",
    "ping_path": "/api/v1/ping/token",
    "warning": "it expects many pings",
}
EVENT = {"at": "2026-11-20T09:00:00.000Z", "kind": "fail", "exit_code": 3, "duration_seconds": 2.5, "body": "disk full\nsecond line"}


class Terminal:
    """Runs commands; `answers` are the statuses of the requests, the last one for all others."""

    def __init__(self, *answers: int | Exception, data: Any = None) -> None:
        self.answers, self.data = list(answers or (200,)), data
        self.sent: list[tuple[str, str, bytes]] = []
        self.at, self.pauses = NOW, list[float]()

    def handle(self, request: httpx.Request) -> httpx.Response:
        self.sent.append((request.method, str(request.url), request.content))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer, json={"success": True, "data": self.data})

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.at += timedelta(seconds=seconds)

    def __call__(self, *words: str) -> Result:
        setup = Setup(httpx.MockTransport(self.handle), lambda: self.at, self.pause, False)
        environment = {"PUNCTUAL_URL": "https://api.example.com", "PUNCTUAL_TOKEN": "t"}
        return CliRunner().invoke(build(), words, obj=setup, env=environment)

    @property
    def paths(self) -> list[str]:
        return [url.partition("?")[0].removeprefix(URL) for _, url, _ in self.sent]


def run(terminal: Terminal, script: str, *options: str) -> Result:
    return terminal("monitor", "run", "--url", URL, *options, "--", sys.executable, "-c", script)


@pytest.mark.parametrize("code", [0, 3, 255])
def test_a_run_pings_its_start_and_its_end_and_has_its_exit_code(code: int) -> None:
    terminal = Terminal()
    assert run(terminal, f"raise SystemExit({code})").exit_code == code
    assert terminal.paths == ["/start", f"/{code}"] and {method for method, _, _ in terminal.sent} == {"POST"}
    assert len({url.partition("?run=")[2] for _, url, _ in terminal.sent}) == 1


def test_a_run_does_not_depend_on_its_pings() -> None:
    terminal = Terminal(httpx.ConnectError("refused"))
    assert run(terminal, "raise SystemExit(4)").exit_code == 4
    assert terminal.paths == ["/start", *["/4"] * 7] and sum(terminal.pauses) == 108


def test_the_last_ping_is_sent_again_until_it_arrives() -> None:
    terminal = Terminal(503, 503, 429, 200)
    assert run(terminal, "").exit_code == 0
    assert terminal.paths == ["/start", "/0", "/0", "/0"] and terminal.pauses == [1.0, 2.0]


def test_a_wrong_url_is_reported_and_not_tried_again() -> None:
    terminal = Terminal(404)
    result = run(terminal, "raise SystemExit(2)")
    assert result.exit_code == 2 and terminal.paths == ["/start", "/2"] and "not that of a monitor" in result.stderr


@pytest.mark.parametrize("url", ["https://…", "nonsense", "", "https://[::1"])
def test_a_text_that_is_no_url_is_reported_and_the_command_runs(url: str) -> None:
    terminal = Terminal(httpx.UnsupportedProtocol("what the transport says of a URL without a scheme"))
    result = terminal("monitor", "run", "--url", url, "--", sys.executable, "-c", "raise SystemExit(3)")
    assert result.exit_code == 3 and terminal.pauses == [] and "not that of a monitor" in result.stderr


def test_the_end_of_the_output_goes_with_the_last_ping_and_is_shown() -> None:
    terminal = Terminal()
    result = run(terminal, "import sys; print('x' * 20000); sys.stderr.write('the end')", "--send-output")
    assert terminal.sent[0][2] == b"" and len(terminal.sent[1][2]) == 10_240 and terminal.sent[1][2].endswith(b"the end")
    assert result.stdout.count("x") == 20_000


def test_a_command_that_does_not_exist_is_a_failure() -> None:
    terminal = Terminal()
    assert terminal("monitor", "run", "--url", URL, "--", "/no/such/command").exit_code == 127
    assert terminal.paths == ["/start", "/127"] and b"No such file" in terminal.sent[1][2]


def test_a_killed_command_has_the_exit_code_of_a_shell() -> None:
    terminal = Terminal()
    assert run(terminal, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)").exit_code == 137
    assert terminal.paths[-1] == "/137"


def test_put_sends_what_the_options_say_and_shows_the_url() -> None:
    terminal = Terminal(data=MONITOR)
    words = ("--cron", "30 2 * * *", "--time-zone", "Europe/Berlin", "--max-duration", "2h", "--email", "ann@example.com")
    result = terminal("monitors", "put", "sync", "Sync", *words)
    assert result.exit_code == 0 and "https://api.example.com/api/v1/ping/token" in result.stdout
    assert b'"max_duration_seconds":7200' in terminal.sent[0][2] and b"grace_seconds" not in terminal.sent[0][2]


@pytest.mark.parametrize(
    "words, notifications",
    [
        ((), None),
        (("--default-receivers",), {}),
        (
            ("--receiver", "ops", "--receiver", "oncall", "--email", "a@example.com"),
            {"emails": ["a@example.com"], "receivers": ["ops", "oncall"]},
        ),
    ],
)
def test_put_names_receivers_or_the_default_ones(words: tuple[str, ...], notifications: dict[str, Any] | None) -> None:
    terminal = Terminal(data=MONITOR)
    assert terminal("monitors", "put", "sync", "Sync", "--period", "5m", *words).exit_code == 0
    assert json.loads(terminal.sent[0][2]).get("notifications") == notifications


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--period", "5m", "--cron", "* * * * *"),
        ("--period", "5m", "--time-zone", "UTC"),
        ("--period", "5m", "--default-receivers", "--email", "a@example.com"),
    ],
)
def test_put_refuses_options_that_do_not_fit(words: tuple[str, ...]) -> None:
    terminal = Terminal(data=MONITOR)
    assert terminal("monitors", "put", "sync", "Sync", *words).exit_code == 2 and not terminal.sent


@pytest.mark.parametrize("verb", ["show", "pause", "resume", "renew-token"])
def test_each_verb_shows_the_monitor(verb: str) -> None:
    result = Terminal(data=MONITOR)("monitors", verb, "sync")
    assert result.exit_code == 0 and "up" in result.stdout


def test_lists_and_the_history_are_lines() -> None:
    listed = Terminal(data={"items": [MONITOR], "cursor": None, "has_more": False})("monitors", "list")
    assert listed.exit_code == 0 and listed.stdout.startswith("sync\tup")
    events = Terminal(data={"items": [EVENT]})("monitors", "history", "sync")
    assert events.exit_code == 0 and "fail\t3\t2.5 s\tdisk full" in events.stdout


def test_a_monitor_is_deleted_after_a_question() -> None:
    terminal = Terminal(data={"key": "sync"})
    assert terminal("monitors", "delete", "sync").exit_code == 2 and not terminal.sent
    assert terminal("monitors", "delete", "sync", "--yes").exit_code == 0 and terminal.sent[0][0] == "DELETE"
