"""A batch from the queue of notices → `scheduler.notify.invocation`, which notifies the receivers (`scheduler.notify.notify`)."""

from typing import Any

from lambdas import _notifying
from lambdas._logger import logger
from lambdas._metrics import emit
from scheduler.insight import metrics
from scheduler.notify.invocation import process
from scheduler.storage.aws.notice_queue import received

POISON_S = 8  # until a record that is no valid message is delivered again


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Process a batch. A message that failed is delivered again after its delay.

    A record that is not a valid message ends in the dead-letter queue.
    """
    at = _notifying.notify()
    messages, poison = received(event)
    at.notice_queue.put_back(dict.fromkeys(poison.values(), POISON_S))
    result = process(messages, at.notice_queue, at, post=at.post, threads=at.threads)
    counts = {"decided": result.decided, "sent": result.sent, "failed": result.failed, "given_up": result.undelivered}
    logger.info("notify", extra=counts | {"batches": result.batches, "again": len(result.unfinished), "poison": [*poison]})
    emit("notify", {name: count for name, count in ((metrics.SENT, result.sent), (metrics.UNDELIVERED, result.undelivered)) if count})
    return {"batchItemFailures": [{"itemIdentifier": name} for name in (*result.unfinished, *poison)]}
