"""The OpenAPI document as it is published: a pure function of what Powertools derives from the routes and their models.

The document is made for generators of clients. Nothing here lists a route or a field, so a new one is published by the same rules:

- an operation id is the name of the route's function in camelCase; under a second name of the route it ends in `Deprecated`;
- the answers of `JobShape` are `JobAnswer`, and the object itself is `Job`;
- a request with a `type` and a `payload` is a choice by type: each alternative is a work of the type beside the fields of all works.
"""

import json
import re
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

from lambdas.rest import document_examples, document_parts, document_texts

Json = dict[str, Any]
REF = "#/components/schemas/"
DEPRECATED = "Deprecated"  # the suffix of the operation ids of second names
KEY = {
    "type": "http",
    "scheme": "bearer",
    "bearerFormat": "punctual_…",
    "description": "An API key, for programs. With one, each path begins with `/api/v1/key` instead of `/api/v1`. "
    "The scopes of the key, and the present rights of its maker, decide which routes it may use.",
}
TAGS = {
    "jobs": "One-time jobs and the runs of tasks: create, list, change, cancel.",
    "calendars": "Calendars: named sets of dates, on which tasks do not run.",
    "groups": "Groups of jobs: how many have ended, and the jobs that start when all have.",
    "tasks": "A task runs a job by a schedule. Each run is a job.",
    "monitors": "Work that runs elsewhere and pings: its deadlines, its states and its history.",
    "pings": "The open routes of monitors, authenticated by the token in the path.",
    "schedules": "Previews of schedules. Nothing is saved.",
    "dead letters": "Failed and killed jobs, grouped by error. Run one or many of them again.",
    "intake": "Messages of the intake queues of which no job was made.",
    "operations": "Change many jobs or tasks by a filter, in the background.",
    "call-backs": "Heartbeats and results of workers, authenticated by the attempt's token.",
    "ordering keys": "Queues of jobs that start one after the other.",
    "receivers": "Named receivers of notices: e-mail, webhooks, Slack, Teams and PagerDuty. The default alerts.",
    "targets": "Named targets: registered destinations with defaults and limits.",
    "users": "Users, their roles and their quotas.",
    "keys": "API keys, which people make for their programs.",
    "teams": "Teams own tasks and jobs together. Members, and invitations to become one.",
    "principals": "AWS roles that act for an owner without a secret.",
    "auth": "Sign in, refresh a token, change a password, use a second factor.",
    "audit": "The audit trail: changes, with their author and time.",
    "summaries": "The forecast of the next three hours, and statistics of the past.",
    "system": "Health, version, pauses of lanes, circuit breakers.",
}
NAMES = {  # schemas whose plain name is too vague or already in use
    "BatchShape": "BatchResult",
    "BegunShape": "BegunSecondFactor",
    "BreakersShape": "BreakerPage",
    "HeartbeatShape": "Heartbeat",
    "ChangedShape": "Confirmation",
    "DeletedShape": "DeletedTask",
    "EntryShape": "AuditEntry",
    "ErrorShape": "ErrorObject",
    "FilterShape": "RedriveFilter",
    "GroupShape": "DeadLetterGroup",
    "JobGroupsShape": "JobGroupPage",
    "ItemErrorShape": "BatchItemError",
    "LaneShape": "LaneState",
    "MinuteShape": "ForecastMinute",
    "OperationsShape": "OperationPage",
    "OverviewShape": "DeadLetterPage",
    "PageShape": "JobPage",
    "RefreshedShape": "RefreshedSession",
    "ReportedShape": "Reported",
    "ResponseShape": "TargetResponse",
    "ResultShape": "BatchItemResult",
    "ScheduledSummaryShape": "Forecast",
    "SignOnPageShape": "SignInWays",
    "SignOnShape": "SingleSignOn",
    "SystemShape": "SystemState",
    "TargetsShape": "TargetPage",
    "TaskSummaryShape": "Statistics",
    "TaskTypesShape": "TaskTypePage",
    "TextShape": "AttemptText",
    "TotpShape": "SecondFactor",
    "TrailShape": "AuditPage",
    "TypeSummaryShape": "TypeStatistics",
    "DaySummaryShape": "DayStatistics",
}
WORK = ("message", "target", "type", "payload")  # the fields that say what to run
_VALUES = ("default", "example", "examples", "enum", "const")  # keywords whose values are no schemas


def operation_id(function: str) -> str:
    """The operation id of the route that a function with this name answers."""
    first, *others = function.strip("_").split("_")
    return first + "".join(word.title() for word in others)


def published(document: Json, *, types: Sequence[str], choices: Sequence[str]) -> Json:
    """The document for generators. `choices` are the names of the requests with a `type` of `types`."""
    components = document["components"]
    schemas = components["schemas"]
    payloads = {each: f"{each.title()}Payload" for each in types}
    schemas |= _works(
        [schemas[name] for name in choices], payloads, needed={name for name in payloads.values() if schemas[name].get("required")}
    )
    for name in choices:
        schemas |= _choice(name, schemas[name], types, schemas["WorkFields"]["properties"])
    components["schemas"] = dict(sorted((name, _plain(schema)) for name, schema in schemas.items()))
    paths = {path: {verb: _operation(each) for verb, each in verbs.items()} for path, verbs in document["paths"].items()}
    document["paths"] = dict(sorted(paths.items()))
    document["tags"] = [{"name": name, "description": TAGS.get(name, name.capitalize() + ".")} for name in _tags(paths)]
    components["securitySchemes"]["key"] = KEY
    document["security"] = [*document["security"], {"key": []}]
    return document_parts.shared(document_examples.added(document_texts.added(_renamed(document))))


def _works(requests: Sequence[Json], payloads: Mapping[str, str], *, needed: Container[str]) -> Json:
    """The schemas of works (a type with its payload, a named target, or a message alone), and of the fields of all requests.

    `payloads` has the schema of each type's payload; the payloads in `needed` have required fields.
    """
    fields, *others = (request["properties"] for request in requests)
    described = {key: value for key, value in fields["target"].items() if key == "description"}
    of_target = {
        "target": _non_null(fields["target"]) | described,
        "type": {"type": "string", "enum": list(payloads), "description": "The kind of the target. It may be absent."},
        "payload": {"type": "object", "additionalProperties": True, "description": "The fields that the target does not set."},
    }
    message = _non_null(fields["message"]) | {"description": fields["message"].get("description", "")}
    common = {field: rule for field, rule in fields.items() if field not in WORK and all(each.get(field) == rule for each in others)}
    found: Json = {
        "TargetWork": {"type": "object", "properties": of_target, "required": ["target"]},
        "MessageWork": {"type": "object", "properties": {"message": message}, "required": ["message"]},
        "WorkFields": {"type": "object", "properties": common},
    }
    for each, payload in payloads.items():
        properties = {"type": {"type": "string", "const": each}, "payload": {"$ref": REF + payload}}
        required = ["type", "payload"] if payload in needed else ["type"]
        found[f"{each.title()}Work"] = {"type": "object", "properties": properties, "required": required}
    return found


def _choice(name: str, schema: Json, types: Sequence[str], common: Container[str]) -> Json:
    """The request `name` as a choice: of a type with its payload, of a named target, or of a message alone.

    Each alternative is a work, the fields in `common`, and the fields of this request alone.
    """
    own = {field: rule for field, rule in schema["properties"].items() if field not in WORK and field not in common}
    required = {"required": schema["required"]} if schema.get("required") else {}

    def variant(kind: str, description: str) -> Json:
        parts = [{"$ref": f"{REF}{part}"} for part in (f"{kind}Work", "WorkFields", f"{name}Fields")]
        return {"description": f"{schema['description']} {description}", "allOf": parts, "unevaluatedProperties": False}

    mapping = {each: f"{REF}{each.title()}{name}" for each in types}
    typed = {"oneOf": [{"$ref": ref} for ref in mapping.values()], "discriminator": {"propertyName": "type", "mapping": mapping}}
    return {
        f"{name}Fields": {"type": "object", "properties": own, **required},
        **{f"{each.title()}{name}": variant(each.title(), f"Of type `{each}`.") for each in types},
        f"Typed{name}": {"description": f"{schema['description']} The `type` determines the fields of the `payload`."} | typed,
        f"Target{name}": variant("Target", "For a named target."),
        f"Message{name}": variant("Message", "A message for the log: a short form of type `log`."),
        name: {"description": schema["description"], "anyOf": [{"$ref": f"{REF}{kind}{name}"} for kind in ("Typed", "Target", "Message")]},
    }


def _non_null(rule: Json) -> Json:
    """The rule of a field that may be null, for where it is given."""
    return next((each for each in rule.get("anyOf", ()) if each != {"type": "null"}), rule)


def _operation(operation: Json) -> Json:
    for parameter in operation.get("parameters", ()):
        parameter["schema"] = _tidy(parameter["schema"])
        parameter["schema"].pop("description", None)  # that of the parameter
    return operation


def _tags(paths: Mapping[str, Mapping[str, Json]]) -> list[str]:
    """The tags in use, in the order of `TAGS`. Tags that are missing there come last."""
    used = {tag for verbs in paths.values() for operation in verbs.values() for tag in operation.get("tags", ())}
    return [tag for tag in TAGS if tag in used] + sorted(used - TAGS.keys())


def _plain(schema: Json) -> Json:
    """A schema without titles and defaults: some generators make fields with a default required, others always send it.

    The description of a field has its default instead.
    """
    plain: Json = _everywhere(_tidy(schema), _described_default)
    return plain


def _tidy(schema: Json) -> Json:
    """A schema without titles, which repeat names, and with whole bounds of whole numbers."""
    tidy: Json = _everywhere(schema, lambda each: {key: _whole(value) for key, value in each.items() if key != "title"})
    return tidy


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _described_default(schema: Json) -> Json:
    if "default" not in schema:
        return schema
    rule = {key: value for key, value in schema.items() if key != "default"}
    if schema["default"] in (None, [], {}) or re.search(r"\b(absent|default)\b", rule.get("description", ""), re.IGNORECASE):
        return rule
    default = f"Default: {json.dumps(schema['default'])}."
    return rule | {"description": f"{rule['description']} {default}" if "description" in rule else default}


def _everywhere(schema: Any, change: Callable[[Json], Json]) -> Any:
    """The schema with every schema in it changed."""
    if isinstance(schema, list):
        return [_everywhere(each, change) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return change({key: value if key in _VALUES else _inside(key, value, change) for key, value in schema.items()})


def _inside(key: str, value: Any, change: Callable[[Json], Json]) -> Any:
    if key == "properties":  # names of fields, which may be those of keywords
        return {name: _everywhere(each, change) for name, each in value.items()}
    return _everywhere(value, change)


def _renamed(document: Json) -> Json:
    """The document with the plain names of its schemas."""
    schemas = document["components"]["schemas"]
    names = {name: _plain_name(name) for name in schemas}
    document["components"]["schemas"] = dict(sorted((names[name], schema) for name, schema in schemas.items()))
    if len(document["components"]["schemas"]) < len(schemas):
        raise ValueError(f"two schemas have one name: {sorted(names.items(), key=lambda each: each[1])}")
    text = re.sub(rf'"{REF}([^"]+)"', lambda found: f'"{REF}{names.get(found[1], found[1])}"', json.dumps(document))
    renamed: Json = json.loads(text)
    return renamed


def _plain_name(name: str) -> str:
    wrapped = re.fullmatch(r"Answer_(\w+)_", name)
    if wrapped is not None:
        return f"{_plain_name(wrapped[1])}Answer"
    return NAMES.get(name, name.removesuffix("Shape"))
