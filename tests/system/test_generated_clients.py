"""Clients that generators make of the stored OpenAPI document: the code of docs/guides/typescript.md creates a job and lists jobs."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from punctual import Punctual

from docs_build.openapi import PUBLISHED
from local.home import REPOSITORY
from tests.system.conftest import HANG_S

CONSOLE = REPOSITORY / "console"
PAGE = (REPOSITORY / "docs/guides/typescript.md").read_text().partition("## Generate a client\n")[2]
WRONG = """
// @ts-expect-error a payload of another type
export const wrong: components['schemas']['JobRequest'] = { type: 'http', payload: { message: 'hello' } };
"""


def code(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


def run(command: list[str], folder: Path, **environment: str) -> str:
    done = subprocess.run(command, cwd=folder, env=os.environ | environment, capture_output=True, text=True, timeout=HANG_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def access(client: Punctual) -> dict[str, str]:
    return {"PUNCTUAL_URL": client.url, "PUNCTUAL_TOKEN": str(client.token())}


def check(client: Punctual, printed: str, tag: str) -> None:
    """The job that a client created is stored, and the client listed it."""
    words = [line.split() for line in printed.splitlines()]
    (job_id,) = [line[1] for line in words if line[0] == "created"]
    job = client.jobs.get(job_id).raw
    assert (job["type"], job["tags"], job["payload"]["method"]) == ("http", [tag], "POST")
    assert [line[1:] for line in words if line[0] == "listed"] == [[job_id, "scheduled"]]
    client.request("POST", f"/jobs/{job_id}/cancel")


def test_a_generated_typescript_client_creates_and_lists_jobs(client: Punctual, tmp_path: Path) -> None:
    (tmp_path / "node_modules").symlink_to(CONSOLE / "node_modules")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "client.ts").write_text(code("ts") + WRONG)
    tools = tmp_path / "node_modules/.bin"
    run([str(tools / "openapi-typescript"), str(PUBLISHED), "-o", "schema.d.ts"], tmp_path)
    run([str(tools / "tsc"), "--strict", "--module", "nodenext", "--target", "es2022", "--types", "node", "client.ts"], tmp_path)
    check(client, run(["node", "client.js"], tmp_path, **access(client)), "typescript")


def test_a_generated_python_client_creates_and_lists_jobs(client: Punctual, tmp_path: Path) -> None:
    (requirement,) = set(re.findall(r"openapi-python-client==[\d.]+", PAGE))
    tool = [sys.executable, "-m", "uv", "tool", "run", "--from", requirement]
    options = ["--path", str(PUBLISHED), "--meta", "none", "--output-path", "punctual"]
    warnings = run([*tool, "openapi-python-client", "generate", "--fail-on-warning", *options], tmp_path)
    assert "WARNING" not in warnings
    (tmp_path / "client.py").write_text(code("python"))
    check(client, run([*tool, "python", "client.py"], tmp_path, **access(client)), "python")


@pytest.mark.parametrize("package", ["openapi-typescript", "openapi-fetch", "typescript"])
def test_the_page_names_the_versions_that_the_tests_use(package: str) -> None:
    (version,) = re.findall(rf" {package}@([\d.]+)", PAGE)
    assert f'"{package}": "{version}"' in (CONSOLE / "package.json").read_text()
