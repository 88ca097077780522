"""Later checks of closed minutes, and the sweep for jobs in slots that no unit covers."""

import itertools
from typing import Any

import pytest

from scheduler.admission.lane_state import pause
from scheduler.model import slots
from scheduler.model.errors import Unavailable
from scheduler.model.job import Cursor, Job, Lane, LaterCheck, Unit, UnitKey
from scheduler.model.rules import Rules
from scheduler.pipeline import leftover
from scheduler.pipeline.later_checks import ORPHAN_MS, check, following
from scheduler.pipeline.worker import VISIBLE_S
from scheduler.storage.aws import items
from scheduler.storage.memory.stores import MemoryLedger
from tests.conftest import NOW, a_job
from tests.unit.stage import Stage, Wrapped, times

MINUTE = slots.minute_of(NOW)
UNIT = UnitKey(MINUTE, 0)


def test_the_checks_of_a_closed_unit_follow_its_closing() -> None:
    look: LaterCheck | None = LaterCheck(Unit(UNIT, 0, 1), 0, NOW + leftover.CHECKS_MS[0])
    seen = []
    while look is not None:
        seen.append(look.at - NOW)
        look = following(look)
    assert tuple(seen) == leftover.CHECKS_MS


def closed(*minutes: str, number: int = 0) -> Stage:
    """A stage whose minutes are closed; their first checks are due at `LOOKS[number]`."""
    stage = Stage(rules=Rules(shards=1))
    stage.ledger.advance(None, Cursor("2026-11-21T00:00", 1))
    for minute in minutes or (MINUTE,):
        unit = Unit(UnitKey(minute, 0), 0, 0)
        stage.ledger.open_unit(unit)
        assert stage.ledger.close_unit(unit, NOW, LaterCheck(unit, number, NOW + leftover.CHECKS_MS[number]))
    return stage


def test_a_later_check_finds_a_job_that_the_index_hid_b5() -> None:
    stage, hidden = closed(), a_job(due_at=NOW)
    stage.jobs.put(hidden)
    stage.clock.at = NOW + leftover.CHECKS_MS[0] - 1
    assert check(stage).checks == 0
    stage.clock.at = NOW + leftover.CHECKS_MS[0]
    done = check(stage)
    assert (done.checks, done.found) == (1, 1)
    assert stage.waiting(Lane.ONE_TIME) == [hidden.id] and stage.stored(hidden).slot != hidden.slot
    assert [(look.number, look.at) for look in stage.ledger.later_checks(NOW + 10**9)] == [(1, NOW + leftover.CHECKS_MS[1])]


def test_no_check_follows_the_last_one() -> None:
    stage = closed(number=len(leftover.CHECKS_MS) - 1)
    stage.clock.at = NOW + leftover.CHECKS_MS[-1]
    assert check(stage).checks == 1
    assert stage.ledger.later_checks(NOW + 10**9) == []


@pytest.mark.parametrize("error", [Unavailable, ValueError])
def test_a_check_that_fails_stops_no_other_and_is_tried_again(error: type[Exception]) -> None:
    stage = closed(MINUTE, slots.following(MINUTE))
    stage.clock.at = NOW + leftover.CHECKS_MS[0]

    def fails(verb: Any, *args: Any, **more: Any) -> Any:
        raise error

    stage.jobs = Wrapped(stage.jobs, due=times(1, fails))
    first = check(stage)
    assert (first.failed, first.checks) == (1, 1)
    assert check(stage).checks == 1


def test_checks_stop_when_their_time_is_over_and_the_next_minute_goes_on() -> None:
    minutes = [slots.minute_of(NOW + number * slots.MINUTE) for number in range(5)]
    stage = closed(*minutes)
    stage.clock.at = NOW + leftover.CHECKS_MS[0]
    stage.jobs = Wrapped(stage.jobs, due=lambda verb, *args, **more: (stage.clock.advance(20_000), verb(*args, **more))[1])
    assert (check(stage).checks, check(stage).checks) == (3, 2)


@pytest.mark.parametrize(("page_ms", "least", "most"), [(0, 0, 0), (1_000, 1, 3), (4_000, 4, 4)])
def test_the_message_is_hidden_while_checks_take_long(page_ms: int, least: int, most: int) -> None:
    minutes = [slots.minute_of(NOW + number * slots.MINUTE) for number in range(10)]
    stage = closed(*minutes)
    stage.clock.at = began = NOW + leftover.CHECKS_MS[0]
    stage.jobs = Wrapped(stage.jobs, due=lambda verb, *args, **more: (stage.clock.advance(page_ms), verb(*args, **more))[1])
    hidden = [began]  # the worker did
    check(stage, lambda: hidden.append(stage.clock.now()))
    assert least <= len(hidden) - 1 <= most
    assert all(later - earlier <= (VISIBLE_S - 5) * 1_000 for earlier, later in itertools.pairwise(hidden))


# The sweep


def sweep(stage: Stage) -> int:
    """Sweep as many pages as the index has. Returns how many jobs were found."""
    return sum(check(stage).swept for _ in range(8))


def orphans(*jobs: Job) -> Stage:
    """A stage with these jobs, whose ledger has opened every minute up to an hour after them."""
    stage = Stage()
    stage.clock.at = NOW + 3_600_000
    for job in jobs:
        stage.jobs.put(job)
    stage.ledger.advance(None, Cursor(slots.minute_of(stage.clock.at), 2))
    return stage


def test_the_sweep_finds_jobs_after_the_ledger_was_emptied_a4() -> None:
    job = a_job(due_at=NOW - 3 * 86_400_000)
    stage = Stage()
    stage.jobs.put(job)
    stage.tick()  # a new ledger
    assert sweep(stage) == 1
    assert stage.waiting(Lane.ONE_TIME) == [job.id] and slots.is_safe(stage.stored(job).slot or "", NOW)


def test_the_sweep_finds_jobs_in_shards_that_were_not_opened() -> None:
    job = a_job(due_at=NOW, slot=f"{MINUTE}#07")
    stage = orphans(job)
    stage.ledger.open_unit(Unit(UNIT, 0, 1, handed_out_at=NOW))
    assert sweep(stage) == 1 and stage.waiting(Lane.ONE_TIME) == [job.id]


def test_the_sweep_moves_jobs_of_a_paused_lane_without_enqueueing_them() -> None:
    """After a jobs table was restored, all lanes are paused: the jobs wait in future minutes."""
    job = a_job(due_at=NOW)
    stage = orphans(job)
    pause(tuple(Lane), None, stage)
    assert sweep(stage) == 1
    assert stage.waiting(Lane.ONE_TIME) == [] and slots.is_safe(stage.stored(job).slot or "", stage.clock.now())


def test_the_sweep_leaves_jobs_in_open_units_alone() -> None:
    job, flooded = a_job(due_at=NOW), a_job(due_at=NOW, slot=slots.overflow("x", 1))
    stage = orphans(job, flooded)
    stage.ledger.open_unit(Unit(UNIT, 0, 1, handed_out_at=NOW))
    stage.ledger.open_unit(Unit(UnitKey(slots.OVERFLOW, 0), 0, 7))
    assert sweep(stage) == 0
    assert [stage.stored(each) for each in (job, flooded)] == [job, flooded]


def test_the_sweep_finds_jobs_in_the_overflow_without_a_unit() -> None:
    flooded = a_job(due_at=NOW, slot=slots.overflow("x", 1))
    stage = orphans(flooded)
    assert sweep(stage) == 1 and not slots.is_overflow(stage.stored(flooded).slot or "")


@pytest.mark.parametrize(("age", "found"), [(ORPHAN_MS, 0), (ORPHAN_MS + slots.MINUTE, 1), (-3_600_000, 0)])
def test_the_sweep_leaves_minutes_alone_that_are_not_long_past(age: int, found: int) -> None:
    stage = orphans()
    stage.jobs.put(a_job(due_at=stage.clock.at - age))
    assert sweep(stage) == found


def test_the_sweep_reads_one_page_a_step_and_begins_again() -> None:
    jobs = [a_job(due_at=NOW + number * slots.MINUTE) for number in range(3)]
    stage = orphans(*jobs)
    assert [check(stage).swept for _ in range(4)] == [1, 1, 1, 0]
    late = a_job(due_at=NOW)
    stage.jobs.put(late)
    assert sweep(stage) == 1


def test_the_sweep_reads_a_million_jobs_in_about_two_to_four_hours() -> None:
    """As the pages say: a page of 1 MB a minute. Whether DynamoDB's overhead of 100 bytes belongs to a page is not documented."""
    item = items.encode(a_job(owner="00000000-0000-4000-8000-000000000001", lane=Lane.RECURRING, slot=f"{MINUTE}#07"))
    entry = items.size({name: item[name] for name in ("pk", "sk", "slot", "due_at", "lane", "fence")})
    least, most = (1_000_000 * each / 2**20 / 60 for each in (entry, entry + 100))
    assert round(least) == 2 and round(most) == 4


def test_the_sweep_hands_on_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leftover, "PIECE", 4)
    stage, sizes = orphans(*[a_job(due_at=NOW) for _ in range(10)]), list[int]()
    stage.jobs = Wrapped(stage.jobs, change=lambda verb, changes: (sizes.append(len(changes)), verb(changes))[1])
    assert sweep(stage) == 10 and max(sizes) <= 4


def test_the_sweep_sets_unreadable_items_aside() -> None:
    job = a_job(due_at=NOW)
    stage = orphans(job)
    stage.jobs.unreadable[job.key] = "another version"
    assert sweep(stage) == 1
    assert slots.minute(stage.jobs.rows[job.key].slot or "") > slots.minute_of(stage.clock.at)


def test_a_ledger_that_refuses_fails_the_step() -> None:
    stage = closed()
    stage.ledger = Wrapped(MemoryLedger(), later_checks=times(1))
    with pytest.raises(Unavailable):
        check(stage)


def test_a_page_that_cannot_be_swept_does_not_stop_the_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = closed()
    for number in (1, 2):  # in memory, a slot is a page
        stage.jobs.put(a_job(due_at=NOW, slot=f"2026-11-20T09:0{number}#00"))
    monkeypatch.setattr("scheduler.pipeline.later_checks.recheck", lambda *args, **named: 1 / 0)
    check(stage)
    first = stage.ledger.sweep_cursor()
    check(stage)
    assert first is not None and stage.ledger.sweep_cursor() not in (None, first)


def test_a_page_that_a_table_refuses_is_swept_again() -> None:
    stage = closed()
    stage.jobs.put(a_job(due_at=NOW, slot="2026-11-20T09:01#00"))
    stage.jobs = Wrapped(stage.jobs, outlines=times(1))
    with pytest.raises(Unavailable):
        check(stage)
    assert stage.ledger.sweep_cursor() is None and check(stage).swept == 1


def test_a_sweep_without_past_slots_reads_no_unit_and_writes_nothing() -> None:
    stage = Stage()
    stage.jobs.put(a_job(due_at=NOW + 3_600_000, slot="2026-11-20T11:00#00"))
    stage.ledger.set_sweep_cursor("2026-11-20T11:00#00")  # in memory: this page is the last one
    stage.ledger = Wrapped(stage.ledger, open_units=lambda verb: 1 / 0, set_sweep_cursor=lambda verb, cursor: verb(cursor))
    assert check(stage).swept == 0
