"""`punctual principals`: AWS roles that act for an owner."""

from typing import Annotated

import typer
from typer import Argument, Option

from punctual.cli import _options as options
from punctual.cli import _whose
from punctual.cli import _words as words
from punctual.cli._app import Cli, Refused, command, group, only
from punctual.cli._output import Column
from punctual.cli.keys import Scopes

Id = Annotated[str, Argument(metavar="ID", help="The id of the principal, as `list` shows it.")]
UniqueId = Annotated[
    str | None, Option("--unique-id", metavar="ID", help="The unique id of the role (AROA…), by which SQS names a sender.")
]


def build() -> typer.Typer:
    app = group("principals", "AWS roles that act for an owner, without an API key. Operators see them, administrators change them.")
    arn = "arn:aws:iam::123456789012:role/importer"
    command(app, "list", "punctual principals list")(list_principals)
    command(app, "create", f"punctual principals create {arn} --owner billing --scope jobs:write")(create)
    command(app, "show", "punctual principals show p-1")(show)
    command(app, "update", "punctual principals update p-1 --scope 'jobs:*' --scope tasks:read")(update)
    command(app, "delete", "punctual principals delete p-1 --yes")(delete)
    return app


def list_principals(cli: Cli) -> None:
    """List the AWS roles that act for an owner."""
    cli.out.entries(
        cli.client.principals.list(),
        (
            Column("id", lambda each: each.id, essential=True),
            Column("arn", lambda each: each.arn, essential=True),
            Column("owner", lambda each: each.owner, essential=True),
            Column("scopes", lambda each: words.words(each.scopes)),
            Column("unique id", lambda each: each.unique_id or ""),
        ),
        raw=lambda each: each.raw,
        none="There are no principals. Create one: punctual principals create ARN --owner OWNER --scope jobs:write",
        id=lambda each: each.id,
    )


def create(
    cli: Cli,
    arn: Annotated[str, Argument(metavar="ARN", help="The ARN of a role, or a pattern with * for several.")],
    owner: Annotated[str, Option("--owner", metavar="OWNER", help="The name or the id of the user or team for whom it acts.")],
    scope: Scopes = None,
    unique_id: UniqueId = None,
) -> None:
    """Let an AWS role act for a user or a team."""
    if not scope:
        raise Refused("is missing", field="--scope", hint="A role that creates and reads jobs: --scope 'jobs:*'")
    found = only(_whose.matches(cli.client, owner), owner, "owner", "--owner")
    made = cli.client.principals.create(arn, found.id, scope, unique_id=unique_id)
    cli.out.result(made.raw, f"Principal {made.id} acts for {found}, with {words.words(made.scopes)}.", quiet=made.id)


def show(cli: Cli, id: Id) -> None:
    """Show a principal."""
    found = cli.client.principals.get(id)
    cli.out.details(
        found.raw,
        (
            ("id", found.id),
            ("arn", found.arn),
            ("owner", found.owner),
            ("scopes", words.words(found.scopes)),
            ("unique id", found.unique_id),
            ("created", words.clock(found.created_at, cli.now())),
            ("by", found.made_by),
        ),
        quiet=found.id,
    )


def update(
    cli: Cli,
    id: Id,
    owner: Annotated[str | None, Option("--owner", metavar="OWNER", help="The name or the id of another user or team.")] = None,
    scope: Scopes = None,
    unique_id: UniqueId = None,
) -> None:
    """Change the owner, the scopes or the unique id of a principal. Absent options change nothing."""
    found = None if owner is None else only(_whose.matches(cli.client, owner), owner, "owner", "--owner")
    changes = options.present(owner=found and found.id, scopes=scope, unique_id=unique_id)
    if not changes:
        raise Refused("give something to change", field="--scope", hint="See: punctual principals update --help")
    made = cli.client.principals.update(id, **changes)
    cli.out.result(made.raw, f"Principal {made.id} is changed.", quiet=made.id)


def delete(cli: Cli, id: Id, yes: options.Yes = False) -> None:
    """Delete a principal: within half a minute, its role is accepted no more."""
    cli.confirm(f"Delete the principal {id}? Programs with its role stop working.", yes)
    cli.client.principals.delete(id)
    cli.out.result({"id": id}, f"Principal {id} is deleted.", quiet=id)
