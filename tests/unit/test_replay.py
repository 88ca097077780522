"""Replays: a new job does the work of an ended one again; the original stays as it is."""

from dataclasses import fields, replace
from typing import Any

import pytest

from scheduler.jobs.replay import OF_ORIGINAL, check_ended, replay
from scheduler.model import ids, lifecycle, slots
from scheduler.model.errors import Conflict
from scheduler.model.job import Job, Lane, Overlap, RunInfo, Status
from scheduler.model.notifications import Notifications
from scheduler.model.operation import Action, Operation, State
from scheduler.model.rules import Rules
from scheduler.model.spec import JobSpec, OnFailure, Ordering
from scheduler.operations import requests
from scheduler.operations.replay_jobs import ReplayJobs, replay_id
from scheduler.operations.step import OperationStep
from scheduler.pipeline.submit import submit
from scheduler.targets.job_context import JobContext
from tests.conftest import NOW, a_job
from tests.unit.stage import Wrapped, refuse, times
from tests.unit.test_operations import OperationsStage

PAST = NOW - 3_600_000
TAKEN_OVER = {"type", "payload", "target", "tags", "max_attempts", "retry", "timeout_ms", "callback", "events", "placeholders", "limit"}


class Killed(Exception):
    """The function ends at once."""


def ended(**others: Any) -> Job:
    return replace(a_job(slot=None, completed_at=NOW, created_at=PAST), **others)


def replays(stage: OperationsStage) -> list[Job]:
    return sorted((job for job in stage.jobs.rows.values() if job.replay_of is not None), key=lambda job: job.replay_of or "")


# One job


def test_each_field_of_a_spec_is_taken_over_or_belongs_to_the_original() -> None:
    assert TAKEN_OVER | OF_ORIGINAL.keys() == {field.name for field in fields(JobSpec)}
    assert not TAKEN_OVER & OF_ORIGINAL.keys()


def test_a_replay_is_a_new_job_with_the_work_of_the_original() -> None:
    stage, ordering = OperationsStage(), Ordering("line", OnFailure.PAUSE)
    spec = JobSpec("log", {"message": "hello"}, tags=("a",), max_attempts=7, key="mine", ordering=ordering, events=True)
    original = ended(spec=spec, start_by=NOW + 5, put_by="p", redrives=2, redriven_by="r", attempts=(), notifications=Notifications((), ()))
    stage.jobs.put(original)
    new = submit(replay(original), stage, random=7)
    assert new == stage.stored(new) and stage.stored(original) == original
    assert new.spec == replace(spec, key=None, ordering=None) and new.notifications == original.notifications
    assert (new.id != original.id, new.replay_of, new.scheduled_at) == (True, original.id, NOW)
    assert (new.start_by, new.put_by, new.redrives, new.redriven_by, new.fence) == (None, None, 0, None, 1)


def test_a_replay_may_change_payload_and_time_and_keep_its_ordering_key() -> None:
    spec = JobSpec("log", {"message": "hello"}, ordering=Ordering("line"))
    made = replay(ended(spec=spec), payload={"message": "{{job_id}}"}, execute_at=NOW + 9, keep_ordering=True)
    assert (made.spec.payload, made.spec.placeholders, made.spec.ordering) == ({"message": "{{job_id}}"}, True, Ordering("line"))
    assert (made.execute_at, replay(ended(), delay_ms=5).start(NOW)) == (NOW + 9, NOW + 5)


def test_a_replay_of_a_run_is_a_one_time_job_for_the_time_of_the_run() -> None:
    stage = OperationsStage()
    run = ended(origin=RunInfo("a task", 3, PAST, Overlap.SKIP), lane=Lane.RECURRING, spec=JobSpec("log", {}, key="key of the task"))
    first = submit(replay(run), stage, random=7)
    second = submit(replay(replace(first, slot=None, completed_at=NOW)), stage, random=8)
    for new in (first, second):
        assert (new.origin, new.lane, new.spec.key, new.own_key) == (None, Lane.ONE_TIME, None, None)
        assert (JobContext.of(new, None).nominal_at, JobContext.of(new, None).scheduled_at) == (PAST, NOW)
    assert (first.replay_of, second.replay_of) == (run.id, first.id)


def test_only_a_job_that_has_ended_is_replayed() -> None:
    check_ended(ended(), NOW)
    with pytest.raises(Conflict, match="the job has not ended: it is scheduled"):
        check_ended(a_job(due_at=NOW + 1), NOW)


# Many jobs


def test_each_ended_job_that_ran_is_replayed_once_the_earliest_first() -> None:
    stage = OperationsStage()
    jobs = stage.ended(30, PAST)
    stage.ahead(1)
    gone = stage.ended(1, PAST)[0]
    stage.jobs.rows[gone.key] = replace(gone, completed_at=None, skipped_at=PAST)
    record = stage.begin(Action.REPLAY_JOBS, rate=10)
    stage.step(record)
    assert stage.counts(record) == (State.DONE, 30, 0, 0)
    assert [job.replay_of for job in replays(stage)] == sorted(job.id for job in jobs)
    starts = [job.scheduled_at for job in replays(stage)]
    assert starts == sorted(starts) and 2_000 <= starts[-1] - starts[0] <= 3_000
    assert not any(lifecycle.is_late(job, job.created_at) for job in replays(stage))
    assert stage.statuses(replays(stage)) == {Status.SCHEDULED} and [stage.stored(job) for job in jobs] == jobs


@pytest.mark.parametrize(
    ("filter", "count"),
    [
        ({"statuses": ("skipped",)}, 1),
        ({"statuses": ("failed", "killed")}, 1),
        ({"type": "http"}, 1),
        ({"tags": ("a",)}, 1),
        ({"since": PAST + 1_000, "until": PAST + 3_000}, 2),
        ({"task": ids.new(NOW, 4)}, 0),
    ],
)
def test_only_ended_jobs_that_match_are_replayed(filter: dict[str, Any], count: int) -> None:
    stage = OperationsStage()
    jobs = stage.ended(6, PAST)
    kinds: list[dict[str, Any]] = [{"skipped_at": PAST + 5}, {"failed_at": PAST + 5}]
    for job, ends in zip(jobs, kinds, strict=False):
        stage.jobs.rows[job.key] = replace(job, completed_at=None, **ends)
    stage.jobs.rows[jobs[2].key] = replace(jobs[2], spec=replace(jobs[2].spec, type="http"))
    stage.jobs.rows[jobs[3].key] = replace(jobs[3], spec=replace(jobs[3].spec, tags=("a",)))
    planned = stage.planned(Action.REPLAY_JOBS, **filter)
    assert requests.estimate(planned, stage).matched == count and not replays(stage)
    record = stage.begin(Action.REPLAY_JOBS, **filter)
    stage.step(record)
    assert stage.counts(record) == (State.DONE, count, 0, 0) and len(replays(stage)) == count


def test_jobs_that_ended_after_the_start_and_the_replays_themselves_stay() -> None:
    stage = OperationsStage()
    job, late = stage.ended(2, PAST)
    record = stage.begin(Action.REPLAY_JOBS)
    stage.jobs.rows[late.key] = replace(late, completed_at=record.started_at + 1)
    stage.step(record)
    assert [each.replay_of for each in replays(stage)] == [job.id] and stage.counts(record) == (State.DONE, 1, 0, 0)


def test_a_limit_ends_the_operation() -> None:
    stage = OperationsStage()
    jobs = stage.ended(9, PAST)
    record = stage.begin(Action.REPLAY_JOBS, limit=4)
    stage.step(record)
    assert [each.replay_of for each in replays(stage)] == [job.id for job in jobs[:4]]


def test_a_chunk_that_is_carried_out_again_replays_no_job_twice() -> None:
    stage = OperationsStage()
    jobs = stage.ended(20, PAST)
    record, died = stage.begin(Action.REPLAY_JOBS), 0
    inner = stage.operations

    def progress(verb: Any, before: Operation, after: Operation) -> bool:
        nonlocal died
        if before.pending and after.done > before.done and died < 3:  # the replays are stored, and not counted yet
            died += 1
            raise Killed
        return bool(verb(before, after))

    stage.operations = Wrapped(inner, change=progress)
    for _ in range(3):
        with pytest.raises(Killed):
            OperationStep(stage, lambda: None).run(record.owner, record.id)
        stage.clock.advance(60_000)
        redriven = stage.stored(jobs[died])  # its owner retries one of them meanwhile
        stage.jobs.rows[jobs[died].key] = replace(redriven, completed_at=None, slot="2026-11-20T10:01#00", redriven_at=stage.clock.now())
    stage.step(record)
    assert died == 3 and stage.counts(record) == (State.DONE, 20, 0, 0)
    assert sorted(each.replay_of or "" for each in replays(stage)) == sorted(job.id for job in jobs)


def test_a_replay_that_the_table_refuses_is_stored_later() -> None:
    stage = OperationsStage()
    stage.ended(3, PAST)
    record = stage.begin(Action.REPLAY_JOBS)
    stage.jobs = Wrapped(stage.jobs, put_many=times(2, refuse))
    for _ in range(2):
        stage.work_off(until=stage.clock.now() + 60_000)
    assert stage.counts(record) == (State.DONE, 3, 0, 0) and len(replays(stage)) == 3


def test_a_payload_for_all_is_for_jobs_without_a_named_target() -> None:
    stage = OperationsStage()
    job, other = stage.ended(2, PAST)
    stage.jobs.rows[other.key] = replace(other, spec=replace(other.spec, target="named"))
    made = replace(stage.planned(Action.REPLAY_JOBS, type="log"), payload={"message": "again"})
    requests.start(made, stage)
    stage.clock.advance(5_000)
    stage.step(made)
    (new,) = replays(stage)
    assert (new.replay_of, new.spec.payload) == (job.id, {"message": "again"})


def test_a_stage_without_raw_http_replays_none_of_these_jobs() -> None:
    stage = OperationsStage(rules=Rules(raw_http=False))
    (job,) = stage.ended(1, PAST)
    stage.jobs.rows[job.key] = replace(job, spec=replace(job.spec, type="http"))
    assert requests.estimate(stage.planned(Action.REPLAY_JOBS), stage).matched == 0


def test_the_replays_of_a_crowd_go_to_the_overflow() -> None:
    stage = OperationsStage()
    stage.ended(20, PAST)
    stage.step(stage.begin(Action.REPLAY_JOBS))
    assert stage.waiting(Lane.ONE_TIME) == [] and all(slots.is_overflow(job.slot or "") for job in replays(stage))


def test_the_id_of_a_replay_follows_from_operation_original_and_chunk() -> None:
    stage = OperationsStage()
    record = replace(stage.planned(Action.REPLAY_JOBS), announced_at=NOW)
    other = replace(record, id=ids.new(NOW, 99))
    made = {replay_id(each, job) for each in (record, other, replace(record, announced_at=NOW + 1)) for job in ("a", "b")}
    assert len(made) == 6 and all(ids.is_job_id(each) for each in made)
    assert ReplayJobs(stage).key("ann", "x") == ("ann", "x")
