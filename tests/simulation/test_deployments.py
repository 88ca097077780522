"""Functions on different settings, an emptied ledger, a restored table: no stored job is lost. After an upgrade no job is late."""

from collections.abc import Callable

import pytest

from bench.scaling import COLD_MS
from local.home import REPOSITORY
from scheduler.model import slots
from tests.simulation import upgrades
from tests.simulation.deployments import FEW, MANY, DeployedWorld, outcome
from tests.simulation.sabotage import SABOTAGES, find
from tests.simulation.upgrades import LATE_MS, UpgradedWorld
from tests.simulation.world import START


@pytest.mark.long
@pytest.mark.parametrize("name", ["rolling", "rollback", "emptied", "restored"])
def test_no_stored_job_is_lost(name: str) -> None:
    seen = outcome(name)
    assert seen["violations"] == {}, seen
    assert seen["accepted"] > 100


def test_a_deployment_changes_the_settings_of_the_named_functions_only() -> None:
    world = DeployedWorld(1)
    world.shards(MANY, "api")
    assert world._ports().rules.shards == MANY
    assert world._dispatchers.but(clock=world._clock()).rules.shards == FEW
    assert {path.ports.rules.shards for path in world.processes} == {MANY}


def test_a_restored_table_shows_what_it_contained() -> None:
    world = DeployedWorld(1)
    world.hub.at(START + 3 * slots.MINUTE, lambda: kept.append(world.backup()))
    kept: list[object] = []
    world.run(40, 6, wind_down=20)
    (backup,) = kept
    world.restore(backup)  # type: ignore[arg-type]
    rows = backup[0]  # type: ignore[index]
    assert world.jobs.rows == rows
    world.hub.run(world.hub.time + slots.MINUTE)
    listed = {entry.key for slot in {job.slot for job in rows.values() if job.slot} for entry in world.jobs.due(slot)[0]}
    assert listed == {key for key, job in rows.items() if job.slot}


def test_an_emptied_ledger_knows_nothing() -> None:
    world = DeployedWorld(1)
    world.run(20, 3, wind_down=5)
    assert world.ledger.cursor() is not None
    world.empty_ledger()
    assert world.ledger.cursor() is None and world.ledger.open_units() == [] and world.ledger.later_checks(1 << 60) == []


@pytest.mark.parametrize("scene", [upgrades.announced, upgrades.dense, upgrades.quiet])
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 9))])
def test_no_job_is_late_although_an_upgrade_makes_every_process_cold(scene: Callable[[int], UpgradedWorld], seed: int) -> None:
    world = scene(seed)
    assert world.report.violations == {}, world.report.examples
    assert world.report.starts > 700


@pytest.mark.parametrize("name", ["of another deployment", "not announced"])
def test_it_notices_an_upgrade_that_meets_cold_executors(name: str) -> None:
    (removed,) = [each for each in SABOTAGES if name in each.name]
    found = find(removed, [removed.seed])
    assert found is not None and found.oracle == "late"


def test_the_page_has_the_figures_of_the_modelled_upgrade() -> None:
    page = " ".join((REPOSITORY / "docs/guides/upgrade.md").read_text().split())
    assert f"with cold starts of {COLD_MS / 1000:g} s: no job is more than {LATE_MS} ms late." in page
