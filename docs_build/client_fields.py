"""Write the options of jobs in the Python package, from the OpenAPI document: python -m docs_build.client_fields"""

from collections.abc import Iterator, Mapping
from typing import Any

from docs_build.openapi import PUBLISHED
from docs_build.reference import document

PAGE = PUBLISHED.parents[2] / "client/src/punctual/fields.py"
BEGIN, END = "# Written by `python -m docs_build.client_fields` from the OpenAPI document:\n", "# The end of the written part."
OF_METHODS = ("type", "payload", "message", "target", "key")  # parameters of their own
NAMES = {
    "RetryRequest": "RetryFields",
    "CallBackRequest": "CallbackFields",
    "LimitRequest": "LimitFields",
    "NotificationsRequest": "NotificationFields",
    "JsonObject": "Mapping[str, Any]",
    "MaybeInstant": "When | None",
}
PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "object": "Mapping[str, Any]", "null": "None"}


def text() -> str:
    """The page with its written part as it should be."""
    schemas = document()["components"]["schemas"]
    of_job, of_task = (schemas[name]["properties"] for name in ("HttpJobRequest", "HttpTaskRequest"))
    shared = {name: _kind(rule) for name, rule in of_job.items() if name in of_task and name not in OF_METHODS}
    changes = {name: _kind(rule) for name, rule in schemas["JobChange"]["properties"].items() if name != "delay"}
    removable = {name: kind if kind.endswith("None") else f"{kind} | None" for name, kind in shared.items()}
    part = [
        *_typed("JobOptions", "The options that jobs and tasks share.", shared),
        *_typed("JobOptionChanges", "The changes of these options of a task; None removes a field.", removable),
        *_typed("JobChanges", "The changes of a job, beside `delay` and `http`.", changes),
    ]
    before, _, rest = PAGE.read_text().partition(BEGIN)
    return f"{before}{BEGIN}" + "\n".join(part) + f"\n\n\n{END}{rest.partition(END)[2]}"


def _typed(name: str, meaning: str, kinds: Mapping[str, str]) -> Iterator[str]:
    yield from ("", "", f"class {name}(TypedDict, total=False):", f'    """{meaning}"""', "")
    yield from (f"    {field}: {kind}" for field, kind in kinds.items())


def _kind(rule: Mapping[str, Any]) -> str:
    """The type of a field."""
    if parts := rule.get("anyOf") or rule.get("allOf"):
        return " | ".join(map(_kind, parts))
    if "$ref" in rule:
        name = str(rule["$ref"]).rpartition("/")[2]
        return NAMES.get(name, name)
    if rule.get("format") == "date-time":
        return "When"
    return f"Iterable[{_kind(rule['items'])}]" if rule["type"] == "array" else PLAIN[str(rule["type"])]


if __name__ == "__main__":
    PAGE.write_text(text())
