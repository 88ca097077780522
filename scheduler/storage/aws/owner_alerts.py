"""Default alerts of owners in the users table: one item of each owner."""

import json
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from scheduler.model.alerts import Alerts, DefaultAlerts
from scheduler.storage.aws import keys, readable
from scheduler.storage.aws.table import Item, Table
from scheduler.storage.aws.task_items import encode_alerts

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class DynamoOwnerAlerts:
    """The port `OwnerAlerts`."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._table = Table(client, table)

    def of(self, owners: Collection[str]) -> dict[str, DefaultAlerts]:
        stored = self._table.get_many([keys.owner_alerts(owner) for owner in dict.fromkeys(owners)])
        return {found.owner: found for found in readable.each(_decode, stored)}

    def put(self, before: DefaultAlerts | None, after: DefaultAlerts) -> bool:
        if self._table.put(_encode(after), keys.IF_NEW if before is None else keys.if_version(before.version)):
            return True
        return self.of([after.owner]).get(after.owner) == after  # an earlier answer was lost

    def delete(self, owner: str) -> None:
        self._table.delete(keys.owner_alerts(owner))


def _encode(found: DefaultAlerts) -> Item:
    item = keys.owner_alerts(found.owner) | {"v": {"N": keys.FORMAT}, "alerts": {"S": encode_alerts(found.alerts)}}
    numbers = {name: {"N": str(getattr(found, name))} for name in ("updated_at", "version")}
    return item | numbers | {"operation": {"S": found.operation}}


def _decode(item: Mapping[str, Any]) -> DefaultAlerts:
    keys.check_format(item)
    return DefaultAlerts(
        owner=keys.owner_of_alerts(item),
        alerts=Alerts(**json.loads(item["alerts"]["S"])),
        updated_at=int(item["updated_at"]["N"]),
        operation=item["operation"]["S"],
        version=int(item["version"]["N"]),
    )
