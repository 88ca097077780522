"""The intake queues on SQS, and the messages that `intake` receives from them."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

from scheduler.model import trace
from scheduler.model.errors import SchedulerError
from scheduler.model.intake import IntakeMessage
from scheduler.storage.aws import errors

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

CONNECTIONS = 10  # as many as messages of a batch


class Received(NamedTuple):
    """A message, and the receipt of this delivery."""

    message: IntakeMessage
    receipt: str


class SqsIntakeQueues:
    """The queues by the names that they have in the stage's options."""

    def __init__(self, client: "SQSClient", urls: Mapping[str, str]) -> None:
        self._client = client
        self._urls = urls
        self._names = {url.rpartition("/")[2]: name for name, url in urls.items()}

    def received(self, event: Mapping[str, Any]) -> list[Received]:
        """The messages of an event. A message that is twice in it is returned once."""
        found = {record["messageId"]: self._received(record) for record in event["Records"]}
        return list(found.values())

    def hide(self, seconds: Mapping[Received, int]) -> None:
        """Let messages come again after these times. A refusal is ignored: they then come after the queue's own time-out."""
        if seconds:
            with ThreadPoolExecutor(CONNECTIONS, "intake") as pool:
                list(pool.map(self._hide, seconds.keys(), seconds.values()))

    def _received(self, record: Mapping[str, Any]) -> Received:
        attributes = record["attributes"]
        message = IntakeMessage(
            record["messageId"],
            self._names[record["eventSourceARN"].rpartition(":")[2]],
            attributes.get("SenderId", ""),
            int(attributes["SentTimestamp"]),
            record["body"],
            int(attributes["ApproximateReceiveCount"]),
            trace.parse(_text(record, trace.PARENT), _text(record, trace.STATE)),
        )
        return Received(message, record["receiptHandle"])

    def _hide(self, received: Received, seconds: int) -> None:
        url = self._urls[received.message.queue]
        try:
            with errors.translated():
                self._client.change_message_visibility(QueueUrl=url, ReceiptHandle=received.receipt, VisibilityTimeout=seconds)
        except SchedulerError:
            pass


def _text(record: Mapping[str, Any], name: str) -> str | None:
    """A message attribute that is a text; None: there is none."""
    found = (record.get("messageAttributes") or {}).get(name, {}).get("stringValue")
    return found if isinstance(found, str) else None
