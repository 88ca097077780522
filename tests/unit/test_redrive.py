"""Redriving many dead jobs: at a rate, each once, with progress, for any number of invocations that work and end early."""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pytest

from scheduler.admission import ordering
from scheduler.dead_letters.groups import listing, overview
from scheduler.jobs import by_key
from scheduler.model import ids, lifecycle, operation, slots
from scheduler.model.errors import Conflict, Invalid, NotFound
from scheduler.model.fingerprint import of_job
from scheduler.model.job import Job, JobKey, KeyEntry, Lane, OwnKey, RunInfo, UnitKey, changed
from scheduler.model.operation import LEASE_MS, MAX_RUNNING, SETTLED_MS, Action, Filter, Operation, State
from scheduler.model.spec import JobSpec, Ordering
from scheduler.model.work import WorkItem, WorkKind
from scheduler.operations import requests as verbs
from scheduler.operations.step import OperationStep
from scheduler.pipeline.submit import NewJob
from scheduler.pipeline.tick import LOST_MS
from scheduler.pipeline.worker import WorkResult
from scheduler.storage.ports import Written
from scheduler.tasks import service
from tests.conftest import NOW, with_spec
from tests.unit.stage import Wrapped, lost_answer, refuse, times
from tests.unit.task_stage import TaskStage


@dataclass
class RedriveStage(TaskStage):
    def begin(self, *, owner: str = "ann", rate: int = 50, limit: int | None = None, **filter: Any) -> Operation:
        """Start a redrive and wait until its first chunk is due."""
        self.requests += 1
        wanted = operation.new(owner, self.clock.now(), self.requests, Action.REDRIVE, Filter(**filter), rate=rate, limit=limit)
        made = verbs.start(wanted, self)
        self.clock.advance(SETTLED_MS)
        return made

    @property
    def asked(self) -> list[WorkItem]:
        """The items of operations in the work queue. The overflow has its own: its dispatcher waits for executors, and none works here."""
        return [item for item in super().asked if item.kind is WorkKind.OPERATION]

    def work_off(self, *, until: int | None = None) -> list[WorkResult]:
        """Carry out the steps of operations, and drop the other items."""
        send = self.work.send
        self.work.send = lambda items, **rest: send([item for item in items if item.kind is WorkKind.OPERATION], **rest)  # type: ignore[method-assign]
        try:
            return super().work_off(until=until)
        finally:
            self.work.send = send  # type: ignore[method-assign]

    def step(self) -> list[WorkResult]:
        """Carry out the steps that are due."""
        return self.work_off(until=0)

    def finish(self, *, within_ms: int = 600_000) -> list[WorkResult]:
        """Carry out steps, each when it is due, until none is left, or until `within_ms` from now."""
        return self.work_off(until=self.clock.now() + within_ms)

    def found(self, record: Operation) -> Operation:
        return verbs.find(record.owner, record.id, operations=self.operations)

    def dead(self, count: int, **fields: Any) -> list[Job]:
        """This number of jobs that failed a minute apart, the last one before now."""
        made = []
        for number in range(count):
            self.requests += 1
            at = self.clock.now() - (count - number) * 60_000
            chosen = {"reason": "HTTP 500", "failed_at": at + 5, "expires": at} | fields
            job = Job("ann", ids.new(at, self.requests), JobSpec("log", {}), at, at, at, slot=None, delay_ms=0)
            job = replace(job, **with_spec(chosen, job.spec))
            made.append(replace(job, fingerprint=of_job(job)))
            self.jobs.put(made[-1])
        return made

    def lives(self, jobs: list[Job]) -> list[int]:
        return [self.stored(job).redrives for job in jobs]

    def counts(self, record: Operation) -> tuple[State, int, int, int]:
        found = self.found(record)
        return found.state, found.matched, found.done, found.skipped


def test_all_dead_jobs_are_redriven_at_the_rate_and_counted() -> None:
    stage = RedriveStage()
    dead = stage.dead(120)
    record, began = stage.begin(rate=20), stage.clock.now()
    assert stage.counts(record) == (State.RUNNING, 0, 0, 0) and stage.asked == [WorkItem(WorkKind.OPERATION, "ann", record.id)]
    stage.finish()
    assert stage.asked == []
    assert stage.counts(record) == (State.DONE, 120, 120, 0)
    assert stage.lives(dead) == [1] * 120
    at = sorted(stage.stored(job).redriven_at or 0 for job in dead)
    assert all(sum(1 for each in at if each <= until) <= 20 + (until - began) * 20 // 1_000 for until in at)
    assert 4_500 <= at[-1] - began <= 6_500
    assert all(slots.is_overflow(stage.stored(job).slot or "") for job in dead)


@pytest.mark.parametrize("rate", [1, 7, 50, 1_000])
def test_a_redrive_takes_jobs_in_the_order_of_their_ordering_queue(rate: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By scheduled time, then by creation: in pages, in chunks, and at each rate."""
    monkeypatch.setattr("scheduler.dead_letters.redrive.READ", 7)
    stage = RedriveStage()
    dead = stage.dead(12, ordering=Ordering("k"))
    at = dead[-1].scheduled_at + 60_000
    for number in range(12):  # all for one instant; the later a job was created, the lower its id
        job = replace(dead[0], id=ids.new(at, 1_000 - number), scheduled_at=at, due_at=at, created_at=at - 100 + number)
        stage.jobs.put(changed(job, key=JobKey("ann", job.id)))
    stage.begin(rate=rate)
    stage.finish()
    lined = sorted(stage.jobs.rows.values(), key=lambda job: ordering.entry_of(job).position)
    at_each = [job.redriven_at or 0 for job in lined]
    assert len(at_each) == 24 and at_each == sorted(at_each) and at_each[0] > 0


def test_a_redrive_that_died_goes_on_in_order() -> None:
    stage = RedriveStage()
    dead, record = stage.dead(30, ordering=Ordering("k")), stage.begin(rate=10)
    stage.step()
    inner, stage.operations = stage.operations, Wrapped(stage.operations, change=_die)
    stage.clock.advance(1_000)
    with pytest.raises(KeyboardInterrupt):
        stage.step()
    stage.operations = inner
    assert 10 < sum(stage.lives(dead)) < 30
    stage.finish()
    at_each = [stage.stored(job).redriven_at or 0 for job in dead]
    assert at_each == sorted(at_each) and stage.found(record).state is State.DONE


def _die(verb: Any, before: Operation, after: Operation) -> bool:
    if after.done > before.done:
        raise KeyboardInterrupt
    held: bool = verb(before, after)
    return held


def named(stage: RedriveStage, key: str) -> Job:
    """A dead job that has this key of its own."""
    (job,) = stage.dead(1, key=key)
    assert stage.jobs.entries.setdefault(OwnKey("ann", key), KeyEntry(OwnKey("ann", key), job.id))
    return job


def put(stage: RedriveStage, key: str, **fields: Any) -> Job:
    stage.requests += 1
    return by_key.put(NewJob("ann", JobSpec("log", {}, key=key), **fields), stage, random=stage.requests).job


def test_a_job_whose_key_an_open_job_has_stays_dead_as_a_conflict() -> None:
    stage = RedriveStage()
    dead, free = named(stage, "order:17"), named(stage, "order:18")
    second = put(stage, "order:17", delay_ms=3_600_000)
    record = stage.begin()
    stage.finish()
    found = stage.found(record)
    assert (found.state, found.done, found.conflicts, found.matched) == (State.DONE, 1, 1, 2)
    assert stage.lives([dead, free, second]) == [0, 1, 0]
    assert by_key.find_by_key(OwnKey("ann", "order:17"), stage) == second
    assert by_key.find_by_key(OwnKey("ann", "order:18"), stage) == stage.stored(free)


def test_of_two_dead_jobs_of_one_key_a_redrive_runs_one() -> None:
    stage = RedriveStage()
    first, second = named(stage, "order:17"), named(stage, "order:17")
    record = stage.begin()
    stage.finish()
    assert stage.lives([first, second]) == [1, 0] and stage.found(record).conflicts == 1
    assert by_key.find_by_key(OwnKey("ann", "order:17"), stage) == stage.stored(first), "it has the key again"


@pytest.mark.parametrize("keyed", [True, False], ids=["keys", "no keys"])
@pytest.mark.parametrize("between", ["letters", "get_many", "change", "take_keys"])
def test_two_redrives_count_each_job_once(between: str, keyed: bool) -> None:
    """The second one works between the two reads of the first one, or just before its write."""
    stage = RedriveStage()
    dead = [named(stage, f"order:{number}") for number in range(30)] if keyed else stage.dead(30)
    one, two = stage.begin(rate=1_000), stage.begin(rate=1_000)
    whole, fired = stage.jobs, []

    def other_first(verb: Any, *given: Any, **more: Any) -> Any:
        done = verb(*given, **more) if between in ("letters", "get_many") else None
        if not fired:
            fired.append(True)
            stage.jobs = whole
            for _ in range(20):
                if OperationStep(stage, lambda: None, "other").run("ann", two.id).next_at is None:
                    break
                stage.clock.advance(1_000)
        return verb(*given, **more) if done is None else done

    stage.jobs = Wrapped(whole, **{between: other_first})
    OperationStep(stage, lambda: None, "first").run("ann", one.id)
    stage.jobs = whole
    stage.finish()
    found = [stage.found(each) for each in (one, two)]
    assert stage.lives(dead) == [1] * 30
    assert sum(each.done for each in found) == 30 and all(each.failed == each.conflicts == 0 for each in found)
    by = [stage.stored(job).redriven_by for job in dead]
    assert [by.count(each.id) for each in found] == [each.done for each in found]


def test_a_put_that_read_a_job_as_dead_does_not_take_its_key() -> None:
    stage = RedriveStage()
    dead = named(stage, "order:17")
    whole = stage.jobs

    def redriven(verb: Any, takings: Any) -> list[Written]:
        stage.jobs = whole
        stage.begin()
        stage.finish()
        return list(verb(takings))

    stage.jobs = Wrapped(whole, take_keys=redriven)
    with pytest.raises(Conflict, match=f"the key belongs to the job {dead.id}"):
        put(stage, "order:17", delay_ms=3_600_000)
    assert stage.lives([dead]) == [1] and len(stage.jobs.rows) == 1


def test_redriven_jobs_pass_through_the_overflow_in_fair_order() -> None:
    stage = RedriveStage()
    dead = stage.dead(20)
    stage.begin()
    stage.step()
    assert stage.waiting(Lane.RETRY) == [] and all(slots.is_overflow(stage.stored(job).slot or "") for job in dead)
    unit = stage.ledger.unit(UnitKey(slots.OVERFLOW, 0))
    assert unit is not None and unit.handed_out_at is None, "it is wanted"


def test_only_jobs_that_match_the_filter_are_redriven() -> None:
    stage = RedriveStage()
    mail, other, elsewhere = stage.dead(3, type="http"), stage.dead(3), stage.dead(2, reason="connection reset")
    eve = stage.dead(2, owner="eve")
    stage.begin(type="http")
    stage.begin(fingerprint=elsewhere[0].fingerprint, since=elsewhere[1].scheduled_at, until=elsewhere[1].scheduled_at + 1)
    stage.finish()
    assert [stage.lives(jobs) for jobs in (mail, other, elsewhere, eve)] == [[1] * 3, [0] * 3, [0, 1], [0, 0]]


def test_the_runs_of_one_task_are_redriven() -> None:
    stage = RedriveStage()
    task = stage.create({"rate": "5 minutes"})
    runs, others = stage.dead(3, origin=RunInfo(task.id, 1, NOW)), stage.dead(3)
    stage.begin(task=task.id)
    stage.finish()
    assert (stage.lives(runs), stage.lives(others)) == ([1] * 3, [0] * 3)


def test_runs_no_longer_wanted_by_their_task_are_skipped() -> None:
    stage = RedriveStage()
    gone, paused = stage.create({"rate": "5 minutes"}), stage.create({"rate": "5 minutes"})
    runs = stage.dead(2, origin=RunInfo(gone.id, 1, NOW)) + stage.dead(2, origin=RunInfo(paused.id, 1, NOW))
    plain = stage.dead(1)
    service.delete(gone.key, stage)
    service.deactivate(paused.key, "holidays", stage)
    record = stage.begin()
    stage.finish()
    assert (stage.lives(runs), stage.lives(plain)) == ([0] * 4, [1])
    assert stage.counts(record) == (State.DONE, 5, 1, 4)


def test_jobs_that_fail_after_the_start_are_left_alone() -> None:
    stage = RedriveStage()
    before, record = stage.dead(2), stage.begin()
    after = stage.dead(2, failed_at=stage.clock.now() + 1)
    stage.finish()
    assert (stage.lives(before), stage.lives(after)) == ([1, 1], [0, 0])
    assert stage.counts(record) == (State.DONE, 2, 2, 0)


def test_limit_ends_the_redrive() -> None:
    stage = RedriveStage()
    dead, record = stage.dead(30), stage.begin(limit=7)
    stage.finish()
    assert sum(stage.lives(dead)) == 7 and stage.lives(dead)[:7] == [1] * 7  # the oldest
    assert stage.counts(record) == (State.DONE, 7, 7, 0)


def test_redrive_without_letters_is_done_at_once() -> None:
    stage = RedriveStage()
    record = stage.begin()
    stage.finish()
    assert stage.counts(record) == (State.DONE, 0, 0, 0)
    assert stage.found(record).expires is not None


def test_letters_beyond_a_page_are_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler.dead_letters.redrive.READ", 10)
    stage = RedriveStage()
    wanted = [stage.dead(1, type="http")[0] for _ in range(3)]
    stage.clock.advance(3_600_000)
    stage.dead(35)
    record = stage.begin(type="http")
    stage.finish()
    assert stage.lives(wanted) == [1, 1, 1] and stage.counts(record) == (State.DONE, 3, 3, 0)


def test_next_step_continues_a_long_redrive() -> None:
    stage = RedriveStage()
    dead, record = stage.dead(100), stage.begin(rate=1)
    began = stage.clock.now()
    (result,) = stage.step()
    assert result.next_at == began + 5_000 and stage.clock.now() == began
    first = stage.found(record)
    assert (first.state, first.done, first.lease_until) == (State.RUNNING, 5, 0)
    stage.finish()
    assert stage.lives(dead) == [1] * 100 and stage.counts(record) == (State.DONE, 100, 100, 0)


def test_a_redrive_is_taken_over_once_the_lease_of_a_dead_step_has_ended() -> None:
    stage = RedriveStage()
    dead, record = stage.dead(3), stage.begin()
    now = stage.clock.now()
    mine = replace(record, lease_until=now + LEASE_MS, version=2)
    assert stage.operations.change(record, mine)
    (waited,) = stage.step()
    assert waited.next_at == now + LEASE_MS + 1_000 and stage.lives(dead) == [0] * 3
    stage.finish()
    assert all(0 <= (stage.stored(job).redriven_at or 0) - now - LEASE_MS <= 1_000 for job in dead)
    assert stage.counts(record) == (State.DONE, 3, 3, 0)


@pytest.mark.parametrize("failing", ["change", "get_many", "letters"])
@pytest.mark.parametrize("then", [refuse, lost_answer])
def test_refusal_of_any_call_only_costs_time(failing: str, then: Any) -> None:
    stage = RedriveStage()
    dead, record = stage.dead(20), stage.begin()
    stage.jobs = Wrapped(stage.jobs, **{failing: times(1, then)})
    began = stage.clock.now()
    first, *_ = stage.finish()
    assert first.failed
    found = stage.found(record)
    assert stage.lives(dead) == [1] * 20
    assert found.state is State.DONE and (found.ended_at or 0) - began <= LEASE_MS + 10_000


@pytest.mark.parametrize("nth", range(1, 6))
@pytest.mark.parametrize("then", [refuse, lost_answer])
def test_each_job_is_redriven_once_whichever_record_write_fails(nth: int, then: Any) -> None:
    stage = RedriveStage()
    dead, record = stage.dead(40), stage.begin()
    calls, inner = [0], stage.operations

    def change(verb: Any, *args: Any) -> Any:
        calls[0] += 1
        return then(verb, *args) if calls[0] == nth else verb(*args)

    stage.operations = Wrapped(inner, change=change)
    stage.finish()
    assert stage.lives(dead) == [1] * 40 and stage.counts(record) == (State.DONE, 40, 40, 0)


def test_the_chunk_of_a_step_that_died_is_counted_once() -> None:
    """Its jobs are no longer dead letters, so that no read finds them."""
    stage = RedriveStage()
    dead, record = stage.dead(40), stage.begin()
    inner, stage.operations = stage.operations, Wrapped(stage.operations, change=_die)
    with pytest.raises(KeyboardInterrupt):
        stage.finish()
    assert sum(stage.lives(dead)) == 40
    stage.operations = inner
    stage.finish()
    assert stage.lives(dead) == [1] * 40 and stage.counts(record) == (State.DONE, 40, 40, 0)


def test_concurrently_changed_job_is_not_redriven_twice() -> None:
    stage = RedriveStage()
    dead, record = stage.dead(5), stage.begin()
    inner = stage.jobs

    def overtaken(verb: Any, changes: Any) -> list[Written]:
        other = stage.stored(dead[2])
        inner._store(other, lifecycle.redrive(other, stage.clock.now() + 5, slot="2026-11-20T11:00#00"))
        answers: list[Written] = verb(changes)
        return answers

    stage.jobs = Wrapped(inner, change=times(1, overtaken))
    stage.finish()
    assert stage.lives(dead) == [1] * 5 and stage.counts(record) == (State.DONE, 5, 4, 1)


def test_jobs_that_the_table_refuses_are_tried_again() -> None:
    stage = RedriveStage()
    dead, record = stage.dead(5), stage.begin()
    stage.jobs = Wrapped(stage.jobs, change=times(2, lambda verb, changes: [*verb(changes[:-1]), Written.REFUSED]))
    stage.finish()
    assert stage.lives(dead) == [1] * 5 and stage.counts(record) == (State.DONE, 5, 5, 0)


def test_a_redrive_waits_until_the_index_shows_what_has_just_failed() -> None:
    stage = RedriveStage()
    stage.dead(1)
    made = stage.begin()
    stage.clock.at = made.started_at
    result = OperationStep(stage, lambda: None).run(made.owner, made.id)
    assert result.done == 0 and result.next_at == made.started_at + SETTLED_MS == stage.clock.at + SETTLED_MS
    stage.finish()
    assert stage.counts(made) == (State.DONE, 1, 1, 0)


def test_two_redrives_have_their_own_rates() -> None:
    stage = RedriveStage()
    stage.dead(40)
    stage.dead(40, owner="eve")
    slow, fast = stage.begin(rate=4), stage.begin(owner="eve", rate=40)
    began = stage.clock.now()
    stage.finish()
    slow_end, fast_end = [(stage.found(each).ended_at or 0) - began for each in (slow, fast)]
    assert 7_000 <= slow_end <= 12_500 and fast_end <= 3_500


# Abort


def test_abort_stops_within_a_chunk_and_counts_that_chunk() -> None:
    stage = RedriveStage()
    dead, record = stage.dead(100), stage.begin(rate=5)
    inner, calls = stage.jobs, [0]

    def abort(verb: Any, *args: Any, **rest: Any) -> Any:
        calls[0] += 1
        if calls[0] == 3:
            verbs.abort("ann", record.id, stage)
        return verb(*args, **rest)

    stage.jobs = Wrapped(inner, change=abort)
    stage.finish()
    stage.jobs = inner
    assert sum(stage.lives(dead)) == 15
    assert stage.counts(record) == (State.ABORTED, 15, 15, 0)
    assert stage.asked == [] and OperationStep(stage, lambda: None).run("ann", record.id).next_at is None


def test_abort_is_idempotent_and_a_finished_redrive_refuses_it() -> None:
    stage = RedriveStage()
    record = stage.begin()
    once = verbs.abort("ann", record.id, stage)
    stage.clock.advance(5)
    assert verbs.abort("ann", record.id, stage) == once
    done = stage.begin()
    stage.finish()
    with pytest.raises(Conflict):
        verbs.abort("ann", done.id, stage)
    with pytest.raises(NotFound):
        verbs.abort("eve", done.id, stage)


def test_running_redrives_of_an_owner_are_limited() -> None:
    stage = RedriveStage()
    made = [stage.begin() for _ in range(MAX_RUNNING)]
    with pytest.raises(Conflict):
        stage.begin()
    stage.begin(owner="eve")
    verbs.abort("ann", made[0].id, stage)
    stage.begin()


def test_empty_time_range_is_refused() -> None:
    with pytest.raises(Invalid):
        RedriveStage().begin(since=NOW, until=NOW)


def test_a_redrive_whose_message_is_refused_waits_for_the_tick() -> None:
    stage = RedriveStage()
    dead = stage.dead(3)
    stage.work = Wrapped(stage.work, send=times(1, lambda verb, items, **delay: list(items)))
    record = stage.begin()
    assert stage.found(record).state is State.RUNNING and stage.asked == []
    stage.clock.advance(LOST_MS + 1)
    stage.tick()
    stage.step()
    assert stage.lives(dead) == [1] * 3


def test_the_tick_leaves_a_redrive_alone_that_is_at_work() -> None:
    stage = RedriveStage()
    record = stage.begin()
    stage.operations.change(record, replace(record, lease_until=stage.clock.now() + 1, version=2))
    stage.work.queued.clear()
    stage.tick()
    assert WorkKind.OPERATION not in {item.kind for item in stage.asked}


def test_a_long_step_keeps_its_message_hidden() -> None:
    stage = RedriveStage()
    stage.dead(60)
    record, hidden = stage.begin(), list[int]()
    stage.jobs = Wrapped(stage.jobs, letters=lambda verb, *args, **rest: (stage.clock.advance(6_000), verb(*args, **rest))[1])
    stage.operations = Wrapped(stage.operations, change=lambda verb, *args: (stage.clock.advance(3_000), verb(*args))[1])
    OperationStep(stage, lambda: hidden.append(stage.clock.now())).run("ann", record.id)
    assert all(later - at <= 10_000 for at, later in pairwise(hidden))


# Counts


def test_the_overview_groups_by_error_the_most_frequent_first() -> None:
    stage = RedriveStage()
    task = stage.create({"rate": "5 minutes"})
    few = stage.dead(2, type="http", reason="connection reset")
    many = stage.dead(2, reason="order 17 is gone") + stage.dead(1, reason="order 18 is gone", origin=RunInfo(task.id, 1, NOW))
    stage.dead(1, owner="eve")
    told = overview("ann", Filter(), jobs=stage.jobs)
    assert (told.read, told.complete, [group.count for group in told.groups]) == (5, True, [3, 2])
    first, second = told.groups
    assert (first.types, first.tasks, first.fingerprint) == ({"log"}, {task.id}, many[0].fingerprint)
    assert (first.first_at, first.last_at) == (min(job.failed_at or 0 for job in many), max(job.failed_at or 0 for job in many))
    assert first.sample is not None and first.sample.message in ("order 17 is gone", "order 18 is gone")
    assert (second.types, second.tasks) == ({"http"}, set()) and second.fingerprint == few[0].fingerprint
    assert [group.count for group in overview("ann", Filter(type="http"), jobs=stage.jobs).groups] == [2]
    assert [group.count for group in overview("ann", Filter(task=task.id), jobs=stage.jobs).groups] == [1]


def test_overview_reports_that_it_stopped_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler.dead_letters.groups.READ", 20)
    monkeypatch.setattr("scheduler.dead_letters.groups.PAGE", 10)
    stage = RedriveStage()
    stage.dead(20)
    assert overview("ann", Filter(), jobs=stage.jobs).complete
    stage.dead(1)
    told = overview("ann", Filter(), jobs=stage.jobs)
    assert (told.read, told.complete, told.groups[0].count) == (20, False, 20)


def test_group_whose_latest_letter_was_redriven_has_no_sample() -> None:
    stage = RedriveStage()
    (job,) = stage.dead(1)
    shown = stage.jobs.letters("ann", since=None, until=None, after=None, limit=100, newest_first=True)
    stage.begin()
    stage.finish()
    lagging: Any = Wrapped(stage.jobs, letters=lambda verb, *args, **rest: shown)
    (group,) = overview("ann", Filter(), jobs=lagging).groups
    assert (group.count, group.sample) == (1, None)
    assert listing("ann", Filter(), limit=5, cursor=None, jobs=lagging).jobs == []
    assert stage.stored(job).redrives == 1


def test_the_letters_of_one_error_are_listed_page_by_page() -> None:
    stage = RedriveStage()
    wanted, _ = stage.dead(5, reason="order 17 is gone"), stage.dead(3)
    filter = Filter(fingerprint=wanted[0].fingerprint)
    listed: list[JobKey] = []
    cursor: str | None = None
    for _ in range(3):
        page = listing("ann", filter, limit=2, cursor=cursor, jobs=stage.jobs)
        listed, cursor = listed + [job.key for job in page.jobs], page.cursor
    assert listed == [job.key for job in reversed(wanted)] and cursor is None


def test_a_redriven_job_is_in_a_slot_that_is_safe() -> None:
    stage = RedriveStage()
    (job,) = stage.dead(1)
    stage.begin()
    stage.finish()
    assert slots.is_overflow(stage.stored(job).slot or "")
