"""The registry of named targets on DynamoDB, in the tasks table."""

from scheduler.model.errors import Unavailable
from scheduler.storage.aws import keys
from scheduler.storage.aws.target_gate import DynamoTargetGate, read_target, target_item
from scheduler.targets.named_target import NamedTarget


class DynamoTargets(DynamoTargetGate):
    """The port `Targets`."""

    def all(self) -> list[NamedTarget]:
        query = {"KeyConditionExpression": keys.ALL_OF, "ExpressionAttributeValues": {":pk": {"S": keys.TARGETS}}, "ConsistentRead": True}
        return [read_target(item) for item in self._table.all(query)]

    def put(self, before: NamedTarget | None, after: NamedTarget) -> bool:
        if self._table.put(target_item(after), keys.IF_NEW if before is None else keys.if_version(before.version)):
            return True
        return self.targets([after.name]).get(after.name) == after  # an earlier answer was lost

    def delete(self, target: NamedTarget) -> bool:
        if not self._table.delete(keys.target(target.name), keys.if_version(target.version)):
            return False
        try:
            self._table.delete(keys.usage(target.name))
        except Unavailable:
            pass  # a new target of that name takes the line over, and its places by their leases
        return True
