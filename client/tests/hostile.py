"""Hostile values: texts and numbers that some way between a file, the API, a terminal and back has changed before."""

from __future__ import annotations

import random
from typing import Any

BREAKS = ["\u2028", "\u2029", "\x85", "\r", "\n", "\r\n", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e"]
CONTROLS = [
    "\x00",
    "\x07",
    "\x08",
    "\x1b[2J",
    "\x1b]0;owned\x07",
    "\x1b]52;c;b3duZWQ=\x07",
    "\x7f",
    "\x80",
    "\x9b31m",
    "\x9d0;x\x9c",
    "\x9f",
]
TURNS = ["\u202a", "\u202b", "\u202d", "\u202e", "\u2066", "\u2067", "\u2068", "\u2069", "\u200f", "\u061c", "\ufeff", "\u200b"]
YAML = [
    ": ",
    " #",
    "- ",
    "? ",
    "|",
    ">",
    "%",
    "@",
    "`",
    "&a",
    "*a",
    "!!str ",
    "{{x}}",
    "{",
    "}",
    "[",
    "]",
    ",",
    "---",
    "...",
    "<<",
    "=",
    "~",
]
WORDS = [
    "null",
    "true",
    "Yes",
    "on",
    "No",
    "0o17",
    "0x1F",
    "1_000",
    "12:30:00",
    ".inf",
    "-.INF",
    ".nan",
    "1e3",
    "2026-11-28",
    "0123",
    "+5",
    "",
]
OTHERS = [
    "a",
    "word ",
    "  ",
    "\t",
    '"',
    "'",
    "\\",
    "\\u2028",
    "\\n",
    "é",
    "漢字",
    "😀",
    "\ud7ff",
    "\ue000",
    "\ufffd",
    "\U0010fffd",
    "[/x]",
    "\\[/x]",
    "[bold]",
    "$HOME",
    "x" * 90,
]
PIECES = [*BREAKS, *CONTROLS, *TURNS, *YAML, *WORDS, *OTHERS]
INTEGERS = [0, 1, -1, 2**31, 2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, 2**64, 12345678901234567890, 10**30, -(10**40), 10**400]
FLOATS = [
    0.0,
    -0.0,
    1.0,
    100.0,
    0.1,
    0.30000000000000004,
    1e16,
    1e21,
    1e22,
    1e-7,
    5e-324,
    1.7976931348623157e308,
    123456789012345680.0,
    -1e100,
]


def text(chance: random.Random) -> str:
    return "".join(chance.choice(PIECES) for _ in range(chance.choice((1, 1, 2, 3, 5, 12))))


def value(chance: random.Random, depth: int = 3) -> Any:
    """A hostile JSON value: half of all are texts and numbers."""
    kind = chance.randrange(10 if depth else 7)
    if kind < 3:
        return text(chance)
    if kind < 5:
        return chance.choice(INTEGERS)
    if kind == 5:
        return chance.choice(FLOATS)
    if kind == 6:
        return chance.choice((None, True, False))
    if kind < 9:
        return {text(chance): value(chance, depth - 1) for _ in range(chance.randrange(4))}
    return [value(chance, depth - 1) for _ in range(chance.randrange(4))]
