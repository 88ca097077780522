"""Parts of the OpenAPI document that several operations have are in `components`, and the operations refer to them."""

import json
from collections import Counter
from collections.abc import Callable, Container, Iterator
from http import HTTPStatus
from typing import Any

Json = dict[str, Any]
REF = "#/components/schemas/"
ANY_OBJECT: Json = {"type": "object", "additionalProperties": True}
MAYBE_INSTANT: Json = {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]}
FEWEST_FIELDS = 8  # of an object to which a larger one may refer: with fewer fields they are alike by chance


def shared(document: Json) -> Json:
    """The document with its common answers, parameters and examples in `components`, and schemas that say only what they add to others."""
    components = document["components"]
    components["responses"] = _responses(document)
    components["parameters"] = _parameters(document)
    components["examples"] = _examples(document)
    components["schemas"] = _extended(_with_named_objects(components["schemas"]))
    return document


def _operations(document: Json) -> Iterator[Json]:
    for verbs in document["paths"].values():
        yield from verbs.values()


def _responses(document: Json) -> Json:
    """The answers of errors, and those of success that at least two operations have."""
    found: Json = {}
    often = Counter(json.dumps(response) for operation in _operations(document) for response in operation["responses"].values())
    for operation in _operations(document):
        for code, response in operation["responses"].items():
            if not code.startswith("2") or often[json.dumps(response)] > 1:
                operation["responses"][code] = _moved(found, "responses", _response_name(code, response), response)
    return dict(sorted(found.items()))


def _response_name(code: str, response: Json) -> str:
    """The status in words; of an answer other than an error, after the schema of the answer.

    A route that needs a token has another shape of 401 too: API Gateway's own.
    """
    words = "".join(word.capitalize() for word in HTTPStatus(int(code)).phrase.split())
    if code.startswith("2"):
        schema: str = response["content"]["application/json"]["schema"]["$ref"]
        return schema.rpartition("/")[2] + ("" if code == "200" else words)
    return words + ("ByGateway" if "GatewayAnswer" in json.dumps(response) else "")


def _parameters(document: Json) -> Json:
    """The parameters that at least two operations have, by name."""
    found: Json = {}
    lists = [operation["parameters"] for operation in _operations(document) if operation.get("parameters")]
    often = Counter(json.dumps(parameter) for parameters in lists for parameter in parameters)
    names = _names(often, lambda parameter: "".join(part.capitalize() for part in parameter["name"].replace("-", "_").split("_")))
    for parameters in lists:
        for place, parameter in enumerate(parameters):
            if (name := names.get(json.dumps(parameter))) is not None:
                parameters[place] = _moved(found, "parameters", name, parameter)
    return dict(sorted(found.items()))


def _names(often: Counter[str], name_of: Callable[[Json], str]) -> dict[str, str]:
    """The name of each part that occurs at least twice. Of several parts with one name, the less common ones get `Other` before it."""
    names: dict[str, str] = {}
    for text, count in often.most_common():
        name = name_of(json.loads(text))
        while name in names.values():
            name = f"Other{name}"
        if count > 1:
            names[text] = name
    return names


def _examples(document: Json) -> Json:
    """The examples of answers, by the names of their schemas, if at least two answers have them."""
    answers = [response for operation in _operations(document) for response in operation["responses"].values()]
    answers += document["components"]["responses"].values()
    contents = [answer["content"]["application/json"] for answer in answers if "content" in answer]
    generated = [content for content in contents if "example" in content and "$ref" in content["schema"]]
    often = Counter(content["schema"]["$ref"] for content in generated)
    found: Json = {}
    for content in generated:
        name = content["schema"]["$ref"].rpartition("/")[2]
        if often[content["schema"]["$ref"]] > 1:
            example = {"value": content.pop("example")}
            content["examples"] = {"answer": _moved(found, "examples", name, example)}
    return dict(sorted(found.items()))


def _with_named_objects(schemas: Json) -> Json:
    """The schemas, of which objects inside of fields have names: generators would make them once for each object with the field.

    So has the rule of an instant that may be null, which is that of dozens of fields.
    """
    named: Json = {"JsonObject": {"description": "Any JSON object.", **ANY_OBJECT}}
    named["MaybeInstant"] = {"description": "An instant, or null: there is none.", **MAYBE_INSTANT}

    def moved(rule: Json, name: str) -> Json:
        if rule.get("anyOf") == MAYBE_INSTANT["anyOf"] and rule.keys() <= {"anyOf", "description"}:
            return {**{key: value for key, value in rule.items() if key == "description"}, "$ref": f"{REF}MaybeInstant"}
        if "anyOf" in rule:
            return {**rule, "anyOf": [moved(each, name) for each in rule["anyOf"]]}
        if {key: value for key, value in rule.items() if key != "description"} == ANY_OBJECT:
            return {**{key: value for key, value in rule.items() if key == "description"}, "$ref": f"{REF}JsonObject"}
        return _moved(named, "schemas", name, rule) if "properties" in rule else rule

    for schema in schemas.values():
        for field, rule in schema.get("properties", {}).items():
            schema["properties"][field] = moved(rule, "".join(word.capitalize() for word in field.split("_")) + "Object")
    return schemas | named


def _extended(schemas: Json) -> Json:
    """The schemas, of which an object with all fields of another one refers to these, which are a schema of their own then.

    A part of an object must allow the fields of the other parts, so `unevaluatedProperties` refuses unknown fields of the whole.
    """
    objects = {name: schema for name, schema in schemas.items() if len(schema.get("properties", ())) >= FEWEST_FIELDS}
    bases = {name: base for name, schema in objects.items() if (base := _largest_part(schema, objects)) is not None}
    extended = dict(schemas)
    for name in {*bases, *bases.values()}:
        schema, base = schemas[name], bases.get(name)
        open_part = _fields(schema, objects[base]["properties"] if base else {})
        parts = [{"$ref": f"{REF}{_part_name(base, schemas)}"}] if base else []
        if not _is_closed(schema):
            extended[name] = {"allOf": [*parts, open_part]} if base else schema
        elif name in bases.values():
            extended[_part_name(name, schemas)] = {"allOf": [*parts, open_part]} if base else open_part
            # The second part is empty: a generator would take an object of a single part for that part, and lose its name.
            extended[name] = _whole(schema, [{"$ref": f"{REF}{_part_name(name, schemas)}"}, {}])
        else:
            extended[name] = _whole(schema, [*parts, open_part])
    return dict(sorted(extended.items()))


def _largest_part(schema: Json, objects: Json) -> str | None:
    """The name of the object with the most fields of those whose fields are part of this one's."""
    fields, required = schema["properties"], set(schema.get("required", ()))
    found = [
        (len(each["properties"]), name)
        for name, each in objects.items()
        if len(each["properties"]) < len(fields)
        and _is_closed(each) is _is_closed(schema)
        and set(each.get("required", ())) == required & each["properties"].keys()
        and all(fields.get(field) == rule for field, rule in each["properties"].items())
    ]
    return max(found)[1] if found else None


def _is_closed(schema: Json) -> bool:
    return schema.get("additionalProperties") is False


def _part_name(name: str, schemas: Json) -> str:
    return f"{name}Fields" if _is_closed(schemas[name]) else name


def _fields(schema: Json, without: Container[str]) -> Json:
    """The object alone, of the fields that are not in `without`."""
    required = [name for name in schema.get("required", ()) if name not in without]
    properties = {name: rule for name, rule in schema["properties"].items() if name not in without}
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def _whole(schema: Json, parts: list[Json]) -> Json:
    described = {name: schema[name] for name in ("description",) if name in schema}
    return {**described, "allOf": parts, "unevaluatedProperties": False}


def _moved(found: Json, kind: str, name: str, part: Json) -> Json:
    """A reference to the part, which is in `found` by this name."""
    if found.setdefault(name, part) != part:
        raise ValueError(f"two {kind} of the OpenAPI document have the name {name}")
    return {"$ref": f"#/components/{kind}/{name}"}
