from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from lambdas.rest.job_answers import JobShape
from scheduler.model import ids, instants, lifecycle, settlement, slots
from scheduler.model.errors import Conflict, TooLarge, Unavailable
from scheduler.model.job import Claim, Job, Lane, OrderKey, Receipt, RequeueCause, Result
from scheduler.model.rules import Rules
from scheduler.model.spec import JobSpec, Ordering
from scheduler.pipeline import enqueue
from scheduler.pipeline.submit import Accepted, NewJob, Submission, submit, submit_all
from scheduler.storage.memory.tasks import MemoryReceipts
from scheduler.storage.ports import RECEIPT_RETENTION_MS, Change, Written
from tests.conftest import NOW
from tests.unit.stage import Stage, Wrapped, lost_answer, refuse, times


def test_a_job_without_an_instant_is_due_now_and_enqueued() -> None:
    stage = Stage()
    job = stage.submit()
    assert (job.scheduled_at, job.due_at, job.created_at) == (NOW, NOW, NOW)
    assert stage.stored(job) == job and stage.waiting(Lane.ONE_TIME) == [job.id]


def test_the_id_of_a_job_has_its_scheduled_time() -> None:
    assert ids.time(Stage().submit(NOW + 86_400_000).id) == NOW + 86_400_000


def test_a_job_posted_for_the_past_is_due_now() -> None:
    job = Stage().submit(NOW - 5_000)
    assert (job.scheduled_at, job.due_at, ids.time(job.id)) == (NOW - 5_000, NOW, NOW - 5_000)


@pytest.mark.parametrize("ahead", [0, 1_000, 60_000, 239_999])
def test_a_job_due_soon_is_enqueued_and_has_a_safety_slot_a4(ahead: int) -> None:
    stage = Stage()
    job = stage.submit(NOW + ahead)
    assert stage.waiting(Lane.ONE_TIME) == [job.id]
    assert slots.minute(job.slot or "") == slots.first_safe_minute(NOW)
    assert [entry.key for entry in stage.jobs.due(job.slot)[0]] == [job.key]


def test_a_job_due_later_waits_only_in_the_slot_of_its_minute() -> None:
    stage = Stage()
    job = stage.submit(NOW + 600_000)
    assert stage.waiting(Lane.ONE_TIME) == [] and slots.minute(job.slot or "") == slots.minute_of(NOW + 600_000)


def test_a_direct_message_is_delayed_by_the_queue_b1() -> None:
    stage = Stage()
    job = stage.submit(NOW + 60_000)
    assert stage.receive() == []
    stage.clock.at = job.due_at - slots.DIRECT_LEAD
    assert [item.message.key for item in stage.receive()] == [job.key]
    assert job.due_at - stage.rules.hold_ms <= stage.clock.now() < job.due_at


@pytest.mark.parametrize("send", [refuse, lost_answer, lambda verb, messages, now: list(messages)])
def test_a_stored_job_is_accepted_even_if_it_cannot_be_enqueued(send: object) -> None:
    stage = Stage()
    stage.lanes = Wrapped(stage.lanes, send=send)
    assert stage.stored(stage.submit()).slot is not None


@pytest.mark.parametrize("put", [refuse, lost_answer])
def test_a_refused_put_is_reported_and_enqueues_nothing(put: object) -> None:
    stage = Stage()
    stage.jobs = Wrapped(stage.jobs, put=put)
    with pytest.raises(Unavailable):
        stage.submit()
    assert stage.waiting(Lane.ONE_TIME) == []


def slow_put(stage: Stage, ms: int) -> None:
    def put(verb: object, job: object) -> object:
        stage.clock.advance(ms)
        return verb(job)  # type: ignore[operator]

    stage.jobs = Wrapped(stage.jobs, put=put)


def test_a_slow_put_moves_the_job_to_a_safe_slot() -> None:
    """Dispatch of its minute may have begun during the put: the job moves to a later slot and is enqueued."""
    stage = Stage()
    slow_put(stage, 100_000)
    job = stage.submit(NOW + 250_000)
    assert stage.stored(job) == job
    assert slots.start_of(slots.minute(job.slot or "")) >= stage.clock.now() + slots.HORIZON
    assert stage.waiting(Lane.ONE_TIME) == [job.id]


def test_a_slow_put_into_a_minute_far_away_changes_nothing() -> None:
    stage = Stage()
    slow_put(stage, 100_000)
    job = stage.submit(NOW + 3_600_000)
    assert slots.minute(job.slot or "") == slots.minute_of(job.due_at) and stage.waiting(Lane.ONE_TIME) == []


def test_a_job_that_cannot_be_moved_is_still_enqueued() -> None:
    stage = Stage()
    slow_put(stage, 100_000)
    stage.jobs = Wrapped(stage.jobs, change=refuse)
    job = stage.submit(NOW + 250_000)
    assert stage.stored(job) == job and stage.waiting(Lane.ONE_TIME) == [job.id]


def test_the_same_put_again_overwrites_nothing_a2() -> None:
    stage = Stage()
    job = stage.submit()
    (item,) = stage.receive()
    stage.execute([item])
    done = stage.stored(job)
    stage.requests = 0  # the very same id again
    stage.submit()
    assert stage.stored(job) == done


# Many


def test_of_many_jobs_the_ones_due_soon_are_enqueued() -> None:
    stage = Stage()
    times = [NOW + 600_000, None, NOW + 60_000, NOW - 5_000, NOW + 900_000]
    made = stage.submit_all(*times)
    assert [job and job.scheduled_at for job in made] == [NOW if at is None else at for at in times]
    assert [stage.stored(job) for job in made if job] == made
    assert stage.waiting(Lane.ONE_TIME) == sorted(job.id for job in made[1:4] if job)


def test_a_job_posted_among_many_is_the_same_as_a_job_posted_alone() -> None:
    one, many = Stage(), Stage()
    for at in (None, NOW + 60_000, NOW + 600_000):
        assert many.submit_all(at) == [one.submit(at)]
    assert {key: value.message for key, value in one.lanes.queues[Lane.ONE_TIME].items()} == {
        key: value.message for key, value in many.lanes.queues[Lane.ONE_TIME].items()
    }


def test_a_call_without_jobs_does_nothing() -> None:
    assert Stage().submit_all() == []


def refuse_every_third(verb: object, jobs: list[object]) -> list[Written]:
    """The table is throttled for some."""
    return [Written.REFUSED if number % 3 == 0 else verb([job])[0] for number, job in enumerate(jobs)]  # type: ignore[operator]


def test_of_many_jobs_only_stored_ones_are_accepted_and_enqueued() -> None:
    stage = Stage()
    stage.jobs = Wrapped(stage.jobs, put_many=refuse_every_third)
    made = stage.submit_all(*[None] * 10)
    assert [job is None for job in made] == [number % 3 == 0 for number in range(10)]
    (queued,) = stage.lanes.queues[Lane.ONE_TIME].values()
    assert sorted(each.key.id for each in queued.message.singles()) == sorted(job.id for job in made if job)


def test_a_job_stored_by_an_earlier_try_is_accepted() -> None:
    stage = Stage()
    first = stage.submit_all(None, None)
    stage.requests = 0  # the very same ids again
    assert stage.submit_all(None, None, None)[:2] == first


def test_a_refusal_of_all_jobs_is_reported_to_the_caller() -> None:
    stage = Stage()
    stage.jobs = Wrapped(stage.jobs, put_many=refuse)
    with pytest.raises(Unavailable):
        stage.submit_all(None, None)
    assert stage.waiting(Lane.ONE_TIME) == []


def slow_puts(stage: Stage, ms: int) -> None:
    def put_many(verb: object, jobs: object) -> object:
        stage.clock.advance(ms)
        return verb(jobs)  # type: ignore[operator]

    stage.jobs = Wrapped(stage.jobs, put_many=put_many)


@pytest.mark.parametrize("change", [None, refuse, lambda verb, changes: [Written.REFUSED] * len(changes)])
def test_slow_puts_move_each_job_to_a_safe_slot(change: object) -> None:
    """A job whose minute may be dispatched already moves on if it can, and is enqueued in any case."""
    stage = Stage()
    slow_puts(stage, 100_000)
    if change:
        stage.jobs = Wrapped(stage.jobs, change=change)
    near, far = stage.submit_all(NOW + 250_000, NOW + 3_600_000)
    assert near and far and [stage.stored(near), stage.stored(far)] == [near, far]
    assert (slots.start_of(slots.minute(near.slot or "")) >= stage.clock.now() + slots.HORIZON) == (change is None)
    assert slots.minute(far.slot or "") == slots.minute_of(far.due_at)
    assert stage.waiting(Lane.ONE_TIME) == [near.id]


def test_a_thousand_jobs_are_enqueued_in_parts_the_soonest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enqueue, "SENT_AT_ONCE", 8)
    stage = Stage()

    def slow_send(verb: object, messages: list[object], now: int) -> object:
        stage.clock.advance(700)
        return verb(messages, now)  # type: ignore[operator]

    stage.lanes = Wrapped(stage.lanes, send=slow_send)
    stage.submit_all(*(NOW + 60_000 - 30 * number for number in range(1_000)))
    sent = [queued.message for queued in stage.lanes.queues[Lane.ONE_TIME].values()]
    assert [message.due_at for message in sent] == sorted(message.due_at for message in sent)
    assert sum(1 + len(message.more) for message in sent) == 1_000
    assert len({message.sent_at for message in sent}) > 5 and max(message.sent_at for message in sent) > NOW + 4_000


@pytest.mark.parametrize("send", [refuse, lost_answer, lambda verb, messages, now: list(messages)])
def test_a_refused_part_leaves_the_other_parts_to_their_slots(send: object) -> None:
    stage = Stage()
    calls: list[int] = []

    def counted(verb: object, messages: list[object], now: int) -> object:
        calls.append(len(messages))
        return send(verb, messages, now)  # type: ignore[operator]

    stage.lanes = Wrapped(stage.lanes, send=counted)
    assert all(stage.submit_all(*[None] * 1_000))
    assert len(calls) == 1


def test_a_partly_refused_part_does_not_stop_the_next_ones() -> None:
    stage = Stage()
    stage.lanes = Wrapped(stage.lanes, send=lambda verb, messages, now: verb(messages[1:], now) + messages[:1])
    made = stage.submit_all(*[None] * 1_000)
    sent = [single for queued in stage.lanes.queues[Lane.ONE_TIME].values() for single in queued.message.singles()]
    assert len(made) == 1_000 and 900 < len(sent) < 1_000  # without the first pack of each part


# With a key


@dataclass
class Keys:
    """Posts under idempotency keys. `receipts` may be replaced by a `Wrapped` one."""

    stage: Stage = field(default_factory=Stage)
    receipts: Any = field(default_factory=MemoryReceipts)
    _randoms: int = 0

    def asked(self, key: str | None, execute_at: int | None = None, *, message: str = "hello") -> Submission:
        self._randoms += 1
        receipt = key and Receipt("ann", key, f"{execute_at} {message}", self.stage.clock.now(), self._randoms)
        return Submission(NewJob("ann", JobSpec("log", {"message": message}), execute_at), self._randoms, receipt or None)

    def post(self, *asked: Submission) -> list[Any]:
        return list(submit_all(asked, self.stage.but(receipts=self.receipts)))

    def one(self, key: str | None, execute_at: int | None = None, **fields: Any) -> Any:
        (answer,) = self.post(self.asked(key, execute_at, **fields))
        return answer


def shown(answer: Accepted) -> dict[str, Any]:
    """The answer that the owner gets."""
    return JobShape.of(answer.job, answer.at)


def test_a_job_with_a_key_is_stored_and_enqueued_like_any_other() -> None:
    keys = Keys()
    answer = keys.one("k", NOW + 60_000)
    assert not answer.replayed and keys.stage.stored(answer.job) == answer.job and answer.at == NOW
    assert keys.stage.waiting(Lane.ONE_TIME) == [answer.job.id]


def test_the_same_request_under_the_same_key_is_one_job() -> None:
    keys = Keys()
    first = keys.one("k")
    keys.stage.clock.advance(3_600_000)
    again = keys.one("k")
    assert (shown(again), again.replayed) == (shown(first), True) and list(keys.stage.jobs.rows) == [first.job.key]


def test_a_repeated_request_gets_the_first_answer_after_the_run() -> None:
    keys = Keys()
    first = keys.one("k")
    keys.stage.execute(keys.stage.receive())
    done = keys.stage.stored(first.job)
    assert not lifecycle.is_open(done)
    keys.stage.clock.advance(60_000)
    assert shown(keys.one("k")) == shown(first)
    assert keys.stage.stored(first.job) == done and keys.stage.waiting(Lane.ONE_TIME) == []


def test_another_request_under_the_same_key_is_a_conflict() -> None:
    keys = Keys()
    first = keys.one("k")
    answer = keys.one("k", message="other")
    assert isinstance(answer, Conflict) and "used for another request" in answer.message
    assert list(keys.stage.jobs.rows) == [first.job.key]


def test_another_key_and_another_owner_are_other_jobs() -> None:
    keys = Keys()
    keys.one("k")
    keys.one("l")
    asked = keys.asked("k")
    bobs = Receipt("bob", "k", "other", NOW, 77)
    keys.post(asked._replace(receipt=bobs))
    assert len(keys.stage.jobs.rows) == 3


def test_after_a_day_the_key_is_free_again() -> None:
    keys = Keys()
    first = keys.one("k")
    keys.stage.clock.advance(RECEIPT_RETENTION_MS)
    again = keys.one("k", message="other")
    assert not again.replayed and again.job.id != first.job.id


NOTHING_PUT: list[dict[str, Any]] = [{"put": refuse}, {"put_many": refuse}, {"put_many": lambda verb, jobs: [Written.REFUSED] * len(jobs)}]


@pytest.mark.parametrize("broken", NOTHING_PUT, ids=["alone", "all at once", "each"])
@pytest.mark.parametrize("ahead", [0, 7_200_000])
def test_a_repeated_request_completes_a_try_that_died_before_its_put(ahead: int, broken: dict[str, Any]) -> None:
    keys = Keys()
    stage, table = keys.stage, keys.stage.jobs
    stage.jobs = Wrapped(table, **broken)
    names = ["k"] if "put" in broken else ["k", "l"]
    try:
        assert set(keys.post(*(keys.asked(name, NOW + ahead) for name in names))) == {None}
    except Unavailable:
        pass
    assert not table.rows
    stage.jobs = table
    stage.clock.advance(7_100_000)
    answer = keys.one("k", NOW + ahead)
    (job,) = table.rows.values()
    assert (job.id, job.created_at, job.due_at) == (answer.job.id, NOW, NOW + ahead) and answer.at == NOW
    assert slots.start_of(slots.minute(job.slot)) >= stage.clock.now() + slots.HORIZON
    assert stage.waiting(Lane.ONE_TIME) == [job.id]


def test_a_put_whose_answer_was_lost_is_found_by_the_next_try() -> None:
    keys = Keys()
    keys.stage.jobs = Wrapped(keys.stage.jobs, put=times(1, lost_answer))
    assert keys.one("k") is None
    assert keys.stage.waiting(Lane.ONE_TIME) == []
    answer = keys.one("k")
    assert answer.replayed and keys.stage.waiting(Lane.ONE_TIME) == [answer.job.id] and len(keys.stage.jobs.rows) == 1


def test_puts_whose_answer_was_lost_are_found_by_the_next_try() -> None:
    keys = Keys()
    keys.stage.jobs = Wrapped(keys.stage.jobs, put_many=times(1, lost_answer))
    with pytest.raises(Unavailable):
        keys.post(keys.asked("k"), keys.asked("l"))
    assert keys.stage.waiting(Lane.ONE_TIME) == []
    answers = keys.post(keys.asked("k"), keys.asked("l"))
    assert [answer.replayed for answer in answers] == [True, True] and len(keys.stage.jobs.rows) == 2
    assert keys.stage.waiting(Lane.ONE_TIME) == sorted(answer.job.id for answer in answers)


def test_a_repeated_request_enqueues_a_job_left_behind() -> None:
    keys = Keys()
    keys.stage.lanes = Wrapped(keys.stage.lanes, send=times(1))
    job = keys.one("k", NOW + 60_000).job
    assert keys.stage.waiting(Lane.ONE_TIME) == []
    keys.one("k", NOW + 60_000)
    assert keys.stage.waiting(Lane.ONE_TIME) == [job.id]


def test_a_repeated_request_enqueues_no_job_that_is_due_later() -> None:
    keys = Keys()
    keys.one("k", NOW + 3_600_000)
    keys.stage.clock.advance(3_590_000)
    keys.one("k", NOW + 3_600_000)
    assert keys.stage.waiting(Lane.ONE_TIME) == []


def test_a_repeated_request_enqueues_no_claimed_job() -> None:
    keys = Keys()
    keys.one("k")
    (item,) = keys.stage.receive()
    keys.stage.claim(item)
    keys.stage.lanes = Wrapped(keys.stage.lanes, send=lambda *_: pytest.fail("handed over"))
    assert keys.one("k").replayed


def test_a_repeated_request_enqueues_no_postponed_job() -> None:
    keys = Keys()
    job = keys.one("k").job
    later = NOW + 86_400_000
    fields = {"scheduled_at": later, "due_at": later}
    after = lifecycle.reschedule(job, slot=slots.place(later, NOW, job.id, 2).slot, fields=fields)
    assert keys.stage.jobs.change([Change(job, after)]) == [Written.YES]
    keys.stage.lanes = Wrapped(keys.stage.lanes, send=lambda *_: pytest.fail("handed over"))
    assert shown(keys.one("k"))["scheduled_at"] == instants.render(NOW)


def retried(job: Job) -> Job:
    claimed = lifecycle.claim(job, claim=Claim("m", "n", NOW, True))
    slot = slots.place(NOW, NOW, job.id, 2).slot
    return lifecycle.retry(claimed, NOW, started_at=NOW, result=Result(), due_at=NOW + 60_000, slot=slot)


def cancelled(job: Job) -> Job:
    return lifecycle.cancel(job, NOW, reason="x")


def queued(job: Job) -> Job:
    claimed = lifecycle.claim(job, claim=Claim("m", "n", NOW, True))
    return settlement.requeue(claimed, RequeueCause.LIMIT, "its target is at its limit", NOW, Rules(shards=2), target="invoices")


@pytest.mark.parametrize("become", [retried, cancelled, queued])
def test_a_repeated_request_enqueues_no_job_that_needs_no_message(become: Callable[[Job], Job]) -> None:
    keys = Keys()
    job = keys.one("k").job
    keys.stage.jobs.rows[job.key] = become(job)
    keys.stage.lanes = Wrapped(keys.stage.lanes, send=lambda *_: pytest.fail("handed over"))
    assert keys.one("k").replayed


@pytest.mark.parametrize("keep", [refuse, lost_answer])
def test_a_refused_receipt_refuses_the_job(keep: Any) -> None:
    keys = Keys()
    keys.receipts = Wrapped(keys.receipts, keep=times(1, keep))
    with pytest.raises(Unavailable):
        keys.one("k")
    assert not keys.stage.jobs.rows
    keys.one("k")
    keys.one("k")
    assert len(keys.stage.jobs.rows) == 1


def test_two_tries_at_once_make_one_job() -> None:
    """The second try begins during the put of the first one."""
    keys, nested = Keys(), list[Any]()

    def put(verb: Any, job: Any) -> Any:
        if not nested:
            nested.append(None)
            nested[0] = keys.one("k")
        return verb(job)

    keys.stage.jobs = Wrapped(keys.stage.jobs, put=put)
    first = keys.one("k")
    assert shown(first) == shown(nested[0]) and (first.replayed, nested[0].replayed) == (False, True)
    assert len(keys.stage.jobs.rows) == 1


def test_a_slow_receipt_does_not_make_the_slot_unsafe() -> None:
    keys = Keys()

    def keep(verb: Any, receipts: Any, now: int) -> Any:
        keys.stage.clock.advance(100_000)
        return verb(receipts, now)

    keys.receipts = Wrapped(keys.receipts, keep=keep)
    job = keys.stage.stored(keys.one("k", NOW + 250_000).job)
    assert slots.start_of(slots.minute(job.slot or "")) >= keys.stage.clock.now() + slots.HORIZON
    assert keys.stage.waiting(Lane.ONE_TIME) == [job.id]


def test_each_item_of_a_call_has_its_own_answer() -> None:
    keys = Keys()
    before = keys.one("old")
    calls: list[int] = []

    def keep(verb: Any, receipts: Any, now: int) -> Any:
        calls.append(len(receipts))
        return [None if receipt.key == "refused" else verb([receipt], now)[0] for receipt in receipts]

    keys.receipts = Wrapped(keys.receipts, keep=keep)
    asked = [keys.asked(key) for key in ("a", None, "old", "a", "refused")]
    asked += [keys.asked("a", message="other"), keys.asked("old", message="other"), keys.asked(None)]
    fresh, free, old, again, refused, *conflicts, last = keys.post(*asked)
    assert calls == [3]  # a, old, refused
    assert [answer.replayed for answer in (fresh, free, old, again, last)] == [False, False, True, True, False]
    assert shown(old) == shown(before) and shown(again) == shown(fresh) and refused is None
    assert all(isinstance(answer, Conflict) for answer in conflicts)
    assert {job.id for job in keys.stage.jobs.rows.values()} == {answer.job.id for answer in (before, fresh, free, last)}


def test_refused_receipts_do_not_refuse_items_without_a_key() -> None:
    keys = Keys()
    keys.receipts = Wrapped(keys.receipts, keep=refuse)
    keyed, free = keys.post(keys.asked("k"), keys.asked(None))
    assert keyed is None and list(keys.stage.jobs.rows) == [free.job.key]


def test_twice_the_same_key_in_one_call_is_refused_together() -> None:
    keys = Keys()
    keys.stage.jobs = Wrapped(keys.stage.jobs, put=refuse)
    assert keys.post(keys.asked("k"), keys.asked("k")) == [None, None]


def test_a_single_job_is_stored_by_a_plain_put() -> None:
    keys = Keys()
    keys.stage.jobs = Wrapped(keys.stage.jobs, put_many=lambda *_: pytest.fail("a batch of one"))
    assert isinstance(keys.one("k"), Accepted) and isinstance(keys.one(None), Accepted) and keys.stage.submit()


def test_without_a_key_no_receipt_is_stored_and_nothing_read() -> None:
    keys = Keys(receipts=None)
    keys.stage.jobs = Wrapped(keys.stage.jobs, get_many=refuse)
    assert not keys.one(None).replayed and keys.post() == []


def test_a_job_too_large_for_the_table_is_refused_alone() -> None:
    stage = Stage()
    large = JobSpec("log", {"message": "x" * 310_000}, ordering=Ordering("k"))
    specs = [JobSpec("log", {"message": "a"}), large, JobSpec("log", {"message": "b"})]
    asked = [
        Submission(NewJob("ann", spec), number, Receipt("ann", f"key {number}", "f", stage.clock.now(), number))
        for number, spec in enumerate(specs)
    ]
    first, refused, last = submit_all(asked, stage)
    assert isinstance(first, Accepted) and isinstance(refused, TooLarge) and isinstance(last, Accepted)
    assert stage.jobs.rows.keys() == {first.job.key, last.job.key} and len(stage.receipts.rows) == 2
    assert stage.orders.lines([OrderKey("ann", "k")], limit=1)[OrderKey("ann", "k")].entries == ()
    with pytest.raises(TooLarge):
        submit(NewJob("ann", large), stage, random=9)
