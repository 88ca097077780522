"""A batch from the stream of the jobs table → `scheduler.notify.announce`."""

from typing import Any

from lambdas import _runtime
from lambdas._logger import logger
from lambdas._metrics import emit
from scheduler.insight import metrics
from scheduler.notify.announce import announce
from scheduler.storage.aws.stream import JobChange, batch


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Announce a batch; Lambda delivers it again from the first record whose event was refused."""
    # Events need no order between shards, so the mapping has no tumbling window, and the event names no shard.
    changes = [change for change in batch(event, one_shard=True).changes if isinstance(change, JobChange)]
    result = announce(changes, _runtime.ports())
    sent = {"sent": result.sent, "refused": result.refused is not None, "spans": result.spans}
    logger.info("announce", extra={"changes": len(changes)} | sent)
    if result.dropped:
        emit("announce", {metrics.SPANS_LOST: result.dropped})
    if result.refused is None:
        return {"batchItemFailures": []}
    return {"batchItemFailures": [{"itemIdentifier": changes[result.refused].sequence.lstrip("0")}]}
