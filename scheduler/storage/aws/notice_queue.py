"""The queue of notices on SQS, and the messages that `notify` receives from it."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

from scheduler.model.errors import Invalid, SchedulerError, Unavailable
from scheduler.notify.messages import Message, decode, encode
from scheduler.notify.policy import WindowEnd
from scheduler.storage.aws import batches, errors

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

DELAY_LIMIT = 900  # seconds; SQS delays no message longer
CONNECTIONS = 8


class Received(NamedTuple):
    """One received message."""

    message_id: str
    receipt: str
    message: Message


class SqsNoticeQueue:
    """The queue of the port `Notices`."""

    def __init__(self, client: "SQSClient", url: str) -> None:
        self._client = client
        self._url = url
        self._pool = ThreadPoolExecutor(CONNECTIONS, "notices")

    def send(self, messages: Sequence[Message], now: int) -> None:
        tens = batches.chunks([_entry(message, now) for message in messages], batches.TEN)
        if not all(self._pool.map(self._send, tens) if len(tens) > 1 else map(self._send, tens)):
            raise Unavailable()

    def put_back(self, receipt: str, seconds: int) -> None:
        """Make a received message visible again in `seconds`; if SQS refuses, it becomes visible when its visibility time-out ends."""
        try:
            with errors.translated():
                self._client.change_message_visibility(QueueUrl=self._url, ReceiptHandle=receipt, VisibilityTimeout=seconds)
        except SchedulerError:
            pass  # a temporary refusal, or the receipt has expired; SQS delivers the message again in either case

    def _send(self, ten: Sequence[dict[str, Any]]) -> bool:
        entries: Any = [{"Id": str(place), **entry} for place, entry in enumerate(ten)]
        try:
            with errors.translated():
                return not self._client.send_message_batch(QueueUrl=self._url, Entries=entries).get("Failed")
        except Unavailable:
            return False


def received(event: Mapping[str, Any]) -> tuple[list[Received], list[str]]:
    """The messages of an SQS event, and the ids of its unreadable records (poison), which end in the dead-letter queue."""
    good, poison = list[Received](), list[str]()
    for record in event["Records"]:
        try:
            good.append(Received(record["messageId"], record["receiptHandle"], decode(record["body"])))
        except (Invalid, LookupError, TypeError):
            if isinstance(record, dict) and isinstance(record.get("messageId"), str):
                poison.append(record["messageId"])
    return good, poison


def _entry(message: Message, now: int) -> dict[str, Any]:
    entry: dict[str, Any] = {"MessageBody": encode(message)}
    if isinstance(message, WindowEnd) and message.at > now:
        entry["DelaySeconds"] = min(-(-(message.at - now) // 1_000), DELAY_LIMIT)  # whole seconds, rounded up: not before the window's end
    return entry
