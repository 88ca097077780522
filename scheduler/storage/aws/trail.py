"""The audit trail, in a table of its own from which no function may delete: entries by owner, and all entries by month.

An option stores a copy of each entry in a bucket that locks it, so that whoever deploys cannot delete it either.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from scheduler.model.audit import RETENTION_DAYS, AuditEntry
from scheduler.storage.aws import keys
from scheduler.storage.aws.errors import translated
from scheduler.storage.aws.table import Item, Table

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

    from scheduler.storage.ports import Trail

_TEXTS = ("actor", "key", "owner", "action", "object", "request_id", "address")
_NUMBERS = ("at", "status", "ended_at")


class DynamoTrail:
    """The port `Trail`."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._table = Table(client, table)

    def write(self, entry: AuditEntry) -> None:
        self._table.put(_encode(entry), {})

    def entries(self, owner: str | None, *, since: int, until: int, after: str | None, limit: int) -> tuple[list[AuditEntry], str | None]:
        if owner is not None:
            return self._page(keys.IN_PARTITION, owner, since, until, after, limit, ConsistentRead=True)
        found: list[AuditEntry] = []
        for month in _months(since, until):
            entries, cursor = self._page(keys.IN_MONTH, month, since, until, after, limit - len(found))
            found += entries
            if cursor is not None:
                return found, cursor
            if len(found) == limit:
                return found, found[-1].id
        return found, None

    def _page(
        self, keyed: keys.Range, pk: str, since: int, until: int, after: str | None, limit: int, **options: Any
    ) -> tuple[list[AuditEntry], str | None]:
        low, high = keys.bounds(since, until, after, True)
        if low > high:
            return [], None
        query = keyed.query(pk, low, high) | {"Limit": limit + 1, "ScanIndexForward": False}
        found: list[AuditEntry] = []
        for item in self._table.all(query | options):
            if len(found) == limit:
                return found, found[-1].id
            found.append(_decode(item))
        return found, None


class LockedTrail:
    """The port `Trail` with a copy of each entry in a bucket that locks it. Nothing is changed unless the copy is stored."""

    def __init__(self, trail: "Trail", client: "S3Client", bucket: str) -> None:
        self._trail, self._client, self._bucket = trail, client, bucket

    def write(self, entry: AuditEntry) -> None:
        day = datetime.fromtimestamp(entry.at / 1000, UTC).strftime("%Y/%m/%d")
        end = "" if entry.status is None else "-ended"
        with translated():
            self._client.put_object(
                Bucket=self._bucket,
                Key=f"{day}/{entry.id}{end}.json",
                Body=json.dumps(asdict(entry), sort_keys=True).encode(),
                ContentType="application/json",
                ChecksumAlgorithm="SHA256",  # Object Lock requires a checksum
            )
        self._trail.write(entry)

    def entries(self, owner: str | None, *, since: int, until: int, after: str | None, limit: int) -> tuple[list[AuditEntry], str | None]:
        return self._trail.entries(owner, since=since, until=until, after=after, limit=limit)


def _months(since: int, until: int) -> Iterator[str]:
    """The months from one instant to another, the last one first."""
    first, last = _month(since), _month(until)
    while last >= first:
        yield last
        year, month = int(last[:4]), int(last[5:])
        last = f"{year - 1}-12" if month == 1 else f"{year}-{month - 1:02d}"


def _month(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m")


def _encode(entry: AuditEntry) -> dict[str, Any]:
    item: dict[str, Any] = {"pk": {"S": entry.owner}, "sk": {"S": entry.id}, "month": {"S": _month(entry.at)}}
    item |= {name: {"S": value} for name in _TEXTS if (value := getattr(entry, name)) is not None}
    item |= {name: {"N": str(value)} for name in _NUMBERS if (value := getattr(entry, name)) is not None}
    item["changes"] = {"S": json.dumps(entry.changes)}
    return item | {"expires": {"N": str(entry.at // 1000 + RETENTION_DAYS * 86_400)}}


def _decode(item: Item) -> AuditEntry:
    texts: Any = {name: item[name]["S"] if name in item else None for name in _TEXTS}
    numbers: Any = {name: int(item[name]["N"]) if name in item else None for name in _NUMBERS}
    return AuditEntry(id=item["sk"]["S"], changes=json.loads(item["changes"]["S"]), **texts, **numbers)
