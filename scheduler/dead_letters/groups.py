"""Dead letters: failed and killed jobs, counted and listed by error."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from scheduler.dead_letters.model import is_dead, matches
from scheduler.model import fingerprint, ids
from scheduler.model.job import DeadLetter, Failure, Job, JobKey, Page
from scheduler.model.operation import Filter
from scheduler.model.paging import read_on, read_position
from scheduler.storage.ports import Jobs
from scheduler.targets import called

READ = 10_000  # letters read for one overview
PAGE = 1_000
GROUPS = 100  # the largest groups, in one overview
NAMED = 20  # task ids kept for one group


@dataclass(slots=True)
class Group:
    """The letters of one error."""

    fingerprint: str | None  # None: the job is older than fingerprints
    latest: DeadLetter
    count: int = 0
    types: set[str] = field(default_factory=set)
    tasks: set[str] = field(default_factory=set)
    first_at: int = 0
    last_at: int = 0
    calls: str | None = None  # the host, function or queue that `latest` calls; None if it was deleted
    sample: Failure | None = None  # the error of `latest`; None if that was redriven or deleted

    def add(self, letter: DeadLetter) -> None:
        self.count += 1
        self.types.add(letter.type)
        if letter.task is not None and len(self.tasks) < NAMED:
            self.tasks.add(letter.task)
        self.first_at = min(self.first_at or letter.at, letter.at)
        if letter.at >= self.last_at:
            self.last_at, self.latest = letter.at, letter


@dataclass(frozen=True, slots=True)
class Overview:
    """`complete`: the groups cover all letters. Otherwise only the `read` latest letters by scheduled time or the largest groups."""

    groups: list[Group]
    read: int
    complete: bool


def overview(owner: str, filter: Filter, *, jobs: Jobs) -> Overview:
    """Group the letters of an owner by error, the most frequent first."""
    filter.check()
    found: dict[str | None, Group] = {}
    read, complete = 0, True
    for letters, more in _pages(owner, filter, jobs):
        read += len(letters)
        for letter in letters:
            if matches(letter, filter):
                found.setdefault(letter.fingerprint, Group(letter.fingerprint, letter)).add(letter)
        if more and read >= READ:
            complete = False
            break
    largest = sorted(found.values(), key=lambda group: (-group.count, -group.last_at))[:GROUPS]
    _sample(largest, jobs)
    return Overview(largest, read, complete and len(found) <= GROUPS)


def _pages(owner: str, filter: Filter, jobs: Jobs) -> Iterator[tuple[list[DeadLetter], bool]]:
    """Yield pages of letters, newest first, and for each whether another page follows."""
    after: str | None = None
    while True:
        letters, after = jobs.letters(owner, since=filter.since, until=filter.until, after=after, limit=PAGE, newest_first=True)
        yield letters, after is not None
        if after is None:
            return


def _sample(groups: list[Group], jobs: Jobs) -> None:
    stored = jobs.get_many([group.latest.key for group in groups]) if groups else {}
    for group in groups:
        job = stored.get(group.latest.key)
        if job is not None:
            group.calls = called.place(job.spec)
        if job is not None and is_dead(job):
            group.sample = fingerprint.error(job)


def listing(owner: str, filter: Filter, *, limit: int, cursor: str | None, jobs: Jobs) -> Page:
    """Return a page of the jobs that match the filter, newest first. Its cursor is None only if no further job can match."""
    filter.check()

    def read(after: str | None, limit: int) -> tuple[list[Job], str | None]:
        letters, cursor = jobs.letters(owner, since=filter.since, until=filter.until, after=after, limit=limit, newest_first=True)
        chosen: list[JobKey] = [letter.key for letter in letters if matches(letter, filter)]
        stored = jobs.get_many(chosen) if chosen else {}
        return [stored[key] for key in chosen if key in stored], cursor

    found, following = read_on(
        read,
        after=read_position(cursor),
        limit=limit,
        matches=is_dead,  # the index lags behind a redrive
        position=lambda job: ids.queue_position(job.id, job.scheduled_at, job.created_at),
        payload=lambda job: job.spec.payload,
    )
    return Page(found, following)
