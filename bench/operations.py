"""Write units per job, counted from the operations that the services really send.

The emulators do not count as AWS does (moto ignores sizes and indexes). `Recorder` therefore watches a client and prices each
write from the item before and after it (`local/write_units.py`). A write in a transaction costs double.
It is a section of `make bench`: `units`.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, NamedTuple

from moto import mock_aws

from lab.world.clock import FixedClock
from lab.world.pools import ScriptedPool
from lab.world.stage import Stage
from local.write_units import Index, indexes, price
from scheduler.jobs import by_key
from scheduler.model import ids, slots
from scheduler.model.job import Failure, FailureKind, JobKey, Lane, Overlap, Receipt, Result, Unit, UnitKey
from scheduler.model.spec import JobSpec
from scheduler.model.task import Task
from scheduler.pipeline.submit import NewJob, Submission, submit_all
from scheduler.pipeline.tick import READY_MS
from scheduler.storage.aws import clients
from scheduler.storage.aws.calendars import DynamoCalendars
from scheduler.storage.aws.items import Item
from scheduler.storage.aws.jobs import DynamoJobs
from scheduler.storage.aws.keys import Term
from scheduler.storage.aws.receipts import DynamoReceipts
from scheduler.storage.aws.tasks import DynamoTasks
from scheduler.storage.aws.updates import Update, as_call
from scheduler.storage.memory.stores import MemoryJobs, MemoryLedger
from scheduler.storage.memory.tasks import MemoryReceipts, MemoryTasks
from scheduler.storage.ports import Calendars, Jobs, Receipts, Tasks
from scheduler.tasks import planning, service
from scheduler.tasks.plan import plan
from scheduler.tasks.service import NewTask
from tests.contract import tables

BUDGET = 5  # units of a one-time job: create 2, claim 1, settle 2
RUN_BUDGET = 7.5  # units of a run of a recurring task: one index more, its run lock, and its share of a top-up
INSERTED = re.compile(r"'(\w+)':\?")  # the attributes that an INSERT names
SET, REMOVED = re.compile(r'SET "(\w+)"=\?'), re.compile(r'REMOVE "(\w+)"')  # the attributes that an UPDATE sets and removes
TERM = re.compile(r' AND ((?:"\w+"\.?)+)(?:(<=|=)\?| IS (NOT )?MISSING)')
WRITES = ("PutItem", "UpdateItem", "DeleteItem", "BatchExecuteStatement", "TransactWriteItems")


@dataclass(slots=True)
class Recorder:
    """Prices every write of `client`. Reads the items through `reader`, a separate client. Not thread-safe."""

    client: Any
    reader: Any
    writes: list[tuple[str, int]] = field(default_factory=list)
    _indexes: dict[str, list[Index]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.client.meta.events.register("provide-client-params.dynamodb", self._before)
        self.client.meta.events.register("after-call.dynamodb", self._after)

    def total(self) -> int:
        return sum(cost for _, cost in self.writes)

    def by_operation(self) -> Counter[str]:
        counted: Counter[str] = Counter()
        for operation, cost in self.writes:
            counted[operation] += cost
        return counted

    def _before(self, params: Mapping[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        if model.name in WRITES:
            context["written"] = [(table, key, self._read(table, key)) for table, key in _touched(model.name, params)]

    def _after(self, model: Any, context: dict[str, Any], **_: Any) -> None:
        factor = 2 if model.name == "TransactWriteItems" else 1
        for table, key, before in context.get("written", ()):
            cost = factor * price(before, self._read(table, key), self._indexes_of(table))
            self.writes.append((model.name, cost))

    def _read(self, table: str, key: Item) -> Item | None:
        found: Item | None = self.reader.get_item(TableName=table, Key=key, ConsistentRead=True).get("Item")
        return found

    def _indexes_of(self, table: str) -> list[Index]:
        if table not in self._indexes:
            self._indexes[table] = indexes(self.reader.describe_table(TableName=table)["Table"])
        return self._indexes[table]


def _touched(operation: str, params: Mapping[str, Any]) -> Iterator[tuple[str, Item]]:
    """Yield table and key of every item that a call writes."""
    if operation == "TransactWriteItems":
        for action in params["TransactItems"]:
            ((_, one),) = action.items()
            yield one["TableName"], _key(one)
    elif operation == "BatchExecuteStatement":
        for statement in params["Statements"]:
            text = statement["Statement"]
            position = text.partition(" WHERE ")[0].count("=?")  # of the two parts of the key; an INSERT begins with them
            pk, sk = statement["Parameters"][position : position + 2]
            yield text.split('"')[1], {"pk": pk, "sk": sk}
    else:
        yield params["TableName"], _key(params)


def _key(params: Mapping[str, Any]) -> Item:
    whole: Item = params["Key"] if "Key" in params else params["Item"]
    return {"pk": whole["pk"], "sk": whole["sk"]}


REQUEST = NewJob("5f1d7e3c-6a90-4b7e-9d4e-0d6c2f7a1b58", JobSpec("log", {"message": "one of a typical length"}))
TASK = NewTask(
    REQUEST.owner,
    "a name of a usual length",
    replace(REQUEST.spec, tags=("billing",)),
    {"cron": "0 * * * *", "time_zone": "Europe/Berlin"},
    description="Its purpose in a sentence or two, so that every other user finds its owner before they change it.",
)
NAMED = "order 17, expiry"
BATCH = 10  # jobs created in one call, and executed in one
RUNS = 12  # two top-ups: for an hourly task a top-up stores six runs, the fewest possible


class Bench(Stage):
    """The services over the given ports, with all other ports in memory. Callers set its clock."""

    def __init__(
        self, jobs: Jobs, tasks: Tasks | None = None, receipts: Receipts | None = None, calendars: Calendars | None = None
    ) -> None:
        tasks, receipts = tasks or MemoryTasks(MemoryJobs(), MemoryReceipts()), receipts or MemoryReceipts()
        super().__init__(FixedClock(1_795_000_000_000), jobs=jobs, tasks=tasks, receipts=receipts, calendars=calendars)

    def submit(self, count: int = 1) -> None:
        """Accept jobs that are due now, one a call: they are enqueued at once."""
        for _ in range(count):
            self.submit_batch(1)

    def submit_batch(self, count: int) -> None:
        """Accept jobs that are due now in one call."""
        self.post(*[REQUEST] * count)

    def submit_keyed(self) -> None:
        """Accept a job with an idempotency key."""
        receipt = Receipt(REQUEST.owner, "order 17 of 2026-11-20", "f" * 64, self.clock.now(), random=7919)
        submit_all([Submission(REQUEST, receipt.random, receipt)], self)

    def put_by_key(self) -> None:
        """Put a job under a key, due in an hour: a new one, or a minute later in the place of the one that has it."""
        self.clock.advance(60_000)
        new = replace(REQUEST, spec=replace(REQUEST.spec, key=NAMED), delay_ms=3_600_000)
        by_key.put(new, self, random=self.clock.now())

    def submit_named(self) -> None:
        """Accept a job that is due now and takes a key of its owner's."""
        self.post(replace(REQUEST, spec=replace(REQUEST.spec, key=NAMED)))

    def create(self, overlap: Overlap) -> None:
        """Create the only task: a recurring one."""
        service.create(replace(TASK, overlap=overlap), self, random=self.clock.now())

    def run(self, count: int) -> None:
        """Run the next runs of the task, each through dispatch; plan adds runs when its minute is reached."""
        for _ in range(count):
            task = self._task()
            (run,) = planning.next_runs(task, self.clock.now(), 1)
            if task.replenish is not None and (at := slots.start_of(slots.minute(task.replenish))) <= run.at:
                self.clock.sleep_until(at)
                self._plan()
            key = UnitKey(slots.minute_of(run.at), 0)
            self.ledger.open_unit(Unit(key, 0, self.rules.shards - 1, next_at=slots.start_of(key.minute) - READY_MS))
            self.clock.sleep_until(slots.start_of(key.minute) - READY_MS)
            self.dispatch_all(key)
            self.run_batch(Lane.RECURRING, GOOD)
            done = self.jobs.get(JobKey(task.owner, ids.run(run.at, task.id, task.generation)))
            if done is None or done.completed_at is None:
                raise RuntimeError(f"the run did not complete: {done}")

    def _task(self) -> Task:
        found: list[Task] = self.tasks.page(TASK.owner, after=None, limit=2).tasks
        return found[0]

    def _plan(self) -> None:
        """Run plan as if it had run every minute until now."""
        ledger = MemoryLedger()
        ledger.set_plan_cursor(None, slots.minute_of(self.clock.now()))
        done = plan(self.but(ledger=ledger))
        if done.tasks != 1 or done.failed:
            raise RuntimeError(f"plan did not top up the task: {done}")

    def run_batch(self, lane: Lane, result: Result, batch: int = 1) -> None:
        """Execute one batch of the lane, of `batch` jobs, whose work takes no time; every job ends with `result`."""
        deliveries = self.receive(lane, batch)
        pool = ScriptedPool(self.clock, takes=0, result=result)
        left = self.execute(deliveries, pool=pool, lane=lane, request_id="5f1d7e3c-6a90-4b7e-9d4e")
        jobs = sum(len(item.singles()) for item in deliveries)
        if left or jobs != batch:
            raise RuntimeError(f"{jobs} of {batch} jobs arrived, {len(left)} of their messages were not processed")


GOOD = Result(output="one of a typical length")
BAD = Result(failure=Failure(FailureKind.PERMANENT, "the target said no"))
AGAIN = Result(failure=Failure(FailureKind.RETRYABLE, "the target was busy"))


def one_time(bench: Bench) -> None:
    bench.submit()
    bench.run_batch(Lane.ONE_TIME, GOOD)


def one_time_by_batch(bench: Bench) -> None:
    bench.submit_batch(BATCH)
    bench.run_batch(Lane.ONE_TIME, GOOD, BATCH)


def failed(bench: Bench) -> None:
    bench.submit()
    bench.run_batch(Lane.ONE_TIME, BAD)


def retried(bench: Bench) -> None:
    bench.submit()
    bench.run_batch(Lane.ONE_TIME, AGAIN)
    bench.clock.advance(900_000)
    bench.run_batch(Lane.RETRY, GOOD)


def with_key(bench: Bench) -> None:
    bench.submit_keyed()
    bench.run_batch(Lane.ONE_TIME, GOOD)


def with_own_key(bench: Bench) -> None:
    bench.submit_named()
    bench.run_batch(Lane.ONE_TIME, GOOD)


def nothing(bench: Bench) -> None:
    """Prepare nothing."""


class Scenario(NamedTuple):
    """A scenario: `before` prepares it; the writes of `work` are counted and divided by `jobs`."""

    work: Callable[[Bench], None]
    before: Callable[[Bench], None] = nothing
    jobs: int = 1
    budget: float | None = None


def recurring(overlap: Overlap, budget: float | None = None) -> Scenario:
    """Return the scenario of a task's later runs: it does not count the creation and the first runs, which were stored with it."""

    def before(bench: Bench) -> None:
        bench.create(overlap)
        bench.run(RUNS // 2)

    return Scenario(lambda bench: bench.run(RUNS), before, RUNS, budget)


SCENARIOS = {
    "one-time job": Scenario(one_time, budget=BUDGET),
    "job created in a batch": Scenario(one_time_by_batch, jobs=BATCH, budget=BUDGET),
    "job with an idempotency key": Scenario(with_key),
    "job with a key of its owner": Scenario(with_own_key),
    "replacing a job by its key": Scenario(Bench.put_by_key, before=Bench.put_by_key),
    "job that fails": Scenario(failed),
    "job retried once": Scenario(retried),
    "recurring run": recurring(Overlap.SKIP, RUN_BUDGET),
    "recurring run that may overlap": recurring(Overlap.ALLOW),
}


@dataclass(frozen=True, slots=True)
class Statements:
    """Executes a batch of statements instead of moto, which supports neither parameters of INSERT nor conditions of UPDATE."""

    writer: Any

    def __call__(self, params: Mapping[str, Any], **_: Any) -> Any:
        statements = json.loads(params["body"])["Statements"]
        return SimpleNamespace(status_code=200), {"Responses": [self._run(**each) for each in statements]}

    def _run(self, Statement: str, Parameters: Sequence[Any], **_: Any) -> dict[str, Any]:
        table = Statement.split('"')[1]
        try:
            if Statement.startswith("INSERT "):
                item = dict(zip(INSERTED.findall(Statement), Parameters, strict=True))
                self.writer.put_item(TableName=table, Item=item, ConditionExpression="attribute_not_exists(pk)")
            else:
                self.writer.update_item(**as_call(_read(Statement, list(Parameters)), table))
        except self.writer.exceptions.ConditionalCheckFailedException as error:
            return {"Error": {"Code": "ConditionalCheckFailed", "Item": error.response.get("Item")}}
        return {}


def _read(text: str, values: list[Any]) -> Update:
    """Parse a statement that `updates.as_statement` wrote."""
    sets = {name: values.pop(0) for name in SET.findall(text)}
    key = {"pk": values.pop(0), "sk": values.pop(0)}
    terms = []
    for path, compared, there in TERM.findall(text.partition('"sk"=?')[2]):
        test: Any = compared or ("exists" if there else "missing")
        terms.append(Term(tuple(path.replace('"', "").split(".")), test, values.pop(0) if compared else None))
    return Update(key, sets, REMOVED.findall(text), terms)


def per_job(scenario: Scenario) -> float:
    """Return the write units per job."""
    return recorded(scenario).total() / scenario.jobs


def recorded(scenario: Scenario) -> Recorder:
    """Run the scenario on moto and return its recorded writes."""
    with mock_aws():
        client, reader = (clients.dynamodb(region_name="us-east-1") for _ in range(2))
        for name, table in tables.ALL.items():
            reader.create_table(TableName=name, **table)
        recorder = Recorder(client, reader)
        client.meta.events.register("before-call.dynamodb.BatchExecuteStatement", Statements(reader))
        stored = DynamoTasks(client, "tasks", jobs="jobs", ledger="ledger")
        bench = Bench(DynamoJobs(client, "jobs"), stored, DynamoReceipts(client, "ledger"), DynamoCalendars(client, "tasks"))
        scenario.before(bench)
        recorder.writes.clear()
        scenario.work(bench)
        return recorder
