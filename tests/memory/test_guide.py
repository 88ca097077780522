"""Code of the guides that runs in memory: the tests of docs/guides/testing.md and of its example, and docs/guides/groups.md."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from punctual.testing import Memory

from examples.order_expiry.test_app import *  # noqa: F403  the tests of the example, so that they run here
from tests.language import ROOT

GUIDE = ROOT / "docs/guides/testing.md"


@pytest.mark.long
def test_the_tests_of_the_guide_pass(tmp_path: Path) -> None:
    code = re.findall(r"```python\n(.*?)```", GUIDE.read_text().partition("## Against a local stack")[0], re.DOTALL)
    (tmp_path / "test_guide.py").write_text("\n\n".join(code))
    without = (f"-pno:{name}" for name in ("punctual", "schemathesis", "cacheprovider", "anyio", "typeguard"))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "punctual.pytest_plugin", *without]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(str(ROOT / path) for path in ("client/src", "server/src", "."))}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert "4 passed" in done.stdout, done.stdout + done.stderr


def test_the_code_of_the_guide_of_groups_runs(capsys: pytest.CaptureFixture[str]) -> None:
    code = re.findall(r"```python\n(.*?)```", (ROOT / "docs/guides/groups.md").read_text(), re.DOTALL)
    with Memory() as memory:
        for block in code:
            exec(block.replace("2500", "250"), {"client": memory.client})
    assert capsys.readouterr().out.startswith("250 01")
