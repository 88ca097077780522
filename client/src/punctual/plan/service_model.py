"""The operations of AWS's services, by botocore's models: schedules name them, and their parameters, without regard to case."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from punctual.plan.aws_cron import NoEqual
from punctual.plan.schedule_input import Bytes

if TYPE_CHECKING:
    from botocore.model import OperationModel

_HEAD = 8_192  # characters at the beginning of a model, which have the service's id
_ID = re.compile(r'"serviceId":\s*"([^"]+)"')
_KINDS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "structure": ((dict,), "an object"),
    "map": ((dict,), "an object"),
    "list": ((list,), "a list"),
    "string": ((str,), "a text"),
    "blob": ((str,), "a text"),
    "timestamp": ((str,), "a text"),
    "boolean": ((bool,), "true or false"),
    **dict.fromkeys(("integer", "long"), ((int,), "a whole number")),
    **dict.fromkeys(("float", "double"), ((int, float), "a number")),
}


@dataclass(frozen=True)
class Operation:
    """An operation: `service` is the name of boto3's client, `name` that of the API."""

    service: str
    name: str
    model: OperationModel

    def read(self, parameters: Any) -> dict[str, Any]:
        """The parameters by their names in the API, with `Bytes` where the API takes bytes. Raises NoEqual.

        Enums, patterns and lengths are left to the API of Punctual.
        """
        shape = self.model.input_shape
        if shape is not None:
            found: dict[str, Any] = _value(shape, parameters, self.name)
            return found
        if parameters != {}:
            raise NoEqual(f"has an input, and {self.name} has no parameters")
        return {}


def operation(service: str, action: str) -> Operation:
    """An operation by the id of its service, in lower case without blanks, and by its name in any case. Raises NoEqual."""
    try:
        from botocore.loaders import Loader
        from botocore.model import ServiceModel
    except ImportError:
        raise NoEqual("calls an API that cannot be checked here: pip install 'punctual-client[aws]'") from None
    clients = _clients()
    if service not in clients:
        raise NoEqual(f"calls a service that this version of botocore does not know: {service}{_near(service, clients)}")
    model = ServiceModel(Loader().load_service_model(clients[service], "service-2"))
    name = _spelled(action, model.operation_names)
    if name is None:
        raise NoEqual(f"calls an operation that {service} does not have in this version of botocore: {action}")
    found = model.operation_model(name)
    if found.has_event_stream_output:
        raise NoEqual(f"calls {service}:{name}, whose answer is a stream of events, which no job can read")
    return Operation(clients[service], name, found)


@cache
def _clients() -> Mapping[str, str]:
    """The names of boto3's clients by the ids of their services. Only the heads of the models are read: all of them take seconds."""
    import botocore

    found = {}
    for model in sorted(Path(botocore.__file__).parent.glob("data/*/*/service-2.json*")):  # some systems install them uncompressed
        with (gzip.open if model.suffix == ".gz" else open)(model, "rt", encoding="utf-8") as file:
            if service := _ID.search(file.read(_HEAD)):
                found[service[1].replace(" ", "").lower()] = model.parent.parent.name
    return found


def _value(shape: Any, value: Any, path: str) -> Any:
    if shape.serialization.get("streaming") or shape.serialization.get("eventstream"):
        raise NoEqual(f"has {path} in its input, a stream, which no job can send")
    if shape.metadata.get("document") or shape.serialization.get("jsonvalue"):  # any JSON
        return value
    types, noun = _KINDS[shape.type_name]
    is_kind = isinstance(value, types) and (not isinstance(value, bool) or bool in types)
    if not is_kind:
        raise NoEqual(f"has {path} in its input, which must be {noun}")
    if shape.type_name == "structure":
        return _structure(shape, value, path)
    if shape.type_name == "list":
        return [_value(shape.member, each, f"{path}.{number}") for number, each in enumerate(value)]
    if shape.type_name == "map":
        return {name: _value(shape.value, each, f"{path}.{name}") for name, each in value.items()}
    return Bytes(value) if shape.type_name == "blob" else value


def _structure(shape: Any, value: Mapping[str, Any], path: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for written, each in value.items():
        name = _spelled(written, shape.members)
        if name is None:
            raise NoEqual(f"has {path}.{written} in its input, which is no parameter{_near(written, shape.members)}")
        if name in found:
            raise NoEqual(f"has {path}.{name} twice in its input")
        found[name] = _value(shape.members[name], each, f"{path}.{name}")
    for name in shape.required_members:
        if name not in found and not shape.members[name].metadata.get("idempotencyToken"):
            raise NoEqual(f"has no {path}.{name} in its input, which is required")
    return found


def _spelled(written: str, names: Iterable[str]) -> str | None:
    """The name that is this one, or that is this one but for the case of its letters."""
    same = [name for name in names if name.lower() == written.lower()]
    return written if written in same else next(iter(same), None)


def _near(written: str, names: Iterable[str]) -> str:
    near = get_close_matches(written, list(names), 1)
    return f"; did you mean {near[0]}?" if near else ""
