"""`punctual dev`."""

import importlib
import sys
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from punctual.cli._app import FAILED, Cli, Refused, command

INSTALL = "pip install 'punctual-client[dev]'"
OLDEST = (3, 11)  # the Python that the server needs


def register(app: typer.Typer) -> None:
    command(app, "dev", "punctual dev", "punctual dev --port 5001", "punctual dev --home ./stack --reset")(dev)


def dev(
    cli: Cli,
    port: Annotated[
        int | None, Option("--port", metavar="PORT", min=1024, max=65535, help="Listen on this port; else the last one, or the first free.")
    ] = None,
    reset: Annotated[bool, Option("--reset", help="Begin with an empty stack: deletes the jobs and tasks of this folder.")] = False,
    home: Annotated[
        Path | None, Option("--home", metavar="FOLDER", help="Keep jobs and tasks in this folder; else in your data folder.")
    ] = None,
) -> int:
    """Run the whole stack on this machine until Ctrl-C: a local AWS, the API and the console. It needs no AWS account.
    Jobs and tasks are kept for the next start. With --json it prints one line when it is up."""
    if sys.platform == "win32":
        raise Refused("the local stack runs on Linux and macOS", hint="On Windows, use it in WSL.", code=FAILED)
    if sys.version_info < OLDEST:
        raise Refused(f"the local stack needs Python {'.'.join(map(str, OLDEST))} or newer", code=FAILED)
    try:
        server = importlib.import_module("punctual_server.dev")
    except ModuleNotFoundError as error:
        raise Refused(f"the local stack is not installed: there is no {error.name}", hint=f"Install it: {INSTALL}", code=FAILED) from error
    return int(server.run(home, port, reset=reset, as_json=cli.out.as_json))
