"""The pytest fixtures of the memory, in a project of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.language import ROOT

PROJECT = """
import asyncio
import pytest

@pytest.fixture
def orders():
    return {"17": "open"}

@pytest.fixture
def punctual_app(orders):
    def app(environ, start_response):
        orders[environ["PATH_INFO"].rpartition("/")[2]] = "expired"
        start_response("200 OK", [])
        return [b""]
    return app

@pytest.fixture
def punctual_options():
    return {"now": "2026-11-20T10:00:00Z"}

def test_sync(punctual_memory, punctual_clock, orders):
    punctual_memory.client.jobs.create(http="https://shop.example.com/expire/17", delay="30m")
    punctual_clock.advance("29m")
    assert orders == {"17": "open"}
    punctual_clock.advance("1m")
    assert orders == {"17": "expired"} and f"{punctual_clock.now:%H:%M}" == "10:30"

def test_async(punctual_async_client, punctual_clock, orders):
    async def scene():
        await punctual_async_client.jobs.create(http="https://shop.example.com/expire/17", delay="30m")
        punctual_clock.advance("30m")
    asyncio.run(scene())
    assert orders == {"17": "expired"}
"""


@pytest.mark.long
def test_the_fixtures_call_the_app_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "test_shop.py").write_text(PROJECT)
    (tmp_path / "test_plain.py").write_text("def test_a(punctual_memory):\n    punctual_memory.clock.advance('1h')\n")
    options = [
        "-q",
        "-p",
        "punctual.pytest_plugin",
        *(f"-pno:{name}" for name in ("punctual", "schemathesis", "cacheprovider", "anyio", "typeguard")),
    ]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(str(ROOT / path) for path in ("client/src", "server/src", "."))}
    done = subprocess.run([sys.executable, "-m", "pytest", *options], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert "3 passed" in done.stdout, done.stdout + done.stderr
