"""One measurement in its own process, with AWS calls answered in process: `python -m bench.inprocess dispatch 5000`. Prints JSON.

CPU time is that of the whole process (`time.process_time`), including threads. The preparation of a measurement is not counted,
only its `Work`.
"""

import io
import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from typing import Any

from lab.world.answered import Answered
from lab.world.clock import FixedClock
from lab.world.events import Context, record
from lambdas._settings import Settings
from scheduler.model import ids, lifecycle, settlement, slots
from scheduler.model.job import Claim, Finished, Job, Lane, Message, Misfire, Overlap, Result, RunInfo, TaskKey, UnitKey
from scheduler.model.rules import Rules
from scheduler.model.schedule import Cron, Schedule
from scheduler.model.spec import JobSpec
from scheduler.model.task import Task
from scheduler.storage import messages
from scheduler.storage.aws import clients, items, keys, task_items
from scheduler.storage.aws.batches import chunks
from scheduler.storage.aws.jobs import _changing, _claiming
from scheduler.storage.aws.topic import _entry
from scheduler.storage.aws.updates import as_call, as_statement
from scheduler.storage.ports import Change, ClaimRequest
from scheduler.tasks import planning
from scheduler.tasks.planning import PLAN_SHARDS

OWNER = "5f1d7e3c-6a90-4b7e-9d4e-0d6c2f7a1b58"  # as long as Cognito's
NOW = 1_795_000_000_000  # some day in November 2026
MINUTE = slots.minute_of(NOW)
START = slots.start_of(MINUTE)
SHARDS = 16
BATCH = 10
AT_ONCE = 1_000  # jobs posted in one call
TOPPED_UP = planning.RUNS_AHEAD - planning.RUNS_LEFT  # runs that a top-up stores for a task that runs seldom
MINUTELY_LEFT = planning.TIME_LEFT // slots.MINUTE  # runs that a minutely task has left when its top-up is due
MINUTELY = planning.TIME_AHEAD // slots.MINUTE - MINUTELY_LEFT  # runs that a top-up stores for it
TABLE, TASKS = "punctual-bench-jobs", "punctual-bench-tasks"
TOPIC = "arn:aws:sns:us-east-1:000000000000:punctual-bench"
QUEUE = "https://sqs.us-east-1.amazonaws.com/000000000000/punctual-bench-one-time"
EARLY_MS = 400  # how early a batch arrives: early enough for the executor to read its jobs again
EVERY_MS = 600
SETTINGS = Settings(
    stage="bench",
    jobs_table=TABLE,
    tasks_table=TASKS,
    ledger_table="punctual-bench-ledger",
    users_table="punctual-bench-users",
    audit_table="punctual-bench-audit",
    counters_table="punctual-bench-counters",
    one_time_queue_url=QUEUE,
    recurring_queue_url=QUEUE,
    retry_queue_url=QUEUE,
    topic_arn=TOPIC,
    outputs_bucket="bench-outputs",
    work_queue_url=QUEUE,
    user_pool="us-east-1_bench",
    user_pool_client_id="bench",
    lane="one-time",
    rules=Rules(windows={Lane.ONE_TIME: 500, Lane.RECURRING: 500}),
)
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "bench",
    "AWS_SECRET_ACCESS_KEY": "bench",
    "AWS_SESSION_TOKEN": "bench" * 60,  # Lambda's token is long, and every call signs it
    "AWS_DEFAULT_REGION": "us-east-1",
    "POWERTOOLS_SERVICE_NAME": "bench",
    **SETTINGS.render(),
}
_numbers = count(1)

Json = dict[str, Any]
Work = Callable[[], None]
Prepare = Callable[[Answered, int], Work]


def dispatch(per_second: int) -> Prepare:
    """Measure dispatch of a minute with `per_second` jobs a second at an even pace."""

    def prepare(aws: Answered, jobs: int) -> Work:
        from lambdas import _runtime
        from scheduler.pipeline.dispatch import WAKE_MS
        from scheduler.pipeline.dispatch import dispatch as service
        from scheduler.pipeline.tick import READY_MS
        from scheduler.pipeline.unit_lease import UnitLease

        aws.slots = _due_index([START + number * 1000 // per_second for number in range(jobs)])
        aws.items.append(unit_item())
        ports = _runtime.AwsPorts(SETTINGS)
        _ = ports.jobs, ports.ledger, ports.lanes, ports.users  # made before anything is measured

        def work() -> None:
            unit = ports.ledger.unit(UnitKey(MINUTE, 0))
            assert unit is not None
            published, done = 0, None
            for at in (START - READY_MS, START - WAKE_MS, START):  # the first dispatcher of many jobs finds that nothing is due yet
                if unit.handed_out_at is None:
                    ports.clock = FixedClock(at)
                    lease = UnitLease(unit, ports)
                    done = service(lease)
                    unit, published = lease.unit, published + done.published
            _must(done is not None and (published, done.refused, done.handed_out) == (jobs, 0, True), done)

        return work

    return prepare


def dispatch_floor(aws: Answered, jobs: int) -> Work:
    """Measure boto3 alone: messages of the same kind, published in full batches with prepared arguments."""
    sns: Any = clients.sns()
    entries = [_entry(position, _message(_job(START))) for position in range(BATCH)]
    sns.publish_batch(TopicArn=TOPIC, PublishBatchRequestEntries=entries)

    def work() -> None:
        for _ in range(jobs // BATCH):
            sns.publish_batch(TopicArn=TOPIC, PublishBatchRequestEntries=entries)

    return work


def execute(aws: Answered, jobs: int) -> Work:
    """Measure the handler with full batches of `log` jobs that are due on arrival."""
    from lambdas.execute import handler

    now = time.time_ns() // 1_000_000
    batches = [_batch(aws, f"request-{number}", now) for number in range(jobs // BATCH + 1)]
    _run(handler, *batches.pop(0))

    def work() -> None:
        for batch in batches:
            _run(handler, *batch)

    return work


def execute_early(aws: Answered, jobs: int) -> Work:
    """Measure the same with batches that arrive early: each waits for its instant and is read again."""
    from lambdas.execute import handler

    _run(handler, *_batch(aws, "request", time.time_ns() // 1_000_000))
    begin = time.time_ns() // 1_000_000 + 1_000
    arrivals = [begin + number * EVERY_MS for number in range(jobs // BATCH)]
    batches = [_batch(aws, f"request-{at}", at + EARLY_MS, read_again=True) for at in arrivals]

    def work() -> None:
        for at, batch in zip(arrivals, batches, strict=True):
            time.sleep(max(0.0, at / 1000 - time.time()))
            _run(handler, *batch)
        reads = aws.calls["BatchGetItem"]  # a batch that a busy machine starts too late is not read again, which spoils the measurement
        _must(reads == len(batches), f"{reads} of {len(batches)} batches were read again; repeat when the machine is less busy")

    return work


def execute_runs(aws: Answered, jobs: int) -> Work:
    """Measure the handler with full batches of runs of recurring tasks, due on arrival: it reads their tasks and sets their run locks."""
    from lambdas.execute import handler

    now = time.time_ns() // 1_000_000
    batches = [_batch(aws, f"request-{number}", now, of_tasks=True) for number in range(jobs // BATCH + 1)]
    _run(handler, *batches.pop(0))

    def work() -> None:
        for batch in batches:
            _run(handler, *batch)
        _must(aws.is_all_read(), "execute did not read all prepared tasks, run locks and earlier runs")

    return work


def execute_floor(aws: Answered, jobs: int) -> Work:
    """Measure boto3 alone: two UpdateItem calls a job, with prepared arguments."""
    table: Any = clients.dynamodb()
    job, taken = _pair(NOW, "request")
    calls = [as_call(update, TABLE) for update in (_claiming(_request(job, "request")), _changing(Change(taken, _succeeded(taken))))]
    table.update_item(**calls[0])

    def work() -> None:
        for _ in range(jobs):
            for call in calls:
                table.update_item(**call)

    return work


def execute_batch_floor(aws: Answered, jobs: int) -> Work:
    """Measure boto3 alone: the three calls that execute makes for a batch, with prepared arguments."""
    table: Any = clients.dynamodb()
    sqs: Any = clients.sqs()
    pairs = [_pair(NOW, "request") for _ in range(BATCH)]
    claims = [as_statement(_claiming(_request(job, "request")), TABLE) for job, _ in pairs]
    settles = [as_statement(_changing(Change(taken, _succeeded(taken))), TABLE) for _, taken in pairs]
    entries = [{"Id": str(number), "ReceiptHandle": _receipt(number), "VisibilityTimeout": 30} for number in range(BATCH)]
    aws.claims.extend([_claim_answer([taken for _, taken in pairs])] * (jobs // BATCH + 1))

    def work(batches: int = jobs // BATCH) -> None:
        for _ in range(batches):
            sqs.change_message_visibility_batch(QueueUrl=QUEUE, Entries=entries)
            table.batch_execute_statement(Statements=claims)
            table.batch_execute_statement(Statements=settles)

    work(1)
    return work


def plan(aws: Answered, jobs: int) -> Work:
    """Measure a round of planning that stores `jobs` runs of hourly tasks: for these a top-up stores the fewest runs."""
    return _planned(aws, jobs, TOPPED_UP, _task)


def plan_minutely(aws: Answered, jobs: int) -> Work:
    """Measure the same with tasks that run every minute."""
    return _planned(aws, jobs, MINUTELY, partial(_task, minutely=True))


def _planned(aws: Answered, jobs: int, each: int, make: Callable[[int], Task]) -> Work:
    """Measure a round of planning that stores `jobs` runs, `each` of a task."""
    from lambdas import _runtime
    from scheduler.tasks.plan import plan as service

    ports = _runtime.AwsPorts(SETTINGS)
    aws.items.append(b'{"Item":{"pk":{"S":"cursor"},"sk":{"S":"cursor"},"minute":{"S":"%s"},%s}}' % (MINUTE.encode(), _CURSOR))
    _must(ports.rules.shards == SHARDS, ports.rules)  # a process asks the ledger for its shards once

    def round_of(count: int) -> None:
        tasks = [make(number) for number in range(count)]
        pages: dict[str, list[Json]] = {f"{MINUTE}#{shard:02d}": [] for shard in range(PLAN_SHARDS)}
        for task in tasks:
            pages[str(task.replenish)].append({"pk": {"S": task.owner}, "sk": {"S": task.id}, "replenish": {"S": str(task.replenish)}})
        aws.slots = {slot.encode(): json.dumps({"Items": page, "Count": len(page)}).encode() for slot, page in pages.items()}
        aws.store(SETTINGS.tasks_table, map(task_items.encode, tasks))
        aws.items.append(b'{"Item":{"pk":{"S":"plan"},"sk":{"S":"plan"},"from_minute":{"S":"%s"}}}' % MINUTE.encode())

    def work(runs: int = jobs) -> None:
        ports.clock = FixedClock(START)
        done = service(ports)
        _must((done.runs, done.failed) == (runs, 0), done)

    round_of(BATCH)
    work(BATCH * each)
    round_of(jobs // each)
    return work


def api(aws: Answered, jobs: int) -> Work:
    """Measure the handler of the HTTP API with one job a call, due tomorrow."""
    from lambdas.api import handler

    due = datetime.now(UTC) + timedelta(days=1)
    events = [_post({"message": _text(number), "execute_at": (due + timedelta(milliseconds=number)).isoformat()}) for number in range(jobs)]
    first = handler(_post({"message": "first"}), Context("request"))
    _must(first["statusCode"] == 201, first)

    def work() -> None:
        for event in events:
            answer = handler(event, Context("request"))
            _must(answer["statusCode"] == 201, answer)

    return work


def batch(aws: Answered, jobs: int) -> Work:
    """Measure the same with full batches."""
    from lambdas.api import BATCH as PATH
    from lambdas.api import handler

    due = datetime.now(UTC) + timedelta(days=1)
    bodies = [{"message": _text(number), "execute_at": (due + timedelta(milliseconds=number)).isoformat()} for number in range(jobs)]
    events = [_post({"jobs": chunk}, PATH) for chunk in chunks(bodies, AT_ONCE)]
    _must(handler(_post({"jobs": [{"message": "first"}]}, PATH), Context("request"))["statusCode"] == 200, "the first call")

    def work() -> None:
        for event in events:
            answer = handler(event, Context("request"))
            _must(answer["statusCode"] == 200, answer)

    return work


MEASUREMENTS: dict[str, Prepare] = {
    "dispatch": dispatch(1_000),
    "dispatch-sparse": dispatch(50),
    "dispatch-floor": dispatch_floor,
    "execute": execute,
    "execute-held": execute_early,
    "execute-runs": execute_runs,
    "execute-floor": execute_floor,
    "execute-batch-floor": execute_batch_floor,
    "plan": plan,
    "plan-minutely": plan_minutely,
    "api": api,
    "batch": batch,
}


def measure(name: str, jobs: int) -> Json:
    """Return CPU time, calls and log bytes of one measurement."""
    os.environ |= ENVIRONMENT
    aws = Answered()
    aws.listen(clients._session().events)
    with redirect_stdout(io.StringIO()) as said:
        work = MEASUREMENTS[name](aws, jobs)
        aws.calls.clear()
        begun, begin = said.tell(), time.process_time()
        work()
        cpu_ms = (time.process_time() - begin) * 1000
    return {"jobs": jobs, "cpu_ms": cpu_ms, "calls": dict(aws.calls), "log_bytes": said.tell() - begun}


# Events, jobs and tasks for the measurements.

_CURSOR = b'"shards":{"N":"%d"},"epoch":{"N":"1"}' % SHARDS
_UNIT = {"first_shard": 0, "last_shard": SHARDS - 1, "epoch": 0, "lease_until": 0, "progress": 0, "opened_at": 0}


def _text(number: int) -> str:
    return f"one of a typical length, number {number}"


def _job(at: int) -> Job:
    number = next(_numbers)
    job_id = ids.new(at, number * 7919)
    slot = slots.slot(slots.minute_of(at), job_id, SHARDS)
    return Job(OWNER, job_id, JobSpec("log", {"message": _text(number)}), scheduled_at=at, due_at=at, created_at=at - 3_600_000, slot=slot)


def _as_run(job: Job) -> Job:
    """Return the job as a run of its own recurring task, with default overlap and misfire rules."""
    origin = RunInfo(ids.new(job.created_at, next(_numbers), partitions=1), 1, job.scheduled_at, Overlap.SKIP, Misfire.RUN_LATEST)
    return replace(job, lane=Lane.RECURRING, origin=origin, start_by=job.scheduled_at + 3_600_000)


def _task(number: int, *, minutely: bool = False) -> Task:
    """Return an hourly task whose top-up is due, as only `RUNS_LEFT` of its runs are left; or a minutely one with `TIME_LEFT`."""
    task_id = ids.new(START - 86_400_000, number * 7919, partitions=1)
    task = Task(
        OWNER,
        task_id,
        "a name of a usual length",
        JobSpec("log", {"message": _text(number)}),
        Schedule(Cron("* * * * *" if minutely else f"{number % 60} * * * *", "Europe/Berlin")),
        created_at=START - 86_400_000,
        updated_at=START - 86_400_000,
        planned_until=START,
        replenish=slots.slot(MINUTE, task_id, PLAN_SHARDS),
    )
    left = planning.next_runs(task, START, MINUTELY_LEFT if minutely else planning.RUNS_LEFT)
    return replace(task, planned_until=left[-1].nominal, planned=28)


def _message(job: Job) -> Message:
    return Message(job.key, job.fence, job.lane, job.due_at, sent_at=job.due_at - 500)


def _receipt(number: int) -> str:
    return f"{number:04d}" + "AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a" * 5


def _message_id(job: Job) -> str:
    return f"00000000-0000-4000-8000-{job.id[-12:]}"


def _request(job: Job, request_id: str) -> ClaimRequest:
    return ClaimRequest(job.key, job.fence, _message_id(job), f"{_message_id(job)}/{request_id}/1", job.due_at, False, job.due_at + 5_000)


def _pair(at: int, request_id: str, *, of_task: bool = False) -> tuple[Job, Job]:
    """Return a job before and after its claim."""
    job = _as_run(_job(at)) if of_task else _job(at)
    request = _request(job, request_id)
    return job, lifecycle.claim(job, claim=Claim(request.message_id, request.nonce, at, False))


def _succeeded(taken: Job) -> Job:
    done = Finished(taken, taken.due_at + 1, taken.due_at + 2, Result(output=_text(0)))
    return settlement.settle(done, taken.due_at + 3, Rules(shards=SHARDS))


def _batch(aws: Answered, request_id: str, due_at: int, *, read_again: bool = False, of_tasks: bool = False) -> tuple[Json, Context]:
    """Return an SQS event with a full batch, and prepare the answers to its claims and reads."""
    pairs = [_pair(due_at, request_id, of_task=of_tasks) for _ in range(BATCH)]
    taken = [after for _, after in pairs]
    aws.claims.append(_claim_answer(taken))
    if read_again:
        aws.store(TABLE, map(items.encode, taken))
    if of_tasks:
        _store_tasks(aws, taken)
    return {"Records": [_record(job, number) for number, (job, _) in enumerate(pairs)]}, Context(request_id)


def _record(job: Job, number: int) -> Json:
    sent = {"SentTimestamp": str(job.due_at - 500), "MessageGroupId": OWNER}
    return record(_message_id(job), _receipt(number), messages.encode(_message(job)), 1, **sent)


def _claim_answer(taken: list[Job]) -> bytes:
    return json.dumps({"Responses": [{"TableName": TABLE, "Item": items.encode(job)} for job in taken]}).encode()


def _store_tasks(aws: Answered, runs: list[Job]) -> None:
    """Prepare the items that execute reads before it starts runs: unchanged tasks, run locks, and earlier runs that have succeeded."""
    tasks = [TaskKey(run.owner, run.origin.task) for run in runs if run.origin is not None]
    before = [_succeeded(_pair(run.due_at - 3_600_000, "request", of_task=True)[1]) for run in runs]
    holders = [{"job": {"S": job.id}, "version": {"N": "28"}} for job in before]
    aws.store(TASKS, [keys.stored_task(task) | {"generation": {"N": "1"}} for task in tasks])
    aws.store(TASKS, [keys.holder(task) | lock for task, lock in zip(tasks, holders, strict=True)])
    aws.store(TABLE, map(items.encode, before))


def _due_index(instants: list[int]) -> dict[bytes, bytes]:
    """Return the answers of the due index, one page a slot: the projected attributes, in the order of due times."""
    found: dict[str, list[Json]] = {f"{MINUTE}#{shard:02d}": [] for shard in range(SHARDS)}
    for job in map(_job, instants):
        item = items.encode(job)
        found[item["slot"]["S"]].append({name: item[name] for name in ("pk", "sk", "slot", "due_at", "fence")})
    return {slot.encode(): json.dumps({"Items": page, "Count": len(page)}).encode() for slot, page in found.items()}


def unit_item() -> bytes:
    """The answer to a read of the unit, which nothing has driven yet."""
    return b'{"Item":{"pk":{"S":"open"},"sk":{"S":"%s#00"},"message_id":{"S":""},%s}}' % (MINUTE.encode(), _numbers_of(_UNIT))


def _numbers_of(fields: dict[str, int]) -> bytes:
    return ",".join(f'"{name}":{{"N":"{value}"}}' for name, value in fields.items()).encode()


def _post(body: Json, path: str = "/api/v1/jobs") -> Json:
    return {
        "version": "2.0",
        "routeKey": f"POST {path}",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"content-type": "application/json", "host": "bench", "authorization": "Bearer " + "e" * 900},
        "requestContext": {
            "requestId": "request",
            "stage": "$default",
            "http": {"method": "POST", "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1", "userAgent": "bench"},
            "authorizer": {"jwt": {"claims": {"sub": OWNER, "token_use": "access", "username": "admin"}, "scopes": None}},
        },
        "body": json.dumps(body),
        "isBase64Encoded": False,
    }


def _run(handler: Callable[[Json, Any], Json], event: Json, context: Context) -> None:
    answer = handler(event, context)
    _must(not answer["batchItemFailures"], answer)


def _must(holds: bool, said: object) -> None:
    """Raise RuntimeError if the measured work was not the intended work."""
    if not holds:
        raise RuntimeError(f"the measurement did not do the intended work: {said}")


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
