"""The examples of docs/reference/schedules.md, around changes of clocks. `python -m tests.unit.schedule_examples` writes them there."""

from pathlib import Path
from typing import NamedTuple

from scheduler.model import instants
from scheduler.model.schedule import Cron, Schedule
from scheduler.tasks.schedule import next_runs

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/schedules.md"
BEGIN, END = "<!-- examples: begin -->\n", "<!-- examples: end -->\n"


class Example(NamedTuple):
    """Up to `count` runs after `since`, a local time with its offset."""

    expression: str
    zone: str
    since: str
    count: int
    dst_gap: str = "shift"
    dst_overlap: str = "first"


EXAMPLES = (
    Example("30 2 * * *", "Europe/Berlin", "2027-03-27T12:00:00+01:00", 2),
    Example("30 2 * * *", "Europe/Berlin", "2027-10-30T12:00:00+02:00", 2),
    Example("30 2 * * *", "Europe/Berlin", "2027-03-27T12:00:00+01:00", 1, dst_gap="skip"),
    Example("30 2 * * *", "Europe/Berlin", "2027-10-30T12:00:00+02:00", 1, dst_overlap="second"),
    Example("30 2 * * *", "Europe/Berlin", "2027-10-30T12:00:00+02:00", 2, dst_overlap="both"),
    Example("0,15,30 2,3 * * *", "Europe/Berlin", "2027-03-27T12:00:00+01:00", 3),
    Example("0 1-4 * * *", "Europe/Berlin", "2027-10-30T12:00:00+02:00", 4),
    Example("*/30 * * * *", "Europe/Berlin", "2027-03-28T01:15:00+01:00", 3),
    Example("*/30 * * * *", "Europe/Berlin", "2027-10-31T01:45:00+02:00", 5),
    Example("30 1 * * *", "America/New_York", "2027-03-13T12:00:00-05:00", 2),
    Example("30 1 * * *", "America/New_York", "2027-11-06T12:00:00-04:00", 2),
    Example("45 1 * * *", "Australia/Lord_Howe", "2027-04-03T12:00:00+11:00", 2),
    Example("15 2 * * *", "Australia/Lord_Howe", "2027-10-02T12:00:00+10:30", 2),
    Example("*/15 * * * *", "Australia/Lord_Howe", "2027-04-04T01:20:00+11:00", 5),
    Example("0 0 * * *", "America/Santiago", "2027-09-04T12:00:00-04:00", 2),
    Example("30 23 * * *", "America/Santiago", "2027-04-03T12:00:00-03:00", 2),
    Example("30 2 * * *", "Africa/Casablanca", "2026-02-14T12:00:00+01:00", 2),
    Example("30 2 * * *", "Africa/Casablanca", "2026-03-21T12:00:00+00:00", 2),
    Example("30 1,2 * * *", "Antarctica/Troll", "2027-03-27T12:00:00+00:00", 2),
    Example("30 2 * * *", "Asia/Kolkata", "2027-03-27T12:00:00+05:30", 2),
    Example("0 12 * * *", "Pacific/Apia", "2011-12-29T01:00:00-10:00", 3),
)


def table() -> str:
    """The examples as Markdown."""
    lines = ["| cron | zone | local time | UTC | note |", "|---|---|---|---|---|"]
    for example in EXAMPLES:
        spec = Cron(example.expression, example.zone, example.dst_gap, example.dst_overlap)
        chosen = {"dst_gap": example.dst_gap, "dst_overlap": example.dst_overlap}
        choices = "".join(f"<br>`{name}: {choice}`" for name, choice in chosen.items() if choice not in ("shift", "first"))
        head = f"`{example.expression}`{choices} | {example.zone}"
        for run in next_runs(Schedule(spec), instants.parse(example.since), example.count):
            utc = instants.render(run.nominal)[:-8] + "Z"
            lines.append(f"| {head} | {run.local} | {utc} | {run.odd or ''} |")
            head = " | "
    return "\n".join(lines) + "\n"


def main() -> None:
    before, rest = PAGE.read_text().split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(before + BEGIN + table() + END + after)
    print(f"wrote {len(EXAMPLES)} examples")


if __name__ == "__main__":
    main()
