"""What an owner's jobs did and will do: one of them, or a page of them by scheduled time."""

import base64
import binascii
import json
from collections.abc import Callable
from dataclasses import dataclass

from scheduler import ids, lifecycle
from scheduler.errors import Invalid, NotFound
from scheduler.model import Job, JobKey, Page, Status, TaskKey
from scheduler.ports import Jobs

CHUNK = 100  # jobs per read while a filter is set
READS = 10  # reads per page: a filter that finds little answers a short page and a cursor
ANSWER_BYTES = 4_000_000  # payload in one page: a Lambda function answers 6 MB at most


@dataclass(frozen=True, slots=True)
class Query:
    """Which jobs of an owner: those due up to now, newest first, or with `upcoming` those ahead, soonest first."""

    owner: str
    upcoming: bool = False
    task: str | None = None
    tag: str | None = None
    status: Status | None = None
    type: str | None = None
    since: int | None = None
    until: int | None = None  # exclusive
    limit: int = 20
    cursor: str | None = None


def find(key: JobKey, *, jobs: Jobs) -> Job:
    """One job. Raises NotFound."""
    job = jobs.get(key)
    if job is None:
        raise NotFound("there is no such job")
    return job


def history(query: Query, *, jobs: Jobs, now: int) -> Page:
    """A page of jobs. Its cursor is None only if nothing more can match. Raises Invalid for a bad range or cursor."""
    if query.since is not None and query.until is not None and query.since >= query.until:
        raise Invalid.field("to", "must be later than from")
    read = _reader(query, jobs, now)
    filtered = any(wanted is not None for wanted in (query.status, query.type, query.tag))
    after = None if query.cursor is None else _decode(query.cursor)
    found: list[Job] = []
    for _ in range(READS):
        page = read(after, CHUNK if filtered else query.limit)
        matching = [job for job in page.jobs if _matches(job, query, now)]
        fitting = _fitting(found, matching, query.limit)
        found += fitting
        if len(fitting) < len(matching):
            return Page(found, _encode(ids.position(found[-1].id, found[-1].scheduled_at)))
        after = page.cursor
        if after is None or len(found) == query.limit:
            break
    return Page(found, None if after is None else _encode(after))


def _reader(query: Query, jobs: Jobs, now: int) -> Callable[[str | None, int], Page]:
    """Where the jobs come from: dead ones have an index of their own, so that they are found among any number of successes."""
    since, until = query.since, query.until
    if query.upcoming:
        since = max(since or 0, now + 1)
    else:
        until = now + 1 if until is None else min(until, now + 1)
    if query.status in lifecycle.DEAD and not query.upcoming:
        return lambda after, limit: jobs.failures(query.owner, since=since, until=until, after=after, limit=limit)
    newest_first = not query.upcoming
    if query.task is not None:
        task = TaskKey(query.owner, query.task)
        return lambda after, limit: jobs.of_task(task, since=since, until=until, after=after, limit=limit, newest_first=newest_first)
    return lambda after, limit: jobs.history(query.owner, since=since, until=until, after=after, limit=limit, newest_first=newest_first)


def _fitting(found: list[Job], matching: list[Job], limit: int) -> list[Job]:
    """As many more jobs as the page has room for; one always fits into an empty page."""
    room = ANSWER_BYTES - sum(_size(job) for job in found)
    for count, job in enumerate(matching):
        room -= _size(job)
        if len(found) + count == limit or (room < 0 and found + matching[:count]):
            return matching[:count]
    return matching


def _size(job: Job) -> int:
    return len(json.dumps(job.payload))


def _matches(job: Job, query: Query, now: int) -> bool:
    return (
        query.type in (None, job.type)
        and (query.status is None or lifecycle.status(job, now) is query.status)
        and (query.task is None or (job.origin is not None and job.origin.task == query.task))
        and (query.tag is None or query.tag in job.tags)
    )


def _encode(position: str) -> str:
    """Opaque to callers, so that it may become something else than the last job's position."""
    return base64.urlsafe_b64encode(position.encode()).decode().rstrip("=")


def _decode(cursor: str) -> str:
    try:
        position = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        position = ""
    if not ids.is_job_id(position):  # it has the form of one
        raise Invalid.field("cursor", "must be the cursor of an earlier answer, unchanged")
    return position
