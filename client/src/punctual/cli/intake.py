"""`punctual intake`: messages of the intake queues of which no job was made."""

from typing import Annotated

import typer
from typer import Argument, Option

from punctual.cli import _options as options
from punctual.cli import _words as words
from punctual.cli._app import FAILED, Cli, Refused, command, group
from punctual.cli._output import Column, instants
from punctual.records import IntakeLetter

Id = Annotated[str, Argument(metavar="ID", help="The id of the message, as `list` shows it.")]
Ids = Annotated[list[str], Argument(metavar="ID...", help="The ids of the messages.")]


def build() -> typer.Typer:
    app = group("intake", "Messages of the intake queues of which no job was made, or not all jobs.")
    message = "5f1a2b3c-0000-4000-8000-000000000000"
    command(app, "list", "punctual intake list", "punctual intake list --unknown")(list_letters)
    command(app, "show", f"punctual intake show {message}")(show)
    command(app, "retry", f"punctual intake retry {message}", f"punctual intake retry {message} --body @message.json")(retry)
    command(app, "delete", f"punctual intake delete {message} --yes")(delete)
    return app


def list_letters(
    cli: Cli,
    unknown: Annotated[bool, Option("--unknown", help="Those of unknown senders; for operators.")] = False,
    limit: options.Limit = 20,
) -> None:
    """List the messages of which no job was made, with the reason."""
    now = cli.now()
    count = cli.out.entries(
        cli.client.intake.list(unknown=unknown, limit=limit or None),
        (
            Column("id", lambda each: each.message_id, essential=True),
            instants("sent", lambda each: each.sent_at, now, essential=True),
            Column("queue", lambda each: each.queue),
            Column("sender", lambda each: each.sender),
            Column("why", lambda each: words.short(_why(each)), piped=_why),
        ),
        raw=lambda each: each.raw,
        none="There are no dead letters of the intake. Those of jobs: punctual dead-letters list",
        id=lambda each: each.message_id,
    )
    if limit and count == limit:
        cli.out.remark(f"At most {limit} are shown. For all: --limit 0")


def _why(letter: IntakeLetter) -> str:
    return "; ".join(map(str, letter.errors))


def show(cli: Cli, id: Id) -> None:
    """Show a message, and why no job was made of it."""
    found, now = cli.client.intake.get(id), cli.now()
    cli.out.details(
        found.raw,
        (
            ("id", found.message_id),
            ("queue", found.queue),
            ("sender", found.sender),
            ("owner", found.owner or "unknown"),
            ("sent", words.clock(found.sent_at, now)),
            ("refused", words.clock(found.refused_at, now)),
            ("why", "\n".join(map(str, found.errors))),
            ("accepted jobs", found.accepted or ""),
            ("body", f"{found.body or ''}{' …' if found.cut else ''}"),
        ),
        quiet=found.message_id,
    )


def retry(
    cli: Cli,
    ids: Ids,
    body: Annotated[
        str | None, Option("--body", metavar="JSON", help="A corrected body for one message; @FILE reads a file, @- the standard input.")
    ] = None,
) -> int | None:
    """Create the jobs of messages. The exit code is 1 if some are refused again."""
    if body is not None and len(ids) > 1:
        raise Refused("goes with one message", field="--body")
    corrected = None if body is None else options.object_of("--body", body)
    refused = 0
    for id in ids:
        result = cli.client.intake.retry(id, corrected)
        left = f" {result.refused} were refused, and are still in the dead letter." if result.refused else ""
        jobs = f"{result.accepted} job{'' if result.accepted == 1 else 's'}"
        cli.out.result(result.raw, f"Message {id}: {jobs} created.{left}", quiet=id)
        refused += result.refused
    return FAILED if refused else None


def delete(cli: Cli, ids: Ids, yes: options.Yes = False) -> None:
    """Delete messages. No job is made of them."""
    for id in ids:
        cli.confirm(f"Delete the message {id}?", yes)
        cli.client.intake.delete(id)
        cli.out.result({"message_id": id}, f"The message {id} is deleted.", quiet=id)
