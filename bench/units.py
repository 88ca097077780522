"""Write units per job, counted from the operations really sent, and from them the cost of a million jobs.

Write units and processor time are those of a single create, a full batch or a top-up by plan, of dispatch, and of execution in full
batches. Requests, invocations and holds are metered (`bench.metered`), for jobs that come in crowds or evenly. Four values are assumed
and listed here, since no emulator shows them: AWS's latency, the CPU share by memory, the processor time of project and that of a call of
the function `fetch`. The cost of an `http` job beside that of a `log` job is computed: the function's time, and the wait of its executor.
"""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from bench import operations, prices
from bench.cpu import spent
from bench.figures import Figure
from bench.inprocess import AT_ONCE, TOPPED_UP
from bench.metered import crowded
from bench.operations import Bench, Scenario
from infra.settings import PROD
from lab.world.calls import NETWORK_MS, on_core
from lab.world.meter import Meter
from local.steps import step
from scheduler.model import slots
from scheduler.model.job import Lane, Result
from scheduler.storage.aws.table import CONNECTIONS
from scheduler.targets.fetch_call import AHEAD_MS

MEMORY_MB = PROD.memory_mb
PROJECT_CPU_MS = 0.2  # assumed for the three changes of a job
METERED = 2  # minutes
INVOKE_CPU_MS = 3.0  # assumed for an executor's call of `fetch`: its event, the request, the answer
ANSWERS_S = (0.2, 1.0)  # after which the URLs of `http` jobs answer
INDEX_ENTRY_BYTES = 230  # of the due index, including the overhead of 100 bytes an entry
BATCH = 10
HEAD, HOLDER, BEFORE = 1, 1, 1  # items read before a run starts, consistently: its task, the run lock, the run before


class Size(NamedTuple):
    """The number of jobs that are counted."""

    dispatched: int = 5_000  # jobs of one minute
    jobs: int = 100  # jobs executed, and posted one by one
    calls: int = 3  # posts of a full batch
    planned: int = 1_200  # runs stored by one round of planning


SHORT = Size(dispatched=500, jobs=20, calls=1, planned=60)


class Shape(NamedTuple):
    """The due times of a minute's jobs: crowds of `together`, or single jobs if that is 1, at equal distances."""

    key: str
    what: str
    jobs: int
    together: int

    def dues(self) -> Iterator[tuple[int, int]]:
        """Yield instants (ms within the minute), and the jobs that are due then."""
        crowds = self.jobs // self.together
        return ((slots.MINUTE * number // crowds, self.together) for number in range(crowds))


CROWDS = Shape("crowds", "in crowds of 1,000", 5_000, 1_000)
EVENLY = Shape("evenly", "evenly, 38 a second", 2_280, 1)


class Method(NamedTuple):
    """A way to create jobs: jobs a call, the measurement, the operation that stores them, and how many of its calls run in parallel."""

    key: str
    what: str
    measurement: str
    at_once: int
    stores: str
    side_by_side: int
    budget: float  # dollars a million


METHODS = (
    Method("one_by_one", "jobs, created one by one", "api", 1, "PutItem", 1, 5.0),
    Method("by_batch", f"jobs, created {AT_ONCE:,} a call", "batch", AT_ONCE, "BatchExecuteStatement", CONNECTIONS, 3.5),
)
Part = tuple[str, float]  # kind of cost, and dollars a job


def measure(short: bool = False) -> Iterator[Figure]:
    size = SHORT if short else Size()
    with step("Counting write units"):
        units = {name: operations.per_job(scenario) for name, scenario in SCENARIOS.items()}
    for name, each in units.items():
        yield Figure(f"units.{name.replace(' ', '_')}", f"write units: {name}", each, budget=SCENARIOS[name].budget)
    with step("Counting the operations of a million jobs"):
        parts = {(method, shape): parts_of(method, size, shape) for shape in (CROWDS, EVENLY) for method in METHODS}
        run = _run(units["recurring run"], "execute-runs", size, CROWDS, HEAD + HOLDER + BEFORE)
        recurring = [*_planned(size), *run]
    for (method, shape), found in parts.items():
        key = method.key if shape is CROWDS else f"{method.key}_{shape.key}"
        yield from _costs(key, f"{method.what}, due {shape.what}", found, method.budget if shape is CROWDS else None)
    for shape in (CROWDS, EVENLY):
        meter = _metered(shape, size)
        each = meter.jobs / meter.invocations["execute"]
        for seconds in ANSWERS_S:
            what = f"calls of URLs that answer after {seconds} s, due {shape.what}, beside their jobs"
            yield from _costs(f"call_{shape.key}_{seconds}", what, called(seconds, each))
    yield from _costs("recurring", f"runs of recurring tasks, due {CROWDS.what}", recurring)


@cache
def parts_of(method: Method, size: Size, shape: Shape) -> list[Part]:
    """Return dollars a job for creating it in this way and running it."""
    return [*_created(method, size), *_run(operations.per_job(SCENARIOS["one-time job"]), "execute", size, shape)]


def _costs(key: str, what: str, parts: list[Part], budget: float | None = None) -> Iterator[Figure]:
    """Yield the cost of a million, then each of its parts; parts of the same name are added up."""
    names = dict.fromkeys(name for name, _ in parts)
    cost = {name: sum(each for other, each in parts if other == name) * prices.MILLION for name in names}
    yield Figure(f"units.cost_{key}", f"cost of a million {what}", round(sum(cost.values()), 2), "$", budget)
    for name, dollars in cost.items():
        yield Figure(f"units.cost_{key}.{name.replace(' ', '_')}", f"  {name}", round(dollars, 3), "$")


def called(seconds: float, jobs: float) -> list[Part]:
    """Return dollars a job for calling a URL that answers after this time, in executors that run `jobs` of them each.

    The function is sent ahead of the instant, and opens the connection until then.
    """
    fetch = (AHEAD_MS / 1_000 + seconds) * MEMORY_MB["fetch"] / 1_024 * prices.GB_SECOND
    return [
        ("fetch function", prices.INVOCATION + fetch),
        ("execute function", _seconds("execute", INVOKE_CPU_MS, 0, seconds * 1_000 / jobs)),
    ]


def responded(bench: Bench) -> None:
    """Run an `http` job whose response fills the stored preview of 1 KB."""
    bench.submit()
    headers = {"content-type": "application/json", "date": "Fri, 20 Nov 2026 10:01:00 GMT", "server": "example"}
    bench.run_batch(Lane.ONE_TIME, Result(response={"status": 200, "headers": headers, "body": "x" * 1_024}))


def created_in_a_batch(bench: Bench) -> None:
    """Create a batch without running it."""
    bench.submit_batch(BATCH)


SCENARIOS = {
    "creating a job in a batch": Scenario(created_in_a_batch, jobs=BATCH, budget=2),
    **operations.SCENARIOS,
    "job with a 1 KB response": Scenario(responded),
}


def _created(method: Method, size: Size) -> Iterator[Part]:
    """Yield dollars a job for accepting it, by kind of cost. Its write units are counted with those of its run."""
    jobs = max(size.jobs, size.calls * method.at_once)
    api = spent(method.measurement, jobs)
    posts = jobs / method.at_once
    waits = api["calls"][method.stores] / posts / method.side_by_side
    yield "HTTP API", prices.HTTP_API / method.at_once  # billed by 512 KB: a thousand jobs of this size fill a fifth of that
    yield "api function", (prices.INVOCATION + _seconds("api", api["cpu_ms"] / posts, waits)) / method.at_once
    yield "logs", api["log_bytes"] / jobs / 1e9 * prices.LOG_GB


def _planned(size: Size) -> Iterator[Part]:
    """Yield dollars a run for storing it. Its write units are counted with those of its run; plan's fixed work of every minute is left
    out."""
    plan = spent("plan", size.planned)
    calls = {name: plan["calls"].get(name, 0) / size.planned for name in ("BatchGetItem", "BatchExecuteStatement")}
    waits = calls["BatchGetItem"] + calls["BatchExecuteStatement"] / CONNECTIONS
    yield "DynamoDB reads", prices.READ_UNIT / TOPPED_UP  # the task; its entry in an index of keys costs almost nothing
    yield "plan function", _seconds("plan", plan["cpu_ms"] / size.planned, waits)


def _run(write_units: float, measurement: str, size: Size, shape: Shape, task_reads: int = 0) -> Iterator[Part]:
    """Yield dollars a job for everything after its creation. `task_reads`: read units for its task before it starts."""
    worker, execute, meter = spent("dispatch", size.dispatched), spent(measurement, size.jobs), _metered(shape, size)
    cpu_ms = {"worker": worker["cpu_ms"] / size.dispatched, "execute": execute["cpu_ms"] / size.jobs}
    read = INDEX_ENTRY_BYTES / 4_096 / 2 * 2 + meter.reads / meter.jobs + task_reads  # the due index is read twice
    yield "DynamoDB writes", (write_units + meter.writes / meter.jobs) * prices.WRITE_UNIT  # and the counters
    yield "DynamoDB reads", read * prices.READ_UNIT
    yield "SNS", meter.requests["SNS"] / meter.jobs * prices.SNS_PUBLISH
    yield "SQS", meter.requests["SQS with a group"] / meter.jobs * prices.SQS_REQUEST
    for verb in ("worker", "execute", "project"):
        calls, waited_ms = meter.calls[verb] / meter.jobs, meter.waited_ms[verb] / meter.jobs
        dollars = _seconds(verb, cpu_ms.get(verb, PROJECT_CPU_MS), calls, waited_ms)
        yield f"{verb} function", meter.invocations[verb] / meter.jobs * prices.INVOCATION + dollars
    yield "logs", execute["log_bytes"] / size.jobs / 1e9 * prices.LOG_GB  # Lambda's own lines are switched off in `infra/function.py`


@cache
def _metered(shape: Shape, size: Size) -> Meter:
    """Return the requests, invocations and holds of such minutes, without those of minutes that are empty."""
    short = size is SHORT
    dues = [at for at, jobs in shape.dues() for _ in range(jobs)][:: 10 if short else 1]
    minutes = 1 if short else METERED
    meter, empty = crowded(PROD, dues, minutes), crowded(PROD, [], minutes)
    for name in ("calls", "waited_ms", "invocations", "requests"):
        getattr(meter, name).subtract(getattr(empty, name))
    meter.reads -= empty.reads
    return meter


def _seconds(verb: str, cpu_ms: float, calls: float, waited_ms: float = 0) -> float:
    return seconds(MEMORY_MB[verb], cpu_ms, calls, waited_ms)


def seconds(memory_mb: int, cpu_ms: float, calls: float, waited_ms: float) -> float:
    """Return the dollars for this much time of a function."""
    return (on_core(cpu_ms, memory_mb) + calls * NETWORK_MS + waited_ms) / 1000 * memory_mb / 1_024 * prices.GB_SECOND
