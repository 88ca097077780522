"""`make` on a fresh machine: what it needs is said at once, and its help names what measures."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.language import ROOT

HELP_LINES = 45  # of a usual terminal


def test_make_test_ends_at_once_without_chromium(tmp_path: Path) -> None:
    (tmp_path / "local").mkdir()
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copy(ROOT / "local/chromium.sh", tmp_path / "local")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}  # of the make that runs this
    environment = clean | {"CHROMIUM": "/nowhere"}
    done = subprocess.run(["make", "test"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode != 0 and done.stdout == ""
    assert "Chromium is missing" in done.stderr and "apt-get install chromium" in done.stderr
    assert "setup.sh" not in done.stderr


@pytest.mark.parametrize("name", ["chromium", "chromium-browser", "google-chrome"])
def test_chromium_is_found_by_its_names(tmp_path: Path, name: str) -> None:
    program = tmp_path / name
    program.write_text("")
    program.chmod(0o755)
    done = subprocess.run(["/bin/sh", ROOT / "local/chromium.sh"], env={"PATH": str(tmp_path)}, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"{program}\n")


def shown() -> str:
    return subprocess.run(["make", "--no-print-directory", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_the_help_fits_one_screen() -> None:
    assert len(shown().splitlines()) <= HELP_LINES


def test_the_help_names_every_module_that_measures() -> None:
    programs = [path for folder in ("bench", "tests/simulation") for path in (ROOT / folder).glob("*.py")]
    names = {path.stem for path in programs if '__name__ == "__main__"' in path.read_text()} - {"__main__", "inprocess", "pages"}
    offered = {name for each in re.findall(r'WHAT="([^"]*)"', shown()) for name in each.split("|")}
    assert names == offered


@pytest.mark.parametrize("module", ["app", "infra.settings"])
def test_an_old_node_prints_no_warnings(tmp_path: Path, module: str) -> None:
    """The CDK starts Node when it is imported. Another program in its place shows with what."""
    node = tmp_path / "node"
    node.write_text(f'#!/bin/sh\necho "$JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION" >{tmp_path}/silenced\n')
    node.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JSII_")} | {"JSII_NODE": str(node)}
    subprocess.run([sys.executable, "-c", f"import {module}"], cwd=ROOT, env=environment, capture_output=True)
    assert (tmp_path / "silenced").read_text() == "20\n"
