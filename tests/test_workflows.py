"""The workflows of GitHub: a linter for them passes, and their steps name what there is."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.language import ROOT

FOLDER = ROOT / ".github/workflows"
CONFIG = ROOT / ".github/zizmor.yml"
FILES = sorted(FOLDER.glob("*.yml"))
PINNED = re.compile(r"uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")
TARGET = re.compile(r"^([a-z-]+(?: [a-z-]+)*):", re.MULTILINE)


class Step(NamedTuple):
    """A shell step of a job."""

    place: str
    run: str


def read(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(file.read_text())
    return found


def jobs() -> Iterator[tuple[str, dict[str, Any]]]:
    for file in FILES:
        for name, job in read(file)["jobs"].items():
            yield f"{file.name}: {name}", job


def steps() -> list[Step]:
    return [Step(f"{place}: {step.get('name')}", step["run"]) for place, job in jobs() for step in job.get("steps", ()) if "run" in step]


def linted(folder: Path) -> subprocess.CompletedProcess[str]:
    """Return the findings of zizmor for the workflows in a folder. With `--offline` it uses no network."""
    program = shutil.which("zizmor", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    assert program, "zizmor is missing: make setup"
    return subprocess.run(
        [program, "--offline", "--no-progress", "--persona", "pedantic", "--config", str(CONFIG), str(folder)],
        capture_output=True,
        text=True,
    )


def test_the_linter_finds_nothing() -> None:
    done = linted(FOLDER)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("sound", "broken", "finding"),
    [
        ('run: make synth STAGE="$STAGE"', 'run: make synth STAGE="${{ inputs.stage }}"', "template-injection"),
        ("@e6de054238d6b7531b4efff3b6587d9aade6a06c # v6.2.3", "@v6", "unpinned-uses"),
        ("permissions: {}", "permissions: write-all", "excessive-permissions"),
        (", persist-credentials: false", "", "artipacked"),
    ],
)
def test_the_linter_finds_what_it_is_for(tmp_path: Path, sound: str, broken: str, finding: str) -> None:
    text = (FOLDER / "deploy.yml").read_text()
    assert sound in text
    (tmp_path / ".github/workflows").mkdir(parents=True)
    (tmp_path / ".github/workflows/deploy.yml").write_text(text.replace(sound, broken))
    done = linted(tmp_path)
    assert done.returncode != 0 and finding in done.stdout


def test_every_action_is_pinned_to_a_commit_with_its_version() -> None:
    lines = [line.strip().removeprefix("- ") for file in FILES for line in file.read_text().splitlines() if "uses: " in line]
    own = [line for line in lines if line.startswith("uses: ./")]
    assert len(own) == 2 and all((ROOT / line.removeprefix("uses: ")).is_file() for line in own)
    assert [line for line in lines if line not in own and not PINNED.search(line)] == []


def test_one_action_has_one_commit() -> None:
    found = {use for file in FILES for use in re.findall(r"uses: ([\w./-]+@[0-9a-f]{40})", file.read_text())}
    assert len({use.partition("@")[0] for use in found}) == len(found)


def test_no_workflow_has_a_secret_and_each_job_says_its_rights() -> None:
    assert [file.name for file in FILES if "secrets." in file.read_text() or "secrets: inherit" in file.read_text()] == []
    assert [file.name for file in FILES if read(file)["permissions"] != {}] == []
    assert [place for place, job in jobs() if not job.get("permissions") and place != "release.yml: index"] == []


def test_what_signs_in_elsewhere_does_so_for_an_environment() -> None:
    """A trust policy that names an environment is worth the rules of that environment: who may use it, from which branch."""
    signing = {place: job for place, job in jobs() if job["permissions"].get("id-token") == "write"}
    assert signing.keys() == {"deploy.yml: deploy", "release.yml: build", "release.yml: index", "release.yml: docs"}
    assert [place for place, job in signing.items() if "environment" not in job] == ["release.yml: build"], "which only attests"


def test_a_push_runs_what_a_fresh_machine_runs() -> None:
    (job,) = read(FOLDER / "ci.yml")["jobs"].values()
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
    reused = [place for place, job in jobs() if job.get("uses") == "./.github/workflows/ci.yml"]
    assert reused == ["nightly.yml: test", "release.yml: test"]


@pytest.mark.parametrize("step", steps(), ids=lambda step: step.place)
def test_a_step_is_a_shell_script(step: Step) -> None:
    done = subprocess.run(["bash", "-n"], input=step.run, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "${{" not in step.run, "an expression in a script is code of whoever chooses its value"


@pytest.mark.parametrize("step", steps(), ids=lambda step: step.place)
def test_a_step_names_what_there_is(step: Step) -> None:
    targets = {name for line in TARGET.findall((ROOT / "Makefile").read_text()) for name in line.split()}
    words = [word for word in shlex.split(step.run) if word not in ("||", "{", "}", ";")]
    for place, word in enumerate(words):
        if word == "make":
            named = [each for each in words[place + 1 :] if re.fullmatch("[a-z]+", each)]
            assert named and set(named) - {"make", "sleep"} <= targets, step.run
        if word == "-m":
            assert find_spec(words[place + 1]), words[place + 1]
        if "/" in word and not word.startswith(("dist", "about", "all", ".venv")):
            assert (ROOT / word).exists() and os.access(ROOT / word, os.X_OK), word
