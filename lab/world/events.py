"""Events of Lambda as the event source mapping of a queue makes them, and the context of an invocation."""

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Context:
    """The part of Lambda's context that the handlers read."""

    aws_request_id: str
    function_name: str = "bench"
    memory_limit_in_mb: int = 512
    invoked_function_arn: str = "arn:aws:lambda:us-east-1:000000000000:function:bench"

    def get_remaining_time_in_millis(self) -> int:
        return 900_000


def record(message_id: str, receipt: str, body: str, receive_count: int = 1, **attributes: str) -> dict[str, Any]:
    """Return a record of an event of SQS."""
    return {
        "messageId": message_id,
        "receiptHandle": receipt,
        "body": body,
        "attributes": {"ApproximateReceiveCount": str(receive_count), **attributes},
        "messageAttributes": {},
        "eventSource": "aws:sqs",
    }
