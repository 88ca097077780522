"""Write units of DynamoDB by AWS's rules. The local AWS does not count as AWS does: it ignores sizes and indexes.

A write costs one unit per KB of the larger image. In an index, one to put or remove an entry or to change what it projects;
two if its key changes.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from local.stack import Stack
from scheduler.storage.aws.items import Item, size

KB = 1024


@dataclass(frozen=True, slots=True)
class Index:
    """A secondary index: its key, and the attributes that it projects (None: all)."""

    key: tuple[str, ...]
    projected: frozenset[str] | None

    def entry(self, item: Item | None) -> Item | None:
        """The entry of the index for the item; None if it has none."""
        if item is None or any(name not in item for name in self.key):
            return None
        return item if self.projected is None else {name: value for name, value in item.items() if name in self.projected}

    def units(self, before: Item | None, after: Item | None) -> int:
        old, new = self.entry(before), self.entry(after)
        if old == new:
            return 0
        if old and new and any(old[name] != new[name] for name in self.key):
            return units(old) + units(new)
        return max(units(old), units(new))


def units(item: Item | None) -> int:
    return 0 if item is None else math.ceil(size(item) / KB)


def price(before: Item | None, after: Item | None, indexes: Sequence[Index]) -> int:
    """Units of one write that turned `before` into `after`. A refused write costs the unit of its table as well."""
    return max(1, units(before), units(after)) + sum(index.units(before, after) for index in indexes)


def indexes(description: Mapping[str, Any]) -> list[Index]:
    """The indexes of a table, from the answer of DescribeTable."""
    table_key = [key["AttributeName"] for key in description["KeySchema"]]
    found = []
    for index in description.get("GlobalSecondaryIndexes", ()):
        key = tuple(part["AttributeName"] for part in index["KeySchema"])
        projection = index["Projection"]
        names = frozenset([*table_key, *key, *projection.get("NonKeyAttributes", ())])
        found.append(Index(key, None if projection["ProjectionType"] == "ALL" else names))
    return found


def stored_units(stack: Stack, beginning: str) -> int:
    """Write units for putting once, as they are now, the jobs whose message and the receipts whose key begins with `beginning`."""
    return _stored_units(stack, "JobsTable", "payload", f'{{"message":"{beginning}') + _stored_units(stack, "LedgerTable", "key", beginning)


def _stored_units(stack: Stack, table: str, attribute: str, beginning: str) -> int:
    client, name = stack.aws.client("dynamodb"), stack.outputs[table]
    known = indexes(client.describe_table(TableName=name)["Table"])
    pages = client.get_paginator("scan").paginate(
        TableName=name,
        FilterExpression="begins_with(#attribute, :beginning)",
        ExpressionAttributeNames={"#attribute": attribute},
        ExpressionAttributeValues={":beginning": {"S": beginning}},
        ConsistentRead=True,
    )
    items: list[Any] = [item for page in pages for item in page["Items"]]
    return sum(price(None, item, known) for item in items)
