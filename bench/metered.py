"""A stage in virtual time: its real handlers over metered ports. Everything that AWS bills is counted; `bench.idle` has the prices.

A day passes in memory, which takes seconds. Then the ledger, as it stands after that day, is copied into tables (moto) and some
minutes pass there, whose calls, read units and write units are counted. Both count how often each verb of a port is used: the minutes
over tables must use each as often as those after the day did, so they stand for every minute of a month.

A queue delivers a message `DELIVERY_MS` after it is visible, and a topic `TOPIC_MS` after it was published: both are assumed, and so is
`TOGETHER`, the number of messages that five pollers leave for one batch. No call takes any time here: `bench.idle` adds it.
"""

import io
import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from functools import partial
from random import Random
from typing import Any, NamedTuple
from unittest.mock import patch

from moto import mock_aws

from bench.operations import REQUEST, Recorder, Statements
from infra.project import FILTERS
from infra.settings import Settings
from lab.world.calls import PARALLEL, read_units, waits
from lab.world.clock import FixedClock
from lab.world.events import Context, record
from lab.world.hub import Hub
from lab.world.meter import Meter, Metered
from lab.world.pools import ScriptedPool
from lab.world.queues import AlarmedLanes, AlarmedWork, end_batch
from lambdas._settings import Settings as Environment
from scheduler.model import slots
from scheduler.model.job import Job, Lane, Message, Result
from scheduler.model.rules import BATCH
from scheduler.model.spec import JobSpec
from scheduler.model.work import WorkDelivery
from scheduler.pipeline.process import Process
from scheduler.pipeline.submit import NewJob, submit
from scheduler.storage import messages
from scheduler.storage.aws import clients, items, work_queue
from scheduler.storage.aws.items import Item, size
from scheduler.storage.aws.table import CONNECTIONS
from scheduler.storage.memory.ports import MemoryPorts
from scheduler.tasks import service
from scheduler.tasks.service import NewTask
from tests.contract import tables

FIRST = slots.start_of(slots.minute_of(1_795_000_000_000))
DAY = 24 * 60 + 30  # minutes in memory: the last later checks of the first units come a day after these were closed ...
REST = 20  # ... and then this number of minutes is compared with those over tables
AHEAD = 10  # minutes, from the post of a job to its minute
SETTLING = 12  # minutes over tables before the counted ones: jobs are created ten minutes ahead
TOPIC_MS, DELIVERY_MS = 60, 20
TOGETHER = 3
SHARDS = 4  # of the stream of a new table on demand
LINE_BYTES = 26  # that CloudWatch Logs adds to each line
EVERY_MINUTE = {"tick": 7_000, "plan": 23_000, "scale": 41_000}  # ms within the minute; they wander, since queues count in seconds
SETTLED = Result(output="done")
PAGED = ("ledger.set_sweep_cursor",)  # in memory each slot is a page


class Load(NamedTuple):
    """The jobs of users: one-time jobs a minute, posted one by one ten minutes ahead, and tasks that run every minute."""

    jobs: int = 0
    tasks: int = 0


def matches(pattern: Mapping[str, Any], record: Any) -> bool:
    """Whether a record fits a filter of Lambda: every leaf is a list of values and of rules, one of which must fit."""

    def fits(rule: Any, there: Any) -> bool:
        if not isinstance(rule, Mapping):
            return bool(rule == there)
        ((name, operand),) = rule.items()
        if name == "exists":
            return (there is not None) is operand
        return there is not None and there not in operand  # anything-but

    for name, inner in pattern.items():
        there = record.get(name) if isinstance(record, Mapping) else None
        if isinstance(inner, Mapping):
            if not matches(inner, there):
                return False
        elif not any(fits(rule, there) for rule in inner):
            return False
    return True


def metered(settings: Settings, load: Load, minutes: int, *, day: int = DAY) -> Meter:
    """Let a day pass without jobs, then count some minutes with `load`."""
    with _handlers() as said, mock_aws():
        stage = Stage(settings, load, said, wanders_ms=1_000 // minutes)
        stage.pass_by(day)
        stage.meter.verbs.clear()
        stage.pass_by(REST)
        rested = {verb: count / REST for verb, count in stage.meter.verbs.items()}
        stage.to_tables()
        stage.pass_by(SETTLING)
        stage.start_counting()
        stage.pass_by(minutes)
        meter = stage.stop_counting(minutes)
    if load == Load():
        _compare(rested, {verb: count / minutes for verb, count in meter.verbs.items()})
    return meter


def crowded(settings: Settings, dues: Sequence[int], minutes: int) -> Meter:
    """Count some minutes in each of which jobs are due at `dues` (ms within the minute), with the ports in memory.

    Calls to tables and read units are estimated from the verbs of ports, of write units only those of counters. Two minutes pass before.
    """
    with _handlers() as said:
        stage = Stage(settings, Load(), said, wanders_ms=1_000 // minutes)
        stage.post(dues, 2 + minutes)
        stage.pass_by(AHEAD + 2)
        stage.meter = Meter()
        stage.pass_by(minutes)
        stage.meter.minutes = minutes
        return stage.meter


def _compare(rested: Mapping[str, float], counted: Mapping[str, float]) -> None:
    """Raise RuntimeError if a verb is used more or less often over tables than in memory after the day."""
    differ = {verb: (rested.get(verb, 0), counted.get(verb, 0)) for verb in {*rested, *counted}}
    wrong = {verb: pair for verb, pair in differ.items() if abs(pair[0] - pair[1]) > 0.1 and verb not in PAGED}
    if wrong:
        raise RuntimeError(f"the counted minutes differ from those in memory, in verbs a minute: {wrong}")


class Stage:
    """One stage. `pass_by` lets its functions run at their times, one after the other."""

    def __init__(self, settings: Settings, load: Load, said: io.StringIO, *, wanders_ms: int) -> None:
        """Create it. Scheduled functions run `wanders_ms` later in each minute, through a whole second while all is counted."""
        self.settings, self.load, self._said, self._wanders_ms = settings, load, said, wanders_ms
        self.meter, self._duty, self._now, self._random = Meter(), "", FIRST, Random(7)
        self.hub, self.clock = Hub(FIRST), FixedClock(FIRST)  # an invocation moves its clock, and all that it does is done at once
        self._lanes, self._work = _Lanes(self.hub, self.clock, self._batch), AlarmedWork(self.hub, self.clock, self._step)
        self.ports = _Ports(self.clock, settings.deployed)
        self._wire({name: getattr(self.ports, name) for name in TABLED})
        self._stream: dict[str, list[dict[str, Any]]] = defaultdict(list)  # records by stream and shard
        self._sequence, self._missing_tasks = 0, load.tasks
        self._recorder: Recorder | None = None

    # ports

    def _wire(self, stored: Mapping[str, Any]) -> None:
        """Replace the ports of tables by these, and meter all."""
        for name, port in stored.items():
            setattr(self.ports, name, Metered(port, name, self))
        self.ports.lanes, self.ports.work = Metered(self._lanes, "lanes", self), Metered(self._work, "work", self)
        self._processes = {lane: Process.of(lane, "bench", self.ports) for lane in Lane}

    def to_tables(self) -> None:
        """Replace memory by tables in which the ledger stands as it does in memory."""
        from lambdas._runtime import AwsPorts

        before = self.ports.ledger._port
        client, reader = clients.dynamodb(region_name="us-east-1"), clients.dynamodb(region_name="us-east-1")
        for name, table in TABLES.items():
            reader.create_table(TableName=name, **table)
        names: dict[str, Any] = {f"{name}_table": name for name in TABLES}
        made = AwsPorts(Environment(stage="bench", rules=self.settings.deployed, **names))
        made._dynamodb = client
        _copy(before, made.ledger, self._now)
        client.meta.events.register("before-call.dynamodb.BatchExecuteStatement", Statements(reader))
        client.meta.events.register("provide-client-params.dynamodb", self._on_call)
        client.meta.events.register("after-call.dynamodb", self._answered)
        self._recorder = Recorder(client, reader)
        self._wire({name: getattr(made, name) for name in TABLED})

    def start_counting(self) -> None:
        assert self._recorder is not None
        self.meter, self._recorder.writes = Meter(), []

    def stop_counting(self, minutes: int) -> Meter:
        assert self._recorder is not None
        self.meter.minutes, self.meter.writes = minutes, self._recorder.total()
        return self.meter

    def used(self, port: str, verb: str, arguments: Sequence[Any]) -> None:
        """Count the use of a verb, and the requests that it sends to a queue or a topic."""
        self.meter.verbs[f"{port}.{verb}"] += 1
        many = next((each for each in arguments if isinstance(each, Sequence) and not isinstance(each, str)), ())
        if port not in ("lanes", "work"):
            if self._recorder is None:
                self._estimate(port, verb, many)
            return
        calls = math.ceil(len(many) / 10) if verb in ("send", "publish", "extend") else 1
        service = "SNS" if verb == "publish" else "SQS" if port == "work" else "SQS with a group"
        self.meter.requests[service] += calls
        self.meter.calls[self._duty] += calls

    def _estimate(self, port: str, verb: str, many: Sequence[Any]) -> None:
        """Count the calls, read units and write units of a verb whose port is in memory."""
        self.meter.calls[self._duty] += waits(verb, len(many))
        self.meter.reads += read_units(verb, len(many))
        if (port, verb) == ("counters", "add"):
            self.meter.writes += len({entry.row[:2] for entry in many})

    @contextmanager
    def parallel(self, verb: str) -> Iterator[None]:
        """Count the calls of a verb that run side by side as one wait for each round."""
        before = self.meter.calls[self._duty]
        yield
        calls = self.meter.calls[self._duty] - before
        if verb in PARALLEL and self._recorder is not None:
            self.meter.calls[self._duty] -= calls - math.ceil(calls / CONNECTIONS)

    def _on_call(self, params: Mapping[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        many = params.get("RequestItems", {}).values() if model.name == "BatchGetItem" else ()
        context["consistent"] = bool(params.get("ConsistentRead")) or any(each["ConsistentRead"] for each in many)
        context["keys"] = sum(len(each["Keys"]) for each in many)

    def _answered(self, model: Any, parsed: Mapping[str, Any], context: dict[str, Any], **_: Any) -> None:
        self.meter.calls[self._duty] += 1
        if model.name not in ("GetItem", "Query", "Scan", "BatchGetItem"):
            return
        factor = 1.0 if context["consistent"] else 0.5
        if model.name == "BatchGetItem":  # each item on its own, a missing one like a small one
            sizes = [size(item) for found in parsed["Responses"].values() for item in found]
            self.meter.reads += factor * (sum(math.ceil(each / 4_096) for each in sizes) + context["keys"] - len(sizes))
        else:
            found = parsed.get("Items", [parsed["Item"]] if parsed.get("Item") else [])
            self.meter.reads += factor * max(math.ceil(sum(map(size, found)) / 4_096), 1)

    # time

    def pass_by(self, minutes: int) -> None:
        for _ in range(minutes):
            self._plan_minute()
            self._now += slots.MINUTE
            self.hub.run(self._now - 1)

    def _plan_minute(self) -> None:
        wander = self._now // slots.MINUTE * self._wanders_ms % 1_000
        for name, at in EVERY_MINUTE.items():
            self._at(self._now + at + wander, partial(self._scheduled, name))
        if self._recorder is None:
            return
        for _ in range(self.load.jobs):
            self._at(self._now + self._random.randrange(slots.MINUTE), partial(self._requested, self._post))
        for _ in range(self._missing_tasks):
            self._at(self._now, partial(self._requested, self._create))
        self._missing_tasks = 0

    def _at(self, when: int, call: Callable[[], None]) -> None:
        """Call `call` after all that queues deliver at the instant `when`."""
        self.hub.at(when, partial(self.hub.at, when, call))

    # functions

    def _call(self, name: str, at: int, call: Callable[[], Any]) -> Any:
        """Run one invocation, and meter it."""
        self._duty, self.clock.at, said = name, at, self._said.tell()
        answer = call()
        self.meter.invocations[name] += 1
        self.meter.waited_ms[name] += self.clock.at - at
        lines = self._said.getvalue()[said:].splitlines()
        self.meter.log_bytes[name] += sum(len(line.encode()) + LINE_BYTES for line in lines)
        for line in lines:
            if '"_aws"' in line:
                self.meter.metrics |= {each["Name"] for each in json.loads(line)["_aws"]["CloudWatchMetrics"][0]["Metrics"]}
        return answer

    def _handle(self, name: str, at: int, event: Mapping[str, Any], executor: "_Executor | None" = None) -> Any:
        from lambdas import _runtime, execute, plan, project, scale, tick, worker

        handlers = {module.__name__.rpartition(".")[2]: module.handler for module in (worker, execute, plan, project, scale, tick)}
        with patch.multiple(_runtime, ports=lambda: self.ports, execute=lambda: executor):
            return self._call(name, at, lambda: handlers[name](dict(event), Context("request")))

    def _scheduled(self, name: str) -> None:
        self.meter.requests["schedules"] += 1
        self._handle(name, self.hub.time, {})

    def _requested(self, work: Callable[[], None]) -> None:
        self.meter.requests["HTTP API"] += 1
        self._call("api", self.hub.time, work)

    def _post(self) -> None:
        due_at = (self.clock.at // slots.MINUTE + AHEAD) * slots.MINUTE + self._random.randrange(slots.MINUTE)
        spec = JobSpec("log", {"message": "one of a typical length"})
        submit(NewJob(REQUEST.owner, spec, due_at), self.ports, random=self._random.getrandbits(70))

    def post(self, dues: Sequence[int], minutes: int) -> None:
        """Store jobs for each of some minutes, the first of which is `AHEAD` minutes away."""
        spec, now = JobSpec("log", {"message": "one of a typical length"}), self.clock.at
        for minute in range(minutes):
            start = now + (AHEAD + minute) * slots.MINUTE
            for due_at in dues:
                submit(NewJob(REQUEST.owner, spec, start + due_at), self.ports, random=self._random.getrandbits(70))

    def _create(self) -> None:
        spec = JobSpec("log", {"message": "one of a typical length"}, tags=("billing",))
        new = NewTask(REQUEST.owner, "a name of a usual length", spec, {"cron": "* * * * *", "time_zone": "Europe/Berlin"})
        service.create(new, self.ports, random=self._random.getrandbits(70))

    def _step(self, delivery: WorkDelivery) -> None:
        sent = record(delivery.message_id, delivery.receipt, work_queue.encode(delivery.item), delivery.receive_count)
        answer = self._handle("worker", self.hub.time + DELIVERY_MS, {"Records": [sent]})
        self.meter.requests["SQS"] += 1  # its receive
        if not answer["batchItemFailures"]:
            self.meter.requests["SQS"] += 1
            self._work.delete(delivery.receipt)

    def _batch(self, lane: Lane) -> None:
        batch = self._lanes.receive(lane, min(TOGETHER, BATCH[lane]), self.hub.time)
        if not batch:
            return
        records = [record(each.message_id, each.receipt, messages.encode(each.message), each.receive_count) for each in batch]
        executor = _Executor(lane, self.ports, self._processes[lane], lambda: ScriptedPool(self.clock, takes=0, result=SETTLED))
        answer = self._handle("execute", self.hub.time + DELIVERY_MS, {"Records": records}, executor)
        left = {each["itemIdentifier"] for each in answer["batchItemFailures"]}
        self.meter.requests["SQS with a group"] += 1 + (len(left) < len(batch))
        end_batch(self._lanes, lane, batch, left)
        self.hub.at(self.hub.time, partial(self._batch, lane))

    # streams

    def written(self, before: Job | None, after: Job | None) -> None:
        """Put a change of a job into the stream of its table."""
        if after is None:
            return
        self._record("Jobs", None if before is None else items.encode(before), items.encode(after))
        self.meter.jobs += after.owner == REQUEST.owner and after.completed_at is not None

    def _record(self, table: str, old: Item | None, new: Item) -> None:
        self._sequence += 1
        content = {"Keys": {name: new[name] for name in ("pk", "sk")}, "NewImage": new, "SequenceNumber": str(self._sequence)}
        record = {"eventSourceARN": f"arn:aws:dynamodb:::table/{table}/stream/1", "dynamodb": content}
        if old is not None:
            content["OldImage"] = old
        if not any(matches(pattern, record) for pattern in FILTERS[table]):
            return
        shard = f"{table}/{sum(new['pk']['S'].encode()) % SHARDS}"
        if shard not in self._stream:
            self.hub.at(self.clock.at + self.settings.batching_s * 1_000, partial(self._project, shard))
        self._stream[shard].append(record)

    def _project(self, shard: str) -> None:
        self._handle("project", self.hub.time, {"Records": self._stream.pop(shard), "shardId": shard})


TABLES: dict[str, dict[str, Any]] = {**tables.ALL, "users": tables.USERS, "counters": tables.COUNTERS}
TABLED = ("jobs", "tasks", "orders", "ledger", "receipts", "operations", "targets", "users", "counters")  # ports that tables implement


class _Lanes(AlarmedLanes):
    """The lanes, on the clock of the function that uses them; a message passes the topic first."""

    def __init__(self, hub: Hub, clock: FixedClock, wake: Callable[[Lane], None]) -> None:
        super().__init__(hub, wake)
        self._clock = clock

    def now(self) -> int:
        return self._clock.at

    def publish(self, messages: Sequence[Message]) -> list[Message]:
        for message in messages:
            self.add(message, self._clock.at + TOPIC_MS)
        return []


class _Ports(MemoryPorts):
    """Ports with the settings that the worker reads; the stage has no monitors, so that no address of pings is called."""

    settings = Environment(stage="bench")


class _Executor(NamedTuple):
    """The part of an executor that the handler of execute uses."""

    lane: Lane
    ports: MemoryPorts
    process: Process
    pool: Callable[[], ScriptedPool]


def _copy(before: Any, after: Any, now: int) -> None:
    """Store in the ledger `after` what the ledger `before` has: cursors, open units, later checks of the next minutes."""
    after.advance(None, before.cursor())
    after.set_plan_cursor(None, before.plan_cursor())
    for check in before.later_checks(now + (SETTLING + 60) * slots.MINUTE):
        after.open_unit(check.unit)
        after.close_unit(check.unit, now, check)
    for unit in before.open_units():
        after.open_unit(unit)


@contextmanager
def _handlers() -> Iterator[io.StringIO]:
    """Import the handlers and yield what they print."""
    said = io.StringIO()
    with ExitStack() as stack:
        stack.enter_context(redirect_stdout(said))
        stack.enter_context(patch.dict("os.environ", {"POWERTOOLS_METRICS_NAMESPACE": "Punctual", "POWERTOOLS_SERVICE_NAME": "bench"}))
        from lambdas._logger import logger

        for handler in logger._logger.handlers:
            stack.enter_context(patch.object(handler, "stream", said))
        yield said
