"""Lateness without a reason, jobs that circle, lenient queues."""

from random import Random

import pytest

from lab.world.faults import CALM, Faults
from lab.world.hub import Hub
from lab.world.queues import Lenience, SimLanes
from scheduler.model.job import Lane
from scheduler.model.rules import Rules
from scheduler.model.schedule import Rate, Schedule
from scheduler.storage.memory.ports import MemoryPorts
from scheduler.storage.memory.stores import MemoryJobs
from scheduler.tasks import planning
from tests.contract import make
from tests.simulation.lenient import LENIENT, LenientWorld
from tests.simulation.oracles import WatchedWorld
from tests.simulation.people import People, Version
from tests.simulation.seeds import each
from tests.simulation.world import START


@each([1], range(2, 4), range(4, 8))
def test_without_faults_no_job_is_late_in_a_free_lane(seed: int) -> None:
    world = WatchedWorld(seed)
    report = world.run(300, 10, tasks=3, ordered=30, wind_down=30)
    assert report.violations == {}, report.examples
    churn = world.churn()
    assert churn["claims"] < 3 and churn["messages"] < 3, churn


def test_the_oracle_sees_a_late_job_in_a_free_lane() -> None:
    world = WatchedWorld(1)
    wake = world.lanes._wake[Lane.ONE_TIME]
    world.lanes._wake[Lane.ONE_TIME] = lambda: world.hub.at(world.hub.time + 3_000, wake)  # polls come three seconds late
    assert world.run(60, 5, wind_down=30).violations["late_though_free"] > 3


def test_the_oracle_sees_a_job_that_is_claimed_again_and_again() -> None:
    world = WatchedWorld(1)

    def again() -> None:
        key = next(iter(world.claims))
        world.claims[key] += 1_000

    world.hub.at(world.hub.time + 240_000, again)
    assert world.run(60, 5, wind_down=30).violations["churn"] == 1


@pytest.mark.long
@pytest.mark.parametrize(("seed", "lenience"), [(9, Lenience.SAID), (9, Lenience.DONE), (14, Lenience.SAID), (16, Lenience.DONE)])
def test_a_lost_lease_stays_lost_if_the_queue_says_yes(seed: int, lenience: Lenience) -> None:
    """In each of these worlds a job starts on an outdated claim once executors renew lost leases."""
    report = LenientWorld(seed, lenience=lenience).run(**LENIENT)
    assert report.violations == {}, report.examples


@pytest.mark.parametrize(
    ("lenience", "says", "moves"), [(Lenience.NO, False, False), (Lenience.SAID, True, False), (Lenience.DONE, True, True)]
)
def test_lenient_queues_take_an_old_receipt_with_or_without_effect(lenience: Lenience, says: bool, moves: bool) -> None:
    hub = Hub(START)
    lanes = SimLanes(hub, Faults(CALM, Random(1), hub), lambda lane: None)
    lanes.lenience = lenience
    lanes.add(make.message(), START)
    (old,) = lanes.receive(Lane.ONE_TIME, 1, START)
    (new,) = lanes.receive(Lane.ONE_TIME, 1, START + 1_000_000)
    message = lanes.queues[Lane.ONE_TIME][new.message_id]
    before = message.visible_at
    assert lanes.extend(Lane.ONE_TIME, [old.receipt], 30) == ({old.receipt} if says else set())
    assert (message.visible_at != before) is moves
    assert lanes.extend(Lane.ONE_TIME, [new.receipt], 60) == {new.receipt}


@pytest.mark.parametrize("missing", [False, True])
def test_an_entry_stands_for_missed_runs_that_jitter_moved(missing: bool) -> None:
    schedule = Schedule(Rate(60_000, START), end=START + 60 * 60_000, jitter_ms=30_000)
    task = make.task(schedule=schedule, planned_until=START, created_at=START, updated_at=START)
    now, found, jobs = START + 3 * 60 * 60_000, list[str](), MemoryJobs()
    hub = Hub(now)
    people = People(hub, Faults(CALM, Random(1), hub), Random(1), MemoryPorts, lambda name, detail: found.append(name))
    ahead = planning.further(task, now, Rules())
    behind = planning.catch_up(ahead.task, now, Rules())
    jobs.put_many([*ahead.runs, *behind.runs[missing:]])
    people.versions[task.key] = [Version(behind.task, START)]
    people.judge(jobs)
    assert ("run_missing" in found) is missing
