"""An executor whose jobs are due: it leases, claims and reads side by side, and starts a job only if each of these allows it."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from scheduler.admission.lane_state import TRUSTED_MS, LaneStateCache, pause
from scheduler.admission.owner_gate import BarredOwners
from scheduler.model import lifecycle, slots
from scheduler.model.job import Lane, Status
from scheduler.pipeline.claims import FEW_DUE, UNLEASED_MS
from tests.conftest import NOW, ScriptedPool, a_job
from tests.unit.stage import Stage, Wrapped, refuse

Order = Callable[[int], Iterable[int]]
LONG_MS = 60_000  # since the process read anything


@pytest.fixture(params=[range, lambda calls: reversed(range(calls))], ids=["in order", "last first"])
def stage(request: pytest.FixtureRequest) -> Stage:
    return Stage(order=request.param)


def warm(stage: Stage, idle_ms: int = 0) -> dict[str, Any]:
    """A process that has read lane states and barred users this long ago."""
    pauses, owners = LaneStateCache(stage), BarredOwners.read(stage)
    pauses.refresh(at_once=True)
    stage.clock.advance(idle_ms)
    return {"pauses": pauses, "owners": owners}


def watched(stage: Stage) -> tuple[list[str], dict[str, Any]]:
    """The verbs that a batch uses before its job starts, and the ports that note them."""
    used = list[str]()

    def noting(name: str) -> Callable[..., Any]:
        def noted(verb: Any, *args: Any) -> Any:
            used.append(name)
            return verb(*args)

        return noted

    return used, {
        "lanes": Wrapped(stage.lanes, extend=noting("extend")),
        "jobs": Wrapped(stage.jobs, claim=noting("claim")),
    }


@pytest.mark.parametrize("idle_ms", [0, LONG_MS])
def test_a_due_job_is_claimed_while_its_message_is_leased(stage: Stage, idle_ms: int) -> None:
    process = warm(stage, idle_ms)
    (item,) = stage.hand(a_job(due_at=stage.clock.now()))
    sides = list[int]()

    def side_by_side(*calls: Callable[[], Any]) -> list[Any]:
        sides.append(len(calls))
        return Stage.side_by_side(stage, *calls)

    pool = ScriptedPool(stage.clock)
    assert stage.execute([item], pool=pool, side_by_side=side_by_side, **process) == []
    assert [at for _, at in pool.starts] == [NOW + idle_ms]
    assert sides == [4 if idle_ms else 2], "the reads join the lease and the claim, if they are due"
    assert lifecycle.state(stage.stored(item.message.key)) is Status.SUCCEEDED


def test_a_job_whose_lease_was_refused_is_requeued_uncharged(stage: Stage) -> None:
    (item,) = stage.hand(a_job())
    pool = ScriptedPool(stage.clock)
    left = stage.execute([item], pool=pool, lanes=Wrapped(stage.lanes, extend=refuse), **warm(stage))
    job = stage.stored(item.message.key)
    assert (left, pool.starts) == ([item.message_id], [])
    assert (job.claim, job.attempts, job.fence) == (None, (), item.message.fence + 1)
    assert job.due_at == NOW + UNLEASED_MS, "a queue that refuses all leases makes no loop of claims"
    stage.clock.advance(UNLEASED_MS)
    (again,) = [each for each in stage.receive() if each.message.fence == job.fence]
    assert stage.execute([again], pool=pool, **warm(stage)) == [] and len(pool.starts) == 1


def test_of_a_batch_only_the_leased_jobs_start(stage: Stage) -> None:
    first, second = stage.hand(a_job(), a_job())
    pool = ScriptedPool(stage.clock)

    def extend(verb: Any, lane: Lane, receipts: Any, seconds: int) -> Any:
        return verb(lane, [receipt for receipt in receipts if receipt == first.receipt], seconds)

    assert stage.execute([first, second], pool=pool, lanes=Wrapped(stage.lanes, extend=extend), **warm(stage)) == [second.message_id]
    assert [job.key for job, _ in pool.starts] == [first.message.key]
    assert stage.stored(second.message.key).claim is None


def test_a_lane_that_was_paused_since_the_last_read_starts_nothing(stage: Stage) -> None:
    process = warm(stage, LONG_MS)
    (item,) = stage.hand(a_job(due_at=stage.clock.now()))
    pause([Lane.ONE_TIME], None, stage)
    pool = ScriptedPool(stage.clock)
    assert stage.execute([item], pool=pool, **process) == []
    job = stage.stored(item.message.key)
    assert (pool.starts, job.claim) == ([], None) and job.slot == slots.slot(slots.room_of(Lane.ONE_TIME), job.id, stage.rules.shards)


def test_a_lane_that_is_known_to_be_paused_claims_nothing(stage: Stage) -> None:
    pause([Lane.ONE_TIME], None, stage)
    (item,) = stage.hand(a_job())
    used, ports = watched(stage)
    assert stage.execute([item], **ports, **warm(stage)) == []
    assert "claim" not in used


def test_a_job_of_an_owner_who_was_disabled_since_does_not_start(stage: Stage) -> None:
    process = warm(stage, LONG_MS)
    (item,) = stage.hand(a_job(owner="ann", due_at=stage.clock.now()))
    stage.users.set_disabled("ann", NOW)
    pool = ScriptedPool(stage.clock)
    stage.execute([item], pool=pool, **process)
    assert (pool.starts, stage.stored(item.message.key).claim) == ([], None)


def test_a_refused_claim_defers_the_message(stage: Stage) -> None:
    (item,) = stage.hand(a_job())
    left = stage.execute([item], jobs=Wrapped(stage.jobs, claim=refuse), **warm(stage))
    assert left == [item.message_id] and stage.stored(item.message.key).claim is None


def test_after_a_rest_nothing_starts_while_the_ledger_refuses(stage: Stage) -> None:
    process = warm(stage, TRUSTED_MS + 1)
    process["pauses"].ports = stage.but(ledger=Wrapped(stage.ledger, watched=refuse))
    (item,) = stage.hand(a_job(due_at=stage.clock.now()))
    pool = ScriptedPool(stage.clock)
    stage.execute([item], pool=pool, **process)
    job = stage.stored(item.message.key)
    assert (pool.starts, job.claim, job.attempts) == ([], None, ())


def test_of_many_due_jobs_none_is_claimed_before_its_lease(stage: Stage) -> None:
    items = stage.hand(*[a_job() for _ in range(FEW_DUE + 1)])
    used, ports = watched(stage)
    stage.execute(items, **ports, **warm(stage))
    assert used[:2] == ["extend", "claim"]


@pytest.mark.parametrize("ahead_ms", [1, 4_000])
def test_a_job_due_later_is_claimed_only_under_its_lease(stage: Stage, ahead_ms: int) -> None:
    (item,) = stage.hand(a_job(due_at=NOW + ahead_ms))
    used, ports = watched(stage)
    ports["lanes"] = Wrapped(stage.lanes, extend=refuse)
    assert stage.execute([item], **ports, **warm(stage)) == [item.message_id]
    assert used == []
