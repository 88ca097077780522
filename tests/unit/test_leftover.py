"""The decision about a job that is still in its slot, and the service that carries it out."""

from dataclasses import replace
from typing import Any

import pytest

from scheduler.model import lifecycle, slots
from scheduler.model.errors import Unavailable
from scheduler.model.job import Claim, Job, Lane, Status
from scheduler.model.rules import Rules
from scheduler.pipeline import leftover
from scheduler.pipeline.leftover import Leave, Move, Stay, TakeBack
from scheduler.pipeline.reconcile import Recheck
from scheduler.pipeline.reconcile import recheck as run_recheck
from scheduler.storage.ports import Found, Written
from tests.conftest import NOW, a_job, entries_of
from tests.unit.stage import Stage, Wrapped, refuse

SLOT = f"{slots.minute_of(NOW)}#00"


def running(at: int, *, due_at: int = NOW, timeout_ms: int = 300_000, alone: bool = True) -> Job:
    return a_job(due_at=due_at, timeout_ms=timeout_ms, claim=Claim("m1", "n1", at, alone), slot=SLOT)


def decide(job: Job | None, now: int, *, behind: bool = False, paused: bool = False) -> Leave | Stay | Move | TakeBack:
    return leftover.decide(job, SLOT, now, Rules(shards=1), behind=behind, paused=paused)


def minutes_ahead(decision: object, now: int) -> float:
    assert isinstance(decision, Move)
    return (slots.start_of(slots.minute(decision.slot)) - now) / slots.MINUTE


def test_a_job_that_left_the_slot_is_left_alone() -> None:
    assert decide(None, NOW) == Leave()
    assert decide(a_job(slot="2026-11-20T11:00#00"), NOW) == Leave()
    assert decide(a_job(slot=None, completed_at=NOW), NOW) == Leave()


def test_a_job_that_never_started_is_enqueued_again_and_checked_later() -> None:
    decision = decide(a_job(slot=SLOT), NOW + 180_000)
    assert isinstance(decision, Move) and decision.hand_over


def test_the_checks_have_increasing_intervals() -> None:
    """2, 4, 8, 15 minutes, as far as a safe slot allows; the last step repeats."""
    assert leftover.BACKOFF == (120_000, 240_000, 480_000, 900_000)
    ahead = [minutes_ahead(decide(a_job(slot=SLOT, looks=looks), NOW), NOW) for looks in range(6)]
    assert ahead == [5, 5, 8, 15, 15, 15]


def test_a_lane_that_is_behind_gets_no_second_message_b6() -> None:
    decision = decide(a_job(slot=SLOT), NOW + 180_000, behind=True)
    assert isinstance(decision, Move) and not decision.hand_over


def test_a_running_job_moves_to_the_slot_after_its_time_out() -> None:
    decision = decide(running(NOW), NOW + 180_000)
    assert isinstance(decision, Move) and not decision.hand_over
    assert slots.start_of(slots.minute(decision.slot)) + slots.MINUTE > NOW + 300_000 + leftover.STOP_GRACE


@pytest.mark.parametrize(("after", "lost"), [(359_999, False), (360_000, True)])
def test_a_running_job_is_taken_back_a_minute_after_its_time_out(after: int, lost: bool) -> None:
    assert isinstance(decide(running(NOW - 4_000), NOW + after), TakeBack) is lost


def test_the_time_out_of_a_job_claimed_late_starts_at_its_claim() -> None:
    assert isinstance(decide(running(NOW + 100_000), NOW + 400_000), Move)


def test_a_job_found_before_its_time_moves_to_the_slot_of_its_time() -> None:
    later = a_job(slot=SLOT, due_at=NOW + 3_600_000)
    assert decide(later, NOW) == Move(f"{slots.minute_of(NOW + 3_600_000)}#00", hand_over=False)
    soon = decide(a_job(slot=SLOT, due_at=NOW + 30_000), NOW)
    assert isinstance(soon, Move) and soon.hand_over


def test_only_jobs_that_never_started_stay_in_a_paused_lane() -> None:
    assert decide(a_job(slot=SLOT), NOW + 180_000, paused=True) == Stay()
    assert decide(a_job(slot=SLOT, due_at=NOW + 30_000), NOW, paused=True) == Stay()
    assert decide(a_job(slot="2026-11-20T11:00#00"), NOW, paused=True) == Leave()
    assert isinstance(decide(running(NOW), NOW + 180_000, paused=True), Move)
    assert isinstance(decide(running(NOW - 4_000), NOW + 360_000, paused=True), TakeBack)


def test_later_checks_are_due_after_five_minutes_and_an_hour() -> None:
    assert [look // 60_000 for look in leftover.CHECKS_MS] == [5, 60]


@pytest.mark.parametrize(("window", "allowed"), [(50, 1_000), (20_000, 20_000)])
def test_a_lane_is_behind_beyond_what_its_dispatchers_leave_there(window: int, allowed: int) -> None:
    rules = Rules(max_backlog=1_000, windows={Lane.ONE_TIME: window})
    assert not leftover.lane_is_behind(allowed, Lane.ONE_TIME, rules)
    assert leftover.lane_is_behind(allowed + 1, Lane.ONE_TIME, rules)


# The service


def look(stage: Stage, *left: Job) -> Recheck:
    for job in left:
        stage.jobs.put(job)
    return run_recheck(entries_of(*left), stage, now=stage.clock.now())


def test_reconciling_enqueues_moves_and_takes_back_in_one_pass() -> None:
    stage = Stage()
    stage.clock.advance(400_000)
    never, alive, dead = a_job(), running(NOW + 300_000), running(NOW)
    done = look(stage, never, alive, dead)
    assert (done.handed_over, done.moved, done.taken_back, done.left) == (2, 2, 1, 0)
    assert stage.waiting(Lane.ONE_TIME) == [never.id] and stage.waiting(Lane.RETRY) == [dead.id]
    assert stage.stored(never).looks == 1 and stage.stored(alive).looks == 0
    assert stage.stored(dead).fence == 2 and stage.stored(dead).lane is Lane.RETRY
    assert all(stage.stored(job).slot != job.slot for job in (never, alive, dead))


def test_a_job_that_crashed_alone_twice_fails_and_is_not_enqueued() -> None:
    stage = Stage()
    stage.clock.advance(400_000)
    dead = replace(running(NOW), started_at=NOW, crashes=1, charged=1)
    assert look(stage, dead).handed_over == 0
    assert lifecycle.state(stage.stored(dead)) is Status.FAILED


def test_a_job_changed_meanwhile_is_neither_moved_nor_enqueued() -> None:
    stage = Stage()
    stage.clock.advance(180_000)
    job = a_job()
    stage.jobs.put(lifecycle.claim(job, claim=Claim("m1", "n1", NOW, True)))
    stage.jobs = Wrapped(stage.jobs, outlines=lambda verb, keys: Found({job.key: job}))
    assert look(stage, job).handed_over == 0
    assert stage.waiting(Lane.ONE_TIME) == []
    assert stage.stored(job).slot == job.slot


def test_a_job_whose_write_is_refused_counts_as_left() -> None:
    stage = Stage()
    stage.clock.advance(180_000)
    stage.jobs = Wrapped(stage.jobs, change=lambda verb, changes: [Written.REFUSED] * len(changes))
    assert look(stage, a_job()).left == 1
    assert stage.waiting(Lane.ONE_TIME) == []


def test_a_refused_lane_loses_nothing_since_the_slot_was_moved_first() -> None:
    stage = Stage()
    stage.clock.advance(180_000)
    stage.lanes = Wrapped(stage.lanes, send=refuse)
    job = a_job()
    with pytest.raises(Unavailable):
        look(stage, job)
    assert lifecycle.is_open(stage.stored(job)) and stage.stored(job).slot != job.slot


def test_the_backlog_of_each_lane_is_read_once() -> None:
    stage = Stage()
    asked: list[Lane] = []
    stage.lanes = Wrapped(stage.lanes, backlog=lambda verb, lane: (asked.append(lane), verb(lane))[1])
    look(stage, a_job(), a_job(), a_job(lane=Lane.RETRY))
    assert asked == [Lane.ONE_TIME, Lane.RETRY]


def test_a_job_claimed_again_while_it_is_read_is_not_taken_back() -> None:
    stage, lost = Stage(), running(NOW)
    stage.clock.advance(600_000)
    alive = replace(lost, fence=2, claim=Claim("m2", "n2", stage.clock.at, False), due_at=stage.clock.at)

    def meanwhile(verb: Any, keys: Any) -> Any:
        stage.jobs._port._store(lost, alive)
        return verb(keys)

    stage.jobs = Wrapped(stage.jobs, get_many=meanwhile)
    done = look(stage, lost)
    assert (done.taken_back, done.left) == (0, 1) and stage.stored(lost) == alive


def test_a_job_that_cannot_be_read_whole_is_not_taken_back_by_its_outline() -> None:
    stage, lost = Stage(), running(NOW)
    stage.clock.advance(600_000)
    stage.jobs = Wrapped(stage.jobs, get_many=lambda verb, keys: Found({}, dict.fromkeys(keys, "its format is 2")))
    done = look(stage, lost)
    assert (done.taken_back, done.left) == (0, 1) and stage.stored(lost) == lost


def test_a_job_that_cannot_be_decided_on_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    stage, bad, good = Stage(), a_job(), a_job()
    stage.clock.advance(180_000)
    real = leftover.decide
    monkeypatch.setattr(leftover, "decide", lambda job, *args, **named: 1 / 0 if job.key == bad.key else real(job, *args, **named))
    done = look(stage, bad, good)
    assert (done.found, done.moved, done.left, done.waiting) == (2, 1, 1, 0)
    assert stage.waiting(Lane.ONE_TIME) == [good.id]
