"""Plan: tops up, every minute, the runs of the tasks that are due for it."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.model import lifecycle, slots
from scheduler.model.errors import Unavailable
from scheduler.model.job import Job, Lane, Misfire, Status
from scheduler.model.task import Task
from scheduler.storage.ports import Found
from scheduler.tasks import plan as service
from scheduler.tasks import top_up
from scheduler.tasks.planning import PLAN_SHARDS, further
from tests.conftest import NOW
from tests.unit.stage import Wrapped, lost_answer, refuse, times
from tests.unit.task_stage import TaskStage, nominal_times

MINUTE, HOUR = 60_000, 3_600_000
ALWAYS: dict[str, Any] = {"misfire": Misfire.SKIP, "misfire_threshold_ms": 400 * 24 * HOUR}  # late runs may start, however late


def minutes(stage: TaskStage, count: int) -> list[service.PlanResult]:
    """Run plan at the beginning of each of the next minutes."""
    results = []
    for _ in range(count):
        stage.clock.at = (stage.clock.at // MINUTE + 1) * MINUTE
        results.append(stage.plan())
    return results


def assert_all_runs_are_stored(stage: TaskStage, task: Task) -> None:
    assert stage.times(task) == nominal_times(task, NOW, stage.task(task).planned_until)


def left(stage: TaskStage, task: Task) -> int:
    """The number of stored future runs."""
    return sum(1 for at in stage.times(task) if at > stage.clock.now())


@pytest.mark.parametrize("schedule", [{"cron": "* * * * *"}, {"rate": "5 seconds"}, {"rate": "90 seconds"}, {"rate": "1 hour"}])
def test_task_never_lacks_runs_and_no_run_is_stored_twice(schedule: dict[str, Any]) -> None:
    stage = TaskStage()
    task = stage.create(schedule)
    for result in minutes(stage, 60):
        assert left(stage, task) >= 4 and result.failed == 0
        assert stage.task(task).planned_until - stage.clock.now() >= 6 * MINUTE
    assert_all_runs_are_stored(stage, task)


@pytest.mark.parametrize("schedule", [{"cron": "* * * * *"}, {"rate": "5 seconds"}])
@pytest.mark.parametrize("phase", range(0, 15, 2))
def test_five_minutes_without_plan_leave_every_task_with_runs(schedule: dict[str, Any], phase: int) -> None:
    stage = TaskStage()
    task = stage.create(schedule)
    minutes(stage, phase)
    stage.clock.advance(5 * MINUTE)
    assert left(stage, task) > 0
    minutes(stage, 1)
    assert stage.task(task).planned_until - stage.clock.now() > 7 * MINUTE
    assert_all_runs_are_stored(stage, task)


def test_a_task_is_topped_up_in_its_minute_and_not_before() -> None:
    stage = TaskStage()
    task = stage.create({"cron": "* * * * *"})
    assert [result.tasks for result in minutes(stage, 8)] == [0, 0, 0, 0, 0, 0, 1, 0]
    assert len(stage.runs(task)) == 22


def test_plan_stores_all_missed_runs_that_may_start_after_hours_without_it() -> None:
    stage = TaskStage()
    tasks = [stage.create(schedule, **ALWAYS) for schedule in ({"cron": "* * * * *"}, {"rate": "1 hour"}, {"rate": "30 seconds"})]
    stage.clock.advance(5 * HOUR)
    minutes(stage, 1)
    for task in tasks[:1] + tasks[2:]:
        assert stage.task(task).planned_until >= stage.clock.now() + 15 * MINUTE
        assert_all_runs_are_stored(stage, task)
    assert len(stage.runs(tasks[1])) == 10


def test_the_cursor_follows_three_minutes_behind() -> None:
    stage = TaskStage()
    minutes(stage, 30)
    assert stage.ledger.plan_cursor() == slots.minute_of(stage.clock.now() - 3 * MINUTE)
    assert minutes(stage, 1)[0].minutes == 5  # four unsettled ones, and a settled one
    assert minutes(stage, 1)[0].lag_ms == 0


def test_cursor_passes_a_minute_only_once_it_is_empty() -> None:
    stage = TaskStage()
    stage.create({"cron": "* * * * *"})
    minutes(stage, 5)
    stage.clock.advance(6 * MINUTE)
    assert minutes(stage, 1)[0].tasks == 1 and stage.ledger.plan_cursor() == slots.minute_of(NOW + 7 * MINUTE)
    assert minutes(stage, 1)[0].tasks == 0 and stage.ledger.plan_cursor() == slots.minute_of(NOW + 10 * MINUTE)


def test_minute_with_a_task_is_checked_again() -> None:
    """A task that cannot be topped up stays in its minute and stops the cursor for a quarter of an hour at most."""
    stage = TaskStage()
    task = stage.create({"cron": "* * * * *"}, **ALWAYS)
    minutes(stage, 3)
    real, stage.jobs = stage.jobs, Wrapped(stage.jobs, put_many=refuse)
    results = minutes(stage, 17)
    assert stage.ledger.plan_cursor() == slots.minute_of(NOW + 7 * MINUTE) and results[-1].lag_ms == 9 * MINUTE
    assert [result.failed for result in results[-6:]] == [1] * 6
    stage.jobs = real
    minutes(stage, 1)
    assert_all_runs_are_stored(stage, task)
    minutes(stage, 4)
    assert stage.ledger.plan_cursor() == slots.minute_of(stage.clock.now() - 3 * MINUTE)


def test_broken_task_blocks_neither_other_tasks_nor_the_cursor() -> None:
    stage = TaskStage()
    broken, good = stage.create({"cron": "* * * * *"}), stage.create({"cron": "* * * * *"})

    def get_many(verb: Any, keys: Any) -> Any:
        found = verb(keys)
        return Found({key: task for key, task in found.items() if key != broken.key}, {broken.key: "no such zone"})

    stage.tasks = Wrapped(stage.tasks, get_many=get_many)
    results = minutes(stage, 30)
    assert sum(result.failed for result in results) > 5
    assert stage.task(good).planned_until >= stage.clock.now() + 7 * MINUTE
    assert_all_runs_are_stored(stage, good)
    assert stage.ledger.plan_cursor() == slots.minute_of(stage.clock.now() - 3 * MINUTE)


def test_broken_schedule_does_not_block_its_group(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = TaskStage()
    broken, good = stage.create({"cron": "* * * * *"}), stage.create({"cron": "* * * * *"})
    real = further

    def breaking(task: Task, *args: Any, **kwargs: Any) -> Any:
        if task.id == broken.id:
            raise OverflowError("date value out of range")
        return real(task, *args, **kwargs)

    monkeypatch.setattr(top_up, "further", breaking)
    minutes(stage, 7)
    assert len(stage.runs(good)) == 22 and len(stage.runs(broken)) == 15


def test_repair_pass_finds_a_task_that_the_index_shows_late() -> None:
    stage = TaskStage()
    task = stage.create({"cron": "* * * * *"})
    assert task.replenish is not None
    hidden = stage.tasks._index.pop(task.key)
    stage.clock.at = NOW + 5 * MINUTE
    minutes(stage, 12)
    assert len(stage.runs(task)) == 15 and (stage.ledger.plan_cursor() or "") > slots.minute(hidden)
    stage.tasks._index[task.key] = hidden
    assert [result.repaired for result in minutes(stage, 10)].count(1) == 1
    assert_all_runs_are_stored(stage, task)
    assert left(stage, task) >= 4


def test_task_still_in_the_lagging_index_is_not_topped_up_again() -> None:
    stage = TaskStage()
    task = stage.create({"cron": "* * * * *"})
    old = stage.tasks._index[task.key]
    minutes(stage, 7)
    done = stage.task(task)
    stage.tasks._index[task.key] = old
    stage.clock.advance(3 * MINUTE)
    assert stage.plan().tasks == 0 and stage.task(task) == done


def test_first_plan_finds_tasks_however_long_they_are_overdue() -> None:
    stage = TaskStage()
    task = stage.create({"cron": "* * * * *"}, **ALWAYS)
    stage.clock.advance(2 * HOUR + 3 * MINUTE)
    result = stage.plan()
    assert result.repaired == 1 and left(stage, task) >= 10
    assert_all_runs_are_stored(stage, task)


def test_plan_stops_after_its_time_and_the_next_one_continues() -> None:
    stage = TaskStage()
    tasks = [stage.create({"cron": "* * * * *"}) for _ in range(60)]

    def slowly(verb: Any, jobs: Any) -> Any:
        stage.clock.advance(20_000)
        return verb(jobs)

    stage.jobs = Wrapped(stage.jobs, put_many=slowly)
    stage.clock.at = NOW + 7 * MINUTE
    first = stage.plan()
    assert stage.clock.now() - NOW - 7 * MINUTE < 70_000 and 0 < first.tasks < 60
    while sum(len(stage.runs(task)) >= 22 for task in tasks) < 60:
        before = stage.clock.now()
        assert stage.plan().tasks > 0 and stage.clock.now() > before
    for task in tasks:
        assert_all_runs_are_stored(stage, task)


def test_two_plans_at_once_do_no_harm() -> None:
    stage = TaskStage()
    task = stage.create({"cron": "* * * * *"})
    real = stage.jobs

    def twice(verb: Any, jobs: Any) -> Any:
        stage.jobs = real
        assert stage.plan().failed == 0
        return verb(jobs)

    stage.clock.at = NOW + 7 * MINUTE
    stage.jobs = Wrapped(real, put_many=times(1, twice))
    assert stage.plan().failed == 0
    assert_all_runs_are_stored(stage, task)
    assert stage.task(task).planned == 22


def test_refusing_ledger_stops_plan_and_the_next_one_continues() -> None:
    stage = TaskStage()
    task = stage.create({"cron": "* * * * *"})
    minutes(stage, 5)
    real, stage.ledger = stage.ledger, Wrapped(stage.ledger, set_plan_cursor=refuse)
    with pytest.raises(Unavailable):
        minutes(stage, 1)
    stage.ledger = real
    minutes(stage, 10)
    assert_all_runs_are_stored(stage, task)


class Crash(BaseException):
    """The function has ended: none of its code may catch this."""


def crash_before(verb: Any, *args: Any) -> Any:
    raise Crash


def crash_after(verb: Any, *args: Any) -> Any:
    verb(*args)
    raise Crash


def half(verb: Any, jobs: Any) -> Any:
    verb(jobs[: len(jobs) // 2])
    raise Crash


STEPS = st.tuples(
    st.integers(-2 * MINUTE, 12 * MINUTE),  # clocks of two machines differ
    st.sampled_from([None, ("jobs", "put_many", crash_before), ("jobs", "put_many", crash_after), ("jobs", "put_many", half)])
    | st.sampled_from([("jobs", "put_many", refuse), ("jobs", "put_many", lost_answer), ("lanes", "send", crash_before)])
    | st.sampled_from([("tasks", "move_on", crash_before), ("tasks", "move_on", crash_after), ("tasks", "move_on", lost_answer)])
    | st.sampled_from([("ledger", "set_plan_cursor", crash_before), ("ledger", "set_plan_cursor", crash_after)]),
)
SCHEDULES = st.sampled_from(
    [
        {"cron": "* * * * *"},
        {"rate": "17 seconds"},
        {"rate": "7 minutes", "jitter_seconds": 600},
        {"cron": "*/5 * * * *", "max_runs": 17},
        {"rate": "1 minute", "end": "2026-11-20T10:31:30Z"},
    ]
)


@settings(max_examples=50)
@given(SCHEDULES, st.lists(STEPS, max_size=8))
def test_each_nominal_time_is_stored_once_whatever_happens_to_plan(schedule: dict[str, Any], steps: list[Any]) -> None:
    stage = TaskStage()
    task = stage.create(schedule, **ALWAYS)
    furthest = stage.clock.now()
    for pause, fault in steps:
        stage.clock.advance(pause)
        furthest = max(furthest, stage.clock.now())
        if fault is None:
            stage.plan()
            continue
        port, verb, then = fault
        real = getattr(stage, port)
        setattr(stage, port, Wrapped(real, **{verb: times(1, then)}))
        try:
            stage.plan()
        except (Crash, Unavailable):
            pass
        setattr(stage, port, real)
    stage.clock.advance(furthest - stage.clock.now())  # a slow clock reaches the runs stored by a fast one later
    minutes(stage, 11)
    stored = stage.task(task)
    due = nominal_times(task, NOW, stored.planned_until)
    assert task.schedule is not None
    assert stage.times(task) == due[: task.schedule.max_runs] and stored.planned == len(stage.times(task))
    if stored.replenish is not None:
        assert left(stage, task) >= 4
    elif task.schedule.max_runs:
        assert stored.planned == task.schedule.max_runs


def test_every_shard_of_a_minute_is_checked() -> None:
    stage = TaskStage()
    tasks = [stage.create({"cron": "* * * * *"}) for _ in range(60)]
    assert len({task.replenish for task in tasks}) == PLAN_SHARDS
    assert [result.tasks for result in minutes(stage, 7)][-1] == 60


# After a long time without plan


class Costly(TaskStage):
    """A stage whose calls of plan take time: a read or an update 4 ms, a call of 25 inserts 3 ms, each message 0.3 ms."""

    def begin(self) -> None:
        def taking(ms: Any) -> Any:
            def call(verb: Any, *args: Any, **named: Any) -> Any:
                self.clock.advance(ms(*args) if callable(ms) else ms)
                return verb(*args, **named)

            return call

        reads = dict.fromkeys(("get_many", "move_on", "to_replenish", "overdue"), taking(4))
        self.tasks = Wrapped(self.tasks, **reads)
        self.jobs = Wrapped(self.jobs, put_many=taking(lambda jobs: 3 * -(-len(jobs) // 25)))
        self.lanes = Wrapped(self.lanes, send=taking(lambda messages, now: len(messages) * 3 // 10))


@pytest.mark.long
def test_after_a_day_without_plan_all_tasks_have_future_runs_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MOST_GAPS", 20)  # counting the missed runs of all takes a minute of processor time
    stage = Costly()
    tasks = [stage.create({"cron": "* * * * *"}, owner=f"user{number % 50}") for number in range(2_000)]
    stored = len(stage.jobs.rows)
    stage.plan()
    stage.clock.at = NOW + 24 * HOUR + 30_000
    stage.begin()
    result = stage.plan()
    assert stage.clock.now() < NOW + 24 * HOUR + 90_000 and result.failed == 0
    following = slots.start_of(slots.following(slots.minute_of(stage.clock.now())))
    ahead = {job.origin.task for job in stage.jobs.rows.values() if job.origin and job.slot is not None and job.scheduled_at == following}
    assert len(ahead) == len(tasks)
    worked_off = [task for task in tasks if stage.task(task).gap is None]
    assert len(worked_off) == 20 and result.missed == 20 * (1_440 - 15 - 1), "every run that did not start is counted"
    assert len(stage.jobs.rows) == stored + len(tasks) * 16 + 20 * 2
    one = [job for job in stage.runs(worked_off[0]) if NOW + 15 * MINUTE < job.scheduled_at <= NOW + 24 * HOUR]
    assert [(job.scheduled_at - NOW) // MINUTE for job in one] == [1_439, 1_440] and one[0].skipped_at is not None


def test_runs_that_can_start_after_a_day_are_sent_and_no_other() -> None:
    stage = TaskStage()
    task = stage.create({"cron": "* * * * *"})
    stage.clock.at = NOW + 24 * HOUR
    for queued in stage.receive(Lane.RECURRING, 100):
        stage.lanes.delete(Lane.RECURRING, queued.receipt)
    stage.plan()
    late = [queued.message for queued in stage.lanes.queues[Lane.RECURRING].values() if queued.message.due_at <= stage.clock.now()]
    assert [message.key.id for message in late] == [job.id for job in stage.runs(task) if job.scheduled_at == NOW + 24 * HOUR]


def test_the_history_has_an_entry_for_missed_runs() -> None:
    stage = TaskStage()
    task = stage.create({"cron": "* * * * *"})
    stage.clock.at = NOW + 24 * HOUR
    stage.plan()
    page = stage.jobs.of_task(task.key, since=None, until=stage.clock.now() - 1, after=None, limit=1, newest_first=True)
    (entry,) = page.jobs
    assert lifecycle.status(entry, stage.clock.now()) is Status.SKIPPED
    assert entry.reason == (
        "misfire: it could not start before 2026-11-21T10:00:00.000Z; it stands for 1,424 missed runs, "
        "the first of 2026-11-20T10:16:00.000Z: nothing was planned then"
    )


def test_each_missed_run_has_an_entry_if_only_a_part_of_them_was_stored() -> None:
    stage = TaskStage()
    task = stage.create({"cron": "* * * * *"})
    stage.clock.at = NOW + 2 * HOUR

    def stored_before(verb: Any, jobs: list[Job]) -> Any:
        for job in jobs:
            if "stands for" in (job.reason or ""):  # an earlier top-up stored this run, and was refused others
                verb([replace(job, slot="2026-11-20T11:40#00", skipped_at=None, reason=None, expires=None)])
        return verb(jobs)

    stage.jobs = Wrapped(stage.jobs, put_many=stored_before)
    stage.plan()
    assert_all_runs_are_stored(stage, task)


@pytest.mark.long
def test_plan_works_off_gaps_in_turn_and_the_next_plan_continues() -> None:
    stage = TaskStage()
    tasks = [stage.create({"rate": "5 seconds"}) for _ in range(30)]
    stage.clock.at = NOW + 24 * HOUR
    real = stage.jobs

    def slowly(verb: Any, jobs: Any) -> Any:
        stage.clock.advance(8 * len(jobs))  # a step has up to 5,000 runs
        return verb(jobs)

    stage.jobs = Wrapped(real, put_many=slowly)
    began = stage.clock.now()
    stage.plan()
    assert stage.clock.now() < began + 75_000 and all(stage.task(task).planned_until > began for task in tasks)
    assert any(stage.task(task).gap is not None for task in tasks)
    stage.jobs = real
    minutes(stage, 5)
    for task in tasks:
        assert stage.task(task).gap is None and stage.task(task).planned >= 24 * 720


def test_a_crash_in_a_gap_neither_doubles_nor_loses_its_runs() -> None:
    stage = TaskStage()
    task = stage.create({"cron": "* * * * *"}, misfire=Misfire.RUN_ALL, max_catch_up=300)
    stage.clock.at = NOW + 24 * HOUR
    real = stage.tasks
    for call in range(2, 6):
        calls = iter(range(1, 100))
        stage.tasks = Wrapped(
            real, move_on=lambda verb, *args, calls=calls, call=call: verb(*args) if next(calls) != call else crash_before(verb)
        )
        try:
            stage.plan()
        except Crash:
            pass
        stage.tasks = real
        stage.clock.advance(MINUTE)
    minutes(stage, 4)
    past = [job for job in stage.runs(task) if NOW + 15 * MINUTE < job.scheduled_at <= NOW + 24 * HOUR]
    assert [job.skipped_at is None for job in past] == [False] + [True] * 300
    assert "1,125 missed runs" in (past[0].reason or "") and stage.task(task).gap is None


def test_a_run_that_cannot_be_stored_stops_no_other_task() -> None:
    stage = TaskStage()
    broken, good = stage.create({"cron": "* * * * *"}), stage.create({"cron": "* * * * *"})

    def refusing(verb: Any, jobs: list[Job]) -> Any:
        if any(job.origin and job.origin.task == broken.id for job in jobs):
            raise ValueError("the item is too large")
        return verb(jobs)

    stage.jobs = Wrapped(stage.jobs, put_many=refusing)
    results = minutes(stage, 7)
    assert len(stage.runs(good)) == 22 and len(stage.runs(broken)) == 15 and results[-1].failed == 1


def test_tasks_of_a_deleted_user_end_when_they_need_runs() -> None:
    stage = TaskStage()
    theirs, other = stage.create({"cron": "* * * * *"}, owner="ann"), stage.create({"cron": "* * * * *"}, owner="ben")
    stage.users.delete("ann", NOW)
    results = minutes(stage, 7)
    assert sum(result.ended for result in results) == 1 and left(stage, other) >= 4
    ended = stage.task(theirs)
    assert ended.replenish is None and len(stage.runs(theirs)) == 15, "the owner's gate cancels the stored runs when they are due"


def test_plan_continues_while_it_cannot_read_the_deleted_users() -> None:
    stage = TaskStage()
    task = stage.create({"cron": "* * * * *"})
    stage.users = Wrapped(stage.users, barred=refuse)
    assert minutes(stage, 7)[-1].failed == 0 and len(stage.runs(task)) == 22
