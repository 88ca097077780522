"""The package as users get it: types, generated code, wheel, pytest plugin."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

CLIENT = Path(__file__).parents[1]
USER = """
from datetime import timedelta
from punctual import AsyncPunctual, Job, Punctual

def post(client: Punctual) -> str:
    job: Job = client.jobs.create(http="https://example.com", delay=timedelta(minutes=30), max_attempts=5)
    return job.id + "".join(one.status for one in client.jobs.list(status="failed"))

async def read(client: AsyncPunctual) -> int | None:
    return (await client.jobs.get("01A")).start_delay_ms
"""
FIXTURES = """
def test_a(punctual_stack):
    assert punctual_stack.url == "https://stage.example.com"
def test_b(punctual_client):
    assert punctual_client.url == "https://stage.example.com"
"""

WITHOUT = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names}:
            raise ModuleNotFoundError("No module named " + repr(name), name=name)
sys.meta_path.insert(0, Missing())
"""
CLI_ONLY = {"typer", "click", "rich", "yaml", "tzdata", "boto3"}
PROGRAM = """
import sys
import httpx  # imports click and rich where they are installed
before = set(sys.modules)
import punctual
from punctual import AsyncPunctual, Punctual, Worker, verify_signature
with Punctual("https://stage.example.com", token="t") as client:
    assert client.jobs
AsyncPunctual("https://stage.example.com", token="t")
print(sorted({name.partition(".")[0] for name in set(sys.modules) - before} & set(sys.argv[1:])))
"""


def run(*command: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(CLIENT / "src"), **environment}
    )


def test_the_synchronous_client_is_current() -> None:
    done = run(sys.executable, str(CLIENT / "generate_sync.py"), "--check", cwd=CLIENT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
def test_a_program_of_a_user_is_checked_strictly(tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(USER)
    done = run(sys.executable, "-m", "mypy", "--strict", "user.py", cwd=tmp_path)
    assert done.returncode == 0, done.stdout


@pytest.mark.long
def test_a_type_checker_finds_all_planted_errors_and_no_other(tmp_path: Path) -> None:
    source = Path(__file__).with_name("planted_errors.py")
    planted = {number for number, line in enumerate(source.read_text().splitlines(), 1) if line.endswith("# wrong")}
    done = run(sys.executable, "-m", "mypy", "--strict", str(source), cwd=tmp_path)
    found = {int(number) for number in re.findall(r"planted_errors\.py:(\d+): error", done.stdout)}
    assert len(planted) >= 10 and found == planted, done.stdout


@pytest.mark.long
def test_the_plugin_uses_the_stack_of_the_environment(tmp_path: Path) -> None:
    (tmp_path / "test_user.py").write_text(FIXTURES)
    plugin = (sys.executable, "-m", "pytest", "-q", "-p", "punctual.pytest_plugin", "-p", "no:punctual", "-p", "no:schemathesis")
    done = run(*plugin, cwd=tmp_path, PUNCTUAL_URL="https://stage.example.com", PUNCTUAL_TOKEN="t")
    assert "2 passed" in done.stdout, done.stdout
    done = run(*plugin, cwd=tmp_path)
    assert "set PUNCTUAL_URL, or PUNCTUAL_REPOSITORY" in done.stdout
    done = run(*plugin, "--punctual-repository", str(tmp_path), cwd=tmp_path)
    assert "is no clone of Punctual" in done.stdout


def test_a_program_needs_httpx_alone(tmp_path: Path) -> None:
    alone = WITHOUT.format(names=sorted(CLI_ONLY)) + PROGRAM
    for program in (PROGRAM, alone):
        done = run(sys.executable, "-c", program, *sorted(CLI_ONLY), cwd=tmp_path)
        assert (done.returncode, done.stdout) == (0, "[]\n"), done.stdout + done.stderr


@pytest.mark.parametrize("missing", ["typer", "rich", "yaml"])
def test_the_command_without_its_extra_names_the_installation(tmp_path: Path, missing: str) -> None:
    command = WITHOUT.format(names=[missing]) + "from punctual.__main__ import main; main()"
    done = run(sys.executable, "-c", command, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"punctual: the command line needs {missing}. Install it: pip install 'punctual-client[cli]'\n"


def test_an_error_of_another_module_is_not_taken_for_a_missing_extra(tmp_path: Path) -> None:
    command = WITHOUT.format(names=["httpx"]) + "from punctual.__main__ import main; main()"
    done = run(sys.executable, "-c", command, cwd=tmp_path)
    assert "No module named 'httpx'" in done.stderr and "punctual-client[cli]" not in done.stderr


@pytest.mark.long
def test_the_wheel_works_in_an_empty_environment(tmp_path: Path) -> None:
    """With the packages of this environment as dependencies, since a test does not use the network."""
    for kind in ("wheel", "sdist"):
        done = run(sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(tmp_path), cwd=CLIENT)
        assert done.returncode == 0, done.stderr
    (wheel,), (_,) = tmp_path.glob("*.whl"), tmp_path.glob("*.tar.gz")
    names = zipfile.ZipFile(wheel).namelist()
    assert {"punctual/py.typed", "punctual/_sync/client.py"} <= set(names) and not [
        name for name in names if "tests" in name.split("/") or name.rpartition("/")[2].startswith("test_")
    ]
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / "bin" / "python"
    (site,) = (tmp_path / "env" / "lib").glob("python*/site-packages")
    zipfile.ZipFile(wheel).extractall(site)
    (site / "dependencies.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    done = run(str(python), "-c", "import punctual; print(punctual.__file__)", cwd=tmp_path, PYTHONPATH="")
    assert done.stdout.startswith(str(site)), done.stderr
    done = run(str(python), "-m", "punctual", "--help", cwd=tmp_path, PYTHONPATH="", NO_COLOR="1", COLUMNS="100")
    assert done.returncode == 0 and "jobs" in done.stdout, done.stderr
