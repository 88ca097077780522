"""No control character and no bidirectional override of a name, an error or an answer reaches a terminal, nor a pipe of lines."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx
import pytest
import test_cli as cli
from fake_api import JOB, refusal

from punctual import profiles
from punctual.texts import HIDDEN

EVIL = "\x1b]0;OWNED\x07\x1b[2J\x9b31m\x9d52;c;eA==\x9c\u202egnp.exe\u2066\x85\r\x08[/x]\\[/x][bold]"
SAFE = r"\x1b]0;OWNED\x1b[2J\x9b31m\x9d52;c;eA==\x9c\u202egnp.exe\u2066"
COLOURS = re.compile(r"\x1b\[[0-9;]*m|\x1b\[\?25[lh]|\x1b\[[0-9]*[A-Z]|\r")  # of our own
KEPT = (
    "id",
    "status",
    "lane",
    "method",
    "due_at",
    "created_at",
    "updated_at",
    "scheduled_at",
    "started_at",
    "first_at",
    "last_at",
    "lane",
    "kind",
)


def evil(record: Any, name: str = "") -> Any:
    """The record with the hostile text behind each of its texts that are free."""
    if isinstance(record, dict):
        return {key: evil(value, key) for key, value in record.items()}
    if isinstance(record, list):
        return [evil(value, name) for value in record]
    is_free = isinstance(record, str) and name not in KEPT and not re.match(r"\d{4}-\d\d-\d\dT", record)
    return record + EVIL if is_free else record


FAILED = {**JOB, "status": "failed", "attempts_used": 1, "reason": EVIL, "tags": [EVIL], "key": EVIL}
OUTPUT = {"attempt": 1, "output": EVIL, "text": EVIL, "complete": True}
COMMANDS: dict[tuple[str, ...], dict[str, Any]] = {
    ("jobs", "show", cli.ID): {f"GET /jobs/{cli.ID}": evil(FAILED)},
    ("jobs", "list"): {"GET /jobs": cli.page(evil(FAILED))},
    ("tasks", "show", "01T"): {"GET /tasks/01T": evil({**cli.TASK, "description": "d", "inactive_reason": "r"})},
    ("tasks", "list"): {"GET /tasks": cli.page(evil(cli.TASK))},
    ("tasks", "export"): {"GET /tasks": cli.page({**cli.TASK, "description": EVIL, "tags": []})},
    ("tasks", "export", "--format", "json"): {"GET /tasks": cli.page({**cli.TASK, "description": EVIL, "tags": []})},
    ("dead-letters", "list"): {"GET /dead-letters": cli.page(evil(cli.GROUP))},
    ("targets", "list"): {"GET /targets": cli.page(evil(cli.TARGET))},
    ("users", "list"): {"GET /users": cli.page(evil(cli.USER))},
    ("whoami",): {"GET /me": evil(cli.ME)},
    ("lanes", "list"): {"GET /system/lanes": evil(cli.LANES)},
    ("operations", "list"): {"GET /operations": cli.page(evil({**cli.DONE, "reason": "r"}))},
    ("types",): {"GET /types": cli.page(evil({"type": "http", "target": None, "description": "d", "payload_schema": {}}))},
    ("aws-actions", "show", "s3:Copy"): {
        "GET /types/aws/actions/s3/Copy": evil(
            {**cli.ACTION, "parameters_schema": {"properties": {EVIL: {"enum": [EVIL], "description": EVIL}}}}
        )
    },
    ("jobs", "cancel", cli.ID): {f"POST /jobs/{cli.ID}/cancel": refusal(409, "conflict", EVIL)},
    ("jobs", "create", "log", "x"): {"POST /jobs": refusal(400, "validation_failed", "no", [{"field": EVIL, "rule": EVIL}])},
    ("tasks", "pause", "01T"): {"POST /tasks/01T/pause": httpx.Response(502, text=EVIL)},
}


@pytest.mark.parametrize("form", ["terminal", "pipe", "json", "quiet"])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_prints_a_control_character(command: tuple[str, ...], form: str) -> None:
    profiles.save(profiles.Profile("default", cli.URL, username="ann", token="t0"))
    words = {"json": ("--json",), "quiet": ("--quiet",)}.get(form, ())
    result = cli.api(COMMANDS[command])(*command, *words, terminal=form == "terminal")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    printed = COLOURS.sub("", result.stdout + result.stderr)
    assert HIDDEN.findall(printed) == []
    assert printed and "Traceback" not in printed and "defect" not in printed


def test_a_hidden_character_is_shown_as_its_escape() -> None:
    profiles.save(profiles.Profile("default", cli.URL, username="ann", token="t0"))
    terminal = cli.api({f"GET /jobs/{cli.ID}": refusal(400, "bad", EVIL)})
    assert SAFE in terminal("jobs", "show", cli.ID, terminal=True).stderr


def test_json_keeps_what_it_escapes() -> None:
    profiles.save(profiles.Profile("default", cli.URL, username="ann", token="t0"))
    result = cli.api({"GET /tasks/01T": {**cli.TASK, "description": EVIL}})("tasks", "show", "01T", "--json")
    assert json.loads(result.stdout)["description"] == EVIL


@pytest.mark.parametrize("terminal", [True, False])
def test_an_output_is_raw_in_a_pipe_only(terminal: bool) -> None:
    profiles.save(profiles.Profile("default", cli.URL, username="ann", token="t0"))
    route = {f"GET /jobs/{cli.ID}/attempts/1/output": {"number": 1, "text": EVIL, "complete": True}}
    printed = cli.api(route)("jobs", "output", cli.ID, "--attempt", "1", terminal=terminal).stdout
    if terminal:
        assert HIDDEN.findall(printed) == [] and SAFE.replace("OWNED", r"OWNED\x07") in printed
    else:
        assert HIDDEN.findall(printed) == HIDDEN.findall(EVIL)
