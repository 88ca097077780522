"""The tables as `infra` makes them."""

from typing import Any

from scheduler.aws import keys


def _attributes(**kinds: str) -> list[dict[str, str]]:
    return [{"AttributeName": name, "AttributeType": kind} for name, kind in kinds.items()]


def _keys(partition: str, sort: str) -> list[dict[str, str]]:
    return [{"AttributeName": partition, "KeyType": "HASH"}, {"AttributeName": sort, "KeyType": "RANGE"}]


PROJECTED = ["lane", "fence", "weight"]  # by the due index, besides keys

JOBS: dict[str, Any] = {
    "BillingMode": "PAY_PER_REQUEST",
    "AttributeDefinitions": _attributes(pk="S", sk="S", slot="S", due_at="N", failed_owner="S"),
    "KeySchema": _keys("pk", "sk"),
    "GlobalSecondaryIndexes": [
        {
            "IndexName": keys.DUE,
            "KeySchema": _keys("slot", "due_at"),
            "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": PROJECTED},
        },
        {"IndexName": keys.FAILURES, "KeySchema": _keys("failed_owner", "sk"), "Projection": {"ProjectionType": "KEYS_ONLY"}},
    ],
}
LEDGER: dict[str, Any] = {
    "BillingMode": "PAY_PER_REQUEST",
    "AttributeDefinitions": _attributes(pk="S", sk="S"),
    "KeySchema": _keys("pk", "sk"),
}
