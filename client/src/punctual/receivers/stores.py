"""Stores that remember calls: the protocol, one in memory and one in DynamoDB."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from punctual.errors import InvalidArgument


class Store(Protocol):
    """Remembers calls by key. A cache of Django is one; `MemoryStore` and `DynamoStore` are others. All processes need the same store.

    `timeout` is a whole number of seconds, after which the entry is gone. Values are texts of at most 400,000 characters.
    A store must not drop entries before their time: a call that was dropped may run a second time.
    """

    def add(self, key: str, value: str, timeout: int, /) -> bool:
        """Store the value if the key has none, in one step. Return whether it did."""
        ...

    def get(self, key: str, /) -> Any:
        """Return the latest value of the key, or None."""
        ...

    def set(self, key: str, value: str, timeout: int, /) -> Any:
        """Store the value, whatever the key has."""
        ...

    def delete(self, key: str, /) -> Any:
        """Forget the key."""
        ...


class MemoryStore:
    """A store in this process: for tests, and for a program that has one process and may forget everything at its end."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._entries: dict[str, tuple[str, float]] = {}
        self._cleaned_at = 1_000  # the number of entries at which those that have ended are dropped

    def add(self, key: str, value: str, timeout: int, /) -> bool:
        """Store the value if the key has none."""
        with self._lock:
            if self._found(key) is not None:
                return False
            self._put(key, value, timeout)
            return True

    def get(self, key: str, /) -> str | None:
        """Return the value of the key, or None."""
        with self._lock:
            return self._found(key)

    def set(self, key: str, value: str, timeout: int, /) -> None:
        """Store the value."""
        with self._lock:
            self._put(key, value, timeout)

    def delete(self, key: str, /) -> None:
        """Forget the key."""
        with self._lock:
            self._entries.pop(key, None)

    def _found(self, key: str) -> str | None:
        value, ends_at = self._entries.get(key, (None, 0.0))
        return value if ends_at > self._now() else None

    def _put(self, key: str, value: str, timeout: int) -> None:
        now = self._now()
        if len(self._entries) >= self._cleaned_at:
            self._entries = {name: entry for name, entry in self._entries.items() if entry[1] > now}
            self._cleaned_at = max(1_000, 2 * len(self._entries))
        self._entries[key] = value, now + timeout


class DynamoStore:
    """A store in a DynamoDB table with the partition key `id` (a string) and the TTL attribute `expiration`: those of Powertools' tables.

    The role needs `dynamodb:PutItem`, `GetItem` and `DeleteItem` on the table. `client` is a client of boto3 for DynamoDB; without one,
    the first call makes it. It needs `pip install boto3`, which Lambda has.
    """

    def __init__(self, table: str, *, client: Any = None, now: Callable[[], float] = time.time) -> None:
        if not table:
            raise InvalidArgument("the name of the table is empty: is its environment variable set?")
        self._table, self._made, self._now = table, client, now
        self._lock = threading.Lock()

    def add(self, key: str, value: str, timeout: int, /) -> bool:
        """Store the value if the key has none, or an entry whose time is over: DynamoDB deletes those up to days later."""
        client, now = self._client(), int(self._now())
        try:
            client.put_item(
                TableName=self._table,
                Item=self._item(key, value, now + timeout),
                ConditionExpression="attribute_not_exists(#id) OR #end <= :now",
                ExpressionAttributeNames={"#id": "id", "#end": "expiration"},
                ExpressionAttributeValues={":now": {"N": str(now)}},
            )
        except client.exceptions.ConditionalCheckFailedException:
            return False
        return True

    def get(self, key: str, /) -> str | None:
        """Return the value of the key, or None."""
        item = self._client().get_item(TableName=self._table, Key={"id": {"S": key}}, ConsistentRead=True).get("Item")
        if item is None or int(item["expiration"]["N"]) <= int(self._now()):
            return None
        return str(item["value"]["S"])

    def set(self, key: str, value: str, timeout: int, /) -> None:
        """Store the value."""
        self._client().put_item(TableName=self._table, Item=self._item(key, value, int(self._now()) + timeout))

    def delete(self, key: str, /) -> None:
        """Forget the key."""
        self._client().delete_item(TableName=self._table, Key={"id": {"S": key}})

    @staticmethod
    def _item(key: str, value: str, ends_at: int) -> dict[str, dict[str, str]]:
        return {"id": {"S": key}, "value": {"S": value}, "expiration": {"N": str(ends_at)}}

    def _client(self) -> Any:
        with self._lock:  # boto3 makes clients in one thread at a time
            if self._made is None:
                import boto3

                self._made = boto3.client("dynamodb")
            return self._made
