"""Read the past and upcoming jobs of an owner: a single job, or a page of jobs by scheduled time."""

from collections.abc import Callable
from dataclasses import dataclass

from scheduler.model import ids, lifecycle
from scheduler.model.errors import Invalid, NotFound
from scheduler.model.job import Job, JobKey, Page, Status, TaskKey
from scheduler.model.paging import long_parts, read_on, read_position
from scheduler.storage.ports import Jobs


@dataclass(frozen=True, slots=True)
class Query:
    """A filter over the jobs of an owner: due up to now, newest first, or with `upcoming` later ones, soonest first."""

    owner: str
    upcoming: bool = False
    task: str | None = None
    tags: tuple[str, ...] = ()  # all of these tags
    statuses: tuple[Status, ...] = ()  # any of these; empty: of any status. Failed jobs include killed jobs
    type: str | None = None
    since: int | None = None
    until: int | None = None  # exclusive
    limit: int = 20
    cursor: str | None = None


def find(key: JobKey, *, jobs: Jobs) -> Job:
    """Return one job. Raises NotFound."""
    job = jobs.get(key)
    if job is None:
        raise NotFound("there is no such job")
    return job


def history(query: Query, *, jobs: Jobs, now: int) -> Page:
    """Return a page of jobs. Its cursor is None only if no further job can match. Raises Invalid for a bad range or cursor."""
    if query.since is not None and query.until is not None and query.since >= query.until:
        raise Invalid.field("to", "must be later than from")
    read = _reader(query, jobs, now)
    filtered = bool(query.statuses or query.tags or query.type is not None)

    def records(after: str | None, limit: int) -> tuple[list[Job], str | None]:
        page = read(after, limit)
        return page.jobs, page.cursor

    found, cursor = read_on(
        records,
        after=read_position(query.cursor),
        limit=query.limit,
        matches=(lambda job: _matches(job, query, now)) if filtered else None,
        position=_failed_position if _is_of_dead(query) else _position,
        parts=long_parts,
    )
    return Page(found, cursor)


def _reader(query: Query, jobs: Jobs, now: int) -> Callable[[str | None, int], Page]:
    """Choose the index to read: dead jobs have their own, so that a search finds them among any number of successes."""
    since, until = query.since, query.until
    if query.upcoming:
        since = max(since or 0, now + 1)
    else:
        until = now + 1 if until is None else min(until, now + 1)
    if _is_of_dead(query):
        return lambda after, limit: jobs.failures(query.owner, since=since, until=until, after=after, limit=limit)
    newest_first = not query.upcoming
    if query.task is not None:
        task = TaskKey(query.owner, query.task)
        return lambda after, limit: jobs.of_task(task, since=since, until=until, after=after, limit=limit, newest_first=newest_first)
    return lambda after, limit: jobs.history(query.owner, since=since, until=until, after=after, limit=limit, newest_first=newest_first)


def _is_of_dead(query: Query) -> bool:
    return bool(query.statuses) and set(query.statuses) <= set(lifecycle.DEAD) and not query.upcoming


def _position(job: Job) -> str:
    return ids.position(job.id, job.scheduled_at)


def _failed_position(job: Job) -> str:
    return ids.queue_position(job.id, job.scheduled_at, job.created_at)


def _matches(job: Job, query: Query, now: int) -> bool:
    return (
        query.type in (None, job.spec.type)
        and (not query.statuses or _is_of(lifecycle.status(job, now), query.statuses))
        and (query.task is None or (job.origin is not None and job.origin.task == query.task))
        and set(query.tags) <= set(job.spec.tags)
    )


def _is_of(status: Status, statuses: tuple[Status, ...]) -> bool:
    return status in statuses or (status is Status.KILLED and Status.FAILED in statuses)
