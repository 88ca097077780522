"""The JSON Schema of the payloads of a named target: the subset that a form needs. Unknown keywords are refused.

No library validates it: keywords, values and error texts are part of the API, so little would be left to a library (decision 33).
"""

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from pydantic_core import SchemaError, SchemaValidator, ValidationError, core_schema

MOST_BYTES, DEEPEST = 16_384, 8
LONGEST_PATTERN = 200  # characters
MOST_STEPS = 1_000  # of a pattern, each counted repetition written out: `[a-f]{4}` has 4
MOST_WORK = 10_000_000  # steps times characters of one text: about a quarter of a second at worst
SHOWN_VALUES = 20  # of an enum, in a rule that a payload breaks
_NOTES = {"title", "description", "default", "examples", "$schema", "$comment"}  # annotations, which do not affect validity
_TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: not isinstance(value, bool) and (isinstance(value, int) or (isinstance(value, float) and value.is_integer())),
}


class Broken(NamedTuple):
    """A broken rule, and the path of the field within the payload."""

    path: tuple[str | int, ...]
    rule: str


class BadSchema(ValueError):
    """The error in a schema and its position."""


def check(schema: Mapping[str, Any]) -> None:
    """Raises BadSchema if it is no schema of an object, or uses unsupported keywords or values."""
    if len(json.dumps(schema).encode()) > MOST_BYTES:
        raise BadSchema(f"is longer than {MOST_BYTES:,} bytes")
    if schema.get("type") != "object":
        raise BadSchema('must have "type": "object", since it describes a payload')
    _check(schema, "", 0)


def broken(schema: Mapping[str, Any], value: Any) -> list[Broken]:
    """Every rule of a checked schema that the value breaks."""
    return list(_broken(schema, value, ()))


def may_match(pattern: str, text: str) -> bool:
    """Whether a text matches a pattern that another party wrote: false only if that is certain within a moment."""
    if _unusable(pattern) is not None or _steps(pattern) * len(text) > MOST_WORK:
        return True
    return _unmatched(pattern, text) is None


def _check(schema: Any, where: str, depth: int) -> None:
    at = f"at {where}: " if where else ""
    if not isinstance(schema, Mapping):
        raise BadSchema(f"{at}must be an object")
    if depth > DEEPEST:
        raise BadSchema(f"{at}is nested deeper than {DEEPEST} levels")
    for keyword, value in schema.items():
        if keyword in _NOTES:
            continue
        if keyword not in _KEYWORDS:
            raise BadSchema(f"{at}does not know {keyword!r}; known: {', '.join(sorted(_KEYWORDS))}")
        if not _KEYWORDS[keyword](value):
            raise BadSchema(f"{at}{keyword} has an invalid value")
        if keyword == "pattern" and (rule := _unusable(value)) is not None:
            raise BadSchema(f"{at}pattern {rule}")
    for name, part in schema.get("properties", {}).items():
        _check(part, f"{where}.{name}".lstrip("."), depth + 1)
    for keyword in ("items", "additionalProperties"):
        if isinstance(schema.get(keyword), Mapping):
            _check(schema[keyword], f"{where}.{keyword}".lstrip("."), depth + 1)


def _is_type(value: Any) -> bool:
    names = value if isinstance(value, list) else [value]
    return bool(names) and all(isinstance(name, str) and name in _TYPES for name in names)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_bound(value: Any) -> bool:
    """Whether the value is a number of the range of a double, as JSON's numbers are in most languages."""
    return _TYPES["number"](value) and abs(value) <= sys.float_info.max


def _is_pattern(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST_PATTERN


@lru_cache(256)
def _unusable(pattern: str) -> str | None:
    """The rule that a pattern breaks, None if it can be matched in linear time."""
    if _steps(pattern) > MOST_STEPS:
        return f"has more than {MOST_STEPS:,} steps with its repetitions written out"
    try:
        _matcher(pattern)
    except SchemaError as error:
        lines = str(error).splitlines()
        reason = next((line.strip() for line in lines if line.strip().startswith("error: ")), "error: it is too large").removeprefix(
            "error: "
        )
        return f"cannot be matched in linear time: {reason}"
    return None


@lru_cache(256)
def _matcher(pattern: str) -> SchemaValidator:
    """Rust's engine, which never goes back in the text: Python's may take hours for one text. Raises SchemaError."""
    return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))


_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{(?P<least>\d+)(?:,(?P<most>\d*))?\}|.", re.DOTALL)


@lru_cache(256)
def _steps(pattern: str) -> int:
    """The number of characters and classes of a pattern when each counted repetition is written out."""
    groups, last = [0], 0
    for token in _TOKEN.finditer(pattern):
        if token["least"]:
            times = max(int(token["least"]), int(token["most"] or 0), 1)
            groups[-1] += last * (times - 1)
            last *= times
        elif token[0] == "(":
            groups.append(0)
        elif token[0] == ")" and len(groups) > 1:
            last = groups.pop()
            groups[-1] += last
        else:
            last = 1
            groups[-1] += 1
    return sum(groups)


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


_KEYWORDS: dict[str, Callable[[Any], bool]] = {
    "type": _is_type,
    "enum": lambda value: isinstance(value, list) and bool(value),
    "const": lambda value: True,
    "properties": lambda value: isinstance(value, Mapping),
    "required": _is_names,
    "additionalProperties": lambda value: isinstance(value, bool | Mapping),
    "items": lambda value: isinstance(value, Mapping),
    "minItems": _is_count,
    "maxItems": _is_count,
    "minLength": _is_count,
    "maxLength": _is_count,
    "pattern": _is_pattern,
    "minimum": _is_bound,
    "maximum": _is_bound,
    "exclusiveMinimum": _is_bound,
    "exclusiveMaximum": _is_bound,
}


def _broken(schema: Mapping[str, Any], value: Any, path: tuple[str | int, ...]) -> Iterator[Broken]:
    if "type" in schema:
        names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if not any(_TYPES[name](value) for name in names):
            yield Broken(path, f"must be of type {' or '.join(names)}")
            return
    if "enum" in schema and not _is_one_of(value, schema["enum"]):
        yield Broken(path, f"must be one of {_listed(schema['enum'])}")
    if "const" in schema and not _same(value, schema["const"]):
        yield Broken(path, f"must be {json.dumps(schema['const'], ensure_ascii=False)}")
    if isinstance(value, dict):
        yield from _of_object(schema, value, path)
    elif isinstance(value, list):
        yield from _of_list(schema, value, path)
    elif isinstance(value, str):
        yield from _of_text(schema, value, path)
    elif _TYPES["number"](value):
        yield from _of_number(schema, value, path)


def _of_object(schema: Mapping[str, Any], value: Mapping[str, Any], path: tuple[str | int, ...]) -> Iterator[Broken]:
    parts, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    for name in schema.get("required", ()):
        if name not in value:
            yield Broken((*path, name), "is required")
    for name, each in value.items():
        if name in parts:
            yield from _broken(parts[name], each, (*path, name))
        elif others is False:
            yield Broken((*path, name), "is not a known field")
        elif isinstance(others, Mapping):
            yield from _broken(others, each, (*path, name))


def _of_list(schema: Mapping[str, Any], value: Sequence[Any], path: tuple[str | int, ...]) -> Iterator[Broken]:
    if len(value) < schema.get("minItems", 0):
        yield Broken(path, f"must have at least {schema['minItems']} entries")
    if len(value) > schema.get("maxItems", len(value)):
        yield Broken(path, f"must have at most {schema['maxItems']} entries")
    for number, each in enumerate(value if "items" in schema else ()):
        yield from _broken(schema["items"], each, (*path, number))


def _of_text(schema: Mapping[str, Any], value: str, path: tuple[str | int, ...]) -> Iterator[Broken]:
    if len(value) < schema.get("minLength", 0):
        yield Broken(path, f"must have at least {schema['minLength']} characters")
    if len(value) > schema.get("maxLength", len(value)):
        yield Broken(path, f"must have at most {schema['maxLength']} characters")
    if "pattern" in schema and (rule := _unmatched(schema["pattern"], value)) is not None:
        yield Broken(path, rule)


def _unmatched(pattern: str, text: str) -> str | None:
    """The rule that a text breaks. An earlier version may have stored a pattern that `check` now refuses: no text matches it."""
    if (rule := _unusable(pattern)) is not None:
        return f"is not accepted: the pattern of the target {rule}; an administrator has to change it"
    if _steps(pattern) * len(text) > MOST_WORK:
        return f"must have at most {MOST_WORK // _steps(pattern):,} characters, because of its pattern"
    try:
        _matcher(pattern).validate_python(text)
    except ValidationError:
        return f"must match {pattern}"
    return None


def _of_number(schema: Mapping[str, Any], value: float, path: tuple[str | int, ...]) -> Iterator[Broken]:
    if "minimum" in schema and value < schema["minimum"]:
        yield Broken(path, f"must be at least {json.dumps(schema['minimum'])}")
    if "maximum" in schema and value > schema["maximum"]:
        yield Broken(path, f"must be at most {json.dumps(schema['maximum'])}")
    if "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"]:
        yield Broken(path, f"must be more than {json.dumps(schema['exclusiveMinimum'])}")
    if "exclusiveMaximum" in schema and value >= schema["exclusiveMaximum"]:
        yield Broken(path, f"must be less than {json.dumps(schema['exclusiveMaximum'])}")


def _listed(values: list[Any]) -> str:
    """The first values: a payload of 200 KB may break a rule of 1,000 values 100,000 times."""
    others = len(values) - SHOWN_VALUES
    shown = ", ".join(json.dumps(each, ensure_ascii=False) for each in values[:SHOWN_VALUES])
    return shown if others <= 0 else f"{shown} and {others:,} more"


def _is_one_of(value: Any, known: list[Any]) -> bool:
    try:
        first = known.index(value)  # fast, also for 100,000 entries of a payload and 1,000 values
    except ValueError:
        return False
    return any(_same(value, each) for each in known[first:])


def _same(one: Any, other: Any) -> bool:
    """Equality as in JSON: true is not 1, and 1.0 is 1."""
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)
