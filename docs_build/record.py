"""Records the first job at a terminal for the docs; `make screenshots` does it."""

import io
import os
import pty
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from rich.console import Console
from rich.text import Text

from local.failure import Trouble

ROOT = Path(__file__).parent.parent
COLUMNS = 92
COMMANDS = (  # {api} is the address of the stack
    "punctual login '{api}' --username {username}",
    "punctual jobs create --in 10s --key hello http POST {url}",
    "punctual jobs watch --key hello",
)
REDRAWN = re.compile(r"(\r\x1b\[2K(?:\x1b\[1A\x1b\[2K)*)")  # written by Rich before a table is drawn again
FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)  # of another host


def record(address: str, username: str, password: str, url: str) -> str:
    """Run the commands against a stack, and return what a terminal shows then. `url` is what the job calls."""
    shown = ""
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **{name: value for name, value in os.environ.items() if name != "NO_COLOR"},
            "COLUMNS": str(COLUMNS),
            "PUNCTUAL_CONFIG": f"{folder}/profiles.json",
            "PUNCTUAL_PASSWORD": password,
            "PYTHONPATH": str(ROOT / "client/src"),
            "TERM": "xterm-256color",
        }
        for template in COMMANDS:
            typed = template.format(api="$API", username=username, url=url).replace("'", "")
            line = template.format(api=address, username=username, url=url)
            command = ["sh", "-c", f'punctual() {{ "{sys.executable}" -m punctual "$@"; }}; {line}']
            shown += f"\x1b[32m$\x1b[0m {typed}\n{terminal_output(command, environment)}"
    return shown


def terminal_output(command: list[str], environment: Mapping[str, str]) -> str:
    """Return what a terminal of its own shows after a command. Raises Trouble if the command fails."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, env=dict(environment), stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True) as process:
        os.close(theirs)
        output = b""
        with suppress(OSError):  # Linux answers so when the program has ended
            while part := os.read(ours, 65536):
                output += part
        os.close(ours)
    if process.returncode:
        raise Trouble(f"{' '.join(command)} ended with {process.returncode}")
    return left(output.decode())


def left(output: str) -> str:
    """Return the output without the tables that were drawn again."""
    shown = ""
    for part in REDRAWN.split(output.replace("\r\n", "\n")):
        if REDRAWN.match(part):
            shown = "\n".join([*shown.split("\n")[: -1 - part.count("\x1b[1A")], ""])
        else:
            shown += part
    return shown


def svg(shown: str) -> str:
    """Return the picture of a terminal that shows this."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor", legacy_windows=False)
    console.print(Text.from_ansi(shown))
    return FONT.sub("", console.export_svg(title="The first job", unique_id="first-job"))
