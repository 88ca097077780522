"""The package as users get it: built, installed beside nothing else of this folder, and started without Node."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import venv
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from punctual import Punctual

from local import process
from local.home import REPOSITORY

pytestmark = pytest.mark.apart

USER = """
def test_a(punctual_client):
    job = punctual_client.jobs.create("log", {"message": "hello"})
    assert punctual_client.jobs.get(job.id).id == job.id
"""

IN_MEMORY = """
from punctual.testing import Memory
def app(environ, start_response):
    start_response("200 OK", [])
    return [b""]
with Memory(app) as memory:
    job = memory.client.jobs.create(http="https://shop.example.com/expire", delay="30m")
    memory.clock.advance("30m")
    print(memory.client.jobs.get(job.id).status, memory.calls[0].status)
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with both wheels. Their requirements are those of this environment, since a test does not use the network."""
    folder = tmp_path_factory.mktemp("installed")
    for part in ("client", "server"):
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
        done = subprocess.run(build, cwd=REPOSITORY / part, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    venv.create(folder / "env", with_pip=False)
    (site,) = (folder / "env" / "lib").glob("python*/site-packages")
    for wheel in folder.glob("*.whl"):
        zipfile.ZipFile(wheel).extractall(site)
    (site / "requirements.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    top = {path.name for path in site.iterdir() if path.suffix not in (".pth", ".dist-info")}
    assert top == {"punctual", "punctual_server"}
    return folder / "env" / "bin" / "python"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A fresh home folder, and programs without Node."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "ps", "uname"):
        (programs / name).symlink_to(shutil.which(name) or "/bin/sh")
    return {"HOME": str(tmp_path / "user"), "PATH": str(programs), "TMPDIR": str(tmp_path)}


@contextmanager
def running(python: Path, environment: dict[str, str], *options: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """Start `punctual dev --json`, and give the process and what it printed. At the end it is stopped as by a supervisor."""
    command = [str(python), "-m", "punctual", "dev", "--json", *options]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None and child.stderr is not None
        line = child.stdout.readline()
        assert line.startswith("{"), child.stderr.read()
        try:
            yield child, json.loads(line)
        finally:
            child.terminate()
            child.communicate(timeout=60)


def client_of(stack: dict[str, str]) -> Punctual:
    return Punctual(stack["url"], username=stack["username"], password=stack["password"])


def succeeded(client: Punctual, job_id: str) -> bool:
    deadline = time.monotonic() + 120
    while (status := client.jobs.get(job_id).status) != "succeeded" and time.monotonic() < deadline:
        time.sleep(0.1)
    return status == "succeeded"


def test_it_starts_without_node_and_keeps_jobs_over_a_kill(python: Path, environment: dict[str, str]) -> None:
    with running(python, environment) as (child, stack):
        client = client_of(stack)
        job = client.jobs.create("log", {"message": "hello"})
        assert succeeded(client, job.id)
        host = stack["console"].partition("://")[2]
        port = host.rpartition(":")[2]
        for path, text in (("/tasks", "<div id="), ("/docs/", "<html"), ("/api/v1/health", "{")):
            page = httpx.get(f"http://127.0.0.1:{port}{path}", headers={"Host": host}, trust_env=False)
            assert page.status_code == 200 and text in page.text, (path, page.status_code, page.text[:200])
    assert child.returncode == 0
    assert process.of_command("punctual_server._engine.local.emulator", environment["HOME"]) == []
    with running(python, environment) as (child, stack):
        assert client_of(stack).jobs.get(job.id).status == "succeeded"
        second = client_of(stack).jobs.create("log", {"message": "again"})
        child.send_signal(signal.SIGKILL)
        child.wait()
    with running(python, environment) as (child, stack):
        assert {each.id for each in client_of(stack).jobs.list()} >= {job.id, second.id}
        again = subprocess.run([str(python), "-m", "punctual", "dev"], env=environment, capture_output=True, text=True)
        assert again.returncode == 1 and f"kill {child.pid}" in again.stderr
    with running(python, environment, "--reset") as (child, stack):
        assert list(client_of(stack).jobs.list()) == []


def test_a_stack_of_another_version_is_updated_in_place(python: Path, environment: dict[str, str]) -> None:
    with running(python, environment) as (_, stack):
        job = client_of(stack).jobs.create("log", {"message": "hello"}, delay=10)
    (assembly,) = python.parents[1].glob("lib/python*/site-packages/punctual_server/assembly")
    manifest, template = assembly / "assembly.json", assembly / "punctual-local.json"
    before = manifest.read_text(), template.read_text()
    try:
        manifest.write_text(before[0].replace(json.loads(before[0])["fingerprint"], "another"))
        assert '"LOG_LEVEL": "INFO"' in before[1]
        template.write_text(before[1].replace('"LOG_LEVEL": "INFO"', '"LOG_LEVEL": "WARNING"'))
        with running(python, environment) as (_, stack):
            assert succeeded(client_of(stack), job.id)
    finally:
        manifest.write_text(before[0])
        template.write_text(before[1])


def test_the_engine_runs_in_memory(python: Path, environment: dict[str, str]) -> None:
    done = subprocess.run([str(python), "-c", IN_MEMORY], env=environment, capture_output=True, text=True)
    assert done.stdout == "succeeded 200\n", done.stdout + done.stderr


def test_the_plugin_of_pytest_starts_it(python: Path, environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "test_user.py").write_text(USER)
    command = [
        str(python),
        "-m",
        "pytest",
        "-q",
        "-p",
        "punctual.pytest_plugin",
        "-p",
        "no:punctual",
        "-p",
        "no:schemathesis",
        "-p",
        "no:anyio",
    ]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment | {"NO_PROXY": os.environ.get("NO_PROXY", "")}, capture_output=True, text=True
    )
    assert "1 passed" in done.stdout, done.stdout
