"""The progress, the log and the interrupted installations of `make setup`, with programs that only look like those of Python and npm."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from local import process

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
PYTHON = """#!/bin/sh
case "$*" in
*version_info*) exit 0 ;;
--version) echo Python 3.13.1 ;;
"-m venv .venv") mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
*"-r requirements.txt"*) echo Collecting boto3; [ ! -e slow ] || exec sleep 60; [ ! -e broken ] || { echo no mirror; exit 7; } ;;
esac
"""
NODE = "#!/bin/sh\necho v22.1.0\n"
NPM = "#!/bin/sh\necho npm http fetch GET 200\nmkdir -p node_modules/aws-cdk/bin && touch node_modules/aws-cdk/bin/cdk\n"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Return a folder with the scripts, locks, and programs on a path of its own."""
    for folder in ("local", "client", "console", "bin"):
        (tmp_path / folder).mkdir()
    for name in ("setup.sh", "steps.sh"):
        shutil.copy(ROOT / "local" / name, tmp_path / "local" / name)
    for name in ("requirements.txt", "package-lock.json", "client/pyproject.toml", "console/package-lock.json"):
        (tmp_path / name).write_text("lock")
    for name, text in (("mypython", PYTHON), ("node", NODE), ("npm", NPM)):
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


def begin(clone: Path) -> subprocess.Popen[str]:
    env = {**os.environ, "PATH": f"{clone / 'bin'}:{os.environ['PATH']}", "PYTHON": str(clone / "bin" / "mypython")}
    return subprocess.Popen(["sh", "local/setup.sh"], cwd=clone, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def setup(clone: Path) -> tuple[int, str, str]:
    with begin(clone) as child:
        out, errors = child.communicate(timeout=60)
        return child.returncode, out, errors


def test_each_step_is_a_line_and_its_output_is_in_the_log(clone: Path) -> None:
    code, out, errors = setup(clone)
    done = [line for line in out.splitlines() if "✓" in line]
    assert (code, errors, len(done)) == (0, "", 5)
    assert "Collecting" not in out and "\033" not in out and "\r" not in out
    assert "Collecting boto3" in (clone / ".local/setup.log").read_text()


def test_a_setup_without_changes_prints_nothing(clone: Path) -> None:
    setup(clone)
    assert setup(clone) == (0, "", "")


def test_a_failed_step_prints_the_log_and_its_last_lines(clone: Path) -> None:
    (clone / "broken").touch()
    code, _, errors = setup(clone)
    assert code == 1
    assert "no mirror" in errors and str(clone / ".local/setup.log") in errors and "exit code 7" in errors and "make setup" in errors


def test_a_killed_installation_begins_again_in_an_empty_folder(clone: Path) -> None:
    (clone / "slow").touch()
    with begin(clone) as child:
        log, running = clone / ".local/setup.log", clone / ".local/setup.running"
        while not (log.exists() and "Collecting" in log.read_text() and running.exists() and len(running.read_text().split()) > 1):
            assert child.poll() is None
        child.send_signal(signal.SIGKILL)
        child.wait()
    left = int(running.read_text().split()[1])
    (clone / ".venv/half").touch()
    (clone / "slow").unlink()
    code, out, _ = setup(clone)
    assert code == 0 and "was not completed" in out
    assert not (clone / ".venv/half").exists() and not (clone / ".venv/unfinished").exists()
    assert process.started(left) is None
