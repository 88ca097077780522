"""The users table on DynamoDB: what the scheduler itself keeps of a user. Who is who is Cognito's business."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from scheduler.storage.aws import keys
from scheduler.storage.aws.table import Table
from scheduler.storage.aws.updates import Update

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class DynamoUsers:
    """The port `Users`."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._table = Table(client, table)

    def weights(self, ids: Sequence[str]) -> dict[str, float]:
        found = self._table.get_many([keys.user(id) for id in dict.fromkeys(ids)], ["pk", "weight"])
        return {item["pk"]["S"]: float(item["weight"]["N"]) for item in found if "weight" in item}

    def set_weight(self, id: str, weight: float) -> None:
        self._table.update([Update(keys.user(id), {"weight": {"N": repr(weight)}}, (), ())])
