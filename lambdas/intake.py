"""A batch from an intake queue → `scheduler.intake.intake`."""

from typing import Any

from lambdas import _init, _runtime
from lambdas._logger import logger
from scheduler.intake.intake import intake

_init.end(_runtime.api, "intake", "intake_queues", "jobs", "tasks", "lanes", "ledger", "receipts", "users")


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Process a batch. A message that must wait is delivered again after its time, and the queue deletes the others."""
    ports = _runtime.api()
    received = ports.intake_queues.received(event)
    done = intake([each.message for each in received], ports, ports.intake)
    ports.intake_queues.hide({each: done.again[each.message.id] for each in received if each.message.id in done.again})
    counts = {"accepted": done.accepted, "refused": done.refused, "again": len(done.again)}
    logger.info("intake", extra={"messages": len(received)} | counts)
    return {"batchItemFailures": [{"itemIdentifier": id} for id in done.again]}
