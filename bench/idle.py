"""The cost of months: at rest, with a job a minute, and by volume; and where a few jobs of a minute become many.

`bench.metered` counts the operations of a stage. Here they are priced, with AWS's monthly charges (alarms, metrics, a secret, polls).
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from unittest.mock import patch

from bench import prices, units
from bench.figures import Figure
from bench.metered import DAY, Load, metered
from infra.settings import PROD, STAGES, Settings
from lab.world.meter import Meter
from local.steps import step

MINUTES, BUSY_MINUTES, SHORT_MINUTES = 20, 5, 2  # counted at rest, with jobs, in the short form
SHORT_DAY = 80  # minutes instead of a day: the last later check of a unit comes an hour after its closing
MONTH = 43_800  # minutes
INVOCATION_CPU_MS = 2.0  # of a whole core, for an invocation without any call ...
CALL_CPU_MS = 0.4  # ... and for each call: both are about twice what this machine needs
QUEUES = 6  # the work queue, three lanes, their dead-letter queue and notices, each polled by Lambda
POLLS = 15  # per minute and queue: five pollers that wait 20 s each, according to Lambda's documentation
ALARMS, SECRETS = {"dev": 20, "prod": 22}, 1  # of a stage; a test counts them in the template
INTAKE_ALARMS = 2  # of the option `intake` with one queue; the same test counts them
REQUESTS = {
    "SQS": prices.SQS_PLAIN,
    "SQS with a group": prices.SQS_REQUEST,
    "SNS": prices.SNS_PUBLISH,
    "HTTP API": prices.HTTP_API,
    "schedules": prices.SCHEDULE,
}
SPARSE = 24  # jobs a minute: 0.4 a second, a million a month
TEN_THOUSAND = 7  # jobs a minute: 10,000 a day
CAPACITY_USED = 0.7  # of provisioned write units, if jobs come evenly
WRITES_OF_JOB = 5  # of the table and its due index
BUDGETS = {"rest": 8.0, "minutely": 8.5, "sparse": 10.0}


class Bill(NamedTuple):
    """Dollars a month by kind of cost, and the jobs of the month."""

    parts: Mapping[str, float]
    jobs: float

    @property
    def total(self) -> float:
        return sum(self.parts.values())


def measure(short: bool = False) -> Iterator[Figure]:
    rest: dict[str, Bill] = {}
    for stage in ("dev", "prod"):
        with step(f"{stage} at rest"):
            day = SHORT_DAY if short or stage == "dev" else DAY
            rest[stage] = bill(metered(STAGES[stage], Load(), SHORT_MINUTES if short else MINUTES, day=day), STAGES[stage])
    with step("A task that runs every minute"):
        minutely = metered(PROD, Load(tasks=1), SHORT_MINUTES if short else MINUTES, day=SHORT_DAY)
    minutes, busy = SHORT_MINUTES if short else BUSY_MINUTES, {"minutely": bill(minutely, PROD)}
    for name, load in {"ten_thousand": Load(jobs=TEN_THOUSAND), "sparse": Load(jobs=SPARSE)}.items():
        with step(f"{load.jobs} jobs a minute"):
            busy[name] = bill(metered(PROD, load, minutes, day=SHORT_DAY), PROD)
    with step("The same jobs by a dispatcher that stays"), patch("scheduler.pipeline.dispatch.SPARSE", -1):
        dense = bill(metered(PROD, Load(jobs=SPARSE), minutes, day=SHORT_DAY), PROD)
    with step("Counting the operations of a million jobs"):
        size = units.SHORT if short else units.Size()
        many = {
            (method.key, shape.key): sum(dollars for _, dollars in units.parts_of(method, size, shape))
            for method in units.METHODS
            for shape in (units.CROWDS, units.EVENLY)
        }
    for stage, each in rest.items():
        yield from _of(f"idle.{stage}", f"a month without a job, stage {stage}", each, BUDGETS["rest"] if stage == "prod" else None)
    yield from _of("idle.minutely", "a month with a task that runs every minute", busy["minutely"], BUDGETS["minutely"])
    yield from _more(rest["prod"], busy["sparse"])
    yield from _months(rest["prod"], busy, many)
    yield from _crossing(busy["sparse"], dense)


def bill(meter: Meter, settings: Settings) -> Bill:
    """Return the bill of a month of such minutes."""
    months = MONTH / meter.minutes
    parts = {f"{name} function": months * _function(name, meter, settings) for name in sorted(meter.invocations)}
    parts |= {
        "DynamoDB reads": months * meter.reads * prices.READ_UNIT,
        "DynamoDB writes": months * meter.writes * prices.WRITE_UNIT,
        **{f"requests: {name}": months * count * REQUESTS[name] for name, count in sorted(meter.requests.items())},
        "polls of queues": MONTH * POLLS * QUEUES * prices.SQS_PLAIN,
        "alarms": ALARMS[settings.stage] * prices.ALARM_MONTH,
        "metrics": len(meter.metrics) * prices.METRIC_MONTH,
        "logs": months * meter.log_bytes.total() / 1e9 * prices.LOG_GB,
        "secret": SECRETS * prices.SECRET_MONTH,
    }
    if settings.tracing:
        parts["traces"] = months * meter.invocations.total() * prices.TRACE
    return Bill(parts, months * meter.jobs)


def of_options() -> dict[str, float]:
    """Return the dollars a month, at rest, of the options of sign-in and of an intake queue, computed and not metered.

    AWS bills neither authorizers and identity providers nor a function that nobody calls. Users of a pool are free up to a number.
    """
    return {
        "polls of an intake queue": MONTH * POLLS * prices.SQS_PLAIN,
        "alarms of the intake": INTAKE_ALARMS * prices.ALARM_MONTH,
        "authorizers of `aws_issuers`": 0.0,
        "`sso`": 0.0,
    }


def _function(name: str, meter: Meter, settings: Settings) -> float:
    """Return the dollars for the counted invocations of a function. Less memory gets a smaller share of a core."""
    cpu_ms = meter.invocations[name] * INVOCATION_CPU_MS + meter.calls[name] * CALL_CPU_MS
    time = units.seconds(settings.memory_mb[name], cpu_ms, meter.calls[name], meter.waited_ms[name])
    return time + meter.invocations[name] * prices.INVOCATION


def _of(key: str, what: str, of: Bill, budget: float | None = None) -> Iterator[Figure]:
    yield Figure(key, what, round(of.total, 2), "$", budget)
    for name, dollars in of.parts.items():
        yield Figure(f"{key}.{name.replace(' ', '_')}", f"  {name}", round(dollars, 3), "$")


def _more(rest: Bill, sparse: Bill) -> Iterator[Figure]:
    """Yield the cost of a million sparse jobs beyond that of the month at rest."""
    millions = sparse.jobs / prices.MILLION
    more = Counter(sparse.parts)
    more.subtract(rest.parts)
    total = sum(more.values()) / millions
    yield Figure("idle.sparse", "a million sparse jobs (0.4/s), created one by one", round(total, 2), "$", BUDGETS["sparse"])
    for name, dollars in more.items():
        if abs(dollars) >= 0.005:
            yield Figure(f"idle.sparse.{name.replace(' ', '_')}", f"  {name}", round(dollars / millions, 3), "$")


def _months(rest: Bill, busy: Mapping[str, Bill], many: Mapping[tuple[str, str], float]) -> Iterator[Figure]:
    """Yield the months that a buyer wants to compare."""
    metrics = busy["sparse"].parts["metrics"] - rest.parts["metrics"]
    months = {
        "at rest": rest.total,
        "a task that runs every minute": busy["minutely"].total,
        "10,000 jobs a day": busy["ten_thousand"].total,
        "1 million jobs, sparse": busy["sparse"].total,
    }
    for millions, shape in ((1, "crowds"), (100, "crowds"), (100, "evenly")):
        for how, key in (("one by one", "one_by_one"), ("1,000 a call", "by_batch")):
            dollars = rest.total + metrics + millions * prices.MILLION * many[key, shape]
            months[f"{millions} million jobs, {shape}, created {how}"] = dollars
            if shape == "evenly":
                writes = millions * prices.MILLION * WRITES_OF_JOB
                months[f"  with provisioned capacity, {how}"] = dollars - writes * prices.WRITE_UNIT + _provisioned(writes)
    for name, dollars in months.items():
        yield Figure(f"idle.month.{name.strip().replace(' ', '_')}", f"a month: {name}", round(dollars, 2), "$")
    hour = 5 * prices.MILLION * many["by_batch", "crowds"]
    yield Figure("idle.hour", "an hour with 5 million jobs, created 1,000 a call", round(hour, 2), "$")


def _provisioned(writes: float) -> float:
    """Return the dollars a month for this number of writes if they come evenly."""
    return writes / (MONTH * 60) / CAPACITY_USED * prices.WRITE_CAPACITY_HOUR * MONTH / 60


def _crossing(sparse: Bill, dense: Bill) -> Iterator[Figure]:
    """Yield the number of jobs a minute from which on a dispatcher that stays for the minute costs less than early messages.

    Such a dispatcher costs the same whatever the number of jobs. For each job it saves the early receive.
    """
    dispatcher = "worker function"
    stays = (dense.parts[dispatcher] - sparse.parts[dispatcher]) / MONTH  # dollars a minute
    early = (sparse.total - sparse.parts[dispatcher] - dense.total + dense.parts[dispatcher]) / sparse.jobs  # dollars a job
    yield Figure("idle.dense_minute", "a minute of a dispatcher that stays", round(stays * prices.MILLION), "$/million")
    yield Figure("idle.early", "the early receive of a job", round(early * prices.MILLION, 2), "$/million")
    if early > 0:
        yield Figure("idle.crossing", "jobs a minute from which on the dispatcher costs less", round(stays / early, -1))
