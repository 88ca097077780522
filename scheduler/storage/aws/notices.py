"""The notices table: all items of a task in one partition.

standing        the notification state of the task
news#<id>       the decision on one event, or on the end of a window
sending#<id>    the delivery of one notice to one receiver
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from scheduler.model.job import TaskKey
from scheduler.model.notice import DeliveryRecord, NoticeMessage, NotificationState, Outbox
from scheduler.notify.messages import decode_outbox, decode_state, encode_decisions, encode_outbox, encode_state
from scheduler.storage.aws import keys
from scheduler.storage.aws.table import Table
from scheduler.storage.aws.updates import as_put

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from scheduler.storage.aws.notice_queue import SqsNoticeQueue

DAY_S = 86_400
RETENTION_S = 20 * DAY_S  # longer than a stream or a queue could deliver the same record again
STANDING_S = 400 * DAY_S  # so that a task that runs once a year can still report its recovery
_NUMBERS = ("lease_until", "tries", "done_at", "version")


class DynamoNotices:
    """The port `Notices`. A function that only sends has no table."""

    def __init__(self, client: "DynamoDBClient", table: str, queue: "SqsNoticeQueue | None" = None) -> None:
        self._table = Table(client, table)
        self._queue = queue

    def read(self, task: TaskKey, id: str) -> tuple[NotificationState | None, Outbox | None]:
        found = {item["sk"]["S"]: item for item in self._table.get_many([keys.standing(task), keys.news(task, id)])}
        standing, news = (found.get(key["sk"]["S"]) for key in (keys.standing(task), keys.news(task, id)))
        return (
            _read_state(task, standing) if standing else None,
            decode_outbox(news["outbox"]["S"]) if news else None,
        )

    def decide(self, before: NotificationState | None, after: NotificationState, id: str, outbox: Outbox | None, now: int) -> bool:
        standing = keys.standing(after.task) | {
            "standing": {"S": encode_state(after)},
            "decisions": {"S": encode_decisions(after)},
            "version": {"N": str(1 if before is None else before.version + 1)},
            "expires": {"N": str(now // 1_000 + STANDING_S)},
        }
        condition = keys.IF_NEW if before is None else keys.if_version(before.version)
        if outbox is None:
            return self._table.put(standing, condition)
        news = keys.news(after.task, id) | {"outbox": {"S": encode_outbox(outbox)}, "expires": {"N": str(now // 1_000 + RETENTION_S)}}
        return self._table.transact([as_put(standing, condition, self._table.name), as_put(news, keys.IF_NEW, self._table.name)])

    def delivery(self, task: TaskKey, id: str) -> DeliveryRecord | None:
        item = self._table.get(keys.sending(task, id))
        if item is None:
            return None
        numbers = {name: int(item[name]["N"]) for name in _NUMBERS if name in item}
        return DeliveryRecord(task, id, error=item["error"]["S"] if "error" in item else None, **numbers)

    def set_delivery(self, before: DeliveryRecord | None, after: DeliveryRecord, now: int) -> bool:
        item = keys.sending(after.task, after.id) | {"expires": {"N": str(now // 1_000 + RETENTION_S)}}
        item |= {name: {"N": str(getattr(after, name))} for name in _NUMBERS if getattr(after, name) is not None}
        item["version"] = {"N": str(1 if before is None else before.version + 1)}
        if after.error is not None:
            item["error"] = {"S": after.error}
        return self._table.put(item, keys.IF_NEW if before is None else keys.if_version(before.version))

    def send(self, messages: Sequence[NoticeMessage], now: int) -> None:
        if self._queue is None:
            raise RuntimeError("this function has no queue of notices")
        self._queue.send(messages, now)


def _read_state(task: TaskKey, item: Mapping[str, Any]) -> NotificationState:
    decisions = item["decisions"]["S"] if "decisions" in item else "{}"  # of a state that an earlier version wrote
    return decode_state(task, int(item["version"]["N"]), item["standing"]["S"], decisions)
