"""Retry a failed or killed job: from the start, at once, under a new fence."""

from scheduler.admission.run_gate import task_of, unwanted
from scheduler.dead_letters import model
from scheduler.dead_letters.store import store_redrives
from scheduler.model import lifecycle
from scheduler.model.errors import Conflict, NotFound, Unavailable
from scheduler.model.job import Job, JobKey
from scheduler.pipeline.direct_path import DirectPath
from scheduler.pipeline.enqueue import enqueue_if_due_soon
from scheduler.storage.ports import Change, Ports, Tasks, Written


def retry_job(key: JobKey, ports: Ports, *, request: str, direct: DirectPath | None = None) -> Job:
    """Schedule the job again, enqueue it and return it. `request` is a unique id of this call.

    Raises NotFound; Conflict if it has not ended, has ended otherwise, its task no longer includes it, or another open job has its key;
    Unavailable.
    """
    now = ports.clock.now()
    job = ports.jobs.get(key)
    if job is None:
        raise NotFound("there is no such job")
    _check(job, ports.tasks, now)
    after = model.again(job, now, ports.rules.shards, request)
    if direct is not None:
        (after,) = direct.place([after], now)
    (result,) = store_redrives([Change(job, after)], ports, now)
    if isinstance(result, Conflict):
        raise result
    if result is Written.REFUSED:
        raise Unavailable
    if result is Written.NO:
        raise Conflict("another request has already retried the job")
    (placed,) = enqueue_if_due_soon([after], now, ports)
    if direct is not None:
        direct.start_for([placed])
    return placed


def _check(job: Job, tasks: Tasks, now: int) -> None:
    """Raises Conflict if the job may not be retried or would only be cancelled at its start."""
    if lifecycle.is_open(job):
        raise Conflict(f"the job has not ended: it is {lifecycle.status(job, now)}")
    if not model.is_dead(job):
        raise Conflict(f"only failed and killed jobs can be retried; the status of this job is {lifecycle.state(job)}")
    if job.origin is not None:
        task = task_of(job)
        why = unwanted(job, tasks.heads([task]).get(task))
        if why is not None:
            raise Conflict(why)
