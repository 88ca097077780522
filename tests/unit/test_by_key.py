"""Puts, finds and cancels by key while other requests and executors write in between."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from scheduler.jobs import by_key
from scheduler.jobs.by_key import OnConflict, OnStarted, Put, PutOutcome, PutRules, put
from scheduler.jobs.change import reschedule
from scheduler.model.errors import Conflict, Unavailable
from scheduler.model.job import Job, KeyEntry, Lane, OrderKey, OwnKey, RunInfo
from scheduler.model.spec import JobSpec, Ordering
from scheduler.pipeline.submit import Accepted, NewJob, Submission, submit_all
from scheduler.storage.ports import KEY_RETENTION_MS, KeyTaking, Written
from scheduler.targets.job_context import JobContext
from tests.conftest import NOW
from tests.unit.stage import Stage, Wrapped, refuse

HOUR, DAY = 3_600_000, 86_400_000
OWN = OwnKey("ann", "order:17")


def request(
    text: str = "m", *, at: int | None = NOW + HOUR, ordering: str | None = None, key: str | None = OWN.key, by: str | None = None
) -> NewJob:
    return NewJob(OWN.owner, JobSpec("log", {"message": text}, ordering=Ordering(ordering) if ordering else None, key=key), at, put_by=by)


def use(stage: Stage, new: NewJob, number: int = 1, **rules: Any) -> Put:
    return put(new, stage, random=number, rules=PutRules(**rules))


def text(stage: Stage) -> str:
    """The content of the job that has the key."""
    return str(by_key.find_by_key(OWN, stage).spec.payload["message"])


def before_first(stage: Stage, verb: str, act: Callable[[], Any]) -> None:
    """Let something happen just before the next call of this verb of the jobs table."""
    whole = stage.jobs

    def wrapped(call: Any, *args: Any) -> Any:
        stage.jobs = whole
        act()
        return call(*args)

    stage.jobs = Wrapped(whole, **{verb: wrapped})


def claimed(stage: Stage, job: Job) -> None:
    """Let an executor take the job."""
    stage.claim(stage.hand(stage.stored(job))[0])


# races


def test_of_two_puts_at_once_one_creates_and_the_other_replaces() -> None:
    stage = Stage()
    before_first(stage, "take_keys", lambda: use(stage, request("first"), 1))
    done = use(stage, request("second"), 2)
    assert (done.outcome, text(stage), len(stage.jobs.rows)) == (PutOutcome.REPLACED, "second", 1)


def test_of_two_replacements_at_once_each_is_applied() -> None:
    stage = Stage()
    use(stage, request("old"))
    before_first(stage, "change", lambda: use(stage, request("first")))
    assert use(stage, request("second")).outcome is PutOutcome.REPLACED
    assert (text(stage), by_key.find_by_key(OWN, stage).fence) == ("second", 3)


def test_a_job_that_an_executor_takes_meanwhile_is_not_replaced() -> None:
    for on_started, ids in ((OnStarted.REFUSE, 1), (OnStarted.FOLLOW, 2)):
        stage = Stage()
        first = use(stage, request("old", at=NOW + 1_000)).job
        before_first(stage, "change", lambda stage=stage, first=first: claimed(stage, first))  # type: ignore[misc]
        if on_started is OnStarted.REFUSE:
            with pytest.raises(Conflict, match=f"{first.id}, which cannot be changed: it is about to start"):
                use(stage, request("new"), 2, on_started=on_started)
        else:
            assert use(stage, request("new"), 2, on_started=on_started).follows == first.id
        assert stage.stored(first).spec.payload == {"message": "old"} and len(stage.jobs.rows) == ids


@pytest.mark.parametrize("state", ["waits", "about to start", "started", "cancelled"])
@pytest.mark.parametrize("rule", OnConflict)
def test_a_repeated_put_changes_nothing_whatever_became_of_its_job(state: str, rule: OnConflict) -> None:
    for earlier, outcome in (
        (None, PutOutcome.CREATED),
        ("old", PutOutcome.EXTENDED if rule is OnConflict.EXTEND else PutOutcome.REPLACED),
    ):
        stage = Stage()
        if earlier is not None and rule is OnConflict.KEEP:
            continue  # a kept job is not the work of the request
        if earlier is not None:
            use(stage, request(earlier))
        asked = request(at=NOW + 1_000, by="one")
        job = use(stage, asked, 2, on_conflict=rule).job
        if state == "cancelled":
            by_key.cancel_by_key(OWN, stage)
        elif state != "waits":
            claimed(stage, job)
            stage.clock.at += 2_000 if state == "started" else 0
        before = stage.stored(job)
        again = use(stage, asked, 3, on_conflict=rule, on_started=OnStarted.FOLLOW)
        assert (again.job, again.outcome, again.repeated) == (before, outcome, True)
        assert stage.stored(job) == before and len(stage.jobs.rows) == 1


def test_a_repeated_put_enqueues_a_job_whose_first_try_ended_before_that() -> None:
    stage = Stage()
    asked = request(at=NOW + 1_000, by="one")
    whole, stage.lanes = stage.lanes, Wrapped(stage.lanes, send=lambda verb, messages, now: messages)
    job = use(stage, asked).job
    stage.lanes = whole
    assert not stage.waiting(Lane.ONE_TIME)
    use(stage, asked, 2)
    assert stage.waiting(Lane.ONE_TIME) == [job.id]


def test_a_put_that_another_one_replaced_is_applied_again() -> None:
    stage = Stage()
    use(stage, request("mine", by="one"))
    use(stage, request("theirs", by="two"))
    assert use(stage, request("mine", by="one")).outcome is PutOutcome.REPLACED and text(stage) == "mine"
    use(stage, request("other"))
    assert use(stage, request("mine", by="one")).repeated is False


def test_a_put_takes_the_key_of_a_job_that_is_cancelled_meanwhile() -> None:
    stage = Stage()
    first = use(stage, request("old")).job
    before_first(stage, "change", lambda: by_key.cancel_by_key(OWN, stage))
    done = use(stage, request("new"), 2)
    assert (done.outcome, done.follows, text(stage)) == (PutOutcome.CREATED, None, "new") and done.job.id != first.id


def test_a_cancel_finds_the_job_that_took_the_key_before() -> None:
    stage = Stage()
    use(stage, request("old"))
    by_key.cancel_by_key(OWN, stage)
    second = use(stage, request("new"), 2).job
    assert by_key.cancel_by_key(OWN, stage).id == second.id
    assert stage.stored(second).cancelled_at == NOW


def test_a_put_that_loses_every_race_is_a_conflict() -> None:
    stage = Stage()
    use(stage, request("old"))
    tries = []

    def lose(verb: Any, *args: Any) -> list[Written]:
        tries.append(stage.clock.now())
        return [Written.NO]

    stage.jobs = Wrapped(stage.jobs, change=lose)
    with pytest.raises(Conflict, match="try again"):
        use(stage, request("new"), 0b1011_0110_1101)
    pauses = [after - before for before, after in itertools.pairwise(tries)]
    assert len(tries) > 60 and min(pauses) >= 1 and max(pauses) <= by_key.LONGEST_PAUSE_MS
    assert stage.clock.at - by_key.LONGEST_PAUSE_MS <= NOW + by_key.PATIENCE_MS <= stage.clock.at


@pytest.mark.parametrize("verb", ["key_entries", "take_keys"])
def test_a_put_is_unavailable_while_the_table_refuses(verb: str) -> None:
    stage = Stage()
    stage.jobs = Wrapped(stage.jobs, **{verb: refuse if verb == "key_entries" else lambda verb, takings: [Written.REFUSED]})
    with pytest.raises(Unavailable):
        use(stage, request())
    (posted,) = _posted(stage, request())
    assert posted is None


def _posted(stage: Stage, *requests: NewJob) -> list[Any]:
    try:
        return list(submit_all([Submission(each, number) for number, each in enumerate(requests, 3)], stage))
    except Unavailable:
        return [None for _ in requests]


def test_a_refused_replacement_is_unavailable() -> None:
    stage = Stage()
    use(stage, request("old"))
    stage.jobs = Wrapped(stage.jobs, change=lambda verb, changes: [Written.REFUSED])
    with pytest.raises(Unavailable):
        use(stage, request("new"))


# POST


def test_of_two_posts_at_once_one_takes_the_key() -> None:
    stage = Stage()
    before_first(stage, "take_keys", lambda: use(stage, request("first")))
    (lost,) = _posted(stage, request("second", ordering="line"))
    assert isinstance(lost, Conflict) and lost.details[0]["field"] == "key" and text(stage) == "first"
    assert stage.orders.lines([OrderKey("ann", "line")], limit=9)[OrderKey("ann", "line")].entries == ()


def test_a_repeated_post_finds_its_own_job() -> None:
    stage = Stage()
    (first,), (again,) = _posted(stage, request()), _posted(stage, request())
    assert isinstance(first, Accepted) and isinstance(again, Accepted) and again.job.key == first.job.key
    assert len(stage.jobs.rows) == 1


def test_jobs_with_and_without_keys_are_accepted_in_order() -> None:
    stage = Stage()
    done = _posted(stage, request("a", key=None), request("b"), request("c", key=None), request("d"), request("e", key="other"))
    assert [each.job.spec.payload["message"] if isinstance(each, Accepted) else None for each in done] == ["a", "b", "c", None, "e"]
    assert stage.jobs.entries.keys() == {OWN, OwnKey("ann", "other")}


# fields that a change keeps


def test_a_put_that_is_due_soon_is_enqueued_in_every_case() -> None:
    stage = Stage()
    made = use(stage, request(at=NOW + 1_000))
    moved = use(stage, request(at=NOW + 2_000))
    later = use(stage, request(at=NOW + 1_500), on_conflict=OnConflict.EXTEND)
    sent = [each.message for each in stage.lanes.queues[Lane.ONE_TIME].values()]
    assert [(message.fence, message.due_at) for message in sent] == [(1, NOW + 1_000), (2, NOW + 2_000), (3, NOW + 1_500)]
    assert made.job.key == moved.job.key == later.job.key


def test_a_replaced_job_changes_its_ordering_queue() -> None:
    stage = Stage()
    one, other = OrderKey("ann", "one"), OrderKey("ann", "other")

    def waiting() -> list[int]:
        lines = stage.orders.lines([one, other], limit=9)
        return [len(lines[order].entries) for order in (one, other)]

    seen = []
    for ordering in (None, "one", "other", None):
        job = use(stage, request(ordering=ordering)).job
        seen.append(waiting())
        assert job.slot is not None and job.spec.ordering == (Ordering(ordering) if ordering else None)
    assert seen == [[0, 0], [1, 0], [0, 1], [0, 0]]


def test_a_put_that_lost_its_race_leaves_no_entry_in_an_ordering_queue() -> None:
    stage = Stage()
    before_first(stage, "take_keys", lambda: use(stage, request("first")))
    use(stage, request("second", ordering="line"), 2, on_conflict=OnConflict.KEEP)
    order = OrderKey("ann", "line")
    assert stage.orders.lines([order], limit=9)[order].entries == () and text(stage) == "first"


def test_the_entry_of_a_key_is_prolonged_before_a_move_far_ahead() -> None:
    stage = Stage()
    job = use(stage, request()).job
    calls: list[str] = []

    def seen(name: str) -> Callable[..., Any]:
        def call(verb: Any, *args: Any) -> Any:
            calls.append(name)
            return verb(*args)

        return call

    whole = stage.jobs
    stage.jobs = Wrapped(whole, prolong_key=seen("prolong"), change=seen("change"))
    reschedule(job.key, {"scheduled_at": NOW + 100 * DAY}, stage)
    use(stage, request(at=NOW + KEY_RETENTION_MS), on_conflict=OnConflict.EXTEND)
    assert calls == ["change", "prolong", "change"]
    stage.jobs = Wrapped(whole, prolong_key=lambda verb, job: Written.REFUSED)
    with pytest.raises(Unavailable):
        use(stage, request(at=NOW + 2 * KEY_RETENTION_MS))
    assert stage.stored(job).scheduled_at == NOW + KEY_RETENTION_MS


def test_receivers_learn_the_key_of_a_job_or_of_its_task() -> None:
    job = use(Stage(), request()).job
    alone = JobContext.of(job, None)
    run = JobContext.of(replace(job, origin=RunInfo("task", 1)), None)
    assert [(each.job_key, each.task_key) for each in (alone, run)] == [(OWN.key, None), (None, OWN.key)]


def test_a_run_of_a_task_has_no_entry_for_the_key_of_its_task() -> None:
    stage = Stage()
    job = use(stage, request()).job
    entry = stage.jobs.entries[OWN]
    assert (entry, job.own_key, job.task_key) == (KeyEntry(OWN, job.id), OWN, None)
    assert stage.jobs.take_keys([KeyTaking(entry, replace(job, id=job.id[:-1] + "Z"))]) == [Written.YES]
