"""A batch from the queue of notices → `scheduler.notify.notify`."""

from typing import Any

from lambdas import _notifying
from lambdas._logger import logger
from lambdas._metrics import emit
from scheduler.insight import metrics
from scheduler.notify.notify import Incoming, notify
from scheduler.storage.aws.notice_queue import received


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Process a batch. A message that failed is delivered again after its delay.

    A record that is not a valid message ends in the dead-letter queue.
    """
    at = _notifying.notify()
    messages, poison = received(event)
    batch = [Incoming(each.message_id, each.message) for each in messages]
    result = notify(batch, at, post=at.post, threads=at.threads)
    for each in messages:
        if each.message_id in result.again:
            at.notice_queue.put_back(each.receipt, result.again[each.message_id])
    counts = {"decided": result.decided, "sent": result.sent, "failed": result.failed, "given_up": result.given_up}
    logger.info("notify", extra=counts | {"again": len(result.again), "poison": poison})
    emit("notify", {name: count for name, count in ((metrics.SENT, result.sent), (metrics.GIVEN_UP, result.given_up)) if count})
    return {"batchItemFailures": [{"itemIdentifier": name} for name in (*result.again, *poison)]}
