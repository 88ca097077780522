"""Check a file of tasks against its JSON Schema, with errors for people: the field, the rule, and the nearest name that is known.

It knows the keywords that `tasks.schema.json` uses, no others; a test compares it with a complete implementation.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any

Path = tuple["str | int", ...]
Broken = tuple[Path, str]

MOST_TAGS = 10
_NAMES = {
    "object": "a mapping",
    "array": "a list",
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}
_RULES = {  # of patterns that are hard to read
    "key": 'must be 1 to 255 printable characters, none of them / ? # % \\ " `; it must not begin or end with a space, nor be . or ..',
    "label": "must be 1 to 24 letters, digits or any of - _ . : /",
    "tags": "must be 1 to 32 letters, digits or any of - _ . : /",
    "ordering_key": "must be 1 to 128 letters, digits or any of - _ . : @",
    "target": "must be 1 to 63 lower-case letters, digits or any of . _ -, and begin with a letter or a digit",
}
_DATE_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?(?:[Zz]|[+-][0-9]{2}:[0-5][0-9])")
_INSTANT = "must be an instant with an offset, such as 2026-11-20T10:00:00Z or 2026-11-20T11:00:00+01:00"


@cache
def whole() -> Mapping[str, Any]:
    """The schema of a file of tasks."""
    loaded: dict[str, Any] = json.loads(text())
    return loaded


def text() -> str:
    """The same as JSON text, for editors."""
    return resources.files("punctual.plan").joinpath("tasks.schema.json").read_text(encoding="utf-8")


def types() -> list[str]:
    """The types that every stage has."""
    known: list[str] = whole()["$defs"]["Task"]["properties"]["type"]["anyOf"][0]["enum"]
    return known


def broken(value: Any) -> list[Broken]:
    """Every rule that a file of tasks breaks, with the field that breaks it."""
    return list(dict.fromkeys(_broken(value, whole(), ())))


def nearest(name: str, known: Any) -> str:
    """`; did you mean ...?` if a known name is near, else nothing."""
    near = difflib.get_close_matches(name, [str(each) for each in known], 1)
    return f"; did you mean {near[0]}?" if near else ""


def _broken(value: Any, schema: Any, path: Path) -> Iterator[Broken]:
    if isinstance(schema, bool):
        if not schema:
            yield path, "goes without message, which is short for type log"
        return
    if "$ref" in schema:
        yield from _broken(value, whole()["$defs"][schema["$ref"].removeprefix("#/$defs/")], path)
    if "type" in schema and not _is(value, schema["type"]):
        yield path, f"must be {_NAMES[schema['type']]}, not {_shown(value)}"
        return
    for each in schema.get("allOf", ()):
        yield from _broken(value, each, path)
    if "anyOf" in schema:
        yield from _of_any(value, schema["anyOf"], path)
    if "if" in schema and _holds(value, schema["if"]):
        yield from _broken(value, schema["then"], path)
    if "not" in schema and _holds(value, schema["not"]):
        yield path, "is not allowed"
    yield from _of_scalar(value, schema, path)
    if isinstance(value, dict):
        yield from _of_mapping(value, schema, path)
    if isinstance(value, list):
        yield from _of_list(value, schema, path)


def _holds(value: Any, schema: Any) -> bool:
    return next(_broken(value, schema, ()), None) is None


def _is(value: Any, name: str) -> bool:
    if name in ("integer", "number"):
        whole_ = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        return not isinstance(value, bool) and (whole_ if name == "integer" else isinstance(value, int | float))
    return isinstance(value, {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}[name])


def _of_any(value: Any, choices: list[Any], path: Path) -> Iterator[Broken]:
    """The rules of the choice that fits best: one of the value's own type, or all names if each choice requires one."""
    if any(_holds(value, choice) for choice in choices):
        return
    if all(choice.keys() == {"required"} for choice in choices):
        yield path, f"give one of {', '.join(choice['required'][0] for choice in choices)}"
        return
    fitting = [choice for choice in choices if "type" not in choice or _is(value, choice["type"])]
    if fitting:
        yield from _broken(value, fitting[0], path)
        return
    names = [_NAMES[choice["type"]] for choice in choices if choice.get("type", "null") != "null"]
    yield path, f"must be {' or '.join(dict.fromkeys(names))}, not {_shown(value)}"


def _of_scalar(value: Any, schema: Mapping[str, Any], path: Path) -> Iterator[Broken]:
    if "const" in schema and value != schema["const"]:
        yield path, f"must be {schema['const']}"
    if "enum" in schema and value not in schema["enum"]:
        yield path, f"must be one of {', '.join(map(str, schema['enum']))}, not {_shown(value)}{nearest(str(value), schema['enum'])}"
    if isinstance(value, str):
        if len(value) < schema.get("minLength", 0):
            yield path, "must not be empty"
        if len(value) > schema.get("maxLength", len(value)):
            yield path, f"must have at most {schema['maxLength']} characters; it has {len(value)}"
        if "pattern" in schema and not re.search(schema["pattern"], value):
            named = next((part for part in reversed(path) if isinstance(part, str)), "")
            yield path, _RULES.get(named, f"must match {schema['pattern']}")
        if schema.get("format") == "date-time" and not _DATE_TIME.fullmatch(value):
            yield path, _INSTANT
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if value < schema.get("minimum", value):
            yield path, f"must be at least {schema['minimum']}"
        if value > schema.get("maximum", value):
            yield path, f"must be at most {schema['maximum']}"


def _of_mapping(value: Mapping[str, Any], schema: Mapping[str, Any], path: Path) -> Iterator[Broken]:
    fields, patterns, others = schema.get("properties", {}), schema.get("patternProperties", {}), schema.get("additionalProperties", True)
    for name in schema.get("required", ()):
        if name not in value:
            yield path, f"{name} is missing"
    if len(value) > schema.get("maxProperties", len(value)):
        yield path, f"must have at most {schema['maxProperties']} fields"
    for name, each in value.items():
        if "propertyNames" in schema:
            yield from _broken(name, schema["propertyNames"], (*path, name))
        if name in fields:
            yield from _broken(each, fields[name], (*path, name))
        elif not any(re.search(pattern, name) for pattern in patterns):
            if others is False:
                yield (*path, name), f"there is no such field{nearest(name, fields)}"
            else:
                yield from _broken(each, others, (*path, name))


def _of_list(value: list[Any], schema: Mapping[str, Any], path: Path) -> Iterator[Broken]:
    if len(value) < schema.get("minItems", 0):
        yield path, f"must have at least {schema['minItems']} entries"
    if len(value) > schema.get("maxItems", len(value)):
        yield path, f"must have at most {schema['maxItems']} entries"
    for number, each in enumerate(value):
        yield from _broken(each, schema.get("items", True), (*path, number))


def _shown(value: Any) -> str:
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."
