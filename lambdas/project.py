"""A batch from the stream of the jobs or of the tasks table → `scheduler.insight.project`."""

from typing import Any

from lambdas import _runtime
from lambdas._logger import logger
from lambdas._metrics import emit
from scheduler.insight import metrics
from scheduler.insight.project import project
from scheduler.model.job import Job
from scheduler.storage.aws.stream import batch

NOTED_MS = 1_000  # a batch in which no job took longer than this beyond its own run emits no overheads: the metric is for an alarm only


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Project a batch; Lambda delivers a failed batch again. The event at the end of a tumbling window has no records."""
    ports = _runtime.ports()
    read = batch(event, one_shard=ports.rules.one_shard)
    done = project(read.shard, read.changes, ports, groups=read.groups, details=_details)
    if done.created or done.processed or done.archived:
        counts = {"jobs_created": done.created, "jobs_processed": done.processed, "news": done.news, "archived": done.archived}
        logger.info("project", extra={"changes": done.changes, "ended": done.ended, **counts})
    values: dict[str, float | list[int]] = {
        metrics.START_DELAY: done.start_delays_ms,
        metrics.LATENCY: done.latencies_ms,
        metrics.OVERHEAD: done.overheads_ms if max(done.overheads_ms, default=0) >= NOTED_MS else [],
        metrics.CANARY_DELAY: done.canary_delays_ms,
    }
    emit("project", values | ({metrics.DEAD: done.dead} if done.dead else {}))
    return {"state": {}}


def _details(job: Job, now: int) -> dict[str, Any]:
    from lambdas.rest.job_answers import JobShape  # loads pydantic, with the first job that is archived

    return JobShape.of(job, now)
