"""The part of answers about jobs that is not stored with them: at most two reads for all jobs of an answer."""

from collections.abc import Mapping, Sequence

from lambdas import _runtime
from lambdas._logger import logger
from lambdas.rest.job_answers import Beside
from scheduler.model.errors import Unavailable
from scheduler.model.job import Job, TaskKey


def beside(jobs: Sequence[Job], now: int) -> Beside:
    """The states of the lanes and breakers if a reason may follow from them, and the names of the tasks. Never raises."""
    return Beside(_runtime.api().pauses.concerning(jobs, now), _names(jobs))


def _names(jobs: Sequence[Job]) -> Mapping[TaskKey, str]:
    tasks = dict.fromkeys(TaskKey(job.owner, job.origin.task) for job in jobs if job.origin is not None)
    if not tasks:
        return {}
    try:
        heads = _runtime.api().tasks.heads([*tasks])
    except Unavailable as error:
        logger.warning("could not read the names of tasks", extra={"error": str(error)})
        return {}
    return {key: head.name for key, head in heads.items()}
