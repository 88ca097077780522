"""The course of a run: creates what it needs, posts the jobs, waits, reads what happened, and judges it."""

import time
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from datetime import datetime

from punctual import Conflict, Punctual
from punctual.records import Json

from lab.judge import FINAL
from lab.scenarios.drill_fair import CALL
from lab.scenarios.drills import ended
from local.failure import Trouble
from local.steps import Say, console, step
from prove import behaviour, judging
from prove.cleanup import Cleanup
from prove.peers import Peers
from prove.place import Place, signed_in
from prove.plan import BEHAVIOURS, PEERS, QUIET_S, Part, Plan
from prove.report import Row
from scheduler.model.instants import render

POSTED_PER_S = 700  # the quota of a user is a thousand
THREADS = 8


def run(place: Place, plan: Plan, name: str, cleanup: Cleanup) -> tuple[list[Row], list[str]]:
    """Run the plan. Returns the rows of the table, and a complaint for each broken promise.

    All things of the run have names that begin with `name`, and are registered in `cleanup`.
    """
    with step(f"Creating the user {name}"):
        client = signed_in(place, name, cleanup)
    left = OpenJobs(client, plan)
    cleanup.later("the jobs that have not ended", left.cancel)
    ids = {part.key: _post(part, client) for part in plan.parts}
    task = behaviour.create_cron(client, plan, name, cleanup) if "cron" in plan.keys else None
    with ExitStack() as stack:
        peers = Peers(place, plan, name, cleanup, stack) if PEERS in plan.keys else None
        for part in plan.parts:
            if part.instants[0] < _now():
                raise Trouble(f"Preparing took too long: {part.title} began before it was ready. Try again.")
            _pass(f"{part.title}, {_clock(part.instants[0])} to {_clock(part.instants[-1])}", part.instants[-1])
        posted = behaviour.post(client, place, plan, name)
        _pass(", ".join([*(key for key in BEHAVIOURS if key in plan.keys), "the last arrivals"]), plan.end)
    expected = {id for each in ids.values() for id in each} | posted.ids
    with step(f"Reading {len(expected):,} jobs") as say:
        found = _read(client, plan, expected, say)
    left.none = found.keys() >= expected and all(job["status"] in FINAL for job in found.values())
    judged = [
        judging.of_part(part.key, part.title, judging.promises(ids[part.key]), found, note=_temperature(part, place, plan))
        for part in plan.parts
    ]
    judged += [behaviour.judged_cron(client, task, plan)] if task else []
    judged += behaviour.judged(posted, found, place, plan.keys)
    rows = [row for row, _ in judged] + (peers.rows() if peers else [])
    return rows, [complaint for _, complaints in judged for complaint in complaints]


def _temperature(part: Part, place: Place, plan: Plan) -> str:
    """Return how cold a cold part was; empty for the others."""
    if not part.key.startswith("cold"):
        return ""
    if place.local:
        return "the functions of the local stage were warmed up before"
    quiet_s = (plan.parts[0].instants[0] - plan.begin) // 1000
    return f"after {quiet_s // 60} minutes in which the run started no job" if quiet_s >= QUIET_S else "without quiet minutes before"


class OpenJobs:
    """The jobs of the run's user that have not ended."""

    def __init__(self, client: Punctual, plan: Plan) -> None:
        self.none = False  # True: all were seen in a final state
        self._client = client
        self._begin = plan.begin

    def cancel(self) -> None:
        """Cancel all of them."""
        if self.none:
            return
        with step("Cancelling jobs that have not ended") as say, ThreadPoolExecutor(THREADS) as pool:
            queries = ({"from_": render(self._begin)}, {"upcoming": True})
            listed = {job.id: job.status for query in queries for job in self._client.jobs.list(**query)}
            ids = [id for id, status in listed.items() if status not in FINAL]
            for number, _ in enumerate(pool.map(self._cancel, ids), 1):
                say(f"{number:,} of {len(ids):,}")

    def _cancel(self, id: str) -> None:
        with suppress(Conflict):  # it has ended meanwhile
            self._client.jobs.cancel(id)


def _post(part: Part, client: Punctual) -> list[str]:
    """Post the jobs of a part, a thousand a call. Returns their ids."""
    ids: list[str] = []
    with step(f"Posting {part.title}") as say:
        began = time.monotonic()
        for first in range(0, len(part.instants), CALL):
            time.sleep(max(0.0, began + first / POSTED_PER_S - time.monotonic()))
            answer = client.jobs.create_many([_job(part.key, at) for at in part.instants[first : first + CALL]])
            if answer.refused:
                raise Trouble(f"{answer.refused} jobs were refused: {answer.errors[0].error}")
            ids += [job.id for job in answer.jobs]
            say(f"{len(ids):,} of {len(part.instants):,}")
    return ids


def _job(key: str, at: int) -> Json:
    return {"type": "log", "payload": {"message": f"prove: {key}"}, "execute_at": render(at)}


def _read(client: Punctual, plan: Plan, expected: Collection[str], say: Say) -> dict[str, Json]:
    """Return the wanted jobs by id once all have ended, or in their last known state after the plan's patience."""
    window: Json = {"from_": render(plan.begin), "to": render(plan.end + 1)}

    def read() -> list[Json]:
        jobs = [job.raw for job in client.jobs.list(**window) if job.id in expected]
        say(f"{sum(job['status'] in FINAL for job in jobs):,} of {len(expected):,} have ended")
        return jobs

    return {job["id"]: job for job in ended(client, lambda: iter(read()), seconds=plan.size.patience_s, count=len(expected))}


def _pass(title: str, until: int) -> None:
    """Wait until an instant, with a countdown."""
    with step(title) as say:
        while (left := until / 1000 - time.time()) > 0:
            say(f"{int(left) // 60}:{int(left) % 60:02} left")
            time.sleep(min(left, 1 if console.is_terminal else 30))


def _now() -> int:
    return time.time_ns() // 1_000_000


def _clock(at: int) -> str:
    return datetime.fromtimestamp(at / 1000).strftime("%H:%M:%S")
