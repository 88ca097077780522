"""The row of gates: each asked about what the one before lets through."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from scheduler.admission.gate import UNDECIDED, Admission, AskAgain, Clear, Requeue, Verdict
from scheduler.model.job import Finished, Job, JobKey, RequeueCause, Result
from tests.conftest import a_job

FIRST, SECOND = a_job(id="01H000000000000000000000AA"), a_job(id="01H000000000000000000000BB")


@dataclass
class Says:
    """A gate with its answers written down."""

    answers: dict[JobKey, Verdict]
    about: Sequence[Job] = (FIRST, SECOND)
    asked: list[JobKey] = field(default_factory=list)
    heard: list[tuple[str, JobKey]] = field(default_factory=list)

    def concerns(self, job: Job) -> bool:
        return job in self.about

    def ahead(self, jobs: Sequence[Job]) -> dict[JobKey, Verdict]:
        return self.decide(jobs)

    def decide(self, jobs: Sequence[Job]) -> dict[JobKey, Verdict]:
        self.asked += [job.key for job in jobs]
        return self.answers

    def ended(self, done: Sequence[Finished]) -> None:
        self.heard += [("ended", each.job.key) for each in done]

    def left(self, jobs: Sequence[Job]) -> None:
        self.heard += [("left", job.key) for job in jobs]


def test_a_job_that_concerns_no_gate_is_not_asked_about():
    assert not Admission([Says({}, about=[])]).concerns(FIRST)
    assert Admission([Says({}, about=[]), Says({})]).concerns(FIRST)


def test_a_later_gate_is_asked_only_about_what_the_earlier_one_lets_through():
    back = Requeue(RequeueCause.LIMIT, "not yet")
    last = Says({FIRST.key: Clear(2)})
    verdicts = Admission([Says({FIRST.key: Clear(1), SECOND.key: back}), last]).decide([FIRST, SECOND])
    assert last.asked == [FIRST.key]
    assert verdicts == {FIRST.key: Clear(1), SECOND.key: back}


def test_what_one_gate_leaves_open_ahead_has_no_verdict():
    assert Admission([Says({FIRST.key: Clear(1)}), Says({})]).ahead([FIRST]) == {}


@pytest.mark.parametrize("verdict", [UNDECIDED, AskAgain(70)])
def test_a_job_that_a_gate_wants_to_be_asked_about_again_is_not_cleared(verdict: Verdict):
    last = Says({FIRST.key: Clear(2)})
    assert Admission([Says({FIRST.key: Clear(1)}), Says({FIRST.key: verdict}), last]).decide([FIRST]) == {FIRST.key: verdict}
    assert last.asked == []


def test_every_gate_hears_of_work_that_came_back_and_of_jobs_that_left():
    gates = [Says({}), Says({}, about=[])]
    Admission(gates).ended([Finished(FIRST, 1, 2, Result())])
    Admission(gates).left([SECOND])
    assert [gate.heard for gate in gates] == [[("ended", FIRST.key), ("left", SECOND.key)]] * 2


def test_a_job_may_start_by_the_older_clearance_and_at_the_later_instant():
    gates = [Says({FIRST.key: Clear(5, not_before=70)}), Says({FIRST.key: Clear(9, not_before=60)})]
    assert Admission(gates).ahead([FIRST]) == {FIRST.key: Clear(5, 70)}


def test_the_last_gate_decides_what_all_before_it_let_through():
    back = Requeue(RequeueCause.LIMIT, "full", at=9)
    assert Admission([Says({FIRST.key: Clear(1)}), Says({FIRST.key: back})]).decide([FIRST]) == {FIRST.key: back}


def test_a_gate_that_is_not_concerned_changes_nothing():
    assert Admission([Says({FIRST.key: Clear(1)}), Says({}, about=[SECOND])]).decide([FIRST]) == {FIRST.key: Clear(1)}
