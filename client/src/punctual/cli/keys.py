"""`punctual keys`: the API keys of programs."""

from typing import Annotated

import typer
from typer import Argument, Option

from punctual.cli import _options as options
from punctual.cli import _words as words
from punctual.cli import signin
from punctual.cli._app import Cli, Refused, command, group
from punctual.cli._output import Column, instants

Id = Annotated[str, Argument(metavar="ID", help="The id of the key, as `list` shows it.")]
Scopes = Annotated[
    list[str] | None,
    Option(
        "--scope", metavar="SCOPE", help="jobs:read, jobs:write, jobs:*, tasks:read, tasks:write, tasks:* or admin; repeat it for several."
    ),
]
Days = Annotated[int | None, Option("--expires-in-days", metavar="N", min=1, help="It ends after N days. Default: never.")]


def build() -> typer.Typer:
    app = group("keys", "API keys, with which programs sign in. Use one with: punctual login --key, or PUNCTUAL_KEY.")
    command(app, "list", "punctual keys list", "punctual keys list --owner billing")(list_keys)
    command(
        app,
        "create",
        "punctual keys create ci --scope 'tasks:*' --expires-in-days 90",
        "punctual keys create importer --owner billing --scope jobs:write",
        "punctual keys create nightly --scope jobs:write --quiet | punctual login --key --profile nightly",
    )(create)
    command(app, "show", "punctual keys show abcdefghijklmnop")(show)
    command(app, "revoke", "punctual keys revoke abcdefghijklmnop --yes", 'printf %s "$FOUND" | punctual keys revoke --leaked')(revoke)
    return app


def list_keys(cli: Cli) -> None:
    """List API keys, without their secrets."""
    now = cli.now()
    cli.out.entries(
        cli.client.keys.list(),
        (
            Column("id", lambda each: each.id, essential=True),
            Column("name", lambda each: each.name, essential=True),
            Column("scopes", lambda each: words.words(each.scopes)),
            instants("expires", lambda each: each.expires_at, now),
            instants("last used", lambda each: each.used_at, now),
            instants("created", lambda each: each.created_at, now),
            Column("by", lambda each: each.maker),
        ),
        raw=lambda each: each.raw,
        none="There are no API keys. Create one: punctual keys create NAME --scope jobs:write",
        id=lambda each: each.id,
    )


def create(
    cli: Cli,
    name: Annotated[str, Argument(help="A name for people: the program that uses the key, such as ci.")],
    scope: Scopes = None,
    expires_in_days: Days = None,
) -> None:
    """Create an API key, and print it. It is shown only once; with --quiet it is all that is printed.

    It never has more rights than you have.
    """
    if not scope:
        raise Refused("is missing", field="--scope", hint="A key that creates and reads jobs: --scope 'jobs:*'")
    made = cli.client.keys.create(name, scope, expires_in_days=expires_in_days)
    of = f" of {cli.whose}" if cli.whose else ""
    until = f" until {words.clock(made.expires_at, cli.now())}" if made.expires_at else ""
    sentence = f"The key {made.name} ({made.id}){of} is valid{until}. Store it now, it is not shown again:\n{made.key}"
    cli.out.result(made.raw, sentence, quiet=made.key)
    cli.out.remark("Use it: punctual login --key, or in the variable PUNCTUAL_KEY")


def show(cli: Cli, id: Id) -> None:
    """Show an API key, without its secret."""
    found, now = cli.client.keys.get(id), cli.now()
    cli.out.details(
        found.raw,
        (
            ("id", found.id),
            ("name", found.name),
            ("owner", found.owner),
            ("scopes", words.words(found.scopes)),
            ("created", words.clock(found.created_at, now)),
            ("by", found.maker),
            ("expires", words.clock(found.expires_at, now)),
            ("last used", words.clock(found.used_at, now)),
        ),
        quiet=found.id,
    )


def revoke(
    cli: Cli,
    ids: Annotated[list[str] | None, Argument(metavar="[ID]...", help="The ids of the keys.")] = None,
    leaked: Annotated[
        bool, Option("--leaked", help="Read the key itself, which is asked for or read from the standard input. Any key may be given.")
    ] = False,
    yes: options.Yes = False,
) -> None:
    """Revoke API keys: within half a minute, they are accepted no more."""
    if bool(ids) == leaked:
        raise Refused("give an id or --leaked, and not both", field="ID", hint="All: punctual keys list")
    if leaked:
        cli.client.keys.revoke_leaked(signin.api_key())
        cli.out.result({"revoked": True}, "The key is revoked.")
        return
    for id in ids or ():
        cli.confirm(f"Revoke the key {id}? Programs that use it stop working.", yes)
        cli.client.keys.revoke(id)
        cli.out.result({"id": id}, f"The key {id} is revoked.", quiet=id)
