"""Start delays on a fresh local stack, deployed as by `make run` and driven over HTTP.

First the stack is warmed up as by `make run`. The first part is the first burst of the stack.
All jobs of a part are posted before the first one is due. The API gets no call while they start; the results are read afterwards.
The jobs of a part either go through dispatch (posted more than five minutes ahead) or take the direct path (posted shortly before).
The executors measure the delays. At the end, jobs for now are posted one by one: their delays count from their calls.
The short form has few jobs and no warm-up.
"""

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from punctual import Punctual
from punctual.records import Json

from bench import stored as later
from bench.figures import Figure
from lab.judge import Promise, judge, percentile
from lambdas.rest.job_answers import JobShape
from local import previous
from local.home import LOCAL, Home
from local.stack import Stack, up
from local.steps import console, step
from local.warmup import READY, warm_up
from scheduler.model import slots
from scheduler.model.job import Job
from scheduler.model.lifecycle import FINAL_TIMES
from scheduler.pipeline.latency import FRESH_MS
from scheduler.storage.aws.jobs import DynamoJobs

HOME = Home(LOCAL / "bench")
THREADS = 8
POSTS_PER_S = 60  # a cautious estimate for a busy machine
AHEAD_S = (slots.HORIZON + slots.MINUTE) // 1000 + 10  # a job this far ahead is in the slot of its own minute: it goes through dispatch
PAUSE_S = 15
PATIENCE_S = 120
NOW_PAUSE_S = 0.3  # between two jobs for now
CALL_P99_MS, NOW_P50_MS, NOW_P99_MS = 100, 50, 100
ENDED = frozenset(map(str, FINAL_TIMES))


class Size(NamedTuple):
    """The number of jobs, and how to warm up."""

    per_second: int = 50
    seconds: int = 60
    at_once: int = 1_000
    stored: int = 10_000  # for later, in the last part
    executors: int = READY  # to warm up
    fresh_s: float = FRESH_MS / 1000  # how long dispatch remembers the latency of a burst
    now: int = 200  # jobs for now, one by one


SHORT = Size(per_second=5, seconds=2, at_once=10, stored=100, executors=1, fresh_s=0, now=5)


@dataclass(slots=True)
class Part:
    """Jobs that are measured together. `instants` are UTC milliseconds; posting fills `ids`."""

    key: str
    what: str
    instants: list[int]
    p50: float | None = None  # budgets in ms
    p99: float | None = None
    direct: bool = False
    ids: list[str] = field(default_factory=list)

    @property
    def begin(self) -> float:
        return self.instants[0] / 1000

    @property
    def end(self) -> float:
        return self.instants[-1] / 1000


def measure(short: bool = False, stored: int | None = None) -> Iterator[Figure]:
    """Measure on a fresh stack."""
    size = SHORT if short else Size()
    previous.clear(HOME)
    shutil.rmtree(HOME.root, ignore_errors=True)
    with up(HOME) as stack:
        yield from measured(stack, stack.client(), size if stored is None else size._replace(stored=stored))


def measured(stack: Stack, client: Punctual, size: Size) -> Iterator[Figure]:
    """Warm up, run all parts as jobs of this client, and yield their figures."""
    with step(f"Warming up {size.executors} executors, as `make run` does"):
        began = time.monotonic()
        warm_up(stack.aws, stack.outputs, OneTime=size.executors)
    yield Figure("delay.warm_up_s", f"starting {size.executors} executors", round(time.monotonic() - began, 1), "s")
    parts = _parts(time.time(), size)
    _run(parts, stack, client, size.stored)
    found = _outcomes(stack, client.me().id, parts)
    for part in parts:
        yield from _judged(part, found)
    yield from _beside(parts, found)
    yield from for_now(client, size.now)


def for_now(client: Punctual, count: int) -> Iterator[Figure]:
    """Post jobs for now, one by one; yield how long the calls took, and how long after its call each job began."""
    began: dict[str, float] = {}
    calls: list[int] = []
    with step(f"{count:,} jobs for now, one by one"):
        for _ in range(count):
            time.sleep(NOW_PAUSE_S)
            called = time.time()
            job = client.jobs.create("log", {"message": "now"})
            calls.append(round((time.time() - called) * 1_000))
            began[job.id] = called
        found = {job_id: client.jobs.wait(job_id, timeout=PATIENCE_S) for job_id in began}
    starts = {job_id: [each.started_at.timestamp() for each in job.attempts if each.started_at] for job_id, job in found.items()}
    delays = [round((min(at) - began[job_id]) * 1_000) for job_id, at in starts.items() if at]
    yield Figure("delay.now.call_p50_ms", "a job for now, one by one: its call, p50", percentile(calls, 50), "ms")
    yield Figure("delay.now.call_p99_ms", "  p99", percentile(calls, 99), "ms", CALL_P99_MS)
    yield Figure("delay.now.p50_ms", "  from the call to the start, p50", percentile(delays, 50), "ms", NOW_P50_MS)
    yield Figure("delay.now.p95_ms", "  p95", percentile(delays, 95), "ms")
    yield Figure("delay.now.p99_ms", "  p99", percentile(delays, 99), "ms", NOW_P99_MS)
    yield Figure("delay.now.max_ms", "  max", max(delays, default=0), "ms")
    yield Figure("delay.now.early", "  started before the call", sum(delay < 0 for delay in delays), budget=0)
    yield Figure("delay.now.lost", "  lost", count - len(delays), budget=0)
    yield Figure("delay.now.duplicated", "  duplicated", sum(len(at) > 1 for at in starts.values()), budget=0)


def _parts(now: float, size: Size) -> list[Part]:
    """Return the parts in the order in which they are due. Jobs that go through dispatch must be posted far ahead; the parts of the
    direct path run in that time."""
    steadily = size.per_second * size.seconds
    ahead = 2 * steadily + size.at_once
    first = now + ahead / POSTS_PER_S + size.at_once / POSTS_PER_S + PAUSE_S
    direct = first + PAUSE_S + steadily / POSTS_PER_S + PAUSE_S
    steady = max(now + ahead / POSTS_PER_S + AHEAD_S, direct + size.seconds + PAUSE_S)
    burst = steady + size.seconds + PAUSE_S
    # The latency of the burst's messages lengthens the lead of dispatch while it is fresh, which would change the next part.
    full = burst + PAUSE_S + max(size.fresh_s, PAUSE_S + size.stored / later.PER_SECOND)
    pace, crowd = f"{size.per_second} jobs/s for {size.seconds} s", f"{size.at_once:,} for one instant"
    return [
        Part("direct_burst", f"{crowd}, posted shortly before, the first burst", _burst(first, size), None, 500, direct=True),
        Part("direct_steady", f"{pace}, posted shortly before", _steady(direct, size), 1, 2.4, direct=True),
        Part("steady", f"{pace}, through dispatch", _steady(steady, size), 1, 2.4),
        Part("burst", f"{crowd}, through dispatch", _burst(burst, size), None, 109),
        Part("steady_stored", f"{pace}, {size.stored:,} stored for later", _steady(full, size), 1, 2.4),
    ]


def _steady(begin: float, size: Size) -> list[int]:
    return [int(begin * 1000) + number * 1000 // size.per_second for number in range(size.per_second * size.seconds)]


def _burst(at: float, size: Size) -> list[int]:
    return [int(at * 1000)] * size.at_once


def _run(parts: Sequence[Part], stack: Stack, client: Punctual, stored: int) -> None:
    """Post the jobs that must be posted far ahead. Then, part by part, post or store the remaining jobs, and wait for its end."""
    for part in parts:
        if not part.direct:
            _post(part, client)
    for part in parts:
        if part.direct:
            _until(part.begin - len(part.instants) / POSTS_PER_S - PAUSE_S)
            _post(part, client)
        if part is parts[-1]:
            with step(f"Storing {stored:,} jobs for tomorrow"):
                later.store(stack, stored)
        if time.time() > part.begin:
            console.print(f"  [yellow]![/] too slow: {part.what} began {time.time() - part.begin:.0f} s before all jobs were posted")
        with step(f"{part.what}: {_clock(part.begin)} to {_clock(part.end)}"):
            _until(part.end + PAUSE_S / 3)


def _post(part: Part, client: Punctual) -> None:
    with step(f"Posting {len(part.instants):,} jobs: {part.what}") as say, ThreadPoolExecutor(THREADS) as pool:

        def post(at: int) -> str:
            return client.jobs.create("log", {"message": part.key}, execute_at=datetime.fromtimestamp(at / 1000, UTC)).id

        for number, job_id in enumerate(pool.map(post, part.instants), 1):
            part.ids.append(job_id)
            say(f"{number:,} of {len(part.instants):,}")


def _outcomes(stack: Stack, owner: str, parts: Sequence[Part]) -> dict[str, Json]:
    """Return all jobs by id once every one has ended, or in their last known state after `PATIENCE_S`."""
    posted = {job_id for part in parts for job_id in part.ids}
    jobs = DynamoJobs(stack.aws.client("dynamodb", max_pool_connections=8), stack.outputs["JobsTable"])
    begin = time.monotonic()
    with step("Reading the results") as say:
        while True:
            found = {job.id: JobShape.of(job, _now()) for part in parts for job in _stored(jobs, owner, part)}
            ended = sum(found[job_id]["status"] in ENDED for job_id in posted & found.keys())
            say(f"{ended:,} of {len(posted):,} jobs have ended")
            if ended == len(posted) or time.monotonic() - begin > PATIENCE_S:
                return found
            time.sleep(5)


def _stored(jobs: DynamoJobs, owner: str, part: Part) -> Sequence[Job]:
    """Read the jobs of a part from the table: through the API it would take minutes."""
    since, until = part.instants[0], part.instants[-1] + 1
    return jobs.history(owner, since=since, until=until, after=None, limit=len(part.ids), newest_first=False).jobs


def _now() -> int:
    return time.time_ns() // 1_000_000


def _judged(part: Part, found: Mapping[str, Json]) -> Iterator[Figure]:
    delays = _delays(part, found)
    verdict = judge([Promise(job_id, part.key) for job_id in part.ids], found)
    budgets: dict[int, float | None] = {50: part.p50, 99: part.p99}
    for share in (50, 95, 99):
        what = f"start delay p50: {part.what}" if share == 50 else f"  p{share}"
        yield Figure(f"delay.{part.key}.p{share}_ms", what, percentile(delays, share), "ms", budgets.get(share))
    yield Figure(f"delay.{part.key}.max_ms", "  max", max(delays, default=0), "ms")
    yield Figure(f"delay.{part.key}.early", "  started early", verdict.early, budget=0)
    yield Figure(f"delay.{part.key}.lost", "  lost", verdict.lost, budget=0)
    yield Figure(f"delay.{part.key}.duplicated", "  duplicated", verdict.duplicated, budget=0)
    yield Figure(f"delay.{part.key}.astray", "  took the other path", _astray(part, found), budget=0)


def _astray(part: Part, found: Mapping[str, Json]) -> int:
    """Return the number of jobs that did not take the path of their part, because they were posted too early or too late."""
    return sum(_direct(found[job_id]) != part.direct for job_id in part.ids if job_id in found)


def _direct(job: Json) -> bool:
    created, due = (int(datetime.fromisoformat(job[name]).timestamp() * 1000) for name in ("created_at", "scheduled_at"))
    return slots.place(due, created, "", 1).direct


def _beside(parts: Sequence[Part], found: Mapping[str, Json]) -> Iterator[Figure]:
    """Compare the last part with the same part without stored jobs. The budget is 10 % more and one millisecond, the resolution."""
    alone, full = (percentile(_delays(part, found), 99) for part in (parts[2], parts[4]))
    yield Figure("delay.stored_p99_ms", f"{parts[4].what}: p99, against that with an empty table", full, "ms", round(alone * 1.1 + 1, 1))


def _delays(part: Part, found: Mapping[str, Json]) -> list[int]:
    delays: list[Any] = [found[job_id].get("start_delay_ms") for job_id in part.ids if job_id in found]
    return [delay for delay in delays if delay is not None]


def _until(at: float) -> None:
    while (left := at - time.time()) > 0:
        time.sleep(min(left, 60))


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at).strftime("%H:%M:%S")
