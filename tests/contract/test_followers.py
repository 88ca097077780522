"""The port Followers, and what the port Jobs notes of jobs that wait for others."""

import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from scheduler.model import ids, lifecycle
from scheduler.model.after import End, Ending, Follower, Kind, Predecessor, PredecessorKey, When
from scheduler.model.job import Job, JobKey, changed
from scheduler.storage.aws import keys
from scheduler.storage.aws.followers import DynamoFollowers
from scheduler.storage.memory.followers import MemoryFollowers
from scheduler.storage.ports import Change, EndNote, Followers, Jobs, Written
from tests.contract import make, tables
from tests.contract.make import NOW

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

ONE, OTHER = ids.new(NOW, 900), ids.new(NOW, 901)


@pytest.fixture(params=["memory", "dynamodb"])
def followers(request: pytest.FixtureRequest) -> Iterator[Followers]:
    if request.param == "memory":
        yield MemoryFollowers()
        return
    client: DynamoDBClient = request.getfixturevalue("local_dynamodb")
    name = f"tasks-{uuid.uuid4().hex}"
    client.create_table(TableName=name, **tables.TASKS)
    yield DynamoFollowers(client, name)


def waiting(jobs: Jobs, *predecessors: str) -> Job:
    job = make.job(after=tuple(Predecessor(id, When.ENDED) for id in predecessors))
    assert jobs.put(job)
    return job


def test_followers_are_read_page_by_page(followers: Followers) -> None:
    key = PredecessorKey("ada", Kind.JOB, ONE)
    mine = [Follower(key, ids.new(NOW, number), NOW + 9_000) for number in range(30)]
    assert followers.of(key, after=None, limit=10) == ([], None)
    assert followers.add(mine) == [Written.YES] * 30 and followers.add(mine[:2]) == [Written.NO] * 2
    others = [
        Follower(PredecessorKey("eve", Kind.JOB, ONE), ids.new(NOW, 99), NOW),
        Follower(key._replace(id=OTHER), ids.new(NOW, 98), NOW),
    ]
    followers.add(others)
    found, cursor = list[JobKey](), None
    while True:
        page, cursor = followers.of(key, after=cursor, limit=7)
        found += page
        if cursor is None:
            break
    assert found == [JobKey("ada", each.job) for each in mine]


def test_an_end_is_noted_once_and_beside_everything_else(jobs: Jobs) -> None:
    job = waiting(jobs, ONE, OTHER)
    first, second = End(Ending.FAILED), End(Ending.SKIPPED, "after: job X failed")
    ((done, after),) = jobs.note_ends([EndNote(job.key, 0, first)])
    assert done is Written.YES and after is not None and [each.end for each in after.after] == [first, None]
    again = jobs.note_ends([EndNote(job.key, 0, second), EndNote(job.key, 1, second)])
    assert [done for done, _ in again] == [Written.NO, Written.YES]
    assert jobs.get(job.key) == replace(
        job, after=tuple(replace(each, end=end) for each, end in zip(job.after, (first, second), strict=True))
    )


def test_a_note_survives_a_change_by_a_process_that_has_not_seen_it(jobs: Jobs) -> None:
    job = waiting(jobs, ONE)
    jobs.note_ends([EndNote(job.key, 0, End(Ending.SUCCEEDED))])
    (result,) = jobs.claim([make.request(job)])
    assert result is not None and result.job is not None and result.job.after[0].end == End(Ending.SUCCEEDED)
    unseen = replace(result.job, after=job.after)
    assert jobs.change([Change(unseen, lifecycle.requeue(unseen, reason="x"))]) == [Written.YES]
    stored = jobs.get(job.key)
    assert stored is not None and stored.after[0].end == End(Ending.SUCCEEDED)


def test_a_job_that_has_ended_or_is_gone_takes_no_note(jobs: Jobs) -> None:
    job, plain = waiting(jobs, ONE), make.job()
    jobs.put(plain)
    assert jobs.change([Change(job, lifecycle.cancel(job, NOW))]) == [Written.YES]
    notes = [EndNote(key, 0, End(Ending.FAILED)) for key in (job.key, JobKey("ada", OTHER))]
    assert [done for done, _ in jobs.note_ends(notes)] == [Written.NO] * 2
    assert jobs.follow([(job.key, NOW), (JobKey("ada", OTHER), NOW)]) == [Written.NO] * 2
    assert jobs.follow([]) == [] and jobs.note_ends([]) == []


def test_an_end_is_not_written_unless_it_knows_that_others_wait_for_it(jobs: Jobs) -> None:
    job = make.job()
    jobs.put(job)
    assert jobs.follow([(job.key, NOW + 90 * 86_400_000)]) == [Written.YES]
    assert jobs.change([Change(job, lifecycle.cancel(job, NOW))]) == [Written.NO]
    assert jobs.change([Change(job, lifecycle.move(job, slot="2026-11-20T23:59#15"))]) == [Written.YES], "any other change is"
    stored = jobs.get(job.key)
    assert stored is not None and stored.followed == NOW + 90 * 86_400_000
    ended = lifecycle.cancel(stored, NOW)
    assert jobs.change([Change(stored, ended)]) == [Written.YES]
    assert jobs.change([Change(stored, ended)]) == [Written.YES], "as if the first answer had been lost"
    assert jobs.get(job.key) == changed(ended, expires=(NOW + 90 * 86_400_000) // 1000)


def test_the_records_of_followers_are_no_tasks() -> None:
    assert keys.followers(PredecessorKey("ada", Kind.JOB, ONE)).startswith(keys.BESIDE_TASKS)
