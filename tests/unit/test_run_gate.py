"""Checks before a run of a task starts, and the runs that its end enqueues: gate, pause, misfire, order and overlap."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from scheduler.admission import gate
from scheduler.admission.gate import READ_AHEAD_MS, READ_WINDOW_MS
from scheduler.admission.lane_state import REFRESH_MS, LaneStateCache
from scheduler.admission.overlap import REPLACED
from scheduler.jobs.cancel import cancel
from scheduler.model import callback_lease, ids, lifecycle, slots
from scheduler.model.job import (
    Awaited,
    Claim,
    Delivery,
    Failure,
    FailureKind,
    Job,
    JobKey,
    Lane,
    LaneState,
    Message,
    Misfire,
    Overlap,
    RequeueCause,
    Result,
    RunInfo,
    RunLock,
    Status,
    TaskHead,
    TaskKey,
    changed,
)
from scheduler.model.lifecycle import Event
from scheduler.model.spec import JobSpec
from scheduler.model.task import Task
from scheduler.pipeline.follow_up import ASK_LATER_MS
from scheduler.pipeline.waiting_jobs import ASK_LIMIT_MS, ASK_PAUSE_MS
from scheduler.storage.ports import Change, Found, Written
from tests.conftest import NOW, ScriptedPool, a_job
from tests.events import happen
from tests.unit.stage import Stage, Wrapped, lost_answer, refuse, times

MINUTE = 60_000
POLICIES = [Overlap.SKIP, Overlap.QUEUE_ONE, Overlap.CANCEL_RUNNING]
FAILING = Result(failure=Failure(FailureKind.RETRYABLE, "503"))
TASK = Task("ann", "t1", "a task", JobSpec("log", {"message": "hello"}), None, NOW, NOW)


def a_stage(task: Task | None = TASK, **ports: Any) -> Stage:
    stage = Stage(**ports)
    if task is not None:
        assert stage.tasks.store(None, task, [])
    return stage


def a_run(at: int = NOW, overlap: Overlap = Overlap.SKIP, *, task: str = "t1", origin: dict[str, Any] | None = None, **fields: Any) -> Job:
    """A run of the task, scheduled at `at`."""
    made = RunInfo(task, 1, at, overlap, **({"misfire": Misfire.RUN_LATEST} | (origin or {})))
    job_id = ids.run(at, made.task, made.generation)
    return a_job(**({"id": job_id, "scheduled_at": at, "lane": Lane.RECURRING, "origin": made} | fields))


def run(stage: Stage, *jobs: Job | Delivery, pool: ScriptedPool | None = None, **ports: Any) -> ScriptedPool:
    """Deliver these jobs in one batch and run it; the pool records the started runs."""
    pool = pool or ScriptedPool(stage.clock)
    new = [job for job in jobs if isinstance(job, Job)]
    stage.execute(
        [*(stage.hand(*new) if new else []), *(job for job in jobs if isinstance(job, Delivery))], pool=pool, lane=Lane.RECURRING, **ports
    )
    return pool


def started(pool: ScriptedPool) -> list[JobKey]:
    return [job.key for job, _ in pool.starts]


def running(stage: Stage, job: Job) -> Job:
    """Another executor has claimed the run, and the run has the run lock of its task."""
    (item,) = stage.hand(job)
    holder = stage.tasks.holders([TASK.key]).get(TASK.key)
    after = replace(holder, job=job.id, version=holder.version + 1) if holder else RunLock(TASK.key, job.id)
    assert stage.tasks.hold([(holder, after)]) == [Written.YES]
    return stage.claim(item)


def end(stage: Stage, job: Job, event: Event = Event.SUCCEED) -> None:
    after = happen(job, event, stage.clock.now(), started_at=NOW, result=Result("done"), reason="because")
    assert stage.jobs.change([Change(job, after)]) == [Written.YES]


def state(stage: Stage, job: Job) -> Status:
    return lifecycle.state(stage.stored(job))


def reason(stage: Stage, job: Job) -> str | None:
    return stage.stored(job).reason


def holder(stage: Stage) -> RunLock | None:
    found: RunLock | None = stage.tasks.holders([TASK.key]).get(TASK.key)
    return found


def counted(port: Any, *verbs: str) -> tuple[Any, list[str]]:
    """The port, and the list of its calls of these verbs."""
    calls: list[str] = []

    def count(name: str) -> Callable[..., Any]:
        def call(verb: Any, *args: Any, **kwargs: Any) -> Any:
            calls.append(name)
            return verb(*args, **kwargs)

        return call

    return Wrapped(port, **{name: count(name) for name in verbs}), calls


# a run on time


@pytest.mark.parametrize("early", [3_000, 100])
def test_early_run_reads_ahead_and_starts_on_the_millisecond(early: int) -> None:
    stage = a_stage()
    asked: list[int] = []

    def note(verb: Any, *args: Any) -> Any:
        asked.append(stage.clock.now())
        return verb(*args)

    pool = run(stage, a_run(NOW + early), tasks=Wrapped(stage.tasks, heads=note, holders=note, hold=note))
    assert [at for _, at in pool.starts] == [NOW + early] and len(asked) == 3 and max(asked) < NOW + early


def test_runs_due_together_share_their_reads() -> None:
    stage = a_stage()
    others = [replace(TASK, id=f"t{number}") for number in range(2, 8)]
    assert all(stage.tasks.store(None, task, []) for task in others)
    tasks, calls = counted(stage.tasks, "heads", "holders", "hold")
    jobs, reads = counted(stage.jobs, "glance")
    pool = run(stage, *(a_run(NOW + 3_000, task=task.id) for task in [TASK, *others]), tasks=tasks, jobs=jobs)
    assert len(pool.starts) == 7 and calls == ["holders", "heads", "hold"] and reads == ["glance"]


def test_job_without_a_task_reads_no_task() -> None:
    stage = a_stage()
    tasks = Wrapped(stage.tasks, heads=refuse, holders=refuse, hold=refuse)
    pool = ScriptedPool(stage.clock)
    stage.execute(stage.hand(a_job(), a_job(due_at=NOW + 3_000)), pool=pool, tasks=tasks)
    assert len(pool.starts) == 2


def test_run_that_may_overlap_reads_no_run_lock() -> None:
    stage = a_stage()
    pool = run(stage, a_run(overlap=Overlap.ALLOW), a_run(NOW - 1, Overlap.ALLOW), tasks=Wrapped(stage.tasks, holders=refuse, hold=refuse))
    assert len(pool.starts) == 2 and holder(stage) is None


# the gate


@pytest.mark.parametrize("at", [NOW, NOW + 3_000], ids=["late", "held"])
@pytest.mark.parametrize(
    ("task", "why"),
    [
        (None, "its task was deleted"),
        (replace(TASK, generation=2), "its task was edited"),
        (replace(TASK, generation=2, inactive_at=NOW, inactive_reason="holiday"), "its task was made inactive: holiday"),
        (replace(TASK, inactive_at=NOW), "its task was made inactive"),
    ],
)
def test_run_no_longer_wanted_by_its_task_is_cancelled(task: Task | None, why: str, at: int) -> None:
    stage = a_stage(task)
    job = a_run(at)
    assert started(run(stage, job)) == [] and stage.clock.now() <= at
    assert state(stage, job) is Status.CANCELLED and reason(stage, job) == why and holder(stage) is None


@pytest.mark.parametrize(
    ("fields", "task", "starts"),
    [
        ({"delay_ms": 3, "fence": 2}, replace(TASK, generation=2), True),
        ({"delay_ms": 3, "fence": 2}, replace(TASK, inactive_at=NOW), False),
        ({"delay_ms": 3, "fence": 2}, None, False),
        ({"origin": RunInfo("t1", 1)}, replace(TASK, generation=2), True),
        ({"origin": RunInfo("t1", 1)}, replace(TASK, inactive_at=NOW), False),
        ({"fence": 2}, replace(TASK, generation=2), False),
        ({"origin": RunInfo("t1", 3, NOW)}, replace(TASK, generation=2), True),
    ],
    ids=["retry, edited", "retry, paused", "retry, deleted", "by hand, edited", "by hand, paused", "waited, edited", "planned for an edit"],
)
def test_started_and_manual_runs_survive_an_edit_but_not_a_pause(fields: Any, task: Task | None, starts: bool) -> None:
    stage = a_stage(task)
    job = replace(a_run(), **fields)
    assert bool(run(stage, job).starts) is starts


@pytest.mark.parametrize("at", [NOW, NOW + 3_000])
def test_delete_between_the_reads_frees_no_run_lock(at: int) -> None:
    """Another run is at work; a delete removes the task and its run lock between any two reads of the next run."""
    for reads in (1, 2):
        stage = a_stage()
        running(stage, a_run(NOW - MINUTE))
        asked: list[str] = []

        def read(verb: Any, *args: Any, stage: Stage = stage, asked: list[str] = asked, reads: int = reads) -> Any:
            found = verb(*args)
            asked.append("once")
            if len(asked) == reads:
                stage.tasks.delete(TASK)
            return found

        pool = run(stage, late := a_run(at), tasks=Wrapped(stage.tasks, heads=read, holders=read))
        assert pool.starts == [] and state(stage, late) in (Status.CANCELLED, Status.SKIPPED)


def test_late_start_notices_an_edit_after_the_last_read() -> None:
    """An executor that stalled after its last read must not rely on it: the edit has returned since."""
    stage = a_stage()
    job = a_run(NOW + 3_000)

    def hold(verb: Any, changes: Any) -> Any:
        held = verb(changes)
        assert stage.tasks.store(TASK, replace(TASK, generation=2), [])
        stage.clock.advance(READ_WINDOW_MS + 3_000)
        return held

    assert run(stage, job, tasks=Wrapped(stage.tasks, hold=times(1, hold))).starts == []
    assert state(stage, job) is Status.CANCELLED and reason(stage, job) == "its task was edited"


def test_task_is_read_within_the_window_before_the_start() -> None:
    for request in range(40):
        stage = a_stage()
        reads: list[int] = []
        tasks = Wrapped(stage.tasks, heads=lambda verb, keys, seen=reads, at=stage.clock: (seen.append(at.now()), verb(keys))[1])
        jobs = [a_run(NOW + 3_000 + offset, Overlap.ALLOW) for offset in (0, 300, 900)]
        pool = run(stage, *jobs, tasks=tasks, request_id=f"r{request}")
        assert [at for _, at in pool.starts] == [job.due_at for job in jobs]
        assert all(any(job.due_at - READ_WINDOW_MS <= at < job.due_at for at in reads) for job in jobs)


@pytest.mark.parametrize("verb", ["heads", "holders", "hold"])
@pytest.mark.parametrize("at", [NOW, NOW + 3_000], ids=["late", "held"])
def test_run_is_checked_again_while_the_task_table_refuses(verb: str, at: int) -> None:
    stage = a_stage()
    pool = run(stage, a_run(at), tasks=Wrapped(stage.tasks, **{verb: times(8)}))
    ((_, start),) = pool.starts
    assert 1 <= (start - at) // ASK_PAUSE_MS <= 8 and start <= at + ASK_LIMIT_MS


@pytest.mark.parametrize("at", [NOW, NOW + 3_000], ids=["late", "held"])
def test_a_run_with_an_unreadable_task_is_requeued(at: int) -> None:
    stage = a_stage()
    job = a_run(at)
    assert run(stage, job, tasks=Wrapped(stage.tasks, heads=refuse)).starts == []
    back = stage.stored(job)
    assert (lifecycle.state(back), back.fence, back.reason, back.attempts) == (Status.SCHEDULED, 2, gate.REFUSED.reason, ())
    assert stage.clock.now() == at + ASK_LIMIT_MS and slots.is_safe(back.slot or "", stage.clock.now())
    assert stage.receive(Lane.RECURRING) == []
    stage.clock.advance(ASK_LATER_MS)
    assert started(run(stage, *stage.receive(Lane.RECURRING))) == [job.key]


# a paused lane


def pause(stage: Stage, lane: Lane = Lane.RECURRING) -> None:
    stage.ledger.set_lane_state(LaneState(lane, stage.clock.now()))


def test_messages_of_a_paused_lane_go_and_their_jobs_wait_unclaimed() -> None:
    stage = a_stage()
    pause(stage)
    job = a_run()
    assert run(stage, job).starts == []
    room = slots.waiting(job.lane, job.id, stage.rules.shards)
    assert stage.stored(job) == changed(job, slot=room) and stage.waiting(Lane.RECURRING) == [] and len(stage.jobs.due(room)[0]) == 1


def test_other_lanes_continue_during_a_pause() -> None:
    stage = a_stage()
    pause(stage, Lane.RETRY)
    assert len(run(stage, a_run()).starts) == 1


@pytest.mark.parametrize("job", [a_run(NOW + 3_000), a_job(due_at=NOW + 3_000, lane=Lane.RECURRING)], ids=["run", "job"])
def test_a_claimed_job_of_a_paused_lane_goes_to_the_waiting_room(job: Job) -> None:
    stage = a_stage()

    def claim(verb: Any, requests: Any) -> Any:
        pause(stage)
        return verb(requests)

    assert run(stage, job, jobs=Wrapped(stage.jobs, claim=claim)).starts == []
    back = stage.stored(job)
    assert (lifecycle.state(back), back.slot, back.fence, back.lane, back.reason) == (
        Status.SCHEDULED,
        slots.waiting(job.lane, job.id, stage.rules.shards),
        2,
        job.lane,
        gate.PAUSED.reason,
    )
    assert stage.waiting(Lane.RECURRING) == []


@pytest.mark.parametrize("paused", [True, False])
def test_stalled_executor_reads_its_lane_again(paused: bool) -> None:
    """Found by the simulation: the call that checked another job of the batch took 27 s."""
    stage = a_stage()

    def heads(verb: Any, keys: Any) -> Any:
        if paused:
            pause(stage)
        stage.clock.advance(15_000)
        return verb(keys)

    jobs = [a_run(NOW + 3_000), a_job(due_at=NOW + 3_000, lane=Lane.RECURRING)]
    pool = run(stage, *jobs, tasks=Wrapped(stage.tasks, heads=times(1, heads)))
    assert len(pool.starts) == (0 if paused else 2)
    assert {lifecycle.state(stage.stored(job)) for job in jobs} == {Status.SCHEDULED if paused else Status.SUCCEEDED}


@pytest.mark.parametrize("paused", [True, False])
def test_stalled_executor_distrusts_old_lane_states_while_refused(paused: bool) -> None:
    """Found by the simulation: the call that renewed a lease took 29 s, and the read after it was refused."""
    stage = a_stage()

    def claim(verb: Any, requests: Any) -> Any:
        claimed = verb(requests)
        if paused:
            pause(stage)
        stage.clock.advance(15_000)
        looks.ports = stage.but(ledger=Wrapped(stage.ledger, watched=times(1)))
        return claimed

    looks = LaneStateCache(stage)
    job = a_job(due_at=NOW + 3_000, lane=Lane.RECURRING)
    starts = run(stage, job, jobs=Wrapped(stage.jobs, claim=claim), pauses=looks).starts
    assert [at for _, at in starts] == ([] if paused else [NOW + 15_000 + ASK_PAUSE_MS])
    assert reason(stage, job) == (gate.PAUSED.reason if paused else None)


def test_job_is_requeued_when_its_lane_state_stays_unknown() -> None:
    stage = a_stage()

    def claim(verb: Any, requests: Any) -> Any:
        claimed = verb(requests)
        stage.clock.advance(15_000)
        looks.ports = stage.but(ledger=Wrapped(stage.ledger, watched=refuse))
        return claimed

    looks = LaneStateCache(stage)
    job = a_job(due_at=NOW + 3_000, lane=Lane.RECURRING)
    assert run(stage, job, jobs=Wrapped(stage.jobs, claim=claim), pauses=looks).starts == []
    assert (state(stage, job), reason(stage, job)) == (Status.SCHEDULED, gate.REFUSED.reason)
    assert NOW + 15_000 + ASK_LIMIT_MS <= stage.clock.now() <= NOW + 15_000 + ASK_LIMIT_MS + ASK_PAUSE_MS


def test_run_decided_late_reads_its_lane_again() -> None:
    stage = a_stage()

    def heads(verb: Any, keys: Any) -> Any:
        pause(stage)
        stage.clock.advance(REFRESH_MS)
        return refuse(verb, keys)

    job = a_run()
    assert run(stage, job, tasks=Wrapped(stage.tasks, heads=times(1, heads))).starts == []
    assert reason(stage, job) == gate.PAUSED.reason


def test_run_requeued_by_a_pause_keeps_its_misfire_rule_api_23() -> None:
    stage = a_stage()
    job = a_run(start_by=NOW + MINUTE, fence=2, reason=gate.PAUSED.reason, requeue_cause=RequeueCause.PAUSED)
    stage.clock.advance(MINUTE)
    assert run(stage, job).starts == [] and state(stage, job) is Status.SKIPPED


def test_a_retry_in_a_paused_lane_is_sent_and_then_waits() -> None:
    stage, job = a_stage(), a_run()
    pause(stage, Lane.RETRY)
    run(stage, job, pool=ScriptedPool(stage.clock, result=FAILING))
    stage.clock.advance(MINUTE)
    assert stage.execute(stage.receive(Lane.RETRY), lane=Lane.RETRY) == []
    after = stage.stored(job)
    assert (after.slot, after.claim, stage.waiting(Lane.RETRY)) == (slots.waiting(Lane.RETRY, job.id, stage.rules.shards), None, [])


def test_new_executor_leaves_messages_when_lane_state_is_unknown() -> None:
    stage = a_stage()
    job = a_run()
    assert run(stage, job, pauses=LaneStateCache(stage.but(ledger=Wrapped(stage.ledger, watched=refuse)))).starts == []
    assert stage.stored(job).claim is None and stage.waiting(Lane.RECURRING) == [job.id]
    stage.clock.advance(5_000)
    assert started(run(stage, *stage.receive(Lane.RECURRING))) == [job.key]


def test_executor_reads_lane_states_once_a_second_across_batches() -> None:
    stage = a_stage()
    ledger, looks = counted(stage.ledger, "watched")
    pauses = LaneStateCache(stage.but(ledger=ledger))
    for _ in range(3):
        run(stage, a_run(), pauses=pauses)
    assert len(looks) == 1
    stage.clock.advance(REFRESH_MS)
    run(stage, a_run(), pauses=pauses)
    assert len(looks) == 2


# misfire and expiry


def test_late_run_is_skipped_without_a_read() -> None:
    stage = a_stage()
    job = a_run(start_by=NOW + MINUTE)
    stage.clock.advance(MINUTE)
    assert run(stage, job, tasks=Wrapped(stage.tasks, heads=refuse)).starts == []
    assert state(stage, job) is Status.SKIPPED and str(reason(stage, job)).startswith("misfire: ")


def test_run_just_in_time_starts() -> None:
    stage = a_stage()
    job = a_run(start_by=NOW + MINUTE)
    stage.clock.advance(MINUTE - 1)
    assert len(run(stage, job).starts) == 1


def test_expired_job_is_skipped_even_after_a_requeue() -> None:
    stage = a_stage()
    job = a_job(start_by=NOW + 500, fence=3)
    stage.clock.advance(500)
    pool = ScriptedPool(stage.clock)
    stage.execute(stage.hand(job), pool=pool)
    assert pool.starts == [] and state(stage, job) is Status.SKIPPED and str(reason(stage, job)).startswith("expired: ")


# the order of late runs


def late_runs(*minutes_ago: int, overlap: Overlap = Overlap.ALLOW) -> list[Job]:
    """Runs of misfire run_all, one a minute."""
    return [
        a_run(
            at,
            overlap,
            origin={"misfire": Misfire.RUN_ALL, "late_from": at + 10_000, "previous_at": at - MINUTE, "next_at": at + MINUTE},
        )
        for at in (NOW - minutes * MINUTE for minutes in minutes_ago)
    ]


def test_late_run_waits_for_the_run_before_it_and_its_end_enqueues_it() -> None:
    stage = a_stage()
    first, second = late_runs(2, 1)
    stage.jobs.put(first)
    assert run(stage, second).starts == []
    back = stage.stored(second)
    assert (lifecycle.state(back), back.fence, back.lane) == (Status.SCHEDULED, 2, Lane.RECURRING)
    assert slots.is_safe(back.slot or "", NOW) and back.reason == f"misfire: it runs after run {first.id}"
    assert stage.waiting(Lane.RECURRING) == []
    assert started(run(stage, first)) == [first.key]
    assert stage.waiting(Lane.RECURRING) == [second.id]
    assert started(run(stage, *stage.receive(Lane.RECURRING))) == [second.key]


def test_late_runs_of_one_batch_start_one_after_the_other() -> None:
    stage = a_stage()
    row = late_runs(3, 2, 1)
    assert started(run(stage, *reversed(row))) == [row[0].key]
    for each in row[1:]:
        assert started(run(stage, *stage.receive(Lane.RECURRING))) == [each.key]


@pytest.mark.parametrize("gone", [True, False])
def test_late_run_starts_when_its_predecessor_is_deleted_or_over(gone: bool) -> None:
    stage = a_stage()
    first, second = late_runs(2, 1)
    if not gone:
        stage.jobs.put(replace(first, slot=None, skipped_at=NOW))
    assert started(run(stage, second)) == [second.key]


def test_late_run_that_has_started_once_does_not_wait() -> None:
    stage = a_stage()
    first, second = late_runs(2, 1)
    stage.jobs.put(first)
    second = replace(second, delay_ms=0, fence=2)
    assert started(run(stage, second)) == [second.key]


@pytest.mark.parametrize("overlap", [Overlap.ALLOW, Overlap.QUEUE_ONE])
def test_late_run_with_a_new_instant_keeps_the_order(overlap: Overlap) -> None:
    """The run was planned after its time, so it arrives ahead of the later instant it then got."""
    stage = a_stage()
    first, second = late_runs(2, 1, overlap=overlap)
    stage.jobs.put(first)
    assert run(stage, replace(second, due_at=NOW + 3_000)).starts == []
    assert reason(stage, second) == f"misfire: it runs after run {first.id}"


def test_run_in_time_does_not_wait() -> None:
    stage = a_stage()
    first, second = late_runs(1, 0)
    stage.jobs.put(first)
    assert started(run(stage, second)) == [second.key]


@pytest.mark.parametrize("early_ms", [READ_WINDOW_MS, READ_WINDOW_MS + 1])
def test_run_that_may_become_late_keeps_the_order(early_ms: int) -> None:
    """Found by the simulation: cleared just before it was late, started just after, while the one before it had not ended."""
    stage = a_stage()
    first, second = late_runs(1, 0)
    assert second.origin is not None
    stage.jobs.put(first)
    second = replace(second, origin=replace(second.origin, late_from=NOW + early_ms))
    assert started(run(stage, second)) == ([second.key] if early_ms > READ_WINDOW_MS else [])


@pytest.mark.parametrize("overlap", [Overlap.SKIP, Overlap.QUEUE_ONE])
def test_a_run_in_time_waits_behind_late_runs_of_its_sequence(overlap: Overlap) -> None:
    """All of them run, whatever the overlap rule."""
    stage = a_stage()
    first, second, third = late_runs(2, 1, 0, overlap=overlap)
    for job in (changed(first, claim=Claim("m1", "n1", NOW - 1_000, False)), second):
        stage.jobs.put(job)
    assert stage.tasks.hold([(None, RunLock(TASK.key, first.id, second.id))]) == [Written.YES]
    assert run(stage, third).starts == []
    assert (state(stage, third), reason(stage, third)) == (Status.SCHEDULED, f"misfire: it runs after run {second.id}")
    end(stage, stage.stored(first), Event.SKIP)
    assert started(run(stage, second)) == [second.key]
    assert started(run(stage, *stage.receive(Lane.RECURRING))) == [third.key]


@pytest.mark.parametrize("overlap", [Overlap.SKIP, Overlap.QUEUE_ONE])
def test_a_run_in_time_that_comes_first_waits_for_late_runs(overlap: Overlap) -> None:
    """The run lock is free: the late run has not been delivered yet."""
    stage = a_stage()
    first, second = late_runs(1, 0, overlap=overlap)
    stage.jobs.put(first)
    assert run(stage, second).starts == []
    assert reason(stage, second) == f"misfire: it runs after run {first.id}"
    assert started(run(stage, first)) == [first.key]


def test_a_run_waits_behind_one_that_waited_for_late_runs() -> None:
    """The run before it started less than the threshold after its time, but only since it had waited."""
    stage = a_stage()
    _, second, third = late_runs(2, 1, 0, overlap=Overlap.SKIP)
    waited = changed(second, claim=Claim("m1", "n1", NOW - MINUTE, False), requeue_cause=RequeueCause.MISFIRE)
    stage.jobs.put(waited)
    assert stage.tasks.hold([(None, RunLock(TASK.key, second.id))]) == [Written.YES]
    assert run(stage, third).starts == []
    assert (state(stage, third), reason(stage, third)) == (Status.SCHEDULED, f"misfire: it runs after run {second.id}")


@pytest.mark.parametrize(("claimed_ago", "expected"), [(1_000, Status.SCHEDULED), (MINUTE, Status.SKIPPED)])
def test_the_overlap_rule_decides_behind_a_run_that_started_in_time(claimed_ago: int, expected: Status) -> None:
    stage = a_stage()
    first, second = late_runs(1, 0, overlap=Overlap.SKIP)
    stage.jobs.put(changed(first, claim=Claim("m1", "n1", NOW - claimed_ago, False)))
    assert stage.tasks.hold([(None, RunLock(TASK.key, first.id))]) == [Written.YES]
    assert run(stage, second).starts == [] and state(stage, second) is expected


def test_run_is_enqueued_when_its_predecessor_ends_before_the_wait() -> None:
    stage = a_stage()
    first, second = late_runs(2, 1)
    stage.jobs.put(first)

    def change(verb: Any, changes: Any) -> Any:
        end(stage, stage.stored(first), Event.SKIP)
        return verb(changes)

    assert run(stage, second, jobs=Wrapped(stage.jobs, change=times(1, change))).starts == []
    assert stage.waiting(Lane.RECURRING) == [second.id]


@pytest.mark.parametrize("waiting", ["first", "third", None])
def test_late_run_passes_its_run_lock_to_the_run_before_it(waiting: str | None) -> None:
    """Found by the simulation: its executor stalled for 23 s after it had taken the run lock in time."""
    stage = a_stage()
    first, second, third = late_runs(3, 2, 1, overlap=Overlap.QUEUE_ONE)
    for job in (first, third):
        stage.jobs.put(job)
    names = {"first": first.id, "third": third.id}
    assert stage.tasks.hold([(None, RunLock(TASK.key, second.id, names.get(waiting or "")))]) == [Written.YES]
    assert run(stage, second).starts == []
    assert reason(stage, second) == f"misfire: it runs after run {first.id}"
    holder = stage.tasks.holders([TASK.key])[TASK.key]
    assert (holder.job, holder.waiting) == (first.id, third.id if waiting == "third" else None)
    assert started(run(stage, first)) == [first.key]
    assert started(run(stage, *stage.receive(Lane.RECURRING))) == [second.key]


def test_run_that_cannot_pass_on_its_run_lock_checks_again() -> None:
    stage = a_stage()
    first, second = late_runs(2, 1, overlap=Overlap.QUEUE_ONE)
    stage.jobs.put(first)
    assert stage.tasks.hold([(None, RunLock(TASK.key, second.id))]) == [Written.YES]

    def hold(verb: Any, changes: Any) -> Any:
        stage.jobs.change([Change(stage.stored(first), replace(stage.stored(first), slot=None, skipped_at=NOW))])
        return [Written.NO] * len(changes)

    assert started(run(stage, second, tasks=Wrapped(stage.tasks, hold=times(1, hold)))) == [second.key]


def test_late_runs_continue_after_a_skipped_or_cancelled_run() -> None:
    for how in ("skip", "cancel"):
        stage = a_stage()
        first, second = late_runs(2, 1)
        first = replace(first, start_by=NOW if how == "skip" else None)
        stage.jobs.put(first)
        run(stage, second)
        if how == "skip":
            assert run(stage, first).starts == []
        else:
            cancel(first.key, stage)
        assert stage.waiting(Lane.RECURRING) == [second.id]


# overlap


@pytest.mark.parametrize("at", [NOW, NOW + 3_000], ids=["late", "held"])
def test_skip_policy_skips_a_run_while_another_is_open(at: int) -> None:
    stage = a_stage()
    other = running(stage, a_run(NOW - MINUTE))
    job = a_run(at)
    assert run(stage, job).starts == [] and stage.clock.now() == at
    assert state(stage, job) is Status.SKIPPED and reason(stage, job) == f"overlap: run {other.id} has not ended"


@pytest.mark.parametrize("policy", POLICIES)
def test_run_starts_when_the_other_ends_after_the_last_read(policy: Overlap) -> None:
    stage = a_stage()
    other = running(stage, a_run(NOW - MINUTE, policy))
    job = a_run(NOW + 3_000, policy)

    def holders(verb: Any, keys: Any) -> Any:
        found = verb(keys)
        if stage.clock.now() >= NOW + 3_000 and lifecycle.is_open(stage.stored(other)):
            end(stage, other)
        return found

    pool = run(stage, job, tasks=Wrapped(stage.tasks, holders=holders))
    assert pool.starts[0][1] == NOW + 3_000 and stage.stored(other).completed_at is not None


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("gone", [True, False])
def test_run_lock_left_by_a_crash_is_taken_over_sch_7(policy: Overlap, gone: bool) -> None:
    stage = a_stage()
    leaked = a_run(NOW - MINUTE)
    if not gone:
        stage.jobs.put(replace(leaked, slot=None, failed_at=NOW - 1_000))
    assert stage.tasks.hold([(None, RunLock(TASK.key, leaked.id, version=4))]) == [Written.YES]
    job = a_run(NOW, policy)
    assert started(run(stage, job)) == [job.key] and holder(stage) == RunLock(TASK.key, job.id, None, 5)


@pytest.mark.parametrize("policy", POLICIES)
def test_run_between_retries_keeps_its_run_lock(policy: Overlap) -> None:
    stage = a_stage()
    first = a_run(NOW - MINUTE)
    run(stage, first, pool=ScriptedPool(stage.clock, result=FAILING))
    assert state(stage, first) is Status.SCHEDULED
    job = a_run(overlap=policy)
    pool = run(stage, job)
    if policy is Overlap.CANCEL_RUNNING:
        assert started(pool) == [job.key] and state(stage, first) is Status.CANCELLED
        return
    assert pool.starts == []
    pool = ScriptedPool(stage.clock)
    stage.clock.advance(2_000)
    stage.execute(stage.receive(Lane.RETRY), pool=pool, lane=Lane.RETRY)
    assert started(pool) == [first.key]


@pytest.mark.parametrize("at", [NOW, NOW + 3_000], ids=["late", "held"])
def test_two_runs_of_one_batch_do_not_both_start_under_skip(at: int) -> None:
    stage = a_stage()
    first, second = a_run(at - 1), a_run(at)

    def hold(verb: Any, changes: Any) -> Any:
        assert len(changes) == 1, "a batch of writes must not name one item twice"
        return verb(changes)

    pool = ScriptedPool(stage.clock, takes=500)
    assert started(run(stage, second, first, pool=pool, tasks=Wrapped(stage.tasks, hold=hold))) == [first.key]
    assert state(stage, second) is Status.SKIPPED


def test_run_that_loses_the_run_lock_write_checks_again() -> None:
    stage = a_stage()
    other = a_run(NOW - MINUTE)
    job = a_run()

    def hold(verb: Any, changes: Any) -> Any:
        running(stage, other)
        return verb(changes)

    assert run(stage, job, tasks=Wrapped(stage.tasks, hold=times(1, hold))).starts == []
    assert state(stage, job) is Status.SKIPPED


def test_run_lock_is_recognized_after_a_lost_answer() -> None:
    stage = a_stage()
    job = a_run()
    assert started(run(stage, job, tasks=Wrapped(stage.tasks, hold=times(1, lost_answer)))) == [job.key]


def test_queue_policy_lets_one_run_wait_until_the_end_enqueues_it() -> None:
    stage = a_stage()
    first, second = a_run(NOW - MINUTE, Overlap.QUEUE_ONE), a_run(overlap=Overlap.QUEUE_ONE, start_by=NOW + MINUTE)
    claimed = running(stage, first)
    assert run(stage, second).starts == []
    back = stage.stored(second)
    assert (lifecycle.state(back), back.fence, back.lane, back.due_at) == (Status.SCHEDULED, 2, Lane.RECURRING, NOW)
    assert back.reason == f"overlap: it runs after run {first.id}" and slots.is_safe(back.slot or "", NOW)
    held = holder(stage)
    assert held is not None and held.waiting == second.id and stage.waiting(Lane.RECURRING) == [first.id]
    stage.clock.advance(5 * MINUTE)  # long after it could have misfired
    cancel_running(stage, claimed)
    assert stage.waiting(Lane.RECURRING) == [first.id, second.id]
    assert started(run(stage, *stage.receive(Lane.RECURRING))) == [second.key]


def cancel_running(stage: Stage, claimed: Job) -> None:
    """The run waits for a retry that is not due yet, and its owner cancels it: that ends the run, too."""
    after = lifecycle.retry(claimed, NOW, started_at=NOW, result=FAILING, due_at=NOW + 20 * MINUTE, slot="2026-11-20T10:20#00")
    assert stage.jobs.change([Change(claimed, after)]) == [Written.YES]
    cancel(claimed.key, stage)


def test_executor_that_ends_a_run_enqueues_the_waiting_run() -> None:
    stage = a_stage()
    first, second = a_run(NOW - MINUTE, Overlap.QUEUE_ONE), a_run(overlap=Overlap.QUEUE_ONE)
    item = stage.hand(second)

    class Meanwhile(ScriptedPool):
        def start(self, job: Job, not_after: int | None = None, task: TaskHead | None = None) -> None:
            super().start(job)
            assert run(stage, *item).starts == []

    assert started(run(stage, first, pool=Meanwhile(stage.clock))) == [first.key]
    assert stage.waiting(Lane.RECURRING) == [second.id]


def test_the_pool_gets_the_latest_start_by_the_clearance_of_a_run() -> None:
    stage, seen = a_stage(), list[tuple[int, int | None]]()

    class Noting(ScriptedPool):
        def start(self, job: Job, not_after: int | None = None, task: TaskHead | None = None) -> None:
            seen.append((self.clock.now(), not_after))
            super().start(job)

    run(stage, a_run(NOW + 3_000), pool=Noting(stage.clock))
    stage.execute(stage.hand(a_job(due_at=stage.clock.now() + 2_000)), pool=Noting(stage.clock))  # no gate concerns it
    (at, latest), (_, none) = seen
    assert at == NOW + 3_000 and latest is not None and at <= latest <= at + READ_WINDOW_MS - READ_AHEAD_MS and none is None


def test_a_run_that_could_not_begin_is_checked_again_before_it_starts() -> None:
    """Its function was busy; in between its task was edited, and the edit has returned."""
    stage, job = a_stage(), a_run()
    busy = Result(failure=Failure(FailureKind.THROTTLED, "busy", 1_000), unstarted=True)
    run(stage, job, pool=ScriptedPool(stage.clock, takes=READ_WINDOW_MS, result=busy))
    back = stage.stored(job)
    assert (state(stage, job), back.charged, back.attempts, back.lane) == (Status.SCHEDULED, 0, (), Lane.RECURRING)
    assert stage.tasks.store(TASK, replace(TASK, generation=2), [])
    stage.clock.at = back.due_at
    assert started(run(stage, *stage.receive(Lane.RECURRING))) == [] and state(stage, job) is Status.CANCELLED


def test_queue_policy_skips_a_third_run() -> None:
    stage = a_stage()
    running(stage, a_run(NOW - 2 * MINUTE, Overlap.QUEUE_ONE))
    second, third = a_run(NOW - MINUTE, Overlap.QUEUE_ONE), a_run(overlap=Overlap.QUEUE_ONE)
    assert run(stage, second, third).starts == []
    assert (state(stage, second), state(stage, third)) == (Status.SCHEDULED, Status.SKIPPED)
    assert f"run {second.id} waits for it" in str(reason(stage, third))


def test_run_lock_freed_before_the_wait_is_noticed() -> None:
    """The executor that settled the other run saw no waiting run, or a claimed one: the waiting run must check again."""
    stage = a_stage()
    other = running(stage, a_run(NOW - MINUTE, Overlap.QUEUE_ONE))
    job = a_run(overlap=Overlap.QUEUE_ONE)

    def change(verb: Any, changes: Any) -> Any:
        end(stage, other)
        return verb(changes)

    assert run(stage, job, jobs=Wrapped(stage.jobs, change=times(1, change))).starts == []
    assert job.id in stage.waiting(Lane.RECURRING)
    assert started(run(stage, *stage.receive(Lane.RECURRING))) == [job.key]


def test_waiting_run_starts_from_its_slot_after_a_lost_wake() -> None:
    stage = a_stage()
    other = running(stage, a_run(NOW - MINUTE, Overlap.QUEUE_ONE))
    job = a_run(overlap=Overlap.QUEUE_ONE)
    run(stage, job)
    end(stage, other)  # and its executor dies
    (entry,) = stage.jobs.due(stage.stored(job).slot)[0]
    assert entry.key == job.key
    stage.lanes.add(Message.of(stage.stored(job), NOW), NOW)
    assert started(run(stage, *stage.receive(Lane.RECURRING))) == [job.key]


def test_waiting_run_of_an_edited_task_does_not_start() -> None:
    stage = a_stage()
    other = running(stage, a_run(NOW - MINUTE, Overlap.QUEUE_ONE))
    job = a_run(overlap=Overlap.QUEUE_ONE)
    run(stage, job)
    end(stage, other)
    assert stage.tasks.store(TASK, replace(TASK, generation=2), [])
    stage.lanes.add(Message.of(stage.stored(job), NOW), NOW)
    assert run(stage, *stage.receive(Lane.RECURRING)).starts == [] and state(stage, job) is Status.CANCELLED


def test_cancel_running_flags_the_other_run_and_starts_after_its_end() -> None:
    stage = a_stage()
    first, second = a_run(NOW - MINUTE, Overlap.CANCEL_RUNNING), a_run(overlap=Overlap.CANCEL_RUNNING)
    item = stage.hand(second)

    class Meanwhile(ScriptedPool):
        def start(self, job: Job, not_after: int | None = None, task: TaskHead | None = None) -> None:
            super().start(job)
            assert run(stage, *item).starts == []

    pool = run(stage, first, pool=Meanwhile(stage.clock, takes=20 * MINUTE))
    assert [key for key, _ in pool.cancels] == [first.key]
    assert state(stage, first) is Status.CANCELLED and reason(stage, first) == REPLACED
    assert stage.waiting(Lane.RECURRING) == [second.id]
    assert started(run(stage, *stage.receive(Lane.RECURRING))) == [second.key]


@pytest.mark.parametrize("awaited", [None, Awaited(1, id="arn:aws:ecs:eu-west-1:123456789012:task/jobs/1")], ids=["call-back", "in AWS"])
def test_cancel_running_checks_a_run_without_an_executor_in_time(awaited: Awaited | None) -> None:
    stage = a_stage()
    claimed = running(stage, a_run(NOW - MINUTE, Overlap.CANCEL_RUNNING))
    later = slots.place(NOW + 10 * MINUTE, NOW, claimed.id, stage.rules.shards).slot
    goes_on = Result(awaited=awaited)
    accepted = lifecycle.accept(claimed, started_at=NOW, result=goes_on, lease_until=NOW + 10 * MINUTE, slot=later)
    assert stage.jobs.change([Change(claimed, accepted)]) == [Written.YES]
    run(stage, a_run(overlap=Overlap.CANCEL_RUNNING))
    due_at = stage.stored(claimed).due_at
    (queued,) = [
        each for each in stage.lanes.queues[Lane.RECURRING].values() if (each.message.key, each.message.due_at) == (claimed.key, due_at)
    ]
    assert queued.visible_at - NOW <= (callback_lease.GRACE_MS if awaited is None else 1_000)


def test_cancel_running_ignores_a_run_already_being_cancelled() -> None:
    stage = a_stage()
    other = running(stage, a_run(NOW - MINUTE, Overlap.CANCEL_RUNNING))
    assert stage.jobs.change([Change(other, lifecycle.flag(other, NOW, reason="asked"))]) == [Written.YES]
    job = a_run(overlap=Overlap.CANCEL_RUNNING)
    run(stage, job)
    assert reason(stage, other) == "asked" and state(stage, job) is Status.SCHEDULED


def test_cancel_running_replaces_the_waiting_run() -> None:
    stage = a_stage()
    first = running(stage, a_run(NOW - 2 * MINUTE, Overlap.CANCEL_RUNNING))
    second, third = a_run(NOW - MINUTE, Overlap.CANCEL_RUNNING), a_run(overlap=Overlap.CANCEL_RUNNING)
    run(stage, second)
    run(stage, third)
    assert state(stage, second) is Status.CANCELLED and reason(stage, second) == REPLACED
    held = holder(stage)
    assert held is not None and (held.job, held.waiting) == (first.id, third.id)
    assert state(stage, third) is Status.SCHEDULED and stage.stored(first).cancel_requested_at is not None


def test_a_replaced_run_that_is_just_being_requeued_ends_at_once() -> None:
    """Its cancel is recorded while its executor requeues it: nobody would claim it before its safety slot."""
    stage = a_stage()
    running(stage, a_run(NOW - 2 * MINUTE, Overlap.CANCEL_RUNNING))
    second, third = a_run(NOW - MINUTE, Overlap.CANCEL_RUNNING), a_run(overlap=Overlap.CANCEL_RUNNING)

    def change(verb: Any, changes: Any) -> Any:
        if changes[0].before.id == second.id:
            assert run(stage, third).starts == []
        return verb(changes)

    assert run(stage, second, jobs=Wrapped(stage.jobs, change=change)).starts == []
    assert (state(stage, second), reason(stage, second)) == (Status.CANCELLED, REPLACED)
    held = holder(stage)
    assert held is not None and held.waiting == third.id


@pytest.mark.parametrize("refusals", [0, 1])
def test_a_cancel_request_that_a_requeue_meets_ends_the_job(refusals: int) -> None:
    stage, job = a_stage(), a_run(overlap=Overlap.QUEUE_ONE)
    running(stage, a_run(NOW - MINUTE, Overlap.QUEUE_ONE))

    def change(verb: Any, changes: Any) -> Any:
        if changes[0].after.fence == 2 and stage.stored(job).cancel_requested_at is None:
            cancel(job.key, stage)
        return verb(changes)

    good = stage.jobs
    jobs = Wrapped(Wrapped(good, change=change), get_many=lambda verb, keys: verb(keys))
    reads = times(refusals)

    def get_many(verb: Any, keys: Any) -> Any:
        flagged = good.get(job.key).cancel_requested_at is not None
        return reads(verb, keys) if flagged else verb(keys)

    assert run(stage, job, jobs=Wrapped(jobs, get_many=get_many)).starts == []
    assert state(stage, job) is Status.CANCELLED


def test_a_replaced_run_that_changed_in_between_is_replaced_nevertheless() -> None:
    """Its executor requeues it just before it is replaced: until it has ended, the run lock must name it."""
    stage = a_stage()
    running(stage, a_run(NOW - 2 * MINUTE, Overlap.CANCEL_RUNNING))
    second, third = a_run(NOW - MINUTE, Overlap.CANCEL_RUNNING), a_run(overlap=Overlap.CANCEL_RUNNING)
    (item,) = stage.hand(second)
    claimed = stage.claim(item)
    held = holder(stage)
    assert held is not None and stage.tasks.hold([(held, replace(held, waiting=second.id, version=held.version + 1))]) == [Written.YES]

    def change(verb: Any, changes: Any) -> Any:
        back = lifecycle.requeue(claimed, reason="overlap", slot="2026-11-20T10:06#00")
        assert stage.jobs.change([Change(claimed, back)]) == [Written.YES]
        return verb(changes)

    assert run(stage, third, jobs=Wrapped(stage.jobs, change=times(1, change))).starts == []
    assert (state(stage, second), reason(stage, second)) == (Status.CANCELLED, REPLACED)


def test_a_replaced_run_stays_named_while_the_table_refuses_to_end_it() -> None:
    stage = a_stage()
    running(stage, a_run(NOW - 2 * MINUTE, Overlap.CANCEL_RUNNING))
    second, third = a_run(NOW - MINUTE, Overlap.CANCEL_RUNNING), a_run(overlap=Overlap.CANCEL_RUNNING)
    assert run(stage, second).starts == []

    def change(verb: Any, changes: Any) -> Any:
        return [Written.REFUSED] * len(changes) if changes[0].before.id == second.id else verb(changes)

    jobs = Wrapped(stage.jobs, change=change)
    assert run(stage, third, jobs=jobs).starts == []
    held = holder(stage)
    assert held is not None and held.waiting == second.id


def test_a_run_to_which_the_lock_passes_is_enqueued_if_it_waits() -> None:
    """It waited for the run that passes the lock on, whose end would have enqueued it."""
    stage = a_stage()
    first, second = late_runs(2, 1, overlap=Overlap.QUEUE_ONE)
    first = changed(first, fence=2)
    stage.jobs.put(first)
    assert stage.tasks.hold([(None, RunLock(TASK.key, second.id, first.id))]) == [Written.YES]
    assert run(stage, second).starts == []
    assert stage.waiting(Lane.RECURRING) == [first.id]
    assert started(run(stage, *stage.receive(Lane.RECURRING))) == [first.key]


def test_cancel_running_flags_again_after_a_lost_write() -> None:
    stage = a_stage()
    other = running(stage, a_run(NOW - MINUTE, Overlap.CANCEL_RUNNING))
    job = a_run(overlap=Overlap.CANCEL_RUNNING)
    run(stage, job, jobs=Wrapped(stage.jobs, change=times(2)))
    assert stage.stored(other).cancel_requested_at is not None and state(stage, job) is Status.SCHEDULED


def test_same_task_id_of_another_owner_is_another_task() -> None:
    stage = a_stage()
    assert stage.tasks.store(None, replace(TASK, owner="bob"), [])
    running(stage, a_run(NOW - MINUTE))
    job = a_run(owner="bob")
    assert started(run(stage, job)) == [job.key]


@pytest.mark.parametrize("unread", ["heads", "holders"])
def test_run_of_an_unreadable_task_waits_and_others_start(unread: str) -> None:
    stage = a_stage()
    assert stage.tasks.store(None, replace(TASK, id="t2"), [])
    mine, other = a_run(), a_run(task="t2")

    def spoil(verb: Any, keys: Any) -> Any:
        found = verb(keys)
        found.pop(TaskKey("ann", "t1"), None)
        return Found(found, {TaskKey("ann", "t1"): "its format is 2"} if TaskKey("ann", "t1") in keys else {})

    pool = run(stage, mine, other, tasks=Wrapped(stage.tasks, **{unread: spoil}))
    assert [job.id for job, _ in pool.starts] == [other.id]
    back = stage.stored(mine)
    assert (lifecycle.state(back), back.charged) == (Status.SCHEDULED, 0)


def test_run_does_not_take_the_lock_of_an_unreadable_run() -> None:
    stage = a_stage()
    first, second = a_run(NOW - MINUTE), a_run(NOW)
    stage.jobs.put(first)
    assert stage.tasks.hold([(None, RunLock(TaskKey("ann", "t1"), first.id))]) == [Written.YES]
    stage.jobs.unreadable[first.key] = "its format is 2"
    assert run(stage, second).starts == []
    assert lifecycle.is_open(stage.stored(second))
    assert stage.tasks.holders([TaskKey("ann", "t1")])[TaskKey("ann", "t1")].job == first.id
