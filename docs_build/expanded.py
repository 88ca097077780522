"""The OpenAPI document with all its parts in their places, as pages, other schemas and tests read it."""

import copy
from typing import Any

Json = dict[str, Any]


def expanded(document: Json) -> Json:
    """The document with the parts that its operations refer to in their places, and with all fields in each object."""
    components, whole = document["components"], copy.deepcopy(document)
    for verbs in whole["paths"].values():
        for operation in verbs.values():
            operation["parameters"] = [_found(each, components) for each in operation.get("parameters", ())]
            operation["responses"] = {code: copy.deepcopy(_found(each, components)) for code, each in operation["responses"].items()}
            for response in operation["responses"].values():
                content = response["content"]["application/json"]
                if "answer" in content.get("examples", {}):
                    content["example"] = _found(content.pop("examples")["answer"], components)["value"]
    whole["components"]["schemas"] = {
        name: _with_instants(flat(schema, components), components) for name, schema in components["schemas"].items()
    }
    return whole


def _with_instants(schema: Json, components: Json) -> Json:
    """The schema with the rule of each instant that may be null in its place."""
    fields = schema.get("properties", {})
    of_instants = {name: rule for name, rule in fields.items() if rule.get("$ref", "").endswith("/MaybeInstant")}
    if not of_instants:
        return schema
    rule = components["schemas"]["MaybeInstant"]
    own = {name: {key: value for key, value in {**rule, **field}.items() if key != "$ref"} for name, field in of_instants.items()}
    return {**schema, "properties": {**fields, **own}}


def flat(schema: Json, components: Json) -> Json:
    """An object that consists of parts (`allOf`) as one object with all fields; any other schema as it is."""
    if "allOf" not in schema:
        return schema
    parts = [flat(_found(part, components), components) for part in schema["allOf"]]
    properties = {name: rule for part in parts for name, rule in part.get("properties", {}).items()}
    required = [name for part in parts for name in part.get("required", ())]
    whole: Json = {**schema, "type": "object", "properties": properties, "required": required}
    del whole["allOf"]
    return whole | ({"additionalProperties": False} if whole.pop("unevaluatedProperties", None) is False else {})


def _found(part: Json, components: Json) -> Json:
    """The part itself, or the one that it refers to."""
    if "$ref" not in part:
        return part
    kind, name = part["$ref"].removeprefix("#/components/").split("/")
    found: Json = components[kind][name]
    return found
