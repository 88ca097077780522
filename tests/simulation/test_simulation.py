"""Short runs of the simulation. `make simulate` runs the long form."""

import pytest

from lab.world.faults import CALM, ROUGH
from scheduler.model.rules import Rules
from tests.simulation import lineage
from tests.simulation.seeds import each
from tests.simulation.world import Report, World

WIND_DOWN = 95  # minutes: an outage of the tick may begin with the last job and last for sixty


def run(seed: int, *, jobs: int = 800, minutes: int = 15, tasks: int = 0, calm: bool = False, rules: Rules | None = None) -> Report:
    return World(seed, CALM if calm else ROUGH, rules=rules).run(jobs, minutes, tasks=tasks, wind_down=WIND_DOWN)


@each([1], range(2, 5), [*range(5, 10), *range(11, 15)])
def test_no_job_is_lost_doubled_early_or_stuck_under_faults(seed: int) -> None:
    report = run(seed)
    assert report.violations == {}, report.examples
    assert report.accepted > 720 and sum(report.statuses.values()) == report.accepted
    assert report.faults.total() > 30


@each([11], range(12, 16), range(16, 32))
def test_each_run_of_a_task_ends_once_and_keeps_its_rules_under_faults(seed: int) -> None:
    report = run(seed, jobs=50, minutes=25, tasks=10)
    assert report.violations == {}, report.examples
    assert report.runs > 80


@each([21], range(22, 26), range(26, 32))
def test_jobs_of_an_ordering_key_start_in_order_under_faults(seed: int) -> None:
    report = World(seed, ROUGH).run(30, 15, ordered=150)
    assert report.violations == {}, report.examples
    assert report.ordered > 150 and report.waited > 40 and report.paused > 0


def test_only_functions_that_may_loop_reach_lambda_s_limit() -> None:
    world = World(21, CALM)
    assert world.run(30, 15, ordered=150).violations == {}
    assert world.lineage.longest["ExecuteOneTime"] > lineage.MOST, "the jobs of a key start each other"
    world = World(21, CALM)
    world.lineage.allowed = lineage.ALLOWED - {"ExecuteOneTime"}
    assert world.run(30, 15, ordered=150).violations.keys() == {"recursive_loop"}


@each([], [41, 43, 44], [45, 46, *range(48, 54)])
def test_an_idempotency_key_makes_one_job_under_faults(seed: int) -> None:
    report = World(seed, ROUGH).run(1_500, 10, ordered=200)
    assert report.violations == {}, report.examples
    assert report.faults["asked again"] > 7 and report.faults["replayed"] > 25


def test_jobs_start_on_their_instant_without_faults() -> None:
    report = run(5, calm=True, rules=Rules(shards=2))
    assert report.violations == {} and report.accepted == 800
    delays = sorted(report.delays)
    assert delays[len(delays) // 2] == 0
    assert delays[len(delays) * 99 // 100] <= 200
    assert delays[0] >= 0


@pytest.mark.long
def test_a_seed_gives_the_same_run_twice() -> None:
    one, two = run(6, jobs=150), run(6, jobs=150)
    assert (one.delays, one.statuses, one.faults, one.starts) == (two.delays, two.statuses, two.faults, two.starts)
    assert run(7, jobs=150).delays != one.delays
