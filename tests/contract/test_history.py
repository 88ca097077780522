"""The port Jobs: lists by time and the index of failures."""

import itertools
from collections.abc import Sequence

import pytest

from scheduler import ids
from scheduler.model import Job
from scheduler.ports import Change, Jobs
from tests.contract import make
from tests.contract.make import NOW


@pytest.fixture
def ten(jobs: Jobs) -> list[str]:
    """Ids of ten jobs, a second apart, beside those of another owner."""
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


def test_history_pages_forward_in_order_of_time(jobs: Jobs, ten: list[str]) -> None:
    assert pages(jobs, 4, newest_first=False) == [ten[:4], ten[4:8], ten[8:]]


def test_history_pages_backward_in_order_of_time(jobs: Jobs, ten: list[str]) -> None:
    back = ten[::-1]
    assert pages(jobs, 4, newest_first=True) == [back[:4], back[4:8], back[8:]]


def test_a_last_page_that_is_full_has_no_cursor(jobs: Jobs, ten: list[str]) -> None:
    assert pages(jobs, 5, newest_first=True) == [ten[:4:-1], ten[4::-1]]
    assert pages(jobs, 10, newest_first=False) == [ten]
    assert pages(jobs, 1, newest_first=False) == [[one] for one in ten]


@pytest.mark.parametrize("newest_first", [True, False])
def test_history_keeps_to_its_bounds_the_upper_one_excluded(jobs: Jobs, ten: list[str], newest_first: bool) -> None:
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


def settle(jobs: Jobs, *made: Job) -> Sequence[Job]:
    """Run the jobs: those with a number in their payload that is odd fail."""
    ended = []
    for job in made:
        jobs.put(job)
        (result,) = jobs.claim([make.request(job, due_by=NOW + 1_000_000)])
        assert result is not None and result.job is not None
        after = make.failed(result.job) if job.payload["number"] % 2 else make.succeeded(result.job)
        assert jobs.change([Change(result.job, after)]) == [True]
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


def test_failures_keep_to_their_bounds(jobs: Jobs) -> None:
    ended = settle(jobs, *(make.job(at=NOW + number, payload={"number": 1}) for number in range(5)))
    page = jobs.failures("ada", since=NOW + 1, until=NOW + 3, after=None, limit=10)
    assert page.jobs == [ended[2], ended[1]]
    assert jobs.failures("ada", since=NOW + 3, until=NOW + 3, after=None, limit=10).jobs == []
