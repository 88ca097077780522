"""The implementations of DynamoDB, as a plug-in of pytest: `PARITY=dynoxide pytest -p tests.parity.implementations tests/contract`.

All tests that call DynamoDB use the same one. A property in the report of JUnit marks them.
"""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from moto import mock_aws

from scheduler.storage.aws import clients
from tests.contract import tables

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".local/parity"
BINARY = FOLDER / "node_modules/@dynoxide/linux-x64/dynoxide"
NAMES = ("ministack", "moto", "dynoxide")
CALLED, STATEMENTS = "called", "statements"  # the properties of tests that call DynamoDB, and that run PartiQL statements there
START_S = 300.0


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the implementations of ports that are no DynamoDB, and its wrapper."""
    others = [
        item
        for item in items
        if {"memory", "sqs", "locked"} & set(map(str, getattr(getattr(item, "callspec", None), "params", {}).values()))
    ]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if item not in others]


_called: set[str] = set()  # the properties of the test at work


def _note(model: Any, **_: Any) -> None:
    _called.add(CALLED)
    if model.name == "BatchExecuteStatement":
        _called.add(STATEMENTS)


@pytest.fixture(autouse=True, scope="session")
def implementation(request: pytest.FixtureRequest, credentials: None) -> Iterator[None]:
    name = os.environ["PARITY"]
    if name == "moto":
        with mock_aws():
            tables.elsewhere = lambda: _client()
            yield
    elif name == "dynoxide":
        with _dynoxide() as address:
            tables.elsewhere = lambda: _client(endpoint_url=address)
            yield
    else:
        address = request.getfixturevalue("local_aws")
        tables.elsewhere = lambda: _client(endpoint_url=address)
        yield


@pytest.fixture(autouse=True)
def marked(request: pytest.FixtureRequest, implementation: None) -> Iterator[None]:
    _called.clear()
    yield
    request.node.user_properties.extend((name, "yes") for name in sorted(_called))


def _client(**options: Any) -> Any:
    client = clients.dynamodb(**options)
    client.meta.events.register("before-call", _note)
    return client


@contextmanager
def _dynoxide() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with subprocess.Popen([BINARY, "serve", "--port", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _await(port, time.monotonic() + START_S)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def _await(port: int, until: float) -> None:
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
