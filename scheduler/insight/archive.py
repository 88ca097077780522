"""The archive's record of a job whose item has left the table: a flat record, one line of JSON. Pure.

`infra/archive.py` declares the same fields as columns; a test compares them.
"""

import json
from collections.abc import Callable
from typing import Any

from scheduler.insight.counting import day_of, ended_at
from scheduler.model import ids, lifecycle
from scheduler.model.job import Job

DAY = "day"  # the partition: the UTC day of the time in the job's id, for which the job was first scheduled
DAY_MS = 86_400_000

Details = Callable[[Job, int], dict[str, Any]]  # a job as the API returns it at an instant

COLUMNS = {
    "id": "string",
    "owner": "string",
    "type": "string",
    "target": "string",
    "status": "string",
    "task_id": "string",
    "scheduled_at": "bigint",
    "created_at": "bigint",
    "started_at": "bigint",
    "ended_at": "bigint",
    "start_delay_ms": "bigint",
    "attempts_charged": "int",
    "redrives": "int",
    "fingerprint": "string",
    "reason": "string",
    "tags": "array<string>",
    "details": "string",
}


def record(job: Job, details: Details | None) -> dict[str, Any]:
    """The archive's record of a job that has ended: its `details` as JSON text, and the columns; instants are epoch ms."""
    ended = ended_at(job)
    return {
        "id": job.id,
        "owner": job.owner,
        "type": job.spec.type,
        "target": job.spec.target,
        "status": str(lifecycle.state(job)),
        "task_id": None if job.origin is None else job.origin.task,
        "scheduled_at": job.scheduled_at,
        "created_at": job.created_at,
        "started_at": job.started_at,
        "ended_at": ended,
        "start_delay_ms": job.delay_ms,
        "attempts_charged": job.charged,
        "redrives": job.redrives,
        "fingerprint": job.fingerprint,
        "reason": job.reason,
        "tags": list(job.spec.tags),
        "details": None if details is None else json.dumps(details(job, ended), ensure_ascii=False, separators=(",", ":")),
        DAY: day_of(ids.time(job.id)),
    }


def where(job_id: str, now: int, retention_days: int, database: str) -> str | None:
    """The message that refers a caller to the archive for a job that is not in its table; None if the job is too young to have left it.

    The message does not promise that the job ever existed: the table has no record of it.
    """
    at = ids.time(job_id)
    if not database or at >= now - retention_days * DAY_MS:
        return None
    why = f"its id is of {day_of(at)}, and jobs are kept for {retention_days} days, longer if they failed"
    return f"there is no such job; {why}: older ones are in the archive, table {database}.jobs, day = '{day_of(at)}'"
