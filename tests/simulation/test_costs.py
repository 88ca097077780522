"""The costs of calls, and the memory of steps."""

from dataclasses import replace
from typing import Any

import pytest

from lab.world import costs
from lab.world.costs import DEV, ENTRY_MEMORY, JOB_MEMORY, PAGE, PROD, paged
from lab.world.faults import CALM
from scheduler.model import slots
from scheduler.model.job import DueEntry, JobKey, Lane
from scheduler.model.rules import Rules
from tests.contract import make
from tests.simulation.stepped import CostlyWorld
from tests.simulation.world import START

MINUTE = START + 20 * slots.MINUTE
SLOT = slots.minute_of(MINUTE) + "#00"


def stored(count: int, memory_mb: Any = PROD) -> CostlyWorld:
    """Return a world with `count` jobs in one slot."""
    world = CostlyWorld(1, CALM, rules=Rules(shards=1), memory_mb=memory_mb)
    world.faults.on = False
    for number in range(count):
        world.jobs.put(replace(make.job(at=MINUTE, id=f"{number:08d}"), slot=SLOT))
    return world


def seconds(world: CostlyWorld, work: Any) -> float:
    """Return the virtual seconds that the invocation `work(ports)` of a dispatcher takes."""
    took: list[int] = []

    def invocation() -> None:
        began = world.hub.time
        work(world._dispatchers.but(clock=world._clock()))
        took.append(world.hub.time - began)

    world.hub.spawn(invocation)
    world.hub.run(world.hub.time + slots.MINUTE)
    return took[0] / 1_000


def test_pages_of_the_due_index_end_at_one_megabyte() -> None:
    entries = [DueEntry.of(JobKey("ada", f"{number:06d}"), SLOT, number // 3, Lane.ONE_TIME, 1) for number in range(2 * PAGE + 1)]
    found, after, pages = list[DueEntry](), None, 0
    while True:
        page, after = paged(entries, after, PAGE)
        found += page
        pages += 1
        if after is None:
            break
    assert found == entries and pages == 3


def test_a_page_beyond_a_dropped_entry_goes_on_behind_it() -> None:
    entries = [DueEntry.of(JobKey("ada", f"{number:06d}"), SLOT, 0, Lane.ONE_TIME, 1) for number in range(6)]
    _, after = paged(entries, None, 3)
    assert paged([*entries[:2], *entries[3:]], after, 3)[0] == entries[3:]


def test_reading_takes_the_time_of_its_entries_by_the_share_of_a_core() -> None:
    def read(ports: Any) -> None:
        page, after = ports.jobs.due(SLOT)
        assert len(page) == 4_000 and after is None

    small, large = seconds(stored(4_000, DEV), read), seconds(stored(4_000, PROD), read)
    assert 4_000 * 17e-6 < large < 4_000 * 23e-6 + 0.006
    assert 3 < small / large < 4  # 512 MB have 0.29 of a core


def test_reading_whole_jobs_takes_their_time_and_loses_none() -> None:
    world = stored(2_000)
    keys = list(world.jobs.rows)

    def read(ports: Any) -> None:
        for _ in range(10):
            assert ports.jobs.get_many(keys) == {key: world.jobs.rows[key] for key in keys}

    assert seconds(world, read) > 10 * 2_000 * 29e-6


def test_a_step_counts_what_it_holds_and_no_more() -> None:
    world = stored(1_000)
    keys = list(world.jobs.rows)[:100]
    held: list[int] = []

    def read(ports: Any) -> None:
        step = ports.jobs._step
        entries, _ = ports.jobs.due(SLOT)
        kept = entries[:10]
        held.append(step.in_memory)
        del entries
        held.append(step.in_memory)
        jobs = list(ports.jobs.get_many(keys).values())
        del kept
        held.append(step.in_memory)
        jobs.clear()
        held.append(step.in_memory)
        held.append(step.most)

    seconds(world, read)
    assert held[:2] == [1_000 * ENTRY_MEMORY, 10 * ENTRY_MEMORY]
    assert 100 * JOB_MEMORY <= held[2] < 100 * (JOB_MEMORY + 200)
    assert held[3:] == [0, 1_000 * ENTRY_MEMORY]
    assert world.costs is not None and world.costs.most["dispatch"] == 1_000 * ENTRY_MEMORY


def test_a_step_is_killed_once_it_outlasts_its_limit() -> None:
    world = stored(1)
    reached: list[str] = []

    def read(ports: Any) -> None:
        ports.clock.sleep_until(world.hub.time + costs.LIMIT_MS["dispatch"])
        reached.append("slept")
        ports.jobs.due(SLOT)
        reached.append("read")

    world.hub.spawn(lambda: read(world._dispatchers.but(clock=world._clock())))
    world.hub.run(world.hub.time + 2 * costs.LIMIT_MS["dispatch"])
    assert reached == ["slept"] and world.costs is not None and world.costs.killed == 1


@pytest.mark.long
def test_a_small_world_with_costs_breaks_no_promise() -> None:
    world = CostlyWorld(1, CALM)
    report = world.run(150, 5)
    assert report.violations == {}, report.examples
    assert world.costs is not None and set(world.costs.steps) == {"api", "tick", "dispatch", "execute"}
    assert 0 < world.costs.most["dispatch"] < 1_000_000
