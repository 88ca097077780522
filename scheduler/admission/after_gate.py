"""The gate of a job that waits for other jobs. It guarantees the promise; usually the ends of the others bring the job to its time before.

It reads the predecessors whose ends the job does not know. If one has not ended, the job is requeued and checked again, later and later:
the end of the last one enqueues it.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from scheduler.admission import after
from scheduler.admission.gate import UNDECIDED, Clear, Requeue, Verdict
from scheduler.model.after import open_of, why_broken, why_waits
from scheduler.model.errors import Unavailable
from scheduler.model.job import Job, JobKey, RequeueCause
from scheduler.storage.ports import Ports

log = logging.getLogger(__name__)


@dataclass(slots=True)
class AfterGate:
    """See `admission.Gate`."""

    ports: Ports

    def concerns(self, job: Job) -> bool:
        if not job.after:
            return False
        return bool(open_of(job.after)) or why_broken(job.after) is not None

    def ahead(self, jobs: Sequence[Job]) -> dict[JobKey, Verdict]:
        return {}

    def decide(self, jobs: Sequence[Job]) -> dict[JobKey, Verdict]:
        """Return the verdicts on due jobs."""
        checked_at = self.ports.clock.now()
        try:
            known = after.learn([job for job in jobs if after.skip_of(job) is None], self.ports)
        except Unavailable:
            log.info("could not read predecessors; their jobs are checked again", extra={"jobs": len(jobs)})
            return dict.fromkeys((job.key for job in jobs), UNDECIDED)
        return {job.key: _verdict(known.get(job.key, job), checked_at) for job in jobs}


def _verdict(job: Job, now: int) -> Verdict:
    if (skip := after.skip_of(job)) is not None:
        return skip
    if open_of(job.after):
        return Requeue(RequeueCause.AFTER, why_waits(job.after), check_at=after.check_at(job, now))
    return Clear(now)
