"""`punctual targets`."""

from collections.abc import Callable
from typing import Annotated

import typer
from typer import Argument, Option

from punctual.cli import _options as options
from punctual.cli import _words as words
from punctual.cli._app import Cli, command, group
from punctual.cli._output import Column
from punctual.records import Target

Name = Annotated[str, Argument(help="The name of the target.")]
Kind = Annotated[str, Argument(help="Its kind: http, lambda, sqs, sns, eventbridge, stepfunctions, aws, email or log.")]
Defaults = Annotated[
    str | None, Option("--defaults", metavar="JSON", help="Fields of the payload that jobs need not give; @FILE reads a file.")
]
Schema = Annotated[str | None, Option("--schema", metavar="JSON", help="JSON Schema of the payload that jobs give; @FILE reads a file.")]
Locked = Annotated[list[str] | None, Option("--lock", metavar="FIELD", help="A default that jobs may not change; repeat it for several.")]
PerSecond = Annotated[float | None, Option("--rate", metavar="N", help="At most N starts a second.")]
AtOnce = Annotated[int | None, Option("--concurrency", metavar="N", help="At most N attempts at once.")]
Network = Annotated[
    str | None, Option("--network", metavar="NETWORK", help="public, or private: its jobs call hosts of the stage's private network.")
]
Allow = Annotated[
    list[str] | None,
    Option("--allow", metavar="HOST", help="A host or range that jobs of a private target may call, such as 10.0.0.0/16; repeat it."),
]
About = Annotated[str | None, Option("--description", help="Its purpose, for people.")]
Disabled = Annotated[bool, Option("--disabled", help="Jobs of it do not start.")]


def _writing(method: Callable[[Cli], Callable[..., Target]], done: str, help: str) -> Callable[..., None]:
    """Return the command that writes a target by this method of the client."""

    def write(
        cli: Cli,
        name: Name,
        kind: Kind,
        defaults: Defaults = None,
        locked: Locked = None,
        schema: Schema = None,
        rate: PerSecond = None,
        concurrency: AtOnce = None,
        network: Network = None,
        allow: Allow = None,
        description: About = None,
        disabled: Disabled = False,
    ) -> None:
        fields = options.present(
            defaults=None if defaults is None else options.object_of("--defaults", defaults),
            payload_schema=None if schema is None else options.object_of("--schema", schema),
            locked=locked,
            rate=rate,
            concurrency=concurrency,
            network=network,
            allow=allow,
            description=description,
        ) | ({"enabled": False} if disabled else {})
        made = method(cli)(name, kind, **fields)
        cli.out.result(made.raw, f"Target {made.name} is {done}.", quiet=made.name)

    write.__doc__ = help
    return write


create = _writing(lambda cli: cli.client.targets.create, "created", "Create a named target.")
replace = _writing(
    lambda cli: cli.client.targets.replace, "replaced", "Replace a named target. A field that you leave out gets its default."
)


def build() -> typer.Typer:
    app = group("targets", "Named targets: reusable destinations with defaults and limits. Administrators change them.")
    command(app, "list", "punctual targets list")(list_targets)
    command(app, "show", "punctual targets show billing --json")(show)
    command(
        app,
        "create",
        'punctual targets create billing http --defaults \'{"url": "https://billing.example.com"}\' --rate 20',
    )(create)
    command(app, "replace", "punctual targets replace billing http --defaults @billing.json --concurrency 5")(replace)
    command(app, "delete", "punctual targets delete billing --yes")(delete)
    return app


def list_targets(cli: Cli) -> None:
    """List the named targets."""
    cli.out.entries(
        cli.client.targets.list(),
        (
            Column("name", lambda each: each.name, essential=True),
            Column("kind", lambda each: each.kind, essential=True),
            Column("enabled", lambda each: "yes" if each.enabled else "no"),
            Column("rate", lambda each: "" if each.rate is None else f"{each.rate:g}/s", right=True),
            Column("at once", lambda each: each.concurrency or "", right=True),
            Column("description", lambda each: each.description or ""),
        ),
        raw=lambda each: each.raw,
        none="There are no named targets. Create one: punctual targets create --help",
        id=lambda each: each.name,
    )


def show(cli: Cli, name: Name) -> None:
    """Show a target, and which fields of the payload its jobs may give. Administrators see its defaults, too.

    The JSON Schema of these fields: --json
    """
    found, now = cli.client.targets.get(name), cli.now()
    cli.out.details(
        found.raw,
        (
            ("name", found.name),
            ("kind", found.kind),
            ("enabled", "yes" if found.enabled else "no"),
            ("description", found.description),
            ("rate", None if found.rate is None else f"{found.rate:g} a second"),
            ("at once", found.concurrency),
            ("network", f"private: {words.words(found.allow)}" if found.allow else found.network),
            ("defaults", words.document(found.defaults)),
            ("locked", words.words(found.locked or ())),
            ("schema", words.document(found.payload_schema)),
            ("jobs give", words.words(found.job_payload_schema.get("properties", ()))),
            ("version", found.version),
            ("changed", words.clock(found.updated_at, now)),
        ),
        quiet=found.name,
    )


def delete(cli: Cli, name: Name, yes: options.Yes = False) -> None:
    """Delete a named target. Jobs that refer to it fail when they start."""
    cli.confirm(f"Delete target {name}? Jobs that refer to it will fail.", yes)
    cli.client.targets.delete(name)
    cli.out.result({"name": name}, f"Target {name} is deleted.", quiet=name)
