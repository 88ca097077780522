"""Write units per job from the operations really sent, and what a million jobs cost by them.

The operations are those of a single create, one way through dispatch, and execution in full batches, each held to its
instant. What no emulator can tell is assumed, and listed here: AWS's latency, and the CPU that a function's memory buys.
"""

from collections.abc import Iterator

from bench import operations, prices
from bench.cpu import spent
from bench.figures import Figure
from bench.operations import Bench
from infra.settings import DEV
from local.steps import step
from scheduler import release
from scheduler.model import Lane, Result
from scheduler.rules import Rules

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

BUDGETS: dict[str, float | None] = {"one-time job": operations.BUDGET, "job with a 1 KB response": None, "job retried once": None}
COST_BUDGET = 5.2

Part = tuple[str, float]  # what, and dollars a job


def measure() -> Iterator[Figure]:
    with step("Counting write units"):
        units = {name: operations.recorded(scenario).total() for name, scenario in SCENARIOS.items()}
    for name, total in units.items():
        yield Figure(f"units.{name.replace(' ', '_')}", f"write units: {name}", total, budget=BUDGETS.get(name))
    with step("Counting the operations of a million jobs"):
        parts = list(_parts(units["one-time job"]))
    total_cost = sum(cost for _, cost in parts) * prices.MILLION
    yield Figure("units.cost_per_million", "cost of a million jobs, created one by one", round(total_cost, 2), "$", COST_BUDGET)
    for what, cost in parts:
        yield Figure(f"units.cost.{what.replace(' ', '_')}", f"  {what}", round(cost * prices.MILLION, 3), "$")


def responded(bench: Bench) -> None:
    """An `http` job whose answer fills the kept excerpt of 1 KB."""
    bench.submit()
    headers = {"content-type": "application/json", "date": "Fri, 20 Nov 2026 10:01:00 GMT", "server": "example"}
    bench.execute(Lane.ONE_TIME, Result(response={"status": 200, "headers": headers, "body": "x" * 1_024}))


SCENARIOS = {**operations.SCENARIOS, "job with a 1 KB response": responded}


def _parts(write_units: int) -> Iterator[Part]:
    """Dollars a job, by what they go to."""
    api, dispatch, execute = spent("api", JOBS), spent("dispatch", DISPATCHED), spent("execute-held", JOBS)
    calls = {name: execute["calls"].get(name, 0) / JOBS for name in ("ChangeMessageVisibilityBatch", "BatchGetItem")}
    yield "DynamoDB writes", write_units * prices.WRITE_UNIT
    read = INDEX_ENTRY_BYTES / 4_096 / 2 * 2 + calls["BatchGetItem"] * BATCH  # the due index twice, and the last look at held jobs
    yield "DynamoDB reads", read * prices.READ_UNIT
    yield "HTTP API", prices.HTTP_API
    yield "api function", prices.INVOCATION + _seconds("api", api["cpu_ms"] / JOBS, api["calls"]["PutItem"] / JOBS)
    yield "SNS", dispatch["calls"]["PublishBatch"] / DISPATCHED * prices.SNS_PUBLISH
    yield "SQS", (calls["ChangeMessageVisibilityBatch"] + 2 / BATCH) * prices.SQS_REQUEST  # and its mapping receives and deletes
    yield "dispatch function", prices.GB_SECOND * 60 * MEMORY_MB["dispatch"] / 1_024 / DISPATCHED  # it stays for the minute
    each = execute["cpu_ms"] / JOBS
    yield "execute function", (prices.INVOCATION + _seconds("execute", each * BATCH, 3, waited_ms=_hold())) / BATCH
    logged = (api["log_bytes"] + execute["log_bytes"]) / JOBS  # Lambda's own lines are switched off in `infra/function.py`
    yield "logs", logged / 1e9 * prices.LOG_GB


def _hold() -> int:
    """How long an executor is paid to wait with a job."""
    rules = Rules()
    return release.lead(PIPELINE_P99_MS, rules.lead_ms, rules.hold_ms)


def _seconds(verb: str, cpu_ms: float, calls: float, waited_ms: float = 0) -> float:
    """Dollars for the time of one invocation."""
    share = min(MEMORY_MB[verb] / WHOLE_CORE_MB, 1)
    return (cpu_ms / share + calls * NETWORK_MS + waited_ms) / 1000 * MEMORY_MB[verb] / 1_024 * prices.GB_SECOND
