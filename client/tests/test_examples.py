"""Each example of a help text runs: against answers that are the examples of the OpenAPI document."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import httpx
import pytest
from fake_api import KEY, TEAM, URL, answer
from test_cli import COMMANDS, ME, USER, Terminal, page
from test_operations import OPERATIONS
from test_status import REPORT
from test_teams import LETTER

from punctual import profiles
from punctual.profiles import Profile

# Other tests run these, with files and servers.
ELSEWHERE = (
    "receivers test",
    "monitor run",
    "login",
    "logout",
    "profiles",
    "import",
    "secrets",
    "groups create",
    "tasks apply",
    "tasks export",
    "calendars import",
    "calendars holidays",
    "dev",
)
SHELL = ("|", ">", "&&", "||")
AT = "2026-11-20T10:00:01.000Z"
ATTEMPT = {"number": 1, "picked_at": AT, "started_at": AT, "ended_at": AT, "outcome": "succeeded"}
LINES = [(path, line) for path, command in COMMANDS.items() for line in (command.epilog or "").splitlines()[2:]]


def example(request: httpx.Request) -> httpx.Response:
    """The example of the document for a request, of something that has ended."""
    path, body = request.url.path.removeprefix("/api/v1"), json.loads(request.content or b"{}")
    if path == "/status":
        return answer(REPORT)
    if path.startswith("/intake/"):
        return answer(page(LETTER) if path.endswith("/dead-letters") else {**LETTER, "refused": 0, "results": []})
    if (request.method, path) in (("GET", "/me"), ("GET", "/teams")):
        team = {"id": TEAM, "name": "billing", "role": "manager", "created_at": AT}
        return answer({**ME, "role": "administrator", "teams": [team]} if path == "/me" else page(team))
    if (request.method, path) == ("GET", "/users"):
        return answer(page(USER, {**USER, "id": "u2", "username": "shop"}))
    if body.get("dry_run"):
        return answer({"action": "cancel_jobs", "filter": {}, "matched": 1, "complete": True})
    for method, template, operation in OPERATIONS.values():
        if request.method == method and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), request.url.path):
            for status, one in operation["responses"].items():
                if status.startswith("2") and (content := one.get("content")):
                    return answer(_ended(content["application/json"]["example"]["data"]), int(status))
    raise AssertionError(f"no operation for {request.method} {path}")


def _ended(data: Any) -> Any:
    if not isinstance(data, dict):
        return data
    if "seal_by" in data:  # a group
        return {**data, "state": "ended", "succeeded_at": AT}
    status = "done" if "rate" in data else "succeeded" if "lane" in data else data.get("status")
    changed = {"status": status, "ended_at": AT, "cursor": None, "failed": 0, "attempts": [ATTEMPT]}
    return {**data, **{name: value for name, value in changed.items() if name in data}}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that examples read, in the current folder, and their profiles."""
    for name in ("prod", "default"):
        profiles.save(Profile(name, URL, username="ann", token="t0"))
    monkeypatch.chdir(tmp_path)
    for name in ("message.json", "billing.json"):
        Path(name).write_text(json.dumps({"queue_url": "https://sqs.eu-central-1.amazonaws.com/1/q"}))
    Path("dates.txt").write_text("2027-12-24\n2027-12-31\n")


@pytest.mark.parametrize(("path", "line"), LINES, ids=[line.strip() for _, line in LINES])
@pytest.mark.usefixtures("files")
def test_an_example_of_a_help_text_runs(path: tuple[str, ...], line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if " ".join(path).startswith(ELSEWHERE):
        pytest.skip("run by other tests")
    words = shlex.split(line, comments=True)
    begin = words.index("punctual") + 1
    end = next((at for at, word in enumerate(words) if at >= begin and word in SHELL), len(words))
    terminal = Terminal()
    terminal.api = example  # type: ignore[assignment]

    def pause(seconds: float) -> None:  # the end of a watch without an end
        raise KeyboardInterrupt

    terminal.pause = pause  # type: ignore[method-assign]
    monkeypatch.setenv("PUNCTUAL_NEW_PASSWORD", "s3cret-S3cret")
    asked = [] if "--yes" in words or "--yes" not in {option for each in COMMANDS[path].params for option in each.opts} else ["--yes"]
    result = terminal(*words[begin:end], *asked, input=f"{KEY}\n" if "--leaked" in words else "token\n")
    code = 6 if "--check" in words else 0
    assert result.exit_code == code, result.output


def test_the_examples_of_tasks_name_a_receiver_of_their_own() -> None:
    """A stage has no default receiver at first, and no address to send mails from."""
    found = [line for path, line in LINES if path == ("tasks", "create") and "notifications=" in line]
    for line in found:
        fields = next(word for word in shlex.split(line) if word.startswith("notifications="))
        assert all(each["url"] and each["format"] == "slack" for each in json.loads(fields.partition("=")[2])["webhooks"])
    assert found
