"""Every section of `make bench` runs to its end in the short form. The test of the section `delay` is `tests/system/test_bench.py`."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bench import __main__ as bench
from bench import scaling, waiting_users
from bench.figures import Figure
from local.failure import Trouble

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
FAST, LONG, LONGEST = ("scaling", "now"), ("at_once", "schedule", "cpu", "units"), ("idle",)
SECTIONS = [*FAST, *(pytest.param(section, marks=pytest.mark.long) for section in LONG)]
SECTIONS += [pytest.param(section, marks=[pytest.mark.long, pytest.mark.soak]) for section in LONGEST]


@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_prints_its_figures(section: str) -> None:
    command = [sys.executable, "-m", "bench", "--short", "--only", section]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["short"] and said["figures"]
    assert not any("budget" in figure for figure in said["figures"].values())


def test_every_section_has_a_test() -> None:
    assert {*FAST, *LONG, *LONGEST, "delay"} == set(bench.SECTIONS)


def run(monkeypatch: pytest.MonkeyPatch, found: Sequence[Figure], *options: str) -> int:
    def measure(short: bool = False) -> Sequence[Figure]:
        assert short is ("--short" in options)
        return found

    monkeypatch.setattr(scaling, "measure", measure)
    monkeypatch.setattr(sys, "argv", ["bench", "--only", "scaling", *options])
    return bench.main()


def test_an_empty_section_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Trouble, match="scaling measured nothing"):
        run(monkeypatch, [])


@pytest.mark.parametrize(("options", "over"), [([], ["slow"]), (["--short"], [])])
def test_only_the_short_form_judges_no_budget(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], options: list[str], over: list[str]
) -> None:
    assert run(monkeypatch, [Figure("slow", "what", 2, budget=1)], *options) == 0
    said: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert said["over"] == over


def test_the_polls_of_waiting_users_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    waiting_users.main([10, 2_000])
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [users for users, _ in rows] == ["10", "2,000"]
    assert float(rows[1][1]) > 0
