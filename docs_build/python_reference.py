"""Write the reference of the Python package: python -m docs_build.python_reference"""

import dataclasses
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import is_typeddict

import punctual
from punctual import Punctual, errors, fields, receivers, records, testing
from punctual import aws_lambda as for_lambda
from punctual import django as for_django
from punctual import fastapi as for_fastapi
from punctual import flask as for_flask

SHORT = 90  # characters of a signature in one line
PAGE = Path(__file__).parent.parent / "docs/reference/python.md"
HEAD = """# Python package

`pip install punctual-client` installs the client and a [pytest plugin](../guides/testing.md), with
httpx and nothing else. The [command line](cli.md) is the extra `cli`. [Python](../guides/python.md)
shows how to use the client. `Punctual` is the blocking client. `AsyncPunctual` has the same methods
as coroutines; its lists are asynchronous iterators.

This page is written from the docstrings by `make reference`.

"""


def text() -> str:
    """Return the page."""
    client = Punctual("https://example.com", token="t")
    parts = [HEAD, "## The client\n\n", _block("Punctual", Punctual), "\n## Its methods\n\n", _methods("client", client)]
    for name, resource in sorted(vars(client).items()):
        if not name.startswith("_"):
            parts += [f"\n## client.{name}\n\n{_prose(resource)}\n\n", _methods(f"client.{name}", resource)]
    client.close()
    for function in (punctual.verify_signature, punctual.Worker):
        parts += [f"\n## {function.__name__}\n\n", _block(function.__name__, function)]
    parts += ["\n## punctual.testing\n\n", *(_class(kind) for kind in (testing.Memory, testing.Clock, testing.Answer, testing.Call))]
    parts += ["\n## punctual.receivers\n\n", *_receivers()]
    parts += ["\n## Fields\n\n| dictionary | meaning | fields |\n|---|---|---|\n", *_fields()]
    parts += ["\n## Errors\n\n| exception | meaning |\n|---|---|\n", *_rows(errors.__dict__.values(), errors.PunctualError)]
    parts += ["\n## Records\n\n| record | meaning | fields |\n|---|---|---|\n", *_records()]
    return "".join(parts)


def _receivers() -> list[str]:
    """Return the classes of receivers, and the functions that connect one to a framework."""
    shown = (receivers.CallReceiver, receivers.Call, receivers.Answer, receivers.Store)
    kinds = [*map(_class, shown), *(_block(kind.__name__, kind) for kind in (receivers.MemoryStore, receivers.DynamoStore))]
    raised = ["\n| exception | meaning |\n|---|---|\n", *_rows(vars(receivers).values(), Exception)]
    functions: dict[str, Callable[..., object]] = {
        "punctual.fastapi.route_class": for_fastapi.route_class,
        "punctual.flask.receives": for_flask.receives,
        "punctual.django.receives": for_django.receives,
        "punctual.aws_lambda.receives": for_lambda.receives,
        "punctual.aws_lambda.receives_event": for_lambda.receives_event,
    }
    return [*kinds, *raised, "\n", *(_block(name, function) for name, function in functions.items())]


def _class(kind: type) -> str:
    has_methods = any(inspect.isfunction(value) for name, value in vars(kind).items() if not name.startswith("_"))
    return _block(kind.__name__, kind) + (_methods(kind.__name__, object.__new__(kind)) if has_methods else "")


def _block(name: str, thing: Callable[..., object]) -> str:
    return f"```text\n{name}{_signature(thing)}\n\n{inspect.getdoc(thing)}\n```\n"


def _signature(thing: Callable[..., object]) -> str:
    """Return the parameters, a line each if they are many, and the result."""
    text = re.sub(r"(: |-> )'([^']+)'", r"\1\2", str(inspect.signature(thing)))
    if len(text) < SHORT:
        return text
    return re.sub(r", (?=\w+: |\*\*?\w*,? ?|\*, )", ",\n    ", text).replace("(", "(\n    ", 1)


def _prose(thing: object) -> str:
    return (inspect.getdoc(type(thing)) or "").split("\n\n")[0].replace("\n", " ")


def _methods(prefix: str, thing: object) -> str:
    found = [name for name, value in vars(type(thing)).items() if not name.startswith("_") and inspect.isfunction(value)]
    return "```text\n" + "\n".join(_method(f"{prefix}.{name}", getattr(thing, name)) for name in found) + "```\n"


def _method(name: str, method: Callable[..., object]) -> str:
    return f"{name}{_signature(method)}\n{textwrap.indent(inspect.getdoc(method) or '', '    ')}\n"


def _rows(values: Iterable[object], base: type) -> list[str]:
    kinds = [one for one in values if isinstance(one, type) and issubclass(one, base)]
    return [f"| `{one.__name__}` | {_cell(one)} |\n" for one in kinds]


def _fields() -> list[str]:
    kinds = [one for one in vars(fields).values() if is_typeddict(one)]
    return [f"| `{one.__name__}` | {_cell(one)} | `{', '.join(one.__annotations__)}` |\n" for one in kinds]


def _records() -> list[str]:
    kinds = [
        one for one in vars(records).values() if isinstance(one, type) and issubclass(one, records.Record) and one is not records.Record
    ]
    return [
        f"| `{one.__name__}` | {_cell(one)} | `{', '.join(each.name for each in dataclasses.fields(one) if each.name != 'raw')}` |\n"
        for one in kinds
    ]


def _cell(kind: type) -> str:
    return (inspect.getdoc(kind) or "").split("\n\n")[0].replace("\n", " ").replace("|", "\\|")


def main() -> int:
    PAGE.write_text(text())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
