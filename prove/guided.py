"""Rows of the first hour that need a deployment by you, or that burden the stage: `--guided` goes through them one by one."""

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from punctual import Punctual
from punctual.records import Json

from lab.scenarios.drills import ended
from local.steps import step
from prove import judging
from prove.answers import mappings
from prove.first_hour import Check, Hour, Seen, not_run, passed
from prove.place import signed_in
from scheduler.model.instants import render

AHEAD_S = 60  # from posting jobs to their first instant; jobs for one instant need the time to be posted
PER_S, MINUTES = 20, 15  # the load under which the stage is deployed twice
CALL, POSTED_PER_S = 1_000, 700  # jobs of a call, and a second: the quota of a user is a thousand
PATIENCE_S = 600
METRICS_S = 180  # until CloudWatch has the figures of the last minutes
LATE_MS = 500  # of a job while the stage is deployed
CALLS, FAILURES = 1_000, 20_000
ENGINE = ("TickFunction", "DispatchFunction", "PlanFunction")  # outputs of the stack


def answered(hour: Hour) -> Seen:
    """Ask for the outcome: only a person can see it."""
    answer = hour.ask("Was it as expected? [y/n, or s if you did not try it] ").strip().lower() if hour.ask else "s"
    return not_run("not tried") if answer not in ("y", "n") else passed(answer == "y")


def events(hour: Hour) -> Seen:
    client = signed_in(hour.place, f"{hour.name}-events", hour.cleanup)
    client.jobs.create("log", {"message": "prove: events"}, delay=1, events=True)
    time.sleep(90)  # changes are collected for 30 s
    return mappings(hour)


def deployed_under_load(hour: Hour) -> Seen:
    """Jobs start on time while the stage is deployed."""
    begin = _whole_second(AHEAD_S)
    instants = [begin + number * 1000 // PER_S for number in range(PER_S * 60 * MINUTES)]
    client = signed_in(hour.place, f"{hour.name}-load", hour.cleanup)
    ids = _post(client, [_log(at) for at in instants])
    if hour.ask:
        hour.ask(f"{PER_S} jobs a second are due for {MINUTES} minutes. Deploy now, twice. Press Enter when both deployments have ended: ")
    _sleep_until(instants[-1])
    found = _read(client, instants, ids)
    row, complaints = judging.of_part("deployed", "jobs while the stage is deployed", judging.promises(ids), found, too_late_ms=LATE_MS)
    functions = [name for output, name in hour.place.outputs.items() if output.endswith("Function")]
    errors = _sums(hour, "AWS/Lambda", "Errors", begin, [{"FunctionName": name} for name in functions])  # those of an INIT, too
    complaints += [f"{count} errors of {name}" for name, count in zip(functions, errors, strict=True) if count]
    return passed(not complaints, "; ".join([f"p50 {row.p50_ms}, p99 {row.p99_ms}, max {row.max_ms} ms", *complaints]))


def calls_at_once(hour: Hour) -> Seen:
    """Calls of URLs take executions of Lambda: the tick must still get its own."""
    at = _whole_second(AHEAD_S)
    client = signed_in(hour.place, f"{hour.name}-calls", hour.cleanup)
    ids = _post(client, [{"type": "http", "payload": {"method": "GET", "url": hour.place.called}, "execute_at": render(at)}] * CALLS)
    found = _read(client, [at], ids)
    done = sum(job["status"] == "succeeded" for job in found.values())
    throttled = _sums(hour, "AWS/Lambda", "Throttles", at, [{"FunctionName": hour.place.outputs[name]} for name in ENGINE])
    counts = f"{done} of {CALLS} succeeded; throttled: {dict(zip(ENGINE, throttled, strict=True))}"
    return passed(done == CALLS and not any(throttled), counts)


def failures_at_once(hour: Hour) -> Seen:
    """All failed jobs of one owner are in few partitions of the index `failures`.

    Their hosts do not exist, so that nothing but the index slows them. Each job has a host of its own: one host would have a breaker.
    """
    at = _whole_second(AHEAD_S)
    client = signed_in(hour.place, f"{hour.name}-failures", hour.cleanup)
    payloads = [{"method": "GET", "url": f"https://prove-{number}.invalid/"} for number in range(FAILURES)]
    ids = _post(client, [{"type": "http", "payload": each, "execute_at": render(at), "max_attempts": 1} for each in payloads])
    found = _read(client, [at], ids)
    failed = sum(job["status"] == "failed" for job in found.values())
    names = {"TableName": hour.place.outputs["JobsTable"], "GlobalSecondaryIndexName": "failures"}
    (throttled,) = _sums(hour, "AWS/DynamoDB", "WriteThrottleEvents", at, [names])
    return passed(failed == FAILURES, f"{failed:,} of {FAILURES:,} failed as they should; {throttled} throttled writes of the index")


def _whole_second(ahead_s: int) -> int:
    return (int(time.time()) + ahead_s) * 1000


def _log(at: int) -> Json:
    return {"type": "log", "payload": {"message": "prove: first hour"}, "execute_at": render(at)}


def _post(client: Punctual, jobs: Sequence[Json]) -> list[str]:
    ids: list[str] = []
    with step(f"Posting {len(jobs):,} jobs") as say:
        began = time.monotonic()
        for first in range(0, len(jobs), CALL):
            time.sleep(max(0.0, began + first / POSTED_PER_S - time.monotonic()))
            ids += [job.id for job in client.jobs.create_many(jobs[first : first + CALL]).all_jobs()]
            say(f"{len(ids):,} of {len(jobs):,}")
    return ids


def _read(client: Punctual, instants: Sequence[int], ids: Sequence[str]) -> dict[str, Json]:
    """The jobs by id once all have ended, or as they are after `PATIENCE_S`."""
    _sleep_until(instants[-1])
    expected = set(ids)

    def read() -> Iterator[Json]:
        return (job.raw for job in client.jobs.list(from_=render(instants[0]), to=render(instants[-1] + 1)) if job.id in expected)

    return {job["id"]: job for job in ended(client, read, seconds=PATIENCE_S, count=len(expected))}


def _sleep_until(at: int) -> None:
    time.sleep(max(0.0, at / 1000 - time.time()))


def _sums(hour: Hour, namespace: str, metric: str, since: int, dimensions: Sequence[dict[str, str]]) -> list[int]:
    """The sum of a metric since an instant, in UTC milliseconds, for each of the dimensions."""
    time.sleep(METRICS_S)
    begin, client = datetime.fromtimestamp(since / 1000, UTC) - timedelta(minutes=1), hour.place.client("cloudwatch")

    def sum_of(names: dict[str, str]) -> int:
        found = client.get_metric_statistics(
            Namespace=namespace,
            MetricName=metric,
            Dimensions=[{"Name": name, "Value": value} for name, value in names.items()],
            StartTime=begin,
            EndTime=datetime.now(UTC),
            Period=60,
            Statistics=["Sum"],
        )
        return int(sum(point["Sum"] for point in found["Datapoints"]))

    return [sum_of(names) for names in dimensions]


CHECKS = (
    Check(
        "events",
        'deploys `events = "all"`, and ends a job',
        "the mapping of `announce` reads the stream with its patterns, without a problem",
        events,
        'Set `events = "all"` in the options of the stage, and deploy it.',
    ),
    Check(
        "provisioned",
        "deploys `provisioned_writes = 500` on the running stage, and takes it back",
        "both deployments end, and no job is refused",
        answered,
        "Set `provisioned_writes = 500` in the options of the stage, deploy it, take the option out, deploy it again.",
    ),
    Check(
        "deployed-under-load",
        f"deploys the stage twice, with its versions and aliases, under {PER_S} jobs a second",
        "no job is lost, early, twice or more than half a second late, and no function has an error",
        deployed_under_load,
        "For the two deployments, change `tracing` in the options of the stage: it changes every function.",
    ),
    Check(
        "calls-at-once",
        f"runs {CALLS:,} `http` jobs for one instant, which call the stage's own API",
        "all succeed, and neither tick, dispatch nor plan is throttled",
        calls_at_once,
        "In that minute the API of the stage refuses some requests of others.",
    ),
    Check(
        "failures-at-once",
        f"lets {FAILURES:,} jobs of one owner fail at one instant",
        "all of them have failed within ten minutes",
        failures_at_once,
        "In these minutes jobs of others may wait. The failed jobs stay in the history for 90 days.",
    ),
    Check(
        "customer-key",
        "deploys `customer_key = true`, runs jobs, and tries to take the option back",
        "jobs run, their outputs can be read, and the deployment without the option is refused with the reason",
        answered,
        "The key costs 1 USD a month, and what it has encrypted needs it: try it in a stage that you will destroy.",
    ),
    Check(
        "failed-creation",
        "lets the first deployment of `prod` fail, by a policy that denies `sqs:CreateQueue` say, and deploys it again",
        "each deployment that fails names the next step, and that step works",
        answered,
        "Only in an account where you can delete what stays.",
    ),
)
