"""Items that this version cannot read: the ports set each aside, and read and write the others."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from scheduler.model.errors import Unreadable
from scheduler.model.job import Job, Lane, LaneState, LaterCheck, TaskKey, Unit, UnitKey
from scheduler.storage.aws import items, keys
from scheduler.storage.aws.jobs import DynamoJobs
from scheduler.storage.aws.ledger import DynamoLedger
from scheduler.storage.aws.table import Table
from scheduler.storage.aws.targets import DynamoTargets
from scheduler.storage.aws.tasks import DynamoTasks
from scheduler.storage.aws.updates import Update
from scheduler.storage.memory.stores import MemoryJobs
from scheduler.storage.ports import Change, Guard, Jobs, Written
from tests.contract import make, tables
from tests.contract.conftest import Stores
from tests.contract.make import NOW
from tests.contract.test_named_targets import target

SLOT, LATER = "2026-11-20T10:01#03", "2026-11-20T11:40#03"
KINDS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "a newer format": ({"v": {"N": "2"}}, []),
    "an unknown value": ({"retry": {"S": '[1000,60000,"wild",null,true]'}}, []),
    "a missing field": ({}, ["type"]),
}
Spoil = Callable[[Job], None]


def write(table: Table, key: keys.Value, sets: Mapping[str, Any], removes: list[str]) -> None:
    (answer,) = table.update([Update(key, {"seen": {"S": "by another version"}} | dict(sets), removes, ())])
    assert answer.done is Written.YES


@pytest.fixture(params=KINDS)
def spoil(request: pytest.FixtureRequest, jobs: Jobs) -> Spoil:
    """Writes a stored job as another version might."""
    sets, removes = KINDS[request.param]

    def run(job: Job) -> None:
        if isinstance(jobs, DynamoJobs):
            write(jobs._table, keys.job(job.key), sets, removes)
        elif isinstance(jobs, MemoryJobs):
            jobs.unreadable[job.key] = request.param

    return run


def mend(jobs: Jobs, job: Job) -> None:
    """Write the fields of the job again, as an update of the scheduler makes it readable."""
    if isinstance(jobs, DynamoJobs):
        encoded = items.attributes(job)
        write(jobs._table, keys.job(job.key), {name: encoded[name] for name in ("v", "type")}, ["retry"])
    elif isinstance(jobs, MemoryJobs):
        del jobs.unreadable[job.key]


def stored(jobs: Jobs, count: int, **fields: Any) -> list[Job]:
    made = [make.job(slot=SLOT, **fields) for _ in range(count)]
    assert all(jobs.put(job) for job in made)
    return made


def test_an_unreadable_job_is_named_and_the_others_are_read(jobs: Jobs, spoil: Spoil) -> None:
    (first, broken, last), none = stored(jobs, 3), make.job()
    spoil(broken)
    wanted = [first, broken, last, none]
    keys = [job.key for job in wanted]
    for found in (jobs.get_many(keys), jobs.outlines(keys)):
        assert found.keys() == {first.key, last.key} and found.unreadable.keys() == {broken.key}
        assert found.unreadable[broken.key]
        assert [found.is_absent(key) for key in (first.key, broken.key, none.key)] == [False, False, True]
    seen = jobs.glance(wanted)  # which needs few of the fields: the caller has read the others before
    assert {first.key, last.key} <= seen.keys() and broken.key in seen.keys() | seen.unreadable.keys() and seen.is_absent(none.key)


def test_a_read_of_one_unreadable_job_raises(jobs: Jobs, spoil: Spoil) -> None:
    (broken,) = stored(jobs, 1)
    spoil(broken)
    with pytest.raises(Unreadable, match="scheduler is updated"):
        jobs.get(broken.key)


@pytest.mark.parametrize("company", [0, 2])
def test_the_claim_of_an_unreadable_job_is_refused_and_undone(jobs: Jobs, spoil: Spoil, company: int) -> None:
    broken, *others = stored(jobs, 1 + company)
    spoil(broken)
    refused, *won = jobs.claim([make.request(job) for job in (broken, *others)])
    assert refused is None and all(result is not None and result.won for result in won)
    mend(jobs, broken)
    assert jobs.get(broken.key) == broken
    (again,) = jobs.claim([make.request(broken)])
    assert again is not None and again.won


@pytest.mark.parametrize("company", [0, 2])
def test_a_false_guard_of_an_unreadable_job_is_a_plain_no(jobs: Jobs, spoil: Spoil, company: int) -> None:
    broken, *others = stored(jobs, 1 + company)
    spoil(broken)
    elsewhere = make.moved(broken, "2026-11-20T23:59#15")
    changes = [Change(elsewhere, make.moved(elsewhere, LATER), Guard.SLOT)]
    changes += [Change(job, make.moved(job, LATER), Guard.SLOT) for job in others]
    assert jobs.change(changes) == [Written.NO] + [Written.YES] * company


def test_an_unreadable_job_that_was_claimed_is_not_withdrawn(jobs: Jobs, spoil: Spoil) -> None:
    (broken,) = stored(jobs, 1)
    jobs.claim([make.request(broken)])
    spoil(broken)
    assert jobs.withdraw([broken.key]) == [Written.NO]


def test_lists_leave_unreadable_jobs_out(jobs: Jobs, spoil: Spoil) -> None:
    task = TaskKey("ada", "t1")
    runs = [make.run(task, at=NOW + number * 1_000, slot=SLOT) for number in range(4)]
    assert all(jobs.put(run) for run in runs)
    spoil(runs[1])
    readable = [runs[0], runs[2], runs[3]]
    read, cursor, pages = list[Job](), None, 0
    while pages == 0 or cursor is not None:
        page = jobs.history("ada", since=None, until=None, after=cursor, limit=2, newest_first=False)
        read, cursor, pages = read + page.jobs, page.cursor, pages + 1
    assert (read, pages) == (readable, 2)
    assert jobs.of_task(task, since=None, until=None, after=None, limit=9, newest_first=False).jobs == readable


def test_a_list_of_failures_leaves_unreadable_jobs_out(jobs: Jobs, spoil: Spoil) -> None:
    dead = [make.failed(make.claimed(job)) for job in (make.job(), make.job())]
    assert all(jobs.put(job) for job in dead)
    spoil(dead[0])
    assert jobs.failures("ada", since=None, until=None, after=None, limit=9).jobs == [dead[1]]


def test_an_unreadable_job_moves_to_another_slot(jobs: Jobs, spoil: Spoil) -> None:
    broken, whole, gone = *stored(jobs, 2), make.job(slot=SLOT)
    spoil(broken)
    moves = [(broken.key, SLOT, LATER), (whole.key, "2026-11-20T09:00#03", LATER), (gone.key, SLOT, LATER)]
    assert jobs.set_aside(moves) == [Written.YES, Written.NO, Written.NO]
    assert jobs.set_aside(moves[:1]) == [Written.YES], "an earlier answer may be lost"
    assert jobs.get(whole.key) == whole and jobs.get(gone.key) is None
    assert [[entry.key for entry in jobs.due(slot)[0]] for slot in (SLOT, LATER)] == [[whole.key], [broken.key]]
    mend(jobs, broken)
    moved = jobs.get(broken.key)
    assert moved == make.job(id=broken.id, slot=LATER)


def test_a_due_entry_of_an_unknown_lane_is_left_out(stores: Stores) -> None:
    if not isinstance(stores.jobs, DynamoJobs):
        pytest.skip("in memory an entry cannot be broken")
    broken, whole = stored(stores.jobs, 2)
    write(stores.jobs._table, keys.job(broken.key), {"lane": {"S": "express"}}, [])
    assert [entry.key for entry in stores.jobs.due(SLOT)[0]] == [whole.key]


def test_a_due_entry_without_a_field_is_left_out(stores: Stores) -> None:
    if not isinstance(stores.jobs, DynamoJobs):
        pytest.skip("in memory an entry cannot be broken")
    broken, whole = stored(stores.jobs, 2)
    write(stores.jobs._table, keys.job(broken.key), {}, ["fence"])
    assert [entry.key for entry in stores.jobs.due(SLOT)[0]] == [whole.key]


def test_a_letter_without_a_field_is_left_out(stores: Stores) -> None:
    if not isinstance(stores.jobs, DynamoJobs):
        pytest.skip("in memory an entry cannot be broken")
    dead = [make.failed(make.claimed(job)) for job in (make.job(), make.job())]
    assert all(stores.jobs.put(job) for job in dead)
    write(stores.jobs._table, keys.job(dead[0].key), {}, ["type"])
    letters, _ = stores.jobs.letters("ada", since=None, until=None, after=None, limit=9, newest_first=True)
    assert [letter.key for letter in letters] == [dead[1].key]


def test_each_read_of_an_unreadable_job_is_logged_once(stores: Stores, caplog: pytest.LogCaptureFixture) -> None:
    if not isinstance(stores.jobs, DynamoJobs):
        pytest.skip("the memory decodes nothing")
    broken, whole = stored(stores.jobs, 2)
    write(stores.jobs._table, keys.job(broken.key), {"v": {"N": "2"}}, [])
    stores.jobs.get_many([broken.key, whole.key, broken.key])
    (record,) = [record for record in caplog.records if record.name == "scheduler.storage.aws.readable"]
    assert broken.id in vars(record)["item"] and "format" in vars(record)["why"]


def test_a_task_of_another_version_leaves_the_others_alone(stores: Stores) -> None:
    tasks = stores.tasks
    if not isinstance(tasks, DynamoTasks):
        pytest.skip("the memory decodes nothing")
    made = [make.task(replenish=SLOT) for _ in range(3)]
    assert all(tasks.store(None, task, []) for task in made)
    broken = made[1]
    write(tasks._table, keys.stored_task(broken.key), {"v": {"N": "2"}}, [])
    page = tasks.page("ada", after=None, limit=2)
    assert ([task.id for task in page.tasks], page.cursor) == ([made[2].id], broken.id)
    heads = tasks.heads([task.key for task in made])
    assert (heads.keys(), heads.unreadable.keys()) == ({made[0].key, made[2].key}, {broken.key})
    with pytest.raises(Unreadable):
        tasks.get(broken.key)
    assert tasks.move_on([(broken, broken)]) == [Written.YES], "planning needs the generation and the time only"


def test_a_named_target_of_another_version_leaves_the_others_alone(request: pytest.FixtureRequest) -> None:
    client = tables.on_moto(request, "tasks", tables.TASKS)
    port = DynamoTargets(client, "tasks")
    for name in ("a", "b"):
        assert port.put(None, target(name))
    write(port._table, keys.target("a"), {"v": {"N": "2"}}, [])
    found = port.targets(["a", "b"])
    assert (found.keys(), found.unreadable.keys()) == ({"b"}, {"a"})
    assert [target.name for target in port.all()] == ["b"]


def test_a_unit_of_another_version_leaves_the_others_alone(request: pytest.FixtureRequest) -> None:
    port = DynamoLedger(tables.on_moto(request, "ledger", tables.LEDGER), "ledger")
    units = [Unit(UnitKey(f"2026-11-20T10:0{number}", 0), 0, 15) for number in range(3)]
    assert all(port.open_unit(unit) for unit in units)
    write(port._table, keys.open_unit(units[0].key), {}, ["first_shard"])
    assert port.open_units() == units[1:]
    with pytest.raises(Unreadable):
        port.unit(units[0].key)


def test_a_later_check_of_another_version_leaves_the_others_alone(request: pytest.FixtureRequest) -> None:
    port = DynamoLedger(tables.on_moto(request, "ledger", tables.LEDGER), "ledger")
    checks = [LaterCheck(Unit(UnitKey(f"2026-11-20T10:0{number}", 0), 0, 15), 0, NOW + number) for number in range(2)]
    for check in checks:
        assert port.open_unit(check.unit) and port.close_unit(check.unit, NOW, check)
    write(port._table, keys.later_check(checks[0]), {}, ["number"])
    assert port.later_checks(NOW + 9) == checks[1:]


def test_the_state_of_an_unknown_lane_is_left_out(request: pytest.FixtureRequest) -> None:
    port = DynamoLedger(tables.on_moto(request, "ledger", tables.LEDGER), "ledger")
    port.set_lane_state(LaneState(Lane.RETRY, paused_at=NOW))
    write(port._table, {"pk": {"S": keys.LANES}, "sk": {"S": "express"}}, {"paused_at": {"N": "1"}}, [])
    assert port.watched().lanes.keys() == {Lane.RETRY}
