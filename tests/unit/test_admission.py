"""The sequence of gates: each checks the jobs that the gate before it lets through."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from scheduler.admission.gate import UNDECIDED, Admission, AskAgain, Clear, Requeue, Verdict
from scheduler.model.job import Finished, Job, JobKey, RequeueCause, Result
from tests.conftest import a_job

FIRST, SECOND = a_job(id="01H000000000000000000000AA"), a_job(id="01H000000000000000000000BB")


@dataclass
class Says:
    """A gate with scripted answers."""

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


def test_job_that_concerns_no_gate_is_not_checked():
    assert not Admission([Says({}, about=[])]).concerns(FIRST)
    assert Admission([Says({}, about=[]), Says({})]).concerns(FIRST)


def test_later_gate_checks_only_jobs_that_the_earlier_one_clears():
    back = Requeue(RequeueCause.LIMIT, "not yet")
    last = Says({FIRST.key: Clear(2)})
    verdicts = Admission([Says({FIRST.key: Clear(1), SECOND.key: back}), last]).decide([FIRST, SECOND])
    assert last.asked == [FIRST.key]
    assert verdicts == {FIRST.key: Clear(1), SECOND.key: back}


def test_job_left_open_ahead_by_one_gate_has_no_verdict():
    assert Admission([Says({FIRST.key: Clear(1)}), Says({})]).ahead([FIRST]) == {}


@pytest.mark.parametrize("verdict", [UNDECIDED, AskAgain(70)])
def test_job_that_a_gate_must_check_again_is_not_cleared(verdict: Verdict):
    last = Says({FIRST.key: Clear(2)})
    assert Admission([Says({FIRST.key: Clear(1)}), Says({FIRST.key: verdict}), last]).decide([FIRST]) == {FIRST.key: verdict}
    assert last.asked == []


def test_followers_receive_ended_work_and_jobs_that_left():
    gates = [Says({}), Says({}), Says({}, about=[])]
    admission = Admission(gates, followers=gates[1:])
    admission.ended([Finished(FIRST, 1, 2, Result())])
    admission.left([SECOND])
    assert [gate.heard for gate in gates] == [[], *[[("ended", FIRST.key), ("left", SECOND.key)]] * 2]


def test_combined_clearance_has_the_older_read_and_the_later_start():
    gates = [Says({FIRST.key: Clear(5, not_before=70)}), Says({FIRST.key: Clear(9, not_before=60)})]
    assert Admission(gates).ahead([FIRST]) == {FIRST.key: Clear(5, 70)}


def test_last_gate_decides_jobs_that_all_earlier_ones_clear():
    back = Requeue(RequeueCause.LIMIT, "full", at=9)
    assert Admission([Says({FIRST.key: Clear(1)}), Says({FIRST.key: back})]).decide([FIRST]) == {FIRST.key: back}


def test_a_gate_that_is_not_concerned_changes_nothing():
    assert Admission([Says({FIRST.key: Clear(1)}), Says({}, about=[SECOND])]).decide([FIRST]) == {FIRST.key: Clear(1)}
