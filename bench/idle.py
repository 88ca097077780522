"""The cost of a month without jobs, computed from the operations really sent, and with it the cost of months and hours full of jobs.

Tick, dispatch, plan and scale run for some minutes over empty tables (moto), in virtual time: waiting is computed, not measured.
The fixed costs (alarms, metrics, polls) are taken from AWS's price list and listed here.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from moto import mock_aws

from bench import prices, units
from bench.figures import Figure
from bench.inprocess import VirtualClock
from bench.operations import Recorder
from infra.settings import STAGES, Settings
from local.steps import step
from scheduler.dead_letters.redrive import redrive
from scheduler.insight.metrics import METRICS
from scheduler.insight.scale import scale
from scheduler.model import slots
from scheduler.model.rules import Rules
from scheduler.model.work import WorkDelivery
from scheduler.pipeline.dispatch import WAKE_MS
from scheduler.pipeline.tick import tick
from scheduler.pipeline.worker import work
from scheduler.storage.aws import clients
from scheduler.storage.aws.counters import DynamoCounters
from scheduler.storage.aws.jobs import DynamoJobs
from scheduler.storage.aws.ledger import DynamoLedger
from scheduler.storage.aws.ordering_queues import DynamoOrderingQueues
from scheduler.storage.aws.tasks import DynamoTasks
from scheduler.storage.memory.ports import MemoryPorts
from scheduler.storage.memory.stores import MemoryWork
from scheduler.storage.ports import Ports
from scheduler.tasks.plan import plan
from tests.contract import tables

MINUTES, SHORT_MINUTES = 20, 3  # counted; as many run before without being counted, since a new ledger causes more operations
MONTH = 43_800  # minutes
CPU_MS = 20.0  # assumed for a warm invocation without work
LOG_BYTES = 1_000  # assumed for an invocation: one line with its result, one with its metrics
QUEUES = 6  # the work queue, three lanes, their dead-letter queue and notices, each polled by Lambda
POLLS = 15  # per minute and queue: five pollers that wait 20 s each, according to Lambda's documentation
ALARMS, SECRETS = {"dev": 17, "prod": 19}, 1  # of a stage; a test counts them in the template
READS = ("GetItem", "Query", "BatchGetItem", "Scan")
DUTIES = ("tick", "dispatch", "plan", "scale")
VOLUMES = (  # name, millions of jobs, and the months in which they run
    ("a month with 1 million jobs", 1.0, 1.0),
    ("a month with 100 million jobs", 100.0, 1.0),
    ("an hour with 5 million jobs", 5.0, 1 / 730),
)


@dataclass(slots=True)
class Spent:
    """The operations of the counted minutes."""

    minutes: int = MINUTES
    calls: Counter[str] = field(default_factory=Counter)  # to DynamoDB, by duty
    waited_ms: Counter[str] = field(default_factory=Counter)
    invocations: Counter[str] = field(default_factory=Counter)
    reads: int = 0  # units: one each, since an empty read costs a unit and these return a few hundred bytes at most
    writes: int = 0  # units


def measure(short: bool = False) -> Iterator[Figure]:
    size = units.SHORT if short else units.Size()
    with step("Counting idle minutes"):
        spent = count(Rules(), SHORT_MINUTES if short else MINUTES)
    with step("Counting the operations of a million jobs"):
        singly, by_batch = (sum(dollars for _, dollars in units.parts_of(way, size)) * prices.MILLION for way in units.WAYS)
    job = singly / prices.MILLION
    for name, settings in STAGES.items():
        if name == "local":
            continue
        parts = dict(monthly(spent, settings, job))
        yield Figure(f"idle.{name}", f"a month without a job, stage {name}", round(sum(parts.values()), 2), "$")
        for what, dollars in parts.items():
            yield Figure(f"idle.{name}.{what.replace(' ', '_')}", f"  {what}", round(dollars, 2), "$")
    yield Figure("idle.busy", "more, if every minute has a job, stage prod", round(busy(STAGES["prod"]), 2), "$")
    idle = sum(dict(monthly(spent, STAGES["prod"], job)).values())
    for what, millions, months in VOLUMES:
        for how, each in (("one by one", singly), ("1,000 a call", by_batch)):
            volume = f"{what}, created {how}"
            yield Figure(f"idle.{volume}".replace(" ", "_"), f"{volume}, stage prod", round(months * idle + millions * each, 2), "$")


def monthly(spent: Spent, settings: Settings, job: float) -> Iterator[tuple[str, float]]:
    """Yield dollars a month by kind of cost. `job`: dollars for one job."""
    months = MONTH / spent.minutes
    for duty in DUTIES:
        # A small function has a slower CPU. Calls wait for the network, and dispatch waits for its minute.
        share = min(settings.memory_mb[duty] / units.WHOLE_CORE_MB, 1) if duty in settings.memory_mb else 1
        worked = spent.invocations[duty] * CPU_MS / share + spent.calls[duty] * units.NETWORK_MS + spent.waited_ms[duty]
        time = worked / 1000 * settings.memory_mb[duty] / 1_024 * prices.GB_SECOND
        yield f"{duty} function", months * (time + spent.invocations[duty] * prices.INVOCATION)
    started = months * spent.invocations.total()
    yield "DynamoDB reads and writes", months * (spent.reads * prices.READ_UNIT + spent.writes * prices.WRITE_UNIT)
    yield "polls of queues", MONTH * POLLS * QUEUES * prices.SQS_POLL
    yield "alarms", ALARMS[settings.stage] * prices.ALARM_MONTH
    yield "metrics", len(METRICS) * prices.METRIC_MONTH
    yield "logs", started * LOG_BYTES / 1e9 * prices.LOG_GB
    yield "secrets", SECRETS * prices.SECRET_MONTH
    if settings.rules.lag_canary:
        yield "canary: its job", MONTH * job
        yield "canary: dispatch at work", busy(settings)


def busy(settings: Settings) -> float:
    """Return the additional dollars a month if every minute has a job: a dispatcher comes twice, before the minute and before the job,
    each time `WAKE_MS` too early."""
    seconds = 2 * WAKE_MS / 1_000
    return MONTH * (seconds * settings.memory_mb["dispatch"] / 1_024 * prices.GB_SECOND + 2 * prices.INVOCATION)


def count(rules: Rules, minutes: int) -> Spent:
    """Run empty minutes, one after the other, and return their operations."""
    with mock_aws():
        client, reader = (clients.dynamodb(region_name="us-east-1") for _ in range(2))
        for name, table in {**tables.ALL, "counters": tables.COUNTERS}.items():
            reader.create_table(TableName=name, **table)
        return _Idle(client, reader, rules).run(minutes)


class _Idle:
    def __init__(self, client: Any, reader: Any, rules: Rules) -> None:
        self.spent, self.duty, self._now = Spent(), "", 0
        self._recorder = Recorder(client, reader)
        client.meta.events.register("before-call.dynamodb", self._called)
        jobs, ledger = DynamoJobs(client, "jobs"), DynamoLedger(client, "ledger")
        tasks, orders = DynamoTasks(client, "tasks", jobs="jobs", ledger="ledger"), DynamoOrderingQueues(client, "tasks")
        counters = DynamoCounters(client, "counters")
        self._clock = VirtualClock(0)
        self._ports = MemoryPorts(self._clock, rules, jobs, tasks, orders, ledger, counters=counters)
        self._work: MemoryWork = self._ports.work

    def run(self, minutes: int) -> Spent:
        now = slots.start_of(slots.minute_of(1_795_000_000_000))
        for _ in range(minutes):
            self._minute(now)
            now += slots.MINUTE
        self.spent, self._recorder.writes = Spent(minutes), []
        for _ in range(minutes):
            self._minute(now)
            now += slots.MINUTE
        self.spent.writes = self._recorder.total()
        return self.spent

    def _minute(self, now: int) -> None:
        self._do("tick", now, tick)
        self._do("plan", now, plan)
        self._do("scale", now, lambda ports: scale(ports, random=0))
        for at in range(now, now + slots.MINUTE, 1_000):
            for delivery in self._work.receive(at):
                self._do("dispatch", at, partial(self._step, delivery))

    def _step(self, delivery: WorkDelivery, ports: Ports) -> None:
        """Carry out one step, as the event source mapping does."""
        next_at = work(delivery, ports, redrive=redrive).next_at
        if next_at is None:
            self._work.delete(delivery.receipt)
        else:
            self._work.queued[delivery.message_id].visible_at = next_at

    def _do(self, duty: str, now: int, service: Callable[[Ports], object]) -> None:
        self.duty, clock = duty, self._clock
        clock.at = now
        service(self._ports)
        self.spent.invocations[duty] += 1
        self.spent.waited_ms[duty] += clock.at - now

    def _called(self, model: Any, **_: Any) -> None:
        self.spent.calls[self.duty] += 1
        self.spent.reads += model.name in READS
