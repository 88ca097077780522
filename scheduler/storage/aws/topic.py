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
_ATTRIBUTES = {lane: {"lane": {"DataType": "String", "StringValue": lane.value}} for lane in Lane}


class SnsTopic:
    """The topic in front of the lanes."""

    def __init__(self, client: "SNSClient", arn: str, *, connections: int = CONNECTIONS) -> None:
        self._client = client
        self._arn = arn
        self._connections = connections
        self._pool = ThreadPoolExecutor(connections, "topic")

    def publish(self, batch: Sequence[Message]) -> list[Message]:
        # Of packs that arrive together a poller takes up to ten, and other executors get none. So each has a call of its own, unless a call
        # would have to wait for a connection: if SNS does not answer, a call takes half a lease of the dispatcher.
        packs, others = [each for each in batch if each.more], [each for each in batch if not each.more]
        apart = batches.chunks(packs, 1) + batches.chunks(others, batches.TEN)
        calls = apart if len(apart) <= self._connections else batches.chunks(batch, batches.TEN)
        return batches.at_once(self._pool, self._publish, calls)

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
