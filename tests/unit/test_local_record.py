"""The recorded terminal: what it shows, and the picture of it."""

import os
import sys
import xml.etree.ElementTree as ET

import pytest

from docs_build import record
from local.failure import Trouble

REDRAW = """
from rich.console import Console
from rich.live import Live
console = Console()
console.print("$ watch")
with Live("a\\nid  queued", console=console, auto_refresh=False) as screen:
    for state in ("running", "[green]succeeded[/]"):
        screen.update(f"a\\nid  {state}", refresh=True)
console.print("after")
"""


def test_of_a_table_that_is_drawn_again_the_last_one_stays() -> None:
    shown = record.terminal_output([sys.executable, "-c", REDRAW], os.environ | {"TERM": "xterm-256color"})
    picture = record.svg(shown)
    texts = [(each.text or "").strip().replace("\xa0", " ") for each in ET.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")]
    assert [text for text in texts if text] == ["The first job", "$ watch", "a", "id", "succeeded", "after"]


def test_the_picture_loads_nothing_from_another_host() -> None:
    picture = record.svg("\x1b[32m$\x1b[0m a <b>")
    assert "@font-face" not in picture and "url(http" not in picture and "&lt;b&gt;" in picture


def test_a_command_runs_at_a_terminal_and_its_failure_is_reported() -> None:
    program = "import sys; print(sys.stdout.isatty(), '…')"
    assert record.terminal_output([sys.executable, "-c", program], os.environ) == "True …\n"
    with pytest.raises(Trouble, match="ended with 3"):
        record.terminal_output([sys.executable, "-c", "raise SystemExit(3)"], os.environ)
