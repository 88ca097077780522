"""`punctual tasks calendar` and `tasks crowded`: the months of a task, and the minutes in which tasks run at the same time."""

import re
from calendar import monthrange
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import Annotated

import typer
from rich.text import Text
from typer import Argument, Option

from punctual.cli import _options as options
from punctual.cli._app import Cli, Refused, command
from punctual.cli._output import Column
from punctual.records import CrowdedMinute, Year, YearDay

Id = Annotated[str | None, Argument(metavar="[ID]", help="The id of the task.")]
From = Annotated[str | None, Option("--from", metavar="MONTH", help="The first month, such as 2027-01 (default: this one).")]
Months = Annotated[int, Option("--months", metavar="N", min=1, max=12, help="Show N months.")]
Days = Annotated[int, Option("--days", metavar="N", min=1, max=7, help="Look N days ahead.")]
Limit = Annotated[int, Option("--limit", "-n", metavar="N", min=1, max=100, help="Show N minutes.")]

CELL = 9  # characters of a day
FAILED = ("failed", "killed")
MARKS = {  # of a day, by precedence
    "!": ("a run failed", "bold red"),
    "x": ("excluded: nothing runs", "yellow"),
    ">": ("excluded: its runs are moved", "yellow"),
    "+": ("has runs that were moved to it", "yellow"),
    "~": ("the clock changes", "magenta"),
}
LEGEND = "A number counts the runs of the date, both past and planned."


def register(app: typer.Typer) -> None:
    command(
        app,
        "calendar",
        "punctual tasks calendar --key nightly-report",
        "punctual tasks calendar --key nightly-report --from 2027-01 --months 12",
        "punctual tasks calendar --key nightly-report --json | jq '.days[] | select(.excluded)'",
    )(calendar)
    command(app, "crowded", "punctual tasks crowded", "punctual tasks crowded --days 7 -n 5 --json")(crowded)


def calendar(cli: Cli, id: Id = None, key: options.Key = None, first: From = None, months: Months = 3) -> None:
    """Show the months of a task: the runs of each date, changes of the clock, excluded and moved runs."""
    if (id is None) == (key is None):
        raise Refused("give an id or --key, and not both", field="ID")
    begin = cli.now().date().replace(day=1) if first is None else _month(first)
    ends = _months(begin, months)
    found = cli.client.tasks.calendar(id, key=key, from_=begin, days=sum(monthrange(*each)[1] for each in ends))
    if cli.out.as_json:
        cli.out.document(found.raw)
        return
    days = {each.date: each for each in found.days}
    if cli.out.quiet:
        for each in found.days:
            cli.out.raw(str(each.date))
        return
    for year, month in ends:
        for line in _grid(year, month, found, days):
            _print(cli, line)
    _explain(cli, found)


def _month(text: str) -> date:
    parts = re.fullmatch(r"(\d{4})-(\d{2})(-\d{2})?", text)
    try:
        if parts is None:
            raise ValueError
        return date(int(parts[1]), int(parts[2]), 1)
    except ValueError:
        raise Refused("must be a month such as 2027-01", field="--from") from None


def _months(begin: date, count: int) -> list[tuple[int, int]]:
    first = begin.year * 12 + begin.month - 1
    return [(number // 12, number % 12 + 1) for number in range(first, first + count)]


def _grid(year: int, month: int, found: Year, days: Mapping[date, YearDay]) -> Iterator[Text]:
    """Yield the lines of a month, in weeks from Monday on."""
    begin = date(year, month, 1)
    yield Text(f"{begin:%B %Y}  {found.time_zone}", "bold")
    yield Text("".join(f"{name:<{CELL}}" for name in ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")).rstrip(), "dim")
    line = Text(" " * CELL * begin.weekday())
    for number in range(monthrange(year, month)[1]):
        day = begin + timedelta(days=number)
        line.append_text(_cell(day, days.get(day), found.today))
        if day.weekday() == 6:
            yield _trimmed(line)
            line = Text()
    yield _trimmed(line)
    yield Text()


def _trimmed(line: Text) -> Text:
    line.rstrip()
    return line


def _cell(day: date, about: YearDay | None, today: date) -> Text:
    """Return the day of the month, its number of runs and its mark."""
    label = Text(f"{day.day:>2}", "reverse" if day == today else "")
    if about is None:
        return label.append(" ·".ljust(CELL - 2), "dim")
    mark = next(iter(_marks(about)), " ")
    runs = _short(about.planned + sum((about.runs or {}).values()))
    return label.append(f" {runs}{mark}".ljust(CELL - 2), MARKS[mark][1] if mark in MARKS else "green")


def _marks(day: YearDay) -> list[str]:
    found = {
        "!": any((day.runs or {}).get(status) for status in FAILED),
        "x": day.excluded is not None and day.moved_to is None,
        ">": day.moved_to is not None,
        "+": bool(day.moved_from),
        "~": day.clock_change,
    }
    return [mark for mark in MARKS if found[mark]]


def _short(runs: int) -> str:
    """Return a number of at most four characters.

    >>> _short(1440), _short(86_400), _short(24)
    ('1440', '86k', '24')
    """
    return str(runs) if runs < 10_000 else f"{runs // 1_000}k"


def _explain(cli: Cli, found: Year) -> None:
    """Print the legend of the marks in use, the odd dates and what is not known."""
    used = dict.fromkeys(mark for day in found.days for mark in _marks(day))
    cli.out.say(LEGEND if found.days else "It has no runs in these months.", "dim")
    for mark in MARKS:
        if mark in used:
            _print(cli, Text.assemble((f"{mark}  ", MARKS[mark][1]), (MARKS[mark][0], "dim")))
    for day in found.days:
        if notes := "; ".join(_notes(day)):
            cli.out.say(f"{day.date:%a} {day.date}  {notes}")
    if found.counted_from is not None:
        cli.out.say(f"Runs before {found.counted_from:%Y-%m-%d %H:%M} UTC are not counted: there are too many.", "yellow")
    for warning in found.warnings:
        cli.out.say(f"Warning: {warning}.", "yellow")


def _notes(day: YearDay) -> Iterator[str]:
    failed = sum((day.runs or {}).get(status, 0) for status in FAILED)
    if failed:
        yield f"{failed} failed"
    if day.excluded is not None:
        yield day.excluded + (f", moved to {day.moved_to}" if day.moved_to else "")
    if day.moved_from:
        yield f"has the runs of {_words(day.moved_from)}"
    if day.clock_change:
        yield "the clock changes"


def _words(dates: Sequence[date]) -> str:
    return ", ".join(map(str, dates))


def _print(cli: Cli, line: Text) -> None:
    cli.out.out.print(line)


def crowded(cli: Cli, days: Days = 1, limit: Limit = 20) -> None:
    """List the minutes in which the most runs of tasks begin at the same time. To spread them: jitter_seconds, or other minutes."""
    found = cli.client.tasks.crowded(days=days, limit=limit)
    if cli.out.as_json:
        cli.out.document(found.raw)
        return
    cli.out.entries(
        found.minutes,
        (
            Column("UTC", lambda each: each.at.strftime("%a %Y-%m-%d %H:%M"), essential=True),
            Column("runs", lambda each: each.runs, essential=True, right=True),
            Column("tasks", _named),
        ),
        raw=lambda each: each.raw,
        none="No two runs begin in the same minute.",
        id=lambda each: each.at.strftime("%Y-%m-%dT%H:%MZ"),
    )
    if not found.complete:
        cli.out.remark("Not all runs are counted: there are too many tasks or runs.")


def _named(minute: CrowdedMinute) -> str:
    more = minute.task_count - len(minute.tasks)
    return ", ".join(each.name for each in minute.tasks) + (f" and {more} more" if more else "")
