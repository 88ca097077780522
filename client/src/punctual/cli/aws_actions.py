"""`punctual aws-actions`: the operations of AWS that jobs of the type `aws` may call."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer
from typer import Argument

from punctual.cli import _options as options
from punctual.cli._app import Cli, Refused, command, group
from punctual.cli._output import Column
from punctual.records import AwsAction

Search = Annotated[list[str] | None, Argument(metavar="SEARCH", help="Only those whose names have all of these words.")]
Name = Annotated[str, Argument(metavar="NAME", help="The service and the operation, such as s3:CopyObject.")]
ALLOW = "Operators allow actions by the option allowed_actions of the stage."


def build() -> typer.Typer:
    app = group("aws-actions", "The operations of AWS that jobs of the type aws may call.")
    command(app, "list", "punctual aws-actions list", "punctual aws-actions list s3 copy", owned=True)(list_actions)
    command(
        app,
        "show",
        "punctual aws-actions show s3:CopyObject",
        "punctual aws-actions show s3:CopyObject --json | jq .parameters_schema",
        owned=True,
    )(show)
    return app


def list_actions(cli: Cli, search: Search = None, everyone: options.Everyone = False) -> None:
    """List the operations of AWS that your jobs may call."""
    words = [each.lower() for each in search or ()]
    cli.out.entries(
        (each for each in cli.client.aws_actions(scope="all" if everyone else None) if all(word in each.name.lower() for word in words)),
        (
            Column("name", lambda each: each.name, essential=True),
            Column("repeatable", lambda each: "yes" if each.idempotent else "no"),
            Column("summary", lambda each: each.summary),
        ),
        raw=lambda each: each.raw,
        none=f"No action has such a name. {ALLOW}" if words else f"Your jobs may call no action of AWS. {ALLOW}",
        id=lambda each: each.name,
    )


def show(cli: Cli, name: Name, everyone: options.Everyone = False) -> None:
    """Show an operation of AWS and its parameters, the required ones first.

    The JSON Schema of the parameters: --json
    """
    service, colon, action = name.partition(":")
    if not (service and colon and action):
        raise Refused("must be a service and an operation, such as s3:CopyObject", field="NAME", hint="See: punctual aws-actions list")
    found = cli.client.aws_action(service, action, scope="all" if everyone else None)
    cli.out.details(found.raw, (*_facts(found), *_parameters(found.parameters_schema)), quiet=found.name)


def _facts(found: AwsAction) -> Iterator[tuple[str, object]]:
    yield from (("name", found.name), ("summary", found.summary), ("documentation", found.documentation))
    yield "repeated if its answer is lost", "yes" if found.idempotent else "only if the payload has idempotent: true"


def _parameters(schema: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    required = schema.get("required", ())
    for name, field in sorted(schema.get("properties", {}).items(), key=lambda each: each[0] not in required):
        kind = "" if "$ref" in field else field.get("type", "any JSON")
        choices = f" ({', '.join(field['enum'][:8])}{', …' if len(field['enum']) > 8 else ''})" if "enum" in field else ""
        marks = ", ".join(part for part in (f"{kind or 'object'}{choices}", "required" if name in required else "") if part)
        yield name, f"{marks}. {field.get('description', '')}".strip()
