"""The web console in a real Chromium on the deployed stack: the stories of `console/browser`, run by the console's own tools."""

import os
import subprocess
import sys

import pytest

from local.home import REPOSITORY
from tests.system.conftest import System

pytestmark = pytest.mark.apart

CONSOLE = REPOSITORY / "console"
ARTEFACTS = CONSOLE / "artefacts"  # the pictures of this run


def test_people_get_their_work_done_in_a_browser(deployed: System, capsys: pytest.CaptureFixture[str]) -> None:
    told = {
        "CONSOLE_URL": deployed.stack.console_address,
        "CONSOLE_API": deployed.address,
        "CONSOLE_USER": deployed.stack.username,
        "CONSOLE_PASSWORD": deployed.stack.password,
        "CONSOLE_RECEIVER": deployed.receiver.url("/ok/console"),
        "CONSOLE_ARTEFACTS": str(ARTEFACTS),
    }
    runner = [str(CONSOLE / "node_modules/.bin/vitest"), "run", "--config", "vitest.browser.config.ts"]
    done = subprocess.run(runner, cwd=CONSOLE, env={**os.environ, **told}, capture_output=True, text=True)
    figures = [line for line in done.stdout.splitlines() if "figures:" in line]
    with capsys.disabled():
        sys.stdout.write("".join(f"\n{line}" for line in figures))
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert (ARTEFACTS / "tasks.png").exists()
