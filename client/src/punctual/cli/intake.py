"""`punctual intake`: messages of the intake queue that no job was made of."""

from typing import Annotated

import typer
from typer import Argument

from punctual.cli import _options as options
from punctual.cli import _words as words
from punctual.cli._app import Cli, command, group
from punctual.cli._output import Column, instants

Id = Annotated[str, Argument(metavar="ID", help="The id of the message, as `list` shows it.")]
Ids = Annotated[list[str], Argument(metavar="ID...", help="The ids of the messages.")]


def build() -> typer.Typer:
    app = group("intake", "Messages of the intake queue that no job was made of.")
    message = "5f1a2b3c-0000-4000-8000-000000000000"
    command(app, "list", "punctual intake list")(list_letters)
    command(app, "show", f"punctual intake show {message}")(show)
    command(app, "retry", f"punctual intake retry {message}")(retry)
    command(app, "delete", f"punctual intake delete {message} --yes")(delete)
    return app


def list_letters(cli: Cli, limit: options.Limit = 20) -> None:
    """List the messages that no job was made of, with the reason."""
    now = cli.now()
    count = cli.out.entries(
        cli.client.intake.list(limit=limit or None),
        (
            Column("id", lambda each: each.message_id, essential=True),
            instants("sent", lambda each: each.sent_at, now, essential=True),
            Column("owner", lambda each: each.owner or ""),
            Column("error", lambda each: words.short(each.error or "")),
        ),
        raw=lambda each: each.raw,
        none="There are no dead letters of the intake. Those of jobs: punctual dead-letters list",
        id=lambda each: each.message_id,
    )
    if limit and count == limit:
        cli.out.remark(f"At most {limit} are shown. For all: --limit 0")


def show(cli: Cli, id: Id) -> None:
    """Show a message, and why no job was made of it."""
    found, now = cli.client.intake.get(id), cli.now()
    cli.out.details(
        found.raw,
        (
            ("id", found.message_id),
            ("sent", words.clock(found.sent_at, now)),
            ("sender", found.sender),
            ("owner", found.owner),
            ("error", found.error),
            ("body", found.body),
        ),
        quiet=found.message_id,
    )


def retry(cli: Cli, ids: Ids) -> None:
    """Put messages into the intake again."""
    for id in ids:
        cli.client.intake.retry(id)
        cli.out.result({"message_id": id}, f"The message {id} is in the intake again.", quiet=id)


def delete(cli: Cli, ids: Ids, yes: options.Yes = False) -> None:
    """Delete messages. No job is made of them."""
    for id in ids:
        cli.confirm(f"Delete the message {id}?", yes)
        cli.client.intake.delete(id)
        cli.out.result({"message_id": id}, f"The message {id} is deleted.", quiet=id)
