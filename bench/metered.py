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
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple
from unittest.mock import patch

from moto import mock_aws

from bench.inprocess import Context, VirtualClock
from bench.operations import REQUEST, Recorder, Statements
from infra.project import FILTERS
from infra.settings import Settings
from lambdas._settings import Settings as Environment
from scheduler.model import slots
from scheduler.model.job import Finished, Job, Lane, Message, Result, TaskHead
from scheduler.model.rules import BATCH
from scheduler.model.spec import JobSpec
from scheduler.pipeline.process import Process
from scheduler.pipeline.submit import NewJob, submit
from scheduler.storage import messages
from scheduler.storage.aws import clients, items, work_queue
from scheduler.storage.aws.items import Item, size
from scheduler.storage.aws.table import CONNECTIONS
from scheduler.storage.memory.ports import MemoryPorts
from scheduler.storage.memory.stores import MemoryLanes, MemoryWork
from scheduler.storage.ports import Written
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
PARALLEL = ("due_in", "add", "put_many")  # verbs whose calls run side by side, `CONNECTIONS` at once
AT_ONCE = {"": 200, "get_many": 100, "glance": 100, "due_in": 8, "add": 8}  # items that take one wait: eight calls of 25, 100 or one
READS = {"watched": 1, "latency": 1, "barred": 1, "cursor": 1, "unit": 1, "open_units": 1, "mark": 1, "get": 1}  # units of small reads
EACH = {"get_many": 1, "outlines": 1, "glance": 0.5}  # read units of each key
LINE_BYTES = 26  # that CloudWatch Logs adds to each line
EVERY_MINUTE = {"tick": 7_000, "plan": 23_000, "scale": 41_000}  # ms within the minute; they wander, since queues count in seconds
SETTLED = Result(output="done")
PAGED = ("ledger.set_sweep_cursor",)  # in memory each slot is a page


class Load(NamedTuple):
    """The jobs of users: one-time jobs a minute, posted one by one ten minutes ahead, and tasks that run every minute."""

    jobs: int = 0
    tasks: int = 0


@dataclass(slots=True)
class Meter:
    """All that AWS would bill for some minutes. `calls`, `waited_ms`, `invocations` and `log_bytes` are by function."""

    minutes: int = 0
    calls: Counter[str] = field(default_factory=Counter)  # for whose answers the function waits, one after the other
    waited_ms: Counter[str] = field(default_factory=Counter)
    invocations: Counter[str] = field(default_factory=Counter)
    log_bytes: Counter[str] = field(default_factory=Counter)
    requests: Counter[str] = field(default_factory=Counter)  # by service: SQS, SQS with a message group, SNS, HTTP API, schedules
    reads: float = 0.0  # read units
    writes: int = 0  # write units
    metrics: set[str] = field(default_factory=set)  # our own metrics that were emitted
    verbs: Counter[str] = field(default_factory=Counter)  # of ports
    jobs: int = 0  # of users, that ended


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
        self.clock = VirtualClock(FIRST)
        self._lanes, self._work = _Lanes(self.clock), MemoryWork(self.clock)
        self.ports = MemoryPorts(self.clock, settings.deployed)
        self._wire({name: getattr(self.ports, name) for name in TABLED})
        self._due: list[tuple[int, str]] = []  # when the functions run that a schedule starts
        self._stream: dict[str, list[dict[str, Any]]] = defaultdict(list)  # records by stream and shard
        self._flush_at: dict[str, int] = {}
        self._sequence, self._missing_tasks = 0, load.tasks
        self._recorder: Recorder | None = None

    # ports

    def _wire(self, stored: Mapping[str, Any]) -> None:
        """Replace the ports of tables by these, and meter all."""
        for name, port in stored.items():
            setattr(self.ports, name, _Metered(port, name, self))
        self.ports.lanes, self.ports.work = _Metered(self._lanes, "lanes", self), _Metered(self._work, "work", self)
        self._processes = {lane: Process.of(lane, "bench", self.ports) for lane in Lane}

    def to_tables(self) -> None:
        """Replace memory by tables in which the ledger stands as it does in memory."""
        from lambdas._runtime import AwsPorts

        before = self.ports.ledger.port
        client, reader = clients.dynamodb(region_name="us-east-1"), clients.dynamodb(region_name="us-east-1")
        for name, table in TABLES.items():
            reader.create_table(TableName=name, **table)
        names: dict[str, Any] = {f"{name}_table": name for name in TABLES}
        made = AwsPorts(Environment(stage="bench", rules=self.settings.deployed, **names))
        made._dynamodb = client
        _copy(before, made.ledger, self._now)
        client.meta.events.register("before-call.dynamodb.BatchExecuteStatement", Statements(reader))
        client.meta.events.register("provide-client-params.dynamodb", self._asked)
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
        self.meter.calls[self._duty] += max(math.ceil(len(many) / AT_ONCE.get(verb, AT_ONCE[""])), 1)
        self.meter.reads += len(many) * EACH[verb] if verb in EACH else READS.get(verb, 0)
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

    def _asked(self, params: Mapping[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
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
            self._until(self._now + slots.MINUTE)
            self._now += slots.MINUTE

    def _plan_minute(self) -> None:
        wander = self._now // slots.MINUTE * self._wanders_ms % 1_000
        self._due += [(self._now + at + wander, name) for name, at in EVERY_MINUTE.items()]
        if self._recorder is None:
            return
        self._due += [(self._now + self._random.randrange(slots.MINUTE), "api") for _ in range(self.load.jobs)]
        self._due += [(self._now, "api task")] * self._missing_tasks
        self._missing_tasks = 0

    def _until(self, end: int) -> None:
        while (following := min(self._next())) < end:
            at, act = following, self._next()[following]
            act(at)

    def _next(self) -> dict[int, Callable[[int], None]]:
        """Return the next events, by their instants."""
        found: dict[int, Callable[[int], None]] = {}
        if self._due:
            found[min(self._due)[0]] = self._scheduled
        if self._work.queued:
            found[min(each.visible_at for each in self._work.queued.values())] = self._step
        for lane in Lane:
            if (visible := self._lanes.next_at(lane)) is not None:
                found[visible] = lambda at, lane=lane: self._batch(lane, at)  # type: ignore[misc]
        for shard, at in self._flush_at.items():
            found[at] = lambda at, shard=shard: self._project(shard, at)  # type: ignore[misc]
        return found

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
        from lambdas import _runtime, dispatch, execute, plan, project, scale, tick

        handlers = {module.__name__.rpartition(".")[2]: module.handler for module in (dispatch, execute, plan, project, scale, tick)}
        with patch.multiple(_runtime, ports=lambda: self.ports, execute=lambda: executor):
            return self._call(name, at, lambda: handlers[name](dict(event), Context("request")))

    def _scheduled(self, at: int) -> None:
        when, name = min(self._due)
        self._due.remove((when, name))
        if name.startswith("api"):
            self.meter.requests["HTTP API"] += 1
            self._call("api", at, self._post if name == "api" else self._create)
        else:
            self.meter.requests["schedules"] += 1
            self._handle(name, at, {})

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

    def _step(self, at: int) -> None:
        (delivery,) = self._work.receive(at, limit=1)
        body = work_queue.encode(delivery.item)
        attributes = {"ApproximateReceiveCount": str(delivery.receive_count)}
        record = {"messageId": delivery.message_id, "receiptHandle": delivery.receipt, "body": body, "attributes": attributes}
        answer = self._handle("dispatch", at + DELIVERY_MS, {"Records": [record]})
        self.meter.requests["SQS"] += 1  # its receive
        if not answer["batchItemFailures"]:
            self.meter.requests["SQS"] += 1
            self._work.delete(delivery.receipt)

    def _batch(self, lane: Lane, at: int) -> None:
        batch = self._lanes.receive(lane, min(TOGETHER, BATCH[lane]), at)
        records = [
            {
                "messageId": each.message_id,
                "receiptHandle": each.receipt,
                "body": messages.encode(each.message),
                "attributes": {"ApproximateReceiveCount": str(each.receive_count)},
            }
            for each in batch
        ]
        executor = _Executor(lane, self.ports, self._processes[lane], lambda: _Pool(self))
        answer = self._handle("execute", at + DELIVERY_MS, {"Records": records}, executor)
        left = {each["itemIdentifier"] for each in answer["batchItemFailures"]}
        self.meter.requests["SQS with a group"] += 1 + (len(left) < len(batch))
        for each in batch:
            if each.message_id not in left:
                self._lanes.delete(lane, each.receipt)

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
        self._stream[shard].append(record)
        self._flush_at.setdefault(shard, self.clock.at + self.settings.batching_s * 1_000)

    def _project(self, shard: str, at: int) -> None:
        del self._flush_at[shard]
        self._handle("project", at, {"Records": self._stream.pop(shard), "shardId": shard})


TABLES: dict[str, dict[str, Any]] = {**tables.ALL, "users": tables.USERS, "counters": tables.COUNTERS}
TABLED = ("jobs", "tasks", "orders", "ledger", "receipts", "operations", "targets", "users", "counters")  # ports that tables implement


class _Metered:
    """A port whose use the stage counts."""

    def __init__(self, port: Any, name: str, stage: Stage) -> None:
        self.port, self._name, self._stage = port, name, stage

    def __getattr__(self, verb: str) -> Any:
        found = getattr(self.port, verb)
        if not callable(found):
            return found
        stage, name = self._stage, self._name

        def use(*args: Any, **more: Any) -> Any:
            stage.used(name, verb, [*args, *more.values()])
            with stage.parallel(verb):
                answer = found(*args, **more)
            for before, after in _changes(name, verb, args, answer):
                stage.written(before, after)
            return answer

        return use


def _changes(port: str, verb: str, args: Sequence[Any], answer: Any) -> Iterator[tuple[Job | None, Job | None]]:
    """Yield the writes of jobs in the use of a verb."""
    if port == "jobs" and verb == "put" and answer:
        yield None, args[0]
    elif port == "jobs" and verb == "put_many":
        yield from ((None, job) for job, done in zip(args[0], answer, strict=True) if done is Written.YES)
    elif port == "jobs" and verb == "claim":
        yield from ((each.job, each.job) for each in answer if each is not None and each.won)
    elif port == "jobs" and verb == "change":
        yield from ((change.before, change.after) for change, done in zip(args[0], answer, strict=True) if done is Written.YES)


class _Lanes(MemoryLanes):
    """The lanes, on the clock of the stage; a message passes the topic first."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._clock = clock

    def now(self) -> int:
        return self._clock.at

    def publish(self, messages: Sequence[Message]) -> list[Message]:
        for message in messages:
            self.add(message, self._clock.at + TOPIC_MS)
        return []

    def next_at(self, lane: Lane) -> int | None:
        """Return when the next message is visible (ms); None if there is none."""
        return min((each.visible_at for each in self.queues[lane].values()), default=None)


class _Executor(NamedTuple):
    """The part of an executor that the handler of execute uses."""

    lane: Lane
    ports: MemoryPorts
    process: Process
    pool: "Callable[[], _Pool]"


class _Pool:
    """A pool whose work takes no time."""

    def __init__(self, stage: Stage) -> None:
        self._clock = stage.clock
        self._done: list[Finished] = []

    def has_room(self, job: Job) -> bool:
        return True

    def start(self, job: Job, not_after: int | None = None, task: TaskHead | None = None) -> None:
        self._done.append(Finished(job, self._clock.at, self._clock.at, SETTLED))

    def wait(self, until: int) -> list[Finished]:
        if not self._done:
            self._clock.sleep_until(until)
        done, self._done = self._done, []
        return done


def _copy(before: Any, after: Any, now: int) -> None:
    """Store in the ledger `after` what the ledger `before` has: cursors, open units, later checks of the next minutes."""
    after.advance(None, before.cursor())
    after.set_plan_cursor(None, before.plan_cursor())
    for look in before.looks(now + (SETTLING + 60) * slots.MINUTE):
        after.open_unit(look.unit)
        after.close_unit(look.unit, now, look)
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
