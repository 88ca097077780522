"""Jobs with an ordering key from their arrival to the start of the next job: the gate, the head, and the jobs that an end enqueues."""

from dataclasses import replace
from typing import Any

import pytest

from scheduler.admission import gate as admission
from scheduler.admission import ordering
from scheduler.admission.ordering_gate import OrderingGate
from scheduler.jobs import ordering_keys
from scheduler.jobs.cancel import cancel
from scheduler.jobs.change import reschedule
from scheduler.jobs.retry_job import retry_job
from scheduler.model import ids, lifecycle, slots
from scheduler.model.errors import Conflict, Unavailable
from scheduler.model.job import (
    Attempt,
    Failure,
    FailureKind,
    Job,
    Lane,
    Message,
    Misfire,
    OrderKey,
    Outcome,
    RequeueCause,
    Result,
    RunInfo,
    Status,
    TaskHead,
)
from scheduler.model.lifecycle import Event
from scheduler.model.spec import OnFailure, Ordering
from scheduler.pipeline.bury import bury
from scheduler.pipeline.delivery import LEASE_MS
from scheduler.pipeline.follow_up import ASK_LATER_MS, released, wake
from scheduler.pipeline.reconcile import recheck
from scheduler.storage.ports import Change, Found, Written
from tests.conftest import NOW, ScriptedPool, a_job, entries_of
from tests.events import happen
from tests.unit.stage import Stage, Wrapped, lost_answer, refuse, times

KEY = OrderKey("ann", "order-17")
MINUTE = 60_000
FAILING, DEAD = Result(failure=Failure(FailureKind.RETRYABLE, "503")), Result(failure=Failure(FailureKind.PERMANENT, "404"))


def in_line(stage: Stage, *places: int, pause: bool = False, key: str = KEY.key, **fields: Any) -> list[Job]:
    """Jobs stored with their entries at these positions of a queue (earlier first), with their messages in their lanes."""
    jobs = []
    for place in places:
        at, rule = NOW - 1_000 + place, Ordering(key, OnFailure.PAUSE if pause else OnFailure.CONTINUE)
        jobs.append(a_job(**({"id": ids.new(at, place), "scheduled_at": at, "due_at": at, "ordering": rule} | fields)))
        assert stage.orders.enqueue([ordering.entry_of(jobs[-1], NOW - 600_000)]) == [Written.YES]
    return jobs


def run(stage: Stage, *jobs: Job, lane: Lane = Lane.ONE_TIME, pool: ScriptedPool | None = None, **ports: Any) -> list[str]:
    """Deliver these jobs (None: all jobs in the lane) in one batch; the ids of the started jobs."""
    pool = pool or ScriptedPool(stage.clock)
    stage.execute(stage.hand(*jobs) if jobs else stage.receive(lane), pool=pool, lane=lane, **ports)
    return [job.id for job, _ in pool.starts]


def work_off(stage: Stage, result: Result | None = None, **ports: Any) -> list[str]:
    """Run the jobs in the lanes until the lanes are empty; the ids in the order of their starts."""
    started: list[str] = []
    for _ in range(60):
        for lane in Lane:
            started += run(stage, lane=lane, pool=ScriptedPool(stage.clock, result=result), **ports)
        stage.clock.advance(100)
    return started


def state(stage: Stage, job: Job) -> Status:
    return lifecycle.state(stage.stored(job))


def markers(stage: Stage) -> list[str]:
    return [marker.job for marker in stage.orders.lines([KEY], limit=100)[KEY].entries]


def end(stage: Stage, job: Job, event: Event = Event.SUCCEED) -> Job:
    """The job ended by another executor, which ended before it enqueued the next job."""
    before = stage.stored(job)
    after = happen(before, event, NOW, started_at=NOW, result=Result("x"), reason="because", due_at=NOW, slot=before.slot)
    assert stage.jobs.change([Change(before, after)]) == [Written.YES]
    return after


# order


def test_jobs_of_one_key_start_in_order_however_they_arrive() -> None:
    stage = Stage()
    jobs = in_line(stage, 1, 2, 3, 4, 5)
    assert run(stage, *reversed(jobs)) == [jobs[0].id]
    assert [state(stage, job) for job in jobs] == [Status.SUCCEEDED] + [Status.SCHEDULED] * 4
    assert stage.stored(jobs[2]).reason == f"order: it runs after job {jobs[0].id}"
    assert work_off(stage) == [job.id for job in jobs[1:]]
    assert markers(stage) == []


def test_each_end_enqueues_the_next_job_of_the_key_at_once() -> None:
    stage = Stage()
    jobs = in_line(stage, 1, 2, 3)
    run(stage, *jobs)
    assert jobs[1].id in stage.waiting(Lane.ONE_TIME)


def test_other_keys_other_owners_and_jobs_without_a_key_do_not_wait() -> None:
    stage = Stage()
    (first,) = in_line(stage, 1)
    (behind,) = in_line(stage, 2)
    (other,) = in_line(stage, 3, key="order-18")
    (eve,) = in_line(Stage(), 4, owner="eve")
    plain = a_job()
    assert sorted(run(stage, first, behind, other, eve, plain)) == sorted([first.id, other.id, eve.id, plain.id])


def test_job_behind_a_running_one_is_requeued_and_enqueued_at_its_end() -> None:
    stage = Stage()
    first, second = in_line(stage, 1, 2)
    (item,) = stage.hand(first)
    pool = ScriptedPool(stage.clock)

    def beside(verb: Any, *args: Any) -> Any:
        """The second job arrives while the first one runs."""
        if not pool.starts:
            return verb(*args)
        assert run(stage, second) == [] and state(stage, second) is Status.SCHEDULED
        return verb(*args)

    stage.execute([item], pool=pool, jobs=Wrapped(stage.jobs, change=beside))
    assert stage.waiting(Lane.ONE_TIME) == [second.id] and work_off(stage) == [second.id]


def test_requeue_behind_a_job_that_just_ended_lets_the_next_start() -> None:
    stage = Stage()
    first, second, third = in_line(stage, 1, 2, 3)
    stage.claim(stage.hand(first)[0])

    def change(verb: Any, changes: Any) -> Any:
        done = verb(changes)
        end(stage, first)
        return done

    assert run(stage, second, third, jobs=Wrapped(stage.jobs, change=times(1, change))) == []
    assert stage.waiting(Lane.ONE_TIME) == [first.id, second.id], "not the third: it would only wait again"


def test_two_executors_that_see_a_free_queue_let_one_job_through() -> None:
    stage = Stage()
    (second,) = in_line(stage, 2)

    def take(verb: Any, changes: Any) -> Any:
        """An earlier job arrives and becomes the head between our read and our write."""
        (earlier,) = in_line(stage, 0)
        stage.jobs.put(earlier)
        stage.lanes.add(a_letter(earlier), stage.clock.now())
        assert run(stage) == [earlier.id]
        return verb(changes)

    assert run(stage, second, orders=Wrapped(stage.orders, set_heads=times(1, take))) == [second.id]
    turn = stage.orders.lines([KEY], limit=1)[KEY].head
    assert turn is not None and (turn.job, turn.version) == (second.id, 2)


@pytest.mark.parametrize("taken_back_at", [NOW, NOW - 999], ids=["had perhaps begun", "before its instant"])
def test_stalled_executor_does_not_replace_a_head_running_elsewhere(taken_back_at: int) -> None:
    stage = Stage()
    first, second = in_line(stage, 1, 2)
    gate = OrderingGate(stage)
    stood_still = [stage.claim(item, nonce="stood still") for item in stage.hand(first, second)]
    end(stage, first)
    lost = stage.stored(second)
    back = lifecycle.take_back(lost, taken_back_at, slot=lost.slot)
    assert stage.jobs.change([Change(lost, back)]) == [Written.YES]
    stage.lanes.add(a_letter(back), stage.clock.now())
    running = stage.claim(stage.receive(Lane.RETRY)[0], nonce="elsewhere")
    assert isinstance(gate.decide([running])[second.key], admission.Clear)
    turn = stage.orders.lines([KEY], limit=1)[KEY].head
    gate.decide(stood_still)
    assert stage.orders.lines([KEY], limit=1)[KEY].head == turn, "else a third one starts beside the second"


def a_letter(job: Job) -> Message:
    return Message.of(job, NOW)


def test_job_starts_despite_a_lost_answer_about_the_head() -> None:
    stage = Stage()
    (job,) = in_line(stage, 1)
    assert run(stage, job, orders=Wrapped(stage.orders, set_heads=times(1, lost_answer))) == [job.id]


# failures


def test_retry_stays_the_head_until_it_has_ended() -> None:
    stage = Stage()
    first, second = in_line(stage, 1, 2)
    pool = ScriptedPool(stage.clock, result=FAILING)
    assert run(stage, first, second, pool=pool) == [first.id]
    assert state(stage, first) is Status.SCHEDULED and markers(stage) == [first.id, second.id]
    assert stage.waiting(Lane.ONE_TIME) == [], "a retry wakes no job"
    stage.clock.advance(2 * MINUTE)
    assert run(stage, replace(stage.stored(second), lane=Lane.ONE_TIME)) == []
    assert run(stage, lane=Lane.RETRY) == [first.id] and work_off(stage) == [second.id]


def test_blocked_queue_continues_after_the_last_failure() -> None:
    stage = Stage()
    first, second = in_line(stage, 1, 2)
    run(stage, first, second, pool=ScriptedPool(stage.clock, result=DEAD))
    assert state(stage, first) is Status.FAILED and markers(stage) == [second.id] and work_off(stage) == [second.id]


def paused(stage: Stage) -> tuple[Job, Job, Job]:
    first, second, third = in_line(stage, 1, 2, 3, pause=True)
    run(stage, first, second, third, pool=ScriptedPool(stage.clock, result=DEAD))
    assert state(stage, first) is Status.FAILED and work_off(stage) == []
    for job in (second, third):
        assert run(stage, *[]) == [] and state(stage, job) is Status.SCHEDULED
    return first, second, third


def test_paused_queue_starts_nothing_and_is_checked_rarely() -> None:
    stage = Stage()
    first, second, _ = paused(stage)
    stage.lanes.add(a_letter(stage.stored(second)), stage.clock.now())
    assert run(stage) == []
    back = stage.stored(second)
    assert back.reason == f"order: its key {KEY.key} is paused, for job {first.id} failed"
    assert slots.start_of(slots.minute(back.slot or "")) >= stage.clock.now() + 3_500_000 and back.due_at == second.due_at
    assert work_off(stage) == []


def test_a_key_is_paused_no_longer_than_its_failed_job_is_stored() -> None:
    stage = Stage()
    first, second, third = paused(stage)
    stage.jobs._remove(stage.stored(first))
    stage.clock.advance(ordering.YOUNG_MS)
    stage.lanes.add(a_letter(stage.stored(second)), stage.clock.now())
    assert work_off(stage) == [second.id, third.id]


def test_an_expiry_applies_to_a_waiting_job_and_a_misfire_rule_does_not() -> None:
    stage = Stage()
    stage.tasks = Wrapped(stage.tasks, heads=lambda verb, keys: Found({key: TaskHead(1) for key in keys}))
    (first,), (expiring,) = in_line(stage, 1), in_line(stage, 2, start_by=NOW + MINUTE)
    (late,) = in_line(stage, 3, start_by=NOW + MINUTE, origin=RunInfo("t1", 1, NOW, misfire=Misfire.SKIP))
    assert run(stage, first, expiring, late, pool=ScriptedPool(stage.clock, takes=2 * MINUTE)) == [first.id]
    assert work_off(stage) == [late.id]
    assert state(stage, expiring) is Status.SKIPPED


def test_resume_starts_the_next_job_and_the_failed_one_stays_failed() -> None:
    stage = Stage()
    first, second, third = paused(stage)
    view = ordering_keys.view(KEY, stage)
    assert (view.head, view.paused_by, view.waiting) == (None, stage.stored(first), 2)
    assert ordering_keys.resume(KEY, stage).paused_by is None
    assert work_off(stage) == [second.id, third.id] and state(stage, first) is Status.FAILED
    with pytest.raises(Conflict, match="not paused"):
        ordering_keys.resume(KEY, stage)


def test_resume_that_cannot_enqueue_the_next_job_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()
    _, second, third = paused(stage)
    stage.lanes.add(a_letter(stage.stored(second)), stage.clock.now())
    run(stage)  # asleep for an hour
    with monkeypatch.context() as refusing:
        refusing.setattr(stage.lanes, "send", lambda messages, now: list(messages))
        with pytest.raises(Unavailable, match="resume it again"):
            ordering_keys.resume(KEY, stage)
    assert ordering_keys.resume(KEY, stage).paused_by is None
    assert work_off(stage) == [second.id, third.id]


def test_successful_retry_of_the_failed_job_resumes_the_key() -> None:
    stage = Stage()
    first, second, third = paused(stage)
    retry_job(first.key, stage, request="r")
    assert work_off(stage) == [first.id, second.id, third.id] and markers(stage) == []


def test_late_end_of_an_old_life_keeps_the_entry_of_the_next() -> None:
    stage = Stage()
    (first,) = in_line(stage, 1)
    run(stage, first, pool=ScriptedPool(stage.clock, result=DEAD))
    dead = stage.stored(first)
    retry_job(first.key, stage, request="r")
    stage.orders.leave([ordering.entry_of(dead)])
    assert markers(stage) == [first.id]


def test_job_behind_a_sleeping_one_of_a_resumed_key_wakes_it() -> None:
    stage = Stage()
    first, second, third = paused(stage)
    stage.lanes.add(a_letter(stage.stored(second)), stage.clock.now())
    run(stage)  # asleep for an hour
    stage.orders.leave([ordering.entry_of(stage.stored(first))])  # resumed by a process that ended before it enqueued the next job
    stage.lanes.add(a_letter(stage.stored(third)), stage.clock.now())
    assert run(stage) == [] and work_off(stage) == [second.id, third.id]


@pytest.mark.parametrize(("name", "wakes"), [("2026-11-20T12:00", True), (slots.room_of_owner("ann"), False), (slots.OVERFLOW, False)])
def test_job_behind_one_in_a_waiting_room_does_not_wake_it(name: str, wakes: bool) -> None:
    """An enable or a resume wakes it. Each job of the key that falls due would else claim it in vain."""
    stage = Stage()
    first, second = in_line(stage, 1, 2)
    stage.jobs.put(replace(first, fence=2, slot=slots.slot(name, first.id, 2)))
    back = admission.Requeue(RequeueCause.ORDERING, "order", blocker=first.key)
    assert released([(second, back)], stage, now=NOW) == [second] * wakes


# ways in which a job ends


def waiting_behind(stage: Stage) -> tuple[Job, Job]:
    """The first job is claimed, and the second one was requeued behind it."""
    first, second = in_line(stage, 1, 2)
    stage.claim(stage.hand(first)[0])
    assert run(stage, second) == []
    return stage.stored(first), second


def test_cancelled_job_leaves_its_queue_and_the_next_starts() -> None:
    stage = Stage()
    first, second, third = in_line(stage, 1, 2, 3)
    run(stage, first, second, third)
    cancel(second.key, stage)
    assert markers(stage) == [third.id] and work_off(stage) == [third.id]


def test_job_ended_by_reconcile_leaves_its_queue() -> None:
    stage = Stage()
    first, second = waiting_behind(stage)
    stage.clock.advance(first.spec.timeout_ms + 2 * MINUTE)
    flagged = replace(first, cancel_requested_at=NOW)
    stage.jobs.rows[first.key] = flagged
    recheck(entries_of(first), stage, now=stage.clock.now())
    assert state(stage, first) is Status.CANCELLED and second.id in stage.waiting(Lane.ONE_TIME) and markers(stage) == [second.id]


def test_buried_job_leaves_its_queue() -> None:
    stage = Stage()
    first, second = in_line(stage, 1, 2)
    (item,) = stage.hand(first)
    job = stage.claim(item, alone=True)
    stage.jobs.rows[job.key] = replace(job, started_at=job.due_at, crashes=1, charged=1)
    assert run(stage, second) == []
    stage.clock.advance(LEASE_MS)
    assert bury([item], stage).failed == 1
    assert stage.waiting(Lane.ONE_TIME)[-1] == second.id and markers(stage) == [second.id]


def test_rescheduled_job_moves_in_its_queue_and_the_next_starts() -> None:
    stage = Stage()
    first, second, third = in_line(stage, 1, 2, 3)
    stage.claim(stage.hand(first)[0])
    assert run(stage, second, third) == []
    end(stage, first)
    stage.orders.leave([ordering.entry_of(first)])
    reschedule(second.key, {"scheduled_at": NOW + 10 * MINUTE}, stage)
    assert markers(stage) == [third.id, second.id] and third.id in stage.waiting(Lane.ONE_TIME)
    assert work_off(stage) == [third.id]


# failures of the table


def test_job_with_a_missing_entry_stores_it_and_starts() -> None:
    stage = Stage()
    (job,) = in_line(stage, 1)
    stage.orders.leave([ordering.entry_of(job)])
    assert run(stage, job) == [job.id] and markers(stage) == []


def test_any_number_of_stale_entries_is_skipped_and_removed() -> None:
    stage = Stage()
    ghosts = in_line(stage, *range(1, 26))
    (job,) = in_line(stage, 30)
    assert run(stage, job) == [job.id] and len(ghosts) == 25 and markers(stage) == []


def test_job_waits_for_an_earlier_one_that_is_being_stored() -> None:
    stage = Stage()
    (ghost,) = in_line(Stage(), 1)
    assert stage.orders.enqueue([ordering.entry_of(ghost, NOW)]) == [Written.YES]
    (job,) = in_line(stage, 2)
    assert run(stage, job) == [] and stage.stored(job).reason == admission.REFUSED.reason
    stage.jobs.put(ghost)
    stage.clock.advance(ASK_LATER_MS)
    assert run(stage) == [] and stage.stored(job).reason == f"order: it runs after job {ghost.id}"


@pytest.mark.parametrize("verb", ["lines", "set_heads"])
def test_job_is_checked_again_while_the_table_refuses(verb: str) -> None:
    stage = Stage()
    (job,) = in_line(stage, 1)
    assert run(stage, job, orders=Wrapped(stage.orders, **{verb: times(3)})) == [job.id]


def test_a_job_with_an_unreadable_queue_is_requeued() -> None:
    stage = Stage()
    (job,) = in_line(stage, 1)
    assert run(stage, job, orders=Wrapped(stage.orders, lines=refuse)) == []
    assert (stage.stored(job).fence, stage.stored(job).reason) == (2, admission.REFUSED.reason)
    stage.clock.advance(ASK_LATER_MS)
    assert run(stage) == [job.id]


def test_entry_that_cannot_be_removed_blocks_no_job() -> None:
    stage = Stage()
    first, second = in_line(stage, 1, 2)
    run(stage, first, second, orders=Wrapped(stage.orders, leave=refuse))
    assert markers(stage) == [first.id, second.id] and work_off(stage) == [second.id]


def test_job_without_an_ordering_key_reads_no_queue() -> None:
    stage = Stage()
    orders = Wrapped(stage.orders, lines=refuse, enqueue=refuse, leave=refuse, set_heads=refuse)
    assert len(run(stage, a_job(), orders=orders)) == 1


# storing jobs


def submitted(stage: Stage, *execute_at: int | None) -> list[Job | None]:
    return [stage.submit(at, ordering=Ordering(KEY.key)) for at in execute_at]


@pytest.mark.parametrize("took", [ordering.YOUNG_MS // 2 + 1, ordering.YOUNG_MS + 15_000])
def test_job_that_was_stored_late_has_its_entry_although_it_was_removed(took: int) -> None:
    """The process that stores a job is frozen, and another job of the key finds the entry without its job."""
    stage = Stage()

    def late(verb: Any, job: Job) -> Any:
        stage.clock.advance(took)
        stage.orders.leave([ordering.entry_of(job)])
        return verb(job)

    stage.jobs = Wrapped(stage.jobs, put=late)
    (job,) = submitted(stage, NOW + 10 * MINUTE)
    assert job is not None and markers(stage) == [job.id]


def test_entry_is_stored_before_the_job_or_the_job_is_refused() -> None:
    stage = Stage()
    seen: list[Any] = []
    stage.jobs = Wrapped(stage.jobs, put=lambda verb, job: (seen.append(markers(stage)), verb(job))[1])
    (job,) = submitted(stage, NOW + MINUTE)
    assert job is not None and seen == [[job.id]]
    stage.orders = Wrapped(stage.orders, enqueue=refuse)
    with pytest.raises(Unavailable):
        submitted(stage, NOW + MINUTE)
    assert len(seen) == 1


def test_jobs_of_one_key_are_spread_over_the_shards() -> None:
    stage = Stage()
    made = [job for job in submitted(stage, *range(NOW + 10 * MINUTE, NOW + 10 * MINUTE + 20)) if job is not None]
    assert len({job.slot for job in made}) > 1


def test_attempt_of_an_earlier_life_is_not_the_head() -> None:
    old = Attempt(1, NOW - 900, NOW - 900, NOW - 800, Outcome.FAILED, Failure(FailureKind.PERMANENT, "404"))
    stage = Stage()
    first, second = in_line(stage, 1, 2, attempts=(old,), redriven_at=NOW - 500, fence=2)
    assert run(stage, second, first) == [first.id]


def test_queue_behind_an_unreadable_job_waits_and_others_go_on() -> None:
    stage = Stage()
    first, second = in_line(stage, 1, 2)
    (other,) = in_line(stage, 3, key="order-18")
    stage.jobs.put(first)
    stage.jobs.unreadable[first.key] = "its format is 2"
    assert run(stage, second, other) == [other.id]
    assert state(stage, second) is Status.SCHEDULED and first.id in markers(stage)


# A long queue lies still


def minutes_ahead(stage: Stage, job: Job) -> float:
    return (slots.start_of(slots.minute(stage.stored(job).slot or "")) - stage.clock.now()) / MINUTE


def long_queue(stage: Stage, count: int) -> list[Job]:
    """Jobs of which the first one runs, and the others have been requeued to wait for it."""
    jobs = in_line(stage, *range(1, count + 1))
    head = stage.claim(stage.hand(jobs[0])[0])
    stage.jobs.change([Change(head, lifecycle.start(head, NOW))])
    for first in range(1, count, 10):
        assert run(stage, *jobs[first : first + 10]) == []
    return jobs


def near(stage: Stage, jobs: list[Job]) -> list[int]:
    """The indexes of the open jobs with a near slot: seven minutes is as late as it finds a lost wake-up."""
    return [n for n, job in enumerate(jobs) if lifecycle.is_open(stage.stored(job)) and minutes_ahead(stage, job) <= 7]


def test_only_one_job_of_a_long_queue_is_checked_soon() -> None:
    stage = Stage()
    jobs = long_queue(stage, 31)
    assert near(stage, jobs[1:]) == [8]
    assert all(55 < minutes_ahead(stage, job) < 125 for n, job in enumerate(jobs) if n not in (0, 9))


def test_a_long_wait_is_checked_more_and_more_rarely() -> None:
    stage = Stage()
    jobs = in_line(stage, *range(1, 15))
    line = stage.orders.lines([KEY], limit=10)[KEY]
    for waited, least in ((0, 60), (MINUTE * 60, 180), (MINUTE * 60 * 24, 24 * 60)):
        at = ordering.check_at(jobs[12], line, NOW + waited, paused=False)
        assert at is not None and least <= (at - NOW - waited) / MINUTE <= least + 61


def test_each_end_keeps_one_near_slot_behind_the_next_job() -> None:
    stage = Stage()
    jobs = long_queue(stage, 31)
    wake([end(stage, jobs[0])], stage, now=stage.clock.now())
    writes = 0
    for done in range(1, len(jobs)):
        before = [stage.stored(job).slot for job in jobs]
        assert run(stage) == [jobs[done].id]
        writes += sum(stage.stored(job).slot != slot for job, slot in zip(jobs, before, strict=True)) - 1
        assert done >= len(jobs) - 2 or near(stage, jobs[done + 2 :]) != []
    assert writes == 3, "one for about nine ends"


def test_a_lost_wake_up_is_found_from_the_near_slot() -> None:
    stage = Stage()
    jobs = long_queue(stage, 15)
    end(stage, jobs[0])
    stage.clock.advance(6 * MINUTE)
    assert run(stage, stage.stored(jobs[9])) == []
    assert jobs[1].id in stage.waiting(Lane.ONE_TIME)


def test_a_cancelled_job_passes_its_near_slot_on() -> None:
    stage = Stage()
    jobs = long_queue(stage, 15)
    cancel(jobs[9].key, stage)
    assert near(stage, jobs[1:]) == [9]


def test_the_near_slot_also_finds_a_head_that_lost_its_executor() -> None:
    stage = Stage()
    jobs = in_line(stage, 1, 2)
    stage.claim(stage.hand(jobs[0])[0])
    late = stage.stored(jobs[0])
    stage.jobs.change([Change(late, lifecycle.move(late, slot="2026-11-20T18:00#00"))])
    run(stage, jobs[1])
    stage.clock.advance(jobs[0].spec.timeout_ms + 2 * MINUTE)
    assert run(stage, stage.stored(jobs[1])) == []
    assert stage.stored(jobs[0]).claim is None and stage.waiting(Lane.RETRY) == [jobs[0].id]
