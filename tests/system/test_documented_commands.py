"""The shell commands of the documentation, page by page, as a reader would enter them, against the deployed stack."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documented_commands import DOCUMENTS, script
from tests.language import ROOT
from tests.system.conftest import HANG_S, System, until

PAGES = [document for document in DOCUMENTS if script(document)]
# A failed request ends the script; curl itself would print the error and go on.
BEFORE = """
set -euo pipefail
curl() { command curl --fail-with-body "$@"; }
"""


ADMINISTRATORS = ("rate-limits", "targets")  # pages whose commands only administrators may enter


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_commands_of_a_page_succeed(page: Path, system: System, tmp_path: Path) -> None:
    username = f"reader-of-{page.stem}"
    password = system.create_user(username)
    client = system.client() if page.stem in ADMINISTRATORS else system.sign_in(username, password)
    task = client.tasks.create("documented", "log", {"message": "m"}, schedule={"cron": "0 3 1 1 *"}).raw
    text = script(page)
    if "/dead-letters" in text:
        failing = client.jobs.create("http", {"url": system.receiver.url("/status/404")}, max_attempts=1).raw
        until(60, lambda: client.jobs.get(failing["id"]).status == "failed")
        until(60, lambda: client.request("GET", "/dead-letters")["items"])
    typed = {"<address of the API>": f"{system.address}/api/v1", "<address>": system.address, "<name>": username, "<password>": password}
    for placeholder, value in typed.items():
        text = text.replace(placeholder, value)
    values = {
        "API": f"{system.address}/api/v1",
        "JSON": "Content-Type: application/json",
        "TOKEN": str(client.token()),
        "AUTH": f"Authorization: Bearer {client.token()}",
        "ID": str(task["id"]),
        "PUNCTUAL_URL": system.address,
        "PUNCTUAL_TOKEN": str(client.token()),
        "PUNCTUAL_CONFIG": str(tmp_path / "profiles.json"),
        "PYTHONPATH": str(ROOT / "client/src"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    command = ["bash", "-c", BEFORE + text]
    done = subprocess.run(command, cwd=tmp_path, env=os.environ | values, capture_output=True, text=True, timeout=HANG_S)
    assert done.returncode == 0, f"{done.stderr}\n{done.stdout}"
