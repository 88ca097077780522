"""The port Jobs: lists by time and the index of failures."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.model import ids
from scheduler.model.job import DeadLetter, Job, JobKey, Page, TaskKey
from scheduler.storage.aws.jobs import DynamoJobs
from scheduler.storage.memory.stores import MemoryJobs
from scheduler.storage.ports import Change, Jobs, Written
from tests.contract import make, tables
from tests.contract.make import NOW

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@pytest.fixture
def ten(jobs: Jobs) -> list[str]:
    """Ids of ten jobs, a second apart; another owner has jobs too."""
    made = [make.job(at=NOW + 1_000 * number) for number in range(10)]
    assert len({ids.partition(job.id) for job in made}) > 2, "spread over partitions"
    for job in [*made, make.job(owner="eve"), make.job(owner="ada2")]:
        jobs.put(job)
    return [job.id for job in made]


def pages(jobs: Jobs, limit: int, *, newest_first: bool, since: int | None = None, until: int | None = None) -> list[list[str]]:
    found, cursor = [], None
    while True:
        page = jobs.history("ada", since=since, until=until, after=cursor, limit=limit, newest_first=newest_first)
        found.append([job.id for job in page.jobs])
        cursor = page.cursor
        if cursor is None:
            return found


def test_history_pages_forward_by_time(jobs: Jobs, ten: list[str]) -> None:
    assert pages(jobs, 4, newest_first=False) == [ten[:4], ten[4:8], ten[8:]]


def test_history_pages_backward_by_time(jobs: Jobs, ten: list[str]) -> None:
    back = ten[::-1]
    assert pages(jobs, 4, newest_first=True) == [back[:4], back[4:8], back[8:]]


def test_a_last_page_that_is_full_has_no_cursor(jobs: Jobs, ten: list[str]) -> None:
    assert pages(jobs, 5, newest_first=True) == [ten[:4:-1], ten[4::-1]]
    assert pages(jobs, 10, newest_first=False) == [ten]
    assert pages(jobs, 1, newest_first=False) == [[one] for one in ten]


@pytest.mark.parametrize("newest_first", [True, False])
def test_history_includes_its_lower_bound_and_excludes_the_upper_one(jobs: Jobs, ten: list[str], newest_first: bool) -> None:
    since, until = NOW + 2_000, NOW + 7_000
    found = pages(jobs, 2, newest_first=newest_first, since=since, until=until)
    assert sorted(itertools.chain(*found)) == ten[2:7]


def test_history_of_an_empty_range_is_empty(jobs: Jobs, ten: list[str]) -> None:
    assert pages(jobs, 5, newest_first=True, since=NOW + 5_000, until=NOW + 5_000) == [[]]
    assert pages(jobs, 5, newest_first=True, since=NOW + 6_000, until=NOW + 5_000) == [[]]
    assert jobs.history("nobody", since=None, until=None, after=None, limit=5, newest_first=True).jobs == []


def test_jobs_of_one_instant_are_all_listed_once(jobs: Jobs) -> None:
    made = [make.job() for _ in range(40)]
    for job in made:
        jobs.put(job)
    assert list(itertools.chain(*pages(jobs, 7, newest_first=True))) == sorted((job.id for job in made), reverse=True)


@pytest.mark.long
def test_a_rescheduled_job_is_listed_at_its_new_time_and_only_there(jobs: Jobs, ten: list[str]) -> None:
    stored = jobs.get_many([JobKey("ada", one) for one in ten])
    first, last = stored[JobKey("ada", ten[0])], stored[JobKey("ada", ten[9])]
    changes = [Change(first, make.rescheduled(first, NOW + 4_500)), Change(last, make.rescheduled(last, NOW - 60_000))]
    assert jobs.change(changes) == [Written.YES, Written.YES]
    now = [ten[9], *ten[1:5], ten[0], *ten[5:9]]
    for limit in range(1, 12):
        assert list(itertools.chain(*pages(jobs, limit, newest_first=False))) == now
        assert list(itertools.chain(*pages(jobs, limit, newest_first=True))) == now[::-1]
    assert list(itertools.chain(*pages(jobs, 2, newest_first=False, since=NOW + 4_000, until=NOW + 5_000))) == [ten[4], ten[0]]
    assert ten[0] not in itertools.chain(*pages(jobs, 5, newest_first=True, until=NOW + 1_000))


def test_a_job_moved_back_is_listed_at_its_first_place(jobs: Jobs, ten: list[str]) -> None:
    (job,) = jobs.get_many([JobKey("ada", ten[3])]).values()
    away = make.rescheduled(job, NOW + 60_000)
    assert jobs.change([Change(job, away)]) == [Written.YES]
    assert jobs.change([Change(away, make.rescheduled(away, job.scheduled_at))]) == [Written.YES]
    assert pages(jobs, 20, newest_first=False) == [ten]


@pytest.mark.long
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 30)), max_size=12), st.integers(1, 7), st.booleans())
@settings(max_examples=25)
def test_pages_list_moved_jobs_once_and_in_order(
    two: tuple[Jobs, Jobs], moves: list[tuple[int, int]], limit: int, newest_first: bool
) -> None:
    """DynamoDB and memory must return the same pages."""
    owner = f"ada{next(_owners)}"
    task = TaskKey(owner, "01JD4Q8XKZ38W2M5R7T9V1C4FH")
    found = []
    made = [
        make.run(task, at=NOW + 1_000 * number) if number % 2 else make.job(owner=owner, at=NOW + number * 1_000) for number in range(10)
    ]
    for jobs in two:
        for job in made:
            jobs.put(job)
        for number, seconds in moves:
            before = jobs.get(made[number].key)
            assert before is not None
            jobs.change([Change(before, make.rescheduled(before, NOW + 1_000 * seconds))])
        whole = list(through(partial(jobs.history, owner, since=NOW + 2_000, until=NOW + 20_000, newest_first=newest_first), limit))
        runs = list(through(partial(jobs.of_task, task, since=None, until=None, newest_first=newest_first), limit))
        found.append((whole, runs))
        assert len({job.id for job in whole}) == len(whole) and len(runs) == 5
    assert found[0] == found[1]


_owners = itertools.count()


@pytest.fixture(scope="module")
def two(local_dynamodb: "DynamoDBClient") -> Iterator[tuple[Jobs, Jobs]]:
    local_dynamodb.create_table(TableName="jobs-of-two", **tables.JOBS)
    yield MemoryJobs(), DynamoJobs(local_dynamodb, "jobs-of-two")
    local_dynamodb.delete_table(TableName="jobs-of-two")


def through(read: Callable[..., Page], limit: int) -> Iterator[Job]:
    """All jobs, page by page."""
    cursor = None
    while True:
        page = read(after=cursor, limit=limit)
        yield from page.jobs
        cursor = page.cursor
        if cursor is None:
            return


@pytest.mark.parametrize("newest_first", [True, False])
def test_the_runs_of_a_task_are_paged_by_time(jobs: Jobs, newest_first: bool) -> None:
    task, other = TaskKey("ada", "01JD4Q8XKZ38W2M5R7T9V1C4FH"), TaskKey("ada", "01JD4Q8XKZ38W2M5R7T9V1C4FJ")
    runs = [make.run(task, at=NOW + 1_000 * number) for number in range(7)]
    for job in [*runs, make.run(other), make.job(), make.run(TaskKey("eve", task.id))]:
        assert jobs.put(job)
    in_order = runs[::-1] if newest_first else runs
    for limit in (1, 3, 7, 8):
        assert list(through(partial(jobs.of_task, task, since=None, until=None, newest_first=newest_first), limit)) == in_order
    within = jobs.of_task(task, since=NOW + 1_000, until=NOW + 3_000, after=None, limit=10, newest_first=False)
    assert within == Page(runs[1:3])
    page = jobs.of_task(task, since=None, until=None, after=None, limit=3, newest_first=newest_first)
    assert page.cursor == in_order[2].id
    assert jobs.of_task(task, since=NOW, until=NOW, after=None, limit=10, newest_first=False) == Page()


def test_the_runs_of_a_task_are_read_with_their_present_state(jobs: Jobs) -> None:
    task = TaskKey("ada", "01JD4Q8XKZ38W2M5R7T9V1C4FH")
    kept, gone = make.run(task), make.run(task, at=NOW + 1_000)
    assert jobs.put_many([kept, gone]) == [Written.YES, Written.YES]
    (done,) = settle(jobs, make.run(task, at=NOW + 2_000, payload={"number": 1}))
    assert jobs.withdraw([gone.key]) == [Written.YES]
    assert jobs.of_task(task, since=None, until=None, after=None, limit=10, newest_first=False).jobs == [kept, done]


def settle(jobs: Jobs, *made: Job) -> Sequence[Job]:
    """Run the jobs: a job with an odd number in its payload fails."""
    ended = []
    for job in made:
        jobs.put(job)
        (result,) = jobs.claim([make.request(job, due_by=NOW + 1_000_000)])
        assert result is not None and result.job is not None
        after = make.failed(result.job) if job.spec.payload["number"] % 2 else make.succeeded(result.job)
        assert jobs.change([Change(result.job, after)]) == [Written.YES]
        ended.append(after)
    return ended


def test_failures_are_listed_newest_first_without_the_others(jobs: Jobs) -> None:
    ended = settle(jobs, *(make.job(at=NOW + number, payload={"number": number}) for number in range(10)))
    settle(jobs, make.job(owner="eve", payload={"number": 1}))
    dead = [job for job in reversed(ended) if job.failed_at]
    first = jobs.failures("ada", since=None, until=None, after=None, limit=3)
    assert first.jobs == dead[:3] and first.cursor is not None
    second = jobs.failures("ada", since=None, until=None, after=first.cursor, limit=3)
    assert second.jobs == dead[3:] and second.cursor is None


def place(job: Job) -> str:
    """The position of a dead job."""
    return ids.queue_position(job.id, job.scheduled_at, job.created_at)


def test_dead_jobs_of_one_instant_are_listed_as_they_were_created(jobs: Jobs) -> None:
    """The order of ordering queues: in it, a redrive runs the jobs of a key."""
    made = [make.job(payload={"number": 1}, created_at=NOW - number) for number in range(8)]  # their ids rise
    ended = settle(jobs, *reversed(made))
    first, cursor = jobs.letters("ada", since=None, until=None, after=None, limit=5, newest_first=False)
    rest, end = jobs.letters("ada", since=None, until=None, after=cursor, limit=5, newest_first=False)
    found = first + rest
    assert (len(first), end) == (5, None)
    assert [letter.key for letter in found] == [job.key for job in ended]
    newest = jobs.letters("ada", since=None, until=None, after=None, limit=9, newest_first=True)
    assert newest == (found[::-1], None)
    assert jobs.failures("ada", since=None, until=None, after=None, limit=9).jobs == ended[::-1]


def test_letters_list_dead_jobs_without_reading_them(jobs: Jobs) -> None:
    """Page by page, newest first, in the same bounds as failures."""
    ended = settle(jobs, *(make.job(at=NOW + number, payload={"number": number}) for number in range(10)))
    settle(jobs, make.job(owner="eve", payload={"number": 1}))
    dead = [job for job in reversed(ended) if job.failed_at]
    expected = [DeadLetter(job.key, place(job), "log", None, job.fingerprint, NOW + 100) for job in dead]
    first, cursor = jobs.letters("ada", since=None, until=None, after=None, limit=3, newest_first=True)
    assert first == expected[:3] and cursor == first[-1].position
    assert jobs.letters("ada", since=None, until=None, after=cursor, limit=3, newest_first=True) == (expected[3:], None)
    assert jobs.letters("ada", since=NOW + 3, until=NOW + 6, after=None, limit=9, newest_first=True) == (expected[2:4], None)
    assert jobs.letters("ada", since=NOW + 3, until=NOW + 3, after=None, limit=9, newest_first=True) == ([], None)


def test_a_letter_names_the_task_of_a_run(jobs: Jobs) -> None:
    task = make.task()
    (dead,) = settle(jobs, make.run(task.key, payload={"number": 1}))
    ((letter,), _) = jobs.letters("ada", since=None, until=None, after=None, limit=9, newest_first=True)
    assert (letter.task, letter.key, letter.fingerprint) == (task.id, dead.key, dead.fingerprint)


def test_a_rescheduled_job_that_fails_is_listed_by_its_new_time(jobs: Jobs) -> None:
    early, late = make.job(payload={"number": 1}), make.job(at=NOW + 1_000, payload={"number": 1})
    put_off = make.rescheduled(early, NOW + 2_000)
    ended = settle(jobs, put_off, late)
    assert jobs.failures("ada", since=None, until=None, after=None, limit=5).jobs == ended[:]
    first = jobs.failures("ada", since=None, until=None, after=None, limit=1)
    assert first == Page([ended[0]], place(put_off))
    assert jobs.failures("ada", since=None, until=None, after=first.cursor, limit=1) == Page([ended[1]])
    assert jobs.failures("ada", since=NOW, until=NOW + 1_000, after=None, limit=5).jobs == []


def test_failures_respect_their_bounds(jobs: Jobs) -> None:
    ended = settle(jobs, *(make.job(at=NOW + number, payload={"number": 1}) for number in range(5)))
    page = jobs.failures("ada", since=NOW + 1, until=NOW + 3, after=None, limit=10)
    assert page.jobs == [ended[2], ended[1]]
    assert jobs.failures("ada", since=NOW + 3, until=NOW + 3, after=None, limit=10).jobs == []
