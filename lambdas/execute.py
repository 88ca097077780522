"""A batch from a lane → `scheduler.pipeline.execute`. Messages in `batchItemFailures` stay in the queue; Lambda deletes the rest."""

from typing import Any

from lambdas import _init, _runtime
from lambdas._logger import logger
from scheduler.pipeline.execute import execute
from scheduler.storage.aws.deliveries import deliveries, ids

_init.end(lambda: _runtime.execute().ports, "jobs", "lanes", "ledger", "tasks", "orders", "targets", "users")


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Run a batch. A record that is not a valid message is reported as failed, until its queue moves it to the dead-letter queue."""
    at = _runtime.execute()
    received, poison = deliveries(event)
    remaining = context.get_remaining_time_in_millis()
    left = execute(at.lane, received, at.ports, at.process, pool=at.pool(), request_id=context.aws_request_id, left_ms=remaining)
    logger.info("execute", extra={"jobs": len(received), "left": len(left), "poison": ids(poison)})
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in [*left, *ids(poison)]]}
