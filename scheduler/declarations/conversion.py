"""Properties of a custom resource as values of a request. CloudFormation makes a text of each number and boolean in a template. Pure."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]

_WHOLE = r"-?[0-9]{1,18}"
_NUMBER = r"-?[0-9]{1,18}(\.[0-9]{1,18})?"
_WORDS = {"true": True, "false": False}


def converted(value: Any, schema: Schema, definitions: Schema | None = None) -> Any:
    """Return the value as the JSON Schema expects it. A value that does not fit stays as it is: the API refuses it by its field.

    A text for a field that takes an object or a list is read as JSON, whose numbers and booleans keep their types.

    >>> converted("3", {"anyOf": [{"type": "integer"}, {"type": "null"}]})
    3
    >>> converted("3", {"type": "string"})
    '3'
    """
    known = schema.get("$defs", {}) if definitions is None else definitions
    choices = list(_choices(schema, known))
    if isinstance(value, str):
        return _of_text(value, {str(each.get("type", "string")) for each in choices} or {"string"})
    if isinstance(value, list):
        items: Schema = next((each["items"] for each in choices if "items" in each), {})
        return [converted(each, items, known) for each in value]
    if isinstance(value, Mapping):
        found = next((each for each in choices if each.get("type") == "object"), {})
        fields, others = found.get("properties", {}), found.get("additionalProperties")
        other = others if isinstance(others, Mapping) else {}
        return {name: converted(each, fields.get(name, other), known) for name, each in value.items()}
    return value


def _choices(schema: Schema, known: Schema) -> Iterator[Schema]:
    """The schemas of which a value may fit any; none: it may be anything."""
    if "$ref" in schema:
        yield from _choices(known.get(schema["$ref"].rpartition("/")[2], {}), known)
    elif "anyOf" in schema:
        for each in schema["anyOf"]:
            yield from _choices(each, known)
    elif "type" in schema:
        yield schema


def _of_text(text: str, kinds: set[str]) -> Any:
    if "string" in kinds:
        return text
    if "boolean" in kinds and text in _WORDS:
        return _WORDS[text]
    if kinds & {"integer", "number"} and re.fullmatch(_WHOLE, text):
        return int(text)
    if "number" in kinds and re.fullmatch(_NUMBER, text):
        return float(text)
    if kinds & {"object", "array"}:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return text
