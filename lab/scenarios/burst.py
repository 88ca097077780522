"""`make burst`: post many jobs for one instant on the stack that `make run` started, and report how late they started.

The first burst also starts the executors, one process each. The second burst shows the delay with warm executors.
"""

import json
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from punctual import NoAnswer, Punctual, Unavailable
from punctual.records import Json

from lab.judge import FINAL, Promise, Verdict, judge
from local.aws import LocalAws
from local.busy import pauses
from local.failure import Trouble, exit_code
from local.home import LOCAL, Home
from local.samples import rfc3339
from local.steps import Say, console, step

JOBS = 1_000
POSTING = 1.5  # milliseconds that posting a job may take; the instant is this long ahead for each job, and 11 seconds more
PATIENCE = 180.0  # seconds to wait after the instant
QUIET = 3.0  # seconds after the instant without API calls: they would compete with the executors for the processor


def main() -> int:
    count = _count(sys.argv[1:])
    client = running(Home(LOCAL))
    if found := pauses(each for each in client.status(scope="all").problems if each.lane == "one-time"):
        raise Trouble(found[0])
    instant = (datetime.now(UTC) + timedelta(seconds=11 + count * POSTING / 1000)).replace(microsecond=0)
    with step(f"Posting {count} jobs for {instant:%H:%M:%S}"):
        ids = post(client, count, instant)
    with step("Waiting for the instant, then until all jobs have ended") as say:
        verdict = judged(client, ids, instant, say)
    for complaint in verdict.complaints[:20]:
        console.print(f"NOT KEPT  {complaint}", style="red", markup=False)
    print(json.dumps(verdict.figures()))
    return 1 if verdict.complaints else 0


def _count(arguments: list[str]) -> int:
    text = arguments[0] if arguments else str(JOBS)
    if not text.isdecimal() or not 1 <= int(text) <= 10_000:
        raise Trouble(f"N is the number of jobs, from 1 to 10000, not {text!r}.")
    return int(text)


def post(client: Punctual, count: int, instant: datetime) -> list[str]:
    """Post the jobs, a thousand per call; returns their ids."""
    jobs = [{"type": "log", "payload": {"message": f"burst {n}"}, "execute_at": rfc3339(instant)} for n in range(count)]
    return [job.id for job in client.jobs.create_many(jobs).all_jobs()]


def running(home: Home) -> Punctual:
    """Return a signed-in client of the stack that runs in `home`. Raises Trouble if none runs."""
    note, settled = home.running.read(), home.settled.read()
    if not note or "password" not in settled:
        raise Trouble("No stack is running here. Start one in another terminal: make run")
    aws = LocalAws(int(note["port"]))
    return Punctual(aws.api_address(aws.outputs()), username=settled["username"], password=settled["password"])


def judged(client: Punctual, ids: list[str], instant: datetime, say: Say, pause: Callable[[float], None] = time.sleep) -> Verdict:
    """Wait until the jobs have ended, and return the verdict. `pause` lets the time go on by seconds."""
    return judge([Promise(job_id, "burst") for job_id in ids], wait(client, set(ids), instant, say, pause))


def wait(client: Punctual, ids: set[str], instant: datetime, say: Say, pause: Callable[[float], None] = time.sleep) -> dict[str, Json]:
    """Return the jobs by id once all are final, or in their last known state after `PATIENCE`."""
    found: dict[str, Json] = {}
    paused = 0.0
    time.sleep(max(0.0, (instant - datetime.now(UTC)).total_seconds() + QUIET))
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and paused < PATIENCE:
        window: Json = {"from_": instant, "to": instant + timedelta(milliseconds=1)}
        try:
            found = {job.id: job.raw for job in client.jobs.list(**window) if job.id in ids}
        except (NoAnswer, Unavailable):
            say("the machine is busy starting executors; trying again")
            continue
        ended = sum(job["status"] in FINAL for job in found.values())
        say(f"{ended} of {len(ids)} jobs have ended")
        if ended == len(ids):
            break
        pause(1)
        paused += 1
    return found


if __name__ == "__main__":
    raise SystemExit(exit_code(main))
