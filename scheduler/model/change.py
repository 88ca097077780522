"""One write of a job, as the stream of the jobs table reports it."""

from typing import Protocol

from scheduler.model.job import Job


class Change(Protocol):
    """The job before and after a write."""

    @property
    def before(self) -> Job | None: ...
    @property
    def after(self) -> Job | None: ...
