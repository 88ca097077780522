"""The operations on tasks, and the items that they leave stored."""

from dataclasses import replace
from typing import Any

import pytest

from scheduler.admission.gate import READ_WINDOW_MS
from scheduler.model import ids, lifecycle, paging, slots
from scheduler.model.errors import Conflict, Invalid, NotFound, Unavailable
from scheduler.model.instants import render
from scheduler.model.job import Claim, Job, Lane, Overlap, Receipt, TaskKey
from scheduler.model.task import Task, TaskStatus, status
from scheduler.storage.ports import Change, Written
from scheduler.tasks import planning, service
from scheduler.tasks.service import Search
from scheduler.tasks.withdraw import STARTED_MS
from tests.conftest import NOW
from tests.unit.stage import Wrapped, lost_answer, refuse, times
from tests.unit.task_stage import TaskStage, nominal_times

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
HOURLY = {"cron": "0 * * * *"}
MINUTELY = {"cron": "* * * * *"}


def a_receipt(key: str = "k", fingerprint: str = "f", at: int = NOW, random: int = 99) -> Receipt:
    return Receipt("ann", key, fingerprint, at, random)


def hours(*numbers: int) -> list[int]:
    return [NOW + number * HOUR for number in numbers]


# Create


def test_a_task_is_stored_with_its_next_ten_runs_in_one_transaction() -> None:
    stage = TaskStage()
    calls: list[int] = []

    def store(verb: Any, before: Task | None, after: Task, runs: list[Job], *rest: Any, **more: Any) -> Any:
        calls.append(len(runs))
        return verb(before, after, runs, *rest, **more)

    stage.tasks = Wrapped(stage.tasks, store=store)
    stage.jobs = Wrapped(stage.jobs, put_many=refuse)
    task = stage.create(HOURLY)
    assert calls == [10] and stage.times(task) == hours(*range(1, 11))
    assert stage.task(task) == task and (task.generation, task.planned, task.created_at) == (1, 10, NOW)
    assert (task.overlap, status(task, NOW)) == (Overlap.SKIP, TaskStatus.ACTIVE)


def test_creating_a_dense_task_stores_a_quarter_of_an_hour_of_runs() -> None:
    stage = TaskStage()
    task = stage.create({"rate": "5 seconds"})
    assert stage.times(task) == nominal_times(task, NOW, NOW + 15 * MINUTE)
    assert stage.task(task) == task and task.planned == 180


def test_runs_due_soon_are_enqueued_and_later_ones_wait_in_slots() -> None:
    stage = TaskStage()
    task = stage.create(MINUTELY)
    assert stage.waiting(Lane.RECURRING) == [run.id for run in stage.runs(task) if run.scheduled_at < NOW + slots.HORIZON]
    assert {slots.minute(run.slot or "") for run in stage.runs(task)[:3]} == {slots.first_safe_minute(NOW)}


def test_runs_of_a_slow_transaction_are_in_safe_slots_and_enqueued() -> None:
    stage = TaskStage()

    def slowly(verb: Any, *args: Any, **more: Any) -> Any:
        stage.clock.advance(100_000)
        return verb(*args, **more)

    stage.tasks = Wrapped(stage.tasks, store=slowly)
    task = stage.create({"rate": "250 seconds"})
    first = stage.runs(task)[0]
    assert slots.start_of(slots.minute(first.slot or "")) >= stage.clock.now() + slots.HORIZON
    assert first.id in stage.waiting(Lane.RECURRING)


def test_runs_of_a_slow_top_up_are_in_safe_slots_and_enqueued() -> None:
    stage = TaskStage()

    def slowly(verb: Any, jobs: Any) -> Any:
        stage.clock.advance(200_000)
        return verb(jobs)

    stage.jobs = Wrapped(stage.jobs, put_many=slowly)
    task = stage.create({"rate": "28 seconds"})
    near = [run for run in stage.runs(task) if NOW + 280_000 < run.scheduled_at < NOW + 380_000]
    assert near and {run.id for run in near} <= set(stage.waiting(Lane.RECURRING))
    assert all(slots.start_of(slots.minute(run.slot or "")) >= stage.clock.now() + slots.HORIZON for run in near)


def test_a_task_at_once_runs_once_and_has_ended_then() -> None:
    stage = TaskStage()
    task = stage.create(None)
    (run,) = stage.runs(task)
    assert run.scheduled_at == NOW and stage.waiting(Lane.ONE_TIME) == [run.id]
    assert (task.overlap, task.replenish, status(task, NOW)) == (Overlap.ALLOW, None, TaskStatus.ENDED)


def test_a_one_time_task_is_active_until_it_is_due() -> None:
    stage = TaskStage()
    task = stage.create({"at": render(NOW + DAY)})
    assert stage.times(task) == [NOW + DAY] and status(task, NOW + DAY - 1) is TaskStatus.ACTIVE
    assert status(task, NOW + DAY) is TaskStatus.ENDED


def test_a_one_time_task_for_an_instant_just_past_runs_at_once() -> None:
    stage = TaskStage()
    (run,) = stage.runs(stage.create({"at": render(NOW - MINUTE)}))
    assert (run.scheduled_at, run.due_at) == (NOW - MINUTE, NOW) and stage.waiting(Lane.ONE_TIME) == [run.id]


@pytest.mark.parametrize(
    ("schedule", "field"),
    [({"cron": "* * * *"}, "schedule.cron"), ({}, "schedule"), ({"rate": "1 day", "end": "x"}, "schedule.end")],
)
def test_invalid_schedule_is_reported_by_its_path_and_not_stored(schedule: dict[str, Any], field: str) -> None:
    stage = TaskStage()
    with pytest.raises(Invalid) as refused:
        stage.create(schedule)
    assert refused.value.details[0]["field"] == field and stage.tasks.rows == {} == stage.jobs.rows


@pytest.mark.parametrize("store", [refuse, lost_answer])
def test_a_refused_creation_is_refused_to_the_caller(store: Any) -> None:
    stage = TaskStage()
    stage.tasks = Wrapped(stage.tasks, store=store)
    with pytest.raises(Unavailable):
        stage.create(HOURLY)


def test_plan_stores_runs_that_the_request_could_not_store() -> None:
    stage = TaskStage()
    stage.jobs = Wrapped(stage.jobs, put_many=times(1))
    task = stage.create({"rate": "5 seconds"})
    assert len(stage.runs(task)) == 10 and task.replenish is not None
    stage.clock.at = slots.start_of(slots.minute(task.replenish))
    assert stage.plan().tasks == 1
    assert stage.times(task) == nominal_times(task, NOW, stage.clock.at + 15 * MINUTE)


# Idempotency keys


def test_repeated_creation_returns_the_same_task_and_stores_nothing() -> None:
    stage = TaskStage()
    first = stage.create(MINUTELY, receipt=a_receipt())
    stored = dict(stage.jobs.rows)
    stage.clock.advance(HOUR)
    again = stage.create(MINUTELY, receipt=a_receipt(at=stage.clock.now(), random=1))
    planned = {"planned_until": first.planned_until, "planned": first.planned, "replenish": first.replenish}  # not part of any answer
    assert replace(again, **planned) == first and stage.jobs.rows == stored and len(stage.tasks.rows) == 1


def test_a_creation_whose_answer_was_lost_is_found_by_its_key() -> None:
    stage = TaskStage()
    real, stage.tasks = stage.tasks, Wrapped(stage.tasks, store=lost_answer)
    with pytest.raises(Unavailable):
        stage.create(HOURLY, receipt=a_receipt())
    stage.tasks = real
    task = stage.create(HOURLY, receipt=a_receipt(at=NOW + 5, random=3))
    assert list(stage.tasks.rows) == [task.key] and task.id == ids.new(NOW, 99, partitions=1)


def test_two_creations_with_one_key_at_once_make_one_task() -> None:
    """The second creation finds the key free at first and taken when it stores."""
    stage = TaskStage()
    first = stage.create(HOURLY, receipt=a_receipt())
    stage.receipts = Wrapped(stage.receipts, find=times(1, lambda verb, *args: None))
    assert stage.create(HOURLY, receipt=a_receipt(random=1)) == first and len(stage.tasks.rows) == 1


def test_idempotency_key_of_another_request_is_refused() -> None:
    stage = TaskStage()
    task = stage.create(HOURLY, receipt=a_receipt())
    with pytest.raises(Conflict):
        stage.create(HOURLY, receipt=a_receipt(fingerprint="other"))
    with pytest.raises(Conflict):
        service.run_now(task.key, stage, random=1, receipt=a_receipt(fingerprint="other"))
    assert len(stage.tasks.rows) == 1 and len(stage.jobs.rows) == 10


def test_idempotency_key_of_a_deleted_task_creates_no_second_task() -> None:
    stage = TaskStage()
    task = stage.create(HOURLY, receipt=a_receipt())
    service.delete(task.key, stage)
    stored = dict(stage.jobs.rows)
    assert stage.create(HOURLY, receipt=a_receipt()).id == task.id  # the first answer again, and nothing else
    assert stage.tasks.rows == {} and stage.jobs.rows == stored


# Edit


def test_an_edit_replaces_the_future_runs() -> None:
    stage = TaskStage()
    task = stage.create(HOURLY)
    stage.clock.advance(90 * MINUTE)
    edited = stage.edit(task, {"cron": "30 * * * *"}, name="another", payload={"message": "new"})
    assert stage.times(task, 1) == hours(1)
    assert stage.times(task, 2) == [NOW + 30 * MINUTE + number * HOUR for number in range(2, 12)]
    assert (edited.generation, edited.name, edited.created_at, edited.updated_at) == (2, "another", NOW, NOW + 90 * MINUTE)
    assert {run.spec.payload["message"] for run in stage.runs(task, 2)} == {"new"} and stage.task(task) == edited


def test_an_edit_that_leaves_the_schedule_replaces_the_runs_too() -> None:
    stage = TaskStage()
    task = stage.create({"rate": "5 seconds"})
    stage.clock.advance(67_000)
    edited = stage.edit(task, {"rate": "rate(5 seconds)", "start": render(NOW)}, payload={"message": "new"})
    assert edited.schedule == task.schedule  # sent back as it was read: the rate keeps its rhythm
    assert stage.times(task, 1) == nominal_times(task, NOW, NOW + 67_000)  # due runs stay; executors cancel them instead of starting them
    assert stage.times(task, 2) == nominal_times(task, NOW + 67_000, edited.planned_until)
    assert edited.planned == 13 + len(stage.times(task, 2))


def test_edit_waits_for_executors_that_read_the_old_generation() -> None:
    stage = TaskStage()
    task = stage.create(MINUTELY)
    first, second = stage.runs(task)[:2]
    stage.clock.at = first.due_at - 300
    for run in (first, second):
        claimed = lifecycle.claim(run, claim=Claim("m", "n", stage.clock.now(), True))
        assert stage.jobs.change([Change(run, claimed)]) == [Written.YES]
    stage.edit(task, {"cron": "0 0 * * *"})
    assert stage.clock.now() == first.due_at - 300 + READ_WINDOW_MS + STARTED_MS
    assert [run.id for run in stage.runs(task, 1)] == [first.id, second.id]  # executors drop them at their instant


def test_an_edit_of_a_paused_task_waits_for_nothing() -> None:
    stage = TaskStage()
    task = stage.create(MINUTELY)
    service.deactivate(task.key, None, stage)
    stage.clock.slept.clear()
    stage.edit(task, HOURLY)
    service.activate(task.key, stage)
    assert stage.clock.slept == []


def test_edit_succeeds_although_old_runs_cannot_be_withdrawn() -> None:
    stage = TaskStage()
    task = stage.create(HOURLY)
    stage.jobs = Wrapped(stage.jobs, withdraw=refuse)
    assert stage.edit(task, {"cron": "30 * * * *"}).generation == 2 and len(stage.times(task, 1)) == 10


def test_runs_refused_at_first_are_withdrawn_at_the_second_try() -> None:
    stage = TaskStage()
    task = stage.create(HOURLY)
    stage.jobs = Wrapped(stage.jobs, withdraw=times(2, lambda verb, keys: [Written.REFUSED] * len(keys)))
    stage.edit(task, {"cron": "30 * * * *"})
    assert stage.times(task, 1) == []


def test_two_edits_at_once_leave_the_runs_of_the_later_one_only() -> None:
    stage = TaskStage()
    task = stage.create(HOURLY)
    real = stage.tasks

    def interrupted(verb: Any, *args: Any, **more: Any) -> Any:
        stage.tasks = real
        stage.edit(task, {"cron": "15 * * * *"})
        return verb(*args, **more)

    stage.tasks = Wrapped(real, store=times(1, interrupted))
    edited = stage.edit(task, {"cron": "30 * * * *"})
    assert edited.generation == 3 and {run.origin and run.origin.generation for run in stage.runs(task)} == {3}
    assert {at % HOUR for at in stage.times(task)} == {30 * MINUTE}


def test_edit_of_a_named_generation_is_refused_after_another_edit() -> None:
    stage = TaskStage()
    task = stage.create(HOURLY)
    stage.edit(task, MINUTELY, generation=1)
    with pytest.raises(Conflict, match="its generation is 2"):
        stage.edit(task, HOURLY, generation=1)
    assert stage.task(task).generation == 2


def test_a_task_that_keeps_changing_is_given_up_on() -> None:
    stage = TaskStage()
    task = stage.create(HOURLY)
    stage.tasks = Wrapped(stage.tasks, store=lambda verb, *args, **more: False, delete=lambda verb, *args: False)
    with pytest.raises(Unavailable):
        stage.edit(task, MINUTELY)
    with pytest.raises(Unavailable):
        service.delete(task.key, stage)


def test_max_runs_counts_over_edits() -> None:
    stage = TaskStage()
    task = stage.create({**HOURLY, "max_runs": 5})
    stage.clock.advance(2 * HOUR + MINUTE)
    edited = stage.edit(task, {**HOURLY, "max_runs": 5}, payload={"message": "new"})
    assert stage.times(task) == hours(1, 2, 3, 4, 5) and edited.planned == 5
    stage.clock.advance(HOUR)
    assert stage.edit(task, {**HOURLY, "max_runs": 3}).planned == 3 and stage.times(task) == hours(1, 2, 3)


def test_edit_keeps_a_run_that_jitter_moves_past_it() -> None:
    stage = TaskStage()
    task = stage.create({**HOURLY, "jitter_seconds": 3_600})
    before = stage.times(task)
    stage.clock.at = NOW + HOUR + 1
    assert before[0] > stage.clock.now()
    edited = stage.edit(task, {**HOURLY, "jitter_seconds": 3_600}, name="another")
    assert stage.times(task, 1) == [] and stage.times(task, 2)[:9] == before[:9]
    assert edited.planned == len(stage.times(task, 2))


def test_edit_adds_no_run_from_before_the_task_existed() -> None:
    """The nominal time is past and the instant is not, but the task did not exist at the nominal time."""
    stage = TaskStage()
    stage.clock.at = NOW + 1
    task = stage.create({**HOURLY, "jitter_seconds": 3_600})
    before = stage.times(task)
    stage.edit(task, {**HOURLY, "jitter_seconds": 3_600}, name="another")
    assert stage.times(task) == before


def test_resumed_task_has_the_run_that_jitter_moves_past_now() -> None:
    stage = TaskStage()
    task = stage.create({**HOURLY, "jitter_seconds": 3_600})
    before = stage.times(task)
    stage.clock.at = NOW + HOUR + 1
    service.deactivate(task.key, None, stage)
    resumed = service.activate(task.key, stage)
    assert stage.times(task)[:9] == before[:9] and resumed.planned == len(stage.times(task))


def test_a_one_time_task_does_not_run_again_because_it_is_renamed() -> None:
    stage = TaskStage()
    task = stage.create({"at": render(NOW + HOUR)})
    stage.clock.advance(2 * DAY)  # later than such an instant could be posted
    edited = stage.edit(task, {"at": render(NOW + HOUR)}, name="another")
    assert edited.name == "another" and len(stage.runs(task)) == 1 and status(edited, stage.clock.now()) is TaskStatus.ENDED


def test_a_one_time_task_that_has_run_takes_a_new_instant() -> None:
    stage = TaskStage()
    task = stage.create({"at": render(NOW + HOUR)})
    stage.clock.advance(2 * HOUR)
    edited = stage.edit(task, {"at": render(NOW + 3 * HOUR)})
    assert stage.times(task) == hours(1, 3) and status(edited, stage.clock.now()) is TaskStatus.ACTIVE


def test_immediate_task_runs_once_when_renamed_and_can_become_recurring() -> None:
    stage = TaskStage()
    task = stage.create(None)
    stage.clock.advance(HOUR)
    assert len(stage.runs(stage.edit(task, None, name="another"))) == 1
    assert len(stage.runs(stage.edit(task, HOURLY))) == 11
    stage.clock.at = NOW + 90 * MINUTE
    stage.edit(task, None)
    assert stage.times(task) == [NOW, NOW + 90 * MINUTE]


def test_an_edit_of_a_paused_task_plans_nothing_until_it_is_resumed() -> None:
    stage = TaskStage()
    task = stage.create(HOURLY)
    service.deactivate(task.key, None, stage)
    assert status(stage.edit(task, MINUTELY), NOW) is TaskStatus.INACTIVE and stage.runs(task) == []
    service.activate(task.key, stage)
    assert stage.times(task)[0] == NOW + MINUTE


# Pause, resume, delete


def test_a_paused_task_has_no_future_runs() -> None:
    stage = TaskStage()
    task = stage.create(HOURLY)
    stage.clock.advance(90 * MINUTE)
    paused = service.deactivate(task.key, "too loud", stage)
    assert (paused.inactive_at, paused.inactive_reason, paused.generation) == (NOW + 90 * MINUTE, "too loud", 2)
    assert stage.times(task) == hours(1) and paused.replenish is None and paused.planned == 1
    assert service.next_runs(paused, 3, stage.clock.now()) == []


def test_a_resumed_task_runs_from_now_on() -> None:
    stage = TaskStage()
    task = stage.create({**HOURLY, "max_runs": 12})
    stage.clock.advance(90 * MINUTE)
    service.deactivate(task.key, None, stage)
    stage.clock.advance(3 * HOUR)
    resumed = service.activate(task.key, stage)
    assert (resumed.inactive_at, resumed.inactive_reason, resumed.generation) == (None, None, 3)
    assert stage.times(task) == hours(1, *range(5, 15)) and resumed.planned == 11


def test_pause_and_resume_are_idempotent() -> None:
    stage = TaskStage()
    task = stage.create(HOURLY)
    assert service.activate(task.key, stage) == task
    paused = service.deactivate(task.key, "first", stage)
    assert service.deactivate(task.key, "second", stage) == paused
    resumed = service.activate(task.key, stage)
    assert service.activate(task.key, stage) == resumed and resumed.generation == 3


def test_task_that_ended_during_a_pause_has_ended_after_the_resume() -> None:
    stage = TaskStage()
    for schedule in ({**HOURLY, "end": render(NOW + 2 * HOUR)}, {"at": render(NOW + HOUR)}):
        task = stage.create(schedule)
        service.deactivate(task.key, None, stage)
        stage.clock.advance(DAY)
        resumed = service.activate(task.key, stage)
        assert stage.runs(task) == [] and status(resumed, stage.clock.now()) is TaskStatus.ENDED
        stage.clock.at = NOW


def test_a_deleted_task_leaves_its_history_only() -> None:
    stage = TaskStage()
    task = stage.create(MINUTELY)
    stage.clock.advance(150_000)
    assert service.delete(task.key, stage).id == task.id
    assert stage.times(task) == [NOW + MINUTE, NOW + 2 * MINUTE]
    for verb in (service.delete, service.find, service.activate):
        with pytest.raises(NotFound):
            verb(task.key, stage)


def test_task_of_another_owner_is_not_found() -> None:
    stage = TaskStage()
    task = stage.create(HOURLY)
    key = TaskKey("bob", task.id)
    for verb in (lambda: service.find(key, stage), lambda: service.run_now(key, stage, random=1)):
        with pytest.raises(NotFound):
            verb()


# Run now


def test_manual_run_is_enqueued_and_uses_no_planned_run() -> None:
    stage = TaskStage()
    task = stage.create({**HOURLY, "max_runs": 3})
    stage.clock.advance(MINUTE)
    run = service.run_now(task.key, stage, random=5)
    assert stage.stored(run) == run and run.id in stage.waiting(Lane.ONE_TIME) and run.scheduled_at == NOW + MINUTE
    assert run.origin is not None and (run.origin.nominal_at, run.origin.misfire, run.origin.overlap) == (None, None, Overlap.SKIP)
    assert stage.task(task) == task and run.start_by is None
    chosen = service.run_now(task.key, stage, random=6, overlap=Overlap.ALLOW)
    assert chosen.origin is not None and chosen.origin.overlap is Overlap.ALLOW


def test_ended_task_can_run_manually_and_a_paused_one_cannot() -> None:
    stage = TaskStage()
    task = stage.create(None)
    stage.clock.advance(DAY)
    assert service.run_now(task.key, stage, random=5).lane is Lane.ONE_TIME
    service.deactivate(task.key, None, stage)
    with pytest.raises(Conflict, match="paused"):
        service.run_now(task.key, stage, random=6)


def test_edit_leaves_manual_runs_alone() -> None:
    stage = TaskStage()
    task = stage.create(HOURLY)
    run = service.run_now(task.key, stage, random=5)
    stage.edit(task, MINUTELY)
    assert stage.stored(run) == run


def test_repeated_manual_run_is_the_same_run_even_of_a_deleted_task() -> None:
    stage = TaskStage()
    task = stage.create(HOURLY)
    first = service.run_now(task.key, stage, random=99, receipt=a_receipt())
    stage.clock.advance(MINUTE)
    again = a_receipt(at=stage.clock.now(), random=1)
    assert service.run_now(task.key, stage, random=1, receipt=again) == first
    service.delete(task.key, stage)
    assert service.run_now(task.key, stage, random=1, receipt=again) == first


@pytest.mark.parametrize("put", [refuse, lost_answer])
def test_repeated_request_stores_a_manual_run_whose_put_failed(put: Any) -> None:
    stage = TaskStage()
    task = stage.create(HOURLY)
    stage.jobs = Wrapped(stage.jobs, put=times(1, put))
    with pytest.raises(Unavailable):
        service.run_now(task.key, stage, random=99, receipt=a_receipt())
    stage.clock.advance(SECOND)
    run = service.run_now(task.key, stage, random=1, receipt=a_receipt(at=stage.clock.now(), random=1))
    assert run.id == ids.new(NOW, 99) and len([job for job in stage.runs(task) if job.origin and job.origin.nominal_at is None]) == 1


def test_a_receipt_that_cannot_be_kept_is_refused_to_the_caller() -> None:
    stage = TaskStage()
    task = stage.create(HOURLY)
    stage.receipts = Wrapped(stage.receipts, keep=lambda verb, *args: [None])
    with pytest.raises(Unavailable):
        service.run_now(task.key, stage, random=99, receipt=a_receipt())


# Search


def test_tasks_are_found_by_name_tag_type_and_status() -> None:
    stage = TaskStage()
    report = stage.create(HOURLY, name="Nightly Report", tags=("reports",))
    call = stage.create({"at": render(NOW + DAY)}, name="call home", type="http")
    once = stage.create(None, name="once")
    service.deactivate(report.key, None, stage)

    def found(**fields: Any) -> list[str]:
        return [task.name for task in service.search(Search("ann", **fields), stage).tasks]

    assert sorted(found()) == sorted(task.name for task in (report, call, once))
    assert found(name="REPORT") == ["Nightly Report"] == found(tags=("reports",)) == found(statuses=(TaskStatus.INACTIVE,))
    assert found(type="http") == ["call home"] == found(statuses=(TaskStatus.ACTIVE,))
    assert found(statuses=(TaskStatus.ENDED,)) == ["once"] and found(name="call", tags=("reports",)) == []
    assert sorted(found(statuses=(TaskStatus.ENDED, TaskStatus.ACTIVE))) == ["call home", "once"]
    assert found(tags=("reports", "daily")) == []
    assert service.search(Search("bob"), stage).tasks == []


def test_pages_continue_where_they_stopped_and_read_a_bounded_amount(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paging, "CHUNK", 2)
    monkeypatch.setattr(paging, "READS", 3)
    stage = TaskStage()
    names = [stage.create(None, name="rare" if number == 0 else "common").name for number in range(8)]
    first = service.search(Search("ann", name="rare"), stage)
    assert first.tasks == [] and first.cursor is not None
    second = service.search(Search("ann", name="rare", cursor=first.cursor), stage)
    assert [task.name for task in second.tasks] == ["rare"] and second.cursor is None
    seen, cursor = list[str](), None
    while True:
        page = service.search(Search("ann", limit=3, cursor=cursor), stage)
        seen, cursor = seen + [task.name for task in page.tasks], page.cursor
        if cursor is None:
            break
    assert seen == names[::-1]


def test_cursor_that_was_never_returned_is_refused() -> None:
    with pytest.raises(Invalid):
        service.search(Search("ann", cursor="x"), TaskStage())


# A top-up and an edit at once


def test_top_up_stalled_during_an_edit_leaves_no_old_run() -> None:
    stage = TaskStage()
    task = stage.create(HOURLY)
    stage.clock.advance(7 * HOUR + 1)
    real = stage.jobs

    def frozen(verb: Any, jobs: Any) -> Any:
        stage.jobs = real
        stage.edit(task, {"cron": "30 * * * *"})
        return verb(jobs)

    stage.jobs = Wrapped(real, put_many=times(1, frozen))
    work = stage.top_up(task)
    assert work.failed == [] and stage.times(task, 1) == hours(*range(1, 8))
    assert stage.times(task, 2) == nominal_times(stage.task(task), stage.clock.now(), stage.task(task).planned_until)


@pytest.mark.parametrize("schedule", [HOURLY, MINUTELY, {"rate": "5 seconds"}])
@pytest.mark.parametrize("verb", ["store", "delete"])
def test_top_up_in_the_middle_of_an_edit_leaves_no_old_run(verb: str, schedule: dict[str, Any]) -> None:
    """The edit reads how far runs are stored, the top-up stores more, and then the edit is written."""
    stage = TaskStage()
    task = stage.create(schedule)
    assert task.replenish is not None
    stage.clock.at = slots.start_of(slots.minute(task.replenish)) + 30_000
    real = stage.tasks

    def later(write: Any, *args: Any, **more: Any) -> Any:
        stage.tasks = real
        assert stage.top_up(task).runs > 0
        return write(*args, **more)

    stage.tasks = Wrapped(real, **{verb: times(1, later)})
    _ = stage.edit(task, {"cron": "0 0 1 1 *"}) if verb == "store" else service.delete(task.key, stage)
    assert [at for at in stage.times(task, 1) if at > stage.clock.now()] == []


def test_top_up_of_a_deleted_task_leaves_nothing_behind() -> None:
    stage = TaskStage()
    task = stage.create(HOURLY)
    stage.clock.advance(7 * HOUR)
    stage.tasks = Wrapped(stage.tasks, move_on=lambda verb, moves: (stage.tasks.delete(moves[0][0]), verb(moves))[1])
    stage.top_up(task)
    assert stage.times(task) == hours(*range(1, 11))


def test_a_run_that_the_table_refuses_is_stored_by_the_next_top_up() -> None:
    stage = TaskStage()
    task = stage.create(HOURLY)
    stage.clock.advance(7 * HOUR)
    stage.jobs = Wrapped(stage.jobs, put_many=times(1, lambda verb, jobs: [Written.REFUSED, *verb(jobs[1:])]))
    assert stage.top_up(task).failed == [task.key] and stage.task(task) == task
    assert stage.top_up(task).failed == [] and stage.times(task) == hours(*range(1, 18))


def test_next_top_up_enqueues_runs_stored_before_a_lost_answer() -> None:
    stage = TaskStage()
    task = stage.create({"rate": "25 seconds"})
    stage.clock.at = task.planned_until - MINUTE  # plan did not run: the runs of the task are due very soon
    real, stage.jobs = stage.jobs, Wrapped(stage.jobs, put_many=lost_answer)
    assert stage.top_up(task).failed == [task.key]
    stage.jobs = real
    near = [run.id for run in stage.runs(task) if task.planned_until < run.scheduled_at < stage.clock.now() + slots.HORIZON]
    assert near and not set(near) & set(stage.waiting(Lane.RECURRING))
    stage.top_up(task)
    assert set(near) <= set(stage.waiting(Lane.RECURRING))


def test_stored_runs_agree_with_the_runs_that_planning_derives() -> None:
    stage = TaskStage()
    task = stage.create(MINUTELY)
    assert set(planning.to_withdraw(stage.task(task), NOW)) >= {run.key for run in stage.runs(task)}
    assert [run.at for run in service.next_runs(task, 15, NOW)] == stage.times(task)
