"""Whoever dies between two effects leaves nothing that the others cannot mend."""

import pytest

from tests.simulation.crash_points import END, Point, crash, points

FEW = [
    Point("submit", "put", "send"),  # accepted, and never handed over
    Point("execute", "claim", "change"),  # claimed, worked, and not settled
    Point("execute", "change", END),  # settled, and its message not deleted
]


def test_after_a_crash_at_the_heart_of_a_service_everything_has_its_end() -> None:
    known = points((2,))
    for point in FEW:
        report, died = crash(*known[point])
        assert died == point.service
        assert report.violations == {}, (point, report.examples)


@pytest.mark.long
def test_after_a_crash_behind_any_effect_of_any_service_everything_has_its_end() -> None:
    known = points()
    assert len(known) > 100 and len({point.service for point in known}) > 15
    for point, where in known.items():
        report, died = crash(*where)
        assert died == point.service
        assert report.violations == {}, (point, where, report.examples)
