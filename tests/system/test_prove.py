"""`make prove` in its short form, as users run it, on a local stack of its own: every promise kept, and one broken on purpose."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from punctual import Punctual

from lab.scenarios import burst
from local.failure import Trouble
from local.stop import PROVE
from prove.plan import PARTS, PEERS
from tests.system.conftest import HANG_S, until

pytestmark = pytest.mark.apart

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "prove", "--stage", "local", "--short"]


def said(output: str) -> dict[str, Any]:
    line: dict[str, Any] = json.loads(output.splitlines()[-1])
    return line


def test_a_stage_that_keeps_its_promises_passes() -> None:
    done = subprocess.run(COMMAND, cwd=ROOT, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert done.returncode == 0, done.stdout + done.stderr
    line = said(done.stdout)
    judged = {key: row for key, row in line["parts"].items() if key in PARTS}
    assert judged.keys() == set(PARTS) - {PEERS}
    assert {(row["lost"], row["early"], row["twice"]) for row in judged.values()} == {(0, 0, 0)}
    assert all(row["max_ms"] is not None for key, row in judged.items() if key not in ("order", "cancelled"))
    assert (line["not_kept"], line["not_deleted"], line["short"]) == ([], [], True)
    for row in (line["parts"][key] for key in ("scheduler-spread", "sqs-spread")):
        assert row["note"].startswith("10 of 10 came"), "the local AWS runs them; their times are no figure of AWS"
        assert row["p99_ms"] is None
    assert "| 5 a second for 5 s | 25 |" in done.stdout, "the block for an issue"
    rows = {key: row["outcome"] for key, row in line["first_hour"].items()}
    assert {key for key, outcome in rows.items() if outcome == "pass"} == {
        "remove",
        "refused-item",
        "new-item",
        "sort-key-filter",
        "mappings",
    }
    assert "fail" not in rows.values(), line["first_hour"]
    assert json.loads((ROOT / "prove-report.json").read_text()) == line


def test_a_stage_that_breaks_a_promise_fails_and_names_it() -> None:
    with subprocess.Popen(
        [*COMMAND, "--only", "steady,http"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as run:
        until(120, administrator).request("POST", "/system/pause", {"lane": "one-time", "reason": "a promise broken on purpose"})
        output, _ = run.communicate(timeout=HANG_S)
    assert run.returncode == 1, output
    line = said(output)
    assert line["parts"]["steady"]["lost"] == 25
    assert any(text.startswith("steady: ") and "has not started" in text for text in line["not_kept"])
    assert "NOT KEPT  steady: " in output
    assert line["not_deleted"] == []


def administrator() -> Punctual | None:
    """Return a client of the run's stack, signed in as its first user, once it is deployed."""
    try:
        return burst.running(PROVE)
    except Trouble:
        return None
