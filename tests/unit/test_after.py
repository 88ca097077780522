"""Jobs that wait for other jobs, from their creation to their start."""

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from scheduler.admission import after, why_waits
from scheduler.admission.after_gate import AfterGate
from scheduler.admission.why_waits import Seen
from scheduler.insight.project import project
from scheduler.jobs.cancel import cancel
from scheduler.jobs.change import reschedule
from scheduler.model import ids, lifecycle, slots
from scheduler.model.after import End, Ending, Predecessor, When
from scheduler.model.after import why_waits as predecessors_in_words
from scheduler.model.errors import Conflict, Invalid, Unavailable
from scheduler.model.job import Claim, Failure, FailureKind, Job, Lane, Message, Receipt, Result, Status, changed
from scheduler.model.lifecycle import Event
from scheduler.model.spec import JobSpec, Ordering
from scheduler.model.work import WorkItem, WorkKind
from scheduler.pipeline import followers
from scheduler.pipeline.predecessors import Named
from scheduler.pipeline.submit import Accepted, NewJob, Submission, submit_all
from scheduler.storage.aws.stream import JobChange
from scheduler.storage.ports import Change, Written
from tests.conftest import NOW, ScriptedPool
from tests.events import happen
from tests.unit.stage import Stage, Wrapped, refuse, times

MINUTE = 60_000
DEAD = Result(failure=Failure(FailureKind.PERMANENT, "404"))
AGAIN = Result(failure=Failure(FailureKind.RETRYABLE, "503"))
BAD = [each for each in Ending if each is not Ending.SUCCEEDED]


def named(*jobs: Job | str, when: When = When.SUCCEEDED) -> tuple[Named, ...]:
    return tuple(Named(when, key=each) if isinstance(each, str) else Named(when, job=each.id) for each in jobs)


def a_request(*predecessors: Job | str, when: When = When.SUCCEEDED, at: int | None = None, **fields: Any) -> NewJob:
    spec = JobSpec("log", {"message": "hello"}, key=fields.pop("key", None), ordering=fields.pop("ordering", None))
    return NewJob("ann", spec, at, after=named(*predecessors, when=when), **fields)


def submit(stage: Stage, *requests: NewJob) -> list[Any]:
    first = stage.requests + 1
    stage.requests += len(requests)
    return submit_all([Submission(each, number) for number, each in enumerate(requests, first)], stage)


def made(stage: Stage, *requests: NewJob) -> list[Job]:
    done = submit(stage, *requests)
    assert all(isinstance(each, Accepted) for each in done), done
    return [each.job for each in done]


def one(stage: Stage, *predecessors: Job | str, **fields: Any) -> Job:
    (job,) = made(stage, a_request(*predecessors, **fields))
    return job


def later(stage: Stage) -> Job:
    """A job whose time comes in an hour."""
    return one(stage, at=NOW + 3_600_000)


def started(stage: Stage, result: Result | None = None) -> list[str]:
    """Run the jobs in the lanes until the lanes are empty; the ids in the order of their starts."""
    found: list[str] = []
    for _ in range(30):
        for lane in Lane:
            pool = ScriptedPool(stage.clock, result=result)
            if items := stage.receive(lane):
                stage.execute(items, pool=pool, lane=lane)
            found += [job.id for job, _ in pool.starts]
        stage.work_off()
        stage.clock.advance(100)
    return found


def end(stage: Stage, job: Job, event: Event = Event.SUCCEED) -> Job:
    """The job ended by a process that ended before it noted that with anybody."""
    before = stage.stored(job)
    if before.claim is None and event in (Event.SUCCEED, Event.KILL):
        before = lifecycle.claim(before, claim=CLAIM)
        assert stage.jobs.change([Change(stage.stored(job), before)]) == [Written.YES]
    after = happen(before, event, stage.clock.now(), started_at=NOW, result=Result("x"), reason="because", due_at=NOW, slot=before.slot)
    assert stage.jobs.change([Change(before, after)]) == [Written.YES]
    return after


def state(stage: Stage, job: Job) -> Status:
    return lifecycle.state(stage.stored(job))


ENDS: dict[Ending, Event] = {
    Ending.SUCCEEDED: Event.SUCCEED,
    Ending.FAILED: Event.FAIL,
    Ending.KILLED: Event.KILL,
    Ending.CANCELLED: Event.CANCEL,
    Ending.SKIPPED: Event.SKIP,
}
CLAIM = Claim("m", "n", NOW, alone=False)


# creation


def test_a_job_waits_for_an_open_one_far_from_its_time() -> None:
    stage = Stage()
    first = later(stage)
    second = one(stage, first)
    assert second.after == (Predecessor(first.id),) and stage.stored(second).after == second.after
    assert slots.start_of(slots.minute(second.slot or "")) >= NOW + after.FIRST_MS - MINUTE
    assert stage.stored(first).followed is not None and stage.waiting(Lane.ONE_TIME) == []
    assert lifecycle.status(second, NOW + 1) is Status.SCHEDULED
    assert why_waits.reason(second, Seen(), NOW) == f"after: it waits for 1 of 1 jobs: {first.id}"


def test_a_call_with_many_predecessors_takes_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()
    before = made(stage, *(a_request(at=NOW + 3_600_000) for _ in range(20)))
    asked, until = list[Job](), after.until
    monkeypatch.setattr(after, "until", lambda job: (asked.append(job), until(job))[1])
    made(stage, *(a_request(*before) for _ in range(50)))
    pairs = 50 * len(before)
    assert len(asked) <= 5 * pairs


def test_a_job_after_one_that_succeeded_starts_at_once() -> None:
    stage = Stage()
    first = one(stage)
    assert started(stage) == [first.id]
    second = one(stage, first)
    assert second.after[0].end == End(Ending.SUCCEEDED) and started(stage) == [second.id]


def test_a_job_after_one_that_failed_is_skipped_at_creation_and_says_why() -> None:
    stage = Stage()
    first = later(stage)
    end(stage, first, Event.FAIL)
    second = one(stage, first)
    assert lifecycle.state(second) is Status.SKIPPED and stage.stored(second).reason == f"after: job {first.id} failed"
    assert started(stage) == []


@pytest.mark.parametrize(
    ("predecessors", "field", "rule"),
    [
        ((Named(job=ids.new(NOW, 99)),), "after.0.job", "names no job"),
        ((Named(key="nobody"),), "after.0.key", "names no job"),
        ((Named(key="mine"),), "after.0.key", "must not name the job itself"),
    ],
)
def test_a_bad_predecessor_is_refused_and_stores_nothing(predecessors: Any, field: str, rule: str) -> None:
    stage = Stage()
    (done,) = submit(stage, replace(a_request(key="mine"), after=predecessors))
    assert isinstance(done, Invalid) and done.details[0]["field"] == field and rule in done.details[0]["rule"]
    assert not stage.jobs.rows and not stage.followers.stored


def test_the_same_predecessor_twice_is_refused() -> None:
    stage = Stage()
    first = one(stage, at=NOW + 3_600_000, key="first")
    (done,) = submit(stage, a_request(first, "first"))
    assert isinstance(done, Invalid) and done.details == [{"field": "after.1.key", "rule": "names the same job as after.0.job"}]


def test_a_key_binds_to_the_id_of_its_job_at_creation() -> None:
    stage = Stage()
    first = one(stage, at=NOW + 3_600_000, key="nightly")
    second = one(stage, "nightly")
    cancel(first.key, stage)
    again = one(stage, at=NOW + 3_600_000, key="nightly")
    assert [each.id for each in stage.stored(second).after] == [first.id] != [again.id]


def test_a_job_may_wait_for_a_later_one_of_its_call() -> None:
    stage = Stage()
    second, first = made(stage, a_request("first"), a_request(key="first"))
    assert [each.id for each in second.after] == [first.id]
    assert started(stage) == [first.id, second.id]


def test_circles_in_a_call_are_refused_as_a_whole_and_the_rest_is_accepted() -> None:
    stage = Stage()
    requests = [a_request("b", key="a"), a_request("c", key="b"), a_request("a", key="c"), a_request("a", key="d"), a_request(key="e")]
    *circle, behind, alone = submit(stage, *requests)
    assert all(isinstance(each, Invalid) and "a → b → c → a" in each.message for each in circle), circle
    assert isinstance(behind, Conflict) and "after.0.key" in behind.message
    assert isinstance(alone, Accepted) and len(stage.jobs.rows) == 1


def test_a_job_is_refused_with_a_predecessor_of_its_call() -> None:
    stage = Stage()
    one(stage, at=NOW + 3_600_000, key="taken")
    refused, behind = submit(stage, a_request(key="taken"), a_request("taken"))
    assert isinstance(refused, Conflict) and isinstance(behind, Conflict) and len(stage.jobs.rows) == 1


def test_a_refused_put_refuses_the_jobs_behind_it() -> None:
    stage = Stage()
    stage.jobs = Wrapped(stage.jobs, put=times(1, refuse))
    first, second = submit(stage, a_request(key=None, at=NOW), a_request())
    assert first is not None and second is not None
    stage = Stage()
    stage.jobs = Wrapped(stage.jobs, take_keys=times(1, lambda verb, takings: [Written.REFUSED for _ in takings]))
    assert submit(stage, a_request(key="first"), a_request("first")) == [None, None] and not stage.jobs.rows


def test_a_repeated_request_completes_what_the_first_one_left() -> None:
    stage = Stage()
    first = later(stage)
    receipt = Receipt("ann", "key", "f", NOW, 5)
    with pytest.raises(KeyboardInterrupt):
        submit_all([Submission(a_request(first), 5, receipt)], stage.but(followers=Wrapped(stage.followers, add=_die)))
    assert stage.stored(first).followed is None
    (done,) = submit_all([Submission(a_request(first), 6, replace(receipt, random=6))], stage)
    assert isinstance(done, Accepted) and done.replayed
    assert stage.stored(first).followed is not None and len(stage.jobs.rows) == 2


def _die(verb: Any, *args: Any) -> Any:
    raise KeyboardInterrupt


# ends


@pytest.mark.parametrize(("ending", "when"), list(product(Ending, When)))
def test_each_end_releases_or_skips(ending: Ending, when: When) -> None:
    stage = Stage()
    first = later(stage)
    second = one(stage, first, when=when)
    if ending is Ending.DELETED:
        assert stage.jobs.withdraw([first.key]) == [Written.YES]
    else:
        end(stage, first, ENDS[ending])
    stage.work.send([WorkItem(WorkKind.FOLLOW, "ann", first.id)])
    stage.work_off()
    assert stage.stored(second).after[0].end == End(ending)
    if when is When.ENDED or ending is Ending.SUCCEEDED:
        assert started(stage) == [second.id]
    else:
        verb = "" if ending is Ending.FAILED else "was "
        assert stage.stored(second).reason == f"after: job {first.id} {verb}{ending}" and started(stage) == []
        assert state(stage, second) is Status.SKIPPED


def test_a_diamond_runs_in_order() -> None:
    stage = Stage()
    jobs = made(stage, a_request("b", "c", key="d"), a_request("a", key="b"), a_request("a", key="c"), a_request(key="a"))
    done = started(stage)
    assert done[0] == jobs[3].id and done[-1] == jobs[0].id and len(done) == 4


def test_a_chain_of_1_000_runs_link_by_link() -> None:
    stage = Stage()
    chain = made(stage, *(a_request(*([str(number - 1)] if number else []), key=str(number)) for number in range(1_000)))
    done: list[str] = []
    while len(done) < 1_000 and (new := started(stage)):
        done += new
    assert done == [job.id for job in chain]


def test_a_chain_of_1_000_is_skipped_and_each_names_the_first() -> None:
    stage = Stage()
    chain = made(
        stage, *(a_request(*([str(number - 1)] if number else []), key=str(number), at=NOW + 3_600_000) for number in range(1_000))
    )
    end(stage, chain[0], Event.FAIL)
    stage.work.send([WorkItem(WorkKind.FOLLOW, "ann", chain[0].id)])
    stage.work_off()
    assert {stage.stored(job).reason for job in chain[1:]} == {f"after: job {chain[0].id} failed"}


def test_all_of_50_predecessors_must_end() -> None:
    stage = Stage()
    many = made(stage, *(a_request(key=str(number)) for number in range(50)))
    last = one(stage, *many)
    done = started(stage)
    assert len(done) == 51 and done[-1] == last.id


def test_an_end_is_noted_by_the_executor_at_once() -> None:
    stage = Stage()
    first = one(stage)
    second = one(stage, first)
    assert started(stage) == [first.id, second.id]


def test_an_executor_learns_of_a_follower_that_came_while_the_job_ran() -> None:
    stage = Stage()
    first = one(stage)
    (item,) = stage.receive()
    second: list[Job] = []

    def beside(verb: Any, changes: Any) -> Any:
        if not second:
            second.append(one(stage, first))
        return verb(changes)

    stage.execute([item], jobs=Wrapped(stage.jobs, change=beside))
    assert state(stage, first) is Status.SUCCEEDED
    assert stage.waiting(Lane.ONE_TIME) == [second[0].id] and started(stage) == [second[0].id]


def test_a_retry_is_no_end() -> None:
    stage = Stage()
    first = one(stage)
    second = one(stage, first)
    stage.execute(stage.receive(), pool=ScriptedPool(stage.clock, result=AGAIN))
    assert state(stage, first) is Status.SCHEDULED and stage.stored(second).after[0].end is None
    stage.clock.advance(5_000)
    assert started(stage) == [first.id, second.id]


def test_a_redrive_of_a_predecessor_changes_nothing_for_a_skipped_job() -> None:
    stage = Stage()
    first = one(stage)
    second = one(stage, first)
    assert started(stage, DEAD) == [first.id] and state(stage, second) is Status.SKIPPED
    dead = stage.stored(first)
    again = lifecycle.redrive(dead, stage.clock.now(), slot=slots.place(NOW, stage.clock.now(), dead.id, 2).slot)
    assert stage.jobs.change([Change(dead, again)]) == [Written.YES]
    end(stage, again)
    stage.work.send([WorkItem(WorkKind.FOLLOW, "ann", first.id)])
    stage.work_off()
    assert state(stage, second) is Status.SKIPPED


def test_a_step_for_a_redriven_job_notes_nothing() -> None:
    stage = Stage()
    first = one(stage)
    second = one(stage, first)
    stage.work.send([WorkItem(WorkKind.FOLLOW, "ann", first.id)])
    stage.work_off()
    assert stage.stored(second).after[0].end is None


def test_a_cancel_of_a_waiting_job_ends_it_and_the_jobs_behind_it() -> None:
    stage = Stage()
    first = later(stage)
    second = one(stage, first)
    third = one(stage, second)
    cancel(second.key, stage)
    assert state(stage, second) is Status.CANCELLED
    assert stage.stored(third).reason == f"after: job {second.id} was cancelled" and state(stage, third) is Status.SKIPPED


def test_an_expired_predecessor_was_skipped() -> None:
    stage = Stage()
    first = one(stage, at=NOW, expires_at=NOW + 1_000)
    second = one(stage, first)
    stage.clock.advance(5_000)
    assert started(stage) == [] and state(stage, first) is Status.SKIPPED
    assert state(stage, second) is Status.SKIPPED


def test_the_own_time_of_a_job_still_applies() -> None:
    stage = Stage()
    first = one(stage)
    second = one(stage, first, at=NOW + 3_600_000)
    slot = second.slot
    assert started(stage) == [first.id]
    kept = stage.stored(second)
    assert kept.after[0].end == End(Ending.SUCCEEDED) and (kept.slot, kept.due_at) == (slot, NOW + 3_600_000)


def test_the_end_outlives_the_record_of_the_predecessor() -> None:
    stage = Stage()
    first = one(stage)
    second = one(stage, first, at=NOW + 90 * 86_400_000)
    started(stage)
    kept = stage.stored(first)
    assert (kept.expires or 0) * 1_000 >= NOW + 120 * 86_400_000 - 1_000
    del stage.jobs.rows[first.key]
    assert after.learn([stage.stored(second)], stage)[second.key].after[0].end == End(Ending.SUCCEEDED)


def test_a_repeated_step_writes_nothing() -> None:
    stage = Stage()
    first = one(stage)
    second = one(stage, first)
    started(stage)
    before, messages = stage.stored(second), len(stage.lanes.queues[Lane.ONE_TIME])
    stage.work.send([WorkItem(WorkKind.FOLLOW, "ann", first.id)] * 3)
    stage.work_off()
    assert stage.stored(second) is before and len(stage.lanes.queues[Lane.ONE_TIME]) == messages


def test_a_step_completes_what_a_process_noted_before_it_ended() -> None:
    stage = Stage()
    first = later(stage)
    second = one(stage, first)
    end(stage, first)
    (done,) = stage.jobs.note_ends(after.notes_of(stage.stored(second), first.id, End(Ending.SUCCEEDED)))
    assert done[0] is Written.YES
    stage.work.send([WorkItem(WorkKind.FOLLOW, "ann", first.id)])
    stage.work_off()
    assert started(stage) == [second.id]


def test_many_followers_are_cared_for_page_by_page() -> None:
    stage = Stage()
    first = one(stage)
    many = [one(stage, first) for _ in range(250)]
    stage.execute(stage.receive(), pool=ScriptedPool(stage.clock))
    noted = sum(stage.stored(job).after[0].end is not None for job in many)
    assert noted == followers.FEW_OF_EXECUTORS, "the executor leaves the others to steps"
    done = stage.work_off()
    assert all(stage.stored(job).after[0].end for job in many)
    assert sum(each.published for each in done) > 200, "the dispatcher of the overflow publishes a crowd in fair order"


# the gate


def checked(stage: Stage, job: Job) -> list[str]:
    """Deliver the job to an executor, as reconciling does; the jobs that start."""
    stage.lanes.add(Message.of(stage.stored(job), stage.clock.now()), stage.clock.now())
    return started(stage)


def test_the_gate_checks_a_waiting_job_later_and_later() -> None:
    stage = Stage()
    first = later(stage)
    second = one(stage, first)
    stage.clock.advance(after.FIRST_MS)
    assert checked(stage, second) == []
    kept = stage.stored(second)
    assert kept.fence == 2 and kept.reason == f"after: it waits for 1 of 1 jobs: {first.id}"
    assert slots.start_of(slots.minute(kept.slot or "")) >= NOW + 3 * after.FIRST_MS - MINUTE


def test_the_gate_learns_of_an_end_that_nobody_noted() -> None:
    stage = Stage()
    first = later(stage)
    second, third = one(stage, first), one(stage, first, when=When.ENDED)
    end(stage, first, Event.FAIL)
    assert checked(stage, second) == [] and state(stage, second) is Status.SKIPPED
    assert checked(stage, third) == [third.id]
    assert stage.stored(third).after[0].end == End(Ending.FAILED)


def test_the_gate_repairs_the_records_of_a_creation_that_ended_early() -> None:
    stage = Stage()
    first = later(stage)
    broken = stage.but(followers=Wrapped(stage.followers, add=refuse))
    (done,) = submit_all([Submission(a_request(first), 1_000)], broken)
    assert isinstance(done, Accepted) and stage.stored(first).followed is None
    checked(stage, done.job)
    assert stage.stored(first).followed is not None and state(stage, done.job) is Status.SCHEDULED
    cancel(first.key, stage)
    assert state(stage, done.job) is Status.SKIPPED


def test_the_gate_lets_nobody_through_while_a_table_refuses() -> None:
    stage = Stage()
    first = later(stage)
    second = one(stage, first)
    (item,) = _delivered(stage, second)
    pool = ScriptedPool(stage.clock)
    stage.execute([item], pool=pool, followers=Wrapped(stage.followers, add=refuse))
    assert not pool.starts and state(stage, second) is Status.SCHEDULED


def _delivered(stage: Stage, job: Job) -> list[Any]:
    stage.lanes.add(Message.of(stage.stored(job), stage.clock.now()), stage.clock.now())
    return stage.receive()


def test_an_end_while_an_executor_has_the_waiting_job_is_not_lost() -> None:
    stage = Stage()
    first = later(stage)
    second = one(stage, first)
    (item,) = _delivered(stage, second)

    def change(verb: Any, changes: Any) -> Any:
        end(stage, first)
        followers.care_for([stage.stored(first)], stage)
        return verb(changes)

    stage.execute([item], jobs=Wrapped(stage.jobs, change=times(1, change)))
    assert started(stage) == [second.id]


def test_jobs_without_predecessors_do_not_concern_the_gate() -> None:
    stage = Stage()
    gate = AfterGate(stage)
    assert not gate.concerns(one(stage))
    assert not gate.concerns(changed(one(stage), after=(Predecessor("x", end=End(Ending.SUCCEEDED)),)))
    assert gate.concerns(changed(one(stage), after=(Predecessor("x", end=End(Ending.FAILED)),)))


# with other rules


def test_a_waiting_job_does_not_hold_up_the_queue_of_its_ordering_key() -> None:
    stage = Stage()
    key = Ordering("k")
    second, first = made(stage, a_request("first", ordering=key), a_request(key="first", ordering=key))
    assert second.id < first.id
    assert started(stage) == [first.id, second.id]


def test_a_change_of_its_time_keeps_what_a_job_waits_for() -> None:
    stage = Stage()
    first = later(stage)
    second = one(stage, first)
    moved = reschedule(second.key, {"scheduled_at": NOW + 600_000}, stage)
    assert stage.stored(moved).after == second.after
    end(stage, first)
    followers.care_for([stage.stored(first)], stage)
    kept = stage.stored(second)
    assert kept.due_at == NOW + 600_000 and slots.minute(kept.slot or "") == slots.minute_of(NOW + 600_000)


def test_a_changed_job_waits_on() -> None:
    stage = Stage()
    first = later(stage)
    second = one(stage, first)
    reschedule(second.key, {"scheduled_at": NOW + 1_000}, stage)
    stage.clock.advance(1_000)
    assert started(stage) == [] and "it waits for 1 of 1" in (stage.stored(second).reason or "")


# the stream


def test_project_requests_a_step_for_each_end_that_others_wait_for() -> None:
    stage = Stage()
    first, other = later(stage), later(stage)
    one(stage, first)
    before = stage.stored(first)
    ended, plain = end(stage, first), end(stage, other)
    steps = [_change(before, ended), _change(stage.stored(other), plain), _change(before, before), _change(ended, None)]
    project("s", steps, stage)
    assert stage.asked == [WorkItem(WorkKind.FOLLOW, "ann", first.id)]
    with pytest.raises(Unavailable):
        project("s", steps, stage.but(work=Wrapped(stage.work, send=lambda verb, items, **_: list(items))))


def test_project_requests_a_step_for_a_job_that_was_deleted_unstarted() -> None:
    stage = Stage()
    first = later(stage)
    second = one(stage, first)
    before = stage.stored(first)
    stage.jobs.withdraw([first.key])
    project("s", [_change(before, None)], stage)
    stage.work_off()
    assert stage.stored(second).reason == f"after: job {first.id} was deleted"


_numbers = iter(range(10_000))


def _change(before: Job | None, now: Job | None) -> Any:
    return JobChange(f"{next(_numbers):040}", before, now)


def test_waiting_jobs_count_for_no_start_delay() -> None:
    stage = Stage()
    first = one(stage)
    second = one(stage, first)
    started(stage)
    before, ended = stage.stored(second), stage.stored(second)
    before = changed(ended, slot="2026-01-01T00:00#00", completed_at=None)
    assert project("s", [_change(before, ended)], stage).start_delays_ms == []


def test_a_waiting_job_is_neither_due_nor_late() -> None:
    stage = Stage()
    first = later(stage)
    second = one(stage, first)
    long_after = NOW + 1_800_000
    assert not why_waits.is_due(second, long_after) and not lifecycle.is_late(second, long_after)
    assert lifecycle.status(second, long_after) is Status.SCHEDULED
    free = changed(second, after=(Predecessor(first.id, end=End(Ending.SUCCEEDED)),))
    assert why_waits.is_due(free, long_after) and lifecycle.status(free, long_after) is Status.QUEUED
    assert why_waits.reason(changed(free, reason="after: it waits for 1 of 1 jobs: x"), Seen(), long_after) is None


# words


def test_the_reason_lists_the_first_jobs_and_counts_the_others() -> None:
    five = [Predecessor(str(number)) for number in range(5)]
    assert predecessors_in_words(five) == "after: it waits for 5 of 5 jobs: 0, 1, 2 and 2 more"
    assert predecessors_in_words([replace(five[0], end=End(Ending.SUCCEEDED)), five[1]]) == "after: it waits for 1 of 2 jobs: 1"


def test_a_check_is_never_behind_the_expiry() -> None:
    stage = Stage()
    first = later(stage)
    second = one(stage, first, expires_at=NOW + 60_000)
    assert after.check_at(second, NOW) == NOW + 60_000


# cost


def test_a_fan_in_of_50_costs_one_record_and_one_note_for_each_edge() -> None:
    stage = Stage()
    writes: dict[str, int] = {}

    def counted(name: str) -> Any:
        def call(verb: Any, entries: Any, *args: Any, **more: Any) -> Any:
            writes[name] = writes.get(name, 0) + len(entries)
            return verb(entries, *args, **more)

        return call

    many = made(stage, *(a_request(key=str(number), at=NOW + 3_600_000) for number in range(50)))
    stage.jobs = Wrapped(stage.jobs, **{name: counted(name) for name in ("put_many", "follow", "note_ends", "change")})
    stage.followers = Wrapped(stage.followers, add=counted("add"))
    successors = [one(stage, *many) for _ in range(100)]
    assert writes == {"add": 5_000, "follow": 50}, "a later job finds the marks of the first one"
    for job in many:
        end(stage, job)
        stage.work.send([WorkItem(WorkKind.FOLLOW, "ann", job.id)])
        stage.work_off()
    moves = writes.pop("change") - 2 * 50  # without those of `end`: a claim and an end
    assert writes == {"add": 5_000, "follow": 50, "note_ends": 5_000}
    assert moves <= 2 * 100 and all(stage.stored(job).after[49].end for job in successors)


def test_jobs_without_predecessors_cost_no_call_more() -> None:
    stage = Stage()
    calls: list[str] = []

    def refused(verb: Any, *args: Any, **more: Any) -> Any:
        calls.append(verb.__name__)
        return verb(*args, **more)

    stage.followers = Wrapped(stage.followers, add=refused, of=refused)
    stage.jobs = Wrapped(stage.jobs, follow=refused, note_ends=refused, key_entries=refused)
    first = one(stage)
    assert started(stage) == [first.id] and calls == []
