"""Write units per job from the operations really sent, and what a million jobs cost by them.

The operations are those of a single create, a full batch or a top-up by plan, one way through dispatch, and execution in full batches,
each held to its instant. What no emulator can tell is assumed, and listed here: AWS's latency, and the CPU that a function's memory buys.
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
from scheduler.pipeline.execute import FRESH_CLAIM_MS
from scheduler.storage.aws.table import CONNECTIONS

NETWORK_MS = 5.0  # assumed: of a call to DynamoDB, SQS or SNS within the region
WHOLE_CORE_MB = 1_769  # of Lambda memory; less buys that share of a core
MEMORY_MB = DEV.memory_mb
# Assumed p99 from publish to claim, which sets the lead. From SQS to a warm handler alone, 22-37 ms (p95) have been measured
# by others (sqs-fair-queues-lab, 2026); the hop through SNS, the lease and the claim come on top.
PIPELINE_P99_MS = 200
INDEX_ENTRY_BYTES = 230  # of the due index, with the 100 that each entry costs besides
BATCH = 10
LANE_LOOKS = 1 / BATCH  # reads of the lanes' states by executors: a batch each, as if none got two batches within a second
HEAD, HOLDER, BEFORE = 1, 1, 1  # read of a run's task before it starts: each an item, consistently


class Size(NamedTuple):
    """How many jobs are counted."""

    dispatched: int = 5_000  # jobs of one minute
    jobs: int = 100  # jobs executed, and posted one by one
    calls: int = 3  # posts of a full batch
    planned: int = 1_200  # runs stored by one round of planning


SHORT = Size(dispatched=500, jobs=20, calls=1, planned=60)


class Way(NamedTuple):
    """A way to create jobs: how many a call, who measures it, the call that stores them, how many of it run side by side."""

    key: str
    what: str
    measurement: str
    at_once: int
    stores: str
    side_by_side: int
    budget: float  # dollars a million


WAYS = (
    Way("one_by_one", "jobs, created one by one", "api", 1, "PutItem", 1, 5.2),
    Way("by_batch", f"jobs, created {AT_ONCE:,} a call", "batch", AT_ONCE, "BatchExecuteStatement", ids.PARTITIONS, 3.9),
)
Part = tuple[str, float]  # what, and dollars a job


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
    """Dollars a job for creating it so and running it."""
    run = _run(size, operations.per_job(SCENARIOS["one-time job"]), "execute-held" if _is_read_again() else "execute")
    return [*_created(way, size), *run]


def _costs(key: str, what: str, parts: list[Part], budget: float | None = None) -> Iterator[Figure]:
    """What a million of them cost, and what it goes to; parts of the same name together."""
    names = dict.fromkeys(name for name, _ in parts)
    cost = {name: sum(each for other, each in parts if other == name) * prices.MILLION for name in names}
    yield Figure(f"units.cost_{key}", f"cost of a million {what}", round(sum(cost.values()), 2), "$", budget)
    for name, dollars in cost.items():
        yield Figure(f"units.cost_{key}.{name.replace(' ', '_')}", f"  {name}", round(dollars, 3), "$")


def responded(bench: Bench) -> None:
    """An `http` job whose answer fills the kept excerpt of 1 KB."""
    bench.submit()
    headers = {"content-type": "application/json", "date": "Fri, 20 Nov 2026 10:01:00 GMT", "server": "example"}
    bench.execute(Lane.ONE_TIME, Result(response={"status": 200, "headers": headers, "body": "x" * 1_024}))


def created_in_a_batch(bench: Bench) -> None:
    """Only that: it is run as any other."""
    bench.submit_batch(BATCH)


SCENARIOS = {
    "creating a job in a batch": Scenario(created_in_a_batch, jobs=BATCH, budget=2),
    **operations.SCENARIOS,
    "job with a 1 KB response": Scenario(responded),
}


def _created(way: Way, size: Size) -> Iterator[Part]:
    """Dollars a job for accepting it, by what they go to; its write units are counted with the others."""
    jobs = max(size.jobs, size.calls * way.at_once)
    api = spent(way.measurement, jobs)
    posts = jobs / way.at_once
    waits = api["calls"][way.stores] / posts / way.side_by_side
    yield "HTTP API", prices.HTTP_API / way.at_once  # billed by 512 KB: a thousand jobs of this size have a fifth of it
    yield "api function", (prices.INVOCATION + _seconds("api", api["cpu_ms"] / posts, waits)) / way.at_once
    yield "logs", api["log_bytes"] / jobs / 1e9 * prices.LOG_GB


def _planned(size: Size) -> Iterator[Part]:
    """Dollars a run for storing it; its write units are counted with the others. What plan does every minute anyway is left out."""
    plan = spent("plan", size.planned)
    calls = {name: plan["calls"].get(name, 0) / size.planned for name in ("GetItem", "UpdateItem", "BatchExecuteStatement")}
    waits = calls["GetItem"] + calls["UpdateItem"] + calls["BatchExecuteStatement"] / CONNECTIONS
    yield "DynamoDB reads", calls["GetItem"] * prices.READ_UNIT  # the task; its entry of an index that projects keys is next to nothing
    yield "plan function", _seconds("plan", plan["cpu_ms"] / size.planned, waits)


def _run(size: Size, write_units: float, measurement: str, asked: int = 0) -> Iterator[Part]:
    """Dollars a job for everything else. `asked`: read units for what its task must say before it starts."""
    dispatch, execute = spent("dispatch", size.dispatched), spent(measurement, size.jobs)
    calls = {name: count / size.jobs for name, count in execute["calls"].items() if name != "Query"} | {"Query": LANE_LOOKS}
    # The due index twice, the lanes' states, and the last look at held jobs.
    read = INDEX_ENTRY_BYTES / 4_096 / 2 * 2 + LANE_LOOKS + _is_read_again() + asked
    yield "DynamoDB writes", write_units * prices.WRITE_UNIT
    yield "DynamoDB reads", read * prices.READ_UNIT
    yield "SNS", dispatch["calls"]["PublishBatch"] / size.dispatched * prices.SNS_PUBLISH
    yield "SQS", (calls["ChangeMessageVisibilityBatch"] + 2 / BATCH) * prices.SQS_REQUEST  # and its mapping receives and deletes
    stays = (slots.OPEN_AHEAD + slots.MINUTE) / 1000  # from when its minute is opened to the last job
    yield "dispatch function", prices.GB_SECOND * stays * MEMORY_MB["dispatch"] / 1_024 / size.dispatched
    each, waits = execute["cpu_ms"] / size.jobs * BATCH, sum(calls.values()) * BATCH
    yield "execute function", (prices.INVOCATION + _seconds("execute", each, waits, waited_ms=_hold())) / BATCH
    yield "logs", execute["log_bytes"] / size.jobs / 1e9 * prices.LOG_GB  # Lambda's own lines are switched off in `infra/function.py`


def _is_read_again() -> bool:
    """Claimed shortly before its instant a job is not."""
    return _hold() > FRESH_CLAIM_MS


def _hold() -> int:
    """How long an executor is paid to wait with a job."""
    rules = Rules()
    return lead.lead(PIPELINE_P99_MS, rules.lead_ms, rules.hold_ms)


def _seconds(verb: str, cpu_ms: float, calls: float, waited_ms: float = 0) -> float:
    """Dollars for the time of one invocation."""
    share = min(MEMORY_MB[verb] / WHOLE_CORE_MB, 1)
    return (cpu_ms / share + calls * NETWORK_MS + waited_ms) / 1000 * MEMORY_MB[verb] / 1_024 * prices.GB_SECOND
