"""Several writers of one job, each with an earlier read, in any order: the table accepts at most one of them."""

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from scheduler.model import lifecycle
from scheduler.model.errors import IllegalTransition
from scheduler.model.job import Awaited, Failure, FailureKind, Job, Outcome, Result, Status
from scheduler.model.lifecycle import HANDS_BACK, TRANSITIONS, Event, is_open
from scheduler.storage.memory.stores import MemoryJobs
from scheduler.storage.ports import Change, ClaimRequest, Written
from tests.conftest import NOW, a_job
from tests.events import happen

SLOTS = ["2026-11-20T10:05#00", "2026-11-20T10:07#01"]
GOES_ON = (Event.FLAG, Event.MOVE, Event.START, Event.ACCEPT, Event.HEARTBEAT)  # none of these settles an attempt
SETTLES = [event for event in Event if Status.RUNNING in TRANSITIONS[event] and event not in GOES_ON]


class ManyWriters(RuleBasedStateMachine):
    """Executors, reconciling, users and redrives. A view is the job as one of them read it, maybe long ago."""

    views: Bundle[Job] = Bundle("views")
    changes: Bundle[Change] = Bundle("changes")

    def __init__(self) -> None:
        super().__init__()
        self.jobs, self.now, self.deliveries = MemoryJobs(), NOW, 0
        self.first = a_job()
        self.jobs.put(self.first)
        self.before = self.first  # as stored before the last step
        self.claims: dict[int, str] = {}  # the claimer of each fence
        self.settled: dict[int, str] = {}  # whose work was settled under each fence

    @property
    def stored(self) -> Job:
        return self.jobs.rows[self.first.key]

    @initialize(target=views)
    def posted(self) -> Job:
        return self.first

    @rule(target=views, pause=st.integers(0, 50_000))
    def read(self, pause: int) -> Job:
        self.now += pause
        return self.stored

    @rule(target=views, fence=st.integers(-2, 1), alone=st.booleans(), early=st.booleans())
    def claim(self, fence: int, alone: bool, early: bool) -> Any:
        """By the message of this or an older fence, or of one that never was."""
        self.deliveries += 1
        before, wanted = self.stored, self.stored.fence + fence
        due_by = before.due_at - 1 if early else before.due_at
        request = ClaimRequest(before.key, wanted, "m", f"n{self.deliveries}", self.now, alone, due_by)
        (answer,) = self.jobs.claim([request])
        may = is_open(before) and before.claim is None and fence == 0 and not early
        assert answer is not None and answer.won == may
        if not answer.won:
            assert self.stored == before
            return multiple()
        assert wanted not in self.claims, "claimed twice under one fence"
        self.claims[wanted] = f"n{self.deliveries}"
        return answer.job

    @rule(
        target=changes,
        view=views,
        event=st.sampled_from(Event),
        kind=st.sampled_from([FailureKind.RETRYABLE, FailureKind.TIMEOUT]),
        slot=st.sampled_from(SLOTS),
    )
    def change(self, view: Job, event: Event, kind: FailureKind, slot: str) -> Any:
        """The change that one writer makes of its earlier read."""
        result = Result("done") if event is Event.SUCCEED else Result(failure=Failure(kind, "no"))
        data = {
            "started_at": self.now,
            "result": result,
            "due_at": self.now,
            "slot": slot,
            "reconciled": True,
            "reason": "because",
            "fields": {},
            "lease_until": self.now + 60_000,
            "awaited": Awaited(view.fence),
        }
        if event is Event.CLAIM:
            return multiple()
        try:
            after = happen(view, event, self.now, **data)
        except IllegalTransition:
            return multiple()
        moves = event in (Event.MOVE, Event.FLAG)
        change, before = Change.of_slot(view, after) if moves else Change(view, after), self.stored
        (held,) = self.jobs.change([change])
        same = _hold(before) == _hold(view)
        if held is Written.YES and same and before != self.stored and event in SETTLES and view.claim:
            assert self.claims[view.fence] == view.claim.nonce, "settled by another writer"
            assert view.fence not in self.settled, "settled twice under one fence"
            self.settled[view.fence] = view.claim.nonce
        if not same:
            assert self.stored == before, "a late writer won"
        if held is Written.YES and event in HANDS_BACK:
            assert self.stored.fence >= view.fence + 1
        return change

    @rule(target=changes, change=consumes(changes))
    def repeat(self, change: Change) -> Change:
        """Its answer was lost: it repeats the call, and nothing happens twice."""
        before = self.stored
        (held,) = self.jobs.change([change])
        if self.stored != before:
            assert _hold(before) == _hold(change.before)
            if change.before.claim and change.after.claim is None:
                assert change.before.fence not in self.settled, "settled twice under one fence"
                self.settled[change.before.fence] = change.before.claim.nonce
            assert held is Written.YES
        return change

    @invariant()
    def the_fence_never_falls_and_an_end_is_left_by_a_redrive_only(self) -> None:
        before, stored = self.before, self.stored
        assert stored.fence >= before.fence
        if not is_open(before) and stored != before:
            assert stored.redrives > before.redrives or stored.fence > before.fence
        self.before = stored

    @invariant()
    def the_index_shows_exactly_what_is_open(self) -> None:
        shown = [entry for slot in {*SLOTS, self.first.slot or ""} for entry in self.jobs.due(slot)[0]]
        assert [(entry.slot, entry.fence) for entry in shown] == ([(self.stored.slot, self.stored.fence)] if is_open(self.stored) else [])

    @invariant()
    def no_two_attempts_have_one_fence_and_one_succeeds_at_most(self) -> None:
        fences = [attempt.fence for attempt in self.stored.attempts]
        assert len(set(fences)) == len(fences)
        assert sum(attempt.outcome is Outcome.SUCCEEDED for attempt in self.stored.attempts) <= 1

    @invariant()
    def its_state_can_be_told(self) -> None:
        assert lifecycle.state(self.stored) in Status


def _hold(job: Job) -> tuple[int, str | None, bool]:
    """The condition of a write by the job's owner: lease and progress may have changed in between."""
    return job.fence, job.claim.nonce if job.claim else None, is_open(job)


TestManyWriters = pytest.mark.long(ManyWriters.TestCase)
