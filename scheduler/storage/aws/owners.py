"""STUB: the principals in the users table."""

from typing import TYPE_CHECKING

from scheduler.model.account import Principal, Scope
from scheduler.storage.aws import keys
from scheduler.storage.aws.table import Item, Table

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class DynamoOwners:
    """The port `Owners`."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._table = Table(client, table)

    def principals(self) -> list[Principal]:
        return [_principal(item) for item in self._table.all(keys.all_of("principals") | {"ConsistentRead": True})]


def _principal(item: Item) -> Principal:
    id, arn, owner, made_by = (item[each]["S"] for each in ("id", "sk", "owner", "made_by"))
    unique_id = item["unique_id"]["S"] if "unique_id" in item else None
    return Principal(id, arn, owner, frozenset(map(Scope, item["scopes"]["SS"])), made_by, int(item["created_at"]["N"]), unique_id)
