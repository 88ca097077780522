"""Write the generated parts of the reference pages, from the OpenAPI document: python -m docs_build.reference

A part begins with `<!-- generated: NAME -->` and ends with `<!-- end -->`.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from docs_build.expanded import expanded
from docs_build.openapi import PUBLISHED
from lambdas.rest import door

PAGES = PUBLISHED.parent
BASE = "/api/v1"
Schema = Mapping[str, Any]


def document() -> dict[str, Any]:
    """The published OpenAPI document, without references to parts of operations and objects."""
    return expanded(json.loads(PUBLISHED.read_text()))


def routes(document: Schema) -> Iterator[str]:
    """A table of routes for each tag; second names are left out."""
    for tag in document["tags"]:
        yield f"### {tag['name'].capitalize()}"
        yield ""
        yield tag["description"]
        yield ""
        yield "| route | purpose | query parameters |"
        yield "|---|---|---|"
        for path, method, operation in _operations(document):
            if tag["name"] in operation["tags"] and not operation.get("deprecated"):
                query = ", ".join(f"`{each['name']}`" for each in operation.get("parameters", []) if each["in"] == "query")
                yield f"| `{method} {path}` | {_text(operation['summary'], operation.get('description', ''))} | {query} |"
        yield ""


def promised_names(document: Schema) -> Iterator[str]:
    """The routes that have a second name."""
    yield "| route | second name |"
    yield "|---|---|"
    for name, clear in door.PROMISED.items():
        yield f"| {_without_base(clear)} | {_without_base(name)} |"


def _without_base(name: str) -> str:
    method, path = door.in_words(name)
    return f"`{method} {path.removeprefix(BASE)}`"


def fields(name: str) -> Callable[[Schema], Iterator[str]]:
    """A table of the fields of this schema."""

    def table(document: Schema) -> Iterator[str]:
        schemas = document["components"]["schemas"]
        yield "| field | type | meaning |"
        yield "|---|---|---|"
        for field, schema in schemas[name]["properties"].items():
            used = _used(schema, schemas)
            yield f"| `{field}` | {_type(used)} | {_text(schema.get('description') or used.get('description', ''))} |"

    return table


def _operations(document: Schema) -> Iterator[tuple[str, str, Schema]]:
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            yield path.removeprefix(BASE), method.upper(), operation


def _text(*parts: str) -> str:
    """Texts of the document as one cell of a table."""
    sentences = [part if part.endswith(".") else f"{part}." for part in (" ".join(part.split()) for part in parts) if part]
    return " ".join(sentences).replace("|", "\\|").replace("<", "{").replace(">", "}")


def _used(schema: Schema, schemas: Schema) -> Schema:
    """The schema itself, or the one that it refers to; null among several is left out."""
    choices = [each for each in schema.get("anyOf") or schema.get("allOf") or [schema] if each.get("type") != "null"]
    if len(choices) != 1:
        return schema
    reference = choices[0].get("$ref")
    found: Schema = schemas[reference.rpartition("/")[2]] if reference else choices[0]
    return found


def _type(schema: Schema) -> str:
    if values := schema.get("enum"):
        return ", ".join(f"`{value}`" for value in values)
    if "const" in schema:
        return f"`{schema['const']}`"
    kind = str(schema.get("format") or schema.get("type") or "any")
    least, most = schema.get("minimum"), schema.get("maximum")
    longest, items = schema.get("maxLength"), schema.get("maxItems")
    if least is not None and most is not None:
        return f"{kind}, {least:,} to {most:,}"
    if least is not None:
        return f"{kind}, from {least:,}"
    if longest is not None:
        return f"{kind}, at most {longest:,} characters"
    return f"{kind}, at most {items:,}" if items is not None else kind


PARTS: dict[str, dict[str, Callable[[Schema], Iterator[str]]]] = {
    "api.md": {"routes": routes, "second names": promised_names},
    "jobs.md": {
        "fields of a request": fields("HttpJobRequest"),
        "fields of a job": fields("Job"),
        "fields of an attempt": fields("Attempt"),
    },
    "tasks.md": {"fields of a request": fields("HttpTaskRequest"), "fields of a task": fields("Task")},
}


def written(page: str, parts: Mapping[str, Callable[[Schema], Iterator[str]]], document: Schema) -> str:
    """The text of a page with its generated parts as they should be. Raises ValueError if the page lacks one."""
    for name, part in parts.items():
        begin, end = f"<!-- generated: {name} -->\n", "<!-- end -->"
        if page.count(begin) != 1:
            raise ValueError(f"the page has {page.count(begin)} parts {name}")
        before, _, rest = page.partition(begin)
        text = "\n".join(part(document)).strip()
        page = f"{before}{begin}\n{text}\n\n{end}{rest.partition(end)[2]}"
    return page


def main() -> None:
    for name, parts in PARTS.items():
        page = PAGES / name
        page.write_text(written(page.read_text(), parts, document()))


if __name__ == "__main__":
    main()
