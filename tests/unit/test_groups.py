"""Groups: jobs join, their ends are counted once each, and call-backs follow."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from lab.world.stage import Stage
from scheduler.groups import check, counting, ends
from scheduler.jobs import groups
from scheduler.jobs.cancel import cancel
from scheduler.jobs.groups import Made, NewGroup
from scheduler.jobs.replay import replay
from scheduler.model import ids, lifecycle
from scheduler.model.errors import Conflict, NotFound, Unavailable
from scheduler.model.group import MOST, SPAN, CallKind, End, Group, GroupCheck, GroupKey, GroupState
from scheduler.model.job import Job, JobKey, Receipt, Result, Status, changed
from scheduler.model.spec import JobSpec
from scheduler.pipeline.follow_up import wake
from scheduler.pipeline.submit import Accepted, NewJob, Submission, submit
from scheduler.storage.ports import Written
from tests.conftest import NOW
from tests.unit.stage import Wrapped, refuse

OK = Result(output="done")
CALLS = {kind: JobSpec("log", {"message": kind.value}) for kind in CallKind}
SPEC = JobSpec("log", {"message": "hi"})


def made(stage: Stage, jobs: int = 0, *, seal: bool = True, random: int = 7, calls: Any = CALLS, delay_ms: int | None = None) -> Made:
    return groups.create(
        NewGroup("ann", "invoices", calls, seal=seal),
        [Submission(NewJob("ann", SPEC, delay_ms=delay_ms), 100 + number) for number in range(jobs)],
        stage,
        random=random,
    )


def jobs_of(stage: Stage, group: Group) -> list[Job]:
    listed, cursor = groups.members(groups.find(group.key, stage), stage, limit=10_000, cursor=None)
    assert cursor is None
    return listed


def end(stage: Stage, job: Job, status: Status = Status.SUCCEEDED, *, count: bool = True) -> Job:
    """End the job as an executor or a user does; `count`: tell its group, as whoever ends it does."""
    now, fields = stage.clock.now(), {lifecycle.FINAL_TIMES[status]: stage.clock.now(), "slot": None}
    ended = changed(job, **fields)
    stage.jobs.rows[job.key] = ended
    if count:
        wake([ended], stage, now=now)
    return ended


def calls_of(stage: Stage, group: Group) -> dict[CallKind, int]:
    """How many call-backs of each kind are stored."""
    stored = [job for job in stage.jobs.rows.values() if job.group == group.id and job.member is None]
    return {kind: count for kind in CallKind if (count := sum(job.spec == CALLS[kind] for job in stored))}


def counts(stage: Stage, group: Group) -> dict[End, int]:
    return {end: count for end, count in groups.counts(groups.find(group.key, stage), stage).items() if count}


def state(stage: Stage, group: Group) -> GroupState:
    return counting.state(groups.find(group.key, stage))


@pytest.mark.parametrize("members", [1, 5, SPAN, SPAN + 1, 40, 300])
def test_the_last_end_starts_the_call_backs_once(members: int) -> None:
    stage = Stage()
    group = made(stage, members).group
    first, *others = jobs_of(stage, group)
    assert len(others) == members - 1
    for job in others:
        end(stage, job)
        assert calls_of(stage, group) == {} and state(stage, group) is GroupState.SEALED
    assert counts(stage, group) == ({End.SUCCEEDED: members - 1} if others else {})
    end(stage, first)
    assert calls_of(stage, group) == {CallKind.ON_COMPLETE: 1, CallKind.ON_SUCCESS: 1}
    assert state(stage, group) is GroupState.ENDED and counts(stage, group) == {End.SUCCEEDED: members}


@pytest.mark.parametrize("status", [Status.FAILED, Status.KILLED, Status.CANCELLED, Status.SKIPPED])
def test_any_other_end_than_success_is_a_failure_of_the_group(status: Status) -> None:
    stage = Stage()
    group = made(stage, 3).group
    one, two, three = jobs_of(stage, group)
    end(stage, one), end(stage, two, status), end(stage, three)
    assert calls_of(stage, group) == {CallKind.ON_COMPLETE: 1, CallKind.ON_FAILURE: 1}


def test_call_backs_are_due_at_once_and_get_messages() -> None:
    stage = Stage()
    group = made(stage, 1).group
    (job,) = jobs_of(stage, group)
    before = len(stage.lanes.queues[job.lane])
    end(stage, job)
    assert len(stage.lanes.queues[job.lane]) == before + 2


@pytest.mark.parametrize("members", [3, 20])
def test_redriven_failures_bring_success_once(members: int) -> None:
    stage = Stage()
    group = made(stage, members).group
    jobs = jobs_of(stage, group)
    failed = [end(stage, job, Status.FAILED) for job in jobs[:2]]
    for job in jobs[2:]:
        end(stage, job)
    assert calls_of(stage, group) == {CallKind.ON_COMPLETE: 1, CallKind.ON_FAILURE: 1}
    stage.clock.at += 1000
    for job in failed:
        again = changed(job, failed_at=None, slot=jobs[0].slot, redrives=1)
        assert counts(stage, group)[End.FAILED] > 0
        end(stage, again)
    assert counts(stage, group) == {End.SUCCEEDED: members}
    assert calls_of(stage, group) == {CallKind.ON_COMPLETE: 1, CallKind.ON_FAILURE: 1, CallKind.ON_SUCCESS: 1}
    stage.clock.at += 1000
    end(stage, changed(failed[0], failed_at=None, slot=jobs[0].slot, redrives=2))
    assert calls_of(stage, group) == {CallKind.ON_COMPLETE: 1, CallKind.ON_FAILURE: 1, CallKind.ON_SUCCESS: 1}


@pytest.mark.parametrize("members", [2, 40])
def test_the_reader_of_the_stream_counts_what_was_not_counted(members: int) -> None:
    stage = Stage()
    group = made(stage, members).group
    ended = [end(stage, job, count=False) for job in jobs_of(stage, group)]
    assert counts(stage, group) == {}
    for _ in range(2):  # batches of a stream are delivered at least once
        for start in range(0, members, 7):
            ends.count_again(ended[start : start + 7], stage, now=stage.clock.now())
    assert counts(stage, group) == {End.SUCCEEDED: members}
    assert calls_of(stage, group) == {CallKind.ON_COMPLETE: 1, CallKind.ON_SUCCESS: 1}


WRITES = ("mark", "fill", "count", "fill_head", "end")


@pytest.mark.parametrize("members", [3, 20])
@pytest.mark.parametrize("write", [*WRITES, "put_many"])
@pytest.mark.parametrize("after", [False, True])
def test_a_crash_between_any_two_writes_of_a_count_loses_nothing(members: int, write: str, after: bool) -> None:
    """The writer ends just before or just after the write; the reader of the stream repeats the end."""
    stage = Stage()
    group = made(stage, members).group
    *others, last = jobs_of(stage, group)
    for job in others:
        end(stage, job)
    port = "jobs" if write == "put_many" else "groups"
    ended = end(stage, last, count=False)
    crashing = stage.but(**{port: Crashing(getattr(stage, port), write, after)})
    try:
        ends.count_ended([ended], crashing, now=stage.clock.now())
    except Crash:
        pass
    ends.count_again([ended], stage, now=stage.clock.now())
    assert calls_of(stage, group) == {CallKind.ON_COMPLETE: 1, CallKind.ON_SUCCESS: 1}
    assert counts(stage, group) == {End.SUCCEEDED: members}


class Crash(Exception):
    pass


class Crashing:
    """A port whose user ends at one of its writes."""

    def __init__(self, port: Any, write: str, after: bool) -> None:
        self._port, self._write, self._after = port, write, after

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._port, name)
        if name != self._write:
            return call

        def crash(*args: Any, **kwargs: Any) -> None:
            if self._after:
                call(*args, **kwargs)
            raise Crash

        return crash


def test_no_call_back_starts_before_the_seal() -> None:
    stage = Stage()
    group = made(stage, 2, seal=False).group
    for job in jobs_of(stage, group):
        end(stage, job)
    assert calls_of(stage, group) == {} and state(stage, group) is GroupState.OPEN
    sealed = groups.seal(group.key, stage)
    assert counting.state(sealed) is GroupState.ENDED and calls_of(stage, group) == {CallKind.ON_COMPLETE: 1, CallKind.ON_SUCCESS: 1}
    groups.seal(group.key, stage)
    assert sum(calls_of(stage, group).values()) == 2


@pytest.mark.parametrize("members", [0, 5, SPAN, 100])
def test_an_empty_or_ended_group_ends_when_it_is_sealed(members: int) -> None:
    stage = Stage()
    group = made(stage, seal=False).group
    joined = stage.post(*[NewJob("ann", SPEC, group=group.id) for _ in range(members)])
    for job in joined:
        assert job is not None
        end(stage, job)
    groups.seal(group.key, stage)
    assert calls_of(stage, group) == {CallKind.ON_COMPLETE: 1, CallKind.ON_SUCCESS: 1}
    assert counts(stage, group) == ({End.SUCCEEDED: members} if members else {})


def test_an_empty_sealed_group_ends_at_once() -> None:
    stage = Stage()
    group = made(stage, 0).group
    assert counting.state(group) is GroupState.ENDED and calls_of(stage, group) == {CallKind.ON_COMPLETE: 1, CallKind.ON_SUCCESS: 1}


def test_jobs_join_until_the_seal() -> None:
    stage = Stage()
    group = made(stage, seal=False).group
    for _ in range(10):
        assert None not in stage.post(*[NewJob("ann", SPEC, group=group.id) for _ in range(30)])
    assert len(jobs_of(stage, group)) == 300 and sorted(job.member or 0 for job in jobs_of(stage, group)) == list(range(300))
    groups.seal(group.key, stage)
    before = len(stage.jobs.rows)
    (refused,) = submitted(stage, NewJob("ann", SPEC, group=group.id))
    assert isinstance(refused, Conflict) and "is sealed" in refused.message and refused.details[0]["field"] == "group"
    assert len(stage.jobs.rows) == before


def submitted(stage: Stage, *requests: NewJob) -> list[Any]:
    from scheduler.pipeline.submit import submit_all

    return list(submit_all([Submission(request, 5_000 + number) for number, request in enumerate(requests)], stage))


def test_only_the_jobs_of_a_closed_group_are_refused() -> None:
    stage = Stage()
    refused, stored = submitted(stage, NewJob("ann", SPEC, group=ids.new(1, 1)), NewJob("ann", SPEC))
    assert isinstance(refused, Conflict) and "there is no group" in refused.message and isinstance(stored, Accepted)


def test_a_group_of_another_owner_cannot_be_joined() -> None:
    stage = Stage()
    group = made(stage, seal=False).group
    (refused,) = submitted(stage, NewJob("eve", SPEC, group=group.id))
    assert isinstance(refused, Conflict)
    with pytest.raises(NotFound):
        groups.find(GroupKey("eve", group.id), stage)


def test_a_group_that_is_full_takes_no_more_jobs() -> None:
    stage = Stage()
    group = made(stage, seal=False).group
    stage.groups.heads[group.key] = replace(stage.groups.heads[group.key], members=MOST)
    (refused,) = submitted(stage, NewJob("ann", SPEC, group=group.id))
    assert isinstance(refused, Conflict) and "more than 1,000,000 members" in refused.message


def test_a_number_whose_job_was_not_stored_is_void() -> None:
    """Its key belongs to another job."""
    stage = Stage()
    group = made(stage, seal=False).group
    named = replace(SPEC, key="one")
    stage.post(NewJob("ann", named, delay_ms=60_000))
    refused, stored = submitted(stage, NewJob("ann", named, group=group.id), NewJob("ann", SPEC, group=group.id))
    assert isinstance(refused, Conflict) and isinstance(stored, Accepted)
    groups.seal(group.key, stage)
    end(stage, *jobs_of(stage, group))
    assert counts(stage, group) == {End.SUCCEEDED: 1, End.VOID: 1}
    assert calls_of(stage, group) == {CallKind.ON_COMPLETE: 1, CallKind.ON_SUCCESS: 1}


def test_a_job_that_a_table_refused_keeps_the_group_open_until_a_check() -> None:
    """It may be stored nevertheless."""
    stage = Stage()
    group = made(stage, seal=False).group
    view = stage.but(jobs=Wrapped(stage.jobs, put=refuse))
    assert stage.post(NewJob("ann", SPEC, group=group.id)) and submitted(view, NewJob("ann", SPEC, group=group.id)) == [None]
    groups.seal(group.key, stage)
    end(stage, *jobs_of(stage, group))
    assert calls_of(stage, group) == {}
    work_off(stage, 2 * check.SETTLED_MS)
    assert counts(stage, group) == {End.SUCCEEDED: 1, End.VOID: 1} and state(stage, group) is GroupState.ENDED


@pytest.mark.parametrize("jobs", [3, 40])
def test_jobs_that_were_refused_at_first_are_members_after_the_repeat(jobs: int) -> None:
    stage = Stage()

    def create(view: Any) -> Made:
        asked = [Submission(NewJob("ann", SPEC), number) for number in range(jobs)]
        return groups.create(NewGroup("ann", calls=CALLS, seal=True), asked, view, random=1, receipt=a_receipt())

    def refuse_last(_: Any, drafts: Sequence[Job]) -> list[Written]:
        return [*stage.jobs.put_many(drafts[:-1]), Written.REFUSED]

    with pytest.raises(Unavailable):
        create(stage.but(jobs=Wrapped(stage.jobs, put_many=refuse_last)))
    group = create(stage).group
    *others, last = jobs_of(stage, group)
    for job in others:
        end(stage, job)
    assert calls_of(stage, group) == {} and len(others) == jobs - 1
    end(stage, last)
    assert counts(stage, group) == {End.SUCCEEDED: jobs}
    assert calls_of(stage, group) == {CallKind.ON_COMPLETE: 1, CallKind.ON_SUCCESS: 1}


def a_receipt(key: str = "k", body: str = "f") -> Receipt:
    return Receipt("ann", key, body, 0, 77)


@pytest.mark.parametrize("jobs", [0, 3, 40])
@pytest.mark.parametrize("seal", [True, False])
def test_a_repeated_request_makes_nothing_twice(jobs: int, seal: bool) -> None:
    stage = Stage()

    def receipt(key: str, number: int) -> Receipt:
        return replace(a_receipt(key), random=number + stage.clock.now(), at=stage.clock.now())

    def create() -> Made:
        asked = [Submission(NewJob("ann", SPEC, delay_ms=60_000), 9, receipt(f"k#{number}", number)) for number in range(jobs)]
        return groups.create(NewGroup("ann", seal=seal), asked, stage, random=1, receipt=receipt("k", 0))

    first = create()
    stage.clock.at += 5_000
    again = create()
    assert again.replayed and again.group.key == first.group.key and len(stage.jobs.rows) == jobs == len(jobs_of(stage, first.group))
    with pytest.raises(Conflict):
        groups.create(NewGroup("ann"), [], stage, random=1, receipt=a_receipt(body="other"))


@pytest.mark.parametrize("write", ["enrol", "size_leaf", "size_node", "add"])
@pytest.mark.parametrize("after", [False, True])
def test_a_request_that_broke_off_is_completed_by_its_repeat(write: str, after: bool) -> None:
    stage = Stage()

    def create(view: Any) -> Made:
        receipt = replace(a_receipt(), at=stage.clock.now())
        asked = [Submission(NewJob("ann", SPEC), number) for number in range(40)]
        return groups.create(NewGroup("ann", calls=CALLS, seal=True), asked, view, random=1, receipt=receipt)

    with pytest.raises(Crash):
        create(stage.but(groups=Crashing(stage.groups, write, after)))
    for job in list(stage.jobs.rows.values()):
        end(stage, job)
    stage.clock.at += 3_000
    group = create(stage).group
    for job in jobs_of(stage, group):
        end(stage, job) if lifecycle.is_open(job) else None
    assert len([job for job in stage.jobs.rows.values() if job.member is not None]) == 40
    assert counts(stage, group) == {End.SUCCEEDED: 40} and calls_of(stage, group) == {CallKind.ON_COMPLETE: 1, CallKind.ON_SUCCESS: 1}


def work_off(stage: Stage, ms: int) -> None:
    """The minutes pass: the checks of groups are requested and carried out."""
    until = stage.clock.at + ms
    while stage.clock.at < until:
        stage.clock.at += 60_000
        check.request_due(stage, stage.clock.now())
        stage.work_off()


def test_a_minute_requests_all_checks_that_are_due() -> None:
    """One user's thousand open groups must not keep the check of another user's group waiting for ten minutes."""
    stage = Stage()
    for number in range(1_000):
        stage.groups.plan(None, GroupCheck(GroupKey("flood", ids.new(NOW, number)), NOW))
    stage.groups.plan(None, GroupCheck(GroupKey("ann", ids.new(NOW, 7)), NOW + 1))
    stage.clock.at = NOW + 1
    assert check.request_due(stage, NOW + 1) == 1_001
    assert check.request_due(stage, NOW + 1) == 0


def test_the_request_of_checks_ends_when_its_time_is_over() -> None:
    stage = Stage()
    for number in range(1_000):
        stage.groups.plan(None, GroupCheck(GroupKey("flood", ids.new(NOW, number)), NOW))
    stage.clock.at = NOW + check.WORK_MS
    assert check.request_due(stage, NOW) == check.MOST


def test_a_group_that_is_not_sealed_in_time_is_abandoned() -> None:
    stage = Stage()
    group = made(stage, 3, seal=False).group
    work_off(stage, groups.SEAL_WITHIN_MS - 60_000)
    assert state(stage, group) is GroupState.OPEN
    work_off(stage, 120_000)
    assert state(stage, group) is GroupState.ABANDONED and not stage.groups.checks
    for job in jobs_of(stage, group):
        end(stage, job)
    assert calls_of(stage, group) == {}
    with pytest.raises(Conflict):
        groups.seal(group.key, stage)
    (refused,) = submitted(stage, NewJob("ann", SPEC, group=group.id))
    assert isinstance(refused, Conflict) and "abandoned" in refused.message


@pytest.mark.parametrize("write", ["enrol"])
@pytest.mark.parametrize("after", [False, True])
def test_a_join_that_broke_off_keeps_no_group_open(write: str, after: bool) -> None:
    stage = Stage()
    group = made(stage, 2, seal=False).group
    with pytest.raises(Crash):
        submitted(stage.but(groups=Crashing(stage.groups, write, after)), *[NewJob("ann", SPEC, group=group.id) for _ in range(30)])
    groups.seal(group.key, stage)
    for job in jobs_of(stage, group):
        end(stage, job)
    assert calls_of(stage, group) == {}
    work_off(stage, 20 * 60_000)
    assert counts(stage, group) == {End.SUCCEEDED: 2, End.VOID: 30}
    assert calls_of(stage, group) == {CallKind.ON_COMPLETE: 1, CallKind.ON_SUCCESS: 1} and not stage.groups.checks


@pytest.mark.parametrize("members", [3, 300])
def test_a_cancel_cancels_what_waits(members: int) -> None:
    stage = Stage()
    group = made(stage, members, seal=False, delay_ms=3_600_000).group
    groups.cancel(group.key, stage)
    stage.work_off()
    assert {lifecycle.state(job) for job in jobs_of(stage, group)} == {Status.CANCELLED}
    assert counts(stage, group) == {End.CANCELLED: members} and state(stage, group) is GroupState.ENDED
    assert calls_of(stage, group) == {CallKind.ON_COMPLETE: 1, CallKind.ON_FAILURE: 1}
    groups.cancel(group.key, stage)


def test_a_cancel_leaves_running_jobs_and_catches_those_that_slip_in() -> None:
    stage = Stage()
    group = made(stage, 1, seal=False, delay_ms=3_600_000).group
    late = changed(
        jobs_of(stage, group)[0],
        id=ids.new(stage.clock.now() + 3_600_000, 99),
        key=JobKey("ann", ids.new(stage.clock.now() + 3_600_000, 99)),
        member=1,
    )
    stage.groups.allocate(group.key, 1)
    stage.groups.enrol(group.key, {1: late.id}, stage.clock.now())
    groups.cancel(group.key, stage)
    stage.work_off()
    stage.jobs.put(late)  # its request began before the cancel
    work_off(stage, 10 * 60_000)
    assert counts(stage, group) == {End.CANCELLED: 2} and state(stage, group) is GroupState.ENDED


def test_an_ended_group_cannot_be_cancelled() -> None:
    stage = Stage()
    group = made(stage, 1).group
    end(stage, *jobs_of(stage, group))
    with pytest.raises(Conflict):
        groups.cancel(group.key, stage)


def test_members_are_listed_by_their_end() -> None:
    stage = Stage()
    group = made(stage, 50).group
    jobs = jobs_of(stage, group)
    for job in jobs[10:13]:
        end(stage, job, Status.FAILED)
    listed, cursor = groups.members(groups.find(group.key, stage), stage, limit=2, cursor=None, ended=(End.FAILED, End.KILLED))
    assert [job.member for job in listed] == [10, 11] and cursor is not None
    listed, cursor = groups.members(groups.find(group.key, stage), stage, limit=2, cursor=cursor, ended=(End.FAILED, End.KILLED))
    assert [job.member for job in listed] == [12] and cursor is None


def test_a_real_cancel_of_a_member_is_an_end() -> None:
    stage = Stage()
    group = made(stage, 2, delay_ms=3_600_000).group
    for job in jobs_of(stage, group):
        cancel(job.key, stage)
    assert counts(stage, group) == {End.CANCELLED: 2} and state(stage, group) is GroupState.ENDED


def test_a_table_that_refuses_delays_the_count_only() -> None:
    stage = Stage()
    group = made(stage, 1).group
    (job,) = jobs_of(stage, group)
    ended = end(stage, job, count=False)
    wake([ended], stage.but(groups=Wrapped(stage.groups, mark=refuse)), now=stage.clock.now())
    assert counts(stage, group) == {}
    ends.count_again([ended], stage, now=stage.clock.now())
    assert state(stage, group) is GroupState.ENDED


def test_a_replay_of_a_member_leaves_the_group_as_it_is() -> None:
    stage = Stage()
    group = made(stage, 2).group
    one, two = (end(stage, job) for job in jobs_of(stage, group))
    before = groups.find(group.key, stage)
    again = submit(replay(one), stage, random=9)
    assert again.group is None and again.member is None and again.replay_of == one.id
    end(stage, again, Status.FAILED)
    assert groups.find(group.key, stage) == before and counts(stage, group) == {End.SUCCEEDED: 2}
    assert calls_of(stage, group) == {CallKind.ON_COMPLETE: 1, CallKind.ON_SUCCESS: 1} and two.group == group.id
