"""The recorded terminal: what its screen shows, and the picture of it."""

import os
import sys
import xml.etree.ElementTree as ET

import pytest

from local import record
from local.failure import Trouble
from local.terminal import Cell, Screen, svg


def shown(output: str, columns: int = 20) -> list[str]:
    screen = Screen(columns)
    screen.write(output)
    return ["".join(cell.text for cell in line) for line in screen.snapshot()]


def test_a_table_is_redrawn_in_its_place() -> None:
    assert shown("$ watch\nid  scheduled\nb\r\x1b[2K\x1b[1A\x1b[2Kid  running\nb") == ["$ watch", "id  running", "b"]


def test_a_long_line_goes_on_below() -> None:
    assert shown("abcdefg\nx", 5) == ["abcde", "fg", "x"]


def test_colours_last_until_they_are_reset() -> None:
    screen = Screen(20)
    screen.write("\x1b[1;31ma\x1b[0mb\x1b[2mc")
    ((red, plain, dim),) = screen.snapshot()
    assert (red, plain, dim) == (Cell("a", "#ff7b72", bold=True), Cell("b"), Cell("c", dim=True))


def test_unknown_sequences_are_ignored() -> None:
    assert shown("\x1b[?25l\x1b]0;title\x07a\x1b[38;5;1mb\bc") == ["ac"]


def test_the_picture_shows_each_frame_in_its_time() -> None:
    first, second = Screen(20), Screen(20)
    first.write("$ a <b>")
    second.write("$ a <b>\n\x1b[32mok")
    picture = svg([(0.0, first.snapshot()), (4.0, second.snapshot())], "A job", 20)
    root = ET.fromstring(picture)
    assert [group.get("style") for group in root.iter("{http://www.w3.org/2000/svg}g")] == ["animation-name:f0", "animation-name:f1"]
    assert "@keyframes f0{0.00%{opacity:1}50.00%{opacity:0}}" in picture and "@keyframes f1{0%{opacity:0}50.00%{opacity:1}}" in picture
    assert "prefers-reduced-motion" in picture and "$ a &lt;b&gt;" in picture


def test_a_command_runs_at_a_terminal_and_its_failure_is_reported() -> None:
    program = "import sys; print(sys.stdout.isatty(), '…')"
    assert "".join(record.terminal_output([sys.executable, "-c", program], os.environ)) == "True …\r\n"
    with pytest.raises(Trouble, match="ended with 3"):
        list(record.terminal_output([sys.executable, "-c", "raise SystemExit(3)"], os.environ))
