"""Keys that owners choose: the entries of keys, written with the job or the task that takes them."""

import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from scheduler.model.errors import Unavailable
from scheduler.model.job import Job, KeyEntry, OwnKey
from scheduler.storage.aws import clients, keys
from scheduler.storage.aws.jobs import DynamoJobs
from scheduler.storage.ports import KEY_RETENTION_MS, Jobs, KeyTaking, Tasks, Written
from tests.contract import make, tables
from tests.contract.make import NOW
from tests.contract.wire import Wire

_numbers = itertools.count(1)
CONFLICT = [{"Code": "TransactionConflict"}, {"Code": "None"}]


def a_key(owner: str = "ada") -> OwnKey:
    return OwnKey(owner, f"order {next(_numbers)} é")


def named(own: OwnKey, **fields: Any) -> Job:
    return make.job(owner=own.owner, key=own.key, **fields)


def entry(job: Job) -> KeyEntry:
    assert job.own_key is not None
    return KeyEntry(job.own_key, job.id)


def test_a_job_is_stored_with_the_entry_of_its_key(jobs: Jobs) -> None:
    own, other = a_key(), a_key()
    job, second = named(own), named(other)
    assert jobs.key_entries([own, other]) == {}
    assert jobs.take_keys([KeyTaking(None, job), KeyTaking(None, second)]) == [Written.YES, Written.YES]
    assert jobs.get(job.key) == job and jobs.key_entries([own]) == {own: entry(job)}
    assert jobs.key_entries([own, other, own, a_key()]) == {own: entry(job), other: entry(second)}
    assert jobs.take_keys([]) == [] and jobs.key_entries([]) == {}


def test_the_next_job_takes_a_key_from_the_job_that_its_entry_names(jobs: Jobs) -> None:
    own = a_key()
    first, second, third = named(own), named(own), named(own)
    assert jobs.take_keys([KeyTaking(None, first)]) == [Written.YES]
    assert jobs.take_keys([KeyTaking(entry(first), second)]) == [Written.YES]
    for before in (None, entry(first), entry(third)):
        assert jobs.take_keys([KeyTaking(before, third)]) == [Written.NO]
    assert jobs.get(third.key) is None and jobs.key_entries([own]) == {own: entry(second)}


def test_a_taking_that_was_applied_before_is_recognized(jobs: Jobs) -> None:
    own = a_key()
    first, second = named(own), named(own)
    for taking in (KeyTaking(None, first), KeyTaking(entry(first), second)):
        assert [jobs.take_keys([taking]) for _ in range(2)] == [[Written.YES]] * 2
    assert jobs.take_keys([KeyTaking(None, first)]) == [Written.NO]


def test_a_job_whose_id_is_taken_gets_no_key(jobs: Jobs) -> None:
    own = a_key()
    stored = named(own)
    assert jobs.put(stored)
    assert jobs.take_keys([KeyTaking(None, stored)]) == [Written.NO]
    assert jobs.key_entries([own]) == {}


def test_owners_have_their_own_keys(jobs: Jobs) -> None:
    mine, theirs = OwnKey("ada", "k"), OwnKey("bob", "k")
    assert jobs.take_keys([KeyTaking(None, named(mine)), KeyTaking(None, named(theirs))]) == [Written.YES, Written.YES]


def test_of_many_takings_at_once_one_is_applied(jobs: Jobs) -> None:
    own = a_key()
    first, *others = (named(own) for _ in range(9))
    assert jobs.take_keys([KeyTaking(None, first)]) == [Written.YES]
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda job: jobs.take_keys([KeyTaking(entry(first), job)])[0], others))
    assert sorted(done.count(each) for each in (Written.YES, Written.NO)) == [1, 7]
    (winner,) = (job for job, written in zip(others, done, strict=True) if written is Written.YES)
    assert jobs.key_entries([own]) == {own: entry(winner)}
    assert [jobs.get(job.key) is not None for job in others] == [job is winner for job in others]


def test_a_redriven_job_takes_its_key_again(jobs: Jobs) -> None:
    """From itself, from a job that has ended, or where the entry has expired."""
    own = a_key()
    first, second = named(own), named(own)
    dead, other = (make.failed(make.claimed(job)) for job in (first, second))
    assert jobs.take_keys([KeyTaking(None, dead)]) == [Written.YES]
    lives = make.redriven(dead)
    assert [jobs.take_keys([KeyTaking(entry(first), lives, dead)]) for _ in range(2)] == [[Written.YES]] * 2
    assert jobs.get(first.key) == lives and jobs.key_entries([own]) == {own: KeyEntry(own, first.id, 1)}
    for before in (None, entry(first)):
        assert jobs.take_keys([KeyTaking(before, second)]) == [Written.NO], "it was read before the redrive"
    assert jobs.take_keys([KeyTaking(KeyEntry(own, first.id, 1), other)]) == [Written.YES]
    assert jobs.take_keys([KeyTaking(entry(second), make.redriven(lives_no_more := make.failed(make.claimed(lives))), lives_no_more)]) == [
        Written.NO
    ], "the job is not stored as dead"
    assert jobs.key_entries([own]) == {own: entry(second)}


def test_of_two_redrives_of_one_job_one_is_applied(jobs: Jobs) -> None:
    own = a_key()
    dead = make.failed(make.claimed(named(own)))
    assert jobs.take_keys([KeyTaking(None, dead)]) == [Written.YES]
    mine, theirs = (replace(make.redriven(dead), redriven_by=by) for by in ("mine", "theirs"))
    assert jobs.take_keys([KeyTaking(entry(dead), mine, dead)]) == [Written.YES]
    assert jobs.take_keys([KeyTaking(entry(dead), theirs, dead)]) == [Written.NO]
    assert jobs.get(dead.key) == mine


def test_a_key_is_prolonged_only_for_the_job_that_its_entry_names(jobs: Jobs) -> None:
    own = a_key()
    first, second = named(own), named(own)
    jobs.take_keys([KeyTaking(None, first)])
    assert jobs.prolong_key(replace(first, scheduled_at=NOW + KEY_RETENTION_MS)) is Written.YES
    assert jobs.prolong_key(second) is Written.NO is jobs.prolong_key(named(a_key())) is jobs.prolong_key(make.job())
    assert jobs.key_entries([own]) == {own: entry(first)}


def test_the_entry_of_a_key_outlives_its_job(local_dynamodb: Any) -> None:
    local_dynamodb.create_table(TableName=(name := f"jobs-own-keys-{next(_numbers)}"), **tables.JOBS)
    jobs, own = DynamoJobs(local_dynamodb, name), a_key()
    job = named(own, at=NOW + 5)

    def expires() -> int:
        return int(local_dynamodb.get_item(TableName=name, Key=keys.own_key(own))["Item"]["expires"]["N"])

    jobs.take_keys([KeyTaking(None, job)])
    assert expires() == (NOW + 5 + KEY_RETENTION_MS) // 1_000
    jobs.prolong_key(replace(job, scheduled_at=NOW + KEY_RETENTION_MS))
    assert expires() == (NOW + 2 * KEY_RETENTION_MS) // 1_000


def test_the_entries_of_keys_are_no_jobs_and_no_tasks(jobs: Jobs) -> None:
    own = a_key()
    jobs.take_keys([KeyTaking(None, named(own))])
    key = keys.own_key(own)["pk"]["S"]
    assert keys.is_beside_jobs(key) and key.startswith(keys.BESIDE_TASKS)


# tasks


def test_a_new_task_is_stored_with_the_entry_of_its_key(tasks: Tasks) -> None:
    own = a_key()
    first, second = make.task(key=own.key), make.task(key=own.key)
    assert tasks.of_key(own) is None
    assert tasks.store(None, first, []) and tasks.of_key(own) == first.id
    assert tasks.store(None, first, [])  # an earlier answer was lost
    for former in (None, second.id):
        assert not tasks.store(None, second, [], former=former)
    assert tasks.get(second.key) is None and tasks.of_key(own) == first.id
    assert tasks.store(first, replace(first, generation=2), []) and tasks.of_key(own) == first.id
    assert tasks.store(None, second, [], former=first.id) and tasks.of_key(own) == second.id


def test_a_deleted_task_leaves_its_key_to_the_next_one(tasks: Tasks) -> None:
    own = a_key()
    first, second = make.task(key=own.key), make.task(key=own.key)
    tasks.store(None, first, [])
    tasks.store(None, second, [], former=first.id)
    assert tasks.delete(first) and tasks.of_key(own) == second.id
    assert tasks.delete(second) and tasks.of_key(own) is None


# transactions in progress


@pytest.fixture
def wired() -> tuple[DynamoJobs, Wire, list[float]]:
    client, pauses = clients.dynamodb(region_name="us-east-1"), list[float]()
    jobs = DynamoJobs(client, "jobs")
    jobs._table.pause = pauses.append
    return jobs, Wire(client), pauses


def clears(wire: Wire, operation: str, times: int, answer: Any) -> None:
    """Let the operation meet a transaction in progress this often, and succeed after that."""
    if operation == "TransactWriteItems":
        wire.refuse(operation, "TransactionCanceledException", CancellationReasons=CONFLICT)
    else:
        wire.refuse(operation, "TransactionConflictException")
    refused, left = wire.answers[operation], [times]

    def answered(params: dict[str, Any]) -> Any:
        left[0] -= 1
        return refused(params) if left[0] >= 0 else (Wire.OK, answer)

    wire.answers[operation] = answered


def test_a_taking_waits_for_a_transaction_in_progress(wired: tuple[DynamoJobs, Wire, list[float]]) -> None:
    jobs, wire, pauses = wired
    clears(wire, "TransactWriteItems", 3, {})
    assert jobs.take_keys([KeyTaking(None, named(a_key()))]) == [Written.YES]
    assert len(pauses) == 3 and sum(pauses) < 0.1


def test_a_single_change_waits_for_a_transaction_in_progress(wired: tuple[DynamoJobs, Wire, list[float]]) -> None:
    jobs, wire, pauses = wired
    clears(wire, "UpdateItem", 2, {})
    assert jobs.prolong_key(named(a_key())) is Written.YES and len(pauses) == 2


def test_a_table_that_stays_locked_refuses(wired: tuple[DynamoJobs, Wire, list[float]]) -> None:
    jobs, wire, pauses = wired
    clears(wire, "TransactWriteItems", 99, {})
    assert jobs.take_keys([KeyTaking(None, named(a_key()))]) == [Written.REFUSED] and sum(pauses) < 1
    wire.refuse("TransactWriteItems", "ThrottlingException")
    assert jobs.take_keys([KeyTaking(None, named(a_key()))]) == [Written.REFUSED]
    wire.refuse("GetItem", "ThrottlingException")
    with pytest.raises(Unavailable):
        jobs.key_entries([a_key()])
