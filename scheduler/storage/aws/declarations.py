"""Declarations in the ledger table: one item for each declared object, in no index."""

from typing import TYPE_CHECKING

from scheduler.model.declaration import Declarer, ObjectId
from scheduler.storage.aws import keys
from scheduler.storage.aws.table import Table

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class DynamoDeclarations:
    """The port `Declarations`."""

    def __init__(self, client: "DynamoDBClient", ledger: str) -> None:
        self._table = Table(client, ledger)

    def declarer(self, id: ObjectId) -> Declarer | None:
        item = self._table.get(keys.declaration(id))
        if item is None:
            return None
        keys.check_format(item)
        return Declarer(item["stack"]["S"], item["resource"]["S"])

    def take(self, id: ObjectId, declarer: Declarer, before: Declarer | None) -> bool:
        item = keys.declaration(id) | {"v": {"N": keys.FORMAT}, "stack": {"S": declarer.stack}, "resource": {"S": declarer.resource}}
        return self._table.put(item, keys.if_declared_by(declarer, before))

    def withdraw(self, id: ObjectId, declarer: Declarer) -> bool:
        return self._table.delete(keys.declaration(id), keys.if_declared_by(declarer, None))
