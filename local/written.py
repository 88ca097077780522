"""What the stored items of a stack cost to write, by AWS's rules: the local AWS does not count as AWS does."""

from typing import Any

from bench.operations import indexes, price
from local.stack import Stack


def written(stack: Stack, beginning: str) -> int:
    """Write units of the jobs whose message, and of the receipts whose key, begins so; each as it is, put once."""
    return _written(stack, "JobsTable", "payload", f'{{"message":"{beginning}') + _written(stack, "LedgerTable", "key", beginning)


def _written(stack: Stack, table: str, attribute: str, beginning: str) -> int:
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
