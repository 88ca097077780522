"""Write the JSON Schema of tasks.yaml, from the OpenAPI document: python -m docs_build.tasks_schema

An editor completes and checks a file by it. `punctual tasks apply` only reads the names of the fields from it: the API checks the tasks.
"""

import json
from pathlib import Path
from typing import Any

from docs_build import openapi
from docs_build.expanded import expanded

ROOT = Path(__file__).parent.parent
PACKAGED = ROOT / "client/src/punctual/plan/tasks.schema.json"

Json = dict[str, Any]

KEY = r'^(?![ .]$|\.\.$)(?! )[^/?#%\\"`\u0000-\u001f\u007f]{1,255}(?<! )$'
LABEL = "^[A-Za-z0-9_.:/-]{1,24}$"  # with `managed:` in front it is a tag
WHAT = ("message", "type", "target")
_REF = "#/components/schemas/"


def schema(document: Json) -> Json:
    """Return the schema of a file of tasks for an API with this OpenAPI document."""
    schemas = expanded(document)["components"]["schemas"]
    typed = {name: schemas[ref.removeprefix(_REF)] for name, ref in schemas["TypedTaskRequest"]["discriminator"]["mapping"].items()}
    message, target = schemas["MessageTaskRequest"]["properties"], schemas["TargetTaskRequest"]["properties"]
    fields = {
        **{name: field for name, field in message.items() if name != "message"},
        "key": {"type": "string", "pattern": KEY, "description": "The name by which `apply` finds the task again. It never changes."},
        "message": message["message"],
        "type": {
            "anyOf": [{"type": "string", "enum": sorted(typed)}, {"type": "string", "minLength": 1}],
            "description": "The type, which decides about the payload. With a target: that of the target, or absent.",
        },
        "target": target["target"],
        "payload": {"type": "object", "description": "The payload of the type. For a target: the fields that the target does not set."},
    }
    first = ("key", "name", "description", "schedule", *WHAT, "payload")
    whole: Json = _local(
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Tasks of Punctual as code",
            "description": "The file that `punctual tasks apply` reads. Top-level fields that begin with `x-` are free, for YAML anchors.",
            "type": "object",
            "properties": {
                "label": {
                    "type": "string",
                    "pattern": LABEL,
                    "description": "The tasks of this file get the tag `managed:LABEL`, by which `apply --prune` finds those that left it.",
                },
                "tasks": {"type": "array", "items": {"$ref": "#/$defs/Task"}, "description": "The tasks. Each has a key of its own."},
            },
            "patternProperties": {"^x-": {}},
            "additionalProperties": False,
            "required": ["tasks"],
            "$defs": {
                "Task": {
                    "type": "object",
                    "description": "A task: what to run, as for a job, and when. Give `message`, `type` or `target`.",
                    "properties": {name: fields[name] for name in (*first, *(name for name in fields if name not in first))},
                    "additionalProperties": False,
                    "required": ["key", "name"],
                    "anyOf": [{"required": [name]} for name in WHAT],
                    "allOf": [
                        {"if": {"required": ["message"]}, "then": {"properties": dict.fromkeys(("type", "target", "payload"), False)}},
                        *(_of_type(name, request) for name, request in sorted(typed.items())),
                    ],
                },
                **{name: schemas[name] for name in sorted(_used([message, target, *typed.values()], schemas))},
            },
        }
    )
    return whole


def _of_type(name: str, request: Json) -> Json:
    """The payload of a task with this type, without a target or a message."""
    others = {"anyOf": [{"required": ["target"]}, {"required": ["message"]}]}
    is_type = {"properties": {"type": {"const": name}}, "required": ["type"], "not": others}
    return {"if": is_type, "then": {"properties": {"payload": request["properties"]["payload"]}, "required": ["payload"]}}


def _used(node: Any, schemas: Json) -> set[str]:
    """The names of all schemas that a part of the document refers to."""
    found: set[str] = set()
    nodes = [node]
    while nodes:
        node = nodes.pop()
        if isinstance(node, dict) and isinstance(node.get("$ref"), str):
            name = node["$ref"].removeprefix(_REF)
            nodes += [schemas[name]] if name not in found else []
            found.add(name)
        nodes += node.values() if isinstance(node, dict) else node if isinstance(node, list) else []
    return found


def _local(node: Any) -> Any:
    """The same with references into the schema itself, and without what only OpenAPI knows."""
    if isinstance(node, dict):
        return {
            name: value.replace(_REF, "#/$defs/") if name == "$ref" else _local(value)
            for name, value in node.items()
            if name != "discriminator"
        }
    return [_local(each) for each in node] if isinstance(node, list) else node


def text() -> str:
    """Return the schema as it is stored: the same for the same OpenAPI document."""
    return json.dumps(schema(json.loads(openapi.PUBLISHED.read_text())), indent=1, ensure_ascii=False) + "\n"


def main() -> int:
    PACKAGED.write_text(text())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
