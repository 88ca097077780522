"""`punctual calendars`: named sets of dates, on which tasks do not run."""

from datetime import date
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from punctual import calendars
from punctual.cli import _options as options
from punctual.cli import _words as words
from punctual.cli._app import Cli, Refused, command, group
from punctual.cli._output import Column
from punctual.errors import InvalidArgument, NotConfigured
from punctual.records import PutCalendar

AHEAD = 2  # further years, by default
SHOWN = 20  # dates that a person sees
Name = Annotated[str, Argument(help="The name of the calendar.")]
Until = Annotated[str | None, Option("--covers-until", metavar="DATE", help="The last date up to which the dates are known.")]
Source = Annotated[str | None, Option("--source", metavar="TEXT", help="The origin of the dates, for people.")]
Years = Annotated[
    str | None, Option("--years", metavar="FIRST-LAST", help="The years, such as 2026-2028; default: this one and the next two.")
]


def build() -> typer.Typer:
    app = group("calendars", "Named sets of dates, on which tasks do not run.")
    command(app, "list", "punctual calendars list")(list_calendars)
    command(app, "show", "punctual calendars show de-holidays", "punctual calendars show de-holidays --json")(show)
    command(
        app,
        "put",
        "punctual calendars put closed 2026-12-24 2026-12-31",
        "punctual calendars put closed @dates.txt --covers-until 2027-12-31",
    )(put)
    command(app, "holidays", "punctual calendars holidays de-holidays DE --region BY --years 2026-2028")(put_holidays)
    command(app, "import", "punctual calendars import school school.ics --years 2026-2027")(import_ics)
    command(app, "delete", "punctual calendars delete closed --yes")(delete)
    return app


def list_calendars(cli: Cli) -> None:
    """List the calendars."""
    cli.out.entries(
        cli.client.calendars.list(),
        (
            Column("name", lambda each: each.name, essential=True),
            Column("dates", lambda each: each.size, right=True),
            Column("known until", lambda each: each.covers_until or "", essential=True),
            Column("source", lambda each: each.source or ""),
        ),
        raw=lambda each: each.raw,
        none="There are no calendars. Create one: punctual calendars put --help",
        id=lambda each: each.name,
    )


def show(cli: Cli, name: Name) -> None:
    """Show a calendar. All of its dates: --json"""
    found, now = cli.client.calendars.get(name), cli.now()
    ahead = [str(day) for day in found.dates if day >= now.date()]
    more = "" if len(ahead) <= SHOWN else f" and {len(ahead) - SHOWN} more"
    cli.out.details(
        found.raw,
        (
            ("name", found.name),
            ("dates", found.size),
            ("known until", found.covers_until or "complete"),
            ("source", found.source),
            ("changed", words.clock(found.updated_at, now)),
            ("ahead", f"{words.words(ahead[:SHOWN])}{more}"),
        ),
        quiet=found.name,
    )


def put(
    cli: Cli,
    name: Name,
    dates: Annotated[list[str], Argument(metavar="DATE...", help="The dates; @FILE reads a file with a date in each line.")],
    source: Source = None,
    covers_until: Until = None,
) -> None:
    """Create or replace a calendar. The future runs of its tasks follow."""
    found = [each for text in dates for each in options.text_of("DATE", text).split()]
    _put(cli, name, dates=found, source=source, covers_until=covers_until)


def put_holidays(
    cli: Cli,
    name: Name,
    country: Annotated[str, Argument(help="The country by its code, such as DE.")],
    region: Annotated[str | None, Option("--region", metavar="CODE", help="A part of the country, such as BY.")] = None,
    years: Years = None,
) -> None:
    """Create or replace a calendar by the public holidays of a country. The future runs of its tasks follow.

    It needs the extra: pip install 'punctual-client[calendars]'
    """
    first, last = _years(years, cli)
    try:
        found = calendars.holidays(country, region, first=first, last=last)
    except (InvalidArgument, NotConfigured) as error:
        raise Refused(str(error), field="COUNTRY") from None
    _put(cli, name, **found._asdict())


def import_ics(
    cli: Cli,
    name: Name,
    file: Annotated[Path, Argument(metavar="FILE", help="An ICS file.")],
    years: Years = None,
    source: Source = None,
) -> None:
    """Create or replace a calendar by the events of an ICS file. The future runs of its tasks follow.

    An event of several days is all of them. It needs the extra: pip install 'punctual-client[calendars]'
    """
    first, last = _years(years, cli)
    try:
        found = calendars.read_ics(file.read_bytes(), first=first, last=last, source=source or file.name)
    except OSError as error:
        raise Refused(f"{file} cannot be read: {error.strerror}", field="FILE") from None
    except (InvalidArgument, NotConfigured) as error:
        raise Refused(str(error), field="FILE") from None
    _put(cli, name, **found._asdict())


def delete(cli: Cli, name: Name, yes: options.Yes = False) -> None:
    """Delete a calendar that no task uses."""
    cli.confirm(f"Delete the calendar {name}?", yes)
    cli.client.calendars.delete(name)
    cli.out.result({"name": name}, f"Calendar {name} is deleted.", quiet=name)


def _put(cli: Cli, name: str, **fields: Any) -> None:
    made: PutCalendar = cli.client.calendars.put(name, **fields)
    text = f"Calendar {made.name} is {made.outcome}: {made.size} date{'' if made.size == 1 else 's'}."
    if made.operation is not None:
        text += f" The future runs of its tasks are replaced: punctual operations watch {made.operation.id}{cli.again}"
    cli.out.result(made.raw, text, quiet=made.name)


def _years(text: str | None, cli: Cli) -> tuple[int, int]:
    """Return the first and the last year. Raises Refused."""
    if text is None:
        return cli.now().year, cli.now().year + AHEAD
    first, _, last = text.partition("-")
    try:
        return date(int(first), 1, 1).year, date(int(last or first), 1, 1).year
    except ValueError:
        raise Refused(f"must be a year or two, such as 2026-2028, not {text!r}", field="--years") from None
