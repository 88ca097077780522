"""Start delays on the local stack: a fresh one, deployed as `make run` deploys it, driven over HTTP as any program would.

First everything is warmed up: jobs that sleep until all executors of the one-time lane run, then a burst of quick ones.
Then all jobs of a part are posted before its first one is due, and nothing is asked while they start; what happened is
read afterwards. A part either takes the way through dispatch (posted more than five minutes ahead) or goes to its lane
directly (posted shortly before). Delays are as the executors measured them.
"""

import base64
import json
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from bench import stored as later
from bench.figures import Figure
from lambdas.rest import render
from local import previous, process
from local.client import Client, Json
from local.home import LOCAL, Home
from local.samples import rfc3339
from local.stack import Stack, up
from local.steps import console, step
from local.verdict import Promise, judge, percentile
from scheduler.model import slots
from scheduler.model.job import Job
from scheduler.model.lifecycle import FINAL_TIMES
from scheduler.pipeline.publisher import FRESH_MS
from scheduler.storage.aws.jobs import DynamoJobs

HOME = Home(LOCAL / "bench")
PER_SECOND, SECONDS = 50, 60
AT_ONCE = 1_000
THREADS = 8
POSTS_PER_S = 60  # a cautious guess: how fast a busy machine takes jobs
AHEAD_S = (slots.HORIZON + slots.MINUTE) // 1000 + 10  # from here on a job's own minute is safe: it goes through dispatch
PAUSE_S = 15
PATIENCE_S = 120
SLEEP_S = 20  # posting is slower than ten jobs for each executor within a few seconds
ENDED = frozenset(map(str, FINAL_TIMES))
FUNCTION = "-ExecuteOneTimeFunction"
ARN = re.compile(r"OneTime(?!Dead)")


@dataclass(slots=True)
class Part:
    """Jobs that are measured together. `instants` are UTC milliseconds; `ids` are filled as they are posted."""

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


def measure(stored: int) -> Iterator[Figure]:
    """Deploy, warm up, run all parts, and judge them."""
    previous.clear(HOME)
    shutil.rmtree(HOME.root, ignore_errors=True)
    with up(HOME) as stack:
        client = stack.client(connections=THREADS)
        yield from _warm_up(stack, client)
        parts = _parts(time.time(), stored)
        _run(parts, stack, client, stored)
        found = _outcomes(stack, _owner(client), parts)
    for part in parts:
        yield from _judged(part, found)
    yield from _beside(parts, found)


def _parts(now: float, stored: int) -> list[Part]:
    """In the order in which they are due: the direct ones fit into the time that the others must be posted ahead."""
    ahead = 2 * PER_SECOND * SECONDS + AT_ONCE
    direct = now + ahead / POSTS_PER_S + PER_SECOND * SECONDS / POSTS_PER_S + PAUSE_S
    direct_burst = direct + SECONDS + PAUSE_S + AT_ONCE / POSTS_PER_S + PAUSE_S
    steady = max(now + ahead / POSTS_PER_S + AHEAD_S, direct_burst + PAUSE_S)
    burst = steady + SECONDS + PAUSE_S
    # What the burst's messages waited lengthens the lead of dispatch as long as it is fresh, and would be measured again.
    full = burst + PAUSE_S + max(FRESH_MS / 1000, PAUSE_S + stored / later.PER_SECOND)
    pace = f"{PER_SECOND} jobs/s for {SECONDS} s"
    return [
        Part("direct_steady", f"{pace}, direct", _steady(direct), 1, 10, direct=True),
        Part("direct_burst", f"{AT_ONCE:,} for one instant, direct", _burst(direct_burst), None, 350, direct=True),
        Part("steady", f"{pace}, through dispatch", _steady(steady), 1, 10),
        Part("burst", f"{AT_ONCE:,} for one instant, through dispatch", _burst(burst), None, 350),
        Part("steady_stored", f"{pace}, {stored:,} stored for later", _steady(full), 1, 10),
    ]


def _steady(begin: float) -> list[int]:
    return [int(begin * 1000) + number * 1000 // PER_SECOND for number in range(PER_SECOND * SECONDS)]


def _burst(at: float) -> list[int]:
    return [int(at * 1000)] * AT_ONCE


def _run(parts: Sequence[Part], stack: Stack, client: Client, stored: int) -> None:
    """Post what must be posted far ahead, then part by part: post or store what it still needs, and wait it out."""
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
            console.print(f"  [yellow]![/] too slow: {part.what} began {time.time() - part.begin:.0f} s before all was ready")
        with step(f"{part.what}: {_clock(part.begin)} to {_clock(part.end)}"):
            _until(part.end + PAUSE_S / 3)


def _post(part: Part, client: Client) -> None:
    with step(f"Posting {len(part.instants):,} jobs: {part.what}") as say, ThreadPoolExecutor(THREADS) as pool:

        def post(at: int) -> str:
            job = client.post_job("log", {"message": part.key}, execute_at=rfc3339(datetime.fromtimestamp(at / 1000, UTC)))
            return str(job["id"])

        for number, job_id in enumerate(pool.map(post, part.instants), 1):
            part.ids.append(job_id)
            say(f"{number:,} of {len(part.instants):,}")


def _warm_up(stack: Stack, client: Client) -> Iterator[Figure]:
    """Executors start as they are needed and stay for an hour; sleeping jobs need them all at once."""
    executors = _most(stack)
    with step(f"Warming up: jobs that sleep, until {executors} executors run") as say, ThreadPoolExecutor(THREADS) as pool:
        begin = time.monotonic()
        while (running := _workers(stack)) < executors and time.monotonic() - begin < PATIENCE_S:
            say(f"{running} run")
            list(pool.map(lambda _: client.post_job("log", {"message": "warm up", "sleep_seconds": SLEEP_S}), range(THREADS * 5)))
        took = time.monotonic() - begin
    yield Figure("delay.executors", "executors running after the warm-up", _workers(stack))
    yield Figure("delay.warm_up_s", "  time to start them", round(took, 1), "s")
    with step("Warming up: a burst"), ThreadPoolExecutor(THREADS) as pool:
        time.sleep(SLEEP_S)
        list(pool.map(lambda _: client.post_job("log", {"message": "warm up"}), range(300)))
        time.sleep(SLEEP_S)


def _most(stack: Stack) -> int:
    """How many executors the one-time lane may have."""
    mappings = stack.aws.client("lambda").list_event_source_mappings()["EventSourceMappings"]
    lane = next(mapping for mapping in mappings if ARN.search(mapping["EventSourceArn"]))
    return int(lane["ScalingConfig"]["MaximumConcurrency"])


def _workers(stack: Stack) -> int:
    return len(process.naming(stack.home.scratch, FUNCTION))


def _outcomes(stack: Stack, owner: str, parts: Sequence[Part]) -> dict[str, Json]:
    """All jobs as they stand once every one has ended, or when patience does."""
    wanted = {job_id for part in parts for job_id in part.ids}
    jobs = DynamoJobs(stack.aws.client("dynamodb", max_pool_connections=8), stack.outputs["JobsTable"])
    begin = time.monotonic()
    with step("Reading what happened") as say:
        while True:
            found = {job.id: render.job(job, _now()) for part in parts for job in _stored(jobs, owner, part)}
            ended = sum(found[job_id]["status"] in ENDED for job_id in wanted & found.keys())
            say(f"{ended:,} of {len(wanted):,} have ended")
            if ended == len(wanted) or time.monotonic() - begin > PATIENCE_S:
                return found
            time.sleep(5)


def _stored(jobs: DynamoJobs, owner: str, part: Part) -> Sequence[Job]:
    """The jobs of a part, read from the table: through the API it would take minutes."""
    since, until = part.instants[0], part.instants[-1] + 1
    return jobs.history(owner, since=since, until=until, after=None, limit=len(part.ids), newest_first=False).jobs


def _owner(client: Client) -> str:
    """Who is signed in, as the token says."""
    claims = (client.token or "").split(".")[1]
    return str(json.loads(base64.urlsafe_b64decode(claims + "=="))["sub"])


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
    yield Figure(f"delay.{part.key}.astray", "  not posted in time for this way", _astray(part, found), budget=0)


def _astray(part: Part, found: Mapping[str, Json]) -> int:
    """Jobs that did not take the way the part is about, because they were posted too early or too late."""
    return sum(_direct(found[job_id]) != part.direct for job_id in part.ids if job_id in found)


def _direct(job: Json) -> bool:
    created, due = (int(datetime.fromisoformat(job[name]).timestamp() * 1000) for name in ("created_at", "scheduled_at"))
    return slots.place(due, created, "", 1).direct


def _beside(parts: Sequence[Part], found: Mapping[str, Json]) -> Iterator[Figure]:
    """The last part against its like without stored jobs: within 10 %, and the millisecond that is the resolution."""
    alone, full = (percentile(_delays(part, found), 99) for part in (parts[2], parts[4]))
    yield Figure("delay.stored_p99_ms", f"{parts[4].what}: p99 beside that of the empty table", full, "ms", round(alone * 1.1 + 1, 1))


def _delays(part: Part, found: Mapping[str, Json]) -> list[int]:
    delays: list[Any] = [found[job_id].get("start_delay_ms") for job_id in part.ids if job_id in found]
    return [delay for delay in delays if delay is not None]


def _until(at: float) -> None:
    while (left := at - time.time()) > 0:
        time.sleep(min(left, 60))


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at).strftime("%H:%M:%S")
