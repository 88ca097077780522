"""The queue of notices on SQS, and the messages that `notify` receives from it."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from scheduler.model.errors import Invalid, SchedulerError, Unavailable
from scheduler.model.notice import NoticeMessage, ReceivedNotice, Sending, WindowEnd
from scheduler.notify.messages import decode, encode
from scheduler.storage.aws import batches, errors

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import MessageTypeDef

DELAY_LIMIT = 900  # seconds; SQS delays no message longer
CONNECTIONS = 8


class SqsNoticeQueue:
    """The queue of the port `Notices`, and the port `NoticeQueue`."""

    def __init__(self, client: "SQSClient", url: str) -> None:
        self._client = client
        self._url = url
        self._pool = ThreadPoolExecutor(CONNECTIONS, "notices")

    def send(self, messages: Sequence[NoticeMessage], now: int) -> None:
        tens = batches.chunks([_entry(message, now) for message in messages], batches.TEN)
        if not all(self._pool.map(self._send, tens) if len(tens) > 1 else map(self._send, tens)):
            raise Unavailable()

    def receive(self, wait_s: int) -> list[ReceivedNotice]:
        try:
            with errors.translated():
                answer = self._client.receive_message(
                    QueueUrl=self._url, MaxNumberOfMessages=10, WaitTimeSeconds=wait_s, AttributeNames=["SentTimestamp"]
                )
        except Unavailable:
            return []
        return received({"Records": [_record(message) for message in answer.get("Messages", ())]})[0]

    def put_back(self, delays: Mapping[str, int]) -> None:
        list(self._pool.map(self._put_back, delays.keys(), delays.values()))

    def delete(self, receipts: Sequence[str]) -> None:
        list(self._pool.map(self._delete, receipts))

    def _put_back(self, receipt: str, seconds: int) -> None:
        with _unless_refused():
            self._client.change_message_visibility(QueueUrl=self._url, ReceiptHandle=receipt, VisibilityTimeout=seconds)

    def _delete(self, receipt: str) -> None:
        with _unless_refused():
            self._client.delete_message(QueueUrl=self._url, ReceiptHandle=receipt)

    def _send(self, ten: Sequence[dict[str, Any]]) -> bool:
        entries: Any = [{"Id": str(place), **entry} for place, entry in enumerate(ten)]
        try:
            with errors.translated():
                return not self._client.send_message_batch(QueueUrl=self._url, Entries=entries).get("Failed")
        except Unavailable:
            return False


def received(event: Mapping[str, Any]) -> tuple[list[ReceivedNotice], dict[str, str]]:
    """The messages of an SQS event, and its unreadable records (poison), which end in the dead-letter queue: receipts by message id."""
    good, poison = list[ReceivedNotice](), dict[str, str]()
    for record in event["Records"]:
        try:
            sent_at = record.get("attributes", {}).get("SentTimestamp")
            message = decode(record["body"])
            good.append(ReceivedNotice(record["messageId"], record["receiptHandle"], message, None if sent_at is None else int(sent_at)))
        except (Invalid, LookupError, TypeError, AttributeError, ValueError):
            if isinstance(record, dict) and isinstance(record.get("messageId"), str):
                poison[record["messageId"]] = str(record.get("receiptHandle"))
    return good, poison


@contextmanager
def _unless_refused() -> Iterator[None]:
    """Ignore a temporary refusal and an expired receipt: SQS delivers the message again in either case."""
    try:
        with errors.translated():
            yield
    except SchedulerError:
        pass


def _record(message: "MessageTypeDef") -> dict[str, Any]:
    """A received message in the form that an event has."""
    found = {"messageId": message["MessageId"], "receiptHandle": message["ReceiptHandle"], "body": message["Body"]}
    return found | {"attributes": message.get("Attributes", {})}


def _entry(message: NoticeMessage, now: int) -> dict[str, Any]:
    task = message.notice.task if isinstance(message, Sending) else message.task
    entry: dict[str, Any] = {"MessageBody": encode(message), "MessageGroupId": task.owner}  # SQS fair queues protect the other users
    if isinstance(message, WindowEnd) and message.at > now:
        entry["DelaySeconds"] = min(-(-(message.at - now) // 1_000), DELAY_LIMIT)  # whole seconds, rounded up: not before the window's end
    return entry
