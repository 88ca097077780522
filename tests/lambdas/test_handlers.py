"""The handlers behind triggers: how they read events, their answers, and their treatment of poison records."""

import contextlib
import io
import json
import logging
import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from lambdas import _pool, _runtime, bury, execute, plan, tick, worker
from lambdas._clock import SystemClock, WrongClock
from lambdas._executor import Executor
from lambdas._fetch_warmer import MOST, RESTED_MS
from lambdas._logger import logger
from lambdas._settings import Settings
from scheduler.insight import metrics
from scheduler.model import instants, operation, slots
from scheduler.model.errors import Unavailable
from scheduler.model.job import CANARY_OWNER, Failure, FailureKind, Job, JobKey, Lane, Unit, UnitKey
from scheduler.model.named_target import NamedTarget
from scheduler.model.rules import Rules
from scheduler.model.run_timer import RunTimer
from scheduler.model.schedule import Rate, Schedule
from scheduler.model.work import WorkDelivery, WorkItem, WorkKind
from scheduler.storage import messages
from scheduler.storage.aws import work_queue
from scheduler.storage.memory.ports import MemoryPorts
from scheduler.targets import registry
from scheduler.targets.base import Reach
from scheduler.targets.call_limit import CallLimit
from scheduler.targets.calls import Refused
from scheduler.targets.fetch_call import AHEAD_MS
from scheduler.targets.types import log
from scheduler.tasks import run_timers
from tests.conftest import FixedClock, a_job, a_message
from tests.contract import make
from tests.unit.fake_calls import FUNCTION, QUEUE, FakeCalls, raising

BUSY = Refused("TooManyRequestsException", "rate exceeded", retryable=True)


class World(MemoryPorts):
    """The ports and services that the composition root gives a function, in memory."""

    def __init__(self, clock: Any) -> None:
        super().__init__(clock, Rules(shards=2))
        self.settings = Settings(stage="test", lane="one-time", api_url="https://api.example.com", reach=Reach((QUEUE,)))
        self.executor = Executor(self, self.settings)


@pytest.fixture
def world(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> World:
    real = request.node.get_closest_marker("real_clock")
    made = World(SystemClock() if real else FixedClock())
    monkeypatch.setattr(_runtime, "ports", lambda: made)
    monkeypatch.setattr(_runtime, "execute", lambda: made.executor)
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


CONTEXT = SimpleNamespace(aws_request_id="r1", get_remaining_time_in_millis=lambda: 900_000)


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
    monkeypatch.setattr(world.executor, "calls", calls)
    allowed, other = (due_now(world, type="sqs", payload={"queue": queue, "body": "b"}) for queue in (QUEUE, f"{QUEUE}-2"))
    execute.handler({"Records": received(world, allowed, other)}, CONTEXT)
    assert world.jobs.get(allowed.key).output == "m1"
    assert "is not allowed" in world.jobs.get(other.key).attempts[0].failure.message
    assert len(calls.asked) == 1


@pytest.mark.real_clock
@pytest.mark.parametrize("owner", ["ann", "bob"])
def test_an_action_that_lost_its_owner_is_not_called(world: World, monkeypatch: pytest.MonkeyPatch, owner: str) -> None:
    """The option may have changed since the job was created."""
    calls = FakeCalls(HeadObject=lambda: {"ETag": "e"})
    world.executor.resources.reach = Reach(actions=(f"s3:HeadObject {owner}",))
    monkeypatch.setattr(world.executor, "calls", calls)
    payload = {"service": "s3", "action": "HeadObject", "parameters": {"Bucket": "b", "Key": "{{job.id}}"}}
    job = due_now(world, type="aws", payload=payload, placeholders=True, owner="ann")
    execute.handler({"Records": received(world, job)}, CONTEXT)
    after = world.jobs.get(job.key)
    if owner == "ann":
        assert after.output == '{"ETag": "e"}' and calls.asked[0].parameters == {"Bucket": "b", "Key": job.id}
    else:
        assert "action s3:HeadObject is not allowed" in after.attempts[0].failure.message and calls.asked == []


@pytest.mark.real_clock
def test_a_job_of_an_unknown_type_is_refused_alone(world: World) -> None:
    bad, good = due_now(world, type="nonsense"), due_now(world)
    assert execute.handler({"Records": received(world, bad, good)}, CONTEXT) == {"batchItemFailures": []}
    assert world.jobs.get(bad.key).attempts[0].failure.kind is FailureKind.REFUSED
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
    world.executor.process.named.forget("notes")
    execute.handler({"Records": received(world, jobs[1])}, CONTEXT)
    world.targets.put(second, replace(second, version=3, enabled=False))
    world.executor.process.named.forget("notes")
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
def test_execute_never_starts_a_job_before_its_instant(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_pool, "LATE_MS", 60_000)
    at = world.clock.now() + 300
    job = a_job(due_at=at)
    execute.handler({"Records": received(world, job)}, CONTEXT)
    assert world.jobs.get(job.key).delay_ms >= 0


def test_execute_leaves_messages_without_a_lease_in_the_queue(world: World) -> None:
    job = a_job()
    world.jobs.put(job)
    answer = execute.handler({"Records": [record(job)]}, CONTEXT)  # the queue does not know this receipt
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m1"}]}
    assert world.jobs.get(job.key).claim is None


def test_bury_counts_the_jobs_of_its_messages_and_drops_poison(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    job = a_job(buried=2)
    world.jobs.put(job)
    answer = bury.handler({"Records": [record(job), record(job, 2, body="poison")]}, CONTEXT)
    assert answer == {"batchItemFailures": []}
    assert world.jobs.get(job.key) == replace(job, buried=3)
    assert _emitted(capsys, metrics.BURIED) == ("bury", 1)


def work_record(taken: WorkDelivery, body: str | None = None) -> dict[str, Any]:
    """The record of a message of the work queue, in the fields that Lambda sends."""
    return {
        "messageId": taken.message_id,
        "receiptHandle": taken.receipt,
        "body": work_queue.encode(taken.item) if body is None else body,
        "attributes": {"ApproximateReceiveCount": str(taken.receive_count), "SentTimestamp": "1795168800000"},
        "eventSource": "aws:sqs",
    }


def asked(world: World, *items: WorkItem) -> list[dict[str, Any]]:
    """The records of items that were sent and received."""
    world.work.send(items)
    return [work_record(taken) for taken in world.work.receive(world.clock.now())]


def a_unit(world: World, **fields: Any) -> Unit:
    """The unit of the present minute, open and due."""
    now = world.clock.now()
    unit = Unit(UnitKey(slots.minute_of(now), 0), 0, 1, opened_at=now, **({"next_at": now} | fields))
    world.ledger.open_unit(unit)
    return unit


def hidden_until(world: World, record: dict[str, Any]) -> int:
    at: int = world.work.queued[record["messageId"]].visible_at
    return at


def test_the_worker_publishes_the_unit_of_its_message(world: World, logged: pytest.LogCaptureFixture) -> None:
    unit = a_unit(world)
    world.jobs.put(a_job(slot=f"{unit.key.minute}#00"))
    (sent,) = asked(world, WorkItem.of_unit(unit.key))
    answer = worker.handler({"Records": [sent]}, CONTEXT)
    stored = world.ledger.unit(unit.key)
    assert len(world.lanes.queues[Lane.ONE_TIME]) == 1 and stored.handed_out_at is not None
    assert _published(logged) == (1, 1)
    assert answer == {"batchItemFailures": [{"itemIdentifier": sent["messageId"]}]}, "its message stays for the next step"
    assert 0 <= hidden_until(world, sent) - stored.next_at < 1_000, "hidden for whole seconds, rounded up"


def test_the_worker_emits_the_lag_of_a_late_judgement(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    now = world.clock.now()
    on_time, late = (RunTimer(at, JobKey("ann", f"run-{at}"), at, at) for at in (now, now - 90_000))
    world.run_timers.arm([on_time, late])
    for timer in (on_time, late):
        worker.handler({"Records": asked(world, run_timers.item_of(timer))}, CONTEXT)
    said = capsys.readouterr().out.splitlines()
    assert [json.loads(line)[metrics.ALERT_LAG] for line in said if f'"{metrics.ALERT_LAG}"' in line] == [[90.0]]


def test_the_canary_is_no_pulled_job(world: World, logged: pytest.LogCaptureFixture) -> None:
    unit = a_unit(world)
    world.jobs.put(a_job(slot=f"{unit.key.minute}#00", owner=CANARY_OWNER))
    (sent,) = asked(world, WorkItem.of_unit(unit.key))
    worker.handler({"Records": [sent]}, CONTEXT)
    assert len(world.lanes.queues[Lane.ONE_TIME]) == 1
    assert _published(logged) == (1, 0)


def test_the_worker_leaves_a_message_to_lambda_once_its_work_is_done(world: World) -> None:
    gone, checks = asked(world, WorkItem.of_unit(UnitKey("2019-01-01T00:00", 0)), WorkItem(WorkKind.CHECKS))
    assert worker.handler({"Records": [gone]}, CONTEXT) == {"batchItemFailures": []}
    assert worker.handler({"Records": [checks]}, CONTEXT) == {"batchItemFailures": []}


def test_the_worker_tries_a_failed_step_again_later_and_longer(world: World) -> None:
    unit = a_unit(world)

    def refuse(key: UnitKey) -> Unit:
        raise ValueError("a bug")

    world.ledger.unit = refuse
    (sent,) = asked(world, WorkItem.of_unit(unit.key))
    answer = worker.handler({"Records": [sent]}, CONTEXT)
    first = hidden_until(world, sent) - world.clock.now()
    world.clock.at += first
    (again,) = [work_record(taken) for taken in world.work.receive(world.clock.now())]
    assert worker.handler({"Records": [again]}, CONTEXT) == answer == {"batchItemFailures": [{"itemIdentifier": sent["messageId"]}]}
    assert hidden_until(world, again) - world.clock.now() == 2 * first > 0


def test_the_worker_hides_the_message_of_a_refused_step(world: World, caplog: pytest.LogCaptureFixture) -> None:
    def refuse(key: UnitKey) -> Unit:
        raise Unavailable

    world.ledger.unit = refuse
    (sent,) = asked(world, WorkItem.of_unit(UnitKey("2026-11-20T10:00", 0)))
    assert worker.handler({"Records": [sent]}, CONTEXT) == {"batchItemFailures": [{"itemIdentifier": sent["messageId"]}]}
    assert hidden_until(world, sent) > world.clock.now()
    assert [log.levelname for log in caplog.records if log.message == "a step failed"] == ["WARNING"]


def test_the_worker_drops_a_record_that_is_no_work_and_works_on(world: World) -> None:
    unit = a_unit(world)
    (sent,) = asked(world, WorkItem.of_unit(unit.key))
    bad = [{}, None, sent | {"messageId": "p1", "body": "poison"}, sent | {"messageId": "p2", "attributes": {}}]
    answer = worker.handler({"Records": [*bad[:2], sent, *bad[2:]]}, CONTEXT)
    assert answer == {"batchItemFailures": [{"itemIdentifier": sent["messageId"]}]}
    assert world.ledger.unit(unit.key).handed_out_at is not None


@pytest.mark.parametrize("handler", [tick.handler, plan.handler], ids=["tick", "plan"])
@pytest.mark.parametrize(
    ("ahead_ms", "refuses"), [(-3_600_000, True), (-60_001, True), (-60_000, False), (0, False), (180_000, False), (180_001, True)]
)
def test_timers_refuse_to_work_with_a_wrong_clock(world: World, handler: Any, ahead_ms: int, refuses: bool) -> None:
    event = {"source": "aws.scheduler", "time": instants.render(world.clock.now() - ahead_ms)}
    with pytest.raises(WrongClock, match="the clock is at") if refuses else contextlib.nullcontext():
        handler(event, CONTEXT)
    assert (world.ledger.mark() == 0) is (refuses or handler is plan.handler)
    assert (world.ledger.plan_cursor() is None) is (refuses or handler is tick.handler)


def test_tick_emits_the_lag_and_ignores_its_event(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    answer = tick.handler({"anything": ["at", "all"]}, CONTEXT)
    assert answer["opened"] > 0
    service, value = _emitted(capsys, metrics.OLDEST_OPEN_MINUTE)
    assert (service, value) == ("tick", answer["lag_ms"] / 1000)


def test_tick_emits_the_lag_of_plan_only_while_it_is_late(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    for minutes_ago, late in ((0, 0), (5, 0), (6, 60), (30, 1_500)):
        at = slots.start_of(slots.minute_of(world.clock.now()))
        world.clock.at = at
        world.ledger.set_plan_cursor(world.ledger.plan_cursor(), slots.minute_of(at - minutes_ago * slots.MINUTE))
        tick.handler({}, CONTEXT)
        said = capsys.readouterr().out
        found = [json.loads(line) for line in said.splitlines() if f'"{metrics.PLAN_LAG}"' in line]
        assert [line[metrics.PLAN_LAG] for line in found] == ([[late]] if late else [])


def test_plan_tops_up_the_tasks_of_the_minute(world: World) -> None:
    now = world.clock.now()
    minute = slots.minute_of(now)
    task = make.task(schedule=Schedule(Rate(60_000, now)), planned_until=now, planned=1, replenish=slots.slot(minute, "any", 1))
    assert world.tasks.store(None, task, [])
    answer = plan.handler({"anything": ["at", "all"]}, CONTEXT)
    assert answer["tasks"] == 1 and answer["runs"] >= 10
    runs = world.jobs.of_task(task.key, since=None, until=None, after=None, limit=100, newest_first=False).jobs
    assert len(runs) == answer["runs"]


def _published(logged: pytest.LogCaptureFixture) -> tuple[int, int]:
    """The jobs, and the jobs of users, that the only dispatcher in the log has published."""
    (line,) = [vars(record) for record in logged.records if record.message == "dispatch"]
    return line["published"], line["jobs_pulled"]


def _emitted(capsys: pytest.CaptureFixture[str], name: str) -> tuple[str, float]:
    """Service and value of an EMF metric in the log."""
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if name in line]
    found = next(line for line in lines if "_aws" in line)
    assert found["_aws"]["CloudWatchMetrics"][0]["Namespace"] == metrics.NAMESPACE
    value = found[name]
    return found[metrics.SERVICE], value[0] if isinstance(value, list) else value


def test_each_line_of_a_service_is_printed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lambda's runtime has a handler on the root logger."""
    printed = io.StringIO()
    (own,) = [each for each in logger._logger.handlers if type(each) is logging.StreamHandler]
    monkeypatch.setattr(own, "stream", printed)
    monkeypatch.setattr(logging.getLogger(), "handlers", [logging.StreamHandler(printed)])
    logging.getLogger("scheduler.pipeline.follow_up").error("a line of a service")
    logger.error("a line of a handler")
    assert printed.getvalue().count("a line of a service") == 1 == printed.getvalue().count("a line of a handler")


def test_the_worker_carries_out_a_redrive_to_its_end(world: World) -> None:
    dead = a_job(slot=None, failed_at=world.clock.now(), reason="no")
    world.jobs.put(dead)
    record = operation.new(dead.owner, world.clock.now(), 1, operation.Action.REDRIVE, operation.Filter())
    world.operations.add(record, 0, None)
    world.clock.advance(operation.SETTLED_MS)
    (sent,) = asked(world, WorkItem(WorkKind.OPERATION, record.owner, record.id))
    assert worker.handler({"Records": [sent]}, CONTEXT) == {"batchItemFailures": []}
    assert world.operations.get(record.owner, record.id).done == 1
    assert world.jobs.get(dead.key).redrives == 1


def test_tick_sends_the_work_of_the_minutes_that_it_opens(world: World) -> None:
    answer = tick.handler({}, CONTEXT)
    sent = {each.item for each in world.work.queued.values()}
    assert len(sent) == answer["sent"] and WorkItem(WorkKind.CHECKS) in sent
    assert {item.of for item in sent if item.kind is WorkKind.UNIT} <= {unit.key.minute for unit in world.ledger.open_units()}


def an_executor(function: str, **names: str) -> Executor:
    return Executor(MemoryPorts(FixedClock()), Settings(stage="test", lane="one-time", fetch_function=function, **names))


@pytest.mark.real_clock
def test_the_mail_of_jobs_counts_in_the_budget_of_their_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, calls = SystemClock(), FakeCalls(send_email=lambda: {"MessageId": "m"})
    settings = Settings(stage="test", lane="one-time", reach=Reach(sender="punctual@example.com"))
    executor = Executor(MemoryPorts(clock, Rules(mails_per_day=2)), settings)
    monkeypatch.setattr(executor, "calls", calls)
    payload, sent = {"to": ["ann@example.com"], "subject": "s", "text": "t"}, list[bool]()
    for owner in ("ada", "ada", "ada", "eve"):
        pool = executor.pool()
        pool.start(a_job(owner=owner, type="email", payload=payload))
        sent += [done.result.failure is None for done in pool.wait(clock.now() + 5_000)]
    assert sent == [True, True, False, True]


@pytest.fixture
def way(monkeypatch: pytest.MonkeyPatch) -> tuple[Executor, FakeCalls]:
    """An executor that has called no URL yet, and the calls that it makes."""
    made, executor = FakeCalls(), an_executor(FUNCTION)
    monkeypatch.setattr(executor, "calls", made)
    return executor, made


def started(made: FakeCalls) -> int:
    """Return how often the function was started, once all threads are done."""
    for thread in [thread for thread in threading.enumerate() if thread.name == "fetch-warmer"]:
        thread.join(60)
    return len(made.asked)


def a_call(executor: Executor, *, wait_ms: int = 2_000, **fields: Any) -> int:
    """Let the executor take an `http` job that is due later; return how long before its instant it starts."""
    return executor.ahead(a_job(due_at=executor.ports.clock.now() + wait_ms, **({"type": "http"} | fields)), 1)


def test_a_waiting_http_job_starts_its_function(way: tuple[Executor, FakeCalls]) -> None:
    executor, made = way
    assert (a_call(executor, type="log"), started(made)) == (_pool.AHEAD_MS, 0)
    assert (a_call(executor), started(made)) == (AHEAD_MS, 1)
    (request,) = made.asked
    assert (request.parameters["FunctionName"], request.parameters["Payload"], request.waits) == (FUNCTION, b"{}", True)


def test_a_function_that_was_used_lately_is_not_started_again(way: tuple[Executor, FakeCalls]) -> None:
    executor, made = way
    a_call(executor)
    for _ in range(20):
        executor.ports.clock.at += RESTED_MS
        a_call(executor)
    assert started(made) == 1


def test_a_function_that_was_not_used_lately_is_started_again(way: tuple[Executor, FakeCalls]) -> None:
    executor, made = way
    for _ in range(3):
        a_call(executor)
        executor.ports.clock.at += RESTED_MS + 1
    assert started(made) == 3
    assert RESTED_MS < 240_000  # Lambda keeps an unused environment at least that long, as a rule


def test_each_of_several_waiting_jobs_starts_an_environment(way: tuple[Executor, FakeCalls]) -> None:
    executor, made = way
    for _ in range(4):
        a_call(executor)
    assert started(made) == 4
    for _ in range(2 * MOST):
        a_call(executor)
    assert started(made) == MOST


@pytest.mark.parametrize(("error", "left"), [(None, 2), (Refused("AccessDeniedException", "no", retryable=False), 2), (BUSY, 1)])
def test_an_environment_is_started_if_there_is_a_place_for_the_call(
    way: tuple[Executor, FakeCalls], error: Refused | None, left: int
) -> None:
    executor, made = way
    executor.resources.limit = CallLimit(2)
    if error is not None:
        made.answers["invoke"] = raising(error)
    a_call(executor)
    assert started(made) == 1 and executor.resources.limit.calls == 0
    assert executor.resources.limit._window.size == left, "a refusal teaches the executor its share before its jobs are due"
    executor.resources.limit = CallLimit(1)
    assert executor.resources.limit.take()
    a_call(executor)
    assert started(made) == 1


def test_a_job_that_is_due_starts_no_second_environment(way: tuple[Executor, FakeCalls]) -> None:
    executor, made = way
    assert (a_call(executor, wait_ms=0), started(made)) == (AHEAD_MS, 0)


@pytest.mark.parametrize("timeout_ms", [1_000, 30_000, 47_000])
def test_the_function_is_started_by_the_client_that_its_job_uses(way: tuple[Executor, FakeCalls], timeout_ms: int) -> None:
    """A client has the time-out of its calls: a job that starts ahead of its instant has so much longer."""
    executor, made = way
    a_call(executor, timeout_ms=timeout_ms)
    assert started(made) == 1
    assert made.left == [(timeout_ms + AHEAD_MS) / 1_000]


@pytest.mark.parametrize("fetch", [FUNCTION, ""])
def test_a_job_of_a_private_target_starts_the_function_in_its_network(monkeypatch: pytest.MonkeyPatch, fetch: str) -> None:
    made, executor = FakeCalls(), an_executor(fetch, fetch_private_function=f"{FUNCTION}-private")
    monkeypatch.setattr(executor, "calls", made)
    for name, allow in (("public", ()), ("inner", ("10.0.0.0/16",))):
        executor.ports.targets.put(None, NamedTarget(name, "http", 0, 0, "ann", "ann", allow=allow))
        a_call(executor, target=name)
    a_call(executor)
    assert started(made) == (3 if fetch else 1)
    assert [each.parameters["FunctionName"] for each in made.asked].count(f"{FUNCTION}-private") == 1


def test_a_job_of_an_unknown_type_does_not_stop_its_batch() -> None:
    assert an_executor(FUNCTION).ahead(a_job(type="removed"), 1) == 0


def test_executors_that_call_http_themselves_warm_no_function() -> None:
    assert an_executor("").ahead(a_job(type="http"), 1) == _pool.ahead(1, prepares=True)
