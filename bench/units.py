"""Write units per job, counted from the operations really sent, and from them the cost of a million jobs.

The operations are those of a single create, a full batch or a top-up by plan, of dispatch, and of execution in full batches that wait
for their instant. Two values are assumed and listed here, since no emulator shows them: AWS's latency, and the CPU share by memory.
"""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from bench import operations, prices
from bench.cpu import spent
from bench.figures import Figure
from bench.inprocess import AT_ONCE
from bench.operations import Bench, Scenario
from infra.settings import DEV
from local.steps import step
from scheduler.model import ids, slots
from scheduler.model.job import Lane, Result
from scheduler.model.rules import Rules
from scheduler.pipeline import lead
from scheduler.pipeline.dispatch import WAKE_MS
from scheduler.pipeline.execute import FRESH_CLAIM_MS
from scheduler.storage.aws.table import CONNECTIONS

NETWORK_MS = 5.0  # assumed for a call to DynamoDB, SQS or SNS within the region
WHOLE_CORE_MB = 1_769  # Lambda memory with a whole core; less memory gets that share of it
MEMORY_MB = DEV.memory_mb
# Assumed p99 from publish to claim, which sets the lead. Others measured 22-37 ms (p95) from SQS to a warm handler alone
# (sqs-fair-queues-lab, 2026); the hop through SNS, the lease and the claim add to that.
PIPELINE_P99_MS = 200
INDEX_ENTRY_BYTES = 230  # of the due index, including the overhead of 100 bytes an entry
BATCH = 10
LANE_READS = 1 / BATCH  # reads of lane states by executors, per job: one a batch, as if no executor got two batches within a second
HEAD, HOLDER, BEFORE = 1, 1, 1  # items read before a run starts, consistently: its task, the run lock, the run before


class Size(NamedTuple):
    """The number of jobs that are counted."""

    dispatched: int = 5_000  # jobs of one minute
    jobs: int = 100  # jobs executed, and posted one by one
    calls: int = 3  # posts of a full batch
    planned: int = 1_200  # runs stored by one round of planning


SHORT = Size(dispatched=500, jobs=20, calls=1, planned=60)


class Way(NamedTuple):
    """A way to create jobs: jobs a call, the measurement, the operation that stores them, and how many of its calls run in parallel."""

    key: str
    what: str
    measurement: str
    at_once: int
    stores: str
    side_by_side: int
    budget: float  # dollars a million


WAYS = (
    Way("one_by_one", "jobs, created one by one", "api", 1, "PutItem", 1, 5.0),
    Way("by_batch", f"jobs, created {AT_ONCE:,} a call", "batch", AT_ONCE, "BatchExecuteStatement", ids.PARTITIONS, 3.5),
)
Part = tuple[str, float]  # kind of cost, and dollars a job


def measure(short: bool = False) -> Iterator[Figure]:
    size = SHORT if short else Size()
    with step("Counting write units"):
        units = {name: operations.per_job(scenario) for name, scenario in SCENARIOS.items()}
    for name, each in units.items():
        yield Figure(f"units.{name.replace(' ', '_')}", f"write units: {name}", each, budget=SCENARIOS[name].budget)
    with step("Counting the operations of a million jobs"):
        parts = {way: parts_of(way, size) for way in WAYS}
        recurring = [*_planned(size), *_run(size, units["recurring run"], "execute-runs", HEAD + HOLDER + BEFORE)]
    for way in WAYS:
        yield from _costs(way.key, way.what, parts[way], way.budget)
    yield from _costs("recurring", "runs of recurring tasks", recurring)


@cache
def parts_of(way: Way, size: Size) -> list[Part]:
    """Return dollars a job for creating it in this way and running it."""
    run = _run(size, operations.per_job(SCENARIOS["one-time job"]), "execute-held" if _is_read_again() else "execute")
    return [*_created(way, size), *run]


def _costs(key: str, what: str, parts: list[Part], budget: float | None = None) -> Iterator[Figure]:
    """Yield the cost of a million, then each of its parts; parts of the same name are added up."""
    names = dict.fromkeys(name for name, _ in parts)
    cost = {name: sum(each for other, each in parts if other == name) * prices.MILLION for name in names}
    yield Figure(f"units.cost_{key}", f"cost of a million {what}", round(sum(cost.values()), 2), "$", budget)
    for name, dollars in cost.items():
        yield Figure(f"units.cost_{key}.{name.replace(' ', '_')}", f"  {name}", round(dollars, 3), "$")


def responded(bench: Bench) -> None:
    """Run an `http` job whose response fills the stored preview of 1 KB."""
    bench.submit()
    headers = {"content-type": "application/json", "date": "Fri, 20 Nov 2026 10:01:00 GMT", "server": "example"}
    bench.execute(Lane.ONE_TIME, Result(response={"status": 200, "headers": headers, "body": "x" * 1_024}))


def created_in_a_batch(bench: Bench) -> None:
    """Create a batch without running it."""
    bench.submit_batch(BATCH)


SCENARIOS = {
    "creating a job in a batch": Scenario(created_in_a_batch, jobs=BATCH, budget=2),
    **operations.SCENARIOS,
    "job with a 1 KB response": Scenario(responded),
}


def _created(way: Way, size: Size) -> Iterator[Part]:
    """Yield dollars a job for accepting it, by kind of cost. Its write units are counted with those of its run."""
    jobs = max(size.jobs, size.calls * way.at_once)
    api = spent(way.measurement, jobs)
    posts = jobs / way.at_once
    waits = api["calls"][way.stores] / posts / way.side_by_side
    yield "HTTP API", prices.HTTP_API / way.at_once  # billed by 512 KB: a thousand jobs of this size fill a fifth of that
    yield "api function", (prices.INVOCATION + _seconds("api", api["cpu_ms"] / posts, waits)) / way.at_once
    yield "logs", api["log_bytes"] / jobs / 1e9 * prices.LOG_GB


def _planned(size: Size) -> Iterator[Part]:
    """Yield dollars a run for storing it. Its write units are counted with those of its run; plan's fixed work of every minute is left
    out."""
    plan = spent("plan", size.planned)
    calls = {name: plan["calls"].get(name, 0) / size.planned for name in ("GetItem", "UpdateItem", "BatchExecuteStatement")}
    waits = calls["GetItem"] + calls["UpdateItem"] + calls["BatchExecuteStatement"] / CONNECTIONS
    yield "DynamoDB reads", calls["GetItem"] * prices.READ_UNIT  # the task; its entry in an index of keys costs almost nothing
    yield "plan function", _seconds("plan", plan["cpu_ms"] / size.planned, waits)


def _run(size: Size, write_units: float, measurement: str, task_reads: int = 0) -> Iterator[Part]:
    """Yield dollars a job for everything after its creation. `task_reads`: read units for its task before it starts."""
    dispatch, execute = spent("dispatch", size.dispatched), spent(measurement, size.jobs)
    calls = {name: count / size.jobs for name, count in execute["calls"].items() if name != "Query"} | {"Query": LANE_READS}
    # The due index twice, the states of the lanes, and the last read of jobs that wait for their instant.
    read = INDEX_ENTRY_BYTES / 4_096 / 2 * 2 + LANE_READS + _is_read_again() + task_reads
    yield "DynamoDB writes", write_units * prices.WRITE_UNIT
    yield "DynamoDB reads", read * prices.READ_UNIT
    yield "SNS", dispatch["calls"]["PublishBatch"] / size.dispatched * prices.SNS_PUBLISH
    yield "SQS", (calls["ChangeMessageVisibilityBatch"] + 2 / BATCH) * prices.SQS_REQUEST  # and the mapping's receive and delete
    stays = (WAKE_MS + slots.MINUTE) / 1000  # seconds from shortly before the first job leaves to the last one
    yield "dispatch function", prices.GB_SECOND * stays * MEMORY_MB["dispatch"] / 1_024 / size.dispatched
    each, waits = execute["cpu_ms"] / size.jobs * BATCH, sum(calls.values()) * BATCH
    yield "execute function", (prices.INVOCATION + _seconds("execute", each, waits, waited_ms=_hold())) / BATCH
    yield "logs", execute["log_bytes"] / size.jobs / 1e9 * prices.LOG_GB  # Lambda's own lines are switched off in `infra/function.py`


def _is_read_again() -> bool:
    """True if an executor reads a waiting job again before it starts; a job claimed shortly before its instant is not read again."""
    return _hold() > FRESH_CLAIM_MS


def _hold() -> int:
    """Return the milliseconds for which an executor waits with a job."""
    rules = Rules()
    return lead.lead(PIPELINE_P99_MS, rules.lead_ms, rules.hold_ms)


def _seconds(verb: str, cpu_ms: float, calls: float, waited_ms: float = 0) -> float:
    """Return the dollars for the duration of one invocation."""
    share = min(MEMORY_MB[verb] / WHOLE_CORE_MB, 1)
    return (cpu_ms / share + calls * NETWORK_MS + waited_ms) / 1000 * MEMORY_MB[verb] / 1_024 * prices.GB_SECOND
