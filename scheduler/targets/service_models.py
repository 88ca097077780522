"""The operations of AWS's services by botocore's own models: their names, and the rules of their parameters.

botocore's own check knows no enums, patterns and maximum lengths. Its models are read as the files that they are: botocore itself takes
longer to import than a model to read, and only the adapters may import it.
"""

import base64
import binascii
import gzip
import json
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from difflib import get_close_matches
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from scheduler.model import instants
from scheduler.targets import model_texts
from scheduler.targets.base import NotAllowed
from scheduler.targets.placeholders import OPEN

SHOWN = 20  # names or values in a rule
LONGEST_PATH = 300  # characters: the names of a map may have any length
DEEPEST = 100  # levels of parameters: the check takes a few calls for each
READ_ONLY = ("Get", "Describe", "List", "Head")  # the beginnings of the names of operations that change nothing
PAGES = "https://docs.aws.amazon.com/goto/WebAPI"  # leads to the page of an operation in the reference of its API
STREAM = "is a stream, which no job can send"
_MODEL = "service-2.json.gz"
_CAPITALS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_TOKENS = uuid.UUID("6f0e6c0b-7f0a-4c4e-9d9c-0f3f6d1b8a57")  # the namespace of the idempotency tokens; another one would change them all

Ref = Mapping[str, Any]  # of a member: the name of its shape, and what applies to it alone
Shape = Mapping[str, Any]


class Unknown(ValueError):
    """There is no such service or operation. The message says so, with the nearest names. `field`: `service` or `action`."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of a service."""

    service: str  # the name of boto3's client
    name: str  # in the API, such as CopyObject
    signing_name: str  # that of the service in most IAM actions
    shapes: Mapping[str, Shape]
    input: str | None  # the shape of its parameters
    output: str | None
    summary: str  # a sentence
    documentation: str  # the address of its page

    @property
    def is_read_only(self) -> bool:
        return self.name.startswith(READ_ONLY)

    @property
    def is_idempotent(self) -> bool:
        """Whether the same call may be made twice."""
        return self.is_read_only or bool(self.tokens)

    @property
    def tokens(self) -> Sequence[str]:
        """The parameters by which the service recognizes a repeated call."""
        return [name for name, ref in self._members(self.input).items() if ref.get("idempotencyToken")]

    @property
    def answers_with_events(self) -> bool:
        return any(self.shapes[ref["shape"]].get("eventstream") for ref in self._members(self.output).values())

    def converted(self, parameters: Mapping[str, Any], *, are_final: bool) -> dict[str, Any]:
        """The parameters as botocore takes them, with blobs as bytes and timestamps as instants. Raises NotAllowed with path and rule.

        Unless they are final, a text with a placeholder is only checked to be a text.
        """
        if self.input is None:
            if parameters:
                raise NotAllowed("parameters", f"must be empty: {self.name} has no parameters")
            return {}
        ref = {"shape": self.input}
        made: dict[str, Any] = _Conversion(self.shapes, are_final).value(ref, parameters, ("parameters",))
        return made

    def with_tokens(self, parameters: Mapping[str, Any], key: str) -> dict[str, Any]:
        """The parameters with the tokens that they lack: the same ones for the same key."""
        token = str(uuid.uuid5(_TOKENS, key))
        return {**dict.fromkeys(self.tokens, token), **parameters}

    def _members(self, shape: str | None) -> Mapping[str, Ref]:
        return {} if shape is None else self.shapes[shape].get("members", {})


@lru_cache(256)
def operation(service: str, action: str) -> Operation:
    """An operation of a service, by the names of boto3's client and of the API. Raises Unknown."""
    if service not in services():
        raise Unknown("service", f"there is no service {service!r} in boto3{_nearest(service, services())}")
    model = _model(service)
    found = model["operations"].get(action)
    if found is None:
        spelled = next((name for name in model["operations"] if _method(name) == action), None)
        if spelled is not None:
            raise Unknown("action", f"must be the name in the API, not that of boto3's method: write {spelled}")
        raise Unknown("action", f"{service} has no operation {action!r}{_nearest(action, model['operations'])}")
    metadata = model["metadata"]
    parameters, answer = (found.get(kind, {}).get("shape") for kind in ("input", "output"))
    signing_name = metadata.get("signingName") or metadata["endpointPrefix"]
    shapes = _reachable(model["shapes"], [parameters, answer])
    summary, page = model_texts.sentence(found.get("documentation", "")), f"{PAGES}/{metadata['uid']}/{action}"
    return Operation(service, action, signing_name, shapes, parameters, answer, summary, page)


def _reachable(shapes: Mapping[str, Shape], roots: Sequence[str | None]) -> dict[str, Shape]:
    """The shapes that these are made of: a service has thousands, an operation a few."""
    found: dict[str, Shape] = {}
    left = [root for root in roots if root is not None]
    while left:
        name = left.pop()
        if name not in found:
            shape = found[name] = shapes[name]
            parts = [*shape.get("members", {}).values(), *(shape[part] for part in ("member", "key", "value") if part in shape)]
            left += [ref["shape"] for ref in parts]
    return found


@cache
def services() -> frozenset[str]:
    """The services of boto3."""
    return frozenset(path.parent.parent.name for path in _folder().glob(f"*/*/{_MODEL}"))


@cache
def _folder() -> Path:
    spec = find_spec("botocore")
    if spec is None or spec.origin is None:
        raise RuntimeError("botocore, whose models describe the services, is not installed")
    return Path(spec.origin).parent / "data"


@lru_cache(1)  # the largest takes some 30 MB, and `operation` keeps what is used
def _model(service: str) -> Mapping[str, Any]:
    newest = max((_folder() / service).glob(f"*/{_MODEL}"))
    found: Mapping[str, Any] = json.loads(gzip.decompress(newest.read_bytes()))
    return found


def _method(name: str) -> str:
    """The name of boto3's method, nearly: it only serves a hint."""
    return _CAPITALS.sub("_", name).lower()


def _nearest(name: str, known: Sequence[str] | frozenset[str] | Mapping[str, Any]) -> str:
    near = get_close_matches(name, sorted(known), 3)
    return f"; did you mean {' or '.join(near)}?" if near else ""


class _Conversion:
    """The walk over the parameters, beside the shapes that describe them."""

    def __init__(self, shapes: Mapping[str, Shape], are_final: bool) -> None:
        self._shapes, self._are_final = shapes, are_final

    def value(self, ref: Ref, value: Any, path: tuple[str | int, ...]) -> Any:
        shape = self._shapes[ref["shape"]]
        if is_stream(ref, shape):
            raise _broken(path, STREAM)
        if len(path) > DEEPEST:
            raise _broken(path[:2], f"is nested deeper than {DEEPEST} levels")
        if shape.get("document") or ref.get("jsonvalue"):  # any JSON
            return value
        return _BY_TYPE[shape["type"]](self, shape, value, path)

    def _structure(self, shape: Shape, value: Any, path: tuple[str | int, ...]) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise _broken(path, "must be an object")
        members: Mapping[str, Ref] = shape.get("members", {})
        for name in value:
            if name not in members:
                raise _broken((*path, name), f"is not a known parameter{_nearest(name, members) or f'; known: {_listed(sorted(members))}'}")
        for name in shape.get("required", ()):
            if name not in value and not members[name].get("idempotencyToken"):
                stream = is_stream(members[name], self._shapes[members[name]["shape"]])
                raise _broken((*path, name), STREAM if stream else "is required")
        if shape.get("union") and len(value) != 1:
            raise _broken(path, f"must have exactly one of {_listed(sorted(members))}")
        return {name: self.value(members[name], each, (*path, name)) for name, each in value.items()}

    def _list(self, shape: Shape, value: Any, path: tuple[str | int, ...]) -> list[Any]:
        if not isinstance(value, list):
            raise _broken(path, "must be a list")
        _check_size(shape, len(value), "entries", path)
        return [self.value(shape["member"], each, (*path, number)) for number, each in enumerate(value)]

    def _map(self, shape: Shape, value: Any, path: tuple[str | int, ...]) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise _broken(path, "must be an object")
        _check_size(shape, len(value), "entries", path)
        for name in value:
            self.value(shape["key"], name, (*path, name))
        return {name: self.value(shape["value"], each, (*path, name)) for name, each in value.items()}

    def _string(self, shape: Shape, value: Any, path: tuple[str | int, ...]) -> str:
        if not isinstance(value, str):
            raise _broken(path, "must be a text")
        if self._is_open(value):
            return value
        if "enum" in shape and value not in shape["enum"]:
            raise _broken(path, f"must be one of {_listed(shape['enum'])}")
        _check_size(shape, len(value), "characters", path)
        if "pattern" in shape:
            from scheduler.targets import payload_schema  # imported here: it loads the engine of patterns

            if not payload_schema.may_match(shape["pattern"], value):
                raise _broken(path, f"must match {shape['pattern']}"[:300])
        return value

    def _blob(self, shape: Shape, value: Any, path: tuple[str | int, ...]) -> bytes | str:
        if not isinstance(value, str):
            raise _broken(path, "must be a base64 text: it holds bytes")
        if self._is_open(value):
            return value
        try:
            made = base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            raise _broken(path, "must be a base64 text: it holds bytes") from None
        _check_size(shape, len(made), "bytes", path)
        return made

    def _timestamp(self, shape: Shape, value: Any, path: tuple[str | int, ...]) -> datetime | str:
        if isinstance(value, str) and self._is_open(value):
            return value
        try:
            return instants.EPOCH + timedelta(milliseconds=instants.parse(value))
        except ValueError as error:
            raise _broken(path, str(error)) from None

    def _number(self, shape: Shape, value: Any, path: tuple[str | int, ...]) -> int | float:
        is_whole = shape["type"] in ("integer", "long")
        if isinstance(value, bool) or not isinstance(value, int if is_whole else int | float):
            raise _broken(path, f"must be a {'whole ' if is_whole else ''}number")
        if "min" in shape and value < shape["min"]:
            raise _broken(path, f"must be at least {shape['min']}")
        if "max" in shape and value > shape["max"]:
            raise _broken(path, f"must be at most {shape['max']}")
        return value

    def _boolean(self, shape: Shape, value: Any, path: tuple[str | int, ...]) -> bool:
        if not isinstance(value, bool):
            raise _broken(path, "must be true or false")
        return value

    def _is_open(self, text: str) -> bool:
        """Whether a placeholder will change the text."""
        return not self._are_final and OPEN in text


_BY_TYPE: Mapping[str, Callable[[_Conversion, Shape, Any, tuple[str | int, ...]], Any]] = {
    "structure": _Conversion._structure,
    "list": _Conversion._list,
    "map": _Conversion._map,
    "string": _Conversion._string,
    "blob": _Conversion._blob,
    "timestamp": _Conversion._timestamp,
    **dict.fromkeys(("integer", "long", "float", "double"), _Conversion._number),
    "boolean": _Conversion._boolean,
}


def is_stream(ref: Ref, shape: Shape) -> bool:
    return bool(ref.get("streaming") or shape.get("streaming") or shape.get("eventstream"))


def _check_size(shape: Shape, size: int, noun: str, path: tuple[str | int, ...]) -> None:
    if size < shape.get("min", 0):
        raise _broken(path, f"must have at least {shape['min']} {noun}")
    if size > shape.get("max", size):
        raise _broken(path, f"must have at most {shape['max']} {noun}")


def _broken(path: tuple[str | int, ...], rule: str) -> NotAllowed:
    return NotAllowed(".".join(map(str, path))[:LONGEST_PATH], rule)


def _listed(values: Sequence[str]) -> str:
    others = len(values) - SHOWN
    return ", ".join(values[:SHOWN]) + (f" and {others} more" if others > 0 else "")
