"""Write units per job from the operations really sent, and what a million jobs cost by them.

The operations are those of a single create or a full batch, one way through dispatch, and execution in full batches, each held to its
instant. What no emulator can tell is assumed, and listed here: AWS's latency, and the CPU that a function's memory buys.
"""

from collections.abc import Iterator
from typing import NamedTuple

from bench import operations, prices
from bench.cpu import spent
from bench.figures import Figure
from bench.inprocess import AT_ONCE
from bench.operations import Bench
from infra.settings import DEV
from local.steps import step
from scheduler import ids, release
from scheduler.model import Lane, Result
from scheduler.rules import Rules
from scheduler.services.execute import FRESH_CLAIM_MS

NETWORK_MS = 5.0  # assumed: of a call to DynamoDB, SQS or SNS within the region
WHOLE_CORE_MB = 1_769  # of Lambda memory; less buys that share of a core
MEMORY_MB = DEV.memory_mb
# Assumed p99 from publish to claim, which sets the lead. From SQS to a warm handler alone, 22-37 ms (p95) have been measured
# by others (sqs-fair-queues-lab, 2026); the hop through SNS, the lease and the claim come on top.
PIPELINE_P99_MS = 200
INDEX_ENTRY_BYTES = 230  # of the due index, with the 100 that each entry costs besides
DISPATCHED = 5_000  # jobs of the minute that is counted
JOBS = 100
BATCH = 10

BUDGETS: dict[str, float | None] = {
    "creating a job in a batch": 2,
    "one-time job": operations.BUDGET,
    "job with a 1 KB response": None,
    "job retried once": None,
}


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
    Way("one_by_one", "created one by one", "api", 1, "PutItem", 1, 5.2),
    Way("by_batch", f"created {AT_ONCE:,} a call", "batch", AT_ONCE, "BatchExecuteStatement", ids.PARTITIONS, 3.9),
)
Part = tuple[str, float]  # what, and dollars a job


def measure() -> Iterator[Figure]:
    with step("Counting write units"):
        units = {name: operations.recorded(scenario).total() for name, scenario in SCENARIOS.items()}
    for name, total in units.items():
        yield Figure(f"units.{name.replace(' ', '_')}", f"write units: {name}", total, budget=BUDGETS.get(name))
    with step("Counting the operations of a million jobs"):
        run = list(_run(units["one-time job"]))
        created = {way: list(_created(way)) for way in WAYS}
    for way, parts in created.items():
        yield from _costs(way, parts + run)


def _costs(way: Way, parts: list[Part]) -> Iterator[Figure]:
    """What a million jobs cost that were created this way, and what it goes to; parts of the same name together."""
    names = dict.fromkeys(what for what, _ in parts)
    cost = {name: sum(each for what, each in parts if what == name) * prices.MILLION for name in names}
    yield Figure(f"units.cost_{way.key}", f"cost of a million jobs, {way.what}", round(sum(cost.values()), 2), "$", way.budget)
    for what, dollars in cost.items():
        yield Figure(f"units.cost_{way.key}.{what.replace(' ', '_')}", f"  {what}", round(dollars, 3), "$")


def responded(bench: Bench) -> None:
    """An `http` job whose answer fills the kept excerpt of 1 KB."""
    bench.submit()
    headers = {"content-type": "application/json", "date": "Fri, 20 Nov 2026 10:01:00 GMT", "server": "example"}
    bench.execute(Lane.ONE_TIME, Result(response={"status": 200, "headers": headers, "body": "x" * 1_024}))


def created_in_a_batch(bench: Bench) -> None:
    """Only that: it is run as any other."""
    bench.submit_many()


SCENARIOS = {"creating a job in a batch": created_in_a_batch, **operations.SCENARIOS, "job with a 1 KB response": responded}


def _created(way: Way) -> Iterator[Part]:
    """Dollars a job for accepting it, by what they go to; its write units are counted with the others."""
    jobs = max(JOBS, 3 * way.at_once)
    api = spent(way.measurement, jobs)
    posts = jobs / way.at_once
    waits = api["calls"][way.stores] / posts / way.side_by_side
    yield "HTTP API", prices.HTTP_API / way.at_once  # billed by 512 KB: a thousand jobs of this size have a fifth of it
    yield "api function", (prices.INVOCATION + _seconds("api", api["cpu_ms"] / posts, waits)) / way.at_once
    yield "logs", api["log_bytes"] / jobs / 1e9 * prices.LOG_GB


def _run(write_units: int) -> Iterator[Part]:
    """Dollars a job for everything else."""
    # Claimed so shortly before its instant a job is not read once more.
    dispatch, execute = spent("dispatch", DISPATCHED), spent("execute-held" if _hold() > FRESH_CLAIM_MS else "execute", JOBS)
    calls = {name: execute["calls"].get(name, 0) / JOBS for name in ("ChangeMessageVisibilityBatch", "BatchGetItem")}
    yield "DynamoDB writes", write_units * prices.WRITE_UNIT
    read = INDEX_ENTRY_BYTES / 4_096 / 2 * 2 + calls["BatchGetItem"] * BATCH  # the due index twice, and the last look at held jobs
    yield "DynamoDB reads", read * prices.READ_UNIT
    yield "SNS", dispatch["calls"]["PublishBatch"] / DISPATCHED * prices.SNS_PUBLISH
    yield "SQS", (calls["ChangeMessageVisibilityBatch"] + 2 / BATCH) * prices.SQS_REQUEST  # and its mapping receives and deletes
    yield "dispatch function", prices.GB_SECOND * 60 * MEMORY_MB["dispatch"] / 1_024 / DISPATCHED  # it stays for the minute
    each = execute["cpu_ms"] / JOBS
    yield "execute function", (prices.INVOCATION + _seconds("execute", each * BATCH, 3, waited_ms=_hold())) / BATCH
    yield "logs", execute["log_bytes"] / JOBS / 1e9 * prices.LOG_GB  # Lambda's own lines are switched off in `infra/function.py`


def _hold() -> int:
    """How long an executor is paid to wait with a job."""
    rules = Rules()
    return release.lead(PIPELINE_P99_MS, rules.lead_ms, rules.hold_ms)


def _seconds(verb: str, cpu_ms: float, calls: float, waited_ms: float = 0) -> float:
    """Dollars for the time of one invocation."""
    share = min(MEMORY_MB[verb] / WHOLE_CORE_MB, 1)
    return (cpu_ms / share + calls * NETWORK_MS + waited_ms) / 1000 * MEMORY_MB[verb] / 1_024 * prices.GB_SECOND
