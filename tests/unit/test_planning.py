"""The runs to store next, and the time to plan again."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.model import ids, slots
from scheduler.model.job import Job, Lane, Misfire, Overlap
from scheduler.model.rules import Rules
from scheduler.model.schedule import Cron, Once, Rate, Schedule
from scheduler.model.spec import RetryPolicy
from scheduler.model.task import Gap, Task
from scheduler.tasks import planning
from scheduler.tasks.planning import PLAN_SHARDS, further
from scheduler.tasks.schedule import after
from tests.conftest import NOW, with_spec
from tests.unit.task_stage import nominal_times

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
RULES = Rules(shards=2)
EVERY_MINUTE = Schedule(Cron("* * * * *"))


def a_task(schedule: Schedule | None = EVERY_MINUTE, **fields: Any) -> Task:
    chosen: dict[str, Any] = {
        "owner": "ann",
        "id": ids.new(NOW, 7, partitions=1),
        "name": "a task",
        "schedule": schedule,
        "created_at": NOW,
        "updated_at": NOW,
        "planned_until": NOW,
    }
    return Task(**with_spec(chosen | fields))


def replenish_at(task: Task) -> int:
    assert task.replenish is not None and task.replenish == slots.slot(slots.minute(task.replenish), task.id, PLAN_SHARDS)
    return slots.start_of(slots.minute(task.replenish))


def test_a_run_is_a_job_with_the_fields_of_its_task() -> None:
    task = a_task(tags=("nightly",), max_attempts=5, retry=RetryPolicy(7), timeout_ms=1_000, overlap=Overlap.QUEUE_ONE, generation=3)
    run = further(task, NOW, RULES).runs[0]
    assert run.id == ids.run(NOW + MINUTE, task.id, 3) and ids.time(run.id) == run.scheduled_at == run.due_at == NOW + MINUTE
    assert (run.owner, run.spec.type, run.spec.payload, run.spec.tags) == ("ann", "log", {"message": "hello"}, ("nightly",))
    assert (run.spec.max_attempts, run.spec.retry.base_ms, run.spec.timeout_ms, run.lane) == (5, 7, 1_000, Lane.RECURRING)
    assert run.origin is not None and (run.origin.task, run.origin.generation) == (task.id, 3)
    assert (run.origin.nominal_at, run.origin.overlap, run.origin.misfire) == (NOW + MINUTE, Overlap.QUEUE_ONE, Misfire.RUN_LATEST)


def test_a_run_by_hand_can_be_answered_again_as_it_was_created() -> None:
    run = planning.by_hand(a_task(max_attempts=5, retry=RetryPolicy(7)), NOW, 1, None, NOW, RULES)
    assert planning.as_requested(replace(run, fence=3, charged=1, slot=None, completed_at=NOW), RULES) == run


@pytest.mark.parametrize(
    ("spec", "count", "again"),
    [
        (Rate(SECOND, NOW), 900, 7 * MINUTE),  # fifteen minutes' worth; seven and a half of them left
        (Rate(5 * SECOND, NOW), 180, 7 * MINUTE),
        (Cron("* * * * *"), 15, 7 * MINUTE),
        (Rate(90 * SECOND, NOW), 10, 7 * MINUTE),  # ten runs, which take exactly as much time
        (Rate(HOUR, NOW), 10, 6 * HOUR),  # ten runs; four of them left
        (Cron("0 0 1 1 *"), 10, 0),
    ],
)
def test_enough_runs_are_stored_to_last_until_the_next_top_up(spec: Cron | Rate, count: int, again: int) -> None:
    plan = further(a_task(Schedule(spec)), NOW, RULES)
    assert plan.complete and len(plan.runs) == count == plan.task.planned
    assert plan.task.planned_until == plan.runs[-1].scheduled_at
    assert replenish_at(plan.task) == (NOW + again if again else plan.runs[5].scheduled_at)


def test_four_runs_and_seven_minutes_are_left_at_the_next_top_up() -> None:
    for spec in (Rate(SECOND, NOW), Rate(7 * SECOND, NOW), Rate(100 * SECOND, NOW), Cron("*/3 * * * *"), Cron("17 4 * * MON")):
        task = further(a_task(Schedule(spec)), NOW, RULES).task
        now = replenish_at(task)
        assert len(planning.to_come(task, now)) >= 4 and task.planned_until - now >= 450_000


def test_the_next_top_up_is_never_nearer_than_two_minutes() -> None:
    """This applies also to a task with more runs to store than one step may: if the planner dies, the next one continues."""
    plan = further(a_task(Schedule(Rate(SECOND, NOW))), NOW + 1, RULES, most=10)
    assert not plan.complete and len(plan.runs) == 10 and replenish_at(plan.task) == NOW + 3 * MINUTE
    assert replenish_at(further(a_task(Schedule(Rate(SECOND, NOW))), NOW, RULES, most=10).task) == NOW + 2 * MINUTE


def test_a_top_up_continues_where_the_last_one_stopped() -> None:
    first = further(a_task(), NOW, RULES)
    second = further(first.task, NOW + 7 * MINUTE, RULES)
    assert [run.scheduled_at for run in first.runs + second.runs] == [NOW + MINUTE * number for number in range(1, 23)]
    assert second.task.planned == 22


def test_no_run_is_stored_while_enough_runs_are() -> None:
    first = further(a_task(), NOW, RULES)
    assert further(first.task, NOW + 30_000, RULES).runs[1:] == []


def test_runs_missed_in_an_outage_are_planned_and_due_at_once() -> None:
    task = further(a_task(Schedule(Rate(HOUR, NOW))), NOW, RULES).task
    now = NOW + 13 * HOUR + 1
    plan = further(task, now, RULES)
    assert [run.scheduled_at for run in plan.runs] == [NOW + HOUR * number for number in range(11, 24)]
    late = plan.runs[0]
    assert late.due_at == now and ids.time(late.id) == late.scheduled_at == NOW + 11 * HOUR
    assert slots.minute(late.slot or "") == slots.first_safe_minute(now)


ALWAYS: dict[str, Any] = {"misfire": Misfire.SKIP, "misfire_threshold_ms": 400 * DAY}  # late runs may start, however late


def steps(task: Task, now: int) -> tuple[list[Job], Task]:
    """The runs that plan stores of the task at one instant: the future runs, then the missed ones. Returns them with the new task."""
    found, is_first = list[Job](), True
    for _ in range(1_000):
        plan = planning.catch_up(task, now, RULES) if task.gap and not is_first else further(task, now, RULES)
        is_first, caught_up = False, task.gap is not None and plan.task.gap is None
        task, found = plan.task, found + plan.runs
        if plan.complete and task.gap is None and not caught_up:
            return found, task
        assert len(plan.runs) <= planning.MOST
    raise AssertionError("planning does not end")


@pytest.mark.long
def test_a_long_outage_of_a_dense_task_is_caught_up_in_steps() -> None:
    now = NOW + HOUR
    found, _ = steps(a_task(Schedule(Rate(SECOND, NOW)), **ALWAYS), now)
    instants = [run.scheduled_at for run in found]
    assert instants[:900] == [now + SECOND * number for number in range(1, 901)], "the future runs are first"
    assert sorted(instants) == [NOW + SECOND * number for number in range(1, 3_600 + 900 + 1)]
    assert replenish_at(further(a_task(Schedule(Rate(SECOND, NOW))), now, RULES).task) == now + 2 * MINUTE, "for the missed ones"


def missed_in(task: Task, now: int) -> tuple[list[Job], Job | None]:
    """Of the runs up to `now`: the runs to start, and the entry of the others."""
    past = [run for run in steps(task, now)[0] if run.scheduled_at <= now]
    assert [run.skipped_at for run in past[1:]] == [None] * (len(past) - 1)
    return ([], None) if not past else (past[1:], past[0]) if past[0].skipped_at else (past, None)


def test_after_a_day_run_latest_stores_one_run_and_one_entry() -> None:
    now = NOW + DAY + 20 * SECOND
    kept, entry = missed_in(a_task(), now)
    assert [run.scheduled_at for run in kept] == [NOW + DAY] and kept[0].due_at == now and kept[0].slot is not None
    assert entry is not None and (entry.scheduled_at, entry.skipped_at, entry.slot) == (NOW + DAY - MINUTE, now, None)
    assert entry.reason is not None and "stands for 1,439 missed runs" in entry.reason and "2026-11-20T10:01:00" in entry.reason


def test_after_a_day_skip_stores_only_an_entry() -> None:
    kept, entry = missed_in(a_task(misfire=Misfire.SKIP, misfire_threshold_ms=10 * SECOND), NOW + DAY + 20 * SECOND)
    assert kept == [] and entry is not None and "1,440 missed runs" in (entry.reason or "")


def test_after_a_day_run_all_stores_as_many_runs_as_it_makes_up_for() -> None:
    kept, entry = missed_in(a_task(misfire=Misfire.RUN_ALL, max_catch_up=150), NOW + DAY + 20 * SECOND)
    assert len(kept) == 150 and kept[-1].scheduled_at == NOW + DAY
    assert entry is not None and "1,290 missed runs" in (entry.reason or "")
    origins = [run.origin for run in kept if run.origin]
    assert [origin.previous_at for origin in origins] == [run.scheduled_at - MINUTE for run in kept], "they run in a row"
    assert [origin.next_at for origin in origins] == [run.scheduled_at + MINUTE for run in kept]


def test_the_first_run_after_a_gap_names_the_run_before_it() -> None:
    first = further(a_task(misfire=Misfire.RUN_ALL), NOW + DAY, RULES).runs[0]
    assert first.origin is not None and first.origin.previous_at == NOW + DAY


def test_one_entry_represents_the_runs_of_one_step_of_a_long_gap() -> None:
    found, task = steps(a_task(Schedule(Rate(5 * SECOND, NOW))), NOW + DAY)
    entries = [run for run in found if run.skipped_at]  # the last twelve runs are less than the threshold of a minute late
    assert len(entries) == -(-17_280 // planning.WALK) and task.planned == 17_280 + 180
    assert sum(int((run.reason or "").partition("stands for ")[2].split()[0].replace(",", "")) for run in entries) == 17_280 - 12


def test_missed_runs_count_for_max_runs() -> None:
    found, task = steps(a_task(Schedule(Cron("* * * * *"), max_runs=1_450)), NOW + DAY)
    assert task.planned == 1_450 and task.replenish is None
    assert [run.scheduled_at for run in found if run.scheduled_at > NOW + DAY] == [NOW + DAY + MINUTE * n for n in range(1, 11)]
    found, task = steps(a_task(Schedule(Cron("* * * * *"), max_runs=30)), NOW + DAY)
    assert task.planned == 30 and all(run.scheduled_at <= NOW + 30 * MINUTE for run in found)
    assert task.planned_until == NOW + 30 * MINUTE, "no run beyond the last one is planned"


def test_a_second_outage_makes_the_gap_longer() -> None:
    task = further(a_task(), NOW + HOUR, RULES).task
    found, after_all = steps(task, NOW + 2 * HOUR)
    (entry,) = [run for run in found if run.skipped_at]
    assert "119 missed runs" in (entry.reason or "") and after_all.gap is None
    again = further(task, NOW + 2 * HOUR, RULES).task
    assert task.gap is not None and again.gap == Gap(task.gap.after, NOW + 2 * HOUR, NOW + 2 * HOUR)


def test_the_same_step_has_the_same_runs_whenever_it_is_repeated() -> None:
    task = further(a_task(misfire=Misfire.RUN_ALL), NOW + DAY, RULES).task
    first, later = (planning.catch_up(task, NOW + DAY + wait, RULES) for wait in (0, 5 * MINUTE))
    assert [run.id for run in first.runs] == [run.id for run in later.runs] and first.task.gap == later.task.gap


def test_a_schedule_that_ends_has_nothing_to_replenish() -> None:
    for schedule in (Schedule(Rate(HOUR, NOW), end=NOW + 4 * HOUR), Schedule(Rate(HOUR, NOW), max_runs=3), Schedule(Once(NOW + DAY))):
        plan = further(a_task(schedule), NOW, RULES)
        assert (
            plan.complete
            and plan.task.replenish is None
            and len(plan.runs) == plan.task.planned == (1 if schedule.end is schedule.max_runs else 3)
        )


def test_max_runs_applies_across_top_ups() -> None:
    first = further(a_task(Schedule(Rate(HOUR, NOW), max_runs=12)), NOW, RULES)
    second = further(first.task, NOW + 6 * HOUR, RULES)
    assert (len(first.runs), len(second.runs), second.task.replenish) == (10, 2, None)
    assert further(second.task, NOW + 20 * HOUR, RULES).runs == []


def test_a_task_whose_runs_are_all_stored_is_not_planned_again() -> None:
    assert further(a_task(Schedule(Rate(HOUR, NOW), max_runs=10)), NOW, RULES).task.replenish is None


def test_a_run_delayed_by_jitter_has_the_id_of_its_instant() -> None:
    task = a_task(Schedule(Cron("0 * * * *"), jitter_ms=HOUR))
    runs = further(task, NOW, RULES).runs
    offset = runs[0].scheduled_at - NOW - HOUR
    assert 0 < offset < HOUR
    for number, run in enumerate(runs, 1):
        assert run.origin is not None and run.origin.nominal_at == NOW + number * HOUR
        assert ids.time(run.id) == run.scheduled_at == NOW + number * HOUR + offset


def test_a_task_at_once_is_planned_once() -> None:
    plan = further(a_task(None, planned_until=NOW - 1, overlap=Overlap.ALLOW), NOW, RULES)
    (run,) = plan.runs
    assert (run.scheduled_at, run.lane, plan.task.replenish, plan.task.planned_until) == (NOW, Lane.ONE_TIME, None, NOW)
    assert run.origin is not None and run.origin.misfire is None and run.start_by is None
    assert further(plan.task, NOW + 1, RULES).runs == []


def test_a_one_time_task_has_no_misfire_rule() -> None:
    (run,) = further(a_task(Schedule(Once(NOW + HOUR))), NOW, RULES).runs
    assert run.origin is not None and (run.origin.misfire, run.start_by, run.lane) == (None, None, Lane.ONE_TIME)
    assert run.origin.nominal_at == NOW + HOUR


def test_an_inactive_task_has_no_runs() -> None:
    plan = further(a_task(inactive_at=NOW), NOW, RULES)
    assert (plan.runs, plan.task.replenish, plan.complete) == ([], None, True)


# Misfire


def test_run_latest_ends_at_the_next_run_and_the_last_run_always_runs() -> None:
    runs = further(a_task(Schedule(Rate(HOUR, NOW), max_runs=3)), NOW, RULES).runs
    assert [run.start_by for run in runs] == [NOW + 2 * HOUR, NOW + 3 * HOUR, None]


def test_the_last_run_of_a_top_up_has_the_time_of_the_one_after_it() -> None:
    runs = further(a_task(Schedule(Rate(HOUR, NOW))), NOW, RULES).runs
    assert runs[-1].start_by == NOW + 11 * HOUR


def test_the_threshold_applies_if_the_next_run_is_sooner() -> None:
    runs = further(a_task(Schedule(Rate(SECOND, NOW)), misfire_threshold_ms=10_000), NOW, RULES).runs
    assert runs[0].start_by == NOW + 11 * SECOND


def test_skip_depends_on_the_threshold_only() -> None:
    runs = further(a_task(misfire=Misfire.SKIP, misfire_threshold_ms=15_000), NOW, RULES).runs
    assert {run.start_by and run.start_by - run.scheduled_at for run in runs} == {15_000}


def test_run_all_has_its_neighbours_and_the_bound_of_catching_up() -> None:
    task = a_task(Schedule(Rate(HOUR, NOW)), misfire=Misfire.RUN_ALL, max_catch_up=3)
    first = further(task, NOW, RULES)
    second = further(first.task, NOW + 6 * HOUR, RULES)
    runs = first.runs + second.runs
    assert second.runs != []
    instants = [run.scheduled_at for run in runs]
    assert [run.start_by for run in runs] == [at + 3 * HOUR for at in instants]
    origins = [run.origin for run in runs if run.origin]
    assert [origin.late_from for origin in origins] == [at + MINUTE for at in instants]
    assert [origin.previous_at for origin in origins[1:]] == instants[:-1]
    assert [origin.next_at for origin in origins] == [*instants[1:], instants[-1] + HOUR]


def test_the_last_runs_of_run_all_have_no_start_deadline() -> None:
    task = a_task(Schedule(Rate(HOUR, NOW), max_runs=5), misfire=Misfire.RUN_ALL, max_catch_up=3)
    runs = further(task, NOW, RULES).runs
    assert [run.start_by is None for run in runs] == [False, False, True, True, True]
    assert runs[-1].origin is not None and runs[-1].origin.next_at is None


def test_the_rarest_schedule_is_planned_though_its_later_runs_have_no_date() -> None:
    rare = Schedule(Cron("0 0 */29 2 MON"))
    plan = further(a_task(rare, misfire=Misfire.RUN_ALL, max_catch_up=1_000), NOW, RULES)
    assert len(plan.runs) == 10 and {run.start_by for run in plan.runs} == {None}


# Stored runs, computed from the task


SPECS = st.sampled_from(
    [Rate(SECOND, NOW), Rate(7 * SECOND, NOW), Rate(HOUR, NOW), Cron("*/5 * * * *"), Cron("0 3 * * *", "Europe/Berlin")]
)
JITTERS = st.sampled_from([0, 3 * SECOND, 30 * MINUTE])


@pytest.mark.long
@settings(max_examples=50)
@given(SPECS, JITTERS, st.lists(st.integers(0, 40 * MINUTE), max_size=6))
def test_any_sequence_of_top_ups_plans_exactly_the_nominal_times(spec: Rate | Cron, jitter: int, pauses: list[int]) -> None:
    task, now, found = a_task(Schedule(spec, jitter_ms=jitter), **ALWAYS), NOW, list[int]()
    for pause in pauses:
        now += pause
        runs, task = steps(task, now)
        found += [run.scheduled_at for run in runs]
        assert task.planned == len(found) == len(set(found))
    assert sorted(found) == nominal_times(task, NOW, task.planned_until)


@pytest.mark.long
@settings(max_examples=50)
@given(SPECS, JITTERS, st.integers(-MINUTE, 20 * MINUTE))
def test_stored_runs_follow_from_the_task_alone(spec: Rate | Cron, jitter: int, later: int) -> None:
    plan = further(a_task(Schedule(spec, jitter_ms=jitter)), NOW, RULES)
    now = NOW + later
    derived = set(planning.to_withdraw(plan.task, now))
    assert {run.key for run in plan.runs if run.scheduled_at > now} <= derived
    assert not {run.key for run in plan.runs if run.scheduled_at <= now} & derived
    assert [run.at for run in planning.to_come(plan.task, now) if run.nominal > NOW] == [
        run.scheduled_at for run in plan.runs if run.scheduled_at > now
    ]


def test_next_runs_follow_the_schedule_whether_stored_or_not() -> None:
    task = further(a_task(Schedule(Rate(HOUR, NOW), max_runs=12)), NOW, RULES).task
    for now, left in ((NOW, 12), (NOW + 5 * HOUR, 7), (NOW + 11 * HOUR, 1), (NOW + 12 * HOUR, 0)):
        assert [run.at for run in planning.next_runs(task, now, 50)] == [NOW + HOUR * number for number in range(13 - left, 13)]
    assert len(planning.next_runs(task, NOW, 3)) == 3
    assert planning.next_runs(replace(task, inactive_at=NOW), NOW, 3) == []
    assert planning.next_runs(a_task(None), NOW, 3) == []


def test_a_run_that_jitter_delays_past_now_is_a_future_run() -> None:
    task = further(a_task(Schedule(Cron("0 * * * *"), jitter_ms=HOUR)), NOW, RULES).task
    (first,) = planning.next_runs(task, NOW + HOUR + 1, 1)
    assert first.nominal == NOW + HOUR and first == next(iter(after(task.schedule, NOW, seed=task.id)))  # type: ignore[arg-type]
