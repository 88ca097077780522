"""A batch from the stream of the jobs or of the tasks table → `scheduler.insight.project`."""

from typing import Any

from lambdas import _runtime
from lambdas._logger import logger
from lambdas._metrics import emit
from scheduler.insight import metrics
from scheduler.insight.project import project
from scheduler.model.job import Job
from scheduler.storage.aws.stream import batch


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Project a batch; Lambda delivers a failed batch again. The event at the end of a tumbling window has no records."""
    ports = _runtime.ports()
    read = batch(event, one_shard=ports.rules.one_shard)
    done = project(read.shard, read.changes, ports, details=_details)
    logger.debug(
        "project",
        extra={"changes": done.changes, "created": done.created, "ended": done.ended, "news": done.news, "archived": done.archived},
    )
    counts = {metrics.CREATED: done.created, metrics.PROCESSED: done.processed, metrics.DEAD: done.dead}
    values: dict[str, float | list[int]] = {name: count for name, count in counts.items() if count}
    values |= {
        metrics.START_DELAY: done.start_delays_ms,
        metrics.LATENCY: done.latencies_ms,
        metrics.OVERHEAD: done.overheads_ms,
        metrics.CANARY_DELAY: done.canary_delays_ms,
    }
    emit("project", values)
    return {"state": {}}


def _details(job: Job, now: int) -> dict[str, Any]:
    from lambdas.rest.job_answers import JobShape  # loads pydantic, with the first job that is archived

    return JobShape.of(job, now)
