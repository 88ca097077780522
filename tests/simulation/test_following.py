"""Jobs that wait for others, under faults and without."""

import pytest

from tests.simulation import crash_points
from tests.simulation.crash_points import Point, crash, points_of_followers
from tests.simulation.following import following, following_calmly
from tests.simulation.sabotage import SABOTAGES, find
from tests.simulation.seeds import each

MINE = [each for each in SABOTAGES if each.scene in (following, following_calmly)]


@each([1, 2], range(3, 8), range(8, 20))
def test_no_job_starts_before_its_predecessors_and_each_is_decided(seed: int) -> None:
    report = following(seed).report
    assert report.violations == {}, report.examples
    assert report.after > 80 and report.skipped_after > 0


@each([1], range(2, 4), range(4, 8))
def test_a_job_starts_when_the_last_predecessor_has_ended(seed: int) -> None:
    report = following_calmly(seed).report
    assert report.violations == {}, report.examples
    assert report.after > 80


@pytest.mark.parametrize("sabotage", MINE, ids=lambda each: each.name)
def test_it_notices_a_removed_guard_of_the_followers(sabotage: object) -> None:
    assert find(sabotage, range(1, 6)) is not None  # type: ignore[arg-type]


FEW = [
    Point("submit", "put", "add"),  # the job is stored, and no predecessor knows of it
    Point("submit", "add", "follow"),  # the records are stored, but the predecessors are not marked
    Point("execute", "change", "note_ends"),  # a job has ended, and nobody has noted it
    Point("execute", "note_ends", "change"),  # its end is noted, but nobody is released
    Point("follow_up.follow", "note_ends", "change"),  # the same, in a step
    Point("follow_up.follow", "change", "send"),  # jobs are brought to their time, but have no message
]


@pytest.mark.long
def test_every_job_ends_after_a_crash_among_followers() -> None:
    known = points_of_followers()
    assert set(FEW) <= known.keys(), sorted(known)
    for point in FEW:
        report, died = crash(known[point])
        assert died == point.service and report.violations == {}, (point, report.examples)


@pytest.mark.soak
def test_every_job_ends_after_a_crash_at_any_point_among_followers() -> None:
    for point, where in crash_points.points_of_followers().items():
        report, died = crash(where)
        assert died == point.service and report.violations == {}, (point, report.examples)
