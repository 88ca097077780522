"""The row of gates: each asked about what the one before lets through."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from scheduler.admission.gate import Admission, Clear, Requeue, Verdict
from scheduler.model.job import Job, JobKey, RequeueCause
from tests.conftest import a_job

FIRST, SECOND = a_job(id="01H000000000000000000000AA"), a_job(id="01H000000000000000000000BB")


@dataclass
class Says:
    """A gate with its answers written down."""

    answers: dict[JobKey, Verdict]
    about: Sequence[Job] = (FIRST, SECOND)
    asked: list[JobKey] = field(default_factory=list)

    def concerns(self, job: Job) -> bool:
        return job in self.about

    def ahead(self, jobs: Sequence[Job]) -> dict[JobKey, Verdict]:
        return self.decide(jobs)

    def decide(self, jobs: Sequence[Job]) -> dict[JobKey, Verdict]:
        self.asked += [job.key for job in jobs]
        return self.answers


def test_a_job_that_concerns_no_gate_is_not_asked_about():
    assert not Admission([Says({}, about=[])]).concerns(FIRST)
    assert Admission([Says({}, about=[]), Says({})]).concerns(FIRST)


def test_a_later_gate_is_asked_only_about_what_the_earlier_one_lets_through():
    back = Requeue(RequeueCause.LIMIT, "not yet")
    last = Says({FIRST.key: Clear(2)})
    verdicts = Admission([Says({FIRST.key: Clear(1), SECOND.key: back}), last]).decide([FIRST, SECOND])
    assert last.asked == [FIRST.key]
    assert verdicts == {FIRST.key: Clear(1), SECOND.key: back}


def test_what_one_gate_leaves_open_has_no_verdict():
    assert Admission([Says({FIRST.key: Clear(1)}), Says({})]).decide([FIRST]) == {}


def test_a_job_may_start_by_the_older_clearance_and_at_the_later_instant():
    gates = [Says({FIRST.key: Clear(5, not_before=70)}), Says({FIRST.key: Clear(9, not_before=60)})]
    assert Admission(gates).ahead([FIRST]) == {FIRST.key: Clear(5, 70)}


def test_the_last_gate_decides_what_all_before_it_let_through():
    back = Requeue(RequeueCause.LIMIT, "full", at=9)
    assert Admission([Says({FIRST.key: Clear(1)}), Says({FIRST.key: back})]).decide([FIRST]) == {FIRST.key: back}


def test_a_gate_that_is_not_concerned_changes_nothing():
    assert Admission([Says({FIRST.key: Clear(1)}), Says({}, about=[SECOND])]).decide([FIRST]) == {FIRST.key: Clear(1)}
