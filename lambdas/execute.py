"""A batch from a lane → services.execute. What is reported back stays in the queue; the rest is deleted."""

from typing import Any

from lambdas import _runtime
from lambdas._pool import ThreadPool
from scheduler.aws.deliveries import delivery
from scheduler.services.execute import execute


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Run a batch. A record that is no message of ours is reported back, until its queue gives it to bury."""
    at = _runtime.execute()
    received = {record["messageId"]: delivery(record) for record in event["Records"]}
    poison = [message_id for message_id, item in received.items() if item is None]
    left = execute(
        at.lane,
        [item for item in received.values() if item is not None],
        jobs=at.jobs,
        tasks=at.tasks,
        lanes=at.lanes,
        ledger=at.ledger,
        pool=ThreadPool(
            at.threads, at.clock, allow_private=at.settings.allow_private_http, reach=at.reach, calls=_runtime.calls, named=at.named
        ),
        clock=at.clock,
        rules=at.rules,
        meter=at.meter,
        pauses=at.pauses,
        named=at.named,
        circuits=at.circuits,
        request_id=context.aws_request_id,
    )
    _runtime.logger.info("execute", extra={"jobs": len(received), "left": len(left), "poison": poison})
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in [*left, *poison]]}
