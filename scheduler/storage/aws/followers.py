"""The records of which jobs wait for a predecessor, in the tasks table: those of a predecessor in one partition."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from scheduler.model.after import Follower, PredecessorKey
from scheduler.model.job import JobKey
from scheduler.storage.aws import keys
from scheduler.storage.aws.table import Table
from scheduler.storage.ports import Written

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class DynamoFollowers:
    """The port `Followers`."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._table = Table(client, table)

    def add(self, followers: Sequence[Follower]) -> list[Written]:
        return self._table.insert([keys.follower(each) | {"expires": {"N": str(each.until // 1000)}} for each in followers])

    def of(self, predecessor: PredecessorKey, *, after: str | None, limit: int) -> tuple[list[JobKey], str | None]:
        page = self._table.query(keys.beyond(keys.followers(predecessor), after or "0") | {"Limit": limit, "ConsistentRead": True})
        found = [JobKey(predecessor.owner, item["sk"]["S"]) for item in page["Items"]]
        return found, found[-1].id if "LastEvaluatedKey" in page and found else None
