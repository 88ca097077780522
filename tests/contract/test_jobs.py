"""The port Jobs: writes, claims and changes, the due index and its canaries."""

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from scheduler.model import attempt_output, ids, item_limit, lifecycle, slots
from scheduler.model.errors import TooLarge
from scheduler.model.instants import DAY
from scheduler.model.job import Claim as JobClaim
from scheduler.model.job import (
    DueEntry,
    Failure,
    FailureKind,
    Job,
    JobKey,
    Lane,
    Misfire,
    Overlap,
    Progress,
    Result,
    RunInfo,
    TaskKey,
    UnitKey,
)
from scheduler.model.notifications import Notifications, Webhook, WebhookFormat
from scheduler.model.spec import CallBack, JobSpec, OnFailure, Ordering
from scheduler.storage.aws import clients, items, spec_items
from scheduler.storage.aws.jobs import DynamoJobs
from scheduler.storage.ports import Change, ClaimRequest, ClaimResult, Guard, Jobs, Written
from tests.contract import make, tables
from tests.contract.make import NOW

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

Claim = Callable[[ClaimRequest], ClaimResult]
Apply = Callable[..., bool]


@pytest.fixture(params=["alone", "in company"])
def claim(request: pytest.FixtureRequest, jobs: Jobs) -> Claim:
    """Claims one job, alone or between two others: adapters send one and many in different ways."""

    def run(wanted: ClaimRequest) -> ClaimResult:
        company = stored(jobs, *(make.job() for _ in range(2 if request.param == "in company" else 0)))
        requests = [wanted, *map(make.request, company)]
        result, *others = jobs.claim(requests)
        assert all(other is not None and other.won for other in others)
        assert result is not None
        return result

    return run


@pytest.fixture(params=["alone", "in company"])
def apply(request: pytest.FixtureRequest, jobs: Jobs) -> Apply:
    """Changes one job, alone or between two others."""

    def run(before: Job, after: Job, guard: Guard = Guard.FENCE) -> bool:
        company = stored(jobs, *(make.job() for _ in range(2 if request.param == "in company" else 0)))
        moves = [Change(job, make.moved(job, "2026-11-20T23:59#15"), Guard.SLOT) for job in company]
        result, *others = jobs.change([Change(before, after, guard), *moves])
        assert all(other is Written.YES for other in others) and result is not Written.REFUSED
        return result is Written.YES

    return run


def stored(jobs: Jobs, *made: Job) -> Sequence[Job]:
    assert all(jobs.put(job) for job in made)
    return made


def running(jobs: Jobs, job: Job | None = None, **fields: object) -> Job:
    (put,) = stored(jobs, job or make.job())
    (result,) = jobs.claim([make.request(put, **fields)])
    assert result is not None and result.won and result.job is not None
    return result.job


def test_a_stored_job_is_read_back_whole(jobs: Jobs) -> None:
    job = make.job(payload={"deep": [1, 2.5, {"": None}]}, lane=Lane.RECURRING, fence=3, max_attempts=7, reason="")
    origin = RunInfo("01JD4Q8XKZ38W2M5R7T9V1C4FH", 3, NOW, Overlap.SKIP, Misfire.RUN_ALL, NOW + 1, NOW + 2, NOW + 3)
    job = replace(job, spec=replace(job.spec, tags=("a", "b")), origin=origin, start_by=NOW + 9)
    assert jobs.put(job)
    assert jobs.get(job.key) == job


def test_put_never_overwrites(jobs: Jobs) -> None:
    (job,) = stored(jobs, make.job())
    assert not jobs.put(replace(job, spec=replace(job.spec, payload={"message": "other"})))
    assert jobs.get(job.key) == job


@pytest.mark.parametrize("count", [0, 1, 26, 230])
def test_many_jobs_are_stored_whole(jobs: Jobs, count: int) -> None:
    made = [make.job(payload={"number": number, "deep": [{"": None}]}, lane=Lane.RECURRING) for number in range(count)]
    assert jobs.put_many(made) == [Written.YES] * count
    assert jobs.get_many([job.key for job in made]) == {job.key: job for job in made}
    assert sorted(entry.key for entry in _due(jobs, made)) == sorted(job.key for job in made)


def test_put_many_stores_new_jobs_and_overwrites_none_a2(jobs: Jobs) -> None:
    """A repeat of the batch finds a job that has run in between."""
    job = running(jobs)
    done = make.succeeded(job)
    assert jobs.change([Change(job, done)]) == [Written.YES]
    others = [make.job() for _ in range(30)]
    again = [*others[:7], replace(job, spec=replace(job.spec, payload={"message": "other"}), claim=None), *others[7:]]
    assert jobs.put_many(again) == [Written.YES] * 7 + [Written.NO] + [Written.YES] * 23
    assert jobs.get_many([each.key for each in again]) == {each.key: each for each in [done, *others]}
    assert jobs.put_many(again) == [Written.NO] * 31


def _due(jobs: Jobs, made: Sequence[Job]) -> list[DueEntry]:
    return [entry for slot in {job.slot or "" for job in made} for entry in jobs.due(slot)[0]]


def test_an_unknown_key_and_another_owners_key_find_no_job(jobs: Jobs) -> None:
    (job,) = stored(jobs, make.job())
    assert jobs.get(JobKey("eve", job.id)) is None
    assert jobs.get_many([JobKey("eve", job.id), make.job().key]) == {}


def test_get_many_reads_each_job_once(jobs: Jobs) -> None:
    made = stored(jobs, *(make.job() for _ in range(120)))
    twice = [*made, *made]
    assert jobs.get_many([job.key for job in twice]) == jobs.glance(twice) == {job.key: job for job in made}
    assert jobs.get_many([]) == jobs.glance([]) == {}


def test_a_glance_shows_the_claim_and_the_cancel_request_of_a_job(jobs: Jobs, claim: Claim) -> None:
    """The other fields are those of the given job, which the caller has read whole."""
    ours, flagged, ended = stored(jobs, *(make.job() for _ in range(3)))
    claimed = [job for job in (claim(make.request(each)).job for each in (ours, flagged, ended)) if job is not None]
    asked = lifecycle.flag(claimed[1], NOW)
    over = lifecycle.cancel(claimed[2], NOW, retention=lifecycle.Retention())
    assert jobs.change([Change(claimed[1], asked), Change(claimed[2], over)]) == [Written.YES, Written.YES]
    seen = jobs.glance(claimed)
    assert seen[ours.key] == claimed[0] and seen[flagged.key] == asked
    assert not lifecycle.is_open(seen[ended.key]) and seen[ended.key].spec == ended.spec
    (old,) = jobs.glance([ours]).values()
    assert old == claimed[0]


def test_a_successful_claim_returns_the_claimed_job(jobs: Jobs, claim: Claim) -> None:
    (job,) = stored(jobs, make.job())
    result = claim(make.request(job, nonce="n1", alone=True))
    assert result.won and result.job is not None and result.job.claim is not None
    assert (result.job.claim.nonce, result.job.claim.alone, result.job.claim.at) == ("n1", True, NOW)
    assert replace(result.job, claim=None) == job
    assert jobs.get(job.key) == result.job


def test_a_second_claim_fails_and_returns_the_first(jobs: Jobs, claim: Claim) -> None:
    job = running(jobs, nonce="first")
    assert claim(make.request(job, nonce="second")) == ClaimResult(False, job)


@pytest.mark.parametrize("fields", [{"fence": 2}, {"fence": 0}, {"due_by": NOW - 1}], ids=["newer fence", "older fence", "too early"])
def test_a_failed_claim_returns_the_stored_job(jobs: Jobs, claim: Claim, fields: dict[str, int]) -> None:
    (job,) = stored(jobs, make.job())
    assert claim(make.request(job, **fields)) == ClaimResult(False, job)
    assert jobs.get(job.key) == job


def test_a_job_due_just_in_time_is_claimed(jobs: Jobs, claim: Claim) -> None:
    (job,) = stored(jobs, make.job())
    assert claim(make.request(job, due_by=NOW)).won


def test_a_final_job_is_not_claimed(jobs: Jobs, claim: Claim, apply: Apply) -> None:
    job = running(jobs)
    done = make.succeeded(job)
    assert apply(job, done)
    assert claim(make.request(done)) == ClaimResult(False, done)


def test_a_claim_of_an_unknown_job_fails(claim: Claim, jobs: Jobs) -> None:
    job = make.job()
    assert claim(make.request(job)) == ClaimResult(False, None)
    assert jobs.get(job.key) is None


def test_several_claims_of_one_job_are_answered_in_order(jobs: Jobs) -> None:
    made = stored(jobs, *(make.job() for _ in range(30)))
    requests = [make.request(job) for job in made] + [make.request(made[0], nonce="late")]
    results = jobs.claim(requests)
    assert [result is not None and result.won for result in results] == [True] * 30 + [False]
    assert [result.job.id for result in results if result and result.job] == [request.key.id for request in requests]
    assert jobs.claim([]) == [] and jobs.change([]) == []


def test_a_change_leaves_the_other_fields_alone(jobs: Jobs, apply: Apply) -> None:
    job = running(jobs)
    flagged = make.flagged(job)
    assert apply(job, flagged)
    assert apply(job, make.succeeded(job))  # by an executor that has not read the flag
    assert jobs.get(job.key) == replace(make.succeeded(job), cancel_requested_at=flagged.cancel_requested_at)


def test_a_requeue_fails_once_a_cancel_was_requested(jobs: Jobs, apply: Apply) -> None:
    job = running(jobs)
    flagged = make.flagged(job)
    again = make.retried(job, "2026-11-20T10:05#03")
    assert apply(job, flagged)
    assert not apply(job, again, Guard.CANCEL)  # by an executor that has not read the flag
    assert jobs.get(job.key) == flagged
    assert apply(flagged, replace(again, cancel_requested_at=flagged.cancel_requested_at), Guard.CANCEL)


def test_a_claim_is_revoked_until_it_is_fixed(jobs: Jobs, apply: Apply) -> None:
    job = make.job(key="order:17")
    assert jobs.put(job)
    (won,) = jobs.claim([make.request(job, revocable=True)])
    assert won is not None and won.job is not None and lifecycle.is_revocable(won.job) and jobs.get(job.key) == won.job
    claimed = won.job
    again = lifecycle.reschedule(claimed, slot="2026-11-20T10:05#03", fields={"puts": 2})
    flagged = make.flagged(claimed)
    assert apply(claimed, flagged) and not apply(claimed, again, Guard.REVOKE), "its cancel was requested"
    fixed = lifecycle.fix(flagged)
    assert apply(claimed, lifecycle.fix(claimed)) and jobs.get(job.key) == fixed
    late = lifecycle.reschedule(flagged, slot="2026-11-20T10:05#03", fields={"puts": 2})
    assert not apply(flagged, late, Guard.REVOKE) and jobs.get(job.key) == fixed


def test_a_change_of_a_revocable_claim_is_applied_once(jobs: Jobs, apply: Apply) -> None:
    job = make.job(key="order:17")
    assert jobs.put(job)
    (won,) = jobs.claim([make.request(job, revocable=True)])
    assert won is not None and won.job is not None
    again = lifecycle.reschedule(won.job, slot="2026-11-20T10:05#03", fields={"puts": 2})
    assert apply(won.job, again, Guard.REVOKE) and apply(won.job, again, Guard.REVOKE), "its answer was lost"
    assert jobs.get(job.key) == again and not apply(won.job, lifecycle.fix(won.job)), "the executor has lost it"


def test_a_requeue_succeeds_without_a_cancel_request(jobs: Jobs, apply: Apply) -> None:
    job = running(jobs)
    again = make.retried(job, "2026-11-20T10:05#03")
    assert apply(job, again, Guard.CANCEL) and apply(job, again, Guard.CANCEL), "its answer was lost"
    assert jobs.get(job.key) == again


def test_a_change_can_open_another_slot_and_raise_the_fence(jobs: Jobs, apply: Apply) -> None:
    job = running(jobs)
    again = make.retried(job, "2026-11-20T10:05#03")
    assert apply(job, again)
    assert jobs.get(job.key) == again
    assert [entry.fence for entry in jobs.due("2026-11-20T10:05#03")[0]] == [2]
    assert jobs.due(job.slot or "")[0] == []


def test_a_retry_goes_to_its_slot_although_its_job_was_moved(jobs: Jobs, apply: Apply) -> None:
    """A slot of the overflow is always open: the job may come back to the slot in which its executor knows it."""
    job = running(jobs)
    away = make.moved(job, "2026-11-20T11:00#01")
    assert apply(job, away, Guard.SLOT) and away.looks == 1
    again = make.retried(job, job.slot or "")
    assert apply(job, again)
    assert jobs.get(job.key) == again and jobs.due("2026-11-20T11:00#01")[0] == []
    assert [entry.fence for entry in jobs.due(job.slot or "")[0]] == [2]


def test_a_change_fails_if_the_fence_differs(jobs: Jobs, apply: Apply) -> None:
    job = running(jobs)
    assert not apply(replace(job, fence=2), replace(make.succeeded(job), fence=2))
    assert jobs.get(job.key) == job


def test_a_change_fails_if_the_claim_differs(jobs: Jobs, apply: Apply) -> None:
    job = running(jobs, nonce="mine")
    assert job.claim is not None
    assert not apply(replace(job, claim=replace(job.claim, nonce="yours")), make.succeeded(job))
    assert not apply(replace(job, claim=None), make.moved(replace(job, claim=None), "2026-11-20T11:00#01"), Guard.SLOT)
    assert jobs.get(job.key) == job


def test_a_change_of_a_claimed_job_fails_once_the_claim_is_gone(jobs: Jobs, apply: Apply) -> None:
    (job,) = stored(jobs, make.job())
    mine = replace(job, claim=running(jobs).claim)
    assert not apply(mine, make.succeeded(mine))
    assert jobs.get(job.key) == job


def test_a_move_fails_once_the_job_is_in_another_slot(jobs: Jobs, apply: Apply) -> None:
    (job,) = stored(jobs, make.job())
    assert apply(job, make.moved(job, "2026-11-20T11:00#01"), Guard.SLOT)
    assert not apply(job, make.moved(job, "2026-11-20T12:00#01"), Guard.SLOT)
    current = jobs.get(job.key)
    assert current is not None and current.slot == "2026-11-20T11:00#01"


def test_a_settlement_succeeds_after_a_move_of_the_slot(jobs: Jobs, apply: Apply) -> None:
    job = running(jobs)
    assert apply(job, make.moved(job, "2026-11-20T11:00#01"), Guard.SLOT)
    assert apply(job, make.succeeded(job))
    assert jobs.due("2026-11-20T11:00#01")[0] == []


def test_a_requeue_succeeds_after_a_move_of_the_slot(jobs: Jobs, apply: Apply) -> None:
    job = running(jobs)
    assert apply(job, make.moved(job, "2026-11-20T11:00#01"), Guard.SLOT)
    again = make.retried(job, "2026-11-20T10:05#03")
    assert apply(job, again)  # by an executor that has not read the move
    current = jobs.get(job.key)
    assert current is not None and (current.slot, current.fence, current.claim) == ("2026-11-20T10:05#03", 2, None)
    assert jobs.due("2026-11-20T11:00#01")[0] == []


def test_an_accepted_job_is_due_when_its_lease_ends(jobs: Jobs, apply: Apply) -> None:
    job = running(jobs, make.job(callback=CallBack(60_000, 120_000)))
    assert apply(job, make.moved(job, "2026-11-20T11:00#01"), Guard.SLOT)  # by a reconcile, which its executor has not read
    accepted = make.accepted(job)
    assert apply(job, accepted)
    assert jobs.get(job.key) == replace(accepted, looks=1)
    assert [entry.due_at for entry in jobs.due("2026-11-20T10:05#03")[0]] == [NOW + 300_000]
    assert jobs.due("2026-11-20T11:00#01")[0] == []


def test_a_heartbeat_leaves_the_due_index_alone(jobs: Jobs, apply: Apply) -> None:
    job = running(jobs)
    accepted = make.accepted(job)
    assert apply(job, accepted)
    beaten = make.beaten(accepted)
    assert apply(accepted, beaten)
    assert jobs.get(job.key) == beaten and beaten.progress == Progress(0.25, "a quarter")
    assert [entry.due_at for entry in jobs.due("2026-11-20T10:05#03")[0]] == [NOW + 300_000]


def test_a_report_succeeds_after_unseen_heartbeats(jobs: Jobs, apply: Apply) -> None:
    job = running(jobs)
    accepted = make.accepted(job)
    assert apply(job, accepted) and apply(accepted, make.beaten(accepted))
    assert apply(accepted, make.succeeded(accepted))


@pytest.mark.parametrize("is_accepted", [True, False])
def test_of_two_heartbeats_at_once_the_second_write_fails(jobs: Jobs, is_accepted: bool) -> None:
    seen = running(jobs)
    if is_accepted:
        before, seen = seen, make.accepted(seen)
        assert jobs.change([Change(before, seen)]) == [Written.YES]
    for at in (NOW + 100, NOW + 200):
        late, early = make.beaten(seen, at=at + 20), make.beaten(seen, at=at)
        assert jobs.change([Change(seen, late, Guard.HEARTBEAT)]) == [Written.YES]
        assert jobs.change([Change(seen, late, Guard.HEARTBEAT)]) == [Written.YES], "its answer was lost"
        assert jobs.change([Change(seen, early, Guard.HEARTBEAT)]) == [Written.NO]
        assert jobs.get(seen.key) == late
        seen = late


@pytest.mark.parametrize("looked", ["before it was accepted", "before a heartbeat"])
def test_a_take_back_from_an_old_read_fails(jobs: Jobs, looked: str) -> None:
    job = running(jobs)
    accepted = make.accepted(job)
    steps = [(job, accepted), (accepted, make.beaten(accepted))]
    seen = job if looked == "before it was accepted" else accepted
    for before, after in steps:
        assert jobs.change([Change(before, after)]) == [Written.YES]
        stale = Change(seen, make.taken_back(seen), Guard.LEASE)
        company = running(jobs)
        if after is not seen:
            assert jobs.change([stale]) == [Written.NO]
            assert jobs.change([stale, Change(company, make.taken_back(company), Guard.LEASE)]) == [Written.NO, Written.YES]


def test_a_take_back_succeeds_without_a_heartbeat(jobs: Jobs) -> None:
    job, plain = running(jobs), running(jobs)
    accepted = make.accepted(job)
    assert jobs.change([Change(job, accepted)]) == [Written.YES]
    back = [Change(each, make.taken_back(each), Guard.LEASE) for each in (accepted, plain)]
    assert jobs.change(back) == [Written.YES, Written.YES]
    assert jobs.get(job.key) == make.taken_back(accepted)


def test_a_change_of_a_final_job_fails(jobs: Jobs, apply: Apply) -> None:
    job = running(jobs)
    assert apply(job, make.succeeded(job))
    assert not apply(job, make.failed(job))
    assert jobs.get(job.key) == make.succeeded(job)


def test_a_job_cancelled_before_it_ran_is_final(jobs: Jobs, apply: Apply) -> None:
    (job,) = stored(jobs, make.job())
    cancelled = make.cancelled(job)
    assert apply(job, cancelled)
    assert not apply(job, make.buried(job))
    assert jobs.get(job.key) == cancelled


def test_a_redriven_job_is_in_the_due_index_again(jobs: Jobs, apply: Apply) -> None:
    job = running(jobs, make.job(start_by=NOW + 60_000))
    dead = make.failed(job)
    again = make.redriven(dead)
    assert apply(job, dead) and apply(dead, again)
    assert jobs.get(job.key) == again
    assert [(entry.fence, entry.lane) for entry in jobs.due("2026-11-20T10:09#03")[0]] == [(2, Lane.RETRY)]
    assert jobs.failures("ada", since=None, until=None, after=None, limit=5).jobs == []
    assert apply(dead, again)  # its answer was lost
    (result,) = jobs.claim([make.request(again, due_by=again.due_at)])
    assert result is not None and result.won


def test_a_redrive_fails_unless_the_job_is_dead_with_the_same_fence(jobs: Jobs, apply: Apply) -> None:
    job = running(jobs)
    dead = make.failed(job)
    assert not apply(dead, make.redriven(dead))  # it still runs
    assert jobs.get(job.key) == job
    assert apply(job, dead)
    assert apply(dead, make.redriven(dead))
    assert not apply(dead, make.redriven(dead, at=NOW + 61_000))  # a second one
    assert not apply(job, make.failed(job, NOW + 200))  # the executor's, late
    assert jobs.get(job.key) == make.redriven(dead)


def test_an_expired_job_is_not_redriven(jobs: Jobs, apply: Apply) -> None:
    dead = make.failed(make.claimed(make.job()))
    assert not apply(dead, make.redriven(dead))
    assert jobs.get(dead.key) is None


def test_a_change_of_an_unknown_job_fails_and_stores_nothing(jobs: Jobs, apply: Apply) -> None:
    job = make.job()
    assert not apply(job, make.moved(job, "2026-11-20T11:00#01"), Guard.SLOT)
    assert jobs.get(job.key) is None


@pytest.mark.parametrize(
    ("after", "guard"),
    [
        (make.succeeded, Guard.FENCE),
        (make.failed, Guard.FENCE),
        (lambda job: make.retried(job, "2026-11-20T10:05#03"), Guard.FENCE),
        (lambda job: make.moved(job, "2026-11-20T10:05#03"), Guard.SLOT),
    ],
    ids=["success", "failure", "retry", "move"],
)
def test_a_change_whose_answer_was_lost_succeeds_when_repeated(jobs: Jobs, apply: Apply, after: Callable[[Job], Job], guard: Guard) -> None:
    job = running(jobs)
    assert apply(job, after(job), guard)
    assert apply(job, after(job), guard)
    assert jobs.get(job.key) == after(job)


def test_a_retry_by_another_executor_is_not_taken_for_the_own_one(jobs: Jobs, apply: Apply) -> None:
    job = running(jobs)
    assert apply(job, make.retried(job, "2026-11-20T10:05#03", due_at=NOW + 1))
    assert not apply(job, make.retried(job, "2026-11-20T10:05#03", due_at=NOW + 2))


def test_an_empty_change_reports_whether_the_job_is_unchanged(jobs: Jobs, apply: Apply) -> None:
    (job,) = stored(jobs, make.job())
    assert apply(job, job)
    assert not apply(replace(job, fence=5), replace(job, fence=5))
    assert jobs.get(job.key) == job


@pytest.mark.parametrize("count", [0, 1, 26, 120])
def test_unclaimed_jobs_are_withdrawn(jobs: Jobs, count: int) -> None:
    made = stored(jobs, *(make.job() for _ in range(count)))
    kept = stored(jobs, make.job())
    assert jobs.withdraw([job.key for job in made]) == [Written.YES] * count
    assert jobs.get_many([job.key for job in [*made, *kept]]) == {job.key: job for job in kept}
    assert [entry.key for entry in _due(jobs, kept)] == [job.key for job in kept]


def test_claimed_or_ended_jobs_are_not_withdrawn(jobs: Jobs) -> None:
    claimed, (fresh, cancelled) = running(jobs), stored(jobs, make.job(), make.job())
    again, done = running(jobs), running(jobs)
    changes = [(again, make.retried(again, "2026-11-20T10:05#03")), (done, make.succeeded(done)), (cancelled, make.cancelled(cancelled))]
    assert jobs.change([Change(before, after) for before, after in changes]) == [Written.YES] * 3
    left = [claimed, *(after for _, after in changes)]
    assert jobs.withdraw([fresh.key, *(job.key for job in left)]) == [Written.YES] + [Written.NO] * 4
    assert jobs.get_many([job.key for job in [fresh, *left]]) == {job.key: job for job in left}


def test_withdrawing_an_unknown_job_succeeds_every_time(jobs: Jobs) -> None:
    (job,) = stored(jobs, make.job())
    assert jobs.withdraw([job.key, make.job().key]) == [Written.YES, Written.YES]
    assert jobs.withdraw([job.key]) == [Written.YES]
    assert jobs.withdraw([]) == []


def test_the_open_jobs_of_an_owner_are_counted_ahead_and_late(jobs: Jobs) -> None:
    mine = [make.job(owner="ann", at=NOW + number) for number in range(-3, 5)]
    stored(jobs, *mine, make.job(owner="ben", at=NOW + 1))
    assert jobs.count_ahead("ann", NOW) == 8
    ended = [mine[2], mine[4]]
    assert jobs.change([Change(job, replace(job, slot=None, cancelled_at=NOW)) for job in ended]) == [Written.YES] * 2
    assert jobs.count_ahead("ann", NOW) == jobs.count_ahead("ann", NOW + 3) == 6 and jobs.count_ahead("cyd", NOW) == 0


def test_moved_jobs_are_counted_once_wherever_they_moved(jobs: Jobs) -> None:
    late, ahead, over, cancelled = stored(jobs, *(make.job(owner="ann", at=at) for at in (NOW - 9, NOW + 9, NOW - 5, NOW - 3)))
    moves = [(late, NOW + 3 * DAY), (ahead, NOW - 7), (over, NOW - 1), (cancelled, NOW + DAY)]
    moved = {job.id: make.rescheduled(job, at) for job, at in moves}
    assert jobs.change([Change(job, moved[job.id]) for job, _ in moves]) == [Written.YES] * 4
    assert jobs.count_ahead("ann", NOW) == 4
    after = moved[cancelled.id]
    assert jobs.change([Change(after, replace(after, slot=None, cancelled_at=NOW))]) == [Written.YES]
    assert jobs.count_ahead("ann", NOW) == 3


def test_a_slot_lists_its_jobs_by_due_time(jobs: Jobs) -> None:
    slot = "2026-11-20T10:01#07"
    made = [make.job(slot=slot, due_at=NOW + offset, lane=Lane.RETRY, fence=4) for offset in (300, 100, 200)]
    stored(jobs, *made, make.job(slot="2026-11-20T10:01#08"))
    entries, cursor = jobs.due(slot)
    assert entries == [DueEntry.of(job.key, slot, job.due_at, Lane.RETRY, 4) for job in sorted(made, key=lambda job: job.due_at)]
    assert cursor is None


def test_a_slot_lists_its_jobs_from_an_instant_on(jobs: Jobs) -> None:
    slot, unit = "2026-11-20T10:01#07", UnitKey("2026-11-20T10:01", 0)
    made = [make.job(slot=slot, due_at=NOW + offset) for offset in (0, 1, 2)]
    stored(jobs, *made)
    jobs.put_canary(unit, slot, NOW)
    assert [entry.key for entry in jobs.due(slot, since=NOW + 1)[0]] == [job.key for job in made[1:]]
    assert jobs.due(slot, since=NOW + 3) == ([], None)


def test_several_slots_are_read_in_their_order(jobs: Jobs) -> None:
    slots_read = [f"2026-11-20T10:01#{shard:02d}" for shard in (9, 3, 7)]
    made = [make.job(slot=slot, due_at=NOW + at) for slot in slots_read[:2] for at in (0, 1)]
    stored(jobs, *made)
    assert jobs.due_in(slots_read) == [jobs.due(slot) for slot in slots_read]
    keys = [[entry.key for entry in page] for page, _ in jobs.due_in(slots_read, since=NOW + 1)]
    assert keys == [[made[1].key], [made[3].key], []]


@pytest.mark.parametrize("lane", [Lane.ONE_TIME, Lane.RECURRING])
def test_a_slot_counts_the_jobs_of_a_lane_due_in_a_span(jobs: Jobs, lane: Lane) -> None:
    slot, unit = "2026-11-20T10:01#07", UnitKey("2026-11-20T10:01", 0)
    other = Lane.RETRY if lane is Lane.ONE_TIME else Lane.ONE_TIME
    stored(
        jobs, *(make.job(slot=slot, due_at=NOW + offset, lane=lane) for offset in (0, 1, 2, 3)), make.job(slot=slot, due_at=NOW, lane=other)
    )
    jobs.put_canary(unit, slot, NOW)
    assert jobs.count([slot], lane, since=NOW + 1, until=NOW + 2) == 2
    assert jobs.count([slot], lane, since=NOW, until=NOW + 9) == 4
    assert jobs.count(["2026-11-20T10:01#08"], lane, since=NOW, until=NOW + 9) == 0


def test_the_entries_of_each_slot_are_tallied(jobs: Jobs) -> None:
    several = ["2026-11-20T10:01#07", "2026-11-20T10:01#08", "2026-11-20T10:01#09"]
    stored(jobs, *(make.job(slot=slot, lane=lane) for slot in several[:2] for lane in (Lane.ONE_TIME, Lane.RETRY)))
    stored(jobs, make.job(slot=several[0]))
    assert jobs.tally(several, 100) == [3, 2, 0]
    assert min(jobs.tally(several[:2], 2)) == 2 and jobs.tally([], 9) == []


def test_the_first_waiting_jobs_of_several_slots_are_read_together(jobs: Jobs) -> None:
    there = slots.queue("invoices", "ann")
    made = [make.job(slot=there[number % len(there)], due_at=NOW + 10 - number) for number in range(10)]
    stored(jobs, *made, make.job(slot=slots.queue("invoices", "eve")[0]))
    assert [entry.key for entry in jobs.waiting(there, limit=4)] == [job.key for job in reversed(made[-4:])]
    assert len(jobs.waiting(there, limit=99)) == 10


def test_the_first_overdue_jobs_of_each_slot_are_read(jobs: Jobs) -> None:
    one, other, empty = (f"2026-11-20T10:01#{shard:02d}" for shard in range(3))
    made = [make.job(slot=one, due_at=NOW - offset) for offset in (1, 3, 2)]
    stored(jobs, *made, make.job(slot=one, due_at=NOW + 1), make.job(slot=other, due_at=NOW))
    jobs.put_canary(UnitKey("2026-11-20T10:01", 0), one, NOW)
    found = jobs.overdue([one, other, empty], NOW, limit=2)
    assert [[entry.due_at for entry in entries] for entries, _ in found] == [[NOW - 3, NOW - 2], [NOW], []]
    assert [more for _, more in found] == [True, False, False]
    ((entries, more),) = jobs.overdue([one], NOW, limit=3)
    assert ([entry.key for entry in entries], more) == ([made[1].key, made[2].key, made[0].key], False)
    assert jobs.overdue([], NOW, limit=3) == []


def test_several_slots_are_counted_together(jobs: Jobs) -> None:
    several = [f"2026-11-20T10:01#{shard:02d}" for shard in range(3)]
    stored(jobs, *(make.job(slot=slot, due_at=NOW + offset) for slot in several for offset in range(2)), make.job(slot="intake#00"))
    jobs.put_canary(UnitKey("2026-11-20T10:01", 0), several[0], NOW)
    assert jobs.count(several, Lane.ONE_TIME, since=NOW, until=NOW + 9) == 6
    assert jobs.count(several[:2], Lane.ONE_TIME, since=NOW + 1, until=NOW + 9) == 2
    assert jobs.count([], Lane.ONE_TIME, since=0, until=NOW + 9) == 0


def swept(jobs: Jobs) -> list[DueEntry]:
    """All pages of the sweep."""
    entries, cursor = jobs.sweep()
    while cursor is not None:
        page, cursor = jobs.sweep(after=cursor)
        entries += page
    return entries


def test_the_sweep_shows_every_entry_of_every_slot_once(jobs: Jobs) -> None:
    made = [
        make.job(slot=slot, due_at=NOW + number) for number, slot in enumerate(["intake#00", "2026-11-20T10:01#07", "2019-01-01T00:00#03"])
    ]
    stored(jobs, *made)
    jobs.put_canary(UnitKey("2026-11-20T10:01", 0), "2026-11-20T10:01#00", NOW)
    jobs.set_mark(1)
    expected = [DueEntry.of(job.key, job.slot or "", job.due_at, Lane.ONE_TIME, 1) for job in made]
    assert sorted(swept(jobs)) == sorted(expected)


def test_the_sweep_leaves_out_jobs_that_have_ended(jobs: Jobs) -> None:
    assert swept(jobs) == []
    job = running(jobs)
    assert [entry.key for entry in swept(jobs)] == [job.key]
    assert jobs.change([Change(job, make.succeeded(job))]) == [Written.YES]
    assert swept(jobs) == []


def test_the_sweep_leaves_out_entries_that_cannot_be_read(local_dynamodb: "DynamoDBClient") -> None:
    local_dynamodb.create_table(TableName=(name := f"jobs-{uuid.uuid4().hex}"), **tables.JOBS)
    port, good = DynamoJobs(local_dynamodb, name), make.job()
    stored(port, good)
    later = items.encode(make.job()) | {"lane": {"S": "a lane of a later version"}}
    local_dynamodb.put_item(TableName=name, Item=later)
    assert [entry.key for entry in swept(port)] == [good.key]


def test_the_mark_is_the_highest_number_set_and_no_job(jobs: Jobs) -> None:
    assert jobs.mark() == 0
    for number in (9, 10, 10, 2):
        jobs.set_mark(number)
    assert jobs.mark() == 10
    assert swept(jobs) == []


def test_a_claimed_job_stays_in_its_slot_until_it_is_settled(jobs: Jobs) -> None:
    job = running(jobs)
    assert [entry.key for entry in jobs.due(job.slot or "")[0]] == [job.key]
    assert jobs.change([Change(job, make.succeeded(job))]) == [Written.YES]
    assert jobs.due(job.slot or "")[0] == []


def test_a_canary_is_visible_in_its_slot_and_never_among_the_jobs(jobs: Jobs) -> None:
    unit, slot = UnitKey("2026-11-20T10:01", 0), "2026-11-20T10:01#00"
    assert not jobs.canary_visible(unit, slot)
    jobs.put_canary(unit, slot, NOW)
    jobs.put_canary(unit, slot, NOW)
    assert jobs.canary_visible(unit, slot)
    assert not jobs.canary_visible(UnitKey("2026-11-20T10:01", 1), slot)
    assert not jobs.canary_visible(unit, "2026-11-20T10:01#01")
    assert jobs.due(slot)[0] == []
    assert jobs.sweep()[0] == []


def test_dropping_a_canary_twice_succeeds(jobs: Jobs) -> None:
    unit, slot = UnitKey("2026-11-20T10:01", 0), "2026-11-20T10:01#00"
    jobs.put_canary(unit, slot, NOW)
    jobs.drop_canary(unit)
    jobs.drop_canary(unit)
    assert not jobs.canary_visible(unit, slot)


RECEIVERS = Notifications(webhooks=(Webhook("https://hooks.example.com/" + "x" * 4_000, None, WebhookFormat.SLACK),))


def rich(**fields: object) -> Job:
    """A job with every field that may be large."""
    chosen = {"payload": {"deep": ["x" * 500]}, "tags": ("a", "b"), "callback": CallBack(60_000, 600_000), "events": True}
    job = make.job(**chosen, notifications=RECEIVERS, **fields)
    retried = make.claimed(make.retried(make.claimed(job), "2026-11-20T10:02#03"), "m2/r2/1")
    return make.beaten(make.accepted(retried))


def test_an_outline_has_all_but_the_fields_that_may_be_large(jobs: Jobs) -> None:
    whole = rich(lane=Lane.RECURRING, reason="why", start_by=NOW + 9)
    stored(jobs, whole)
    found = jobs.outlines([whole.key, whole.key, make.job().key])
    bare = replace(whole, spec=replace(whole.spec, payload={}), output=None, response=None, attempts=(), progress=None, notifications=None)
    assert bare.spec.events and whole.attempts and whole.output and whole.progress and found == {whole.key: bare}


def test_a_move_written_from_an_outline_loses_nothing(jobs: Jobs, apply: Apply) -> None:
    whole = rich()
    stored(jobs, whole)
    outline = jobs.outlines([whole.key])[whole.key]
    slot, due_at = "2026-11-20T11:40#03", NOW + 6_000_000
    assert apply(outline, lifecycle.move(outline, slot=slot, reconciled=True, due_at=due_at), Guard.SLOT)
    assert jobs.get(whole.key) == lifecycle.move(whole, slot=slot, reconciled=True, due_at=due_at)


LONGEST = "0" * 64  # a user id


def largest() -> JobSpec:
    """The largest spec that is allowed, to the byte."""
    rules = {"max_attempts": 25, "callback": CallBack(60_000, 600_000), "ordering": Ordering("k" * 200, OnFailure.PAUSE)}
    spec = JobSpec("http", {"body": ""}, tags=("t" * 40,) * 10, **rules)
    room = item_limit.LIMIT - item_limit.NEW_JOB - items.size(spec_items.encode(spec))
    return replace(spec, payload={"body": "x" * room})


def test_a_spec_is_checked_by_its_bytes_in_the_table(jobs: Jobs) -> None:
    jobs.check(JobSpec("log", {"numbers": [1e15] * 15_000}))
    with pytest.raises(TooLarge, match=r"3\d\d,\d\d\d bytes in the table; at most 307,200 \(300 KB\)"):
        jobs.check(JobSpec("log", {"numbers": [1e15] * 20_000}))


def test_the_receivers_of_a_job_count_among_its_bytes(jobs: Jobs) -> None:
    spec = JobSpec("http", {"body": "x" * (item_limit.LIMIT - 3_000)})
    jobs.check(spec)
    with pytest.raises(TooLarge):
        jobs.check(spec, RECEIVERS)


def test_the_largest_new_job_is_within_the_limit() -> None:
    task, at = ids.new(NOW, 2**75 - 1), 2**43
    origin = RunInfo(task, 10**9, at, Overlap.CANCEL_RUNNING, Misfire.RUN_LATEST, at, at, at, notify=True)
    run = replace(make.run(TaskKey(LONGEST, task), origin=origin, start_by=at, at=at, slot="2026-11-20T10:01#63"), spec=largest())
    moved = replace(make.rescheduled(run, at + 1), fence=10**6, reason="order: it runs after job " + "k" * 100)
    assert max(items.size(items.encode(job)) for job in (run, moved)) <= item_limit.LIMIT
    DynamoJobs(clients.dynamodb(), "jobs").check(largest())
    with pytest.raises(TooLarge):
        DynamoJobs(clients.dynamodb(), "jobs").check(replace(largest(), type="https"))


WORST = "\x01"  # a character that JSON text renders with six bytes
SHOUT = WORST * 5_000
ANSWER = {"status": 500, "headers": attempt_output.first_headers((f"h{number}", WORST * 80) for number in range(99)), "body": SHOUT}


def life_of_the_largest() -> Iterator[Job]:
    """Every state of a job that is as large as allowed, with the longest texts in each of them."""
    job = replace(make.job(owner=LONGEST, start_by=NOW + DAY), spec=largest())
    for number in range(7):
        claimed = lifecycle.claim(job, claim=JobClaim("m" * 100, f"{'m' * 100}/{'r' * 36}/{number}", NOW, False))
        answer, _ = attempt_output.split(claimed, Result(response=ANSWER, log=SHOUT))
        accepted = lifecycle.accept(claimed, started_at=NOW, result=answer, lease_until=NOW + 9, slot="2026-11-20T10:05#03")
        beaten = lifecycle.heartbeat(accepted, NOW, lease_until=NOW + 99, progress=Progress(0.123456789, WORST * 200))
        flagged = lifecycle.flag(beaten, NOW, reason="r" * 600)
        yield from (job, claimed, accepted, beaten, flagged)
        told, _ = attempt_output.split(beaten, Result(SHOUT[:4_096], ANSWER, Failure(FailureKind.RETRYABLE, SHOUT, 3_600_000)))
        ended: Any = {"started_at": NOW, "result": told}
        yield lifecycle.succeed(beaten, NOW, started_at=NOW, result=replace(told, failure=None))
        yield lifecycle.fail(beaten, NOW, reason="r" * 600, **ended)
        yield lifecycle.kill(beaten, NOW, reason="r" * 600, **ended)
        yield lifecycle.cancel(flagged, NOW, **ended)
        yield lifecycle.redrive(lifecycle.fail(beaten, NOW, reason="r" * 600, **ended), NOW, slot="2026-11-20T10:05#03")
        job = lifecycle.retry(beaten, NOW, slot="2026-11-20T10:05#03", due_at=NOW, **ended)


def test_no_state_of_the_largest_job_is_too_large_for_the_table() -> None:
    sizes = [items.size(items.encode(job)) for job in life_of_the_largest()]
    assert len(sizes) == 70 and item_limit.LIMIT < max(sizes) < 409_600 - 4_096


def test_the_largest_job_is_claimed_moved_settled_and_redriven(jobs: Jobs) -> None:
    job = replace(make.job(owner=LONGEST), spec=largest())
    before = running(jobs, job)
    steps = [lambda job: make.moved(job, "2026-11-20T11:40#03"), lambda job: make.retried(job, "2026-11-20T11:41#03")]
    for step in steps:
        after = step(before)
        assert jobs.change([Change(before, after)]) == [Written.YES]
        before = after
    (result,) = jobs.claim([make.request(before, nonce="m2/r2/1", due_by=NOW + DAY)])
    assert result is not None and result.won and result.job is not None
    told, _ = attempt_output.split(result.job, Result(response=ANSWER, log=SHOUT))
    dead = lifecycle.fail(result.job, NOW, started_at=NOW, result=replace(told, failure=Failure(FailureKind.PERMANENT, SHOUT)))
    assert jobs.change([Change(result.job, dead), Change(dead, make.redriven(dead))]) == [Written.YES] * 2
    assert jobs.get(job.key) == make.redriven(dead)
