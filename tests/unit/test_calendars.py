"""Calendars of owners: put, delete, and how a change reaches the tasks."""

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from scheduler.model import lifecycle
from scheduler.model.calendar import MOST_CALENDARS, Calendar
from scheduler.model.errors import Conflict, Invalid, NotFound, Unavailable
from scheduler.model.instants import parse
from scheduler.model.job import TaskKey
from scheduler.model.operation import Action, Operation, State
from scheduler.model.task import Task, TaskStatus, status
from scheduler.operations import calendars, requests
from scheduler.operations.calendars import NewCalendar, PutCalendar
from scheduler.operations.step import OperationStep
from scheduler.tasks import service
from scheduler.tasks.service import PutOutcome as Outcome
from tests.conftest import NOW
from tests.unit.stage import Wrapped
from tests.unit.task_stage import TaskStage

DAILY = {"cron": "0 9 * * *", "exclude": ["de"]}
FIRST = date(2026, 11, 20)  # of NOW


def day(number: int) -> int:
    """The date so many days after the first one."""
    return (FIRST + timedelta(days=number)).toordinal()


class CalendarStage(TaskStage):
    def put(self, *days: int, name: str = "de", **fields: Any) -> PutCalendar:
        self.requests += 1
        return calendars.put(NewCalendar("ann", name, frozenset(map(day, days)), **fields), self, random=self.requests)

    def work_off(self, operation: Operation | None) -> Operation:
        """The operation after its end."""
        assert operation is not None
        for _ in range(200):
            next_at = OperationStep(self, lambda: None, "m").run("ann", operation.id).next_at
            if next_at is None:
                break
            self.clock.sleep_until(next_at)
        stored: Operation | None = self.operations.get("ann", operation.id)
        assert stored is not None
        return stored

    def days(self, task: Task) -> list[int]:
        """The dates of the open runs of the task's generation, as days after the first one."""
        runs = self.runs(task, self.task(task).generation)
        return [(run.scheduled_at - parse("2026-11-20T00:00:00Z")) // 86_400_000 for run in runs if lifecycle.is_open(run)]


def test_a_put_is_idempotent() -> None:
    stage = CalendarStage()
    first = stage.put(1, 2, source="typed", covers_until=day(9))
    assert (first.outcome, first.operation) == (Outcome.CREATED, None)
    again = stage.put(2, 1, source="typed", covers_until=day(9))
    assert (again.outcome, again.operation, again.calendar) == (Outcome.UNCHANGED, None, first.calendar)
    other = stage.put(1, 2, covers_until=day(9))
    assert (other.outcome, other.operation) == (Outcome.UPDATED, None), "no task uses it"
    assert calendars.find("ann", "de", stage) == other.calendar and calendars.listing("ann", stage) == [other.calendar]
    with pytest.raises(NotFound):
        calendars.find("eve", "de", stage)


def test_an_owner_has_at_most_100_calendars() -> None:
    stage = CalendarStage()
    for number in range(MOST_CALENDARS):
        stage.put(name=f"c{number}")
    with pytest.raises(Conflict, match="100 calendars"):
        stage.put()
    stage.put(1, name="c7")


def test_a_task_names_calendars_of_its_owner_only() -> None:
    stage = CalendarStage()
    calendars.put(NewCalendar("eve", "de", frozenset()), stage, random=1)
    with pytest.raises(Invalid, match=r"schedule\.exclude: names de, and there is no such calendar"):
        stage.create(DAILY)
    assert stage.tasks.rows == {}


def test_no_run_of_a_task_is_on_an_excluded_date() -> None:
    stage = CalendarStage()
    stage.put(1, 3)
    task = stage.create(DAILY)
    assert stage.days(task) == [2, *range(4, 13)]
    stage.clock.sleep_until(NOW + 8 * 86_400_000)
    stage.top_up(task)
    assert stage.days(task) == [2, *range(4, 19)]


def test_a_changed_calendar_replaces_the_future_runs_of_its_tasks() -> None:
    stage = CalendarStage()
    stage.put(1)
    tasks = [stage.create(DAILY) for _ in range(60)]
    other, paused = stage.create({"cron": "0 9 * * *"}), stage.create(DAILY, paused=True)
    made = stage.put(2)
    assert (made.outcome, made.operation and made.operation.action) == (Outcome.UPDATED, Action.APPLY_CALENDAR)
    began = stage.clock.now()
    done = stage.work_off(made.operation)
    assert (done.state, done.done, done.skipped, done.failed) == (State.DONE, 61, 0, 0)
    assert all(stage.days(task)[:3] == [1, 3, 4] for task in tasks)
    assert stage.task(other).generation == 1 and stage.task(paused).calendars == {"de": made.calendar.version}
    assert stage.clock.now() < began + 30_000
    assert stage.put(2).operation is None, "all tasks have the dates"


def test_a_put_again_completes_what_an_aborted_operation_left() -> None:
    stage = CalendarStage()
    stage.put(1)
    task = stage.create(DAILY)
    made = stage.put(2)
    assert made.operation is not None
    requests.abort("ann", made.operation.id, stage)
    again = stage.put(2)
    assert again.outcome is Outcome.UNCHANGED
    assert stage.work_off(again.operation).done == 1 and stage.days(task)[:2] == [1, 3]


def test_a_task_that_a_calendar_leaves_empty_has_ended() -> None:
    stage = CalendarStage()
    stage.put(1, 2)
    task = stage.create({"cron": "0 9 * * *", "only": ["de"]})
    assert stage.days(task) == [1, 2]
    assert stage.work_off(stage.put().operation).done == 1
    assert stage.days(task) == [] and status(stage.task(task), stage.clock.now()) is TaskStatus.ENDED


def test_a_full_row_of_operations_changes_nothing() -> None:
    stage = CalendarStage()
    stage.put(1)
    stage.create(DAILY)
    for number in range(2, 7):
        stage.put(number)
    with pytest.raises(Conflict, match="5 operations are already running"):
        stage.put(1)
    assert calendars.find("ann", "de", stage).days == {day(6)}


def test_a_calendar_in_use_is_not_deleted() -> None:
    stage = CalendarStage()
    stage.put(1)
    tasks = [stage.create(DAILY) for _ in range(12)]
    with pytest.raises(Conflict, match=r"12 tasks use the calendar: a task \(.*\) and others") as refused:
        calendars.delete("ann", "de", stage)
    assert sum(task.id in refused.value.message for task in tasks) == 10
    for task in tasks:
        service.delete(task.key, stage)
    calendars.delete("ann", "de", stage)
    with pytest.raises(NotFound):
        calendars.delete("ann", "de", stage)


def test_a_calendar_that_gets_a_task_while_it_is_deleted_stays() -> None:
    stage = CalendarStage()
    stage.put(1)
    users = stage.calendars.tasks
    reads: list[Any] = []

    def late(*args: Any, **more: Any) -> Any:
        reads.append(users(*args, **more))
        if len(reads) == 1:
            stage.create(DAILY)
        return reads[-1]

    stage.calendars = Wrapped(stage.calendars, tasks=lambda verb, *args, **more: late(*args, **more))
    with pytest.raises(Conflict, match="a task uses the calendar"):
        calendars.delete("ann", "de", stage)
    stage.create(DAILY)


def test_no_task_takes_a_calendar_whose_deletion_died() -> None:
    stage = CalendarStage()
    stored = stage.put(1).calendar
    withdrawn = replace(stored, withdrawn=True, version=stored.version + 1)
    stage.calendars.put(stored, withdrawn)
    with pytest.raises(Invalid, match="there is no such calendar"):
        stage.create(DAILY)
    assert stage.put(1).outcome is Outcome.UPDATED
    stage.create(DAILY)


@pytest.mark.parametrize("moment", ["create", "edit"])
def test_a_task_is_never_stored_with_the_dates_of_before(moment: str) -> None:
    """The calendar changes between the read of its dates and the write of the task."""
    stage = CalendarStage()
    stage.put(1)
    task = stage.create({"cron": "0 9 * * *"})
    store, changes = stage.tasks.store, iter([2])

    def late(verb: Any, *args: Any, **more: Any) -> Any:
        for number in changes:
            stage.put(number)
        return store(*args, **more)

    stage.tasks = Wrapped(stage.tasks, store=late)
    if moment == "edit":
        assert stage.days(stage.edit(task, DAILY))[:2] == [1, 3]
    else:
        with pytest.raises(Unavailable):
            stage.create(DAILY)
        assert stage.days(stage.create(DAILY))[:2] == [1, 3]


def test_an_edit_and_a_resume_take_the_present_dates() -> None:
    stage = CalendarStage()
    stage.put(1)
    edited, resumed = stage.create(DAILY), stage.create(DAILY)
    service.deactivate(resumed.key, None, stage)
    stage.put(2)  # its operation has not begun
    stage.edit(edited, DAILY, description="other")
    service.activate(resumed.key, stage)
    assert stage.days(edited)[:2] == stage.days(resumed)[:2] == [1, 3]


def test_an_edit_of_something_else_keeps_the_runs() -> None:
    stage = CalendarStage()
    stage.put(1)
    task = stage.create(DAILY | {"on_excluded": "next_day"})
    before = stage.days(task)
    stage.edit(task, {**DAILY, "on_excluded": "next_day"}, description="other")
    assert stage.days(task) == before
    assert stage.task(task).schedule == task.schedule


def test_a_key_of_a_deleted_task_counts_no_more() -> None:
    stage = CalendarStage()
    stage.put(1)
    task = stage.create(DAILY)
    del stage.tasks.rows[TaskKey("ann", task.id)]  # its note stays
    assert stage.put(2).operation is None
    assert isinstance(calendars.delete("ann", "de", stage), Calendar)
