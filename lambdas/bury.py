"""A batch from a dead-letter queue → `scheduler.pipeline.bury`."""

from typing import Any

from lambdas import _runtime
from lambdas._logger import logger
from lambdas._metrics import emit
from scheduler.insight import metrics
from scheduler.pipeline.bury import bury
from scheduler.storage.aws.deliveries import deliveries


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Settle a batch. A record that is not a valid message belongs to no job: it is logged and dropped."""
    received, poison = deliveries(event)
    done = bury(received, _runtime.ports())
    counts = {"failed": done.failed, "taken_back": done.taken_back, "kept": done.unchanged, "dropped": done.dropped}
    logger.info("bury", extra=counts | {"poison": [str(record)[:500] for record in poison]})
    emit("bury", {metrics.BURIED: done.buried})
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in done.returned]}
