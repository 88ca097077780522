"""`punctual status`: what is wrong now, and what mends it."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Annotated, Any

import typer
from typer import Option

from punctual.cli import _options as options
from punctual.cli import _words as words
from punctual.cli._app import PROBLEMS, Cli, command
from punctual.cli._output import Column, table
from punctual.records import Problem, StatusReport


def register(app: typer.Typer) -> None:
    command(
        app,
        "status",
        "punctual status",
        "punctual status --everyone",
        "punctual status --everyone --check --quiet && echo well",
        "punctual status --json | jq -r '.problems[].remedy.command'",
    )(status)


def status(
    cli: Cli,
    everyone: options.Everyone = False,
    check: Annotated[bool, Option("--check", help=f"Exit with code {PROBLEMS} if there is a problem, for scripts and monitors.")] = False,
) -> int | None:
    """Show what is wrong now, the most severe first, and the command that mends it.

    A terminal also shows the lanes, the breakers, who waits, the failures of the last hour and the tasks that skip runs. A pipe gets a
    line for each problem.
    """
    found = cli.client.status(scope="all" if everyone else None)
    if cli.out.as_json:
        cli.out.document(found.raw)
    elif cli.out.live:
        _show(cli, found)
    else:
        cli.out.entries(found.problems, _columns(cli), raw=lambda each: each.raw, none="", id=lambda each: each.kind)
    return PROBLEMS if check and not found.well else None


def _columns(cli: Cli) -> Sequence[Column[Problem]]:
    return (
        Column("severity", lambda each: each.severity, essential=True),
        Column("problem", lambda each: each.title, essential=True),
        Column("since", lambda each: words.clock(each.since, cli.now()), essential=True),
        Column("by", lambda each: each.by_name or each.by or "", essential=True),
        Column("reason", lambda each: each.reason or "", essential=True),
        Column("command", lambda each: each.remedy.command if each.remedy else "", essential=True),
    )


def _show(cli: Cli, found: StatusReport) -> None:
    for each in found.problems:
        cli.out.say(f"{each.severity}: {each.title}", "bold red" if each.severity == "critical" else "yellow")
        if story := _story(cli, each):
            cli.out.say(f"  {story}", "dim")
        if each.remedy:
            cli.out.say(f"  {each.remedy.label}: {each.remedy.command}")
    if found.more_problems:
        cli.out.say("There are more problems than these.")
    if found.well:
        cli.out.say("All is well.", "green")
    for sentence in _sentences(found):
        cli.out.say(sentence)
    _tables(cli, found)


def _story(cli: Cli, each: Problem) -> str:
    """Return since when it is so, by whom and why, as far as that is known."""
    now = cli.now()
    since = f"since {words.clock(each.since, now)} ({words.relative(each.since, now)})" if each.since else ""
    by = each.by_name or each.by
    story = " ".join(part for part in (since, f"by {by}" if by else "") if part)
    return ": ".join(part for part in (story, each.reason or "") if part)


def _sentences(found: StatusReport) -> Iterator[str]:
    if found.scheduler is not None:
        yield f"The scheduler is {words.span(timedelta(seconds=found.scheduler.lag_seconds))} behind."
    late = found.late
    if late.count:
        jobs = "1 job is" if late.count == 1 else f"{late.count} jobs are"
        longest = words.span(timedelta(seconds=late.longest_seconds))
        yield f"{'At least ' if late.at_least else ''}{jobs} late, the longest by {longest}."


def _tables(cli: Cli, found: StatusReport) -> None:
    """Print the parts of the report that are not empty, each under its heading."""
    now = cli.now()

    def part(heading: str, entries: Sequence[Any], shown: Sequence[Column[Any]]) -> None:
        if entries:
            cli.out.say(f"\n{heading}", "bold")
            cli.out.out.print(table(entries, shown, cli.out.out.width), soft_wrap=False)

    part(
        "Lanes",
        [each for each in found.lanes if each.paused_at or each.waiting],
        (
            Column("lane", lambda each: each.lane, essential=True),
            Column("state", lambda each: "paused" if each.paused_at else "active", essential=True),
            Column("waiting", lambda each: _count(each.waiting, each.at_least), essential=True, right=True),
            Column("since", lambda each: words.clock(each.paused_at, now)),
            Column("by", lambda each: each.paused_by_name or each.paused_by or ""),
            Column("reason", lambda each: each.reason or ""),
        ),
    )
    part(
        "Breakers that are not closed",
        found.breakers,
        (
            Column("circuit", lambda each: each.circuit, essential=True),
            Column("state", lambda each: each.state, essential=True),
            Column("since", lambda each: words.clock(each.opened_at, now)),
            Column("until", lambda each: words.clock(each.until, now)),
            Column("owner", lambda each: each.owner or ""),
        ),
    )
    part(
        "Jobs that are due and wait",
        found.waiting,
        (
            Column("owner", lambda each: each.owner_name or each.owner, essential=True),
            Column("jobs", lambda each: each.count, essential=True, right=True),
        ),
    )
    part(
        "Failures of the last hour",
        found.failures,
        (
            Column("what", lambda each: words.short(each.what), essential=True),
            Column("jobs", lambda each: each.count, essential=True, right=True),
            Column("last", lambda each: words.clock(each.last_at, now), essential=True),
            Column("owner", lambda each: each.owner_name or each.owner),
            Column("fingerprint", lambda each: each.fingerprint or ""),
            Column("error", lambda each: words.short(each.error)),
        ),
    )
    part(
        "Tasks that skip runs",
        found.skipping,
        (
            Column("task", lambda each: words.short(each.task_name, 40), essential=True),
            Column("skipped", lambda each: f"{each.skipped} of {each.of}", essential=True, right=True),
            Column("owner", lambda each: each.owner_name or each.owner),
            Column("reason", lambda each: words.short(each.reason)),
        ),
    )


def _count(count: int | None, at_least: bool) -> str:
    return "" if count is None else f"{count}{'+' if at_least else ''}"
