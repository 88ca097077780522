"""What the operations really sent cost, in write units."""

import uuid

import pytest

from bench import operations
from bench.operations import AGAIN, BUDGET, GOOD, Bench, Recorder
from scheduler.aws import clients
from scheduler.aws.jobs import DynamoJobs
from scheduler.model import Lane
from scheduler.ports import Change
from tests.contract import make, tables


@pytest.fixture
def counted(local_aws: str) -> tuple[DynamoJobs, Recorder]:
    client, reader = clients.dynamodb(endpoint_url=local_aws), clients.dynamodb(endpoint_url=local_aws)
    name = f"jobs-{uuid.uuid4().hex}"
    reader.create_table(TableName=name, **tables.JOBS)
    return DynamoJobs(client, name), Recorder(client, reader)


@pytest.mark.parametrize("batch", [1, 10])
def test_a_one_time_job_costs_two_units_to_create_one_to_claim_and_two_to_settle(counted: tuple[DynamoJobs, Recorder], batch: int) -> None:
    jobs, recorder = counted
    bench = Bench(jobs)
    bench.submit(batch)
    assert recorder.total() == 2 * batch
    bench.execute(Lane.ONE_TIME, GOOD, batch)
    assert recorder.total() == BUDGET * batch
    update = "UpdateItem" if batch == 1 else "BatchExecuteStatement"
    assert recorder.by_operation() == {"PutItem": 2 * batch, update: 3 * batch}


def test_a_job_of_a_batch_costs_what_a_single_one_does(counted: tuple[DynamoJobs, Recorder]) -> None:
    jobs, recorder = counted
    bench = Bench(jobs)
    bench.submit_many(25)
    assert recorder.by_operation() == {"BatchExecuteStatement": 2 * 25}
    bench.execute(Lane.ONE_TIME, GOOD, 10)
    assert recorder.total() == 2 * 25 + (BUDGET - 2) * 10


def test_a_retry_costs_a_claim_and_a_move_in_the_index_more(counted: tuple[DynamoJobs, Recorder]) -> None:
    jobs, recorder = counted
    bench = Bench(jobs)
    bench.submit()
    bench.execute(Lane.ONE_TIME, AGAIN)
    assert recorder.total() == 2 + 1 + 3
    bench.now_ms += 900_000
    bench.execute(Lane.RETRY, GOOD)
    assert recorder.total() == 2 + 1 + 3 + 1 + 2


def test_a_failure_pays_for_its_entry_among_the_failures(counted: tuple[DynamoJobs, Recorder]) -> None:
    jobs, recorder = counted
    operations.failed(Bench(jobs))
    assert recorder.total() == BUDGET + 1


def test_a_large_job_pays_by_the_kilobyte_in_the_table_only(counted: tuple[DynamoJobs, Recorder]) -> None:
    jobs, recorder = counted
    jobs.put(make.job(payload={"message": "x" * 2_500}))
    assert recorder.total() == 3 + 1


def test_a_refused_write_is_paid_for_too(counted: tuple[DynamoJobs, Recorder]) -> None:
    jobs, recorder = counted
    job = make.job()
    jobs.put(job)
    assert jobs.change([Change(make.moved(job, "b"), make.moved(job, "c"))]) == [False]
    assert recorder.total() == 2 + 1


def test_a_write_costs_by_the_larger_image() -> None:
    large, small = {"pk": {"S": "p"}, "text": {"S": "x" * 2_000}}, {"pk": {"S": "p"}}
    assert [operations.price(*images, []) for images in ((large, small), (small, large), (None, large), (large, None))] == [2] * 4
    assert operations.price(None, None, []) == 1  # a condition on nothing
