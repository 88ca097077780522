"""The JSON Schema of a file of tasks, for editors. `make reference` writes it from the API's document; only the API checks by its rules."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable
from functools import cache
from importlib import resources


def text() -> str:
    """The schema as JSON text."""
    return resources.files("punctual.plan").joinpath("tasks.schema.json").read_text(encoding="utf-8")


@cache
def fields() -> tuple[str, ...]:
    """The names of the fields of a task, in the order of a file."""
    return tuple(json.loads(text())["$defs"]["Task"]["properties"])


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean ...?` if a known name is near, else nothing."""
    near = difflib.get_close_matches(name, known, 1)
    return f"; did you mean {near[0]}?" if near else ""
