"""The tables as `infra` creates them."""

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from scheduler.storage.aws import clients, keys

if TYPE_CHECKING:
    import pytest

elsewhere: Callable[[], Any] | None = None  # makes clients of another implementation of DynamoDB, for all tests: `make parity`


def _attributes(**kinds: str) -> list[dict[str, str]]:
    return [{"AttributeName": name, "AttributeType": kind} for name, kind in kinds.items()]


def _keys(partition: str, sort: str) -> list[dict[str, str]]:
    return [{"AttributeName": partition, "KeyType": "HASH"}, {"AttributeName": sort, "KeyType": "RANGE"}]


PROJECTED = ["lane", "fence"]  # by the due index, besides keys
TOLD = ["type", "task", "fingerprint", "failed_at", "killed_at"]  # by the failures index

JOBS: dict[str, Any] = {
    "BillingMode": "PAY_PER_REQUEST",
    "AttributeDefinitions": _attributes(
        pk="S", sk="S", slot="S", due_at="N", failed_position="S", moved_partition="S", moved_position="S", task="S"
    ),
    "KeySchema": _keys("pk", "sk"),
    "GlobalSecondaryIndexes": [
        {
            "IndexName": keys.DUE,
            "KeySchema": _keys("slot", "due_at"),
            "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": PROJECTED},
        },
        {
            "IndexName": keys.FAILURES,
            "KeySchema": _keys("pk", "failed_position"),
            "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": TOLD},
        },
        {
            "IndexName": keys.MOVED,
            "KeySchema": _keys("moved_partition", "moved_position"),
            "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["task"]},
        },
        {"IndexName": keys.BY_TASK, "KeySchema": _keys("task", "sk"), "Projection": {"ProjectionType": "KEYS_ONLY"}},
    ],
}
TASKS: dict[str, Any] = {
    "BillingMode": "PAY_PER_REQUEST",
    "AttributeDefinitions": _attributes(pk="S", sk="S", replenish="S"),
    "KeySchema": _keys("pk", "sk"),
    "GlobalSecondaryIndexes": [
        {"IndexName": keys.REPLENISH, "KeySchema": _keys("replenish", "sk"), "Projection": {"ProjectionType": "KEYS_ONLY"}},
    ],
}
LEDGER: dict[str, Any] = {
    "BillingMode": "PAY_PER_REQUEST",
    "AttributeDefinitions": _attributes(pk="S", sk="S"),
    "KeySchema": _keys("pk", "sk"),
}
USERS = LEDGER  # the same keys
COUNTERS = LEDGER
NOTICES = LEDGER
AUDIT: dict[str, Any] = {
    "BillingMode": "PAY_PER_REQUEST",
    "AttributeDefinitions": _attributes(pk="S", sk="S", month="S"),
    "KeySchema": _keys("pk", "sk"),
    "GlobalSecondaryIndexes": [
        {"IndexName": keys.BY_MONTH, "KeySchema": _keys("month", "sk"), "Projection": {"ProjectionType": "ALL"}},
    ],
}
ALL = {"jobs": JOBS, "tasks": TASKS, "ledger": LEDGER}


def on_moto(request: "pytest.FixtureRequest", name: str, table: dict[str, Any]) -> Any:
    """A client of DynamoDB in this process, with this table."""
    if elsewhere is None:
        request.getfixturevalue("moto")
        client: Any = clients.dynamodb()
    else:
        client = elsewhere()
        with suppress(client.exceptions.ResourceNotFoundException):
            client.delete_table(TableName=name)
    client.create_table(TableName=name, **table)
    return client
