"""The handlers behind triggers: how they read events, their answers, and their treatment of poison records."""

import json
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from lambdas import _runtime, bury, dispatch, execute, plan, redrive, tick
from lambdas._children import Children
from lambdas._clock import SystemClock
from lambdas._settings import Settings
from scheduler.callbacks.reports import Addresses
from scheduler.dead_letters import model
from scheduler.insight import metrics
from scheduler.model import slots
from scheduler.model.errors import Invalid
from scheduler.model.job import Failure, FailureKind, Job, Lane, Unit, UnitKey
from scheduler.model.rules import Rules
from scheduler.pipeline.execute import Process
from scheduler.storage import messages
from scheduler.storage.memory.ports import MemoryPorts
from scheduler.targets import registry
from scheduler.targets.base import Reach
from scheduler.targets.fetch_call import AHEAD_MS
from scheduler.targets.named_target import NamedTarget
from scheduler.targets.types import log
from scheduler.tasks.schedule import Rate, Schedule
from tests.conftest import FixedClock, a_job, a_message
from tests.contract import make
from tests.unit.fake_calls import FUNCTION, QUEUE, FakeCalls


class World(MemoryPorts):
    """The ports and services that the composition root gives a function, in memory."""

    def __init__(self, clock: Any) -> None:
        super().__init__(clock, Rules(shards=2))
        self.settings, self.reach, self.lane = Settings(stage="test", lane="one-time"), Reach((QUEUE,)), Lane.ONE_TIME
        self.process = Process.of(self.lane, "me", self)
        self.threads, self.children = ThreadPoolExecutor(4), Children()
        self.callbacks = Addresses("https://api.example.com", self.secrets)


@pytest.fixture
def world(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> World:
    real = request.node.get_closest_marker("real_clock")
    made = World(SystemClock() if real else FixedClock())
    for name in ("ports", "execute"):
        monkeypatch.setattr(_runtime, name, lambda: made)
    return made


def record(job: Job, number: int = 1, body: str | None = None) -> dict[str, Any]:
    """One record of an SQS event, in the fields that Lambda sends."""
    return {
        "messageId": f"m{number}",
        "receiptHandle": f"m{number}/1",
        "body": messages.encode(a_message(job)) if body is None else body,
        "attributes": {"ApproximateReceiveCount": "1", "SentTimestamp": "1795168800000", "SenderId": "x"},
        "messageAttributes": {},
        "eventSource": "aws:sqs",
        "awsRegion": "us-east-1",
    }


def received(world: World, *jobs: Job) -> list[dict[str, Any]]:
    """The records of stored jobs whose messages have been received."""
    for job in jobs:
        world.jobs.put(job)
        world.lanes.add(a_message(job), world.clock.now())
    taken = world.lanes.receive(Lane.ONE_TIME, 10, world.clock.now())
    return [
        record(job, number) | {"messageId": item.message_id, "receiptHandle": item.receipt}
        for number, (job, item) in enumerate(zip(jobs, taken, strict=True))
    ]


CONTEXT = SimpleNamespace(aws_request_id="r1")


def due_now(world: World, **fields: Any) -> Job:
    now = world.clock.now()
    return a_job(due_at=now, scheduled_at=now, created_at=now, **fields)


@pytest.mark.real_clock
def test_execute_runs_its_batch_and_leaves_poison_to_bury(world: World) -> None:
    job = due_now(world)
    records = [*received(world, job), record(job, 7, body="{not json"), record(job, 8, body='{"v": 1}')]
    answer = execute.handler({"Records": records}, CONTEXT)
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m7"}, {"itemIdentifier": "m8"}]}
    assert world.jobs.get(job.key).completed_at is not None


@pytest.mark.real_clock
def test_a_job_that_calls_aws_receives_the_calls_and_its_reach(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = FakeCalls()
    monkeypatch.setattr(_runtime, "calls", lambda: calls)
    allowed, other = (due_now(world, type="sqs", payload={"queue": queue, "body": "b"}) for queue in (QUEUE, f"{QUEUE}-2"))
    execute.handler({"Records": received(world, allowed, other)}, CONTEXT)
    assert world.jobs.get(allowed.key).output == "m1"
    assert "may reach" in world.jobs.get(other.key).attempts[0].failure.message
    assert len(calls.asked) == 1


@pytest.mark.real_clock
def test_a_job_of_an_unknown_type_fails_alone(world: World) -> None:
    bad, good = due_now(world, type="nonsense"), due_now(world)
    assert execute.handler({"Records": received(world, bad, good)}, CONTEXT) == {"batchItemFailures": []}
    assert world.jobs.get(bad.key).attempts[0].failure.kind is FailureKind.PERMANENT
    assert world.jobs.get(good.key).completed_at is not None


@pytest.mark.real_clock
def test_a_target_that_exits_fails_only_its_own_attempt(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(payload: Any, context: Any) -> Any:
        raise SystemExit("boom")

    monkeypatch.setattr(registry, "load", lambda name: replace(log.TYPE, run=leave))
    job = due_now(world)
    assert execute.handler({"Records": received(world, job)}, CONTEXT) == {"batchItemFailures": []}
    assert world.jobs.get(job.key).attempts[0].failure.message == "SystemExit: boom"


@pytest.mark.real_clock
def test_a_job_uses_its_named_target_as_stored_when_it_starts(world: World) -> None:
    def target(**fields: Any) -> NamedTarget:
        return NamedTarget("notes", "log", 1, 1, "ada", "ada", **fields)

    first, second = target(defaults={"message": "first"}, locked=("message",)), target(defaults={"message": "second"}, version=2)
    jobs = [due_now(world, target="notes", payload={"message": "mine"}) for _ in range(3)]
    world.targets.put(None, first)
    execute.handler({"Records": received(world, jobs[0])}, CONTEXT)
    world.targets.put(first, second)
    world.process.named.forget("notes")
    execute.handler({"Records": received(world, jobs[1])}, CONTEXT)
    world.targets.put(second, replace(second, version=3, enabled=False))
    world.process.named.forget("notes")
    execute.handler({"Records": received(world, jobs[2])}, CONTEXT)
    done = [world.jobs.get(job.key) for job in jobs]
    assert [job.output for job in done] == ["first", "mine", None]
    assert [job.spec.payload for job in done] == [{"message": "mine"}] * 3, "the history keeps the job's own payload"
    assert done[2].attempts[0].failure == Failure(FailureKind.PERMANENT, "target notes is disabled")


@pytest.mark.real_clock
def test_a_job_of_an_unknown_target_fails_permanently(world: World) -> None:
    job = due_now(world, target="gone")
    execute.handler({"Records": received(world, job)}, CONTEXT)
    assert world.jobs.get(job.key).attempts[0].failure == Failure(FailureKind.PERMANENT, "target gone does not exist")
    assert world.jobs.get(job.key).failed_at is not None


@pytest.mark.real_clock
def test_execute_never_starts_a_job_before_its_instant(world: World) -> None:
    at = world.clock.now() + 300
    job = a_job(due_at=at)
    execute.handler({"Records": received(world, job)}, CONTEXT)
    assert 0 <= world.jobs.get(job.key).delay_ms < 250


def test_execute_leaves_messages_without_a_lease_in_the_queue(world: World) -> None:
    job = a_job()
    world.jobs.put(job)
    answer = execute.handler({"Records": [record(job)]}, CONTEXT)  # the queue does not know this receipt
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m1"}]}
    assert world.jobs.get(job.key).claim is None


def test_bury_counts_the_jobs_it_fails_and_drops_poison(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    job = a_job(buried=2)
    world.jobs.put(job)
    answer = bury.handler({"Records": [record(job), record(job, 2, body="poison")]}, CONTEXT)
    assert answer == {"batchItemFailures": []}
    assert world.jobs.get(job.key).failed_at is not None
    assert _emitted(capsys, metrics.BURIED) == ("bury", 1)


def test_dispatch_publishes_the_unit_of_its_event(world: World) -> None:
    minute = slots.minute_of(world.clock.now())
    job = a_job(slot=f"{minute}#00")
    world.jobs.put(job)
    world.ledger.open_unit(Unit(UnitKey(minute, 0), 0, 1))
    answer = dispatch.handler({"minute": minute, "part": 0}, CONTEXT)
    assert (answer["published"], answer["handed_out"]) == (1, True)


@pytest.mark.parametrize("event", [{}, {"minute": "2026-11-20T10:00"}, {"minute": None, "part": "x"}])
def test_dispatch_refuses_an_event_that_names_no_unit(world: World, event: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        dispatch.handler(event, CONTEXT)


def test_tick_emits_the_lag_and_ignores_its_event(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    answer = tick.handler({"anything": ["at", "all"]}, CONTEXT)
    assert answer["opened"] > 0
    service, value = _emitted(capsys, metrics.OLDEST_OPEN_MINUTE)
    assert (service, value) == ("tick", answer["lag_ms"] / 1000)


def test_plan_tops_up_the_tasks_of_the_minute_and_emits_its_lag(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    now = world.clock.now()
    minute = slots.minute_of(now)
    task = make.task(schedule=Schedule(Rate(60_000, now)), planned_until=now, planned=1, replenish=slots.slot(minute, "any", 1))
    assert world.tasks.store(None, task, [])
    answer = plan.handler({"anything": ["at", "all"]}, CONTEXT)
    assert answer["tasks"] == 1 and answer["runs"] >= 10
    runs = world.jobs.of_task(task.key, since=None, until=None, after=None, limit=100, newest_first=False).jobs
    assert len(runs) == answer["runs"]
    assert _emitted(capsys, metrics.PLAN_LAG) == ("plan", answer["lag_ms"] / 1000)


def _emitted(capsys: pytest.CaptureFixture[str], name: str) -> tuple[str, float]:
    """Service and value of an EMF metric in the log."""
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if name in line]
    found = next(line for line in lines if "_aws" in line)
    assert found["_aws"]["CloudWatchMetrics"][0]["Namespace"] == metrics.NAMESPACE
    value = found[name]
    return found[metrics.SERVICE], value[0] if isinstance(value, list) else value


def test_services_log_through_the_logger_of_the_handlers() -> None:
    assert logging.getLogger("scheduler").parent is _runtime.logger._logger


def test_redrive_advances_running_redrives_and_logs_its_work(world: World) -> None:
    dead = a_job(slot=None, failed_at=world.clock.now(), reason="no")
    world.jobs.put(dead)
    world.redrives.add(model.new(dead.owner, world.clock.now(), 1, model.Filter()))
    assert redrive.handler({}, None) == {"redrives": 1, "redriven": 1, "skipped": 0, "refused": 0}
    assert redrive.handler({"id": "whatever"}, None) == {"redrives": 0, "redriven": 0, "skipped": 0, "refused": 0}
    assert world.jobs.get(dead.key).redrives == 1


class Executing(SimpleNamespace):
    """The part of the executor that `_runtime.ahead` calls."""

    def __init__(self, function: str) -> None:
        super().__init__(settings=Settings(stage="test", fetch_function=function))


WAYS = (("http", 1_000), ("http", 2_000), ("log", 3_000), ("http", 1_000))


def test_a_waiting_http_job_warms_its_function_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made, asked = FakeCalls(), threading.Event()
    made.answers["invoke"] = asked.set
    monkeypatch.setattr(_runtime, "calls", lambda: made)
    monkeypatch.setattr(_runtime, "execute", lambda: Executing(FUNCTION))
    monkeypatch.setattr(_runtime, "_way_made", threading.Lock())
    ms = [_runtime.ahead(a_job(type=name, timeout_ms=timeout)) for name, timeout in WAYS]
    assert ms == [AHEAD_MS, AHEAD_MS, 0, AHEAD_MS]
    for thread in [thread for thread in threading.enumerate() if thread.name == "make-way"]:
        thread.join(5)
    assert asked.is_set()
    (request,) = made.asked
    assert (request.parameters["FunctionName"], request.parameters["Payload"], request.waits) == (FUNCTION, b"{}", True)


def test_executors_that_call_http_themselves_warm_no_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_runtime, "execute", lambda: Executing(""))
    assert _runtime.ahead(a_job(type="http")) == 0
