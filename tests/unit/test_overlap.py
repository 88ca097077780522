"""Whether a run may start beside another run of its task: every rule against every state of the run lock."""

from dataclasses import replace

import pytest

from scheduler.admission.overlap import REPLACED, Skip, Start, Wait, decide
from scheduler.model.job import Job, Overlap, RunInfo, RunLock, TaskKey
from tests.conftest import NOW, a_job

TASK = TaskKey("ann", "t1")
POLICIES = [Overlap.SKIP, Overlap.QUEUE_ONE, Overlap.CANCEL_RUNNING]
EARLIER = a_job(scheduled_at=NOW - 60_000)
LATER = a_job(scheduled_at=NOW + 60_000)
MINE = a_job()


def ended(job: Job) -> Job:
    return replace(job, slot=None, completed_at=NOW)


def decided(policy: Overlap, holding: Job | None, waiting: Job | None = None, *, gone: str | None = None) -> Start | Skip | Wait:
    """The decision about MINE, with a run lock that names these jobs (`gone`: a waiting one that is no longer stored)."""
    holder = RunLock(TASK, holding.id if holding else "gone", waiting.id if waiting else gone, 7)
    return decide(MINE, RunInfo("t1", 1, NOW, policy), holder, holding, waiting)


@pytest.mark.parametrize("policy", POLICIES)
def test_the_first_run_of_a_task_takes_the_lock(policy: Overlap) -> None:
    assert decide(MINE, RunInfo("t1", 1, NOW, policy), None, None, None) == Start(RunLock(TASK, MINE.id))


@pytest.mark.parametrize("policy", POLICIES)
def test_a_run_that_has_the_lock_starts_without_a_write(policy: Overlap) -> None:
    assert decided(policy, MINE) == Start(None)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("holding", [None, ended(EARLIER), ended(LATER)], ids=["gone", "ended", "a later one ended"])
def test_a_run_takes_the_lock_of_a_job_that_has_ended(policy: Overlap, holding: Job | None) -> None:
    assert decided(policy, holding) == Start(RunLock(TASK, MINE.id, None, 8))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("waiting", [MINE, ended(EARLIER)], ids=["itself", "one that is over"])
def test_a_run_that_takes_the_lock_removes_a_waiting_run_that_ended(policy: Overlap, waiting: Job) -> None:
    assert decided(policy, None, waiting) == Start(RunLock(TASK, MINE.id, None, 8))


def test_a_waiting_run_keeps_its_place_when_another_is_faster() -> None:
    assert decided(Overlap.QUEUE_ONE, None, EARLIER) == Start(RunLock(TASK, MINE.id, EARLIER.id, 8))


def test_skip_skips_while_another_run_has_not_ended() -> None:
    assert decided(Overlap.SKIP, EARLIER) == Skip(f"overlap: run {EARLIER.id} has not ended")


def test_queue_one_waits() -> None:
    assert decided(Overlap.QUEUE_ONE, EARLIER) == Wait(RunLock(TASK, EARLIER.id, MINE.id, 8))


def test_a_waiting_run_continues_to_wait_without_a_write() -> None:
    assert decided(Overlap.QUEUE_ONE, EARLIER, MINE) == Wait(None)
    assert decided(Overlap.CANCEL_RUNNING, EARLIER, MINE) == Wait(None, (EARLIER,))


def test_the_place_of_a_waiting_run_that_ended_is_free() -> None:
    waits = Wait(RunLock(TASK, EARLIER.id, MINE.id, 8))
    assert decided(Overlap.QUEUE_ONE, EARLIER, ended(LATER)) == decided(Overlap.QUEUE_ONE, EARLIER, gone="gone") == waits


def test_a_third_run_is_skipped() -> None:
    assert decided(Overlap.QUEUE_ONE, EARLIER, LATER) == Skip(f"overlap: run {EARLIER.id} has not ended, and run {LATER.id} waits for it")


def test_cancel_running_cancels_and_waits() -> None:
    assert decided(Overlap.CANCEL_RUNNING, EARLIER) == Wait(RunLock(TASK, EARLIER.id, MINE.id, 8), (EARLIER,))


def test_cancel_running_replaces_the_waiting_run() -> None:
    between = a_job(scheduled_at=NOW - 30_000)
    assert decided(Overlap.CANCEL_RUNNING, EARLIER, between) == Wait(RunLock(TASK, EARLIER.id, MINE.id, 8), (EARLIER, between))
    assert decided(Overlap.CANCEL_RUNNING, None, between) == Start(RunLock(TASK, MINE.id, None, 8), (between,))


@pytest.mark.parametrize(("holding", "waiting"), [(LATER, None), (EARLIER, LATER), (None, LATER)])
def test_an_earlier_run_replaces_no_later_one(holding: Job | None, waiting: Job | None) -> None:
    assert decided(Overlap.CANCEL_RUNNING, holding, waiting) == Skip(REPLACED)


def test_of_two_runs_of_one_instant_only_one_replaces_the_other() -> None:
    """Else each could cancel the other, and none would run."""
    one, other = sorted([a_job(), a_job()], key=lambda job: job.id)
    held = RunLock(TASK, EARLIER.id, None, 7)
    for job, waiting in ((one, other), (other, one)):
        decision = decide(job, RunInfo("t1", 1, NOW, Overlap.CANCEL_RUNNING), replace(held, waiting=waiting.id), EARLIER, waiting)
        assert (decision == Skip(REPLACED)) is (job is one)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_redriven_run_that_has_the_lock_writes_it_again(policy: Overlap) -> None:
    """Another run may have read, just before the redrive, that this one had ended, and may be about to take the lock."""
    holder = RunLock(TASK, MINE.id, "waiting", 7)
    redriven = replace(MINE, redrives=1)
    assert decide(redriven, RunInfo("t1", 1, NOW, policy), holder, redriven, None) == Start(replace(holder, version=8))
