"""The Python code of the guides runs against the deployed stack."""

import asyncio
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from punctual import Punctual, UnexpectedAnswer

from local.home import REPOSITORY
from tests.system.conftest import System

GUIDES = REPOSITORY / "docs/guides"
BLOCK = re.compile(r"(<!-- python: async -->\n)?```python\n(.*?)```", re.DOTALL)


def blocks(guide: str) -> list[tuple[bool, str]]:
    """Return the blocks of Python code of a guide, and whether each needs an event loop."""
    return [(bool(found[1]), found[2]) for found in BLOCK.finditer((GUIDES / guide).read_text())]


@pytest.fixture
def reader(system: System, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Punctual:
    """A user who follows a guide, with the stack in the environment."""
    name = f"reader-{os.urandom(4).hex()}"
    password = system.create_user(name)
    for variable, value in {"URL": system.address, "USERNAME": name, "PASSWORD": password, "CONFIG": str(tmp_path / "none")}.items():
        monkeypatch.setenv(f"PUNCTUAL_{variable}", value)
    return Punctual()


def test_the_code_of_the_python_guide_runs(reader: Punctual, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    for needs_loop, code in blocks("python.md"):
        if needs_loop:
            exec("async def example():\n" + textwrap.indent(code, "    "), names)
            asyncio.run(names["example"]())
        else:
            exec(code, names)
        names["client"] = reader  # the examples leave closed clients behind
    printed = capsys.readouterr().out
    assert "2500 []" in printed and "succeeded" in printed and "max_attempts" in printed
    assert [run.key for run in reader.tasks.list()] == ["nightly-report"]
    jobs = {job.id: job for upcoming in (True, False) for job in reader.jobs.list(upcoming=upcoming)}
    messages = [job.payload["message"] for job in jobs.values() if job.type == "log"]
    assert len([message for message in messages if message.startswith("number ")]) == 2500
    assert messages.count("order 17 has shipped") == 1  # the second call had the same idempotency key
    with pytest.raises(UnexpectedAnswer):
        names["work"]({}, [])


def test_the_tests_of_the_testing_guide_pass(reader: Punctual, tmp_path: Path) -> None:
    stack, network = (GUIDES / "testing.md").read_text().partition("## Against a local stack")[2].split("## Without an API")
    (fake,), tests = ([found[2] for found in BLOCK.finditer(part)] for part in (network, stack))
    exec(fake, {})
    (tmp_path / "test_guide.py").write_text("\n\n".join(tests))
    options = ["-q", "-p", "punctual.pytest_plugin", "-p", "no:punctual", "-p", "no:schemathesis", "-p", "no:cacheprovider"]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY / "client/src")}
    done = subprocess.run([sys.executable, "-m", "pytest", *options], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert "2 passed" in done.stdout, done.stdout + done.stderr
    reader.token()
