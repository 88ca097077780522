"""Write units per job, counted from the operations really sent while the services run.

The emulators do not count as AWS does (moto ignores sizes and indexes), so `Recorder` watches a client and prices each
write from the item before and after it, by AWS's rules: a write costs one unit per KB of the larger image; in an index
one to put or remove an entry or to change what it projects, two if its key changes; in a transaction double.
Run it with `python -m bench.operations`.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from moto import mock_aws

from scheduler.aws import clients
from scheduler.aws.items import Item, size
from scheduler.aws.jobs import DynamoJobs
from scheduler.memory import MemoryJobs, MemoryLanes, MemoryLedger
from scheduler.memory_tasks import MemoryReceipts, MemoryTasks
from scheduler.model import Failure, Job, Lane, Result
from scheduler.ports import Finished, Jobs
from scheduler.rules import Rules
from scheduler.services.execute import execute
from scheduler.services.latency import LatencyMeter
from scheduler.services.submit import NewJob, submit, submit_many
from tests.contract import tables

KB = 1024
BUDGET = 5  # units of a one-time job: create 2, claim 1, settle 2
RUN_BUDGET = 7.5  # of a run of a recurring task: one index more, its holder, and its share of a top-up
INSERTED = re.compile(r"'(\w+)':\?")  # the attributes that an INSERT names
WRITES = ("PutItem", "UpdateItem", "DeleteItem", "BatchExecuteStatement", "TransactWriteItems")


@dataclass(frozen=True, slots=True)
class Index:
    """A secondary index: its key, and what it projects (None: everything)."""

    key: tuple[str, ...]
    projected: frozenset[str] | None

    def entry(self, item: Item | None) -> Item | None:
        """What the index holds of the item."""
        if item is None or any(name not in item for name in self.key):
            return None
        return item if self.projected is None else {name: value for name, value in item.items() if name in self.projected}

    def units(self, before: Item | None, after: Item | None) -> int:
        old, new = self.entry(before), self.entry(after)
        if old == new:
            return 0
        if old and new and any(old[name] != new[name] for name in self.key):
            return units(old) + units(new)
        return max(units(old), units(new))


def units(item: Item | None) -> int:
    return 0 if item is None else math.ceil(size(item) / KB)


def price(before: Item | None, after: Item | None, indexes: Sequence[Index]) -> int:
    """Units of one write that made `after` of `before`. A refused write costs its table unit as well."""
    return max(1, units(before), units(after)) + sum(index.units(before, after) for index in indexes)


def indexes(description: Mapping[str, Any]) -> list[Index]:
    """The indexes of a table as DescribeTable tells them."""
    table_key = [key["AttributeName"] for key in description["KeySchema"]]
    found = []
    for index in description.get("GlobalSecondaryIndexes", ()):
        key = tuple(part["AttributeName"] for part in index["KeySchema"])
        projection = index["Projection"]
        names = frozenset([*table_key, *key, *projection.get("NonKeyAttributes", ())])
        found.append(Index(key, None if projection["ProjectionType"] == "ALL" else names))
    return found


@dataclass(slots=True)
class Recorder:
    """Prices every write of `client`; looks at the items through `reader`, a client of its own. One thread at a time."""

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
    """Table and key of every item that a call writes."""
    if operation == "TransactWriteItems":
        for action in params["TransactItems"]:
            ((_, one),) = action.items()
            yield one["TableName"], _key(one)
    elif operation == "BatchExecuteStatement":
        for statement in params["Statements"]:
            text = statement["Statement"]
            position = text.partition(" WHERE ")[0].count("=?")  # then come the two halves of the key; an INSERT begins with them
            pk, sk = statement["Parameters"][position : position + 2]
            yield text.split('"')[1], {"pk": pk, "sk": sk}
    else:
        yield params["TableName"], _key(params)


def _key(params: Mapping[str, Any]) -> Item:
    whole: Item = params["Key"] if "Key" in params else params["Item"]
    return {"pk": whole["pk"], "sk": whole["sk"]}


REQUEST = NewJob("5f1d7e3c-6a90-4b7e-9d4e-0d6c2f7a1b58", "log", {"message": "one of a typical length"})


@dataclass(slots=True)
class Bench:
    """The services over the jobs table of `client`, everything else in memory; time stands where the bench puts it."""

    jobs: Jobs
    lanes: MemoryLanes = field(default_factory=MemoryLanes)
    now_ms: int = 1_795_000_000_000

    def now(self) -> int:
        return self.now_ms

    def monotonic(self) -> int:
        return self.now_ms

    def sleep_until(self, at: int) -> None:
        self.now_ms = max(self.now_ms, at)

    def submit(self, count: int = 1) -> None:
        """Accept jobs due now: they go to their lane at once."""
        for number in range(count):
            submit(REQUEST, jobs=self.jobs, lanes=self.lanes, clock=self, rules=Rules(), random=number * 7919 + self.now_ms)

    def submit_many(self, count: int = 1) -> None:
        """The same in one call."""
        randoms = [number * 7919 + self.now_ms for number in range(count)]
        submit_many([REQUEST] * count, jobs=self.jobs, lanes=self.lanes, clock=self, rules=Rules(), randoms=randoms)

    def execute(self, lane: Lane, result: Result, batch: int = 1) -> None:
        """Run one batch of the lane; every job ends as `result` says."""
        deliveries = self.lanes.receive(lane, batch, self.now_ms)
        meter = LatencyMeter(lane, "bench")
        ledger, pool = MemoryLedger(), _Instant(self, result)
        left = execute(
            lane,
            deliveries,
            jobs=self.jobs,
            tasks=MemoryTasks(MemoryJobs(), MemoryReceipts()),
            lanes=self.lanes,
            ledger=ledger,
            pool=pool,
            clock=self,
            rules=Rules(),
            meter=meter,
            request_id="5f1d7e3c-6a90-4b7e-9d4e",
        )
        if left or len(deliveries) != batch:
            raise RuntimeError(f"{len(deliveries)} of {batch} messages arrived, {len(left)} of them were left")


class _Instant:
    """A pool whose work takes no time."""

    def __init__(self, bench: Bench, result: Result) -> None:
        self._bench, self._result = bench, result
        self._done: list[Finished] = []

    def start(self, job: Job) -> None:
        self._done.append(Finished(job, self._bench.now_ms, self._bench.now_ms, self._result))

    def wait(self, until: int) -> list[Finished]:
        done, self._done = self._done, []
        return done

    def cancel(self, job: Job) -> None:
        """Its work is over before anybody could ask."""

    def stop(self) -> None:
        self._done.clear()


GOOD = Result(output="one of a typical length")
BAD = Result(failure=Failure("permanent", "the target said no"))
AGAIN = Result(failure=Failure("retryable", "the target was busy"))


def one_time(bench: Bench) -> None:
    bench.submit()
    bench.execute(Lane.ONE_TIME, GOOD)


def one_time_by_batch(bench: Bench) -> None:
    bench.submit_many()
    bench.execute(Lane.ONE_TIME, GOOD)


def failed(bench: Bench) -> None:
    bench.submit()
    bench.execute(Lane.ONE_TIME, BAD)


def retried(bench: Bench) -> None:
    bench.submit()
    bench.execute(Lane.ONE_TIME, AGAIN)
    bench.now_ms += 900_000
    bench.execute(Lane.RETRY, GOOD)


SCENARIOS = {"one-time job": one_time, "job created in a batch": one_time_by_batch, "job that fails": failed, "job retried once": retried}


def main() -> None:
    for name, scenario in SCENARIOS.items():
        recorder = recorded(scenario)
        counted = ", ".join(f"{cost} {operation}" for operation, cost in recorder.by_operation().items())
        budget = f"   budget {BUDGET}" if scenario in (one_time, one_time_by_batch) else ""
        print(f"{name:22} {recorder.total()} write units ({counted}){budget}")


@dataclass(frozen=True, slots=True)
class _Inserts:
    """Carries out a batch of INSERTs in moto's place, which knows the statement but not its parameters."""

    writer: Any

    def __call__(self, params: Mapping[str, Any], **_: Any) -> Any:
        statements = json.loads(params["body"])["Statements"]
        if not statements[0]["Statement"].startswith("INSERT "):
            return None
        for statement in statements:
            item = dict(zip(INSERTED.findall(statement["Statement"]), statement["Parameters"], strict=True))
            self.writer.put_item(TableName=statement["Statement"].split('"')[1], Item=item, ConditionExpression="attribute_not_exists(pk)")
        return SimpleNamespace(status_code=200), {"Responses": [{}] * len(statements)}


def recorded(scenario: Callable[[Bench], None]) -> Recorder:
    """What the scenario writes, on moto."""
    with mock_aws():
        client, reader = (clients.dynamodb(region_name="us-east-1") for _ in range(2))
        reader.create_table(TableName="jobs", **tables.JOBS)
        recorder = Recorder(client, reader)
        client.meta.events.register("before-call.dynamodb.BatchExecuteStatement", _Inserts(reader))
        scenario(Bench(DynamoJobs(client, "jobs")))
        return recorder


if __name__ == "__main__":
    main()
