"""The programs of `examples/`, as processes against the deployed stack."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from punctual.pytest_plugin import started

from tests.system.conftest import HANG_S, System

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = (
    "device_command",
    "flash_sale",
    "long_job",
    "nightly_report",
    "order_expiry",
    "reminders",
    "url_cron",
    "view_counter",
    "visibility_queue",
)
APART = ("own_task_type", "signed_webhook")  # with tests of their own below


def run(name: str, url: str, username: str, password: str, *options: str, folder: Path = ROOT, **more: str) -> str:
    """Run a program and return what it printed. The test fails unless its exit code is 0."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PUNCTUAL_")},
        "PYTHONPATH": str(ROOT / "client" / "src"),
        "PUNCTUAL_URL": url,
        "PUNCTUAL_USERNAME": username,
        "PUNCTUAL_PASSWORD": password,
        **more,
    }
    command = [sys.executable, "-W", "error", "-m", f"examples.{name}.main", *options]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=HANG_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_example_has_a_page_and_a_test() -> None:
    folders = {path.parent.name for path in (ROOT / "examples").glob("*/main.py")}
    assert folders == {*PROGRAMS, *APART} == {path.parent.name for path in (ROOT / "examples").glob("*/README.md")}
    index = (ROOT / "examples/README.md").read_text()
    for name in folders:
        assert f"({name}/README.md)" in index
        assert f"python -m examples.{name}.main" in (ROOT / "examples" / name / "README.md").read_text()
        assert len((ROOT / "examples" / name / "main.py").read_text().splitlines()) < 150


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_example_runs_to_its_end(system: System, name: str) -> None:
    stack = system.stack
    options = ("--seconds", "2") if name == "flash_sale" else ()
    said = run(name, stack.address, stack.username, stack.password, *options)
    if name == "flash_sale":
        assert re.search(r"200 buyers, 50 items: \d+ sold", said) and "no item was sold twice, none was lost" in said


def test_a_signed_webhook_refuses_strangers(system: System) -> None:
    stack, secret = system.stack, "whsec_" + "c2VjcmV0IG9mIHRoZSBleGFtcGxlLCAzMiBieXRlcw=="
    with stack.client() as client:
        owner = client.me().id
    system.aws("secretsmanager").create_secret(Name=f"punctual/local/{owner}/example-hook", SecretString=secret)
    said = run("signed_webhook", stack.address, stack.username, stack.password, "--secret-name", "example-hook", WEBHOOK_SECRET=secret)
    assert said.count("refused") == 3 and said.count("accepted") == 1


@pytest.mark.apart
def test_an_own_type_runs_on_a_stack_that_has_it(tmp_path: Path) -> None:
    """In a copy of the repository, as the page of the example says."""
    copy = tmp_path / "punctual"
    ignored = shutil.ignore_patterns(".git", ".local", ".venv", "node_modules", "__pycache__", "cdk.out", ".*_cache", ".hypothesis", "site")
    shutil.copytree(ROOT, copy, ignore=ignored)
    for name in (".venv", "node_modules", "console/node_modules"):
        (copy / name).symlink_to(ROOT / name)
    shutil.copy(copy / "examples/own_task_type/word_count.py", copy / "scheduler/targets/types/")
    with started(copy, tmp_path / "state") as stack:
        said = run("own_task_type", stack.url, stack.username, stack.password, folder=copy)
    assert said.splitlines()[-1] == 'succeeded: {"the": 3, "dog": 2}'
