"""The ends of work in AWS that services announce on EventBridge: containers and executions that jobs wait for.

An event may come twice, out of order, before the start is recorded, or not at all. So it settles a job only if it is about the very
start that the job awaits; everything else is left to the checks of executors.
"""

import logging
from collections.abc import Mapping
from typing import Any

from scheduler.callbacks.reports import report
from scheduler.callbacks.tokens import AttemptKey
from scheduler.model import lifecycle
from scheduler.model.errors import Conflict, NotFound
from scheduler.model.job import Job
from scheduler.storage.ports import Ports
from scheduler.targets import registry

log = logging.getLogger(__name__)


def conclude(event: Mapping[str, Any], ports: Ports) -> Job | None:
    """Settle the job whose work has ended by this event, and return it; None: the event ends no job. Raises Unavailable."""
    ends = registry.awaited_ends(str(event.get("source")), str(event.get("detail-type")))
    detail = event.get("detail")
    if ends is None or not isinstance(detail, Mapping):
        return None
    started = ends.started_by(detail)
    if started is None:
        return None
    job = ports.jobs.get(started.key)
    awaited = None if job is None else job.awaited
    if job is None or awaited is None or not lifecycle.is_open(job) or job.claim is None:
        return None
    if awaited.fence != started.fence or awaited.id not in (None, started.id):
        return None  # of an earlier attempt
    result = ends.judged(detail, awaited)
    if result is None:
        return None
    try:
        return report(AttemptKey(job.key, job.fence), result, ports)
    except (Conflict, NotFound) as error:
        log.info("the job has changed since its work in AWS ended", extra=job.log_context() | {"error": str(error)})
        return None
