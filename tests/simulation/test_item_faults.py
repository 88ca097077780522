"""Jobs through the codec, items with sizes, and bad items."""

from dataclasses import replace

import pytest

from lab.world.faults import CALM, ROUGH
from scheduler.model import slots
from scheduler.model.errors import TooLarge
from scheduler.storage.aws import items
from scheduler.storage.memory.stores import MemoryJobs
from scheduler.storage.ports import Change, ClaimRequest, Written
from tests.contract import make
from tests.simulation.item_faults import BAD_JOBS, ITEM_LIMIT, Bad, Coded, CodedWorld, PoisonedWorld
from tests.simulation.world import START


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 3, 4))])
def test_jobs_that_are_stored_as_items_keep_their_promises(seed: int) -> None:
    report = CodedWorld(seed, ROUGH).run(150, 8, tasks=2, ordered=20, wind_down=95)
    assert report.violations == {}, report.examples
    assert report.accepted > 100


def large(over: int) -> Coded:
    """Return a table with one job, whose item has `over` bytes more than an item may have."""
    plain = MemoryJobs()
    job = make.job(payload={"text": ""})
    job = make.job(payload={"text": "x" * (ITEM_LIMIT + over - items.size(items.encode(job)))}, id=job.id)
    assert items.size(items.encode(job)) == ITEM_LIMIT + over
    plain.put(job)
    return Coded(plain, plain.rows)


def test_an_item_above_the_limit_is_refused_as_dynamodb_does() -> None:
    full, jobs = make.job(), large(0)
    (job,) = jobs._port.rows.values()
    jobs.put(full)
    moved = Change(job, replace(job, looks=1))
    assert jobs.change([moved]) == [Written.REFUSED]
    assert jobs.change([moved, Change(full, replace(full, looks=1))]) == [Written.REFUSED, Written.YES]
    requests = [ClaimRequest(each.key, 1, "m1", "n1", each.due_at, True, each.due_at) for each in (job, full)]
    assert jobs.claim(requests[:1]) == [None]
    refused, claimed = jobs.claim(requests)
    assert refused is None and claimed is not None and claimed.won
    with pytest.raises(TooLarge):
        jobs.put(replace(large(1)._port.rows.popitem()[1], owner="bob"))


def run(bad: Bad) -> PoisonedWorld:
    world = PoisonedWorld(1, bad)
    world.run(150, 12, wind_down=60)
    return world


@pytest.mark.parametrize("bad", Bad)
def test_bad_jobs_stop_no_other_job(bad: Bad) -> None:
    world = run(bad)
    assert world.report.violations == {}, world.report.examples
    assert len(world._bad_keys) == BAD_JOBS and world.report.accepted > 130


def test_the_bad_jobs_of_a_world_share_one_slot_of_the_due_minute() -> None:
    world = PoisonedWorld(1, Bad.READ, CALM)
    world.hub.run(START + slots.MINUTE)
    assert {world.jobs.rows[key].slot for key in world._bad_keys} == {"2026-11-20T10:06#03"}
