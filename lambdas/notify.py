"""A batch from the queue of notices → services.notify."""

from typing import Any

from lambdas import _notifying
from lambdas._metrics import emit
from scheduler.insight import metrics
from scheduler.notify.notify import Incoming, notify
from scheduler.storage.aws.notice_queue import received


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Work a batch off. What has to come again says when; a record that is no message of ours ends in the dead-letter queue."""
    at = _notifying.notify()
    messages, poison = received(event)
    batch = [Incoming(each.message_id, each.message) for each in messages]
    told = notify(batch, at, post=at.post, threads=at.threads)
    for each in messages:
        if each.message_id in told.again:
            at.notice_queue.put_back(each.receipt, told.again[each.message_id])
    counts = {"decided": told.decided, "sent": told.sent, "failed": told.failed, "given_up": told.given_up}
    _notifying.logger.info("notify", extra=counts | {"again": len(told.again), "poison": poison})
    emit("notify", {name: count for name, count in ((metrics.SENT, told.sent), (metrics.GIVEN_UP, told.given_up)) if count})
    return {"batchItemFailures": [{"itemIdentifier": name} for name in (*told.again, *poison)]}
