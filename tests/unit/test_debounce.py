"""Debounce, throttle and singleton by key, with executors that claim the jobs ahead of their instants."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from scheduler.admission.gate import READ_WINDOW_MS
from scheduler.jobs import by_key
from scheduler.jobs.by_key import SINGLETON, OnConflict, OnStarted, Put, PutOutcome, PutRules, debounce, put, throttle
from scheduler.jobs.change import reschedule
from scheduler.model import lifecycle
from scheduler.model.errors import Conflict, Unavailable
from scheduler.model.job import Finished, Job, OwnKey, RequeueCause, Status
from scheduler.model.spec import JobSpec
from scheduler.pipeline.submit import NewJob
from scheduler.storage.ports import Change, Written
from tests.conftest import NOW, ScriptedPool
from tests.unit.stage import Stage, Wrapped, times

OWN = OwnKey("ann", "page 4")
FOLLOW = PutRules(on_started=OnStarted.FOLLOW)
CANCELLABLE = PutRules(OnConflict.KEEP)


class Acts(ScriptedPool):
    """A pool in which something happens at given instants while the executor waits."""

    def __init__(self, stage: Stage, acts: dict[int, Callable[[], Any]], **fields: Any) -> None:
        super().__init__(stage.clock, **fields)
        self.acts = acts

    def wait(self, until: int) -> list[Finished]:
        first = min(self.acts, default=until + 1)
        done = super().wait(min(first, until))
        if self.clock.now() >= first:
            self.acts.pop(first)()
        return done


def place(stage: Stage, number: int, rules: PutRules, delay: int | None = 1_000, **fields: Any) -> Put:
    new = NewJob(OWN.owner, JobSpec("log", {"message": str(number)}, key=OWN.key), delay_ms=delay, **fields)
    return put(new, stage, random=number, rules=rules)


def run(stage: Stage, puts: dict[int, Callable[[], Any]], until: int, **fields: Any) -> list[tuple[str, int]]:
    """Let an executor run and puts arrive; return the contents of the jobs that start, with their starts."""
    pool = Acts(stage, puts, **fields)
    while stage.clock.now() < until:
        if deliveries := stage.receive():
            stage.execute(deliveries, pool=pool)
        else:
            pool.wait(stage.clock.now() + 20)
    return [(job.spec.payload["message"], at - NOW) for job, at in pool.starts]


def claimed(stage: Stage, job: Job, *, revocable: bool = True) -> Job:
    """Let another executor claim the job that was put."""
    (item,) = stage.receive()
    assert item.message.key == job.key
    return stage.claim(item, revocable=revocable)


# the last check before the start


def test_a_put_each_300_ms_with_a_delay_of_a_second_makes_one_run() -> None:
    stage = Stage()
    numbers = range(34)
    puts = {NOW + number * 300: partial(place, stage, number, debounce(None)) for number in numbers}
    assert run(stage, puts, NOW + 15_000) == [("33", 33 * 300 + 1_000)]
    (job,) = stage.jobs.rows.values()
    assert (job.puts, lifecycle.state(job), len(job.attempts)) == (34, Status.SUCCEEDED, 1)


def test_a_longest_wait_holds_under_steady_puts() -> None:
    stage = Stage()
    rule = debounce(20_000)
    puts = {NOW + number * 1_000: partial(place, stage, number, rule, 5_000) for number in range(60)}
    starts = run(stage, puts, NOW + 70_000)
    assert [at for _, at in starts] == [20_000, 40_000, 60_000]
    contents = [int(content) for content, _ in starts]
    assert contents == [19, 39, 59] and sum(job.puts for job in stage.jobs.rows.values()) == 60


def test_a_put_is_applied_until_the_last_check_and_follows_from_then_on() -> None:
    for ahead, starts in ((READ_WINDOW_MS + 1, [("1", 3_099)]), (100, [("0", 1_500), ("1", 3_400)])):
        stage = Stage()
        place(stage, 0, FOLLOW, 1_500)
        act = partial(place, stage, 1, FOLLOW, 2_000)
        assert run(stage, {NOW + 1_500 - ahead: act}, NOW + 9_000) == starts


@pytest.mark.parametrize("verb", ["glance", "change"])
def test_the_first_of_a_put_and_the_last_check_is_applied(verb: str) -> None:
    stage = Stage()
    place(stage, 0, FOLLOW, 1_500)
    whole, done = stage.jobs, list[Put]()

    def wrapped(call: Any, *args: Any) -> Any:
        if not done:
            done.append(put_beside(stage, whole))
        return call(*args)

    pool = ScriptedPool(stage.clock)
    assert stage.execute(stage.receive(), pool=pool, jobs=Wrapped(whole, **{verb: wrapped})) == []
    assert pool.starts == [] and done[0].outcome is PutOutcome.REPLACED
    stored = stage.stored(done[0].job)
    assert (stored.fence, stored.claim, stored.spec.payload["message"]) == (2, None, "1")
    assert [each.message.fence for each in stage.lanes.queues[stored.lane].values()] == [2]


@pytest.mark.parametrize("rules", [PutRules(), FOLLOW])
def test_a_put_that_loses_against_the_last_check_does_not_change_the_job(rules: PutRules) -> None:
    stage = Stage()
    job = claimed(stage, place(stage, 0, rules, 1_500).job)
    whole = stage.jobs

    def fixed_before(call: Any, changes: Any) -> Any:
        stage.jobs = whole
        assert whole.change([Change(job, lifecycle.fix(job))]) == [Written.YES]
        return call(changes)

    stage.jobs = Wrapped(whole, change=fixed_before)
    if rules is FOLLOW:
        assert place(stage, 1, rules).follows == job.id
    else:
        with pytest.raises(Conflict, match="it is about to start"):
            place(stage, 1, rules)
    assert stage.stored(job) == lifecycle.fix(job)


def put_beside(stage: Stage, jobs: Any) -> Put:
    """Put while another part of the test wraps the jobs table."""
    wrapped, stage.jobs = stage.jobs, jobs
    try:
        return place(stage, 1, FOLLOW, 5_000)
    finally:
        stage.jobs = wrapped


def test_a_job_without_a_key_is_not_fixed_by_a_write() -> None:
    stage = Stage()
    stage.submit(NOW + 1_500)
    writes: list[Change] = []

    def change(call: Any, changes: Any) -> Any:
        writes.extend(changes)
        return call(changes)

    stage.execute(stage.receive(), jobs=Wrapped(stage.jobs, change=change))
    assert [lifecycle.state(each.after) for each in writes] == [Status.SUCCEEDED]


def test_a_put_for_now_is_claimed_without_a_further_write() -> None:
    stage = Stage()
    job = place(stage, 0, FOLLOW, 0).job
    writes: list[Change] = []

    def change(call: Any, changes: Any) -> Any:
        writes.extend(changes)
        return call(changes)

    stage.execute(stage.receive(), jobs=Wrapped(stage.jobs, change=change))
    assert len(writes) == 1 and stage.stored(job).completed_at is not None


def test_a_job_of_a_key_does_not_start_while_the_table_refuses() -> None:
    stage = Stage()
    job = place(stage, 0, FOLLOW, 1_500).job
    refused = Wrapped(stage.jobs, change=times(5, lambda verb, changes: [Written.REFUSED] * len(changes)))
    pool = ScriptedPool(stage.clock)
    stage.execute(stage.receive(), pool=pool, jobs=refused)
    ((started, at),) = pool.starts
    assert started.key == job.key and NOW + 1_500 < at <= NOW + 3_000


def test_a_job_of_a_key_is_requeued_if_the_table_refuses_for_long() -> None:
    stage = Stage()
    job = place(stage, 0, FOLLOW, 1_500).job
    refused = Wrapped(stage.jobs, change=times(12, lambda verb, changes: [Written.REFUSED] * len(changes)))
    pool = ScriptedPool(stage.clock)
    stage.execute(stage.receive(), pool=pool, jobs=refused)
    stored = stage.stored(job)
    assert pool.starts == [] and (stored.claim, stored.fence, stored.charged) == (None, 2, 0)
    assert stored.requeue_cause in (None, RequeueCause.REFUSED)


def test_a_put_gives_way_to_a_cancel_of_the_claimed_job() -> None:
    stage = Stage()
    job = claimed(stage, place(stage, 0, FOLLOW, 1_500).job)
    whole = stage.jobs

    def flagged_before(call: Any, changes: Any) -> Any:
        stage.jobs = whole
        assert whole.change([Change(job, lifecycle.flag(job, NOW))]) == [Written.YES]
        return call(changes)

    stage.jobs = Wrapped(whole, change=flagged_before)
    with pytest.raises(Conflict, match="it is being cancelled"):
        place(stage, 1, PutRules())
    assert stage.stored(job) == lifecycle.flag(job, NOW)


def test_a_claimed_job_of_a_key_may_be_changed_by_its_id_too() -> None:
    stage = Stage()
    job = claimed(stage, place(stage, 0, FOLLOW, 1_500).job)
    assert reschedule(job.key, {"scheduled_at": NOW + 60_000}, stage).claim is None
    fixed = claimed(stage, place(stage, 1, FOLLOW, 1_500).job, revocable=False)
    with pytest.raises(Conflict, match="it is about to start"):
        reschedule(fixed.key, {"scheduled_at": NOW + 60_000}, stage)


def test_a_job_whose_executor_died_before_the_last_check_has_not_started() -> None:
    stage = Stage()
    job = claimed(stage, place(stage, 0, FOLLOW, 1_500).job)
    late = NOW + 9_000
    assert (lifecycle.status(job, late), lifecycle.delay(job, late), lifecycle.crashed_start(job, late)) == (Status.QUEUED, None, None)
    stage.clock.at = late
    assert place(stage, 1, FOLLOW).outcome is PutOutcome.REPLACED
    fixed = lifecycle.fix(job)
    assert (lifecycle.status(fixed, late), lifecycle.crashed_start(fixed, late)) == (Status.RUNNING, NOW + 1_500)


def test_of_20_puts_at_once_the_last_one_runs() -> None:
    stage = Stage()
    puts = {NOW + number: partial(place, stage, number, debounce(None)) for number in range(20)}
    assert run(stage, puts, NOW + 5_000) == [("19", 1_019)]


def test_puts_while_the_job_runs_make_one_more_run() -> None:
    stage = Stage()
    puts = {NOW: lambda: place(stage, 0, debounce(None))}
    puts |= {NOW + 1_100 + number * 300: partial(place, stage, number + 1, debounce(None)) for number in range(5)}
    assert run(stage, puts, NOW + 9_000, takes=2_000) == [("0", 1_000), ("5", 1_100 + 4 * 300 + 1_000)]


# the rules


def test_a_burst_that_is_over_is_not_changed_even_if_its_job_is_late() -> None:
    stage = Stage()
    first = place(stage, 0, debounce(2_000)).job
    stage.clock.at = NOW + 1_900
    moved = place(stage, 1, debounce(2_000))
    assert (moved.outcome, moved.job.due_at) == (PutOutcome.REPLACED, NOW + 2_000)
    stage.clock.at = NOW + 2_000
    late = place(stage, 2, debounce(2_000))
    assert (late.outcome, late.follows, late.job.due_at) == (PutOutcome.CREATED, first.id, NOW + 3_000)
    assert stage.stored(first) == moved.job


def test_a_throttle_returns_the_job_that_won_for_its_period() -> None:
    stage = Stage()
    won = place(stage, 0, throttle(60_000), None).job
    run(stage, {}, NOW + 1_000)
    assert stage.stored(won).completed_at is not None
    for at in (NOW + 1_000, NOW + 59_999):
        stage.clock.at = at
        again = place(stage, 1, throttle(60_000), None)
        assert (again.job, again.outcome) == (stage.stored(won), PutOutcome.THROTTLED)
    stage.clock.at = NOW + 60_000
    assert place(stage, 2, throttle(60_000), None).outcome is PutOutcome.CREATED


def test_a_throttle_makes_no_second_job_that_waits() -> None:
    stage = Stage()
    won = place(stage, 0, throttle(1_000), 50_000).job
    stage.clock.at = NOW + 40_000
    assert place(stage, 1, throttle(1_000)).job == won
    running = replace(won, due_at=NOW + 30_000, slot="2026-11-20T10:05#00")
    stage.jobs.rows[won.key] = running
    stage.claim(stage.hand(replace(running, id=won.id[:-1] + "Z"))[0], at=NOW)  # another job of another key changes nothing
    assert place(stage, 2, throttle(1_000)).outcome is PutOutcome.THROTTLED


def test_the_throttle_of_a_cancelled_job_is_over() -> None:
    stage = Stage()
    won = place(stage, 0, throttle(60_000), 30_000).job
    by_key.cancel_by_key(OWN, stage)
    again = place(stage, 1, throttle(60_000))
    assert again.outcome is PutOutcome.CREATED and again.job.id != won.id


def test_a_running_job_is_followed_after_the_period() -> None:
    stage = Stage()
    won = claimed(stage, place(stage, 0, throttle(1_000), 0).job, revocable=False)
    stage.clock.at = NOW + 999
    assert place(stage, 1, throttle(1_000)).outcome is PutOutcome.THROTTLED
    stage.clock.at = NOW + 1_000
    assert place(stage, 2, throttle(1_000)).follows == won.id


def test_a_singleton_is_created_again_only_after_its_end() -> None:
    stage = Stage()
    job = place(stage, 0, SINGLETON).job
    assert place(stage, 1, SINGLETON).outcome is PutOutcome.UNCHANGED
    starts = run(stage, {NOW + 1_500: lambda: place(stage, 2, SINGLETON)}, NOW + 5_000, takes=2_000)
    assert starts == [("0", 1_000)] and stage.stored(job).puts == 1
    assert place(stage, 3, SINGLETON).outcome is PutOutcome.CREATED


def test_a_put_is_unavailable_if_the_table_refuses_to_change_a_claimed_job() -> None:
    stage = Stage()
    claimed(stage, place(stage, 0, FOLLOW, 1_500).job)
    stage.jobs = Wrapped(stage.jobs, change=lambda verb, changes: [Written.REFUSED])
    with pytest.raises(Unavailable):
        place(stage, 1, FOLLOW)
