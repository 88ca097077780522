"""The bound on the executors of a lane that the long jobs of one user keep busy."""

from collections.abc import Mapping

import pytest

from scheduler.admission.gate import Clear, Requeue
from scheduler.admission.lane_state import REFRESH_MS, LaneStateCache
from scheduler.admission.share_gate import ShareGate
from scheduler.model import lifecycle, slots
from scheduler.model.job import Attempt, Failure, FailureKind, Job, Lane, Outcome, RequeueCause, Status, changed
from scheduler.model.pin import Pin
from scheduler.model.rules import Rules
from scheduler.pipeline.verdicts import ROOM_AGAIN_MS
from scheduler.sharing import pins
from scheduler.sharing.pins import LONG_MS, PERIOD_MS, by_owner, is_within
from tests.conftest import NOW, ScriptedPool, a_job
from tests.unit.stage import Stage, Wrapped, refuse

LANE = Lane.ONE_TIME
PERIOD = pins.period(NOW)


def most(executors: int, users: int = 1, weight: float = 1.0) -> int:
    """The executors that each of `users` may pin if all pin as many as they may."""
    return max(mine for mine in range(executors + 1) if is_within(mine, mine * (users - 1), executors, weight))


@pytest.mark.parametrize(
    ("executors", "of_one", "of_two"), [(1, 1, 1), (2, 1, 0), (5, 3, 2), (20, 15, 8), (100, 75, 42), (1_000, 750, 428)]
)
def test_executors_stay_free_however_many_users_pin_some(executors: int, of_one: int, of_two: int) -> None:
    assert most(executors) == of_one
    assert most(executors, 2) == of_two
    assert executors == 1 or all(users * most(executors, users) < executors for users in range(1, 9))


def test_a_heavier_user_may_pin_more() -> None:
    assert most(20, weight=3.0) == 18 and most(20, weight=0.1) == 4


def test_pins_of_this_period_and_the_one_before_are_counted_together() -> None:
    found = [Pin(LANE, "ann", PERIOD, 2), Pin(LANE, "ann", PERIOD - 1, 3), Pin(LANE, "ann", PERIOD - 2, 9), Pin(LANE, "ben", PERIOD, 0)]
    assert by_owner(found, NOW) == {LANE: {"ann": 5}}


def a_stage(executors: int = 4) -> Stage:
    return Stage(rules=Rules(shards=2, windows={LANE: executors * 10}))


def a_gate(stage: Stage) -> ShareGate:
    pauses = LaneStateCache(stage)
    pauses.refresh()
    return ShareGate(LANE, pauses, stage)


def counted(stage: Stage) -> Mapping[str, int]:
    return by_owner(stage.ledger.watched().pins, stage.clock.now()).get(LANE, {})


def test_users_without_long_jobs_do_not_concern_the_gate() -> None:
    stage = a_stage()
    stage.ledger.pin(LANE, "ann", PERIOD, 1)
    gate = a_gate(stage)
    assert gate.concerns(a_job()) and not gate.concerns(a_job(owner="ben"))


def test_a_job_whose_last_attempt_was_long_takes_a_place_at_once() -> None:
    def after(lasted_ms: int, kind: FailureKind = FailureKind.RETRYABLE) -> Job:
        ended = Attempt(1, NOW - lasted_ms, NOW - lasted_ms, NOW, Outcome.FAILED, Failure(kind, "no"))
        return changed(a_job(), attempts=(ended,))

    stage = a_stage()
    assert not a_gate(stage).concerns(after(LONG_MS - 1)) and not a_gate(stage).concerns(after(LONG_MS, FailureKind.CRASHED))
    job = after(LONG_MS)
    gates = [a_gate(stage) for _ in range(4)]
    assert all(gate.concerns(job) for gate in gates), "nobody is counted yet"
    assert [type(gate.decide([job])[job.key]) for gate in gates] == [Clear, Clear, Clear, Requeue]


def test_a_further_job_takes_a_place_or_gives_way() -> None:
    stage = a_stage()
    stage.ledger.pin(LANE, "ann", PERIOD, 2)
    third, fourth, job = a_gate(stage), a_gate(stage), a_job()
    assert third.concerns(job) and isinstance(third.decide([job])[job.key], Clear) and counted(stage) == {"ann": 3}
    assert isinstance(third.decide([job])[job.key], Clear) and counted(stage) == {"ann": 3}, "its executor is counted once"
    verdict = fourth.decide([job])[job.key]
    assert isinstance(verdict, Requeue) and verdict.cause is RequeueCause.SHARE and verdict.at == NOW
    assert fourth.ahead([job]) == {}, "it is asked about again at its instant"
    assert counted(stage) == {"ann": 3}
    third.close()
    assert isinstance(fourth.decide([job])[job.key], Clear)


def test_a_heavy_weight_moves_the_bound() -> None:
    stage = a_stage(20)
    stage.ledger.pin(LANE, "ann", PERIOD, 15)
    job = a_job()
    assert isinstance(a_gate(stage).decide([job])[job.key], Requeue)
    stage.users.set_weight("ann", 3.0)
    assert isinstance(a_gate(stage).decide([job])[job.key], Clear)


@pytest.mark.parametrize("verb", ["pin", "watched"])
def test_nobody_gives_way_while_the_ledger_refuses(verb: str) -> None:
    stage = a_stage()
    stage.ledger.pin(LANE, "ann", PERIOD, 4)
    gate, job = a_gate(stage), a_job()
    stage.ledger = Wrapped(stage.ledger, **{verb: refuse})
    assert isinstance(gate.decide([job])[job.key], Clear)
    gate.close()


def test_a_count_moves_with_the_period_and_ends_with_the_jobs() -> None:
    stage = a_stage()
    gate = a_gate(stage)
    gate.check({"ann"}, {"ann"})
    assert counted(stage) == {"ann": 1}
    stage.clock.advance(PERIOD_MS)
    gate.check({"ann"}, {"ann"})
    stage.clock.advance(REFRESH_MS)
    gate.check({"ann"}, {"ann"})
    assert counted(stage) == {"ann": 1} and {pin.period for pin in stage.ledger.watched().pins} == {PERIOD + 1}
    gate.check(set(), set())
    assert counted(stage) == {}


def test_the_count_of_a_dead_executor_ends_by_itself() -> None:
    stage = a_stage()
    a_gate(stage).check({"ann"}, {"ann"})
    stage.clock.advance(2 * PERIOD_MS)
    assert counted(stage) == {}


@pytest.mark.parametrize(("takes", "seen"), [(LONG_MS // 2, {}), (LONG_MS + 20_000, {"ann": 1})])
def test_an_executor_counts_the_owner_of_a_long_job_while_it_runs(takes: int, seen: dict[str, int]) -> None:
    stage, counts = a_stage(), list[Mapping[str, int]]()

    def pin(verb: object, *args: object) -> None:
        verb(*args)  # type: ignore[operator]
        counts.append(counted(stage))

    stage.ledger = Wrapped(stage.ledger, pin=pin)
    stage.execute(stage.hand(a_job()), pool=ScriptedPool(stage.clock, takes=takes))
    assert counts[:1] == ([seen] if seen else []) and counted(stage) == {}, "ordinary jobs cost no write"


def test_a_job_over_the_bound_waits_and_its_owner_sees_why() -> None:
    stage = a_stage()
    stage.ledger.pin(LANE, "ann", PERIOD, 3)
    (item,) = stage.hand(a_job())
    pool = ScriptedPool(stage.clock)
    stage.execute([item], pool=pool)
    job: Job = stage.stored(item.message.key)
    assert lifecycle.state(job) is Status.SCHEDULED and not pool.starts and slots.is_overflow(job.slot or "")
    assert job.reason == "its owner's long jobs use their share of the executors" and job.charged == 0


def test_a_job_over_the_bound_that_the_overflow_refuses_waits_a_minute() -> None:
    stage = a_stage()
    stage.ledger.pin(LANE, "ann", PERIOD, 3)
    (item,) = stage.hand(a_job())
    stage.ledger = Wrapped(stage.ledger, unit=refuse)
    stage.execute([item], pool=ScriptedPool(stage.clock))
    assert stage.stored(item.message.key).due_at == NOW + ROOM_AGAIN_MS
