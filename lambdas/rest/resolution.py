"""What a request names, checked against the stage once the request's shape is valid: targets, and what jobs may reach.

A check yields the broken rules, each with the field that breaks it.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from lambdas.rest import envelope
from scheduler.targets import payload_schema, registry
from scheduler.targets.base import NotAllowed, Reach
from scheduler.targets.named_target import NamedTarget, merged, overridden

Field = tuple[str | int, ...]
Broken = tuple[Field, str]  # a field and the rule that it breaks


@dataclass(frozen=True, slots=True)
class Stage:
    """What a request may name in this stage."""

    find_target: Callable[[str], NamedTarget | None]
    reach: Reach
    raw_http: bool


@cache
def payload_of(job_type: str) -> TypeAdapter[Any]:
    """The check and the JSON Schema of a task type's payload."""
    return TypeAdapter(registry.load(job_type).payload)


def given_to(target: NamedTarget) -> dict[str, Any]:
    """The JSON Schema of what a job gives to a target: its own, or what its defaults leave open of the type's."""
    if target.payload_schema is not None:
        return dict(target.payload_schema)
    whole = payload_of(target.kind).json_schema()
    fields = {name: field for name, field in whole["properties"].items() if name not in target.locked}
    required = [name for name in whole.get("required", ()) if name not in target.defaults]
    return whole | {"properties": fields, "required": required}


def of_shape(job_type: str, payload: Mapping[str, Any]) -> Iterator[Broken]:
    """The rules of its type that a payload breaks. It needs no stage."""
    try:
        payload_of(job_type).validate_json(json.dumps(payload), strict=True)
    except ValidationError as error:
        yield from ((each["loc"], envelope.rule(each)) for each in error.errors(include_url=False, include_input=False))


def of_reach(job_type: str, payload: Mapping[str, Any], stage: Stage) -> Iterator[Broken]:
    """What a payload, which is one of the type, asks for and may not reach."""
    try:
        registry.check_reach(job_type, payload, stage.reach)
    except NotAllowed as error:
        yield (error.field,) if error.field else (), str(error)


def of_payload(job_type: str, payload: Mapping[str, Any], stage: Stage) -> list[Broken]:
    """What is wrong with a payload of the type: its shape, or else what it may not reach."""
    return list(of_shape(job_type, payload)) or list(of_reach(job_type, payload, stage))


def of_target(target: NamedTarget | None, payload: Mapping[str, Any], stage: Stage) -> list[Broken]:
    """What is wrong with a payload for the target: by its locks and its own schema, or else by its type."""
    if target is None:
        return [((), "its target does not exist any more")]
    broken: list[Broken] = [((name,), "is set by the target and locked") for name in overridden(target, payload)]
    if target.payload_schema is not None:
        broken += payload_schema.broken(target.payload_schema, payload)
    return broken or of_payload(target.kind, merged(target, payload), stage)


def of_callback(job_type: str, payload: Mapping[str, Any]) -> Iterator[Broken]:
    """Why a job of the type and payload cannot report by call-back."""
    try:
        registry.check_callback(job_type, payload)
    except NotAllowed as error:
        yield (), str(error)


def within(field: str, broken: Iterable[Broken]) -> Iterator[Broken]:
    """The same rules, of a part of the request that is in `field`."""
    return (((field, *part), rule) for part, rule in broken)


def error_of(broken: Iterable[Broken]) -> ValidationError:
    """The error that names these rules, each with its field."""
    errors = [
        InitErrorDetails(type=PydanticCustomError("value_error", "{error}", {"error": rule}), loc=field, input=None)
        for field, rule in broken
    ]
    return ValidationError.from_exception_data("request", errors)
