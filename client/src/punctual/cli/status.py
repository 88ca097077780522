"""`punctual status`: what is wrong now, and what mends it."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Annotated, Any, Literal

import typer
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text
from typer import Option

from punctual import errors
from punctual.cli import _options as options
from punctual.cli import _words as words
from punctual.cli._app import PROBLEMS, Cli, Refused, command
from punctual.cli._output import Column, instants, table
from punctual.records import Problem, StatusReport

EVERY = 5.0  # seconds between two looks of `--watch`


def register(app: typer.Typer) -> None:
    command(
        app,
        "status",
        "punctual status",
        "punctual status --everyone",
        "punctual status --everyone --watch",
        "punctual status --everyone --check --quiet && echo well",
        "punctual status --json | jq -r '.problems[].remedy.command'",
        owned=True,
    )(status)


def status(
    cli: Cli,
    everyone: options.Everyone = False,
    check: Annotated[bool, Option("--check", help=f"Exit with code {PROBLEMS} if there is a problem, for scripts and monitors.")] = False,
    watch: Annotated[bool, Option("--watch", "-w", help=f"Look again every {EVERY:g} seconds, until Ctrl-C.")] = False,
) -> int | None:
    """Show what is wrong now, the most severe first, and the command that mends it.

    A terminal also shows the lanes, the breakers, who waits, the failures of the last hour and the tasks that skip runs. A pipe gets a
    line for each problem. With `--watch` a pipe gets a line when a problem begins, changes or is over.
    """
    if check and watch:
        raise Refused("goes on until Ctrl-C, and --check is for one look", field="--watch", hint="Use one of both.")
    if watch:
        _watch(cli, "all" if everyone else None)
        return None
    found = cli.client.status(scope="all" if everyone else None)
    if cli.out.as_json:
        cli.out.document(found.raw)
    elif cli.out.live:
        for part in _parts(cli, found):
            cli.out.out.print(part, soft_wrap=not isinstance(part, Table))
    else:
        _lines(cli, found.problems)
    return PROBLEMS if check and not found.well else None


def _watch(cli: Cli, scope: Literal["all"] | None) -> None:
    """Show the report again and again: at a terminal in one place, else its changes. An API that does not answer is waited for."""
    try:
        if cli.out.live:
            with Live(console=cli.out.out, auto_refresh=False, vertical_overflow="crop") as screen:
                for found, silence in _polls(cli, scope):
                    parts = [] if found is None else list(_parts(cli, found))
                    head = Text(f"{cli.now().astimezone():%H:%M:%S}  {silence or 'Ctrl-C ends.'}", "yellow" if silence else "dim")
                    screen.update(Group(head, *parts), refresh=True)
        else:
            _changes(cli, (found for found, silence in _polls(cli, scope) if found is not None and not silence))
    except KeyboardInterrupt:
        pass  # the usual end


def _polls(cli: Cli, scope: Literal["all"] | None) -> Iterator[tuple[StatusReport | None, str]]:
    """Yield the latest report for each look, and why there is no newer one."""
    found: StatusReport | None = None
    while True:
        silence = ""
        try:
            found = cli.client.status(scope=scope)
        except (errors.NoAnswer, errors.Unavailable) as error:
            silence = f"There is no answer, and what is below may be old: {error}"
        yield found, silence
        cli.sleep(EVERY)


def _changes(cli: Cli, reports: Iterable[StatusReport]) -> None:
    """Print a line for each problem that has begun, changed, or is over; with `--json` the report whose problems differ."""
    before = dict[tuple[object, ...], Problem]()
    first = True
    for found in reports:
        now = {_key(each): each for each in found.problems}
        new = [each for key, each in now.items() if key not in before or before[key].title != each.title]
        over = [each for key, each in before.items() if key not in now]
        if cli.out.as_json:
            if first or new or over:
                cli.out.line(found.raw)
        else:
            _lines(cli, new)
            if not cli.out.quiet:
                _lines(cli, over, over=True)
        before, first = now, False


def _key(each: Problem) -> tuple[object, ...]:
    return each.kind, each.lane, each.circuit, each.what, each.owner, each.task, each.fingerprint


def _lines(cli: Cli, found: Sequence[Problem], *, over: bool = False) -> None:
    shown = _columns(cli)
    if over:
        shown = [Column("severity", lambda _: "over", essential=True), *shown[1:2]]
    cli.out.entries(found, shown, raw=lambda each: each.raw, none="", id=lambda each: each.kind)


def _columns(cli: Cli) -> Sequence[Column[Problem]]:
    return (
        Column("severity", lambda each: each.severity, essential=True),
        Column("problem", lambda each: each.title, essential=True),
        instants("since", lambda each: each.since, cli.now(), essential=True),
        Column("by", lambda each: each.by_name or each.by or "", essential=True),
        Column("reason", lambda each: each.reason or "", essential=True),
        Column("command", lambda each: each.remedy.command if each.remedy else each.inspect, essential=True),
    )


def _parts(cli: Cli, found: StatusReport) -> Iterator[Text | Table]:
    """Yield what a terminal shows: the problems, some sentences, and the parts of the report that are not empty."""
    for each in found.problems:
        yield Text(f"{each.severity}: {each.title}", "bold red" if each.severity == "critical" else "yellow")
        if story := _story(cli, each):
            yield Text(f"  {story}", "dim")
        if each.remedy:
            yield Text(f"  {each.remedy.label}: {each.remedy.command}")
        if each.inspect:
            yield Text(f"  More: {each.inspect}")
    if found.more_problems:
        yield Text("There are more problems than these.")
    if found.well:
        yield Text("All is well.", "green")
    yield from map(Text, _sentences(found))
    yield from _tables(cli, found)


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


def _tables(cli: Cli, found: StatusReport) -> Iterator[Text | Table]:
    """Yield the parts of the report that are not empty, each after its heading."""
    now = cli.now()

    def part(heading: str, entries: Sequence[Any], shown: Sequence[Column[Any]]) -> Iterator[Text | Table]:
        if entries:
            yield Text(f"\n{heading}", "bold")
            yield table(entries, shown, cli.out.out.width)

    yield from part(
        "Lanes",
        [each for each in found.lanes if each.paused_at or each.waiting],
        (
            Column("lane", lambda each: each.lane, essential=True),
            Column("state", lambda each: "paused" if each.paused_at else "active", essential=True),
            Column("waiting", lambda each: _count(each.waiting, each.at_least), essential=True, right=True),
            instants("since", lambda each: each.paused_at, now),
            Column("by", lambda each: each.paused_by_name or each.paused_by or ""),
            Column("reason", lambda each: each.reason or ""),
        ),
    )
    yield from part(
        "Breakers that are not closed",
        found.breakers,
        (
            Column("circuit", lambda each: each.circuit, essential=True),
            Column("state", lambda each: each.state, essential=True),
            instants("since", lambda each: each.opened_at, now),
            instants("until", lambda each: each.until, now),
            Column("owner", lambda each: each.owner_name or each.owner or "all users"),
        ),
    )
    yield from part(
        "Jobs that are due and wait",
        found.waiting,
        (
            Column("owner", lambda each: each.owner_name or each.owner, essential=True),
            Column("jobs", lambda each: each.count, essential=True, right=True),
            Column("to count and cancel them", lambda each: each.command),
        ),
    )
    yield from part(
        "Failures of the last hour",
        found.failures,
        (
            Column("what", lambda each: words.short(each.what), essential=True),
            Column("jobs", lambda each: each.count, essential=True, right=True),
            instants("last", lambda each: each.last_at, now, essential=True),
            Column("owner", lambda each: each.owner_name or each.owner),
            Column("fingerprint", lambda each: each.fingerprint or ""),
            Column("error", lambda each: words.short(each.error)),
        ),
    )
    yield from part(
        "Tasks that skip runs",
        found.skipping,
        (
            Column("task", lambda each: words.short(each.task_name, 40), essential=True),
            Column("skipped", lambda each: f"{each.skipped} of {each.of}", essential=True, right=True),
            Column("owner", lambda each: each.owner_name or each.owner),
            Column("reason", lambda each: words.short(each.reason)),
        ),
    )


def _count(count: int, at_least: bool) -> str:
    return f"{count}{'+' if at_least else ''}"
