"""Checks of a valid request against the stage: whether its targets exist, and whether its jobs may call their resources.

A check yields the broken rules, each with the field that breaks it.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from lambdas.rest import envelope, unknown_fields
from scheduler.model.named_target import NamedTarget
from scheduler.model.receiver import NamedReceiver
from scheduler.model.spec import LONGEST_ATTEMPT_MS
from scheduler.targets import payload_schema, placeholders, registry
from scheduler.targets.base import NotAllowed, Reach
from scheduler.targets.named_target import NO_NETWORK, merged, overridden

Field = tuple[str | int, ...]
Broken = tuple[Field, str]  # a field and the rule that it breaks


@dataclass(frozen=True, slots=True)
class Stage:
    """The targets and resources that a request may name in this stage."""

    find_target: Callable[[str], NamedTarget | None]
    reach: Reach
    raw_http: bool
    events: bool
    receivers: Callable[[], Sequence[NamedReceiver]] = tuple  # of the owner; read once, for a request that needs them

    def within(self, allow: Sequence[str]) -> "Stage":
        """The stage as jobs of a private target with this list may reach it; without one, as jobs of a public target may."""
        return replace(self, reach=self.reach.within(allow)) if allow else self

    @classmethod
    def of(cls, ports: Any, owner: str = "") -> "Stage":
        """The targets and resources that requests may name in the stage of a function with these ports, `_runtime.Api`.

        `owner`: of the jobs that a request creates; empty: a request for jobs of any owner, such as one for a named target.
        """
        reach = ports.reach.of(owner) if owner else ports.reach
        return cls(ports.named.find, reach, ports.rules.raw_http, ports.rules.events, cache(lambda: ports.receivers.all(owner)))


@cache
def payload_of(job_type: str) -> TypeAdapter[Any]:
    """The validation and the JSON Schema of a task type's payload."""
    return TypeAdapter(registry.load(job_type).payload)


def caller_schema(target: NamedTarget) -> dict[str, Any]:
    """The JSON Schema of a job's payload for a target: the target's own, or the type's without the fields that the target locks."""
    if target.payload_schema is not None:
        return dict(target.payload_schema)
    whole = payload_of(target.kind).json_schema()
    fields = {name: field for name, field in whole["properties"].items() if name not in target.locked}
    required = [name for name in whole.get("required", ()) if name not in target.defaults]
    return whole | {"properties": fields, "required": required}


def of_shape(job_type: str, payload: Mapping[str, Any]) -> Iterator[Broken]:
    """The rules of its type that a payload breaks, in any stage."""
    try:
        payload_of(job_type).validate_json(json.dumps(payload), strict=True)
    except ValidationError as error:
        known = [each.name for each in fields(registry.load(job_type).payload)]
        for each in error.errors(include_url=False, include_input=False):
            unknown = each["type"] == "unexpected_keyword_argument" and len(each["loc"]) == 1
            yield each["loc"], envelope.rule(each) + (unknown_fields.hint(str(each["loc"][0]), known) if unknown else "")


def of_reach(job_type: str, payload: Mapping[str, Any], stage: Stage) -> Iterator[Broken]:
    """The rule that a payload breaks by the resource that it calls. The payload must be valid for the type."""
    try:
        registry.check_reach(job_type, payload, stage.reach)
    except NotAllowed as error:
        yield (error.field,) if error.field else (), str(error)


def of_payload(job_type: str, payload: Mapping[str, Any], stage: Stage) -> list[Broken]:
    """The rules that a payload breaks: those of its type or, if it breaks none, those of the stage."""
    return list(of_shape(job_type, payload)) or list(of_reach(job_type, payload, stage))


def of_target(target: NamedTarget | None, payload: Mapping[str, Any], stage: Stage) -> list[Broken]:
    """The rules that a payload breaks: those of the target, its locks and schema, or, if it breaks none, those of its type."""
    if target is None:
        return [((), "its target no longer exists")]
    if target.allow and not stage.reach.network:
        return [((), f"its target is private: {NO_NETWORK}")]
    broken: list[Broken] = [((name,), "is locked by the target") for name in overridden(target, payload)]
    if target.payload_schema is not None:
        broken += payload_schema.broken(target.payload_schema, payload)
    broken += of_placeholders(target.kind, payload)
    return broken or of_payload(target.kind, merged(target, payload), stage.within(target.allow))


def implied(job_type: str | None, target: NamedTarget | None, payload: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that a new payload gets from its others, such as the method of an HTTP request with a body.

    A target that states the schema of its payloads decides alone what they contain.
    """
    if target is None:
        return {} if job_type is None else dict(registry.load(job_type).implied(payload))
    return {} if target.payload_schema is not None else dict(registry.load(target.kind).implied(merged(target, payload)))


def of_placeholders(job_type: str, payload: Mapping[str, Any]) -> Iterator[Broken]:
    """The rules that the placeholders of a payload, as a request gives it, break."""
    return placeholders.broken(payload, equal_attempts=registry.load(job_type).equal_attempts)


def of_timeout(job_type: str, seconds: int) -> Iterator[str]:
    """The rule that a time-out of jobs of a type breaks: an executor works on an attempt for 14 minutes at most."""
    if seconds * 1000 > LONGEST_ATTEMPT_MS and registry.load(job_type).ends is None:
        yield f"must be at most {LONGEST_ATTEMPT_MS // 1000}: only jobs that wait for work in AWS (ecs, stepfunctions) may take longer"


def of_callback(job_type: str, payload: Mapping[str, Any]) -> Iterator[Broken]:
    """The reason why a job of this type and payload cannot report by call-back."""
    try:
        registry.check_callback(job_type, payload)
    except NotAllowed as error:
        yield (), str(error)


def of_events(requested: bool, stage: Stage) -> Iterator[Broken]:
    """The rule that a request for events breaks in a stage without an event bus."""
    if requested and not stage.events:
        yield ("events",), "this stage has no event bus: its operators deploy one with the option events"


def within(field: str, broken: Iterable[Broken]) -> Iterator[Broken]:
    """The same rules for the part of a request in `field`."""
    return (((field, *part), rule) for part, rule in broken)


def error_of(broken: Iterable[Broken]) -> ValidationError:
    """The error that lists these rules, each with its field: the first ones, and the number of the others."""
    rules = list(broken)
    number = envelope.listed(len(rules))
    counted: list[Broken] = [((), envelope.more(len(rules) - number))] if number < len(rules) else []
    errors = [
        InitErrorDetails(type=PydanticCustomError("value_error", "{error}", {"error": rule}), loc=field, input=None)
        for field, rule in rules[:number] + counted
    ]
    return ValidationError.from_exception_data("request", errors)
