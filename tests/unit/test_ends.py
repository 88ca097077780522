"""The table of ends, cell by cell: each exit of a job leaves nothing waiting that waits for its end."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product

import pytest

from lab.world.stage import Stage
from scheduler.admission import after, limit_gate, ordering, overlap
from scheduler.groups import check, counting
from scheduler.jobs import groups
from scheduler.jobs.groups import NewGroup
from scheduler.model import ends, lifecycle
from scheduler.model.after import End, Ending, Predecessor, When, open_of, why_broken
from scheduler.model.ends import TABLE, Effect, Exit, Waiter
from scheduler.model.group import End as GroupEnd
from scheduler.model.group import GroupState
from scheduler.model.job import Claim, Job, OrderingQueue, Overlap, QueueHead, Result, RunInfo, RunLock, Status, TaskKey, changed
from scheduler.model.notifications import Notifications
from scheduler.model.spec import JobSpec, OnFailure, Ordering
from scheduler.notify.policy import of_change
from scheduler.pipeline.follow_up import wake
from scheduler.pipeline.submit import NewJob, Submission
from tests.conftest import NOW, a_job
from tests.language import ROOT

ORDERED = Ordering("line")
SPEC = JobSpec("log", {"message": "hi"})
RUNNING = a_job(ordering=ORDERED, claim=Claim("m1", "n1", NOW, True), notifications=Notifications((), ()))
WAITING = a_job(ordering=ORDERED, notifications=Notifications((), ()))
DONE = Result()

Ends = Callable[[], Job | None]
EXITS: Mapping[Exit, Ends] = {  # the job after that end, as it is stored; None: it is not
    Exit.SUCCEEDED: lambda: lifecycle.succeed(RUNNING, NOW, started_at=NOW, result=DONE),
    Exit.FAILED: lambda: lifecycle.fail(RUNNING, NOW, started_at=NOW),
    Exit.KILLED: lambda: lifecycle.kill(RUNNING, NOW, started_at=NOW, result=DONE),
    Exit.CANCELLED: lambda: lifecycle.cancel(WAITING, NOW),
    Exit.SKIPPED: lambda: lifecycle.skip(RUNNING, NOW, reason="overlap"),
    Exit.EXPIRED: lambda: lifecycle.skip(changed(WAITING, start_by=NOW), NOW, reason="it expired"),
    Exit.OWNER_DELETED: lambda: lifecycle.cancel(RUNNING, NOW, reason="its owner was deleted"),
    Exit.DELETED: lambda: None,
    Exit.PRUNED: lambda: None,
}


def of_group(out: Exit) -> Effect:
    """By the engine: a group of two whose other member has succeeded."""
    stage = Stage()
    requested = [Submission(NewJob("ann", SPEC), number) for number in (1, 2)]
    group = groups.create(NewGroup("ann", seal=True), requested, stage, random=7).group
    job, other = groups.members(group, stage, limit=9, cursor=None)[0]
    finish(stage, other, Status.SUCCEEDED)
    if out is Exit.DELETED:
        del stage.jobs.rows[job.key]
        groups.cancel(group.key, stage)  # plans a check, as each group has that jobs join one by one
        stage.clock.at += check.SETTLED_MS
        check.request_due(stage, stage.clock.now())
        stage.work_off()
    else:
        ended = EXITS[out]()
        finish(stage, job, Status.SUCCEEDED if ended is None else lifecycle.state(ended))
    if out is Exit.PRUNED:
        del stage.jobs.rows[job.key]
    found = groups.find(group.key, stage)
    counts = groups.counts(found, stage)
    assert counting.state(found) is GroupState.ENDED and sum(counts.values()) == 2, "nothing waits"
    if out is Exit.DELETED:
        return Effect.VOID if counts[GroupEnd.VOID] == 1 else Effect.NONE
    return Effect.KNOWN if out is Exit.PRUNED else Effect.COUNTS


def finish(stage: Stage, job: Job, status: Status) -> None:
    stage.jobs.rows[job.key] = changed(job, **{lifecycle.FINAL_TIMES[status]: stage.clock.now(), "slot": None})
    wake([stage.jobs.rows[job.key]], stage, now=stage.clock.now())


def of_successor(out: Exit) -> Effect:
    if out is Exit.PRUNED:  # the end was noted with the job, and the record is not read
        noted = Predecessor("x", end=End(Ending.SUCCEEDED))
        return Effect.KNOWN if not open_of([noted]) else Effect.NONE
    end = after.end_of(EXITS[out]())
    assert end is not None, "the job would wait for good"
    assert why_broken([Predecessor("x", When.ENDED, end=end)]) is None
    return Effect.MAY_START if why_broken([Predecessor("x", end=end)]) is None else Effect.SKIPS


def of_limit(out: Exit) -> Effect:
    return Effect.NONE if limit_gate.runs(EXITS[out](), RUNNING.fence) else Effect.FREE


def of_run_lock(out: Exit) -> Effect:
    origin = RunInfo("t1", 1, overlap=Overlap.QUEUE_ONE)
    following = a_job(id="following", origin=origin)
    lock = RunLock(TaskKey("ann", "t1"), RUNNING.id)
    assert not isinstance(overlap.decide(following, origin, lock, RUNNING, None), overlap.Start)
    return Effect.FREE if isinstance(overlap.decide(following, origin, lock, EXITS[out](), None), overlap.Start) else Effect.NONE


def of_ordering(out: Exit) -> Effect:
    """The next job of the key, by each rule of the ended one."""
    return Effect.PAUSE if not continues(out, OnFailure.PAUSE) and continues(out, OnFailure.CONTINUE) else Effect.CONTINUE


def continues(out: Exit, rule: OnFailure) -> bool:
    ended = EXITS[out]()
    first = None if ended is None else changed(ended, spec=replace(SPEC, ordering=Ordering("line", rule)))
    behind = a_job(id="behind", ordering=ORDERED, scheduled_at=NOW + 1)
    entries = [each for each in (first, behind) if each is not None]
    line = OrderingQueue(QueueHead(ordering.order_of(RUNNING), RUNNING.id, NOW), tuple(map(ordering.entry_of, entries)))
    return ordering.next_up(line, {each.key: each for each in entries}) is behind


def of_notice(out: Exit) -> Effect:
    before = RUNNING if out is not Exit.PRUNED else EXITS[Exit.SUCCEEDED]()
    return Effect.SENT if list(of_change(before, EXITS[out]())) else Effect.NONE


CELLS: Mapping[Waiter, Callable[[Exit], Effect]] = {
    Waiter.GROUP: of_group,
    Waiter.SUCCESSOR: of_successor,
    Waiter.LIMIT: of_limit,
    Waiter.RUN_LOCK: of_run_lock,
    Waiter.ORDERING: of_ordering,
    Waiter.NOTICE: of_notice,
}


@pytest.mark.parametrize(("out", "waiter"), list(product(Exit, Waiter)), ids=str)
def test_each_exit_of_a_job_lets_go_of_what_waits_for_it(out: Exit, waiter: Waiter) -> None:
    assert CELLS[waiter](out) is TABLE[out][waiter]


def test_every_final_status_is_an_exit() -> None:
    assert {str(status) for status in lifecycle.FINAL_TIMES} <= {str(out) for out in Exit}


def test_the_page_shows_the_table() -> None:
    assert ends.as_table() in (ROOT / "docs/internals/lifecycle.md").read_text()
