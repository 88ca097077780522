"""A pytest plugin for programs that use Punctual: a stage in memory, or a stack to test against.

`punctual_memory` is a `punctual.testing.Memory` of one test. It calls the program that the fixture `punctual_app` returns; override that
one in your `conftest.py`, and `punctual_options` for the other parameters of `Memory`.

The fixtures `punctual_stack` and `punctual_client` use the stack at `PUNCTUAL_URL`, if that is set. Otherwise they start a local stack,
once for a session of tests, which needs no AWS account: that of a clone of Punctual, whose folder is in `PUNCTUAL_REPOSITORY` or in the
option `--punctual-repository`, else that of `punctual dev`, which `pip install 'punctual-client[dev]'` installs.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from punctual._sync.client import Punctual

if TYPE_CHECKING:
    from punctual._async.client import AsyncPunctual
    from punctual.testing import Clock, Memory

LAST_LINES = 20


@dataclass(frozen=True)
class PunctualStack:
    """A running stack: the address of its API, and an administrator (empty if the credentials are those of the environment)."""

    url: str
    username: str = ""
    password: str = field(default="", repr=False)

    def client(self) -> Punctual:
        """Return a new client, signed in as the administrator."""
        return Punctual(self.url, username=self.username, password=self.password) if self.username else Punctual(self.url)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("punctual").addoption(
        "--punctual-repository", metavar="FOLDER", help="the clone of Punctual whose local stack the tests use (PUNCTUAL_REPOSITORY)"
    )


@pytest.fixture
def punctual_app() -> Any:
    """The WSGI or ASGI application that jobs call in `punctual_memory`. Override it; None: each call gets 200."""
    return None


@pytest.fixture
def punctual_options() -> Mapping[str, Any]:
    """The parameters of `Memory` besides the app, such as `now`. Override it."""
    return {}


@pytest.fixture
def punctual_memory(punctual_app: Any, punctual_options: Mapping[str, Any]) -> Iterator[Memory]:
    """The API and the engine in memory, with the clock of this test."""
    from punctual.testing import Memory

    with Memory(punctual_app, **punctual_options) as memory:
        yield memory


@pytest.fixture
def punctual_clock(punctual_memory: Memory) -> Clock:
    """The clock of `punctual_memory`."""
    return punctual_memory.clock


@pytest.fixture
def punctual_async_client(punctual_memory: Memory) -> AsyncPunctual:
    """The asynchronous client of `punctual_memory`."""
    return punctual_memory.async_client


@pytest.fixture(scope="session")
def punctual_stack(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PunctualStack]:
    """A stack for the whole session of tests."""
    if url := os.environ.get("PUNCTUAL_URL"):
        yield PunctualStack(url)
        return
    repository = request.config.getoption("--punctual-repository") or os.environ.get("PUNCTUAL_REPOSITORY")
    folder = tmp_path_factory.mktemp("punctual")
    if not repository and importlib.util.find_spec("punctual_server") is None:
        pytest.fail(
            "There is no stack to test against: install one (pip install 'punctual-client[dev]'), set PUNCTUAL_URL, "
            "or PUNCTUAL_REPOSITORY to a clone of Punctual",
            pytrace=False,
        )
    with started(Path(repository).expanduser(), folder) if repository else installed(folder) as stack:
        yield stack


@pytest.fixture
def punctual_client(punctual_stack: PunctualStack) -> Iterator[Punctual]:
    """A client of the stack, signed in as its administrator."""
    with punctual_stack.client() as client:
        yield client


@contextlib.contextmanager
def started(repository: Path, folder: Path) -> Iterator[PunctualStack]:
    """Start the local stack of a clone, with its state in `folder`, and stop it at the end. The test fails if it does not start."""
    if not (repository / "local" / "serve.py").is_file():
        pytest.fail(f"{repository} is no clone of Punctual: it has no local/serve.py", pytrace=False)
    made = subprocess.run(["make", "--silent", "setup", "console"], cwd=repository, capture_output=True, text=True)
    if made.returncode:
        pytest.fail(f"`make setup console` failed in {repository}:\n{made.stdout[-2000:]}{made.stderr[-2000:]}", pytrace=False)
    with _served([str(repository / ".venv" / "bin" / "python"), "-m", "local.serve", str(folder)], repository) as stack:
        yield stack


def installed(folder: Path) -> contextlib.AbstractContextManager[PunctualStack]:
    """Start the stack of `punctual dev`, with its state in `folder`, and stop it at the end. The test fails if it does not start."""
    return _served([sys.executable, "-m", "punctual_server.dev", "--json", "--home", str(folder)], folder)


@contextlib.contextmanager
def _served(command: list[str], cwd: Path) -> Iterator[PunctualStack]:
    """Run a command that prints a stack as a JSON line, and ends with its standard input."""
    with subprocess.Popen(
        command, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        said: list[str] = []
        for line in process.stdout:
            said.append(line)
            if line.startswith("{"):
                break
        else:
            pytest.fail(f"The local stack did not start:\n{''.join(said[-LAST_LINES:])}", pytrace=False)
        try:
            found = json.loads(said[-1])
            yield PunctualStack(found["url"], found["username"], found["password"])
        finally:
            process.stdin.close()
            process.stdout.read()
