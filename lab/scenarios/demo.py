"""`make demo`: a fresh stack, sixty jobs, a task with six runs, and a verdict.

The last line is JSON. The exit code is 1 if a job or a run was lost, duplicated, early, more than ten seconds late or unsuccessful.
"""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

from punctual import Punctual
from punctual.records import Json

from lab.judge import FINAL, Promise, Verdict, judge, of_task
from local import previous, table
from local.failure import exit_code
from local.receiver import Receiver
from local.samples import Sample, SampleTask, call, log, rfc3339
from local.stack import up
from local.steps import Say, console, step
from local.stop import DEMO
from local.warmup import warm_up

LEAD = timedelta(seconds=8)  # the scheduled jobs are due after everything is posted
PATIENCE = 90.0  # seconds to wait after the last due time
EXECUTORS = 10
WARM_UP = 20  # jobs
RUNS = 6  # of the task: one every five seconds, as long as jobs are due


def main() -> int:
    previous.clear(DEMO)
    shutil.rmtree(DEMO.root, ignore_errors=True)
    with up(DEMO, port=os.environ.get("PORT")) as stack, Receiver() as receiver:
        client = stack.client()
        with step(f"Warming up: {EXECUTORS} executors and {WARM_UP} jobs outside the verdict") as say:
            warm_up(stack.aws, stack.outputs, OneTime=EXECUTORS, Recurring=2, Retry=1)
            wait(client, post(client, [log(f"warm up {n}") for n in range(WARM_UP)]), say)
        start = datetime.now(UTC) + LEAD
        plan = list(jobs(receiver, start))
        with step(f"Posting a task and {len(plan)} jobs, due now and over the next half minute"):
            task = regular_task(receiver, start).create(client)
            ids = post(client, plan)
        with step("Waiting until all jobs have ended") as say:
            verdict, found = judged(client, receiver, task, plan, ids, say)
    report(verdict, list(found.values()), {task["id"]: task["name"]})
    return 1 if verdict.complaints else 0


def judged(
    client: Punctual,
    receiver: Receiver,
    task: Json,
    plan: Sequence[Sample],
    ids: Sequence[str],
    say: Say,
    pause: Callable[[float], None] = time.sleep,
) -> tuple[Verdict, dict[str, Json]]:
    """Wait until the jobs (`ids`, posted as planned) and the runs of the task have ended. Return the verdict, and all jobs by id.

    `pause` lets the time go on by seconds.
    """
    found = wait(client, [*ids, *runs(client, task)], say, pause)
    found |= (last := runs(client, task))
    promises = [promise(*pair, receiver) for pair in zip(ids, plan, strict=True)] + promised(task, list(last.values()), receiver)
    return judge(promises, found), found


def jobs(receiver: Receiver, start: datetime) -> Iterator[Sample]:
    """Yield sixty jobs: ten due now, twenty one by one, twenty for one instant, and ten calls, one of which fails the first time."""
    yield from (log(f"now {n}") for n in range(9))
    yield call(receiver, "/ok/now")
    yield from (log(f"at its own time {n}", start + timedelta(milliseconds=1_250 * n + 137)) for n in range(20))
    yield from (log(f"at one instant {n}", start + timedelta(seconds=12)) for n in range(20))
    yield from (call(receiver, f"/ok/{n}", start + timedelta(milliseconds=2_500 * n + 70)) for n in range(9))
    yield call(receiver, "/fail-once/demo", start + timedelta(seconds=3), attempts=2)


def regular_task(receiver: Receiver, start: datetime) -> SampleTask:
    """Return a task that calls the receiver every five seconds."""
    run = call(receiver, "/ok/task")
    schedule = {"rate": "5 seconds", "start": rfc3339(start), "max_runs": RUNS}
    return SampleTask("5 seconds", run.type, run.payload, schedule)


def runs(client: Punctual, task: Json) -> dict[str, Json]:
    """Return all jobs of the task by id."""
    ahead = {job.id: job.raw for job in client.tasks.jobs(task["id"], upcoming=True)}
    return ahead | {job.id: job.raw for job in client.tasks.jobs(task["id"])}


def promised(task: Json, found: Sequence[Json], receiver: Receiver) -> list[Promise]:
    """Return a promise for each run that the answer to the task's creation announced."""
    calls: dict[str, list[int]] = {}
    for each in receiver.calls("/ok/task"):
        calls.setdefault(each.headers["Idempotency-Key"], []).append(each.at)
    return of_task(task["name"], [run["nominal"] for run in task["next_runs"]], found, calls)


def post(client: Punctual, samples: Sequence[Sample]) -> list[str]:
    with ThreadPoolExecutor(4) as pool:
        return [job["id"] for job in pool.map(lambda sample: sample.post(client), samples)]


def wait(client: Punctual, ids: Sequence[str], say: Say, pause: Callable[[float], None] = time.sleep) -> dict[str, Json]:
    """Return the jobs by id once all are final, or in their last known state after `PATIENCE`."""
    found: dict[str, Json] = {}
    paused, begin = 0.0, time.monotonic()
    while max(time.monotonic() - begin, paused) < PATIENCE + 40:
        for job_id in ids:
            if found.get(job_id, {}).get("status") not in FINAL:
                found[job_id] = client.jobs.get(job_id).raw
        ended = sum(job["status"] in FINAL for job in found.values())
        say(f"{ended} of {len(ids)} jobs have ended")
        if ended == len(ids):
            break
        pause(1)
        paused += 1
    return found


def promise(job_id: str, sample: Sample, receiver: Receiver) -> Promise:
    calls = [call.at for call in receiver.calls(sample.path)] if sample.path else None
    label = sample.payload.get("message") or sample.path
    return Promise(job_id, str(label), sample.attempts, calls)


def report(verdict: Verdict, found: Sequence[Mapping[str, Any]], names: Mapping[str, str]) -> None:
    ordered = sorted(found, key=lambda job: (str(job["scheduled_at"]), str(job["id"])))
    console.print(table.picture(ordered, "The delay is from the scheduled time to the first start.", names=names))
    for complaint in verdict.complaints:
        console.print(f"NOT KEPT  {complaint}", style="red", markup=False)
    print(json.dumps(verdict.figures()))


if __name__ == "__main__":
    raise SystemExit(exit_code(main))
