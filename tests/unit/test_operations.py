"""Operations on many jobs and tasks: each match once, at a rate, with progress, for any number of invocations that work and end early."""

from dataclasses import dataclass, replace
from typing import Any

import pytest

from scheduler.jobs.cancel import cancel
from scheduler.jobs.change import reschedule
from scheduler.model import ids, lifecycle, operation, settlement
from scheduler.model.errors import Conflict, Invalid
from scheduler.model.job import Job, JobKey, Lane, Status
from scheduler.model.operation import MAX_RUNNING, SETTLED_MS, Action, Filter, Operation, State
from scheduler.model.spec import Ordering
from scheduler.model.task import Task
from scheduler.operations import requests
from scheduler.operations.step import LATE_MS, PERIOD_MS, STEP_MS, TRIES, OperationStep
from scheduler.storage.ports import Found, Written
from scheduler.tasks import service
from tests.conftest import NOW
from tests.unit.stage import Wrapped, lost_answer, refuse, times
from tests.unit.task_stage import TaskStage

HOUR = 3_600_000
STEPS = 500
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
        """Carry out steps of this operation, each when it is due, until it has ended."""
        for _ in range(STEPS):
            next_at = OperationStep(self, lambda: None).run(record.owner, record.id).next_at
            if next_at is None:
                return
            self.clock.at = max(self.clock.at, next_at)
        raise AssertionError("the operation never ends")

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


def refusing(keys: set[JobKey]) -> Any:
    """For `Wrapped`: the table refuses to change these jobs."""

    def change(verb: Any, changes: Any) -> list[Written]:
        held = iter(verb([change for change in changes if change.before.key not in keys]))
        return [Written.REFUSED if change.before.key in keys else next(held) for change in changes]

    return change


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
    assert all(sum(1 for each in at if each <= until) <= 20 + (until - began) * 20 // 1_000 for until in at)
    assert 4_500 <= at[-1] - began <= 6_500 and stage.clock.slept == []
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


def test_a_step_does_the_work_of_some_seconds_and_never_waits() -> None:
    stage = OperationsStage()
    jobs, record = stage.ahead(100), stage.begin(rate=1)
    began = stage.clock.now()
    (first,) = stage.work_off()
    assert first.next_at == began + 5_000 and stage.clock.now() == began
    found = stage.found(record)
    assert (found.state, found.done, found.lease_until) == (State.RUNNING, 5, 0)
    results = stage.work_off(until=began + 200_000)
    assert stage.statuses(jobs) == {CANCELLED} and stage.counts(record) == (State.DONE, 100, 0, 0) and stage.asked == []
    assert len(results) <= 22
    assert 95_000 <= max(stage.stored(job).cancelled_at or 0 for job in jobs) - began <= 100_000


def test_a_fast_operation_works_through_several_chunks_in_a_step() -> None:
    stage = OperationsStage()
    stage.ahead(450)
    record, began = stage.begin(rate=1_000), stage.clock.now()
    stage.jobs = Wrapped(stage.jobs, change=lambda verb, changes: (stage.clock.advance(90), verb(changes))[1])
    OperationStep(stage, lambda: None).run(record.owner, record.id)
    assert stage.clock.now() - began == 5 * 90 and stage.found(record).done == 450


@pytest.mark.long
def test_a_fast_operation_keeps_its_rate() -> None:
    stage = OperationsStage()
    stage.ahead(5_000)
    record, began = stage.begin(rate=1_000), stage.clock.now()
    stage.jobs = Wrapped(stage.jobs, change=lambda verb, changes: (stage.clock.advance(80), verb(changes))[1])
    stage.work_off(until=began + 60_000)
    assert stage.counts(record) == (State.DONE, 5_000, 0, 0)
    assert 4_000 <= (stage.found(record).ended_at or 0) - record.started_at - SETTLED_MS <= 6_000


def test_a_slow_step_ends_after_a_chunk_beyond_its_time() -> None:
    stage = OperationsStage()
    stage.ahead(450)
    record, began = stage.begin(rate=1_000), stage.clock.now()
    stage.jobs = Wrapped(stage.jobs, change=lambda verb, changes: (stage.clock.advance(1_500), verb(changes))[1])
    OperationStep(stage, lambda: None).run(record.owner, record.id)
    assert STEP_MS <= stage.clock.now() - began <= STEP_MS + 1_500 and stage.found(record).done == 200


def test_a_delayed_operation_makes_up_for_little() -> None:
    stage = OperationsStage()
    stage.ahead(400)
    record = stage.begin(rate=20)
    stage.clock.advance(60_000)
    began = stage.clock.now()
    stage.work_off(until=began + 1_000)
    assert stage.found(record).done <= 20 * (LATE_MS + 3 * PERIOD_MS) // 1_000


def test_as_many_operations_work_at_once_as_the_rules_allow() -> None:
    stage = OperationsStage()
    stage.ahead(100)
    first, second = stage.begin(rate=1), stage.begin(rate=1)
    now = stage.clock.now()
    assert stage.operations.change(first, replace(first, lease_until=now + 10_000, message_id="other", version=2))
    result = OperationStep(stage, lambda: None).run(second.owner, second.id)
    assert result.next_at is not None and result.next_at >= now + 1_000 and stage.found(second).done == 0
    assert stage.found(second).next_at == result.next_at and stage.found(second).lease_until == 0
    stage.clock.at = result.next_at
    stage.rules = replace(stage.rules, operating=2)
    OperationStep(stage, lambda: None).run(second.owner, second.id)
    assert stage.found(second).done == 5


def test_an_operation_that_begins_at_the_same_moment_as_another_gives_way() -> None:
    stage = OperationsStage()
    stage.ahead(100)
    first, second = stage.begin(rate=1), stage.begin(rate=1)
    inner = stage.operations

    def overtaken(verb: Any) -> Any:
        seen = verb()
        inner.change(first, replace(first, lease_until=stage.clock.now() + 10_000, version=2))
        return seen

    stage.operations = Wrapped(inner, running=times(1, overtaken))
    result = OperationStep(stage, lambda: None).run(second.owner, second.id)
    assert stage.found(second).done == 0 and stage.found(second).lease_until == 0
    assert result.next_at == stage.found(second).next_at


def test_a_copy_of_the_message_of_an_operation_is_deleted() -> None:
    stage = OperationsStage()
    stage.ahead(30)
    stage.begin(rate=1)
    (item,) = stage.asked
    stage.work_off()
    stage.work.send([item])
    copy = stage.work_off()[-1]
    assert copy.next_at is None and stage.asked == [item]


def test_the_tick_sends_no_second_message_of_an_operation_that_waits() -> None:
    stage = OperationsStage()
    stage.ahead(30)
    record = stage.begin(rate=1)
    stage.work_off()
    stored = stage.found(record)
    assert stage.operations.change(stored, replace(stored, next_at=stage.clock.now() + HOUR, version=stored.version + 1))
    (item,) = stage.asked
    stage.clock.advance(600_000)
    stage.tick()
    assert stage.asked.count(item) == 1


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


def test_an_abort_just_before_a_chunk_leaves_its_jobs_alone() -> None:
    stage = OperationsStage()
    jobs, record = stage.ahead(30), stage.begin(rate=5)
    stage.work_off()
    inner = stage.operations

    def aborted(verb: Any, before: Operation, after: Operation) -> bool:
        if after.pending:
            requests.abort("ann", record.id, stage.but(operations=inner))
        held: bool = verb(before, after)
        return held

    stage.operations = Wrapped(inner, change=aborted)
    stage.work_off(until=stage.clock.now() + 60_000)
    assert stage.counts(record) == (State.ABORTED, 5, 0, 0)
    assert sum(lifecycle.is_open(stage.stored(job)) for job in jobs) == 25


@pytest.mark.parametrize("action", [Action.PAUSE_TASKS, Action.RESUME_TASKS, Action.DELETE_TASKS])
@pytest.mark.parametrize("then", [refuse, lost_answer])
@pytest.mark.parametrize("nth", range(2, 7))
def test_each_task_counts_once_whichever_record_write_fails(action: Action, then: Any, nth: int) -> None:
    stage = OperationsStage()
    tasks = stage.tasks_of(12)
    if action is Action.RESUME_TASKS:
        for task in tasks:
            service.deactivate(task.key, None, stage)
    stage.clock.advance(60_000)
    record = stage.begin(action)
    calls, inner = [0], stage.operations

    def change(verb: Any, *args: Any) -> Any:
        calls[0] += 1
        return then(verb, *args) if calls[0] == nth else verb(*args)

    stage.operations = Wrapped(inner, change=change)
    stage.work_off(until=stage.clock.now() + 200_000)
    assert stage.counts(record) == (State.DONE, 12, 0, 0)


def test_a_job_that_a_user_cancels_meanwhile_is_not_counted() -> None:
    stage = OperationsStage()
    jobs, record = stage.ahead(30), stage.begin(rate=5)
    stage.work_off()
    cancel(jobs[20].key, stage)
    stage.work_off(until=stage.clock.now() + 120_000)
    assert stage.statuses(jobs) == {CANCELLED} and stage.counts(record) == (State.DONE, 29, 0, 0)


@pytest.mark.parametrize(
    "wanted",
    [{"scheduled_at": AHEAD + HOUR}, {"scheduled_at": AHEAD - HOUR // 2}, {"scheduled_at": AHEAD + 7_000}, {"spec": {"max_attempts": 7}}],
    ids=["ahead", "behind", "same time", "content"],
)
@pytest.mark.parametrize("read", [True, False], ids=["read ahead", "not yet read"])
def test_a_job_that_its_owner_changed_after_the_start_stays(wanted: dict[str, Any], read: bool) -> None:
    stage = OperationsStage()
    jobs, record = stage.ahead(30), stage.begin(rate=5)
    if read:
        stage.work_off()
    else:
        stage.clock.advance(1)
    reschedule(jobs[7].key, wanted, stage)
    stage.work_off(until=stage.clock.now() + 120_000)
    assert lifecycle.is_open(stage.stored(jobs[7]))
    assert stage.statuses([*jobs[:7], *jobs[8:]]) == {CANCELLED}
    state, done, skipped, failed = stage.counts(record)
    assert (state, done, failed) == (State.DONE, 29, 0) and skipped <= 1


def test_a_job_that_was_changed_before_the_start_is_cancelled() -> None:
    stage = OperationsStage()
    jobs = stage.ahead(10)
    reschedule(jobs[7].key, {"scheduled_at": AHEAD - HOUR // 2}, stage)
    record = stage.begin()
    stage.work_off(until=stage.clock.now() + 120_000)
    assert stage.statuses(jobs) == {CANCELLED} and stage.counts(record) == (State.DONE, 10, 0, 0)


def test_an_operation_without_a_match_ends_at_once() -> None:
    stage = OperationsStage()
    record = stage.begin()
    stage.step(record)
    assert stage.counts(record) == (State.DONE, 0, 0, 0) and stage.clock.now() == record.started_at + SETTLED_MS


@pytest.mark.parametrize("action", [Action.CANCEL_JOBS, Action.DELETE_TASKS])
@pytest.mark.parametrize("count", [1, 30])
def test_one_refused_job_or_task_counts_as_failed_and_stops_no_other(action: Action, count: int) -> None:
    stage = OperationsStage()
    if action is Action.CANCEL_JOBS:
        jobs = stage.ahead(count)
        bad = jobs[count // 2].key
        stage.jobs = Wrapped(stage.jobs, change=refusing({bad}))
    else:
        bad = stage.tasks_of(count)[count // 2].key
        stage.tasks = Wrapped(stage.tasks, delete=lambda verb, task: refuse(verb) if task.key == bad else verb(task))
    record = stage.begin(action)
    stage.work_off(until=stage.clock.now() + 200_000)
    assert stage.counts(record) == (State.DONE, count - 1, 0, 1)


def test_nothing_fails_while_the_table_refuses_everything() -> None:
    stage = OperationsStage()
    jobs, record = stage.ahead(30), stage.begin()
    inner = stage.jobs
    stage.jobs = Wrapped(inner, change=lambda verb, changes: [Written.REFUSED] * len(changes))
    stage.work_off(until=stage.clock.now() + 600_000)
    assert stage.counts(record) == (State.RUNNING, 0, 0, 0) and stage.found(record).tries > TRIES
    stage.jobs = inner
    stage.work_off(until=stage.clock.now() + 120_000)
    assert stage.statuses(jobs) == {CANCELLED} and stage.counts(record) == (State.DONE, 30, 0, 0)


def test_tasks_wait_for_their_table() -> None:
    stage = OperationsStage()
    tasks, inner = stage.tasks_of(8), stage.tasks
    stage.tasks = Wrapped(inner, store=refuse, delete=refuse, move_on=refuse)
    record = stage.begin(Action.DELETE_TASKS)
    stage.work_off(until=stage.clock.now() + 600_000)
    assert stage.counts(record) == (State.RUNNING, 0, 0, 0)
    stage.tasks = inner
    stage.work_off(until=stage.clock.now() + 400_000)
    assert stage.counts(record) == (State.DONE, len(tasks), 0, 0)


def test_a_refusal_that_was_a_lost_answer_counts_as_done() -> None:
    stage = OperationsStage()
    jobs, record = stage.ahead(5), stage.begin()
    stage.jobs = Wrapped(stage.jobs, change=times(1, lambda verb, changes: [*verb(changes)[:-1], Written.REFUSED]))
    stage.work_off(until=stage.clock.now() + 120_000)
    assert stage.statuses(jobs) == {CANCELLED} and stage.counts(record) == (State.DONE, 5, 0, 0)


def test_a_step_that_fails_stops_no_other_operation() -> None:
    stage = OperationsStage()
    stage.ahead(5)
    broken, other = stage.begin(), stage.planned(Action.CANCEL_JOBS)
    other = requests.start(replace(other, owner="eve"), stage)

    def fail(verb: Any, owner: str, **rest: Any) -> Any:
        if owner == "ann":
            raise ZeroDivisionError
        return verb(owner, **rest)

    stage.jobs = Wrapped(stage.jobs, history=fail)
    stage.work_off(until=stage.clock.now() + 10_000)
    assert stage.found(other).state is State.DONE and stage.found(broken).state is State.RUNNING
    for _ in range(3):
        stage.work_off(until=stage.clock.now() + 60_000)
        stage.tick()
    assert sum(item.part == broken.id for item in stage.asked) == 1


def test_abort_stops_within_a_chunk_and_counts_that_chunk() -> None:
    stage = OperationsStage()
    jobs, record = stage.ahead(100), stage.begin(rate=5)
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
    with pytest.raises(Conflict, match=made[0].id):
        stage.begin()
    requests.abort("ann", made[0].id, stage)
    stage.begin()


def test_the_place_of_an_operation_that_never_began_is_free() -> None:
    stage = OperationsStage()
    for place in range(MAX_RUNNING):
        assert stage.operations.add(stage.planned(Action.CANCEL_JOBS), place, None)
    stage.operations.rows.clear()
    made = [stage.begin() for _ in range(MAX_RUNNING)]
    assert len({each.id for each in made} & {*stage.operations.places("ann").values()}) == MAX_RUNNING


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
