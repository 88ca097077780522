"""`make load`: run 10,000 jobs of one instant, then 200 jobs a second for five minutes, on a fresh local stack. Measures lost jobs,
start delays, the backlog and the memory of the processes.

The jobs are posted ahead, a thousand a call, and go through dispatch. The API gets no call while they start; their results are read
from the table afterwards. The curves are written to `.local/load.svg`, and the last line is JSON. The exit code is 1 if a job was lost,
doubled or early, or if memory grew.
"""

import argparse
import json
import os
import shutil
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType

from punctual import Punctual
from punctual.records import Json
from rich import box
from rich.table import Table

from lab.judge import percentile
from lab.scenarios.drill_fair import CALL
from local import plot, previous, process
from local.failure import Trouble, exit_code
from local.home import LOCAL
from local.samples import rfc3339
from local.stack import Stack, up
from local.steps import Say, console, step
from local.stop import LOAD
from local.warmup import READY, warm_up
from scheduler.model import slots
from scheduler.model.job import Job
from scheduler.model.lifecycle import is_open
from scheduler.storage.aws.jobs import DynamoJobs

BURST = 10_000
PER_SECOND, SECONDS = 200, 300
POSTED_PER_S = 700  # the quota of a user is a thousand
SAFE_S = (slots.HORIZON + slots.MINUTE) // 1000 + 15  # a job this far ahead is in the slot of its own minute and goes through dispatch
BETWEEN_S = 120  # from the burst to the first job of the stream
PATIENCE_S = 600  # after the last due time
READ_AGAIN_S = 10
PAGE = 20_000  # jobs of one read: a page reads that many from every partition of the owner
GROWTH_MB = 32  # how much larger a process may be in the last minute of the stream than in its first
FUNCTIONS = {"dispatch": "-DispatchFunction", "execute": "-ExecuteOneTimeFunction"}
PICTURE = LOCAL / "load.svg"


@dataclass
class Part:
    """Jobs that are measured together."""

    name: str
    instants: list[int]  # UTC ms, by time
    found: dict[str, Job] = field(default_factory=dict)
    posted: set[str] = field(default_factory=set)
    posting_s: float = 0.0

    @property
    def begin(self) -> int:
        return self.instants[0]

    @property
    def end(self) -> int:
        return self.instants[-1] + 1


def main() -> int:
    options = _options()
    previous.clear(LOAD)
    shutil.rmtree(LOAD.root, ignore_errors=True)
    with up(LOAD, port=os.environ.get("PORT")) as stack:
        with step("Warming up"):
            warm_up(stack.aws, stack.outputs, OneTime=READY, Retry=1)
        client = stack.client()
        parts = _parts(time.time(), options.burst, options.rate, options.seconds)
        for part in parts:
            post(part, client)
        table = DynamoJobs(stack.aws.client("dynamodb", max_pool_connections=8), stack.outputs["JobsTable"])
        with Memory(stack) as memory:
            for part in parts:
                with step(f"{part.name}: {_clock(part.begin)} to {_clock(part.end)}"):
                    _until(part.end / 1000 + READ_AGAIN_S)
            owner = client.me().id
            with step("Reading the results") as say:
                for part in parts:
                    read(part, table, owner, say)
    return _report(parts, memory)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m lab.scenarios.load",
        description="Run a burst and a stream of jobs on a fresh local stack, and measure delays, backlog and memory.",
        epilog="The last line is JSON. The exit code is 1 if a job was lost, doubled or early, or if memory grew.",
    )
    parser.add_argument("--burst", type=int, default=BURST, help=f"jobs for one instant (default {BURST})")
    parser.add_argument("--rate", type=int, default=PER_SECOND, help=f"jobs a second in the stream (default {PER_SECOND})")
    parser.add_argument("--seconds", type=int, default=SECONDS, help=f"length of the stream in seconds (default {SECONDS})")
    options = parser.parse_args()
    if min(vars(options).values()) < 1:
        raise Trouble("Every number must be at least 1.")
    return options


def _parts(now: float, burst: int, rate: int, seconds: int) -> list[Part]:
    """Return the burst and the stream, so late that all jobs can be posted ahead and go through dispatch."""
    at = int(now + (burst + rate * seconds) / POSTED_PER_S + SAFE_S) * 1000
    stream = at + BETWEEN_S * 1000
    return [
        Part(f"{burst:,} for one instant", [at] * burst),
        Part(f"{rate} a second for {seconds} s", [stream + number * 1000 // rate for number in range(rate * seconds)]),
    ]


def post(part: Part, client: Punctual) -> None:
    """Post the jobs of a part, at `POSTED_PER_S`. Raises Trouble if the API refuses one."""
    began = time.monotonic()
    with step(f"Posting {len(part.instants):,} jobs: {part.name}") as say:
        for first in range(0, len(part.instants), CALL):
            instants = part.instants[first : first + CALL]
            time.sleep(max(0.0, began + first / POSTED_PER_S - time.monotonic()))
            answer = client.jobs.create_many([_job(at) for at in instants])
            if answer.refused:
                raise Trouble(f"{answer.refused} jobs were refused: {answer.errors[0].error}")
            part.posted |= {job.id for job in answer.jobs}
            say(f"{first + len(instants):,}")
    part.posting_s = time.monotonic() - began


def _job(at: int) -> Json:
    return {"type": "log", "payload": {"message": "load"}, "execute_at": rfc3339(datetime.fromtimestamp(at / 1000, UTC))}


def _until(at: float) -> None:
    time.sleep(max(0.0, at - time.time()))


def read(part: Part, table: DynamoJobs, owner: str, say: Say) -> None:
    """Read all jobs of a part until all have ended, at most for `PATIENCE_S`. Each round reads from the first open job on."""
    since, deadline = part.begin, part.end / 1000 + PATIENCE_S
    while True:
        read = list(_stored(table, owner, since, part.end))
        part.found |= {job.id: job for job in read}
        open_since = [job.scheduled_at for job in part.found.values() if is_open(job)]
        say(f"{part.name}: {len(part.found) - len(open_since):,} of {len(part.posted):,} jobs have ended")
        if (not open_since and len(part.found) >= len(part.posted)) or time.time() > deadline:
            return
        since = min(open_since, default=since)
        time.sleep(READ_AGAIN_S)


def _stored(table: DynamoJobs, owner: str, since: int, until: int) -> Iterator[Job]:
    after: str | None = None
    while True:
        page = table.history(owner, since=since, until=until, after=after, limit=PAGE, newest_first=False)
        yield from page.jobs
        if (after := page.cursor) is None:
            return


class Memory:
    """Measures every second the memory of the processes of dispatch and execute."""

    def __init__(self, stack: Stack) -> None:
        self.seen: dict[str, list[tuple[float, list[float]]]] = {name: [] for name in FUNCTIONS}  # (when, MB of each process)
        self._stack, self._over = stack, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Memory":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(1):
            for name, function in FUNCTIONS.items():
                sizes = [size for each in process.naming(self._stack.home.scratch, function) if (size := process.memory_mb(each))]
                self.seen[name].append((time.time(), sizes))

    def most(self, name: str, since: float = 0, until: float = float("inf")) -> float:
        """Return the memory in MB of the largest process in that time; 0 if there was none."""
        return max((size for at, sizes in self.seen[name] for size in sizes if since <= at < until), default=0.0)


def _report(parts: Sequence[Part], memory: Memory) -> int:
    found = {part.name: figures(part) for part in parts}
    stream = parts[-1]
    begin, end = stream.begin / 1000, stream.end / 1000
    sizes = {}
    for name in FUNCTIONS:
        early, late = memory.most(name, begin, begin + 60), memory.most(name, end - 60, end)
        sizes[name] = {"burst": round(memory.most(name, 0, begin)), "first_minute": round(early), "last_minute": round(late)}
    complaints = [
        f"{name}: {count} {kind}" for name, each in found.items() for kind in ("lost", "doubled", "early") if (count := each[kind])
    ]
    grown = {name: size["last_minute"] - size["first_minute"] for name, size in sizes.items() if size["first_minute"]}
    complaints += [f"{name} grew by {mb} MB during the stream" for name, mb in grown.items() if mb > GROWTH_MB]
    _show(found, sizes)
    PICTURE.write_text(picture(parts, memory))
    console.print(f"  The curves are in {PICTURE}")
    for complaint in complaints:
        console.print(f"NOT KEPT  {complaint}", style="red", markup=False)
    print(json.dumps({"parts": found, "largest_process_mb": sizes, "not_kept": complaints}))
    return 1 if complaints else 0


def figures(part: Part) -> Json:
    """Return the counts and the start delays (ms) of the jobs of a part, as the last line has them."""
    jobs = [part.found[job_id] for job_id in part.posted if job_id in part.found]
    delays = [job.delay_ms for job in jobs if job.delay_ms is not None]
    starts = [job.scheduled_at + job.delay_ms for job in jobs if job.delay_ms is not None]
    waits = backlog(jobs)
    return {
        "posted": len(part.posted),
        "posted_per_second": round(len(part.posted) / max(part.posting_s, 0.001)),
        "succeeded": sum(job.completed_at is not None for job in jobs),
        "lost": sum(job_id not in part.found or part.found[job_id].completed_at is None for job_id in part.posted),
        "doubled": sum(len(job.attempts) > 1 for job in jobs) + len(part.found.keys() - part.posted),
        "early": sum(delay < 0 for delay in delays),
        "p50_ms": percentile(delays, 50),
        "p99_ms": percentile(delays, 99),
        "max_ms": max(delays, default=0),
        "most_waiting": round(max((count for _, count in waits), default=0)),
        "starts_per_second": round(len(starts) / max((max(starts) - min(starts)) / 1000, 1)) if starts else 0,
    }


def _show(found: Mapping[str, Json], sizes: Mapping[str, Mapping[str, int]]) -> None:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("figure")
    for name in found:
        table.add_column(name, justify="right")
    for key in next(iter(found.values())):
        table.add_row(key.replace("_", " "), *(f"{each[key]:,}" for each in found.values()))
    console.print(table)
    for name, size in sizes.items():
        sizes_text = (
            f"{size['burst']} MB before the stream, {size['first_minute']} MB in its first minute, {size['last_minute']} MB in its last"
        )
        console.print(f"  largest process of {name}: {sizes_text}")


def picture(parts: Sequence[Part], memory: Memory) -> str:
    """Return an SVG of the delay and backlog of all jobs and of the largest processes, second by second."""
    jobs = [job for part in parts for job in part.found.values()]
    zero = parts[0].begin / 1000 - 10
    last = max([*(job.scheduled_at + (job.delay_ms or 0) for job in jobs), parts[-1].end]) / 1000 + 5
    late = delays_by_second(jobs)
    sizes = [
        plot.Curve(name, [(at - zero, max(each, default=0.0)) for at, each in memory.seen[name] if zero <= at <= last])
        for name in FUNCTIONS
    ]
    return plot.svg(
        "Load on the local stack: " + ", then ".join(part.name for part in parts),
        [
            plot.Panel(
                "start delay of the jobs due in that second, s",
                [plot.Curve(f"p{share}", [(at - zero, each[share]) for at, each in late]) for share in (50, 99)],
            ),
            plot.Panel("due and not started, jobs", [plot.Curve("backlog", [(at - zero, count) for at, count in backlog(jobs)])]),
            plot.Panel("largest process, MB", sizes),
        ],
    )


def delays_by_second(jobs: Sequence[Job]) -> list[tuple[float, dict[int, float]]]:
    """Return p50 and p99 of the start delay, in seconds, of the jobs due in each second."""
    groups: dict[int, list[int]] = {}
    for job in jobs:
        if job.delay_ms is not None:
            groups.setdefault(job.scheduled_at // 1000, []).append(job.delay_ms)
    return [(float(at), {share: percentile(groups[at], share) / 1000 for share in (50, 99)}) for at in sorted(groups)]


def backlog(jobs: Sequence[Job]) -> list[tuple[float, float]]:
    """Return the number of jobs that are due and have not started, at the end of each second in which it changes."""
    changes: dict[int, int] = {}
    for job in jobs:
        due = job.scheduled_at // 1000
        changes[due] = changes.get(due, 0) + 1
        if job.delay_ms is not None:
            start = (job.scheduled_at + job.delay_ms) // 1000
            changes[start] = changes.get(start, 0) - 1
    curve, waiting = list[tuple[float, float]](), 0
    for second in sorted(changes):
        waiting += changes[second]
        curve.append((float(second), float(waiting)))
    return curve


def _clock(at: int) -> str:
    return datetime.fromtimestamp(at / 1000).strftime("%H:%M:%S")


if __name__ == "__main__":
    raise SystemExit(exit_code(main))
