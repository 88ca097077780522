"""All jobs and all tasks, read by full scans: for manual recounts only, never in a function."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from scheduler.model.job import Job
from scheduler.model.task import Task
from scheduler.storage.aws import items, keys, task_items
from scheduler.storage.aws.table import Table

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


def jobs(client: "DynamoDBClient", table: str) -> Iterator[Job]:
    return (items.decode(item) for item in _scan(client, table) if not keys.is_beside_jobs(item["pk"]["S"]))


def tasks(client: "DynamoDBClient", table: str) -> Iterator[Task]:
    return (task_items.decode(item) for item in _scan(client, table) if not item["pk"]["S"].startswith(keys.BESIDE_TASKS))


def _scan(client: "DynamoDBClient", table: str) -> Iterator[keys.Value]:
    scanned, scan = Table(client, table), {"ConsistentRead": True}
    while True:
        page = scanned.scan(scan)
        yield from page["Items"]
        if "LastEvaluatedKey" not in page:
            return
        scan = {**scan, "ExclusiveStartKey": page["LastEvaluatedKey"]}
