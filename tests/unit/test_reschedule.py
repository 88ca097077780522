from dataclasses import replace
from typing import Any

import pytest

from scheduler.jobs.change import reschedule
from scheduler.model import ids, lifecycle, slots
from scheduler.model.errors import Conflict, Invalid, NotFound, Unavailable
from scheduler.model.job import Job, JobKey, Lane, Misfire, Overlap, Result, RunInfo
from scheduler.model.spec import JobSpec
from scheduler.storage.ports import Change, Written
from tests.conftest import NOW, SPEC, ScriptedPool, a_job
from tests.unit.stage import Stage, Wrapped, lost_answer, refuse, times

MINUTE, DAY = 60_000, 86_400_000


def change(stage: Stage, job: Job | JobKey, **wanted: Any) -> Job:
    key = job.key if isinstance(job, Job) else job
    spec = {name: wanted.pop(name) for name in SPEC & wanted.keys()}
    return reschedule(key, wanted | {"spec": spec}, stage)


def put(stage: Stage, **fields: Any) -> Job:
    job = a_job(**fields)
    assert stage.jobs.put(job)
    return job


def held(ahead: int) -> tuple[Stage, Job]:
    """A job that an executor has claimed and that waits for its instant."""
    stage = Stage()
    job = a_job(due_at=NOW + ahead)
    (item,) = stage.hand(job)
    return stage, stage.claim(item)


def run_all(stage: Stage, until: int) -> list[tuple[Job, int]]:
    """The jobs that start up to an instant, with an executor that polls the one-time lane every second."""
    pool = ScriptedPool(stage.clock)
    while stage.clock.now() <= until:
        if deliveries := stage.receive():
            stage.execute(deliveries, pool=pool)
        stage.clock.advance(1_000)
    return pool.starts


def in_lane(stage: Stage) -> list[int]:
    return sorted(queued.message.fence for queued in stage.lanes.queues[Lane.ONE_TIME].values())


# Its time


def test_postponed_job_keeps_its_id_and_waits_in_its_new_slot() -> None:
    stage = Stage()
    job = stage.submit(NOW + DAY)
    moved = change(stage, job, scheduled_at=NOW + 2 * DAY)
    assert (moved.id, moved.scheduled_at, moved.due_at, moved.fence) == (job.id, NOW + 2 * DAY, NOW + 2 * DAY, 2)
    assert stage.stored(job) == moved and slots.minute(moved.slot or "") == slots.minute_of(moved.due_at)
    assert [entry.fence for entry in stage.jobs.due(moved.slot)[0]] == [2] and stage.jobs.due(job.slot)[0] == []
    assert stage.waiting(Lane.ONE_TIME) == []


def test_job_moved_near_is_enqueued_and_has_a_safety_slot() -> None:
    stage = Stage()
    moved = change(stage, stage.submit(NOW + DAY), scheduled_at=NOW + MINUTE)
    assert stage.waiting(Lane.ONE_TIME) == [moved.id] and slots.minute(moved.slot or "") == slots.first_safe_minute(NOW)


def test_job_moved_into_the_past_is_due_now() -> None:
    stage = Stage()
    moved = change(stage, stage.submit(NOW + DAY), scheduled_at=NOW - 5_000)
    assert (moved.scheduled_at, moved.due_at) == (NOW - 5_000, NOW) and stage.waiting(Lane.ONE_TIME) == [moved.id]


@pytest.mark.parametrize("to", [20_000, 100_000], ids=["earlier", "later"])
def test_job_starts_only_at_its_new_time(to: int) -> None:
    stage = Stage()
    job = stage.submit(NOW + MINUTE)
    change(stage, job, scheduled_at=NOW + to)
    assert in_lane(stage) == [1, 2]
    ((started, at),) = run_all(stage, NOW + 3 * MINUTE)
    assert (started.id, at) == (job.id, NOW + to) and in_lane(stage) == []
    assert stage.stored(job).completed_at is not None


def test_job_moved_twice_starts_only_at_the_last_time() -> None:
    stage = Stage()
    job = stage.submit(NOW + MINUTE)
    change(stage, job, scheduled_at=NOW + 20_000)
    change(stage, job, scheduled_at=NOW + 90_000)
    assert [at for _, at in run_all(stage, NOW + 3 * MINUTE)] == [NOW + 90_000]


def test_job_is_listed_at_its_new_time() -> None:
    stage = Stage()
    first, second = stage.submit(NOW + DAY), stage.submit(NOW + 2 * DAY)
    moved = change(stage, first, scheduled_at=NOW + 3 * DAY)
    page = stage.jobs.history("ann", since=NOW, until=None, after=None, limit=10, newest_first=False)
    assert [job.id for job in page.jobs] == [second.id, first.id]
    assert ids.time(ids.position(moved.id, moved.scheduled_at)) == NOW + 3 * DAY


# Its content


def test_content_and_rules_change_without_the_time() -> None:
    stage = Stage()
    job = stage.submit(NOW + MINUTE, max_attempts=2)
    changed = change(stage, job, payload={"message": "new"}, max_attempts=5, timeout_ms=1_000, tags=("a",), start_by=NOW + DAY)
    assert changed.spec == JobSpec("log", {"message": "new"}, max_attempts=5, timeout_ms=1_000, tags=("a",))
    assert (changed.scheduled_at, changed.due_at, changed.start_by) == (job.scheduled_at, job.due_at, NOW + DAY)
    ((started, at),) = run_all(stage, NOW + 2 * MINUTE)
    assert (started.spec.payload, at) == ({"message": "new"}, NOW + MINUTE)


def test_due_unclaimed_job_can_be_changed() -> None:
    stage = Stage()
    job = stage.submit()
    stage.clock.advance(30_000)
    change(stage, job, payload={"message": "new"})
    assert [started.spec.payload for started, _ in run_all(stage, NOW + MINUTE)] == [{"message": "new"}]


def test_expiry_can_be_removed() -> None:
    stage = Stage()
    assert change(stage, stage.submit(NOW + MINUTE, expires_at=NOW + DAY), start_by=None).start_by is None


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        ({"start_by": NOW + MINUTE}, "expires_at"),
        ({"start_by": NOW - 1}, "expires_at"),
        ({"scheduled_at": NOW + DAY, "start_by": NOW + DAY}, "expires_at"),
        ({"scheduled_at": NOW + DAY}, "execute_at"),
    ],
)
def test_job_may_not_expire_before_it_starts(wanted: dict[str, Any], field: str) -> None:
    stage = Stage()
    job = stage.submit(NOW + MINUTE, expires_at=NOW + DAY)
    with pytest.raises(Invalid) as refused:
        change(stage, job, **wanted)
    assert [each["field"] for each in refused.value.details] == [field] and stage.stored(job) == job


def test_time_and_expiry_can_move_together() -> None:
    stage = Stage()
    job = stage.submit(NOW + MINUTE, expires_at=NOW + 2 * MINUTE)
    assert change(stage, job, scheduled_at=NOW + DAY, start_by=NOW + DAY + 1).start_by == NOW + DAY + 1


def test_time_may_move_beyond_an_expiry_that_is_removed() -> None:
    stage = Stage()
    job = stage.submit(NOW + MINUTE, expires_at=NOW + 2 * MINUTE)
    assert change(stage, job, scheduled_at=NOW + DAY, start_by=None).start_by is None


def test_due_job_may_not_expire_in_the_past() -> None:
    stage = Stage()
    job = stage.submit()
    stage.clock.advance(30_000)
    with pytest.raises(Invalid):
        change(stage, job, start_by=NOW + 10_000)


# Before it starts


@pytest.mark.parametrize(("ahead", "says"), [(4_000, "about to start"), (1, "about to start"), (0, "has started"), (-9, "has started")])
def test_a_claimed_job_is_about_to_start_or_has_started(ahead: int, says: str) -> None:
    stage, job = held(ahead)
    with pytest.raises(Conflict, match=says):
        change(stage, job, payload={})
    assert stage.stored(job) == job


def test_a_job_that_waits_for_a_retry_has_started() -> None:
    stage, job = held(0)
    result = Result(failure=None)
    again = lifecycle.retry(job, NOW, started_at=NOW, result=result, due_at=NOW + DAY, slot="2026-11-21T10:00#00")
    stage.jobs.change([Change(job, again)])
    with pytest.raises(Conflict, match="has started"):
        change(stage, job, scheduled_at=NOW + 2 * DAY)


def test_a_job_whose_executor_died_before_its_instant_has_not_started() -> None:
    stage, job = held(4_000)
    back = lifecycle.take_back(job, NOW, slot=job.slot)
    stage.jobs.change([Change(job, back)])
    assert change(stage, job, scheduled_at=NOW + DAY).due_at == NOW + DAY


def test_finished_job_is_a_conflict_that_reports_how_it_ended() -> None:
    stage = Stage()
    job = stage.submit(NOW + DAY)
    stage.jobs.change([Change(job, lifecycle.cancel(job, NOW, reason="x"))])
    with pytest.raises(Conflict, match="already ended: cancelled"):
        change(stage, job, payload={})


def test_job_being_cancelled_cannot_be_changed() -> None:
    stage, job = held(4_000)
    flagged = lifecycle.flag(job, NOW, reason="x")
    stage.jobs.change([Change(job, flagged)])
    with pytest.raises(Conflict, match="being cancelled"):
        change(stage, job, scheduled_at=NOW + DAY)


def test_missing_job_is_not_found() -> None:
    with pytest.raises(NotFound):
        change(Stage(), JobKey("ann", ids.new(NOW, 1)), payload={})


# Runs of tasks

PLANNED = RunInfo("task", 1, nominal_at=NOW + DAY, overlap=Overlap.SKIP, misfire=Misfire.RUN_LATEST)


@pytest.mark.parametrize("wanted", [{"scheduled_at": NOW + 2 * DAY}, {"start_by": NOW + 2 * DAY}, {"start_by": None}])
def test_time_of_a_scheduled_run_cannot_be_changed(wanted: dict[str, Any]) -> None:
    stage = Stage()
    job = put(stage, due_at=NOW + DAY, origin=PLANNED, start_by=NOW + DAY + MINUTE)
    with pytest.raises(Conflict, match="edit its task"):
        change(stage, job, **wanted)


def test_content_of_a_scheduled_run_may_change() -> None:
    stage = Stage()
    job = put(stage, due_at=NOW + DAY, origin=PLANNED, start_by=NOW + DAY + MINUTE, lane=Lane.RECURRING)
    changed = change(stage, job, payload={"message": "new"})
    assert changed == replace(job, spec=JobSpec("log", {"message": "new"}), fence=2, slot=changed.slot, changed_at=NOW)


def test_manual_run_may_be_postponed() -> None:
    stage = Stage()
    job = put(stage, due_at=NOW + MINUTE, origin=replace(PLANNED, nominal_at=None, misfire=None))
    assert change(stage, job, scheduled_at=NOW + DAY).due_at == NOW + DAY


# When writes fail


def race(stage: Stage, number: int) -> None:
    """Another writer changes the job just before each of the first `number` writes."""

    def change_after_another(verb: Any, changes: Any) -> Any:
        stored = stage.stored(changes[0].before)
        spec = replace(stored.spec, max_attempts=stored.fence + 3)
        verb([Change(stored, lifecycle.reschedule(stored, slot=stored.slot, fields={"spec": spec}))])
        return verb(changes)

    stage.jobs = Wrapped(stage.jobs, change=times(number, change_after_another))


def test_change_that_lost_a_race_is_retried_on_the_current_job() -> None:
    stage = Stage()
    job = stage.submit(NOW + DAY)
    race(stage, 4)
    changed = change(stage, job, scheduled_at=NOW + 2 * DAY)
    assert stage.stored(job) == changed and (changed.spec.max_attempts, changed.fence) == (7, 6)


def test_change_gives_up_after_five_lost_races() -> None:
    stage = Stage()
    job = stage.submit(NOW + DAY)
    race(stage, 5)
    with pytest.raises(Unavailable, match="keeps changing"):
        change(stage, job, scheduled_at=NOW + 2 * DAY)
    assert stage.stored(job).scheduled_at == job.scheduled_at


def test_simultaneous_changes_are_not_mistaken_for_each_other() -> None:
    """Both changes leave the same fence, slot and time: the table takes the second for a repeat of the first."""
    stage = Stage()
    job = stage.submit(NOW + DAY)
    real = stage.jobs

    def change_after_the_other(verb: Any, changes: Any) -> Any:
        stage.jobs = real
        change(stage, job, payload={"message": "theirs"})
        return verb(changes)

    stage.jobs = Wrapped(real, change=times(1, change_after_the_other))
    assert change(stage, job, payload={"message": "ours"}).spec.payload == {"message": "ours"}
    assert real.get(job.key).spec.payload == {"message": "ours"}


@pytest.mark.parametrize("answer", [refuse, lost_answer, lambda verb, changes: [Written.REFUSED]])
def test_refused_change_is_reported_and_can_be_repeated(answer: Any) -> None:
    stage = Stage()
    job = stage.submit(NOW + MINUTE)
    stage.jobs = Wrapped(stage.jobs, change=times(1, answer))
    with pytest.raises(Unavailable):
        change(stage, job, scheduled_at=NOW + 20_000)
    change(stage, job, scheduled_at=NOW + 20_000)
    assert [at for _, at in run_all(stage, NOW + 2 * MINUTE)] == [NOW + 20_000]


def test_change_is_kept_although_the_enqueue_fails() -> None:
    stage = Stage()
    job = stage.submit(NOW + DAY)
    stage.lanes = Wrapped(stage.lanes, send=refuse)
    moved = change(stage, job, scheduled_at=NOW + MINUTE)
    assert stage.stored(job) == moved and slots.minute(moved.slot or "") == slots.first_safe_minute(NOW)


def test_slow_change_enqueues_by_the_time_after_it() -> None:
    stage = Stage()
    job = stage.submit(NOW + DAY)

    def slow(verb: Any, changes: Any) -> Any:
        stage.clock.advance(100_000)
        return verb(changes)

    stage.jobs = Wrapped(stage.jobs, change=times(1, slow))
    moved = change(stage, job, scheduled_at=NOW + 250_000)
    assert stage.stored(job) == moved and stage.waiting(Lane.ONE_TIME) == [job.id]
    assert slots.start_of(slots.minute(moved.slot or "")) >= stage.clock.now() + slots.HORIZON
