"""A change of a task while plan is behind: each missed run keeps its place in the plan, or has a record."""

from typing import Any

import pytest

from scheduler.model import ids
from scheduler.model.job import Job, JobKey, Misfire
from scheduler.model.task import Task
from scheduler.tasks import planning, service
from scheduler.tasks.planning import INHERITED
from tests.conftest import NOW
from tests.unit.stage import Wrapped
from tests.unit.task_stage import TaskStage

MINUTE = 60_000
MINUTELY = {"cron": "* * * * *"}
STORED, AWAY = 15, 90  # the minutes whose runs are stored with the task, and for which plan is away
ALL: dict[str, Any] = {"misfire": Misfire.RUN_ALL, "max_catch_up": 1_000}


def behind(schedule: dict[str, Any] = MINUTELY, **fields: Any) -> tuple[TaskStage, Task]:
    stage = TaskStage()
    task = stage.create(schedule, **fields)
    stage.clock.at = NOW + AWAY * MINUTE
    return stage, task


def minutes_of(runs: list[Job]) -> list[int]:
    return [(job.scheduled_at - NOW) // MINUTE for job in runs]


def open_minutes(stage: TaskStage, task: Task, generation: int | None = None) -> list[int]:
    """The minutes up to now that have an open run."""
    runs = [job for job in stage.runs(task, generation) if job.slot is not None and job.scheduled_at <= stage.clock.now()]
    return minutes_of(runs)


def all_minutes(stage: TaskStage, task: Task, generation: int | None = None) -> list[int]:
    """The minutes up to now that have a run or an entry, each once."""
    return sorted({*minutes_of([job for job in stage.runs(task, generation) if job.scheduled_at <= stage.clock.now()])})


def entries(stage: TaskStage, task: Task) -> list[Job]:
    return [job for job in stage.runs(task) if job.reason is not None and "missed runs" in job.reason]


def test_a_rename_keeps_the_missed_runs() -> None:
    stage, task = behind(**ALL)
    edited = stage.edit(task, MINUTELY, name="another", **ALL)
    assert open_minutes(stage, task) == list(range(1, AWAY + 1)) and edited.gap is None
    assert open_minutes(stage, task, 2) == list(range(STORED + 1, AWAY + 1)) and edited.planned_until > stage.clock.now()
    assert entries(stage, task) == []


def test_renames_that_repeat_keep_all_missed_runs() -> None:
    stage, task = behind(**ALL)
    for number in range(3):
        stage.edit(task, MINUTELY, name=f"name {number}", **ALL)
        stage.clock.advance(40 * MINUTE)
    stage.plan()
    assert open_minutes(stage, task) == list(range(1, AWAY + 121))


def test_a_rename_records_the_runs_that_the_misfire_rule_skips() -> None:
    stage, task = behind(misfire=Misfire.SKIP)
    stage.edit(task, MINUTELY, name="another", misfire=Misfire.SKIP)
    (entry,) = entries(stage, task)
    assert minutes_of([entry]) == [AWAY - 1]
    assert "it stands for 74 missed runs, the first of 2026-11-20T10:16:00.000Z" in (entry.reason or "")


@pytest.mark.parametrize(
    ("schedule", "fields"),
    [
        ({"cron": "*/2 * * * *"}, ALL),
        ({"cron": "* * * * *", "time_zone": "Europe/Berlin"}, ALL),
        ({"rate": "1 minute"}, ALL),
        (None, {}),
        (MINUTELY, {"misfire": Misfire.SKIP}),
    ],
)
def test_another_schedule_or_misfire_rule_records_the_missed_runs(schedule: dict[str, Any] | None, fields: dict[str, Any]) -> None:
    stage, task = behind(**ALL)
    stage.edit(task, schedule, **fields)
    (entry,) = entries(stage, task)
    assert minutes_of([entry]) == [AWAY] and entry.cancelled_at == NOW + AWAY * MINUTE
    assert entry.reason == (
        "its task was edited; it stands for 75 missed runs, the first of 2026-11-20T10:16:00.000Z: nothing was planned then"
    )


def test_a_pause_records_the_missed_runs_once() -> None:
    stage, task = behind(**ALL)
    service.deactivate(task.key, None, stage)
    service.activate(task.key, stage)
    (entry,) = entries(stage, task)
    assert entry.reason is not None and entry.reason.startswith("its task was paused; it stands for 75 missed runs")


def test_one_missed_run_is_its_own_record() -> None:
    stage, task = behind()
    stage.clock.at = NOW + (STORED + 1) * MINUTE
    service.deactivate(task.key, None, stage)
    (entry,) = [job for job in stage.runs(task) if job.reason is not None]
    assert (minutes_of([entry]), entry.reason) == ([STORED + 1], "its task was paused: nothing was planned then")


def test_an_edit_without_missed_runs_records_nothing() -> None:
    stage, task = behind()
    stage.clock.at = NOW + STORED * MINUTE
    stage.edit(task, {"rate": "1 hour"})
    assert [job for job in stage.runs(task) if job.reason is not None] == []


def test_missed_runs_count_for_the_maximum() -> None:
    most = {"cron": "* * * * *", "max_runs": 60}
    stage, task = behind(most, **ALL)
    edited = stage.edit(task, {"cron": "*/2 * * * *", "max_runs": 65}, **ALL)
    assert edited.planned == 65 and minutes_of(stage.runs(task, 2))[-5:] == [92, 94, 96, 98, 100]
    (entry,) = entries(stage, task)
    assert minutes_of([entry]) == [60] and "45 missed runs" in (entry.reason or "")


def test_a_rename_of_a_task_with_a_maximum_keeps_its_missed_runs() -> None:
    stage, task = behind({"cron": "* * * * *", "max_runs": 95}, **ALL)
    stage.edit(task, {"cron": "* * * * *", "max_runs": 95}, name="another", **ALL)
    assert open_minutes(stage, task) == list(range(1, AWAY + 1)) and stage.task(task).planned == 95
    assert minutes_of(stage.runs(task))[-1] == 95


def test_a_run_that_an_earlier_generation_stored_is_not_planned_again() -> None:
    """Plan died after it had stored missed runs, before it moved the task on; one of them may have started since."""
    stage, task = behind(**ALL)
    before = stage.task(task)
    stored = planning.catch_up(planning.further(before, stage.clock.now(), stage.rules).task, stage.clock.now(), stage.rules).runs[:30]
    stage.jobs.put_many(stored)
    for number in range(2):
        stage.edit(task, MINUTELY, name=f"name {number}", **ALL)
    again = {job.scheduled_at for job in stage.runs(task) if job.origin and job.origin.generation > 1}
    assert again.isdisjoint(job.scheduled_at for job in stored)
    assert all_minutes(stage, task) == list(range(1, AWAY + 1))


def test_a_top_up_that_meets_an_edit_leaves_due_runs_in_place() -> None:
    stage, task = behind(**ALL)
    real = stage.tasks

    def edited(verb: Any, moves: Any) -> Any:
        stage.tasks = real
        stage.edit(task, MINUTELY, name="another", **ALL)
        return verb(moves)

    stage.tasks = Wrapped(real, move_on=edited)
    stage.plan()
    old = [at for at in minutes_of(stage.runs(task, 1)) if at > STORED]
    assert all(at <= AWAY for at in old), "the future runs of the old generation are withdrawn"
    assert all_minutes(stage, task) == list(range(1, AWAY + 1))


def test_a_gap_that_too_many_edits_hand_on_is_recorded() -> None:
    stage, task = behind(**ALL)
    stage.jobs = Wrapped(stage.jobs, put_many=lambda verb, jobs: (_ for _ in ()).throw(ValueError("not now")))
    for number in range(INHERITED):
        stage.edit(task, MINUTELY, name=f"name {number}", **ALL)
    assert stage.task(task).gap is not None and entries(stage, task) == []
    stage.edit(task, MINUTELY, name="one too many", **ALL)
    assert stage.task(task).gap is None and len(entries(stage, task)) == 1


def test_the_entry_has_an_id_that_no_run_has() -> None:
    stage, task = behind(**ALL)
    stage.edit(task, {"at": "2026-11-20T11:30:00Z"})
    (entry,) = entries(stage, task)
    once = JobKey(task.owner, ids.run(NOW + AWAY * MINUTE, task.id, 2))
    assert entry.key != once and stage.jobs.get(once) is not None
    assert minutes_of([entry]) == [AWAY - 1] and "74 missed runs" in (entry.reason or "")
