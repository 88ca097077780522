"""The lanes on SQS."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from scheduler.model.errors import Unavailable
from scheduler.model.job import Lane, Message
from scheduler.storage import messages
from scheduler.storage.aws import batches, errors

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

    from scheduler.storage.aws.topic import SnsTopic

DELAY_LIMIT = 900  # seconds; SQS delays no message longer
CONNECTIONS = 16


class SqsLanes:
    """The port `Lanes`: `urls` names the queue of each lane, `topic` fans out to them (None: this function publishes nothing)."""

    def __init__(self, client: "SQSClient", urls: Mapping[Lane, str], topic: "SnsTopic | None" = None) -> None:
        self._client = client
        self._topic = topic
        self._urls = dict(urls)
        self._pool = ThreadPoolExecutor(CONNECTIONS, "lanes")

    def send(self, batch: Sequence[Message], now: int) -> list[Message]:
        tens = [ten for lane in self._urls for ten in batches.chunks([message for message in batch if message.lane is lane], batches.TEN)]
        return batches.at_once(self._pool, lambda ten: self._send(ten, now), tens)

    def publish(self, messages: Sequence[Message]) -> list[Message]:
        if self._topic is None:
            raise RuntimeError("this function has no topic to publish to")
        return self._topic.publish(messages)

    def extend(self, lane: Lane, receipts: Sequence[str], seconds: int) -> set[str]:
        extended: set[str] = set()
        for ten in batches.chunks(receipts, batches.TEN):
            extended |= self._extend(lane, ten, seconds)
        return extended

    def backlog(self, lane: Lane) -> int:
        with errors.translated():
            answer = self._client.get_queue_attributes(QueueUrl=self._urls[lane], AttributeNames=["ApproximateNumberOfMessages"])
        return int(answer["Attributes"]["ApproximateNumberOfMessages"])

    def _send(self, ten: Sequence[Message], now: int) -> list[Message]:
        entries: Any = [_entry(position, message, now) for position, message in enumerate(ten)]
        try:
            with errors.translated():
                answer = self._client.send_message_batch(QueueUrl=self._urls[ten[0].lane], Entries=entries)
        except Unavailable:
            return list(ten)
        return batches.refused(ten, answer)

    def _extend(self, lane: Lane, ten: Sequence[str], seconds: int) -> set[str]:
        entries: Any = [
            {"Id": str(position), "ReceiptHandle": receipt, "VisibilityTimeout": seconds} for position, receipt in enumerate(ten)
        ]
        try:
            with errors.translated():
                answer = self._client.change_message_visibility_batch(QueueUrl=self._urls[lane], Entries=entries)
        except Unavailable:
            return set()
        return {ten[int(entry["Id"])] for entry in answer.get("Successful", ())}


def _entry(position: int, message: Message, now: int) -> dict[str, Any]:
    delay = min(max(message.not_before - now, 0) // 1000, DELAY_LIMIT)  # whole seconds, rounded down: early rather than late
    body = messages.encode(message if message.sent_at else message._replace(sent_at=now))
    entry: dict[str, Any] = {"Id": str(position), "MessageBody": body, "MessageGroupId": message.key.owner}
    return entry | {"DelaySeconds": delay} if delay else entry
