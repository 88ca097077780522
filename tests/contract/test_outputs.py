"""The port `Outputs`."""

from collections.abc import Iterator

import pytest
from moto import mock_aws

from scheduler.model.attempt_output import FullOutput
from scheduler.model.errors import SchedulerError
from scheduler.model.job import JobKey
from scheduler.storage.aws import clients
from scheduler.storage.aws.outputs import S3Outputs
from scheduler.storage.memory.stores import MemoryOutputs
from scheduler.storage.ports import Outputs

KEY = JobKey("ann", "01J0000000000000000000000A")


@pytest.fixture(params=["memory", "s3"])
def outputs(request: pytest.FixtureRequest) -> Iterator[Outputs]:
    if request.param == "memory":
        yield MemoryOutputs()
        return
    with mock_aws():
        client = clients.s3()
        client.create_bucket(Bucket="outputs")
        yield S3Outputs(client, "outputs")


@pytest.mark.parametrize("whole", [FullOutput("o" * 100_000, None), FullOutput(None, "l\n€"), FullOutput("", "\ud800")])
def test_a_stored_output_is_found(outputs: Outputs, whole: FullOutput) -> None:
    outputs.put(KEY, 3, whole)
    assert outputs.get(KEY, 3) == whole


def test_each_attempt_has_its_own_output(outputs: Outputs) -> None:
    outputs.put(KEY, 1, FullOutput("one", None))
    outputs.put(KEY, 2, FullOutput("two", None))
    outputs.put(KEY, 2, FullOutput("two again", None))
    assert [outputs.get(KEY, fence) for fence in (1, 2, 3)] == [FullOutput("one", None), FullOutput("two again", None), None]
    assert outputs.get(JobKey("bob", KEY.id), 1) is None


def test_a_missing_bucket_is_a_scheduler_error() -> None:
    with mock_aws(), pytest.raises(SchedulerError):
        S3Outputs(clients.s3(), "none").put(KEY, 1, FullOutput("one", None))
