"""Operations on many jobs and tasks: each match once, at a rate, with progress, for any number of invocations that work and end early."""

from dataclasses import dataclass, replace
from typing import Any

import pytest

from scheduler.jobs.cancel import cancel
from scheduler.model import ids, lifecycle, operation, settlement
from scheduler.model.errors import Conflict, Invalid, Unavailable
from scheduler.model.job import Job, Lane, Status
from scheduler.model.operation import MAX_RUNNING, Action, Filter, Operation, State
from scheduler.model.spec import Ordering
from scheduler.operations import requests
from scheduler.operations.step import SETTLED_MS, WORK_MS, OperationStep
from scheduler.storage.ports import Found, Written
from scheduler.tasks import service
from scheduler.tasks.task import Task
from tests.conftest import NOW
from tests.unit.stage import Wrapped, lost_answer, refuse, times
from tests.unit.task_stage import TaskStage

HOUR = 3_600_000
AHEAD = NOW + HOUR


@dataclass
class OperationsStage(TaskStage):
    def planned(self, action: Action, *, rate: int = 1_000, limit: int | None = None, **filter: Any) -> Operation:
        self.requests += 1
        return operation.new("ann", self.clock.now(), self.requests, action, Filter(**filter), rate=rate, limit=limit, reason="holidays")

    def begin(self, action: Action = Action.CANCEL_JOBS, *, rate: int = 1_000, limit: int | None = None, **filter: Any) -> Operation:
        """Start an operation and wait until its first chunk is due."""
        made = requests.start(self.planned(action, rate=rate, limit=limit, **filter), self)
        self.clock.advance(SETTLED_MS)
        return made

    def step(self, record: Operation) -> None:
        OperationStep(self, lambda: None).run(record.owner, record.id)

    def found(self, record: Operation) -> Operation:
        return requests.find(record.owner, record.id, operations=self.operations)

    def counts(self, record: Operation) -> tuple[State, int, int, int]:
        found = self.found(record)
        return found.state, found.done, found.skipped, found.failed

    def ahead(self, count: int, **fields: Any) -> list[Job]:
        """This number of jobs a second apart, an hour from now."""
        return [self.submit(AHEAD + number * 1_000, **fields) for number in range(count)]

    def ended(self, count: int, at: int, **fields: Any) -> list[Job]:
        """This number of jobs that ended a while ago, a second apart."""
        made = []
        for number in range(count):
            self.requests += 1
            when = at + number * 1_000
            made.append(Job("ann", ids.new(when, self.requests), JOB.spec, when, when, when, slot=None, completed_at=when, **fields))
            self.jobs.put(made[-1])
        return made

    def statuses(self, jobs: list[Job]) -> set[Status]:
        return {lifecycle.state(self.stored(job)) for job in jobs}

    def tasks_of(self, count: int, **fields: Any) -> list[Task]:
        return [self.create({"rate": "1 hours"}, **fields) for _ in range(count)]

    def paused(self, tasks: list[Task]) -> list[bool]:
        return [self.task(task).inactive_at is not None for task in tasks]


JOB = OperationsStage().submit(AHEAD)
CANCELLED, SCHEDULED, SUCCEEDED = Status.CANCELLED, Status.SCHEDULED, Status.SUCCEEDED


# Cancelling jobs


def test_all_jobs_ahead_are_cancelled_at_the_rate_and_counted() -> None:
    stage = OperationsStage()
    jobs, record = stage.ahead(120), stage.begin(rate=20)
    began = stage.clock.now()
    stage.step(record)
    assert stage.counts(record) == (State.DONE, 120, 0, 0) and stage.statuses(jobs) == {CANCELLED}
    at = sorted(stage.stored(job).cancelled_at or 0 for job in jobs)
    assert all(sum(1 for each in at if second <= each < second + 1_000) <= 21 for second in range(began, at[-1], 1_000))
    assert 5_000 <= at[-1] - began <= 6_500
    assert {stage.stored(job).reason for job in jobs} == {settlement.CANCELLED}


def test_jobs_ahead_are_cancelled_soonest_first_then_the_overdue_ones() -> None:
    stage = OperationsStage()
    early, (late,) = [stage.submit(NOW + seconds * 1_000) for seconds in (400, 500)], [stage.submit(AHEAD)]
    stage.clock.advance(550_000)
    stage.begin(limit=1)
    stage.work_off(until=stage.clock.now() + 10_000)
    assert (stage.statuses([late]), stage.statuses(early)) == ({CANCELLED}, {SCHEDULED})
    stage.begin(limit=1)
    stage.work_off(until=stage.clock.now() + 10_000)
    assert [stage.statuses([job]) for job in early] == [{SCHEDULED}, {CANCELLED}]


@pytest.mark.parametrize(
    ("filter", "hit"),
    [
        ({"type": "http"}, {1}),
        ({"tags": ("a",)}, {2, 3}),
        ({"tags": ("a", "b")}, {3}),
        ({"since": AHEAD + 1_000, "until": AHEAD + 3_000}, {1, 2}),
        ({"lane": Lane.RETRY}, set()),
        ({"lane": Lane.ONE_TIME, "until": AHEAD + 1}, {0}),
        ({"statuses": ("queued",)}, set()),
        ({"statuses": ("scheduled",)}, {0, 1, 2, 3}),
    ],
)
def test_only_jobs_that_match_the_filter_are_cancelled(filter: dict[str, Any], hit: set[int]) -> None:
    stage = OperationsStage()
    fields: list[dict[str, Any]] = [{}, {"type": "http"}, {"tags": ("a",)}, {"tags": ("a", "b")}]
    jobs = [stage.submit(AHEAD + number * 1_000, **each) for number, each in enumerate(fields)]
    other = stage.submit(AHEAD, owner="eve")
    record = stage.begin(**filter)
    stage.step(record)
    assert {number for number, job in enumerate(jobs) if not lifecycle.is_open(stage.stored(job))} == hit
    assert lifecycle.is_open(stage.stored(other)) and stage.counts(record) == (State.DONE, len(hit), 0, 0)


def test_the_runs_of_one_task_are_cancelled() -> None:
    stage = OperationsStage()
    one, other = stage.tasks_of(2)
    record = stage.begin(task=one.id)
    stage.step(record)
    assert stage.statuses(stage.runs(one)) == {CANCELLED} and stage.statuses(stage.runs(other)) == {SCHEDULED}


def test_finished_jobs_are_not_touched_and_do_not_count() -> None:
    stage = OperationsStage()
    done = stage.ended(450, NOW - HOUR)
    stage.clock.advance(600_000)
    (due,) = [stage.submit(NOW + 590_000)]
    record = stage.begin()
    stage.step(record)
    assert stage.statuses(done) == {SUCCEEDED} and stage.statuses([due]) == {CANCELLED}
    assert stage.counts(record) == (State.DONE, 1, 0, 0)


def test_jobs_created_after_the_start_are_left_alone() -> None:
    stage = OperationsStage()
    before, record = stage.ahead(2), stage.begin()
    after = stage.ahead(2)
    stage.step(record)
    assert (stage.statuses(before), stage.statuses(after)) == ({CANCELLED}, {SCHEDULED})


def test_a_job_that_started_after_its_page_was_read_is_skipped() -> None:
    stage = OperationsStage()
    jobs = [stage.submit(NOW + 10_000), *stage.ahead(2)]
    record = stage.begin()

    def started(verb: Any, wanted: Any) -> Any:
        (delivery,) = stage.receive()
        stage.clock.at = max(stage.clock.at, NOW + 10_001)
        stage.claim(delivery)
        return verb(wanted)

    stage.jobs = Wrapped(stage.jobs, get_many=times(1, started))
    stage.clock.advance(7_000)
    stage.step(record)
    assert lifecycle.is_open(stage.stored(jobs[0])) and stage.stored(jobs[0]).cancel_requested_at is None
    assert stage.counts(record) == (State.DONE, 2, 1, 0)


def test_a_running_job_gets_a_cancel_request_if_the_filter_names_it() -> None:
    stage = OperationsStage()
    job = stage.submit(NOW + 5_000)
    stage.clock.advance(5_001)
    stage.claim(*stage.receive())
    left, record = stage.begin(), stage.begin(statuses=("running",))
    stage.step(left)
    assert stage.counts(left) == (State.DONE, 0, 0, 0)
    stage.step(record)
    assert stage.stored(job).cancel_requested_at is not None and stage.counts(record) == (State.DONE, 1, 0, 0)


def test_job_behind_a_cancelled_head_of_its_ordering_key_goes_on() -> None:
    stage = OperationsStage()
    first, second = (stage.submit(NOW + 400_000, ordering=Ordering("k"), tags=tags) for tags in (("a",), ()))
    stage.clock.advance(400_001)
    stage.jobs._store(second, replace(stage.stored(second), fence=2))  # it was requeued behind the first
    record = stage.begin(tags=("a",))
    stage.step(record)
    assert stage.statuses([first]) == {CANCELLED} and second.id in stage.waiting(Lane.ONE_TIME)


def test_unreadable_job_counts_as_failed_and_stops_no_other() -> None:
    stage = OperationsStage()
    jobs, record = stage.ahead(3), stage.begin()

    def broken(verb: Any, wanted: Any) -> Any:
        return Found({key: job for key, job in verb(wanted).items() if key != jobs[1].key}, {jobs[1].key: "newer"})

    stage.jobs = Wrapped(stage.jobs, get_many=times(1, broken))
    stage.step(record)
    assert stage.counts(record) == (State.DONE, 2, 0, 1)


def test_concurrently_cancelled_job_counts_once() -> None:
    stage = OperationsStage()
    jobs, record = stage.ahead(3), stage.begin()
    stage.jobs = Wrapped(stage.jobs, change=times(1, lambda verb, changes: (cancel_first(), verb(changes))[1]))

    def cancel_first() -> None:
        cancel(jobs[0].key, stage.but(jobs=stage.jobs._port))

    stage.step(record)
    assert stage.statuses(jobs) == {CANCELLED}
    state, done, skipped, failed = stage.counts(record)
    assert (state, done + skipped, failed) == (State.DONE, 3, 0)


# Steps, crashes and refusals


def test_next_step_continues_a_long_operation() -> None:
    stage = OperationsStage()
    jobs, record = stage.ahead(100), stage.begin(rate=1)
    stage.step(record)
    first = stage.found(record)
    assert first.state is State.RUNNING and 43 <= first.done <= 47 and first.lease_until == 0
    stage.clock.advance(1)
    stage.work_off(until=stage.clock.now() + 3 * WORK_MS)
    assert stage.statuses(jobs) == {CANCELLED} and stage.counts(record) == (State.DONE, 100, 0, 0) and stage.asked == []


@pytest.mark.parametrize("failing", ["change", "get_many", "history"])
@pytest.mark.parametrize("then", [refuse, lost_answer])
def test_refusal_of_any_call_only_costs_time(failing: str, then: Any) -> None:
    stage = OperationsStage()
    jobs, record = stage.ahead(20), stage.begin()
    stage.jobs = Wrapped(stage.jobs, **{failing: times(1, then)})
    first, *_ = stage.work_off(until=stage.clock.now() + 120_000)
    assert first.failed and stage.statuses(jobs) == {CANCELLED}
    assert stage.counts(record) == (State.DONE, 20, 0, 0)


def test_a_chunk_of_a_dead_worker_is_counted_once() -> None:
    stage = OperationsStage()
    jobs, record = stage.ahead(250), stage.begin()
    inner, died = stage.operations, [False]

    def die(verb: Any, before: Operation, after: Operation) -> bool:
        if after.done > 100 and not died[0]:
            died[0] = True
            raise KeyboardInterrupt
        held: bool = verb(before, after)
        return held

    stage.operations = Wrapped(inner, change=die)
    with pytest.raises(KeyboardInterrupt):
        stage.step(record)
    assert stage.found(record).done == 100 and sum(not lifecycle.is_open(stage.stored(job)) for job in jobs) == 200
    stage.work_off(until=stage.clock.now() + 120_000)
    assert stage.statuses(jobs) == {CANCELLED} and stage.counts(record) == (State.DONE, 250, 0, 0)


def test_a_table_that_keeps_refusing_stops_the_step_and_loses_nothing() -> None:
    stage = OperationsStage()
    jobs, record = stage.ahead(5), stage.begin()
    stage.jobs = Wrapped(stage.jobs, change=times(4, lambda verb, changes: [*verb(changes[:-1]), Written.REFUSED]))
    with pytest.raises(Unavailable):
        stage.step(record)
    stage.work_off(until=stage.clock.now() + 120_000)
    assert stage.statuses(jobs) == {CANCELLED} and stage.counts(record) == (State.DONE, 5, 0, 0)


def test_abort_stops_within_a_chunk_and_counts_that_chunk() -> None:
    stage = OperationsStage()
    jobs, record = stage.ahead(100), stage.begin(rate=20)
    calls = [0]

    def abort(verb: Any, *args: Any) -> Any:
        calls[0] += 1
        if calls[0] == 3:
            requests.abort("ann", record.id, stage)
        return verb(*args)

    stage.jobs = Wrapped(stage.jobs, change=abort)
    stage.work_off(until=stage.clock.now() + 120_000)
    assert sum(not lifecycle.is_open(stage.stored(job)) for job in jobs) == 15
    assert stage.counts(record) == (State.ABORTED, 15, 0, 0) and stage.asked == []


def test_limit_ends_the_operation() -> None:
    stage = OperationsStage()
    jobs, record = stage.ahead(30), stage.begin(limit=7)
    stage.step(record)
    assert stage.statuses(jobs[:7]) == {CANCELLED} and stage.statuses(jobs[7:]) == {SCHEDULED}
    assert stage.counts(record) == (State.DONE, 7, 0, 0)


def test_long_search_without_a_match_stores_how_far_it_has_read() -> None:
    stage = OperationsStage()
    stage.ended(900, NOW - HOUR)
    record, inner = stage.begin(), stage.jobs

    def slow(verb: Any, *args: Any, **rest: Any) -> Any:
        stage.clock.advance(1_100)
        return verb(*args, **rest)

    stage.jobs = Wrapped(inner, history=slow)
    seen = list[str | None]()
    stage.operations = Wrapped(stage.operations, change=lambda verb, before, after: (seen.append(after.after), verb(before, after))[1])
    stage.step(record)
    assert stage.counts(record) == (State.DONE, 0, 0, 0) and len(set(seen)) >= 5


def test_operations_of_an_owner_are_limited_whatever_their_actions() -> None:
    stage = OperationsStage()
    made = [stage.begin(action) for action in [*Action][:MAX_RUNNING]]
    with pytest.raises(Conflict):
        stage.begin()
    requests.abort("ann", made[0].id, stage)
    stage.begin()


def test_empty_time_range_is_refused() -> None:
    stage = OperationsStage()
    for act in (requests.start, requests.estimate):
        with pytest.raises(Invalid):
            act(stage.planned(Action.CANCEL_JOBS, since=NOW, until=NOW), stage)
    assert stage.operations.running() == []


# Tasks


def test_tasks_are_paused_resumed_and_deleted() -> None:
    stage = OperationsStage()
    tasks, other = stage.tasks_of(12, tags=("a",)), stage.tasks_of(1)
    for action in (Action.PAUSE_TASKS, Action.RESUME_TASKS):
        record = stage.begin(action, tags=("a",))
        stage.step(record)
        assert stage.counts(record) == (State.DONE, 12, 0, 0)
        assert stage.paused(tasks) == [action is Action.PAUSE_TASKS] * 12 and stage.paused(other) == [False]
        held = [job for task in tasks for job in stage.runs(task) if lifecycle.is_open(job)]
        assert bool(held) == (action is Action.RESUME_TASKS)
    record = stage.begin(Action.DELETE_TASKS, tags=("a",))
    stage.step(record)
    assert stage.counts(record) == (State.DONE, 12, 0, 0) and set(stage.tasks.rows) == {other[0].key}


def test_the_reason_of_a_pause_is_shown_with_each_task() -> None:
    stage = OperationsStage()
    (task,) = stage.tasks_of(1)
    stage.step(stage.begin(Action.PAUSE_TASKS))
    assert stage.task(task).inactive_reason == "holidays"


@pytest.mark.parametrize(
    ("action", "filter", "hit"),
    [
        (Action.PAUSE_TASKS, {}, {"daily report", "mail"}),
        (Action.PAUSE_TASKS, {"name": "REPORT"}, {"daily report"}),
        (Action.PAUSE_TASKS, {"type": "http"}, {"mail"}),
        (Action.RESUME_TASKS, {}, {"paused"}),
        (Action.DELETE_TASKS, {}, {"daily report", "mail", "paused"}),
        (Action.DELETE_TASKS, {"statuses": ("inactive",)}, {"paused"}),
    ],
)
def test_only_tasks_that_match_are_changed(action: Action, filter: dict[str, Any], hit: set[str]) -> None:
    stage = OperationsStage()
    tasks = [stage.create({"rate": "1 hours"}, name=name, type=type) for name, type in (("daily report", "log"), ("mail", "http"))]
    tasks.append(stage.create({"rate": "1 hours"}, name="paused"))
    service.deactivate(tasks[2].key, None, stage)
    stage.create({"rate": "1 hours"}, owner="eve")
    generations = {task.name: stage.task(task).generation for task in tasks}
    record = stage.begin(action, **filter)
    stage.step(record)
    left = {task.name: task.generation for task in stage.tasks.rows.values() if task.owner == "ann"}
    assert {name for name, generation in generations.items() if left.get(name) != generation} == hit
    assert stage.counts(record) == (State.DONE, len(hit), 0, 0)


def test_a_task_created_after_the_start_is_left_alone() -> None:
    stage = OperationsStage()
    record = stage.begin(Action.DELETE_TASKS)
    stage.tasks_of(1)
    stage.step(record)
    assert len(stage.tasks.rows) == 1 and stage.counts(record) == (State.DONE, 0, 0, 0)


def test_a_task_that_was_deleted_or_changed_meanwhile_is_skipped() -> None:
    stage = OperationsStage()
    gone, paused, _ = tasks = stage.tasks_of(3)
    record, inner = stage.begin(Action.PAUSE_TASKS), stage.tasks

    def meanwhile(verb: Any, *args: Any, **rest: Any) -> Any:
        page = verb(*args, **rest)
        service.delete(gone.key, stage.but(tasks=inner))
        service.deactivate(paused.key, "by hand", stage.but(tasks=inner))
        return page

    stage.tasks = Wrapped(inner, page=times(1, meanwhile))
    stage.step(record)
    assert stage.counts(record) == (State.DONE, 1, 2, 0)
    assert (stage.task(paused).inactive_reason, stage.task(tasks[2]).inactive_reason) == ("by hand", "holidays")


def test_an_error_of_one_task_stops_no_other() -> None:
    stage = OperationsStage()
    tasks, record = stage.tasks_of(8), stage.begin(Action.PAUSE_TASKS)

    def broken(verb: Any, key: Any) -> Any:
        if key == tasks[4].key:
            raise ZeroDivisionError
        return verb(key)

    stage.tasks = Wrapped(stage.tasks, get=broken)
    stage.step(record)
    assert stage.counts(record) == (State.DONE, 7, 0, 1)


@pytest.mark.parametrize("failing", ["store", "page", "get"])
@pytest.mark.parametrize("then", [refuse, lost_answer])
def test_refusals_of_the_tasks_table_only_cost_time(failing: str, then: Any) -> None:
    stage = OperationsStage()
    tasks, record = stage.tasks_of(8), stage.begin(Action.PAUSE_TASKS)
    stage.tasks = Wrapped(stage.tasks, **{failing: times(1, then)})
    stage.work_off(until=stage.clock.now() + 120_000)
    assert stage.paused(tasks) == [True] * 8 and stage.found(record).state is State.DONE


# Estimates and lists


def test_an_estimate_counts_what_matches_and_changes_nothing() -> None:
    stage = OperationsStage()
    jobs, tasks = stage.ahead(450), stage.tasks_of(3)
    service.deactivate(tasks[0].key, None, stage)
    runs = [run for task in tasks for run in stage.runs(task)]
    counted = requests.estimate(stage.planned(Action.CANCEL_JOBS), stage)
    assert (counted.matched, counted.complete) == (450 + len(runs), True)
    assert requests.estimate(stage.planned(Action.CANCEL_JOBS, limit=7), stage).matched == 7
    assert requests.estimate(stage.planned(Action.PAUSE_TASKS), stage).matched == 2
    assert stage.statuses(jobs) == {SCHEDULED} and stage.operations.rows == {} and stage.asked == []


def test_an_estimate_of_too_many_is_incomplete() -> None:
    stage = OperationsStage()
    stage.ahead(450)
    inner = stage.jobs
    stage.jobs = Wrapped(inner, history=lambda verb, *args, **rest: (stage.clock.advance(6_000), verb(*args, **rest))[1])
    counted = requests.estimate(stage.planned(Action.CANCEL_JOBS), stage)
    assert not counted.complete and 0 < counted.matched < 450


def test_running_operations_are_listed_before_the_ended_ones() -> None:
    stage = OperationsStage()
    made = [stage.begin() for _ in range(4)]
    requests.start(replace(stage.planned(Action.CANCEL_JOBS), owner="eve"), stage)
    for each in (made[0], made[2]):
        requests.abort("ann", each.id, stage)
    page, cursor = requests.listing("ann", limit=1, cursor=None, operations=stage.operations)
    assert [each.id for each in page] == [made[3].id, made[1].id, made[2].id] and cursor is not None
    page, cursor = requests.listing("ann", limit=1, cursor=cursor, operations=stage.operations)
    assert [each.id for each in page] == [made[0].id] and cursor is None
