"""Jobs of disabled users wait, and start after the user is enabled again; jobs of deleted users are cancelled."""

from typing import Any

import pytest

from scheduler.admission.owner_gate import FRESH_MS, SELDOM_MS, SOON_MS, STALE_MS, WHY_DELETED, WHY_DISABLED, BarredOwners
from scheduler.model import lifecycle
from scheduler.model.errors import Unavailable
from scheduler.model.job import Job, Lane, RequeueCause, Status
from scheduler.storage.ports import Barred
from tests.conftest import NOW, ScriptedPool, a_job
from tests.unit.stage import Stage, Wrapped
from tests.unit.task_stage import TaskStage

MINUTE = 60_000


def run(stage: Stage, job: Job, **process: Any) -> list[str]:
    """The ids of the jobs that start when an executor gets this one."""
    pool = ScriptedPool(stage.clock)
    stage.execute(stage.hand(job), pool=pool, **process)
    return [started.id for started, _ in pool.starts]


def go_on(stage: Stage, until: int) -> list[str]:
    """Execute the messages of the one-time lane up to an instant; returns the ids of the jobs that start."""
    pool = ScriptedPool(stage.clock)
    while stage.clock.now() < until:
        stage.clock.advance(1_000)
        if batch := stage.receive():
            stage.execute(batch, pool=pool)
    return [started.id for started, _ in pool.starts]


@pytest.mark.parametrize("ahead", [0, 3_000], ids=["due now", "due soon"])
def test_a_job_of_a_disabled_user_waits_and_is_not_charged(ahead: int) -> None:
    stage = Stage()
    stage.users.set_disabled("ann", NOW)
    job = a_job(owner="ann", due_at=NOW + ahead)
    assert run(stage, job) == []
    back = stage.stored(job)
    assert lifecycle.is_open(back) and (back.charged, back.claim, back.reason) == (0, None, WHY_DISABLED)
    assert back.requeue_cause is RequeueCause.PAUSED and back.due_at >= NOW + SOON_MS


def test_it_starts_after_the_user_is_enabled_again() -> None:
    stage = Stage()
    stage.users.set_disabled("ann", NOW)
    job = a_job(owner="ann")
    assert run(stage, job) == [] and go_on(stage, NOW + 3 * MINUTE) == []
    stage.users.set_disabled("ann", None)
    assert go_on(stage, NOW + 5 * MINUTE) == [job.id]
    assert lifecycle.state(stage.stored(job)) is Status.SUCCEEDED and stage.stored(job).charged == 1


def test_a_waiting_job_is_checked_ever_more_seldom_within_bounds() -> None:
    stage = Stage()
    stage.users.set_disabled("ann", NOW)
    waits = []
    for hours in (0, 1, 24):
        stage.clock.at = NOW + hours * 60 * MINUTE
        job = a_job(owner="ann", due_at=NOW)
        run(stage, job)
        waits.append(stage.stored(job).due_at - stage.clock.now())
    assert waits == [SOON_MS, 60 * MINUTE // 8, SELDOM_MS]


def test_jobs_of_other_users_start_on_time() -> None:
    stage = Stage()
    stage.users.set_disabled("ann", NOW)
    pool = ScriptedPool(stage.clock)
    mine, other = a_job(owner="ann", due_at=NOW + 2_000), a_job(owner="ben", due_at=NOW + 2_000)
    stage.execute(stage.hand(mine, other), pool=pool)
    assert [(job.id, at) for job, at in pool.starts] == [(other.id, NOW + 2_000)]


def test_a_run_of_a_disabled_user_is_skipped_by_its_misfire_rule() -> None:
    stage = TaskStage()
    task = stage.create({"cron": "* * * * *"}, owner="ann")
    stage.users.set_disabled("ann", NOW)
    run_at, following = stage.times(task)[:2]
    stage.clock.at = run_at
    (batch,) = [stage.receive(Lane.RECURRING)]
    pool = ScriptedPool(stage.clock)
    stage.execute(batch, pool=pool, lane=Lane.RECURRING)
    first = stage.runs(task)[0]
    assert pool.starts == [] and lifecycle.is_open(first)
    while lifecycle.is_open(first := stage.runs(task)[0]) and stage.clock.now() < NOW + 10 * MINUTE:
        stage.clock.advance(1_000)
        if batch := stage.receive(Lane.RECURRING):
            stage.execute(batch, pool=pool, lane=Lane.RECURRING)
    assert pool.starts == [] and lifecycle.state(first) is Status.SKIPPED and (first.reason or "").startswith("misfire")
    assert (first.skipped_at or 0) >= following


def test_a_job_that_expires_while_its_owner_is_disabled_is_skipped() -> None:
    stage = Stage()
    stage.users.set_disabled("ann", NOW)
    job = a_job(owner="ann", start_by=NOW + 30_000)
    run(stage, job)
    stage.users.set_disabled("ann", None)
    assert go_on(stage, NOW + 3 * MINUTE) == []
    assert lifecycle.state(stage.stored(job)) is Status.SKIPPED and (stage.stored(job).reason or "").startswith("expired")


def test_a_retry_of_a_disabled_user_waits_with_its_attempts() -> None:
    stage = Stage()
    stage.users.set_disabled("ann", NOW)
    job = a_job(owner="ann", lane=Lane.RETRY, fence=2, charged=1)
    pool = ScriptedPool(stage.clock)
    stage.execute(stage.hand(job), pool=pool, lane=Lane.RETRY)
    back = stage.stored(job)
    assert pool.starts == [] and (back.charged, back.lane) == (1, Lane.RETRY) and lifecycle.is_open(back)


def test_a_job_of_a_deleted_user_is_cancelled() -> None:
    stage = Stage()
    stage.users.delete("ann", NOW)
    job = a_job(owner="ann")
    assert run(stage, job) == []
    assert lifecycle.state(stage.stored(job)) is Status.CANCELLED and stage.stored(job).reason == WHY_DELETED


def test_busy_process_reads_the_users_every_ten_seconds_not_per_job() -> None:
    stage, reads = Stage(), list[int]()

    def counted(verb: Any) -> Barred:
        reads.append(stage.clock.now())
        return verb()  # type: ignore[no-any-return]

    stage.users = Wrapped(stage.users, barred=counted)
    owners = BarredOwners(stage)
    for second in range(60):
        stage.clock.at = NOW + second * 1_000
        assert len(run(stage, a_job(owner=f"user{second}", due_at=stage.clock.at), owners=owners)) == 1
    assert len(reads) == 60_000 // FRESH_MS


def test_idle_process_learns_of_a_disable_before_it_starts_a_job() -> None:
    stage = Stage()
    owners = BarredOwners(stage)
    assert len(run(stage, a_job(owner="ann"), owners=owners)) == 1
    stage.users.set_disabled("ann", NOW)
    assert len(run(stage, a_job(owner="ann"), owners=owners)) == 1, "a read is valid for a while"
    stage.clock.advance(STALE_MS)
    assert run(stage, a_job(owner="ann", due_at=stage.clock.now()), owners=owners) == []
    assert STALE_MS + stage.rules.hold_ms < MINUTE


@pytest.mark.parametrize("trouble", [Unavailable(), RuntimeError("no grant")])
def test_a_users_table_that_refuses_stops_no_job(trouble: Exception) -> None:
    stage = Stage()
    stage.users.set_disabled("ann", NOW)
    owners = BarredOwners(stage)
    owners.look()

    def raising(verb: Any) -> Barred:
        raise trouble

    stage.users = Wrapped(stage.users, barred=raising)
    stage.clock.advance(10 * MINUTE)
    now = stage.clock.now()
    assert len(run(stage, a_job(owner="ben", due_at=now), owners=owners)) == 1
    assert run(stage, a_job(owner="ann", due_at=now), owners=owners) == [], "the cached users are kept"
    assert len(run(stage, a_job(owner="ann", due_at=now))) == 1, "a new process has no users"
