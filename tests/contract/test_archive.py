"""Jobs that leave the jobs table: their records, and their way to S3 through Firehose."""

import gzip
import json
from collections.abc import Iterator
from typing import Any, ClassVar

import boto3
import pytest

from lambdas.rest.job_answers import JobShape
from scheduler.insight import archive
from scheduler.insight.archive import COLUMNS, DAY, where
from scheduler.model import ids
from scheduler.model.errors import Unavailable
from scheduler.model.job import RunInfo
from scheduler.storage.aws import clients
from scheduler.storage.aws.archive import FirehoseArchive
from scheduler.storage.aws.outputs import S3Outputs
from tests.contract import make
from tests.contract.make import NOW

KINDS: dict[str, tuple[type, ...]] = {"string": (str,), "bigint": (int,), "int": (int,), "array<string>": (list,)}


def ended(**fields: Any) -> dict[str, Any]:
    return archive.record(make.failed(make.claimed(make.job(origin=RunInfo("t1", 1, NOW), tags=("a",), **fields))), JobShape.of)


def test_a_record_has_the_columns_of_the_table_and_its_partition() -> None:
    record = ended()
    assert list(record) == [*COLUMNS, DAY]
    for name, kind in COLUMNS.items():
        assert record[name] is None or isinstance(record[name], KINDS[kind]), name
    assert (record["task_id"], record["status"], record["attempts_charged"]) == ("t1", "failed", 1)
    assert json.loads(record["details"])["attempts"][0]["failure"]["message"] == "no"


def test_a_rescheduled_job_is_archived_under_the_day_of_its_id() -> None:
    moved = make.rescheduled(make.job(at=NOW), NOW + 5 * archive.DAY_MS)
    record = archive.record(make.cancelled(moved), JobShape.of)
    assert record[DAY] == archive.record(make.cancelled(make.job(at=NOW)), JobShape.of)[DAY]
    assert record["scheduled_at"] == NOW + 5 * archive.DAY_MS


def test_the_archive_is_named_only_for_old_ids() -> None:
    old, young = ids.new(NOW - 31 * archive.DAY_MS, 1), ids.new(NOW - 29 * archive.DAY_MS, 1)
    assert where(young, NOW, 30, "punctual_dev") is None and where(old, NOW, 30, "") is None
    told = where(old, NOW, 30, "punctual_dev")
    assert told is not None and "punctual_dev.jobs" in told and archive.day_of(NOW - 31 * archive.DAY_MS) in told


@pytest.fixture
def stream(moto: None) -> Iterator[tuple[S3Outputs, Any]]:
    s3, client = clients.s3(), boto3.client("firehose")
    s3.create_bucket(Bucket="archive")
    destination = {"BucketARN": "arn:aws:s3:::archive", "RoleARN": "arn:aws:iam::123456789012:role/r", "CompressionFormat": "GZIP"}
    client.create_delivery_stream(DeliveryStreamName="s", ExtendedS3DestinationConfiguration=destination)
    yield S3Outputs(None, "", FirehoseArchive(clients.firehose(), "s")), s3


def lines(s3: Any) -> list[Any]:
    found = []
    for each in s3.list_objects_v2(Bucket="archive").get("Contents", []):
        body = s3.get_object(Bucket="archive", Key=each["Key"])["Body"].read()
        text = gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body
        found += [json.loads(line) for line in text.decode().splitlines()]
    return found


@pytest.mark.long
def test_any_number_of_records_arrives_as_lines_of_json(stream: tuple[S3Outputs, Any]) -> None:
    records = [ended() for _ in range(1_100)]
    stream[0].archive(records)
    assert sorted(each["id"] for each in lines(stream[1])) == sorted(each["id"] for each in records)
    assert lines(stream[1])[0].keys() == records[0].keys()


def test_a_record_too_large_for_a_call_is_sent_without_details(stream: tuple[S3Outputs, Any]) -> None:
    stream[0].archive([ended() | {"details": "x" * 1_100_000}])
    (line,) = lines(stream[1])
    assert line["details"] is None and line["status"] == "failed"


def test_calls_respect_firehose_s_limit_and_refused_records_repeat() -> None:
    class Client:
        sizes: ClassVar[list[tuple[int, int]]] = []
        failed = 0

        def put_record_batch(self, *, DeliveryStreamName: str, Records: list[dict[str, bytes]]) -> dict[str, int]:
            self.sizes.append((len(Records), sum(len(each["Data"]) for each in Records)))
            return {"FailedPutCount": self.failed}

    client = Client()
    FirehoseArchive(client, "s").put([ended() | {"details": "x" * 900_000} for _ in range(9)])
    assert [count for count, _ in client.sizes] == [4, 4, 1] and max(size for _, size in client.sizes) <= 4_000_000
    client.failed = 1
    with pytest.raises(Unavailable):
        FirehoseArchive(client, "s").put([ended()])
