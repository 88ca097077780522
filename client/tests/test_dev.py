"""The command `punctual dev`: its help, and what it says where the local stack is missing. tests/system/test_dev.py starts it."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from punctual.cli import build


def punctual(*words: str) -> Result:
    return CliRunner().invoke(build(), list(words))


def test_the_help_has_the_options_and_examples() -> None:
    shown = punctual("dev", "--help").output
    assert all(each in shown for each in ("--port", "--reset", "--home", "Examples:", "punctual dev --port 5001")), shown


def test_without_the_server_it_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("punctual_server", "punctual_server.dev"):
        monkeypatch.setitem(sys.modules, name, None)
    done = punctual("dev")
    assert done.exit_code == 1 and "pip install 'punctual-client[dev]'" in done.output


@pytest.mark.parametrize("port", ["80", "70000", "http"])
def test_a_port_that_is_none_is_refused(port: str) -> None:
    done = punctual("dev", "--port", port)
    assert done.exit_code == 2 and "--port" in done.output


def test_on_windows_it_names_wsl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    done = punctual("dev")
    assert done.exit_code == 1 and "WSL" in done.output


def test_the_options_reach_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    server, package = ModuleType("punctual_server.dev"), ModuleType("punctual_server")
    server.run = lambda *arguments, **named: seen.append((arguments, named)) or 7  # type: ignore[attr-defined,func-returns-value]
    monkeypatch.setitem(sys.modules, "punctual_server", package)
    monkeypatch.setitem(sys.modules, "punctual_server.dev", server)
    done = punctual("dev", "--port", "5001", "--home", "stack", "--reset", "--json")
    assert done.exit_code == 7 and seen == [((Path("stack"), 5001), {"reset": True, "as_json": True})]
