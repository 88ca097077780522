"""Cancel many jobs: an operation that reads an owner's jobs by scheduled time and cancels those that match."""

from dataclasses import dataclass

from scheduler.jobs.cancel import cancel_many, is_cancelled_after
from scheduler.model import ids, lifecycle
from scheduler.model.errors import Unavailable
from scheduler.model.job import Job, JobKey, Page, Status, TaskKey
from scheduler.model.operation import Candidate, Counts, Operation
from scheduler.storage.ports import Ports

READ = 200  # jobs read at once
UNSTARTED = (Status.SCHEDULED, Status.QUEUED)  # without a filter of statuses


@dataclass(frozen=True, slots=True)
class CancelJobs:
    """The work of an operation that cancels jobs."""

    ports: Ports
    at_most: int = 100

    def read(self, operation: Operation, after: str | None) -> tuple[list[Candidate], str | None]:
        """A page of jobs: first those ahead, soonest first, then the others, latest first.

        Most open jobs are ahead, and the others may lie behind any number of finished ones.
        """
        since, until, turn = operation.filter.since, operation.filter.until, ids.first(operation.started_at)
        if after is None or after > turn:
            page = self._page(operation, max(since or 0, operation.started_at), until, after, newest_first=False)
            cursor: str | None = page.cursor or turn
        else:
            until = operation.started_at if until is None else min(until, operation.started_at)
            page = self._page(operation, since, until, None if after == turn else after, newest_first=True)
            cursor = page.cursor
        now = self.ports.clock.now()
        return [
            Candidate(ids.position(job.id, job.scheduled_at), job.key if _is_wanted(job, operation, now) else None) for job in page.jobs
        ], cursor

    def apply(self, operation: Operation, chosen: list[JobKey]) -> Counts:
        """Cancel these jobs if they still match. Jobs that an earlier try has cancelled are counted as well."""
        stored, now = self.ports.jobs.get_many(chosen), self.ports.clock.now()
        left = [job for job in stored.values() if not is_cancelled_after(job, operation.started_at)]
        cancelled, refused = cancel_many([job for job in left if _is_wanted(job, operation, now)], self.ports)
        if refused:
            raise Unavailable
        done, failed = len(stored) - len(left) + len(cancelled), len(stored.unreadable)
        return Counts(done, len(chosen) - done - failed, failed)

    def _page(self, operation: Operation, since: int | None, until: int | None, after: str | None, *, newest_first: bool) -> Page:
        if operation.filter.task is None:
            return self.ports.jobs.history(operation.owner, since=since, until=until, after=after, limit=READ, newest_first=newest_first)
        task = TaskKey(operation.owner, operation.filter.task)
        return self.ports.jobs.of_task(task, since=since, until=until, after=after, limit=READ, newest_first=newest_first)


def _is_wanted(job: Job, operation: Operation, now: int) -> bool:
    """Whether the job matches, or did until an earlier try of this chunk cancelled it."""
    filter = operation.filter
    if not is_cancelled_after(job, operation.started_at):
        if not lifecycle.is_open(job) or job.cancel_requested_at is not None:
            return False
        if lifecycle.status(job, now) not in (filter.statuses or UNSTARTED):
            return False
    return (
        job.created_at <= operation.started_at
        and filter.type in (None, job.spec.type)
        and filter.lane in (None, job.lane)
        and set(filter.tags) <= set(job.spec.tags)
    )
