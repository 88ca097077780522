"""Write many changes of jobs in one call, and tell jobs that the table refuses from a table that refuses everything."""

from collections.abc import Sequence
from dataclasses import replace

from scheduler.model import ids
from scheduler.model.job import Job
from scheduler.storage.ports import Change, Ports, Written


def change_many(changes: Sequence[Change], ports: Ports) -> tuple[list[Job], list[Job]]:
    """Write the changes. Returns the changed jobs, and those that the table refuses to change.

    A job that was changed in between is in neither.
    """
    written = ports.jobs.change(changes) if changes else []
    done = [change.after for change, ok in zip(changes, written, strict=True) if ok is Written.YES]
    return done, [change.before for change, ok in zip(changes, written, strict=True) if ok is Written.REFUSED]


def takes_changes(job: Job, ports: Ports) -> bool:
    """Whether the table answers the change of a job: of one beside `job` that does not exist, so that nothing is written."""
    absent = replace(job, id=ids.new(ids.time(job.id), 0))
    (written,) = ports.jobs.change([Change(absent, replace(absent, fence=absent.fence + 1))])
    return written is not Written.REFUSED
