"""Jobs that wait for a group."""

from typing import Any

import pytest

from lab.world.stage import Stage
from scheduler.jobs import groups
from scheduler.jobs.groups import NewGroup
from scheduler.model import ids, lifecycle
from scheduler.model.after import Ending, When
from scheduler.model.errors import Invalid
from scheduler.model.group import Group
from scheduler.model.job import Job, Status, changed
from scheduler.model.spec import JobSpec
from scheduler.pipeline.follow_up import wake
from scheduler.pipeline.predecessors import Named
from scheduler.pipeline.submit import Accepted, NewJob, Submission, submit_all

SPEC = JobSpec("log", {"message": "hi"})


def a_group(stage: Stage, jobs: int = 2, *, seal: bool = True) -> Group:
    asked = [Submission(NewJob("ann", SPEC), 100 + number) for number in range(jobs)]
    return groups.create(NewGroup("ann", seal=seal), asked, stage, random=7).group


def members(stage: Stage, group: Group) -> list[Job]:
    return groups.members(groups.find(group.key, stage), stage, limit=100, cursor=None)[0]


def asked(stage: Stage, group: Group | str, when: When = When.SUCCEEDED, **fields: Any) -> Any:
    id = group if isinstance(group, str) else group.id
    stage.requests += 1
    (done,) = submit_all([Submission(NewJob("ann", SPEC, after=(Named(when, group=id),), **fields), stage.requests)], stage)
    return done


def successor(stage: Stage, group: Group, when: When = When.SUCCEEDED) -> Job:
    done = asked(stage, group, when)
    assert isinstance(done, Accepted), done
    return done.job


def end(stage: Stage, job: Job, status: Status = Status.SUCCEEDED) -> None:
    ended = changed(job, **{lifecycle.FINAL_TIMES[status]: stage.clock.now(), "slot": None})
    stage.jobs.rows[job.key] = ended
    wake([ended], stage, now=stage.clock.now())
    stage.work_off()


def sent(stage: Stage, job: Job) -> bool:
    """Whether a message of the job is in a lane."""
    return any(queued.message.key == job.key for queue in stage.lanes.queues.values() for queued in queue.values())


def test_the_end_of_the_last_member_lets_the_job_start() -> None:
    stage = Stage()
    group = a_group(stage)
    job, (one, two) = successor(stage, group), members(stage, group)
    end(stage, one)
    assert not sent(stage, job)
    end(stage, two)
    stored = stage.jobs.rows[job.key]
    assert sent(stage, job) and [each.end and each.end.ending for each in stored.after] == [Ending.SUCCEEDED]


@pytest.mark.parametrize(("when", "status"), [(When.SUCCEEDED, Status.SKIPPED), (When.ENDED, Status.SCHEDULED)])
def test_a_group_that_has_not_succeeded_is_a_failed_predecessor(when: When, status: Status) -> None:
    stage = Stage()
    group = a_group(stage)
    job, (one, two) = successor(stage, group, when), members(stage, group)
    end(stage, one, Status.CANCELLED), end(stage, two)
    stored = stage.jobs.rows[job.key]
    assert lifecycle.state(stored) is status
    if status is Status.SKIPPED:
        assert stored.reason == f"after: group {group.id} failed"


def test_a_job_for_a_group_that_has_ended_starts_at_once() -> None:
    stage = Stage()
    group = a_group(stage, 1)
    end(stage, *members(stage, group))
    assert sent(stage, successor(stage, group))


def test_only_a_sealed_group_can_be_named() -> None:
    stage = Stage()
    group = a_group(stage, seal=False)
    refused = asked(stage, group)
    assert isinstance(refused, Invalid) and refused.details == [
        {"field": "after.0.group", "rule": "must name a sealed group: jobs may still join this one"}
    ]
    unknown = asked(stage, ids.new(1, 1))
    assert isinstance(unknown, Invalid) and unknown.details[0]["rule"] == "names no group: there is no group with this id"


def test_an_end_that_nobody_noted_is_found_by_the_stream_of_the_group() -> None:
    from scheduler.groups import ends

    stage = Stage()
    group = a_group(stage, 1)
    job, (member,) = successor(stage, group), members(stage, group)
    send, stage.work.send = stage.work.send, lambda items, **_: []  # the steps are lost
    end(stage, member)
    assert not sent(stage, job)
    stage.work.send = send
    ends.note_sealed(groups.find(group.key, stage), stage, now=stage.clock.now())
    stage.work_off()
    assert sent(stage, job)


@pytest.mark.parametrize("seal", [True, False])
def test_a_group_whose_job_names_no_predecessor_stores_nothing(seal: bool) -> None:
    stage = Stage()
    bad = NewJob("ann", SPEC, after=(Named(job=ids.new(1, 1)),))
    with pytest.raises(Invalid) as refused:
        groups.create(NewGroup("ann", seal=seal), [Submission(NewJob("ann", SPEC), 1), Submission(bad, 2)], stage, random=7)
    assert refused.value.details[0]["field"] == "jobs[1].after.0.job" and not stage.jobs.rows
