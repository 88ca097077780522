"""A flood of one user beside the jobs of two others, in virtual time: shares, waits, and the lane's whole capacity for a single user."""

import re
from collections import Counter
from typing import Any
from unittest.mock import patch

import pytest

from lab.world.faults import Rates
from scheduler.model.job import Lane
from scheduler.model.rules import Rules
from scheduler.pipeline.direct_path import DirectPath
from tests.language import ROOT
from tests.simulation import fairness
from tests.simulation.fairness import AT, FLOOD, LONG, WEIGHTS, Flood, Seen, bound
from tests.simulation.world import World

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
    """The last release of a run may contain many jobs of one user, so three runs are judged together."""
    runs = [Flood(LONG, fair=True, seed=seed, **options).flood() for seed in (1, 2, 3)]
    for seen in runs:
        through(seen, LONG)
        assert follow_the_weights(seen.started_while_all_wait()) and seen.started_while_all_wait().total() > 2_000
    assert follow_the_weights(sum((seen.released_while_all_wait() for seen in runs), Counter()))


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


@pytest.mark.long
def test_the_example_of_the_page_is_this_scene() -> None:
    page = (ROOT / "docs/concepts/fairness.md").read_text()
    for order, fair in (("by arrival", False), ("fair", True)):
        seen = Flood(FLOOD, fair=fair).flood()
        berta, carla, anton = (round(max(seen.waits(user)) / 1000) for user in ("berta", "carla", "anton"))
        (row,) = re.findall(rf"^\| {order} \|.*$", page, re.MULTILINE)
        assert row == f"| {order} | {berta} seconds | {carla} seconds | {anton} seconds |"


class Posted(Flood):
    """An idle lane of 69 executors, as an account of 100 has it; one user posts jobs of 200 ms for now."""

    def __init__(self, calls: int, jobs: int, apart_ms: int) -> None:
        World.__init__(self, 1, Rates(lag_ms=300), rules=Rules(steps=1_000, windows={Lane.ONE_TIME: 690}), concurrency=69)
        self.seen, self.processes = Seen(), [DirectPath(self.plain)]
        for call in range(calls):
            self._plan_call("anton", jobs, AT + call * apart_ms, None)


@pytest.mark.parametrize(("calls", "jobs", "latest_ms"), [(300, 1, 2_000), (1, 1_000, 6_000)], ids=["one by one", "together"])
def test_jobs_for_now_beyond_the_direct_path_start_soon_in_an_idle_lane(calls: int, jobs: int, latest_ms: int) -> None:
    with patch.object(fairness, "TAKES_MS", 200):
        seen = Posted(calls, jobs, 20).flood(20)
    through(seen, {"anton": calls * jobs})
    assert max(seen.waits("anton")) <= latest_ms
