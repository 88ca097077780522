"""Cancel many jobs: an operation that reads an owner's jobs by scheduled time and cancels those that match."""

from dataclasses import dataclass

from scheduler.jobs.cancel import cancel_many, is_cancelled_since
from scheduler.model import ids, lifecycle
from scheduler.model.job import Job, JobKey, Page, Status, TaskKey
from scheduler.model.operation import Candidate, Counts, Operation
from scheduler.pipeline.change_many import takes_changes
from scheduler.storage.ports import Jobs, Ports

READ = 200  # jobs read at once
TRIES = 3  # of a job that is changed at the same moment
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
        since, until, boundary = operation.filter.since, operation.filter.until, ids.first(operation.started_at)
        if after is None or after > boundary:
            page = page_of(operation, max(since or 0, operation.started_at), until, after, self.ports.jobs, newest_first=False)
            cursor: str | None = page.cursor or boundary
        else:
            until = operation.started_at if until is None else min(until, operation.started_at)
            page = page_of(operation, since, until, None if after == boundary else after, self.ports.jobs, newest_first=True)
            cursor = page.cursor
        return self._candidates(operation, page), cursor

    def key(self, owner: str, id: str) -> JobKey:
        return JobKey(owner, id)

    def takes_changes(self, key: JobKey) -> bool:
        job = self.ports.jobs.get(key)
        return job is None or takes_changes(job, self.ports)

    def apply(self, operation: Operation, chosen: list[Candidate]) -> Counts:
        """Cancel these jobs if they still match."""
        done, failed, refused, left = 0, 0, list[str](), [each.chosen for each in chosen]
        for _ in range(TRIES):
            stored, now = self.ports.jobs.get_many(left), self.ports.clock.now()
            unsettled = [job for job in stored.values() if not self._is_ours(job, operation)]
            matching = [job for job in unsettled if _matches(job, operation, now)]
            cancelled, unanswered = cancel_many(matching, self.ports)
            done, failed = done + len(stored) - len(unsettled) + len(cancelled), failed + len(stored.unreadable)
            refused += [job.id for job in unanswered]
            settled = {job.key for job in (*cancelled, *unanswered)}
            left = [job.key for job in matching if job.key not in settled]  # changed in between
            if not left:
                break
        return Counts(done, len(chosen) - done - failed - len(refused), failed, tuple(refused))

    def _candidates(self, operation: Operation, page: Page) -> list[Candidate]:
        now = self.ports.clock.now()
        return [Candidate(position(job), job.key if _matches(job, operation, now) else None) for job in page.jobs]

    def _is_ours(self, job: Job, operation: Operation) -> bool:
        """Whether the operation has probably cancelled the job and has not counted it: its step died, or the table refused and did it."""
        return job.id in operation.pending and is_cancelled_since(job, operation.started_at)


def page_of(operation: Operation, since: int | None, until: int | None, after: str | None, jobs: Jobs, *, newest_first: bool) -> Page:
    """A page of the jobs of the owner or, if the filter has one, of the task."""
    if operation.filter.task is None:
        return jobs.history(operation.owner, since=since, until=until, after=after, limit=READ, newest_first=newest_first)
    task = TaskKey(operation.owner, operation.filter.task)
    return jobs.of_task(task, since=since, until=until, after=after, limit=READ, newest_first=newest_first)


def position(job: Job) -> str:
    return ids.position(job.id, job.scheduled_at)


def _matches(job: Job, operation: Operation, now: int) -> bool:
    if not lifecycle.is_open(job) or job.cancel_requested_at is not None:
        return False
    return lifecycle.status(job, now) in (operation.filter.statuses or UNSTARTED) and is_filtered(job, operation)


def is_filtered(job: Job, operation: Operation) -> bool:
    """Whether the filter matches in everything but the status."""
    filter = operation.filter
    return (
        max(job.created_at, job.changed_at or 0, job.redriven_at or 0) <= operation.started_at
        and (filter.since is None or job.scheduled_at >= filter.since)
        and (filter.until is None or job.scheduled_at < filter.until)
        and (filter.task is None or (job.origin is not None and job.origin.task == filter.task))
        and filter.type in (None, job.spec.type)
        and filter.lane in (None, job.lane)
        and set(filter.tags) <= set(job.spec.tags)
    )
