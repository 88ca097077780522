"""The cost of the operations that are sent, in write units."""

import uuid
from dataclasses import replace
from typing import Any

import pytest

from bench import operations
from bench.operations import AGAIN, BUDGET, GOOD, REQUEST, RUN_BUDGET, Bench, Recorder
from lab.scenarios import drills
from lab.world.clock import FixedClock
from scheduler.model import ids, lifecycle
from scheduler.model.job import Awaited, Job, Lane, Misfire, Overlap, Receipt, Result, RunInfo
from scheduler.model.spec import Ordering
from scheduler.model.task import Task
from scheduler.pipeline.predecessors import Named
from scheduler.pipeline.submit import Accepted, Submission, submit_all
from scheduler.storage.aws import clients
from scheduler.storage.aws.followers import DynamoFollowers
from scheduler.storage.aws.jobs import DynamoJobs
from scheduler.storage.aws.ordering_queues import DynamoOrderingQueues
from scheduler.storage.aws.receipts import DynamoReceipts
from scheduler.storage.aws.tasks import DynamoTasks
from scheduler.storage.memory.ports import MemoryPorts
from scheduler.storage.ports import Change, Guard, Written
from scheduler.targets import registry
from scheduler.targets.job_context import JobContext
from tests.contract import make, tables
from tests.contract.make import NOW

ALL: Any = {"since": None, "until": None, "after": None, "limit": 100, "newest_first": True}


@pytest.fixture
def recorder(local_aws: str) -> Recorder:
    return Recorder(clients.dynamodb(endpoint_url=local_aws), clients.dynamodb(endpoint_url=local_aws))


@pytest.fixture
def jobs(recorder: Recorder) -> DynamoJobs:
    return DynamoJobs(recorder.client, made(recorder, "jobs"))


@pytest.fixture
def counted(jobs: DynamoJobs, recorder: Recorder) -> tuple[DynamoJobs, Recorder]:
    return jobs, recorder


def made(recorder: Recorder, kind: str) -> str:
    """The name of a new table."""
    name = f"{kind}-{uuid.uuid4().hex}"
    recorder.reader.create_table(TableName=name, **tables.ALL[kind])
    return name


@pytest.mark.parametrize("batch", [1, 10])
def test_a_one_time_job_costs_five_write_units(counted: tuple[DynamoJobs, Recorder], batch: int) -> None:
    jobs, recorder = counted
    bench = Bench(jobs)
    bench.submit(batch)
    assert recorder.total() == 2 * batch
    bench.run_batch(Lane.ONE_TIME, GOOD, batch)
    assert recorder.total() == BUDGET * batch
    update = "UpdateItem" if batch == 1 else "BatchExecuteStatement"
    assert recorder.by_operation() == {"PutItem": 2 * batch, update: 3 * batch}


def test_a_job_of_a_batch_costs_as_much_as_a_single_one(counted: tuple[DynamoJobs, Recorder]) -> None:
    jobs, recorder = counted
    bench = Bench(jobs)
    bench.submit_batch(25)
    assert recorder.by_operation() == {"BatchExecuteStatement": 2 * 25}
    bench.run_batch(Lane.ONE_TIME, GOOD, 25)
    assert recorder.total() == BUDGET * 25


@pytest.mark.long
def test_an_idempotency_key_costs_one_more_unit(jobs: DynamoJobs, recorder: Recorder) -> None:
    receipts, clock = DynamoReceipts(recorder.client, made(recorder, "ledger")), FixedClock(NOW)
    asked = [Submission(REQUEST, number, Receipt(REQUEST.owner, f"key-{number}", "a" * 64, NOW, number)) for number in range(25)]
    ports = MemoryPorts(clock, jobs=jobs, receipts=receipts)
    first = submit_all(asked, ports)
    assert recorder.by_operation() == {"BatchExecuteStatement": drills.KEYED_UNITS * 25}
    recorder.writes.clear()
    again = submit_all(asked, ports)
    assert [each.job for each in again if isinstance(each, Accepted)] == [each.job for each in first if isinstance(each, Accepted)]
    assert "PutItem" not in recorder.by_operation() and len(jobs.history(REQUEST.owner, **ALL).jobs) == 25


def test_a_retry_costs_one_more_claim_and_move_in_the_index(counted: tuple[DynamoJobs, Recorder]) -> None:
    jobs, recorder = counted
    bench = Bench(jobs)
    bench.submit()
    bench.run_batch(Lane.ONE_TIME, AGAIN)
    assert recorder.total() == 2 + 1 + 3
    bench.clock.advance(900_000)
    bench.run_batch(Lane.RETRY, GOOD)
    assert recorder.total() == 2 + 1 + 3 + 1 + 2


def test_an_ordering_key_costs_three_units_and_four_for_a_wait(jobs: DynamoJobs, recorder: Recorder) -> None:
    """As `docs/guides/ordering.md` says. Of two jobs of a key in one batch, the second one has to wait for the end of the first."""
    bench = Bench(jobs)
    bench.orders = DynamoOrderingQueues(recorder.client, made(recorder, "tasks"))
    spec = replace(REQUEST.spec, ordering=Ordering("customer:17"))
    submit_all([Submission(replace(REQUEST, spec=spec), number) for number in range(2)], bench)
    assert recorder.total() == 2 * (2 + 1), "two jobs and their entries"
    bench.clock.advance(60_000)
    bench.run_batch(Lane.ONE_TIME, GOOD, 2)
    bench.run_batch(Lane.ONE_TIME, GOOD)
    assert recorder.total() == 2 * (BUDGET + 3) + 4


def test_a_predecessor_costs_six_units(jobs: DynamoJobs, recorder: Recorder) -> None:
    """As `docs/guides/after.md` says: a record, a mark of the predecessor, a note of its end, and a move with its index entries."""
    bench = Bench(jobs)
    bench.followers = DynamoFollowers(recorder.client, made(recorder, "tasks"))
    (first,) = submit_all([Submission(REQUEST, 1)], bench)
    assert isinstance(first, Accepted)
    submit_all([Submission(replace(REQUEST, execute_at=None, after=(Named(job=first.job.id),)), 2)], bench)
    assert recorder.total() == 2 * 2 + 1 + 1, "two jobs, a record, a mark"
    bench.clock.advance(60_000)
    bench.run_batch(Lane.ONE_TIME, GOOD)
    bench.run_batch(Lane.ONE_TIME, GOOD)
    assert recorder.total() == 2 * BUDGET + 1 + 1 + 1 + 3


def test_a_failure_costs_an_entry_in_the_failures_index(counted: tuple[DynamoJobs, Recorder]) -> None:
    jobs, recorder = counted
    operations.failed(Bench(jobs))
    assert recorder.total() == BUDGET + 1


def test_a_large_job_costs_by_the_kilobyte_only_in_the_table(counted: tuple[DynamoJobs, Recorder]) -> None:
    jobs, recorder = counted
    jobs.put(make.job(payload={"message": "x" * 2_500}))
    assert recorder.total() == 3 + 1


def test_a_moved_job_costs_an_index_entry_for_each_move_and_no_more(
    counted: tuple[DynamoJobs, Recorder],
) -> None:
    jobs, recorder = counted
    job = make.job(payload={"message": "x" * 1_500})
    jobs.put(job)
    later = make.rescheduled(job, NOW + 60_000)
    recorder.writes.clear()
    assert jobs.change([Change(job, later)]) == [Written.YES]
    assert recorder.total() == 2 + 2 + 1, "table, due index, moved"
    again = make.rescheduled(later, NOW + 120_000)
    assert jobs.change([Change(later, again)]) == [Written.YES]
    assert recorder.total() == 5 + 2 + 2 + 2, "an entry of another position is deleted and put"
    recorder.writes.clear()
    (claimed,) = jobs.claim([make.request(again, due_by=again.due_at)])
    assert claimed is not None and claimed.job is not None
    assert jobs.change([Change(claimed.job, make.succeeded(claimed.job, again.due_at))]) == [Written.YES]
    assert recorder.total() == 2 + 2 + 1, "claim, settlement, due index: nothing of the index of moved jobs"


@pytest.mark.long
@pytest.mark.parametrize(
    ("overlap", "misfire"), [(Overlap.SKIP, Misfire.RUN_LATEST), (Overlap.QUEUE_ONE, Misfire.RUN_ALL), (Overlap.ALLOW, Misfire.SKIP)]
)
def test_a_run_of_a_recurring_task_stays_within_its_budget(
    jobs: DynamoJobs, recorder: Recorder, overlap: Overlap, misfire: Misfire
) -> None:
    """The steady state: the run lock exists, and the runs are stored in top-ups of ten."""
    tasks = DynamoTasks(recorder.client, made(recorder, "tasks"), jobs="unused", ledger="unused")
    task = make.task(owner=REQUEST.owner, name="a name of a usual length", description="x" * 200, overlap=overlap, misfire=misfire)
    holder = make.holder(task.key, job=ids.run(NOW - 60_000, task.id, 1))
    assert tasks.store(None, task, []) and tasks.hold([(None, holder)]) == [Written.YES]
    recorder.writes.clear()

    runs = [run(task, NOW + minute * 60_000) for minute in range(10)]
    assert jobs.put_many(runs) == [Written.YES] * 10
    assert tasks.move_on([(task, replace(task, planned_until=NOW + 600_000, planned=12, replenish="2026-11-20T10:11#03"))]) == [Written.YES]
    shares = {"insert": 3.0, "top-up": 0.3, "claim": 1, "hold": 1 if overlap is not Overlap.ALLOW else 0, "settle": 2}
    assert recorder.total() == (shares["insert"] + shares["top-up"]) * 10
    for job in runs:
        (claimed,) = jobs.claim([make.request(job, due_by=job.due_at, nonce="m" * 36 + "/" + "r" * 36 + "/1")])
        assert claimed is not None and claimed.job is not None
        if shares["hold"]:
            after = replace(holder, job=job.id, version=holder.version + 1)
            assert tasks.hold([(holder, after)]) == [Written.YES]
            holder = after
        assert jobs.change([Change(claimed.job, make.succeeded(claimed.job))]) == [Written.YES]
    assert recorder.total() / 10 == pytest.approx(sum(shares.values()))
    assert recorder.total() / 10 <= RUN_BUDGET


def run(task: Task, at: int) -> Job:
    in_order = {"late_from": at, "previous_at": at, "next_at": at} if task.misfire is Misfire.RUN_ALL else {}
    origin = RunInfo(task.id, 1, at, task.overlap, task.misfire, **in_order)
    return make.run(task.key, at=at, origin=origin, start_by=at + 60_000, payload=REQUEST.spec.payload, tags=("billing",))


def test_withdrawing_a_run_costs_as_much_as_inserting_it(jobs: DynamoJobs, recorder: Recorder) -> None:
    made = [run(make.task(), NOW + minute * 60_000) for minute in range(3)]
    assert jobs.put_many(made) == [Written.YES] * 3
    assert jobs.withdraw([job.key for job in made]) == [Written.YES] * 3
    assert recorder.writes == [("BatchExecuteStatement", 3)] * 6


def test_a_refused_write_costs_units_too(counted: tuple[DynamoJobs, Recorder]) -> None:
    jobs, recorder = counted
    job = make.job()
    jobs.put(job)
    assert jobs.change([Change(make.moved(job, "b"), make.moved(job, "c"), Guard.SLOT)]) == [Written.NO]
    assert recorder.total() == 2 + 1


def test_a_write_costs_by_the_larger_image() -> None:
    large, small = {"pk": {"S": "p"}, "text": {"S": "x" * 2_000}}, {"pk": {"S": "p"}}
    assert [operations.price(*images, []) for images in ((large, small), (small, large), (None, large), (large, None))] == [2] * 4
    assert operations.price(None, None, []) == 1  # a condition on a missing item


def test_each_check_of_a_container_costs_four_units(counted: tuple[DynamoJobs, Recorder]) -> None:
    """As `docs/internals/cost-model.md` says: the item has less than 2 KB, and each check moves the entry of the due index."""
    jobs, recorder = counted
    place = "eu-west-1:123456789012"
    payload = {
        "cluster": f"arn:aws:ecs:{place}:cluster/jobs",
        "task_definition": f"arn:aws:ecs:{place}:task-definition/report:3",
        "subnets": ["subnet-0a1b2c3d4e5f67890"],
        "containers": [{"name": "report", "command": ["python", "report.py"], "environment": {"DAY": "2026-11-30"}}],
    }
    job, ends = make.job(type="ecs", payload=payload), registry.load("ecs").ends
    assert ends is not None and jobs.put(job)
    (claimed,) = jobs.claim([make.request(job, due_by=job.due_at)])
    assert claimed is not None and claimed.job is not None
    request = ends.request(payload, claimed.job, JobContext.of(claimed.job, None))
    intended = lifecycle.intend(claimed.job, Awaited(1, request))
    recorder.writes.clear()
    assert jobs.change([Change(claimed.job, intended)]) == [Written.YES]
    assert recorder.total() == 2
    log = "https://eu-west-1.console.aws.amazon.com/cloudwatch/home?region=eu-west-1#logsV2:log-groups/log-group/$252Fecs$252Freport"
    facts = {"decide": ["report"], "logs": {"report": f"{log}/log-events/ecs$252Freport$252F0123456789abcdef0123456789abcdef"}}
    awaited = Awaited(1, request, f"arn:aws:ecs:{place}:task/jobs/0123456789abcdef0123456789abcdef", facts=facts)
    before = intended
    for minute in (5, 6, 7):
        slot, until = f"2026-11-20T10:{minute:02}#00", NOW + minute * 60_000
        after = lifecycle.accept(before, started_at=NOW, result=Result(awaited=awaited), lease_until=until, slot=slot)
        recorder.writes.clear()
        assert jobs.change([Change(before, after, Guard.LEASE)]) == [Written.YES]
        assert recorder.total() == 4
        before = after
