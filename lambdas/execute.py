"""A batch from a lane → services.execute. What is reported back stays in the queue; the rest is deleted."""

from typing import Any

from lambdas import _runtime
from scheduler.pipeline.execute import execute
from scheduler.storage.aws.deliveries import deliveries, ids


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Run a batch. A record that is no message of ours is reported back, until its queue gives it to bury."""
    at = _runtime.execute()
    received, poison = deliveries(event)
    left = execute(at.lane, received, at, at.process, pool=_runtime.pool(), request_id=context.aws_request_id)
    _runtime.logger.info("execute", extra={"jobs": len(received), "left": len(left), "poison": ids(poison)})
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in [*left, *ids(poison)]]}
