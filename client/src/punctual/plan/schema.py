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


@cache
def _inner() -> dict[str, str]:
    """For the name of a field that stands deeper in a task, and for that of a type: what to write."""
    defined = json.loads(text())["$defs"]
    found = {name: "; it is a field of payload" for part, of in defined.items() if part.endswith("Payload") for name in of["properties"]}
    for part, field in defined["Task"]["properties"].items():
        for each in field.get("anyOf", ()):
            inner = defined.get(each.get("$ref", "").rpartition("/")[2], {})
            found |= dict.fromkeys(inner.get("properties", ()), f"; it is a field of {part}")
    types = next(each["enum"] for each in defined["Task"]["properties"]["type"]["anyOf"] if "enum" in each)
    return found | {name: f"; write type: {name}, and its payload" for name in types}


def misplaced(name: str) -> str:
    """`; it is a field of schedule` and the like, for a name that is none of a task but of one of its parts; else nothing."""
    return "" if name in fields() else _inner().get(name, "")


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean ...?` if a known name is near, else nothing."""
    near = difflib.get_close_matches(name, known, 1)
    return f"; did you mean {near[0]}?" if near else ""
