"""Jobs as items."""

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.admission import gate
from scheduler.model import ids, settlement
from scheduler.model.job import (
    Attempt,
    Claim,
    DeadLetter,
    Failure,
    FailureKind,
    Job,
    Lane,
    Misfire,
    Outcome,
    Overlap,
    RequeueCause,
    Result,
    RunInfo,
)
from scheduler.model.lifecycle import Event
from scheduler.model.rules import Rules
from scheduler.storage.aws import items, keys
from tests.contract import make, records, tables
from tests.contract.make import NOW
from tests.events import happen

LARGE = {"spec.payload", "output", "response", "attempts", "progress", "notifications"}  # no part of an outline
all_jobs = records.of(
    Job,
    owner=st.text(min_size=1),
    id=records.some_ids,
    slot=st.none() | st.text(min_size=1),
    origin=st.none() | records.of(RunInfo, task=records.some_ids),
    fence=st.integers(1, 1000),
)


@pytest.mark.long
@records.unshrunk
@given(all_jobs)
def test_a_job_is_read_back_from_its_item(job: Job) -> None:
    assert records.differing(items.decode(items.encode(job)), job) == []


@pytest.mark.long
@records.unshrunk
@given(all_jobs)
def test_an_outline_has_every_field_but_the_large_ones(job: Job) -> None:
    read = {name: value for name, value in items.encode(job).items() if name in items.OUTLINE}
    assert set(records.differing(items.outline(read), job)) - LARGE == set(), "items.OUTLINE lacks these fields"


@pytest.mark.long
@given(all_jobs)
def test_the_due_index_projects_the_due_entry(job: Job) -> None:
    job = replace(job, slot="2026-11-20T10:01#00")
    projected = {name: value for name, value in items.encode(job).items() if name in ("pk", "sk", "slot", "due_at", "lane", "fence")}
    entry = items.due_entry(projected)
    assert (entry.key, entry.slot, entry.due_at, entry.lane, entry.fence) == (
        job.key,
        job.slot,
        job.due_at,
        job.lane,
        job.fence,
    )


@pytest.mark.long
@records.unshrunk
@given(all_jobs, all_jobs)
def test_the_differences_turn_one_job_into_the_other(before: Job, other: Job) -> None:
    after = replace(other, owner=before.owner, id=before.id)
    sets, removes = items.differences(before, after)
    item = {name: value for name, value in (items.encode(before) | sets).items() if name not in removes}
    assert records.differing(items.decode(item), after) == []


def test_unchanged_attributes_are_not_written() -> None:
    job = make.job()
    assert items.differences(job, job) == ({}, [])
    assert items.differences(job, make.moved(job, "elsewhere")) == ({"slot": {"S": "elsewhere"}, "looks": {"N": "1"}}, [])


def test_defaults_are_not_stored() -> None:
    assert set(items.encode(make.job())) == {"pk", "sk", "v", "type", "payload", "scheduled_at", "due_at", "created_at", "fence", "slot"}


def test_every_kind_of_failure_is_stored_by_its_value() -> None:
    values = {"retryable", "permanent", "throttled", "timeout", "crashed", "cancelled", "buried", "refused"}
    assert {str(kind) for kind in FailureKind} == values
    for kind in FailureKind:
        attempt = Attempt(1, NOW, NOW, NOW + 9, Outcome.FAILED, Failure(kind, "no"))
        item = items.encode(make.job(attempts=(attempt,)))
        assert json.loads(item["attempts"]["S"])[0][5] == [kind.value, "no"]
        assert items.decode(item).attempts == (attempt,)


def test_an_unknown_kind_of_failure_is_readable() -> None:
    item = items.encode(make.job(attempts=(Attempt(1, NOW, NOW, NOW + 9, Outcome.FAILED, Failure(FailureKind.PERMANENT, "no", 7)),)))
    item["attempts"]["S"] = item["attempts"]["S"].replace("permanent", "melted")
    (attempt,) = items.decode(item).attempts
    assert attempt.failure == Failure(FailureKind.RETRYABLE, "melted: no", 7)


def test_a_job_of_a_paused_lane_stores_the_cause_of_its_wait() -> None:
    job = settlement.requeue(make.claimed(make.job()), RequeueCause.PAUSED, gate.PAUSED.reason, NOW, Rules(shards=1))
    item = items.encode(job)
    assert (item["requeue_cause"], item["reason"]) == ({"S": "paused"}, {"S": "its lane is paused"})
    assert items.decode(item) == job


def test_an_unknown_cause_is_none() -> None:
    item = items.encode(make.job(fence=2, reason="why")) | {"requeue_cause": {"S": "flooded"}}
    assert items.decode(item).requeue_cause is None


def ended(job: Job, event: Event, **data: Any) -> Job:
    claimed = replace(job, claim=Claim("m" * 36, "m" * 36 + "/" + "r" * 36 + "/1", NOW - 400, False))
    return happen(claimed, event, NOW + 12, started_at=NOW, **data)


def test_a_typical_job_always_fits_into_one_write_unit() -> None:
    job = make.job(owner="0" * 36, payload={"message": "x" * 80})
    done = ended(job, Event.SUCCEED, result=Result("x" * 80))
    dead = ended(job, Event.FAIL, result=Result(failure=Failure(FailureKind.PERMANENT, "y" * 80)), reason="y" * 80)
    sizes = [items.size(items.encode(stage)) for stage in (job, done, dead)]
    assert max(sizes) <= 1024 and sizes == sorted(sizes)


def run(**fields: Any) -> Job:
    """A run of a recurring task, with fields of typical lengths."""
    task = ids.new(NOW - 86_400_000, 2**75 - 1)
    origin = RunInfo(task, 12, NOW, Overlap.CANCEL_RUNNING, Misfire.RUN_LATEST)
    return make.job(
        **({"owner": "0" * 36, "id": ids.run(NOW, task, 12), "lane": Lane.RECURRING, "origin": origin, "start_by": NOW} | fields)
    )


def test_an_ended_run_of_a_task_fits_into_one_write_unit() -> None:
    usual = run(payload={"message": "x" * 80}, tags=("billing", "nightly"))
    assert usual.origin is not None
    in_order = replace(usual.origin, misfire=Misfire.RUN_ALL, late_from=NOW, previous_at=NOW, next_at=NOW)
    origins = (usual.origin, in_order, replace(in_order, notify=True))
    done = [ended(replace(usual, origin=origin), Event.SUCCEED, result=Result("x" * 80)) for origin in origins]
    assert max(items.size(items.encode(job)) for job in done) <= 1024


@pytest.mark.parametrize("fields", [{}, {"misfire": None}, {"misfire": Misfire.RUN_ALL, "late_from": NOW}])
def test_the_notify_flag_of_a_run_is_stored_only_if_set(fields: dict[str, Any]) -> None:
    made = run()
    assert made.origin is not None
    silent, told = (replace(made, origin=replace(made.origin, notify=notify, **fields)) for notify in (False, True))
    assert [items.decode(items.encode(job)) for job in (silent, told)] == [silent, told]
    assert items.size(items.encode(told)) - items.size(items.encode(silent)) <= 25


def test_only_a_run_is_in_the_index_of_its_task() -> None:
    made = run()
    assert made.origin is not None
    assert items.encode(made)["task"] == {"S": f"{made.owner}#{made.origin.task}"}
    assert "task" not in items.encode(make.job())


def test_only_a_rescheduled_job_is_in_the_index_of_moved_jobs() -> None:
    job = make.job()
    later = make.rescheduled(job, NOW + 5_000)
    sets, removes = items.differences(job, later)
    assert (sets["moved_partition"], sets["moved_position"]) == (
        {"S": keys.moved_partition(job.key)},
        {"S": ids.position(job.id, NOW + 5_000)},
    )
    assert "moved_partition" not in items.encode(job) and "moved_partition" not in removes
    assert {"moved_partition", "moved_position"} <= set(items.differences(later, make.rescheduled(later, NOW))[1])


def test_only_failed_and_killed_jobs_are_in_the_index_of_failures() -> None:
    job = make.job()
    dead = ended(job, Event.FAIL, result=Result(failure=Failure(FailureKind.PERMANENT, "no")), reason="no")
    killed = ended(job, Event.KILL, result=Result(failure=Failure(FailureKind.TIMEOUT, "no")), reason="no")
    done = ended(job, Event.SUCCEED, result=Result())
    assert ["failed_position" in items.encode(stage) for stage in (job, dead, killed, done)] == [False, True, True, False]
    assert {"failed_position", "failed_at", "expires", "fingerprint"} <= set(items.differences(dead, make.redriven(dead))[1])
    assert "failed_position" not in items.encode(
        replace(dead, slot="2026-11-20T10:01#00")
    )  # still open, although it has an instant of failure


def test_failed_and_moved_jobs_of_an_owner_are_in_several_partitions() -> None:
    """A partition takes 1,000 write units a second, and an index refuses the writes of its table."""
    names = {index["IndexName"]: index["KeySchema"][0]["AttributeName"] for index in tables.JOBS["GlobalSecondaryIndexes"]}
    made = [items.encode(make.failed(make.rescheduled(make.job(), NOW + 5_000))) for _ in range(800)]
    spread = {name: Counter(item[names[name]]["S"] for item in made) for name in (keys.FAILURES, keys.MOVED)}
    assert {name: sorted(found) for name, found in spread.items()} == {
        keys.FAILURES: keys.partitions("ada"),
        keys.MOVED: keys.moved_partitions("ada"),
    }
    assert len(spread[keys.FAILURES]) == ids.PARTITIONS and max(spread[keys.MOVED].values()) < 150


def test_the_failures_index_projects_the_dead_letter() -> None:
    job = run(slot=None, killed_at=NOW + 5, fingerprint="0123456789ab")
    assert job.origin is not None
    projected = {name: value for name, value in items.encode(job).items() if name in ("pk", "sk", "failed_position", *tables.TOLD)}
    assert items.letter(projected) == DeadLetter(
        job.key, ids.queue_position(job.id, job.scheduled_at, job.created_at), "log", job.origin.task, "0123456789ab", NOW + 5
    )
    assert set(tables.TOLD) <= {*projected, "failed_at"}


def test_owner_and_unit_are_read_from_keys() -> None:
    job = make.job(owner="some#body")
    assert keys.owner(keys.job(job.key)["pk"]["S"]) == "some#body"
    assert keys.job(job.key)["pk"]["S"] in keys.partitions("some#body")
