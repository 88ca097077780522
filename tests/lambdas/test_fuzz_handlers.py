"""Handlers and any event of their triggers: a poison record never blocks its batch, and a handler raises only its documented errors."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from lambdas import _runtime, bury, execute, plan, tick, worker
from lambdas._clock import SystemClock
from scheduler.model.errors import Invalid
from scheduler.model.job import Job, JobKey, Lane
from scheduler.model.work import WorkDelivery, WorkItem, WorkKind
from scheduler.storage import messages
from scheduler.storage.aws import keys, work_queue
from scheduler.storage.memory.stores import MemoryJobs, MemoryLanes
from tests.conftest import FixedClock, a_job, a_message
from tests.lambdas.test_handlers import CONTEXT, World, a_unit, asked, due_now, record, work_record

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from([-1, 2**63, 10**40]) | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
texts = st.text(max_size=40) | st.sampled_from(["", "null", "{}", "[" * 5_000, "1" * 5_000, "x" * 262_144, "\ud800"])
FIELDS = ["v", "owner", "id", "fence", "lane", "due_at", "sent_at", "not_before"]
mutations = st.dictionaries(st.sampled_from(FIELDS), values, min_size=1, max_size=3)
removals = st.sets(st.sampled_from(FIELDS[:6]), max_size=2)
WRONG: list[dict[str, Any]] = [
    {"id": "01"},
    {"id": "z" * 26},
    {"owner": "\ud800"},
    {"owner": "x" * 3_000},
    {"fence": 10**40},
    {"fence": -(10**40)},
]
PARTS = ["messageId", "receiptHandle", "body", "attributes"]


@st.composite
def poison_bodies(draw: st.DrawFn) -> Any:
    """Any text, any JSON, or a message with one or more wrong fields."""
    kind = draw(st.integers(0, 3))
    if kind == 3:
        return json.dumps(json.loads(messages.encode(a_message())) | draw(st.sampled_from(WRONG)))
    if kind == 0:
        return draw(texts)
    if kind == 1:
        return json.dumps(draw(values))
    body = json.loads(messages.encode(a_message())) | draw(mutations)
    for name in draw(removals):
        body.pop(name, None)
    return json.dumps(body)


@st.composite
def poison_records(draw: st.DrawFn, number: int) -> Any:
    """A record with a poison body, or one with missing or wrong parts."""
    if draw(st.integers(0, 9)) == 0:
        return draw(values)
    made: dict[str, Any] = {
        "messageId": f"p{number}",
        "receiptHandle": f"p{number}/1",
        "body": draw(poison_bodies()),
        "attributes": {"ApproximateReceiveCount": "1"},
    }
    for part in draw(st.sets(st.sampled_from(PARTS), max_size=1)):
        made[part] = draw(values | st.just({"ApproximateReceiveCount": draw(values)}))
    for part in draw(st.sets(st.sampled_from(PARTS), max_size=1)):
        made.pop(part)
    return made


batches = st.lists(st.integers(1, 99).flatmap(poison_records), min_size=1, max_size=8)


class StrictJobs(MemoryJobs):
    """Refuses invalid keys as DynamoDB does: the whole call, not only the one item."""

    def claim(self, requests: Any) -> Any:
        for request in requests:
            _check(request.key, request.fence)
        return super().claim(requests)

    def get_many(self, wanted: Any) -> Any:
        for key in wanted:
            _check(key)
        return super().get_many(wanted)


def _check(key: JobKey, *numbers: int) -> None:
    json.dumps(keys.job(key), ensure_ascii=False).encode()
    assert all(abs(number) < 10**38 for number in numbers)
    assert len(keys.job(key)["pk"]["S"].encode()) <= 2_048


def a_world(clock: Any, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(clock)
    made.jobs = StrictJobs()
    monkeypatch.setattr(_runtime, "ports", lambda: made)
    monkeypatch.setattr(_runtime, "execute", lambda: made.executor)
    return made


def among(good: list[Any], poison: list[Any]) -> list[Any]:
    return [*poison[::2], *good, *poison[1::2]]


def one_field_wrong() -> list[Any]:
    bodies = [json.dumps(json.loads(messages.encode(a_message())) | wrong) for wrong in WRONG]
    return [record(a_job(), 50 + number, body) for number, body in enumerate(bodies)]


def receive(world: World, jobs: list[Job]) -> list[dict[str, Any]]:
    world.lanes = lanes = MemoryLanes()
    lanes.extend = lambda lane, receipts, seconds: set(receipts)  # type: ignore[method-assign]  # poison has been received like the others
    for job in jobs:
        world.jobs.put(job)
        world.lanes.add(a_message(job), world.clock.now())
    taken = {item.message.key: item for item in world.lanes.receive(Lane.ONE_TIME, 10, world.clock.now())}
    return [record(job) | {"messageId": taken[job.key].message_id, "receiptHandle": taken[job.key].receipt} for job in jobs]


lenient = settings(deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.long
@pytest.mark.real_clock
@settings(lenient, max_examples=60)
@given(poison=batches)
@example(poison=one_field_wrong())
def test_execute_runs_the_others_and_leaves_poison_in_the_queue(poison: list[Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        world = a_world(SystemClock(), patch)
        jobs = [due_now(world), due_now(world)]
        answer = execute.handler({"Records": among(receive(world, jobs), poison)}, CONTEXT)
        world.executor.resources.threads.shutdown()
    assert all(world.jobs.rows[job.key].completed_at is not None for job in jobs)
    failed = {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
    named = [each for each in poison if isinstance(each, dict) and isinstance(each.get("messageId"), str)]
    assert failed <= {each["messageId"] for each in named}, "reported the finished messages"
    last = {each["messageId"]: each for each in named}  # of a message that is in it twice
    assert failed >= {message_id for message_id, each in last.items() if not _is_ours(each.get("body"))}


@pytest.mark.long
@settings(lenient, max_examples=150)
@given(poison=batches)
@example(poison=one_field_wrong())
def test_bury_settles_the_others_and_drops_poison(poison: list[Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        world = a_world(FixedClock(), patch)
        jobs = [due_now(world, buried=2), due_now(world, buried=2)]
        answer = bury.handler({"Records": among(receive(world, jobs), poison)}, CONTEXT)
    assert answer == {"batchItemFailures": []}
    assert all(world.jobs.rows[job.key].buried == 3 for job in jobs)


WORK = ["v", "kind", "of", "part"]
WRONG_WORK: list[dict[str, Any]] = [{"part": "x"}, {"part": "1" * 5_000}, {"part": "-0"}, {"of": "\ud800"}, {"kind": "unit "}, {"v": 2}]


@st.composite
def odd_work(draw: st.DrawFn) -> Any:
    """Any poison record, or an item of work with one or more odd fields."""
    if draw(st.booleans()):
        return draw(poison_records(draw(st.integers(1, 99))))
    item = json.loads(work_queue.encode(WorkItem(draw(st.sampled_from(WorkKind)), "2026-11-20T10:00", "0")))
    odd = draw(st.dictionaries(st.sampled_from(WORK), values, min_size=1, max_size=2) | st.sampled_from(WRONG_WORK))
    return work_record(WorkDelivery(WorkItem(WorkKind.CHECKS), "o1", "o1/1", 1), json.dumps(item | odd))


@pytest.mark.long
@settings(lenient, max_examples=200)
@given(odd=st.lists(odd_work(), max_size=5))
@example(
    odd=[work_record(WorkDelivery(WorkItem(WorkKind.UNIT, "2026-11-20T10:00", part), "o1", "o1/1", 1)) for part in ("x", "-1", "0", "")]
)
def test_the_worker_carries_out_the_step_beside_any_other_record(odd: list[Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        world = a_world(FixedClock(), patch)
        unit = a_unit(world)
        world.jobs.put(job := due_now(world, slot=unit.slots[0]))
        (sent,) = asked(world, WorkItem.of_unit(unit.key))
        answer = worker.handler({"Records": among([sent], odd)}, CONTEXT)
    failed = {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
    named = {each["messageId"] for each in odd if isinstance(each, dict) and isinstance(each.get("messageId"), str)}
    same = {each["messageId"] for each in odd if (found := work_queue.delivery(each)) and found.item == WorkItem.of_unit(unit.key)}
    assert failed & {sent["messageId"], *same}, "no message of the unit stays for its second step"
    assert failed <= {sent["messageId"], *named}
    assert [queued.message.key for queued in world.lanes.queues[job.lane].values()] == [job.key]
    assert world.ledger.unit(unit.key).handed_out_at is not None


@settings(lenient, max_examples=40)
@given(event=values)
@pytest.mark.parametrize("handler", [tick.handler, plan.handler], ids=["tick", "plan"])
def test_timers_ignore_their_event(handler: Any, event: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        a_world(FixedClock(), patch)
        told = handler(event, CONTEXT)
        a_world(FixedClock(), patch)
        assert told == handler({}, CONTEXT)


def _is_ours(body: Any) -> bool:
    try:
        messages.decode(body)
    except (Invalid, TypeError):
        return False
    return True


def test_the_strict_table_refuses_keys_of_poison_messages() -> None:
    """Otherwise the tests above could not fail."""
    job = due_now(World(FixedClock()))
    for key, fence in ((JobKey("ann", "01"), 1), (JobKey("\ud800", job.id), 1), (job.key, 10**40)):
        with pytest.raises((AssertionError, UnicodeError, LookupError, ValueError)):
            _check(key, fence)
