"""A message of the work queue → `scheduler.pipeline.worker`. A message in `batchItemFailures` stays; Lambda deletes the rest."""

from functools import partial
from typing import Any

from lambdas import _init, _runtime
from lambdas._api_probe import probe
from lambdas._lag import emit_lag
from lambdas._logger import logger
from scheduler.insight import metrics
from scheduler.jobs import group_steps
from scheduler.monitors import steps
from scheduler.operations.step import step
from scheduler.pipeline.worker import hidden_s, work
from scheduler.storage.aws.work_queue import delivery

_init.end(_runtime.ports, "jobs", "lanes", "ledger", "work")


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Carry out one step of the work that each message names. A record that is no item of work is logged and dropped."""
    ports, left = _runtime.ports(), []
    monitor = partial(steps.step, reachable=probe(ports.settings.get("api_url")), note_lag=partial(emit_lag, "worker", metrics.ALERT_LAG))
    for record in event.get("Records", ()):
        found = delivery(record)
        if found is None:
            logger.error("poison", extra={"record": str(record)[:500]})
            continue
        result = work(found, ports, operation=step, group=group_steps.step, monitor=monitor)
        numbers = {"published": result.published, "jobs_pulled": result.pulled}
        logger.info("dispatch", extra={"work": found.item, "next_at": result.next_at, **numbers})
        if result.next_at is not None:
            ports.work.hide(found.receipt, hidden_s(result.next_at, ports.clock.now()))
            left.append({"itemIdentifier": found.message_id})
    return {"batchItemFailures": left}
