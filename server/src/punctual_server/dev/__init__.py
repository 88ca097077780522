"""`punctual dev`: the whole stack on this machine, from the installed package: without a clone, Node and make."""

import importlib.util
import json
import os
import re
import shlex
import sys
import time
import zoneinfo
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path

from local import previous
from local.assembled import Assembly
from local.failure import Trouble, exit_code
from local.home import Commands, Home
from local.run import follow
from local.stack import Stack, up
from local.steps import console, step
from local.warmup import warm_up
from punctual import PunctualError

ASSEMBLY = Assembly(Path(__file__).resolve().parents[1] / "assembly")
ZONE = "America/Argentina/ComodRivadavia"  # of the whole data: a slim image may have some zones only
INSTALL = "pip install 'punctual-client[dev]'"


def run(folder: Path | None = None, port: int | None = None, *, reset: bool = False, as_json: bool = False) -> int:
    """Run the stack until Ctrl-C or SIGTERM; returns the exit code. Its errors are printed.

    `folder` keeps its state; by default it is in the data folder of the user. `reset` deletes that state first. With `as_json` the output
    is one JSON line with the address and the first user, once the stack is up.
    """
    console.stderr = as_json

    def work() -> int:
        begin = time.monotonic()
        with started(folder, port, reset=reset) as stack:
            if not as_json:
                follow(stack, stack.client(), time.monotonic() - begin)
                return 0
            tell(stack)
            try:
                while stack.server.alive:
                    time.sleep(0.5)
            except KeyboardInterrupt:
                return 0
            raise Trouble(f"Another program stopped the local AWS. Its log is {stack.home.log}")

    return exit_code(work)


def serve(folder: Path, port: int | None = None, *, reset: bool = False) -> int:
    """Run the stack for the program that started this process, until standard input ends. It prints the JSON line of `run`."""

    def work() -> int:
        with started(folder, port, reset=reset) as stack:
            tell(stack)
            sys.stdin.read()
        return 0

    return exit_code(work)


def tell(stack: Stack) -> None:
    """Print the address and the first user as a JSON line."""
    known = {"url": stack.address, "username": stack.username, "password": stack.password, "console": stack.console_address}
    sys.stdout.write(json.dumps(known) + "\n")
    sys.stdout.flush()


@contextmanager
def started(folder: Path | None, port: int | None, *, reset: bool) -> Iterator[Stack]:
    """Start the stack with its functions warm, and stop it at the end. Raises Trouble, with a remedy, if it cannot be started."""
    check_python()
    _ = ASSEMBLY.manifest  # raises if this is no installed package
    home, version = home_of(folder), metadata.version("punctual-server")
    if reset:
        previous.clear(home)
        home.empty()
    check_version(home, version)
    with up(home, port=None if port is None else str(port), deployment=ASSEMBLY) as stack:
        home.settled.update(version=version)
        with step("Warming up the functions"), ThreadPoolExecutor(1) as pool:
            pool.submit(call_api, stack)
            warm_up(stack.aws, stack.outputs, OneTime=1)
        yield stack


def call_api(stack: Stack) -> None:
    """Start a process of the API. If it does not answer yet, the first caller waits for it."""
    with suppress(PunctualError), stack.client() as client:
        client.status()


def home_of(folder: Path | None) -> Home:
    """Return the folder of the state, with the commands that messages name."""
    chosen = f" --home {shlex.quote(str(folder))}" if folder else ""
    run = f"punctual dev{chosen}"
    at_port = f"{run.replace('{', '{{').replace('}', '}}')} --port {{port}}"
    commands = Commands(run=run, run_at=at_port, stop="kill {pid}", reset=f"{run} --reset", client="punctual")
    return Home((folder or data_folder()).expanduser().resolve(), commands)


def data_folder() -> Path:
    """Return `punctual/dev` in the data folder of the user. Raises Trouble if the user has no home folder."""
    try:
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Application Support" / "punctual" / "dev"
        return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "punctual" / "dev"
    except RuntimeError as error:
        raise Trouble("This user has no home folder: choose a folder for the state with --home FOLDER") from error


def check_python() -> None:
    """Raise Trouble if this Python lacks the local AWS or the time zones."""
    if importlib.util.find_spec("ministack") is None:
        raise Trouble(f"The local AWS is not installed. Install it: {INSTALL}")
    try:
        zoneinfo.ZoneInfo(ZONE)
    except zoneinfo.ZoneInfoNotFoundError:
        raise Trouble("This Python has no time zones, which schedules need. Install them: pip install tzdata") from None


def check_version(home: Home, version: str) -> None:
    """Raise Trouble if a newer version wrote the state. The start updates an older one."""
    written = str(home.settled.read().get("version", ""))
    if _numbers(written) > _numbers(version):
        raise Trouble(
            f"The state in {home.root} was written by Punctual {written}, and this is {version}. Nothing was changed.\n"
            f"Install that version again (pip install 'punctual-client[dev]=={written}'),\n"
            f"use another folder (punctual dev --home FOLDER), or delete the state with its jobs: {home.commands.reset}"
        )


def _numbers(version: str) -> list[int]:
    """Return the numbers of a release, to compare."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return [int(number) for number in found.group().split(".")] if found else []
