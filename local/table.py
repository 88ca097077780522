"""The live table of `make run`: chooses the jobs to show and formats them. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

AHEAD = 12  # the most rows for scheduled jobs
COLOURS = {
    "scheduled": "cyan",
    "queued": "yellow",
    "running": "bold yellow",
    "succeeded": "green",
    "failed": "bold red",
    "killed": "red",
    "cancelled": "dim",
    "skipped": "dim",
}
NO_NAMES: Mapping[str, str] = {}
MARKS = {"succeeded": "✓", "failed": "✗", "killed": "†", "crashed": "!"}  # one for each attempt


@dataclass(frozen=True)
class Row:
    """One job as shown."""

    id: str
    type: str
    due: str
    status: str
    delay: str
    attempts: str
    task: str

    def line(self) -> str:
        return f"{self.due}  {self.id}  {self.type:<5} {self.status:<10} {self.delay:>9}  {self.attempts:<5}  {self.task}".rstrip()


def row(job: Mapping[str, Any], zone: tzinfo | None = None, names: Mapping[str, str] = NO_NAMES) -> Row:
    """Return the row of a job. `names`: names of tasks by id."""
    delay = job.get("start_delay_ms")
    return Row(
        id=job["id"],
        type=job["type"],
        due=clock(job["scheduled_at"], zone),
        status=job["status"],
        delay="" if delay is None else f"{delay:,} ms",
        attempts="".join(MARKS.get(attempt["outcome"], "?") for attempt in job.get("attempts") or ()),
        task=names.get(job.get("task_id") or "", ""),
    )


def clock(instant: str, zone: tzinfo | None = None) -> str:
    """Return the time of day to the millisecond, by default in the machine's time zone.

    >>> from datetime import UTC
    >>> clock("2026-11-20T10:00:00.250Z", UTC)
    '10:00:00.250'
    """
    return datetime.fromisoformat(instant).astimezone(zone).strftime("%H:%M:%S.%f")[:-3]


def choose(past: Iterable[Mapping[str, Any]], ahead: Iterable[Mapping[str, Any]], height: int) -> list[Mapping[str, Any]]:
    """Return the jobs that fit into `height` rows, by time: the latest jobs that were due, then the next scheduled ones."""
    seen: dict[str, Mapping[str, Any]] = {}
    for job in [*past, *ahead]:  # a job may fall due between the two reads: the later listing is newer
        seen[job["id"]] = job
    ordered = sorted(seen.values(), key=lambda job: (str(job["scheduled_at"]), str(job["id"])))
    waiting = [job for job in ordered if job["status"] == "scheduled"][: min(AHEAD, max(1, height // 2))]
    gone = [job for job in ordered if job["status"] != "scheduled"]
    room = max(0, height - len(waiting))
    return (gone[-room:] if room else []) + waiting


def changed(before: Mapping[str, str], jobs: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the jobs whose status has changed, for outputs that are not a terminal."""
    return [job for job in jobs if before.get(job["id"]) != job["status"]]


def picture(jobs: Sequence[Mapping[str, Any]], caption: str, zone: tzinfo | None = None, names: Mapping[str, str] = NO_NAMES) -> Table:
    counts = Counter(str(job["status"]) for job in jobs)
    summary = "  ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    table = Table(
        title=f"Jobs: {summary or 'none yet'}",
        caption=caption,
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        padding=(0, 1, 0, 0),  # 80 columns are enough
    )
    for name in ("due", "id", "type", "status"):
        table.add_column(name, no_wrap=True)
    table.add_column("delay", justify="right", no_wrap=True)
    table.add_column("tries", no_wrap=True)
    table.add_column("task")  # the only column that is cut on a narrow terminal
    for job in jobs:
        shown = row(job, zone, names)
        status = Text(shown.status, COLOURS.get(shown.status, ""))
        task = Text(shown.task, no_wrap=True, overflow="ellipsis")
        table.add_row(shown.due, shown.id, shown.type, status, shown.delay, shown.attempts, task)
    return table
