"""The work queue on SQS."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from scheduler.model.errors import Invalid, Unavailable
from scheduler.model.work import WorkDelivery, WorkItem, WorkKind
from scheduler.storage.aws import batches, errors

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

VERSION = 1
DELAY_LIMIT = 900  # seconds; SQS delays no message longer
HIDDEN_LIMIT = 42_000  # seconds; SQS hides a message for at most 43,200 s in total since it was received


class SqsWorkQueue:
    """The port `WorkQueue`."""

    def __init__(self, client: "SQSClient", url: str) -> None:
        self._client, self._url = client, url

    def send(self, items: Sequence[WorkItem], *, delay_ms: int = 0) -> list[WorkItem]:
        refused: list[WorkItem] = []
        for ten in batches.chunks(items, batches.TEN):
            refused += self._send(ten, min(delay_ms // 1000, DELAY_LIMIT))
        return refused

    def hide(self, receipt: str, seconds: int) -> bool:
        entry: Any = {"Id": "0", "ReceiptHandle": receipt, "VisibilityTimeout": min(seconds, HIDDEN_LIMIT)}
        try:
            with errors.translated():  # a batch of one: its answer lists an outdated receipt, which would be an error of the single call
                answer = self._client.change_message_visibility_batch(QueueUrl=self._url, Entries=[entry])
        except Unavailable:
            return False
        return bool(answer.get("Successful"))

    def _send(self, ten: Sequence[WorkItem], delay: int) -> list[WorkItem]:
        entries: Any = [{"Id": str(number), "MessageBody": encode(item), "DelaySeconds": delay} for number, item in enumerate(ten)]
        try:
            with errors.translated():
                answer = self._client.send_message_batch(QueueUrl=self._url, Entries=entries)
        except Unavailable:
            return list(ten)
        return batches.refused(ten, answer)


def encode(item: WorkItem) -> str:
    return json.dumps({"v": VERSION, "kind": item.kind.value, "of": item.of, "part": item.part})


def decode(text: str) -> WorkItem:
    """The item in a message. Raises Invalid for a text that `encode` of this version cannot have written."""
    try:
        fields = json.loads(text)
        version = fields["v"]
        if type(version) is not int or version != VERSION:  # in Python, True and 1.0 equal 1
            raise Invalid(f"work of version {version}, this program reads {VERSION}")
        of, part = fields["of"], fields["part"]
        if not isinstance(of, str) or not isinstance(part, str):
            raise TypeError("of and part are texts")
        item = WorkItem(WorkKind(fields["kind"]), of, part)
        if item.kind is WorkKind.UNIT and str(int(part)) != part:
            raise ValueError("the part of a unit is a number")
        of.encode(), part.encode()  # no table takes half a character
        return item
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise Invalid(f"not an item of work: {error!r}") from None


def delivery(record: Mapping[str, Any]) -> WorkDelivery | None:
    """The delivery in one record of an SQS event; None: it is no item of work."""
    try:
        item = decode(record["body"])
        return WorkDelivery(item, record["messageId"], record["receiptHandle"], int(record["attributes"]["ApproximateReceiveCount"]))
    except (Invalid, LookupError, TypeError, ValueError):
        return None
