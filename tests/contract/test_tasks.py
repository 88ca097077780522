"""The port Tasks: storing with runs and receipts, planning, editing and listing."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.model import ids
from scheduler.model.job import Job, Overlap, Receipt, TaskHead, TaskKey
from scheduler.model.schedule import Cron, Dates, Exclusions, Once, Rate, Schedule
from scheduler.model.spec import JobSpec
from scheduler.model.task import STORED_WITH_IT, Gap, Task
from scheduler.storage.aws import task_items
from scheduler.storage.ports import RECEIPT_RETENTION_MS, Tasks, Written
from scheduler.tasks import calendar_form
from scheduler.tasks.exclusions import ON_EXCLUDED
from tests.contract import make, records
from tests.contract.conftest import Stores
from tests.contract.make import NOW

schedules = (
    st.builds(Once, records.instants)
    | st.builds(Rate, st.integers(1, 366 * 24 * 60).map(lambda minutes: minutes * 60_000), records.instants, st.just("Europe/Berlin"))
    | st.builds(Cron, st.just("*/5 9-17 * * 1-5"), st.just("Europe/Berlin"), st.sampled_from(["shift", "skip"]), st.just("both"))
)
days = st.frozensets(st.integers(calendar_form.FIRST.toordinal(), calendar_form.LAST.toordinal()), min_size=1, max_size=9)
named = st.builds(Dates, days, st.sampled_from(["de", "a.b-c"]), st.integers(1, 2**50), st.none() | st.integers(740_000, 750_000))
listed = st.lists(named, max_size=2, unique_by=lambda dates: dates.name).map(tuple)
exclusions = st.builds(
    Exclusions,
    st.builds(lambda copies, own: (*copies, Dates(own)), listed, days),
    st.booleans(),
    st.sampled_from(ON_EXCLUDED),
    st.sampled_from([(0, 1, 2, 3, 4), (5,), (0, 6)]),
)
all_tasks = records.of(
    Task,
    owner=st.text(min_size=1),
    id=records.some_ids,
    schedule=st.none()
    | st.builds(Schedule, schedules, jitter_ms=st.integers(0, 3_600).map(lambda seconds: seconds * 1_000), days=st.none() | exclusions),
    gap=st.none() | records.of(Gap, generation=st.none() | st.integers(1, 9)),
)


@pytest.mark.long
@records.unshrunk
@given(all_tasks)
def test_a_task_is_read_back_from_its_item(task: Task) -> None:
    assert records.differing(task_items.decode(task_items.encode(task)), task) == []


def test_defaults_of_a_task_are_not_stored() -> None:
    bare = make.task(schedule=None, planned_until=0, planned=0, replenish=None)
    told = {"pk", "sk", "v", "name", "type", "payload", "created_at", "updated_at", "generation", "planned_until"}
    assert set(task_items.encode(bare)) == told


def runs_of(task: Task, count: int = STORED_WITH_IT) -> list[Job]:
    return [make.run(task.key, at=NOW + 300_000 * number) for number in range(count)]


def edited(task: Task, **fields: object) -> Task:
    return replace(task, generation=task.generation + 1, updated_at=NOW + 1_000, **fields)  # type: ignore[arg-type]


def test_a_task_is_stored_with_its_runs_and_receipt(stores: Stores) -> None:
    task, receipt = make.task(tags=("a",), overlap=Overlap.QUEUE_ONE), make.receipt()
    runs = runs_of(task)
    assert stores.tasks.store(None, task, runs, receipt)
    assert stores.tasks.get(task.key) == task
    assert stores.jobs.get_many([run.key for run in runs]) == {run.key: run for run in runs}
    assert stores.receipts.find("ada", receipt.key, NOW) == receipt


def test_storing_replaces_only_the_generation_that_was_read(stores: Stores) -> None:
    first = make.task()
    second, other = edited(first, name="second"), edited(first, name="other")
    assert stores.tasks.store(None, first, [])
    assert not stores.tasks.store(None, replace(first, name="again"), [])
    assert stores.tasks.store(first, second, [])
    assert not stores.tasks.store(first, other, runs_of(other))
    assert stores.tasks.get(first.key) == second
    assert stores.jobs.get_many([run.key for run in runs_of(other)]) == {}
    absent = make.task()
    assert not stores.tasks.store(absent, edited(absent), [])
    assert stores.tasks.get(absent.key) is None


@pytest.mark.parametrize("taken", ["a run's id", "the receipt's key"])
def test_storing_is_all_or_nothing(stores: Stores, taken: str) -> None:
    before = make.task()
    after, receipt = edited(before, name="new"), make.receipt()
    runs = runs_of(after)
    assert stores.tasks.store(None, before, [])
    if taken == "a run's id":
        assert stores.jobs.put(replace(runs[7], spec=JobSpec("log", {"message": "other"})))
    else:
        assert stores.receipts.keep([replace(receipt, fingerprint="f2")], NOW) == [replace(receipt, fingerprint="f2")]
    assert not stores.tasks.store(before, after, runs, receipt)
    assert stores.tasks.get(before.key) == before
    there = stores.jobs.get_many([run.key for run in runs])
    assert [job.spec.payload for job in there.values()] == ([{"message": "other"}] if taken == "a run's id" else [])
    found = stores.receipts.find("ada", receipt.key, NOW)
    assert found == (None if taken == "a run's id" else replace(receipt, fingerprint="f2"))


def test_an_outdated_receipt_does_not_prevent_storing(stores: Stores) -> None:
    old = make.receipt(at=NOW - RECEIPT_RETENTION_MS, fingerprint="old")
    assert stores.receipts.keep([old], old.at) == [old]
    task, receipt = make.task(), make.receipt()
    assert stores.tasks.store(None, task, [], receipt)
    assert stores.receipts.find("ada", receipt.key, NOW) == receipt


def test_a_store_whose_answer_was_lost_succeeds_when_repeated(stores: Stores) -> None:
    task, receipt = make.task(), make.receipt()
    assert stores.tasks.store(None, task, runs_of(task), receipt)
    assert stores.tasks.store(None, task, runs_of(task), receipt)
    after = edited(task, name="after")
    assert stores.tasks.store(task, after, runs_of(after, 0))
    planned = replace(after, planned_until=NOW + 900_000, planned=3, replenish="2026-11-20T10:09#03")
    assert stores.tasks.move_on([(after, planned)]) == [Written.YES]
    assert stores.tasks.store(task, after, runs_of(after, 0)), "more runs were planned in between"
    assert stores.tasks.get(task.key) == planned
    assert not stores.tasks.store(task, replace(after, name="another's"), [])


def test_moving_on_stores_only_how_far_the_task_is_planned(tasks: Tasks) -> None:
    before = make.task()
    after = replace(before, planned_until=NOW + 900_000, planned=3, replenish="2026-11-20T10:09#03")
    assert tasks.store(None, before, [])
    assert tasks.move_on([(before, replace(after, name="ignored"))]) == [Written.YES]
    assert tasks.get(before.key) == after
    assert tasks.to_replenish("2026-11-20T10:01#03")[0] == []
    assert tasks.to_replenish("2026-11-20T10:09#03")[0] == [before.key]
    last = replace(after, planned_until=NOW + 1_200_000, planned=4, replenish=None)
    assert tasks.move_on([(after, last)]) == [Written.YES]
    assert tasks.get(before.key) == last
    assert tasks.to_replenish("2026-11-20T10:09#03")[0] == []


def test_moving_on_whose_answer_was_lost_succeeds_when_repeated(tasks: Tasks) -> None:
    before = make.task()
    after = replace(before, planned_until=NOW + 900_000, planned=3, replenish="2026-11-20T10:09#03")
    assert tasks.store(None, before, [])
    assert tasks.move_on([(before, after)]) == [Written.YES]
    assert tasks.move_on([(before, after)]) == [Written.YES]
    assert tasks.move_on([(before, replace(after, planned_until=NOW + 1_200_000))]) == [Written.NO]
    assert tasks.move_on([(before, replace(after, replenish="2026-11-20T10:10#03"))]) == [Written.NO]
    assert tasks.get(before.key) == after


def test_many_tasks_are_read_and_moved_on_at_once(tasks: Tasks) -> None:
    made = [make.task() for _ in range(60)]
    assert all(tasks.store(None, task, []) for task in made)
    assert tasks.delete(made[0]) and tasks.store(made[1], edited(made[1]), [])
    moves = [(task, replace(task, planned_until=NOW + 900_000, gap=Gap(1, 2, 3, 4))) for task in made]
    assert tasks.move_on(moves) == [Written.NO, Written.NO] + [Written.YES] * 58
    assert tasks.move_on(moves)[:3] == [Written.NO, Written.NO, Written.YES], "the answer of the first call was lost"
    stored = {made[1].key: edited(made[1])} | {after.key: after for _, after in moves[2:]}
    assert tasks.get_many([task.key for task in made]) == stored
    assert tasks.move_on([(after, replace(after, gap=None)) for _, after in moves[2:4]]) == [Written.YES] * 2
    assert tasks.get_many([task.key for task in made[2:4]]) == {task.key: replace(task, gap=None) for _, task in moves[2:4]}
    assert tasks.move_on([]) == [] and tasks.get_many([]) == {}


def test_an_edited_or_deleted_task_is_not_moved_on(tasks: Tasks) -> None:
    before = make.task()
    after = replace(before, planned_until=NOW + 900_000)
    assert tasks.store(None, before, []) and tasks.store(before, edited(before), [])
    assert tasks.move_on([(before, after)]) == [Written.NO]
    assert tasks.get(before.key) == edited(before)
    assert tasks.delete(edited(before))
    assert tasks.move_on([(edited(before), edited(after))]) == [Written.NO]
    assert tasks.get(before.key) is None


def test_a_task_is_deleted_only_as_it_was_read(tasks: Tasks) -> None:
    task = make.task()
    assert tasks.store(None, task, []) and tasks.store(task, edited(task), [])
    assert not tasks.delete(task)
    assert tasks.get(task.key) == edited(task)
    assert tasks.delete(edited(task))
    assert tasks.get(task.key) is None and tasks.heads([task.key]) == {}
    assert tasks.to_replenish("2026-11-20T10:01#03")[0] == []
    assert not tasks.delete(edited(task))


def test_a_head_has_the_fields_that_a_run_needs(tasks: Tasks) -> None:
    active, paused = make.task(generation=4), make.task(inactive_at=NOW, inactive_reason="too loud", replenish=None)
    for task in (active, paused):
        assert tasks.store(None, task, [])
    found = tasks.heads([active.key, paused.key, active.key, make.task().key, TaskKey("eve", active.id)])
    assert found == {active.key: TaskHead(4, name="a task"), paused.key: TaskHead(1, NOW, "too loud", "a task")}
    assert tasks.heads([]) == {}


def test_heads_of_several_tasks_are_read_in_one_call(tasks: Tasks) -> None:
    made = [make.task() for _ in range(110)]
    for task in made:
        assert tasks.store(None, task, [])
    assert tasks.heads([task.key for task in made]) == {task.key: task.head for task in made}


def test_tasks_of_an_owner_are_paged_newest_first(tasks: Tasks) -> None:
    made = [make.task(id=ids.new(NOW + number, number)) for number in range(5)]
    for task in [*made, make.task(owner="eve")]:
        assert tasks.store(None, task, [])
    newest = made[::-1]
    first = tasks.page("ada", after=None, limit=2)
    assert (first.tasks, first.cursor) == (newest[:2], newest[1].id)
    second = tasks.page("ada", after=first.cursor, limit=2)
    assert (second.tasks, second.cursor) == (newest[2:4], newest[3].id)
    last = tasks.page("ada", after=second.cursor, limit=2)
    assert (last.tasks, last.cursor) == (newest[4:], None)
    assert tasks.page("ada", after=None, limit=5).cursor is None
    assert tasks.page("nobody", after=None, limit=5).tasks == []


def test_a_holder_is_not_among_the_tasks(tasks: Tasks) -> None:
    task = make.task()
    assert tasks.store(None, task, [])
    assert tasks.hold([(None, make.holder(task.key))]) == [Written.YES]
    assert tasks.page("ada", after=None, limit=5).tasks == [task]


def test_a_slot_lists_the_tasks_to_replenish(tasks: Tasks) -> None:
    slot = "2026-11-20T10:01#03"
    made = [make.task() for _ in range(3)]
    others = [make.task(replenish="2026-11-20T10:01#04"), make.task(replenish="2026-11-20T10:00#07"), make.task(replenish=None)]
    for task in [*made, *others]:
        assert tasks.store(None, task, [])
    found, cursor = tasks.to_replenish(slot)
    assert sorted(found) == sorted(task.key for task in made) and cursor is None
    assert tasks.overdue("2026-11-20T10:01") == ([others[1].key], None)
    assert sorted(tasks.overdue("2026-11-20T10:02")[0]) == sorted(task.key for task in [*made, *others[:2]])
    assert tasks.overdue("2026-11-20T10:00") == ([], None)


def test_a_run_and_a_task_of_the_largest_payload_are_stored_whole(stores: Stores) -> None:
    task = make.task(payload={"text": "x" * 60_000}, description="why", schedule=Schedule(Cron("0 9 * * 1-5", "Europe/Berlin"), max_runs=3))
    receipt = Receipt("ada", "k" * 255, "f", NOW, 0)
    assert stores.tasks.store(None, task, runs_of(task), receipt)
    assert stores.tasks.get(task.key) == task
