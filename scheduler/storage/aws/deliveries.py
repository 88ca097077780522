"""The SQS events of the lanes, read as deliveries."""

from collections.abc import Mapping
from typing import Any

from scheduler.model.errors import Invalid
from scheduler.model.job import Delivery
from scheduler.storage import messages

Record = Any  # of an SQS event; its shape is not trusted


def deliveries(event: Mapping[str, Any]) -> tuple[list[Delivery], list[Record]]:
    """The deliveries of an SQS event, and its unreadable records (poison), which must not keep the others from running."""
    read = {_id(record): (record, delivery(record)) for record in event["Records"]}
    good = [item for _, item in read.values() if item is not None]
    return good, [record for record, item in read.values() if item is None]


def ids(records: list[Record]) -> list[str]:
    """The ids under which a function reports records as failed. A record without an id cannot be reported and is dropped."""
    return [found for record in records if (found := _id(record)) is not None]


def delivery(record: Record) -> Delivery | None:
    """The delivery in one record. None: not a message of the scheduler (poison, which belongs into the dead-letter queue)."""
    try:
        message = messages.decode(record["body"])
        message_id, receipt, count = _id(record), record["receiptHandle"], int(record["attributes"]["ApproximateReceiveCount"])
    except (Invalid, LookupError, TypeError, ValueError, OverflowError):
        return None
    return Delivery(message, message_id, receipt, count) if message_id is not None and isinstance(receipt, str) else None


def _id(record: Record) -> str | None:
    found = record.get("messageId") if isinstance(record, dict) else None
    return found if isinstance(found, str) else None
