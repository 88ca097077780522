"""The job of an ordering queue that may start: the decision alone."""

from dataclasses import replace
from typing import Any

import pytest

from scheduler.admission.ordering import (
    REDRIVEN_MS,
    YOUNG_MS,
    DecideLater,
    Decision,
    Repair,
    Start,
    Wait,
    decide,
    entry_of,
    has_begun,
    next_up,
    paused_by,
    pauses,
)
from scheduler.model import ids
from scheduler.model.job import Attempt, Claim, Failure, FailureKind, Job, JobKey, OrderingQueue, OrderKey, Outcome, QueueEntry, QueueHead
from scheduler.model.lifecycle import is_open
from scheduler.model.spec import OnFailure, Ordering
from tests.conftest import NOW, a_job

KEY = OrderKey("ann", "order-17")
CLAIM = Claim("m1", "n1", NOW, True)
BEGUN = {"charged": 1, "attempts": (Attempt(1, NOW - 500, NOW - 500, NOW - 400, Outcome.FAILED, Failure(FailureKind.RETRYABLE, "503")),)}
DEAD: dict[str, Any] = {"slot": None, "failed_at": NOW - 1, "charged": 3}


def in_line(place: int, **fields: Any) -> Job:
    """A job whose position in the queue is determined by `place`."""
    at = NOW - 10_000 + place
    rule = Ordering(KEY.key, fields.pop("on_failure", OnFailure.CONTINUE))
    return a_job(**({"scheduled_at": at, "due_at": at, "id": ids.new(at, place), "ordering": rule} | fields))


def a_line(*jobs: Job | QueueEntry, head: Job | None = None, more: bool = False) -> OrderingQueue:
    entries = [each if isinstance(each, QueueEntry) else entry_of(each, NOW - 600_000) for each in jobs]
    holds = None if head is None else QueueHead(KEY, head.id, NOW - 700, 7)
    return OrderingQueue(holds, tuple(sorted(entries, key=lambda each: each.position)), more)


def known(*jobs: Job) -> dict[JobKey, Job]:
    return {job.key: job for job in jobs}


def asked(job: Job, line: OrderingQueue, *others: Job, asking: tuple[Job, ...] = ()) -> Decision:
    mine = replace(job, claim=job.claim or CLAIM)
    return decide(mine, line, known(*others, mine), NOW, asking={mine.key, *(each.key for each in asking)})


def test_the_first_job_of_its_queue_starts_as_its_head() -> None:
    first, second = in_line(1), in_line(2)
    assert asked(first, a_line(first, second), second) == Start(QueueHead(KEY, first.id, NOW, 1))


def test_a_job_that_is_not_first_waits_for_the_open_job_before_it() -> None:
    first, second = in_line(1), in_line(2)
    decision = asked(second, a_line(first, second), first)
    assert decision == Wait(f"order: it runs after job {first.id}", first.key)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"scheduled_at": NOW - 2}, {"scheduled_at": NOW - 1}),
        ({"scheduled_at": NOW, "created_at": NOW - 9}, {"scheduled_at": NOW, "created_at": NOW - 8}),
        ({"scheduled_at": NOW, "id": ids.new(NOW, 7)}, {"scheduled_at": NOW, "id": ids.new(NOW, 8)}),
    ],
    ids=["by scheduled time", "then by creation", "then by id"],
)
def test_a_queue_is_sorted_by_position(one: dict[str, Any], other: dict[str, Any]) -> None:
    first, second = in_line(1, **one), in_line(2, **other)
    line = a_line(first, second)
    assert isinstance(asked(first, line, second), Start) and isinstance(asked(second, line, first), Wait)


@pytest.mark.parametrize("fields", [{"claim": CLAIM}, BEGUN], ids=["claimed", "between two attempts"])
def test_a_head_that_has_run_stays_head_despite_earlier_entries(fields: dict[str, Any]) -> None:
    first, second = in_line(1), in_line(2, **fields)
    assert asked(first, a_line(first, second, head=second), second) == Wait(f"order: it runs after job {second.id}", second.key)


def test_a_retry_stays_head_of_its_queue() -> None:
    first, second = in_line(1), in_line(2, **BEGUN)
    assert asked(second, a_line(first, second, head=second), first) == Start(None)


@pytest.mark.parametrize("fields", [{}, BEGUN | {"redriven_at": NOW - 100, "charged": 0}], ids=["given back", "redriven"])
def test_a_head_that_has_not_begun_queues_again(fields: dict[str, Any]) -> None:
    first, second = in_line(1), in_line(2, **fields)
    line = a_line(first, second, head=second)
    assert asked(first, line, second) == Start(QueueHead(KEY, first.id, NOW, 8))
    assert asked(second, line, first) == Wait(f"order: it runs after job {first.id}", first.key)
    assert asked(second, a_line(second, head=second)) == Start(QueueHead(KEY, second.id, NOW, 8)), (
        "a new version: others may have read the old"
    )


def test_claims_of_the_deciding_executor_do_not_make_a_job_head() -> None:
    first, second = in_line(1), in_line(2, claim=CLAIM)
    assert isinstance(asked(first, a_line(first, second, head=second), second, asking=(second,)), Start)


def test_a_head_that_is_gone_or_has_ended_blocks_no_job() -> None:
    done, mine = in_line(1, slot=None, completed_at=NOW - 1), in_line(2)
    for others in ([], [done]):
        assert asked(mine, a_line(mine, head=done), *others) == Start(QueueHead(KEY, mine.id, NOW, 8))


@pytest.mark.parametrize("end", ["completed_at", "cancelled_at", "skipped_at", "failed_at", "killed_at"])
def test_the_entry_of_an_ended_job_is_ignored_and_removed(end: str) -> None:
    over, mine = in_line(1, slot=None, **{end: NOW}), in_line(2)
    decision = asked(mine, a_line(over, mine), over)
    assert isinstance(decision, Start) and decision.stale == (entry_of(over),)


@pytest.mark.parametrize("times", [{"failed_at": NOW}, {"killed_at": NOW}])
def test_a_dead_job_that_pauses_its_key_stops_the_jobs_behind_it(times: dict[str, int]) -> None:
    dead, mine = in_line(1, slot=None, on_failure=OnFailure.PAUSE, **times), in_line(2)
    decision = asked(mine, a_line(dead, mine), dead)
    assert isinstance(decision, Wait) and decision.paused and dead.id in decision.reason
    assert isinstance(asked(in_line(0), a_line(in_line(0), dead), dead), Start), "a job before it is not stopped"


@pytest.mark.parametrize("times", [{"completed_at": NOW}, {"cancelled_at": NOW}, {"skipped_at": NOW}])
def test_only_a_failure_pauses(times: dict[str, int]) -> None:
    assert not pauses(in_line(1, slot=None, on_failure=OnFailure.PAUSE, **times))
    assert not pauses(in_line(1, on_failure=OnFailure.PAUSE)) and not pauses(a_job(**DEAD))


def test_a_young_entry_without_a_job_may_belong_to_one_being_stored() -> None:
    mine, ghost = in_line(2), in_line(1)
    assert asked(mine, a_line(entry_of(ghost, NOW - YOUNG_MS + 1), mine)) == DecideLater()
    decision = asked(mine, a_line(entry_of(ghost, NOW - YOUNG_MS), mine))
    assert isinstance(decision, Start) and decision.stale == (entry_of(ghost),)


def test_a_job_waits_for_an_earlier_one_that_is_about_to_be_redriven() -> None:
    """Many that are redriven together are stored in any order; of some, a dead step leaves the entry alone for a while."""
    dead, mine = in_line(1, **DEAD), in_line(2, redrives=1)
    following = replace(entry_of(dead), life=1)
    assert asked(mine, a_line(replace(following, at=NOW - REDRIVEN_MS + 1), mine), dead) == DecideLater()
    decision = asked(mine, a_line(replace(following, at=NOW - REDRIVEN_MS), mine), dead)
    assert isinstance(decision, Start) and decision.stale == (following,)
    redriven = replace(dead, slot="2026-11-20T10:01#00", failed_at=None, redrives=1)
    assert asked(mine, a_line(replace(following, at=NOW), mine), redriven) == Wait(f"order: it runs after job {dead.id}", dead.key)


@pytest.mark.parametrize(("age", "stale"), [(YOUNG_MS - 1, 0), (YOUNG_MS, 1)])
def test_an_entry_whose_job_was_moved_stops_no_job(age: int, stale: int) -> None:
    mine, moved = in_line(2), in_line(1)
    later = replace(moved, scheduled_at=NOW + 9)
    decision = asked(mine, a_line(entry_of(moved, NOW - age), mine, later), later)
    assert isinstance(decision, Start) and len(decision.stale) == stale


def test_a_job_without_its_entry_writes_it_and_decides_again() -> None:
    mine, later = in_line(2), in_line(3)
    for line in (a_line(), a_line(later)):
        decision = asked(mine, line, later)
        assert decision == Repair((), entry_of(mine)) and decision.missing is not None and decision.missing.at == NOW


def test_a_job_behind_the_entries_read_decides_again_and_writes_none() -> None:
    over, mine = in_line(1, slot=None, completed_at=NOW), in_line(2)
    assert asked(mine, a_line(over, more=True), over) == Repair((entry_of(over),), None)


def test_the_first_open_job_is_next_unless_a_head_or_a_paused_key_blocks() -> None:
    over, first, second = in_line(1, slot=None, completed_at=NOW), in_line(2), in_line(3)
    line = a_line(over, in_line(0), first, second, head=over)
    assert next_up(line, known(over, first, second)) == first
    running = replace(first, claim=CLAIM)
    assert next_up(replace(line, head=QueueHead(KEY, first.id, NOW)), known(running, second)) is None
    dead = in_line(0, **DEAD, on_failure=OnFailure.PAUSE)
    assert next_up(line, known(over, dead, first, second)) is None and not is_open(dead)
    assert paused_by(line, known(over, dead, first)) == [entry_of(dead)]
    assert next_up(a_line(), {}) is None


def test_a_job_has_begun_once_an_attempt_since_its_redrive_has_started() -> None:
    crashed_early = Attempt(1, NOW - 500, None, NOW - 400, Outcome.CRASHED)
    assert not has_begun(a_job()) and not has_begun(a_job(attempts=(crashed_early,)))
    crashed = replace(crashed_early, started_at=NOW - 450)
    assert has_begun(a_job(attempts=(crashed,))) and has_begun(a_job(throttled=1))
    assert not has_begun(a_job(attempts=(crashed,), redriven_at=NOW - 300))
    assert has_begun(a_job(attempts=(crashed, replace(crashed, picked_at=NOW - 200)), redriven_at=NOW - 300))
