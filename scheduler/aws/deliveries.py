"""What a Lambda function receives from a lane."""

from collections.abc import Mapping
from typing import Any

from scheduler import messages
from scheduler.errors import Invalid
from scheduler.model import Delivery


def delivery(record: Mapping[str, Any]) -> Delivery | None:
    """The delivery in one record of an SQS event; None if its body is no message of ours (poison: let it go to the DLQ)."""
    try:
        message = messages.decode(record["body"])
    except Invalid:
        return None
    return Delivery(message, record["messageId"], record["receiptHandle"], int(record["attributes"]["ApproximateReceiveCount"]))
