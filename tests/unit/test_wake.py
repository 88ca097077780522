"""When a run has ended, the jobs that waited for it are enqueued."""

from dataclasses import replace
from typing import Any

import pytest

from scheduler.admission.gate import Requeue
from scheduler.model import ids
from scheduler.model.job import Claim, Job, Lane, Misfire, Overlap, RequeueCause, RunInfo, RunLock, TaskKey
from scheduler.pipeline.follow_up import released, successors, wake
from scheduler.storage.ports import Written
from tests.conftest import NOW, a_job
from tests.unit.stage import Stage, Wrapped, refuse

TASK = TaskKey("ann", "t1")
BY_HAND = RunInfo("t1", 1, overlap=Overlap.QUEUE_ONE)
ENDED = a_job(slot=None, completed_at=NOW, origin=BY_HAND)


def a_stage(waiting: Job, *, holder: str = ENDED.id) -> Stage:
    """A task whose run lock that run has, and for which that job waits."""
    stage = Stage()
    stage.jobs.put(waiting)
    assert stage.tasks.hold([(None, RunLock(TASK, holder, waiting.id))]) == [Written.YES]
    return stage


def woken(stage: Stage, ended: Job = ENDED, **ports: Any) -> list[Job]:
    return successors([ended], stage.but(**ports), now=NOW)


def waiting(**fields: Any) -> Job:
    return a_job(**({"origin": BY_HAND, "fence": 2, "lane": Lane.RECURRING} | fields))


def test_a_job_that_waits_for_the_ended_run_is_woken() -> None:
    job = waiting()
    assert woken(a_stage(job)) == [job]


@pytest.mark.parametrize(
    "fields",
    [
        {"slot": None, "cancelled_at": NOW},
        {"claim": Claim("m1", "n1", NOW, True)},
        {"fence": 1},
        {"due_at": NOW + 1},
    ],
    ids=["over", "claimed", "never requeued", "not due"],
)
def test_a_job_that_needs_no_message_gets_none(fields: dict[str, Any]) -> None:
    assert woken(a_stage(waiting(**fields))) == []


def test_the_end_of_a_run_without_the_run_lock_wakes_no_job() -> None:
    assert woken(a_stage(waiting(), holder="another")) == []


@pytest.mark.parametrize("origin", [None, replace(BY_HAND, overlap=Overlap.SKIP), replace(BY_HAND, overlap=Overlap.ALLOW)])
def test_the_end_of_a_job_without_successors_reads_nothing(origin: RunInfo | None) -> None:
    stage = a_stage(waiting())
    ended = replace(ENDED, origin=origin)
    assert woken(stage, ended, tasks=Wrapped(stage.tasks, holders=None), jobs=Wrapped(stage.jobs, get_many=None)) == []


@pytest.mark.parametrize("ahead", [0, 1])
def test_the_next_run_of_a_row_is_read_once_it_is_due(ahead: int) -> None:
    origin = RunInfo("t1", 4, NOW, Overlap.ALLOW, Misfire.RUN_ALL, next_at=NOW + ahead)
    following = waiting(id=ids.run(NOW + ahead, "t1", 4), scheduled_at=NOW + ahead, due_at=NOW)
    stage = Stage()
    stage.jobs.put(following)
    jobs = Wrapped(stage.jobs, get_many=None) if ahead else stage.jobs
    assert woken(stage, replace(ENDED, origin=origin), jobs=jobs) == ([] if ahead else [following])


@pytest.mark.parametrize("ports", [{"tasks": "holders"}, {"jobs": "get_many"}])
def test_no_job_is_woken_while_a_table_refuses(ports: dict[str, str]) -> None:
    stage = a_stage(waiting())
    assert woken(stage, **{port: Wrapped(getattr(stage, port), **{verb: refuse}) for port, verb in ports.items()}) == []


def test_a_refusing_lane_raises_nothing() -> None:
    stage = a_stage(waiting())
    wake([ENDED], stage.but(lanes=Wrapped(stage.lanes, send=refuse)), now=NOW)
    assert stage.waiting(Lane.RECURRING) == []


def test_a_requeued_job_goes_on_if_its_blocker_has_ended_or_is_gone() -> None:
    stage = Stage()
    still, over, gone = a_job(), ENDED, a_job()
    for job in (still, over):
        stage.jobs.put(job)
    backs = [(waiting(), Requeue(RequeueCause.OVERLAP, "", blocker.key)) for blocker in (still, over, gone)]
    assert released(backs, stage, now=NOW) == [backs[1][0], backs[2][0]]
    assert released(backs, stage.but(jobs=Wrapped(stage.jobs, get_many=refuse)), now=NOW) == []
