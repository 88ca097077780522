"""A flood of one user beside the jobs of two others, in virtual time: shares, waits, and the lane's whole capacity for a single user."""

from collections import Counter
from typing import Any

import pytest

from tests.simulation.fairness import FLOOD, LONG, WEIGHTS, Flood, Seen, bound

TOTAL = sum(WEIGHTS.values())
LONG_TEST = pytest.mark.long


def through(seen: Seen, jobs: dict[str, int]) -> None:
    assert not seen.violations
    assert {user: len(seen.waits(user)) for user in jobs} == jobs


def follow_the_weights(shares: Counter[str]) -> bool:
    return all(shares[user] / shares.total() == pytest.approx(weight / TOTAL, rel=0.05) for user, weight in WEIGHTS.items())


@pytest.mark.long
@pytest.mark.parametrize(
    "options", [pytest.param({}, id="one dispatcher"), pytest.param({"units": 2}, id="two dispatchers", marks=LONG_TEST)]
)
def test_starts_follow_the_weights_while_all_users_wait(options: dict[str, Any]) -> None:
    seen = Flood(LONG, fair=True, **options).flood()
    through(seen, LONG)
    assert follow_the_weights(seen.released_while_all_wait())
    assert follow_the_weights(seen.started_while_all_wait()) and seen.started_while_all_wait().total() > 2_000


@pytest.mark.long
@pytest.mark.parametrize("options", [{}, {"units": 2}, {"now": True}], ids=["one dispatcher", "two dispatchers", "at once"])
def test_other_users_wait_no_longer_than_the_bound_beside_a_flood(options: dict[str, Any]) -> None:
    seen = Flood(FLOOD, fair=True, **options).flood()
    through(seen, FLOOD)
    for user in ("berta", "carla"):
        assert max(seen.waits(user)) <= bound(user, FLOOD[user])


@pytest.mark.long
def test_without_fair_shares_other_users_wait_for_the_whole_flood() -> None:
    seen = Flood(FLOOD, fair=False).flood()
    through(seen, FLOOD)
    assert min(max(seen.waits(user)) for user in ("berta", "carla")) > 45_000


@pytest.mark.long
def test_a_single_user_gets_the_whole_capacity_of_the_lane() -> None:
    jobs = {"anton": 3_000}
    fair, plain = (Flood(jobs, fair=fair).flood() for fair in (True, False))
    through(fair, jobs)
    steady, most = (sum(5_000 <= wait < 25_000 for wait in seen.waits("anton")) for seen in (fair, plain))
    assert steady >= 0.98 * most and most > 1_800  # packs of ten fill the executors better than single messages
    assert max(fair.waits("anton")) <= max(plain.waits("anton")) + 3_000
