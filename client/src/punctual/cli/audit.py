"""`punctual audit`: the changes of jobs, tasks and the stage, with their authors."""

from functools import partial
from typing import Annotated

import typer
from typer import Option

from punctual.cli import _options as options
from punctual.cli import _owners
from punctual.cli import _words as words
from punctual.cli._app import Cli, command
from punctual.cli._output import Column, instants
from punctual.records import AuditEntry

ActionName = Annotated[str | None, Option("--action", metavar="ACTION", help="Only this action, or those that begin like this: task.")]
ObjectId = Annotated[str | None, Option("--object", metavar="ID", help="Only changes of this job, task or other object.")]
Actor = Annotated[str | None, Option("--actor", metavar="ID", help="Only changes by this user (its id), or this role of AWS (its ARN).")]
Since = Annotated[str | None, Option("--since", metavar="WHEN", help="Only at or after: an instant, or a duration ago such as 1h.")]
Until = Annotated[str | None, Option("--until", metavar="WHEN", help="Only before: an instant, or a duration ago.")]


def register(app: typer.Typer) -> None:
    command(
        app,
        "audit",
        "punctual audit --since 1h",
        "punctual audit --everyone --action system --since 1d",
        "punctual audit --object 01JD4Q8XKZ38W2M5R7T9V1C4FH --json",
        owned=True,
    )(audit)


def audit(
    cli: Cli,
    everyone: options.Everyone = False,
    action: ActionName = None,
    object: ObjectId = None,
    actor: Actor = None,
    since: Since = None,
    until: Until = None,
    limit: options.Limit = 20,
) -> None:
    """List who changed what, the latest first. Without --since: in the last 30 days."""
    now = cli.now()
    chosen = options.present(
        everyone=everyone,
        action=action,
        object=object,
        actor=actor,
        from_=options.instant("--since", since, now),
        to=options.instant("--until", until, now),
        limit=limit,
    )
    listing = _owners.Listing(
        partial(cli.client.audit, **chosen),
        (
            instants("when", lambda each: each.at, now, essential=True),
            Column("by", lambda each: each.actor_name or each.actor, essential=True),
            Column("action", lambda each: each.action, essential=True),
            Column("object", lambda each: each.object or ""),
            Column("fields", lambda each: words.words(sorted(each.changes))),
            Column("answer", _answer),
        ),
        id=lambda each: each.id,
        none="There are no such changes in this time.",
        order=lambda each: each.at,
    )
    _owners.show(cli, listing, everyone=False, limit=limit)  # the API itself has one list of the changes of all users


def _answer(entry: AuditEntry) -> str:
    return "not recorded" if entry.status is None else "done" if entry.status < 300 else f"refused ({entry.status})"
