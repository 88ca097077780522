"""The fan-out on SNS. Subscriptions filter by the attribute `lane` and deliver raw: a queue receives the body as it was sent."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from scheduler.model.errors import Unavailable
from scheduler.model.job import Lane, Message
from scheduler.storage import messages
from scheduler.storage.aws import batches, errors

if TYPE_CHECKING:
    from mypy_boto3_sns import SNSClient

CONNECTIONS = 16
APART = 64  # so few packs have a call each: of packs that arrive together, one poller takes up to ten, and other executors get none
_ATTRIBUTES = {lane: {"lane": {"DataType": "String", "StringValue": lane.value}} for lane in Lane}


class SnsTopic:
    """The topic in front of the lanes."""

    def __init__(self, client: "SNSClient", arn: str, *, connections: int = CONNECTIONS) -> None:
        self._client = client
        self._arn = arn
        self._pool = ThreadPoolExecutor(connections, "topic")

    def publish(self, batch: Sequence[Message]) -> list[Message]:
        packs, others = [each for each in batch if each.more], [each for each in batch if not each.more]
        parts = batches.chunks(packs, 1 if len(packs) <= APART else batches.TEN) + batches.chunks(others, batches.TEN)
        return batches.at_once(self._pool, self._publish, parts)

    def _publish(self, ten: Sequence[Message]) -> list[Message]:
        entries: Any = [_entry(position, message) for position, message in enumerate(ten)]
        try:
            with errors.translated():
                answer = self._client.publish_batch(TopicArn=self._arn, PublishBatchRequestEntries=entries)
        except Unavailable:
            return list(ten)
        return batches.refused(ten, answer)


def _entry(position: int, message: Message) -> dict[str, Any]:
    return {
        "Id": str(position),
        "Message": messages.encode(message),
        "MessageGroupId": message.key.owner,  # one group per user: SQS fair queues protect the other users
        "MessageAttributes": _ATTRIBUTES[message.lane],
    }
