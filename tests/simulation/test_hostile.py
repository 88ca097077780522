"""One owner does ten reasonable things at once: the jobs of all others start on time."""

import pytest

from tests.simulation.hostile import ACTS, HostileWorld, Row, few_steps


@pytest.mark.long
def test_the_others_are_on_time_whatever_one_owner_does() -> None:
    world = HostileWorld(1)
    assert world.run().violations == {}, {kind: row.text() for kind, row in world.rows().items()}


@pytest.mark.long
@pytest.mark.parametrize("act", [act for act in ACTS if act != "tasks"])
def test_nobody_is_late_beside_one_act(act: str) -> None:
    world = HostileWorld(1, acts=[act])
    world.run()
    assert {kind: row.over for kind, row in world.rows().items() if row.over} == {}


@pytest.mark.long
@pytest.mark.parametrize("steps", [3, 4])
def test_nobody_is_late_in_an_account_of_few_steps(steps: int) -> None:
    world = HostileWorld(1, acts=["long", "key", "failing", "flood"], steps=steps)
    assert world.run().violations == {}


@pytest.mark.long
def test_few_jobs_are_late_in_an_account_of_two_steps() -> None:
    assert "others_late" not in few_steps(1).report.violations


def test_a_row_counts_late_jobs_and_those_that_never_started() -> None:
    assert Row([0, 20, 10_001], never=2).over == 3
    assert (Row([0, 20, 10_001], never=2).text(), Row([], never=1).text()) == ("0.0 / 10 / 3", "- / - / 1")
