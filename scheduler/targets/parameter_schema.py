"""The JSON Schema of an operation's parameters, from botocore's model: what a form needs to know of them.

The rules are those of `service_models.Operation.converted`, which decides. A text may have placeholders that break the rules of its schema
until they are replaced.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from scheduler.targets import model_texts
from scheduler.targets.base import NotAllowed
from scheduler.targets.service_models import STREAM, Operation, Ref, Shape, is_stream

TOKEN = "Punctual sends the same token in every attempt of a job, unless you set one."
Schema = dict[str, Any]


def of(operation: Operation) -> Schema:
    """The schema. A structure is in `$defs`, under its name in the model, because it may contain itself. Streams are left out.

    Raises NotAllowed if the operation requires a stream.
    """
    drawing = _Drawing(operation.shapes)
    if operation.input is None:
        return {"type": "object", "properties": {}, "additionalProperties": False}
    shape = operation.shapes[operation.input]
    for name in shape.get("required", ()):
        if drawing.is_stream(shape["members"][name]):
            raise NotAllowed(f"parameters.{name}", STREAM)
    schema = drawing.structure(shape)
    return schema | ({"$defs": drawing.definitions} if drawing.definitions else {})


class _Drawing:
    """The walk over the shapes."""

    def __init__(self, shapes: Mapping[str, Shape]) -> None:
        self._shapes = shapes
        self.definitions: dict[str, Schema] = {}

    def is_stream(self, ref: Ref) -> bool:
        return is_stream(ref, self._shapes[ref["shape"]])

    def structure(self, shape: Shape) -> Schema:
        members = {name: ref for name, ref in shape.get("members", {}).items() if not self.is_stream(ref)}
        required = [name for name in shape.get("required", ()) if not shape["members"][name].get("idempotencyToken")]
        return {
            "type": "object",
            "properties": {name: self._member(ref) for name, ref in members.items()},
            **({"required": required} if required else {}),
            **({"minProperties": 1, "maxProperties": 1} if shape.get("union") else {}),
            "additionalProperties": False,
        }

    def _member(self, ref: Ref) -> Schema:
        shape = self._shapes[ref["shape"]]
        sentence = model_texts.sentence(ref.get("documentation") or shape.get("documentation", ""))
        description = " ".join(part for part in (sentence, TOKEN if ref.get("idempotencyToken") else "") if part)
        return {
            **self._value(ref),
            **({"description": description} if description else {}),
            **({"deprecated": True} if ref.get("deprecated") or shape.get("deprecated") else {}),
        }

    def _value(self, ref: Ref) -> Schema:
        name = ref["shape"]
        shape = self._shapes[name]
        if shape.get("document") or ref.get("jsonvalue"):  # any JSON
            return {}
        match shape["type"]:
            case "structure":
                if name not in self.definitions:
                    self.definitions[name] = {}  # named first: it may contain itself
                    self.definitions[name] = self.structure(shape)
                return {"$ref": f"#/$defs/{name}"}
            case "list":
                return {"type": "array", "items": self._value(shape["member"]), **_bounds(shape, "minItems", "maxItems")}
            case "map":
                names = {rule: each for rule, each in self._value(shape["key"]).items() if rule != "type"}
                return {
                    "type": "object",
                    **({"propertyNames": names} if names else {}),
                    "additionalProperties": self._value(shape["value"]),
                    **_bounds(shape, "minProperties", "maxProperties"),
                }
            case "string":
                rules = {rule: shape[rule] for rule in ("enum", "pattern") if rule in shape}
                return {"type": "string", **rules, **_bounds(shape, "minLength", "maxLength")}
            case "blob":
                return {"type": "string", "contentEncoding": "base64"}
            case "timestamp":
                return {"type": "string", "format": "date-time"}
            case "boolean":
                return {"type": "boolean"}
            case kind:
                return {"type": "integer" if kind in ("integer", "long") else "number", **_bounds(shape, "minimum", "maximum")}


def _bounds(shape: Shape, low: str, high: str) -> Schema:
    names: Sequence[tuple[str, str]] = ((low, "min"), (high, "max"))
    return {rule: shape[bound] for rule, bound in names if bound in shape}
