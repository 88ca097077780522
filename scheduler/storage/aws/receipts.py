"""Receipts of requests, in the ledger table. TTL may delete them days late, so reads treat an outdated receipt as missing."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from scheduler.model.job import Receipt
from scheduler.storage.aws import keys
from scheduler.storage.aws.table import Answer, Table
from scheduler.storage.aws.updates import Update
from scheduler.storage.ports import RECEIPT_RETENTION_MS, Written

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class DynamoReceipts:
    """The port `Receipts`."""

    def __init__(self, client: "DynamoDBClient", ledger: str) -> None:
        self._table = Table(client, ledger)

    def keep(self, receipts: Sequence[Receipt], now: int) -> list[Receipt | None]:
        if len(receipts) == 1:  # a plain put takes less time than a batch of one
            return [_valid(receipt, self._table.put_or_find(encode(receipt), keys.if_no_receipt(now))) for receipt in receipts]
        inserted = self._table.insert([encode(receipt) for receipt in receipts])
        taken = [receipt for receipt, done in zip(receipts, inserted, strict=True) if done is Written.NO]
        stands = dict(zip(taken, self._replace(taken, now), strict=True))
        stands |= {receipt: receipt for receipt, done in zip(receipts, inserted, strict=True) if done is Written.YES}
        return [stands.get(receipt) for receipt in receipts]

    def find(self, owner: str, key: str, now: int) -> Receipt | None:
        item = self._table.get(keys.receipt(owner, key))
        found = decode(item) if item else None
        return found if found is not None and found.at + RECEIPT_RETENTION_MS > now else None

    def _replace(self, receipts: Sequence[Receipt], now: int) -> list[Receipt | None]:
        """For each receipt whose key is taken, the valid one: itself if the earlier receipt is outdated, else the earlier one."""
        answers = self._table.update([_replacing(receipt, now) for receipt in receipts])
        return [_valid(receipt, answer) for receipt, answer in zip(receipts, answers, strict=True)]


def encode(receipt: Receipt) -> dict[str, Any]:
    """The whole item."""
    return keys.receipt(receipt.owner, receipt.key) | _attributes(receipt)


def decode(item: Mapping[str, Any]) -> Receipt:
    owner = keys.receipt_owner(item["pk"]["S"])
    return Receipt(owner, item["key"]["S"], item["fingerprint"]["S"], int(item["at"]["N"]), int(item["random"]["N"]))


def _attributes(receipt: Receipt) -> dict[str, Any]:
    return {
        "key": {"S": receipt.key},
        "fingerprint": {"S": receipt.fingerprint},
        "at": {"N": str(receipt.at)},
        "random": {"N": str(receipt.random)},
        "expires": {"N": str((receipt.at + RECEIPT_RETENTION_MS) // 1000)},
    }


def _replacing(receipt: Receipt, now: int) -> Update:
    return Update(keys.receipt(receipt.owner, receipt.key), _attributes(receipt), (), keys.outdated(now))


def _valid(receipt: Receipt, answer: Answer) -> Receipt | None:
    if answer.done is Written.YES:
        return receipt
    return decode(answer.item) if answer.done is Written.NO and answer.item else None
