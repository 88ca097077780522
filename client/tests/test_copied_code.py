"""The programs that the web console copies run with this package, and send the request that they stand for."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import httpx
import pytest
from fake_api import JOB, answer

import punctual

CODE = Path(__file__).parents[2] / "console/src/code"  # written by console/src/code.test.ts
PROGRAMS = sorted(CODE.glob("*.python.txt"))
TASK = {"name": "Nightly report", "generation": 1, "updated_at": "2026-11-20T09:00:00Z", "overlap": "skip", "next_runs": []}


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[httpx.Request]:
    """The requests of `punctual.Punctual`, which get an answer without a network."""
    found: list[httpx.Request] = []
    client = punctual.Punctual

    def respond(request: httpx.Request) -> httpx.Response:
        found.append(request)
        return answer({**JOB, **TASK, "status": "active" if "/tasks" in request.url.path else "scheduled", "outcome": "created"})

    monkeypatch.setattr(punctual, "Punctual", lambda url: client(url, transport=httpx.MockTransport(respond)))
    monkeypatch.setenv("PUNCTUAL_TOKEN", "the-token")
    return found


def test_there_are_programs() -> None:
    assert len(PROGRAMS) >= 9


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name.partition(".")[0])
def test_a_copied_program_sends_its_request(program: Path, sent: list[httpx.Request], capsys: pytest.CaptureFixture[str]) -> None:
    wanted: dict[str, Any] = json.loads(program.with_name(program.name.replace(".python.txt", ".json")).read_text(encoding="utf-8"))
    runpy.run_path(str(program))
    (request,) = sent
    assert (request.method, str(request.url)) == (wanted["method"], f"https://punctual.example.com/api/v1{wanted['path']}")
    assert request.headers["Authorization"] == "Bearer the-token"
    assert json.loads(request.content) == wanted["body"]
    assert capsys.readouterr().out == f"{JOB['id']}\n"
