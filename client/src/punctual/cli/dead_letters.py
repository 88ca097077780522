"""`punctual dead-letters`."""

import sys
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

import typer
from typer import Argument, Option

from punctual import errors
from punctual.cli import _options as options
from punctual.cli import _owners, jobs, many
from punctual.cli import _words as words
from punctual.cli._app import FAILED, Cli, Refused, command, group, stoppable
from punctual.cli._output import Column, instants
from punctual.records import DeadLetterGroup, Redrive

Fingerprint = Annotated[str | None, Option("--fingerprint", metavar="ID", help="Only jobs of this error, by the id that `list` shows.")]
Id = Annotated[str, Argument(help="The id of the redrive.")]


def build() -> typer.Typer:
    app = group("dead-letters", "Find failed and killed jobs by error, and run them again.")
    command(app, "list", "punctual dead-letters list", "punctual dead-letters list --everyone --since 1d --type http")(list_groups)
    command(app, "jobs", "punctual dead-letters jobs 3f9c2a7e5b8d")(group_jobs)
    command(
        app,
        "redrive",
        "punctual dead-letters redrive --fingerprint 3f9c2a7e5b8d --rate 20",
        "punctual dead-letters redrive --since 2h --dry-run",
        "punctual dead-letters redrive --since 2h --yes",
        "punctual dead-letters redrive --all --limit 100",
        "punctual dead-letters redrive --owner shop --since 2h",
    )(redrive)
    command(app, "watch", "punctual dead-letters watch 01JD4Q8XKZ38W2M5R7T9V1C4FH")(watch)
    command(app, "abort", "punctual dead-letters abort 01JD4Q8XKZ38W2M5R7T9V1C4FH")(abort)
    return app


def list_groups(
    cli: Cli,
    task: options.TaskId = None,
    type: options.Type = None,
    since: options.Since = None,
    until: options.Until = None,
    everyone: options.Everyone = False,
) -> None:
    """List the errors of failed and killed jobs, the most frequent first."""
    now = cli.now()
    window = options.present(from_=options.instant("--since", since, now), to=options.instant("--until", until, now))
    listing = _owners.Listing[DeadLetterGroup](
        partial(cli.client.dead_letters.list, **options.present(task=task, type=type), **window),
        (
            Column("fingerprint", lambda each: each.fingerprint or "(none)", essential=True),
            Column("jobs", lambda each: each.count, essential=True, right=True),
            instants("last", lambda each: each.last_at, now, essential=True),
            Column("types", lambda each: words.words(each.types)),
            Column("last called", lambda each: each.calls or ""),
            Column("error", _error),
        ),
        id=lambda each: each.fingerprint or "",
        none="There are no dead letters." if cli.whose or everyone else "You have no dead letters. Those of all users: --everyone",
        order=lambda each: (each.count, each.last_at),
    )
    _owners.show(cli, listing, everyone, 0)


def _error(each: DeadLetterGroup) -> str:
    return f"{each.error.kind}: {each.error.message}" if each.error else ""


def group_jobs(
    cli: Cli,
    fingerprint: Annotated[str, Argument(help="The id of the error, as `list` shows it.")],
    everyone: options.Everyone = False,
    limit: options.Limit = 20,
) -> None:
    """List the jobs of one error, the latest first."""
    ask = partial(cli.client.dead_letters.jobs, fingerprint, limit=limit or None)
    _owners.show(cli, jobs.listing(cli, ask, "There are no such jobs."), everyone, limit)


def redrive(
    cli: Cli,
    fingerprint: Fingerprint = None,
    task: options.TaskId = None,
    type: options.Type = None,
    since: options.Since = None,
    until: options.Until = None,
    all: options.All = False,
    rate: options.Rate = None,
    limit: options.AtMost = None,
    yes: options.Yes = False,
    dry_run: options.DryRun = False,
    detach: options.Detach = False,
) -> int | None:
    """Run all failed and killed jobs again that a filter finds, and show the progress."""
    now = cli.now()
    filter = options.present(
        fingerprint=fingerprint,
        task=task,
        type=type,
        from_=options.instant("--since", since, now),
        to=options.instant("--until", until, now),
        all=all,
    )
    if not filter:
        raise Refused("give a filter", field="--fingerprint", hint="To run all dead letters again: --all")
    count = min(_count(cli, filter), limit or sys.maxsize)
    letters = f"{count} dead letter{'' if count == 1 else 's'}{f' of {cli.whose}' if cli.whose else ''}"
    if dry_run:
        cli.out.result({"matched": count}, f"{letters} would be run again.", quiet=str(count))
        return None
    paused = _paused(cli)
    cli.confirm(f"Run {letters} again?", yes)
    made = cli.client.dead_letters.redrive(**filter, **options.present(rate=rate, limit=limit))
    if detach:
        follow = f"punctual dead-letters watch {made.id}{cli.again}"
        cli.out.result(made.raw, f"Redrive {made.id} runs. To follow it: {follow}{paused}", quiet=made.id)
        return None
    code = wait(cli, made, count)
    if paused:
        cli.out.say(paused.strip())
    return code


def _paused(cli: Cli) -> str:
    """Return a line for each paused lane: jobs of it run again when it is resumed. Nothing if none is paused, or nobody reads it."""
    if cli.out.as_json or cli.out.quiet:
        return ""
    try:
        lanes = cli.client.status().lanes if cli.client.health().paused_lanes else ()
    except errors.PunctualError:
        return ""  # it is a remark: the redrive does not depend on it
    lines = list[str]()
    for each in lanes:
        if each.paused_at is not None:
            by = f" by {each.paused_by_name}" if each.paused_by_name else ""
            why = f": {each.reason}" if each.reason else ""
            lines.append(f"\nThe lane {each.lane} is paused since {words.clock(each.paused_at, cli.now())}{by}{why}. Its jobs wait.")
    return "".join(lines)


def _count(cli: Cli, filter: Mapping[str, Any]) -> int:
    """Return how many dead letters a filter finds, by the groups that the API lists: a hundred errors at most."""
    fingerprint = filter.get("fingerprint")
    listed = {name: value for name, value in filter.items() if name in ("task", "type", "from_", "to")}
    return sum(each.count for each in cli.client.dead_letters.list(**listed) if fingerprint in (None, each.fingerprint))


def wait(cli: Cli, made: Redrive, total: int | None) -> int | None:
    """Show the progress of a redrive until its end, and print the result. Returns the exit code."""
    note = f"The redrive continues. To stop it: punctual dead-letters abort {made.id}{cli.again}"
    with stoppable(cli, note), many.progress(cli, "redrive", total) as show:
        while not made.ended:
            show(made.matched)
            cli.sleep(many.EVERY)
            made = cli.client.dead_letters.get(made.id)
    cli.out.result(made.raw, _summary(made), quiet=made.id)
    return FAILED if made.status == "aborted" else None


def _summary(made: Redrive) -> str:
    others = (("skipped", made.skipped), ("failed", made.failed), ("beside an open job of their key", made.conflicts))
    left = "".join(f", {count} {name}" for name, count in others if count)
    return f"Redrive {made.id} is {made.status}: {made.redriven} of {made.matched} run again{left}."


def watch(cli: Cli, id: Id) -> int | None:
    """Wait for the end of a redrive. The exit code is 1 if it was aborted."""
    return wait(cli, cli.client.dead_letters.get(id), None)


def abort(cli: Cli, id: Id) -> None:
    """Abort a redrive. The jobs that it has started go on."""
    made = cli.client.dead_letters.abort(id)
    cli.out.result(made.raw, _summary(made), quiet=made.id)
