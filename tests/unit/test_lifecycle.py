"""The state machine: arrow by arrow, and by any sequence of events."""

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from scheduler.model import lifecycle
from scheduler.model.errors import IllegalTransition
from scheduler.model.job import Attempt, Awaited, Claim, Failure, FailureKind, Job, Lane, Outcome, Result, Status
from scheduler.model.lifecycle import FINAL_TIMES, TRANSITIONS, Event, Retention, delay, is_late, state, status
from scheduler.model.spec import JobSpec
from tests.conftest import NOW, a_job
from tests.events import happen

NO = Result(failure=Failure(FailureKind.RETRYABLE, "503"))
DATA: dict[str, Any] = {
    "claim": Claim("m1", "m1/r1/1", NOW, True),
    "started_at": NOW,
    "result": NO,
    "due_at": NOW + 5_000,
    "slot": "2026-11-20T10:05#00",
    "reconciled": True,
    "lease_until": NOW + 300_000,
    "reason": "because",
    "awaited": Awaited(1),
    "fields": {"due_at": NOW + 7_000, "scheduled_at": NOW + 7_000, "spec": JobSpec("log", {"message": "changed"})},
}
STATES = {
    Status.SCHEDULED: a_job(),
    Status.RUNNING: a_job(claim=DATA["claim"]),
    **{final: a_job(slot=None, **{time: NOW}) for final, time in FINAL_TIMES.items()},
}


@pytest.mark.parametrize("event", Event)
@pytest.mark.parametrize("before", STATES)
def test_every_event_leads_to_the_state_in_the_table_or_nowhere(event: Event, before: Status) -> None:
    job, after = STATES[before], TRANSITIONS[event].get(before)
    if after is None:
        with pytest.raises(IllegalTransition):
            happen(job, event, NOW, **DATA)
    else:
        assert state(happen(job, event, NOW, **DATA)) is after


def test_only_a_redrive_leaves_a_final_state_and_every_event_is_listed() -> None:
    assert set(TRANSITIONS) == set(Event)
    left = {(event, before) for event, arrows in TRANSITIONS.items() for before in arrows if before in FINAL_TIMES}
    assert left == {(Event.REDRIVE, Status.FAILED), (Event.REDRIVE, Status.KILLED)}


def test_only_events_that_reschedule_or_requeue_raise_the_fence_a7() -> None:
    raised = {
        event
        for event in Event
        for job in STATES.values()
        if state(job) in TRANSITIONS[event] and happen(job, event, NOW, **DATA).fence > job.fence
    }
    assert raised == {Event.RETRY, Event.TAKE_BACK, Event.REQUEUE, Event.RESCHEDULE, Event.REDRIVE}


@pytest.mark.parametrize(
    ("event", "lane"),
    [
        (Event.RETRY, Lane.RETRY),
        (Event.TAKE_BACK, Lane.RETRY),
        (Event.REQUEUE, Lane.RECURRING),
        (Event.RESCHEDULE, Lane.RECURRING),
        (Event.REDRIVE, Lane.RETRY),
    ],
)
def test_a_new_fence_resets_counters_and_only_another_try_changes_lanes(event: Event, lane: Lane) -> None:
    claim = None if event in (Event.RESCHEDULE, Event.REDRIVE) else DATA["claim"]
    ended = {"slot": None, "failed_at": NOW} if event is Event.REDRIVE else {}
    job = a_job(lane=Lane.RECURRING, claim=claim, looks=3, buried=2, fence=4, **ended)
    after = happen(job, event, NOW, **DATA)
    assert (after.lane, after.fence, after.looks, after.buried, after.claim) == (lane, 5, 0, 0, None)
    assert (after.picked_at, after.started_at, after.slot) == (None, None, DATA["slot"])


def test_a_redriven_job_starts_from_scratch_and_keeps_its_history() -> None:
    lived = a_job(claim=DATA["claim"], start_by=NOW + 60_000, charged=2, crashes=1, lane=Lane.RECURRING, buried=1)
    dead = happen(lived, Event.FAIL, NOW + 70, **DATA)
    assert dead.fingerprint is not None and dead.expires is not None
    after = happen(dead, Event.REDRIVE, NOW + 90_000, slot="2026-11-20T10:09#00")
    assert (after.fence, after.lane, after.due_at, after.slot) == (dead.fence + 1, Lane.RETRY, NOW + 90_000, "2026-11-20T10:09#00")
    assert (after.charged, after.crashes, after.buried, after.claim, after.started_at) == (0, 0, 0, None, None)
    assert (after.failed_at, after.expires, after.fingerprint, after.reason, after.start_by) == (None,) * 5
    assert (after.redrives, after.redriven_at) == (1, NOW + 90_000)
    assert (after.id, after.scheduled_at, after.attempts, after.delay_ms) == (dead.id, dead.scheduled_at, dead.attempts, dead.delay_ms)


@pytest.mark.parametrize("event", [event for event in Event if Status.RUNNING in TRANSITIONS[event]])
def test_only_a_failed_or_killed_job_has_a_fingerprint(event: Event) -> None:
    after = happen(STATES[Status.RUNNING], event, NOW, **DATA)
    assert (after.fingerprint is not None) == (event in (Event.FAIL, Event.KILL))


def test_a_requeued_job_keeps_its_time_and_its_attempts() -> None:
    job = STATES[Status.RUNNING]
    after = happen(job, Event.REQUEUE, NOW + 3, slot="2026-11-20T10:05#00", reason="another run has not ended")
    assert (after.due_at, after.charged, after.attempts, after.delay_ms) == (job.due_at, 0, (), None)
    assert after.reason == "another run has not ended"


def test_a_rescheduled_job_has_new_time_and_content_and_its_old_id() -> None:
    job = STATES[Status.SCHEDULED]
    after = happen(job, Event.RESCHEDULE, NOW, **DATA)
    assert (after.id, after.due_at, after.scheduled_at, after.spec.payload) == (job.id, NOW + 7_000, NOW + 7_000, {"message": "changed"})


def test_a_cancel_after_the_start_adds_an_attempt() -> None:
    job = happen(STATES[Status.RUNNING], Event.FLAG, NOW + 40)
    after = happen(job, Event.CANCEL, NOW + 70, started_at=NOW + 3)
    assert after.attempts == (Attempt(1, NOW, NOW + 3, NOW + 70, Outcome.CANCELLED),)
    assert (after.cancelled_at, after.started_at, after.delay_ms, after.cancel_requested_at) == (NOW + 70, NOW + 3, 3, NOW + 40)
    assert after.charged == 0


def test_a_cancel_before_the_start_adds_no_attempt() -> None:
    after = happen(STATES[Status.RUNNING], Event.CANCEL, NOW + 70)
    assert (after.attempts, after.started_at, after.delay_ms) == ((), None, None)


def test_a_claim_keeps_the_slot_a1() -> None:
    job = a_job()
    assert happen(job, Event.CLAIM, NOW, **DATA).slot == job.slot


@pytest.mark.parametrize(("alone", "start", "charge"), [(True, NOW, 1), (False, NOW, 0), (True, None, 0)])
def test_only_a_crash_of_a_job_that_started_alone_uses_an_attempt_a6(alone: bool, start: int | None, charge: int) -> None:
    job = a_job(claim=Claim("m1", "n1", NOW, alone), started_at=start)
    after = happen(job, Event.TAKE_BACK, NOW + 31_000, slot="2026-11-20T10:05#00")
    assert (after.charged, after.crashes) == (charge, charge)
    assert after.attempts[-1].outcome is Outcome.CRASHED and after.attempts[-1].started_at == NOW


def test_crashes_are_counted_in_a_row_and_since_the_last_redrive() -> None:
    def crash(job: Job, at: int) -> Job:
        claimed = happen(job, Event.CLAIM, at, claim=Claim("m1", "n1", at, True))
        return happen(claimed, Event.TAKE_BACK, at + 31_000, slot=DATA["slot"])

    job = crash(crash(a_job(), NOW), NOW + 40_000)
    assert (lifecycle.crashes_in_row(job), lifecycle.has_crashed(job)) == (2, True)
    failed = happen(happen(job, Event.CLAIM, NOW, **DATA), Event.RETRY, NOW + 90_000, **DATA)
    assert (lifecycle.crashes_in_row(failed), lifecycle.has_crashed(failed)) == (0, True)
    redriven = happen(happen(job, Event.FAIL, NOW + 99_000, reason="no"), Event.REDRIVE, NOW + 100_000, slot=DATA["slot"])
    assert (lifecycle.crashes_in_row(redriven), lifecycle.has_crashed(redriven)) == (0, False)


def test_a_stored_start_is_the_start_of_its_attempt_only() -> None:
    job = happen(happen(a_job(), Event.CLAIM, NOW, **DATA), Event.START, NOW + 70)
    assert lifecycle.started_at(job) == NOW + 70
    assert happen(job, Event.REQUEUE, NOW, **DATA).started_at is None and happen(job, Event.RETRY, NOW, **DATA).started_at is None


def test_a_crash_before_the_instant_is_not_a_start() -> None:
    job = a_job(due_at=NOW + 5_000, claim=Claim("m1", "n1", NOW, True))
    after = happen(job, Event.TAKE_BACK, NOW + 4_999, slot="2026-11-20T10:05#00")
    assert after.attempts[-1].started_at is None and after.delay_ms is None


@pytest.mark.parametrize("event", [event for event in Event if Status.RUNNING in TRANSITIONS[event]])
def test_only_a_final_transition_sets_an_expiry_a12(event: Event) -> None:
    after = happen(STATES[Status.RUNNING], event, NOW, **DATA)
    assert (after.expires is not None) == (after.slot is None)


def test_failures_are_kept_longer_than_other_jobs() -> None:
    keep = Retention(days=1, failure_days=2)
    job = STATES[Status.RUNNING]
    assert happen(job, Event.SUCCEED, NOW, **DATA, retention=keep).expires == NOW // 1000 + 86_400
    assert happen(job, Event.KILL, NOW, **DATA, retention=keep).expires == NOW // 1000 + 2 * 86_400


def test_the_history_has_five_attempts_and_cuts_long_messages_a12() -> None:
    job = a_job()
    long = Result(failure=Failure(FailureKind.RETRYABLE, "x" * 300_000))
    for number in range(8):
        job = happen(job, Event.CLAIM, NOW + number, claim=Claim("m1", "n1", NOW + number, True))
        job = happen(job, Event.RETRY, NOW + number, **(DATA | {"result": long}))
    assert [attempt.fence for attempt in job.attempts] == [4, 5, 6, 7, 8]
    assert {len(attempt.failure.message) for attempt in job.attempts if attempt.failure} == {lifecycle.LONGEST_FAILURE}


def test_an_attempt_records_its_claim_start_and_end() -> None:
    job = happen(a_job(claim=DATA["claim"]), Event.SUCCEED, NOW + 70, started_at=NOW + 3, result=Result("out", {"status": 200}))
    assert job.attempts == (Attempt(1, NOW, NOW + 3, NOW + 70, Outcome.SUCCEEDED),)
    assert (job.output, job.response, job.charged, job.completed_at) == ("out", {"status": 200}, 1, NOW + 70)


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        (FailureKind.TIMEOUT, Outcome.KILLED),
        (FailureKind.CRASHED, Outcome.CRASHED),
        (FailureKind.RETRYABLE, Outcome.FAILED),
        (FailureKind.PERMANENT, Outcome.FAILED),
    ],
)
def test_the_failure_kind_determines_the_outcome(kind: FailureKind, outcome: Outcome) -> None:
    job = happen(STATES[Status.RUNNING], Event.FAIL, NOW, **(DATA | {"result": Result(failure=Failure(kind, "no"))}))
    assert job.attempts[-1].outcome is outcome


def test_a_job_failed_without_a_start_has_a_reason_and_no_attempt() -> None:
    job = happen(a_job(), Event.FAIL, NOW, reason="buried")
    assert (job.reason, job.attempts, job.charged) == ("buried", (), 0)


def test_a_second_flag_keeps_the_time_of_the_first() -> None:
    once = happen(STATES[Status.RUNNING], Event.FLAG, NOW)
    assert happen(once, Event.FLAG, NOW + 9).cancel_requested_at == NOW
    assert happen(once, Event.CANCEL, NOW + 9).cancel_requested_at == NOW
    assert happen(once, Event.REQUEUE, NOW + 9, slot="x#0", reason="because").cancel_requested_at == NOW


def test_only_a_move_that_found_a_job_not_started_is_counted() -> None:
    assert happen(a_job(), Event.MOVE, NOW, slot="x#0", reconciled=True).looks == 1
    assert happen(a_job(), Event.MOVE, NOW, slot="x#0").looks == 0


@pytest.mark.parametrize(
    ("job", "now", "seen"),
    [
        (a_job(), NOW - 1, Status.SCHEDULED),
        (a_job(), NOW, Status.QUEUED),
        (a_job(claim=Claim("m", "n", NOW - 3_000, True)), NOW - 1, Status.QUEUED),
        (a_job(claim=Claim("m", "n", NOW - 3_000, True)), NOW, Status.RUNNING),
        (a_job(claim=Claim("m", "n", NOW + 3_000, True)), NOW + 3_000, Status.RUNNING),
        (a_job(slot=None, killed_at=NOW), NOW, Status.KILLED),
    ],
    ids=["ahead", "due", "held", "its instant", "claimed late", "over"],
)
def test_the_status_follows_from_the_times(job: Job, now: int, seen: Status) -> None:
    assert status(job, now) is seen


def test_a_job_with_neither_slot_nor_end_is_a_bug() -> None:
    with pytest.raises(IllegalTransition):
        state(a_job(slot=None))
    with pytest.raises(IllegalTransition):
        lifecycle.started_at(a_job())


def test_the_delay_is_that_of_the_first_start() -> None:
    assert delay(a_job(), NOW + 50_000) is None
    assert delay(a_job(claim=Claim("m", "n", NOW + 20, True)), NOW + 20) == 20
    assert delay(a_job(delay_ms=7, claim=Claim("m", "n", NOW + 9_000, True)), NOW + 9_000) == 7


@pytest.mark.parametrize(
    ("job", "now", "late"),
    [
        (a_job(), NOW + 9_999, False),
        (a_job(), NOW + 10_000, True),
        (a_job(delay_ms=9_999, slot=None, completed_at=NOW), NOW + 99_999, False),
        (a_job(delay_ms=10_000, slot=None, completed_at=NOW), NOW, True),
        (a_job(created_at=NOW + 1), NOW, True),
        (a_job(slot=None, cancelled_at=NOW), NOW + 99_999, False),
    ],
    ids=["not yet", "waits too long", "was in time", "was late", "posted for the past", "cancelled"],
)
def test_a_job_is_late_after_ten_seconds_or_if_submitted_for_the_past(job: Job, now: int, late: bool) -> None:
    assert is_late(job, now) is late


def test_a_writer_recognizes_its_own_write_by_its_marks() -> None:
    job = STATES[Status.RUNNING]
    retried = happen(job, Event.RETRY, NOW, **DATA)
    assert lifecycle.marks(retried) == lifecycle.marks(happen(job, Event.RETRY, NOW, **DATA))
    for event in (Event.SUCCEED, Event.FLAG, Event.MOVE, Event.CANCEL):
        assert lifecycle.marks(happen(job, event, NOW, **DATA)) not in (lifecycle.marks(job), lifecycle.marks(retried))


class AnyLife(RuleBasedStateMachine):
    """Any events in any order: a forbidden event is refused and changes nothing, an allowed one keeps the invariants."""

    def __init__(self) -> None:
        super().__init__()
        self.job, self.now = a_job(), NOW
        self.fence = self.charged = 0
        self.final: Job | None = None

    @rule(
        event=st.sampled_from(Event),
        pause=st.integers(0, 100_000),
        alone=st.booleans(),
        kind=st.sampled_from([FailureKind.RETRYABLE, FailureKind.PERMANENT, FailureKind.TIMEOUT, FailureKind.CRASHED]),
    )
    def happen(self, event: Event, pause: int, alone: bool, kind: FailureKind) -> None:
        self.now += pause
        before = self.job
        result = Result("done") if event is Event.SUCCEED else Result(failure=Failure(kind, "no"))
        more = {"claim": Claim("m", f"n{self.now}", self.now, alone), "started_at": self.now, "result": result}
        try:
            self.job = happen(before, event, self.now, **(DATA | more))
        except IllegalTransition:
            assert state(before) not in TRANSITIONS[event]
            return
        assert self.job.fence == before.fence + (event in lifecycle.HANDS_BACK)
        assert self.job.charged - before.charged in (0, 1) or (event is Event.REDRIVE and self.job.charged == 0)
        if event is Event.REDRIVE:  # the only event of a final job
            self.final, self.charged = None, 0
        assert self.job.id == before.id
        assert self.job.scheduled_at == before.scheduled_at or event is Event.RESCHEDULE

    @invariant()
    def the_fence_and_the_charge_never_fall(self) -> None:
        assert self.job.fence >= self.fence and self.job.charged >= self.charged
        self.fence, self.charged = self.job.fence, self.job.charged

    @invariant()
    def it_is_open_exactly_while_it_has_a_slot(self) -> None:
        ends = [name for name in FINAL_TIMES.values() if getattr(self.job, name) is not None]
        assert lifecycle.is_open(self.job) == (self.job.slot is not None) == (not ends)
        assert len(ends) <= 1

    @invariant()
    def final_is_final(self) -> None:
        if self.final is not None:
            assert self.job == self.final
        elif not lifecycle.is_open(self.job):
            self.final = self.job
            assert self.job.claim is None and self.job.expires is not None

    @invariant()
    def it_has_a_status_at_any_time(self) -> None:
        assert status(self.job, self.now) in Status
        assert isinstance(is_late(self.job, self.now), bool)

    @precondition(lambda self: self.job.claim is not None)
    @invariant()
    def who_runs_is_watched(self) -> None:
        assert self.job.slot is not None


TestAnyLife = AnyLife.TestCase


def test_attempts_are_numbered_over_the_whole_life_of_a_job() -> None:
    """Requeues raise the fence and redrives begin a new life: neither leaves out a number nor uses one twice."""
    job, numbers = a_job(), list[int]()
    for turn in range(12):
        claimed = happen(job, Event.CLAIM, NOW, **DATA)
        job = happen(claimed, Event.REQUEUE, NOW, **DATA)
        claimed = happen(job, Event.CLAIM, NOW, **DATA)
        numbers.append(lifecycle.next_attempt(claimed))
        if turn in (4, 9):
            job = happen(happen(claimed, Event.FAIL, NOW + 70, **DATA), Event.REDRIVE, NOW + 90, **DATA)
        else:
            job = happen(claimed, Event.TAKE_BACK if turn % 3 else Event.RETRY, NOW + 70, **DATA)
        kept = lifecycle.numbered_attempts(job)
        assert [number for number, _ in kept] == list(range(max(1, len(numbers) - 4), len(numbers) + 1))
        assert [attempt for _, attempt in kept] == list(job.attempts)
    assert numbers == list(range(1, 13)) and job.dropped == 7
