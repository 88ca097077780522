"""The services recover from a crash between any two effects."""

import re
from collections.abc import Iterable
from functools import cache
from itertools import islice

import pytest

from tests.language import ROOT
from tests.simulation.crash_points import END, Point, Where, crash, points, points_of_followers, points_of_keys

FEW = [
    Point("submit", "put", "send"),  # the job is accepted but not enqueued
    Point("execute", "claim", "change"),  # the job is claimed and its work done, but not settled
    Point("execute", "change", END),  # the job is settled, but its message not deleted
    Point("requests.start", "add", "send"),  # the operation is stored, but its message not sent
    Point("requests.start", "send", END),  # its message is sent, but the request not answered
    Point("step", "change", END),  # the progress is stored, or the operation has ended, but its message is not hidden or deleted
    Point("step", "change", "change"),  # the operation is leased, and has done nothing; or a chunk is cancelled but not counted
    Point("step", "store", "withdraw"),  # a task is paused, but its runs are still there
    Point("step", "withdraw", "change"),  # the runs are withdrawn, but the chunk is not counted
]


KNOWN = cache(points)


def recovers_at(known: Iterable[tuple[Point, Where]]) -> None:
    for point, where in known:
        report, died = crash(where)
        assert died == point.service
        assert report.violations == {}, (point, where, report.examples)


@pytest.mark.long
def test_every_job_ends_after_a_crash_in_the_main_services() -> None:
    known = points((2,))
    for point in FEW:
        report, died = crash(known[point])
        assert died == point.service
        assert report.violations == {}, (point, report.examples)


@pytest.mark.long
def test_every_job_ends_after_a_crash_at_some_points_of_any_service() -> None:
    known = KNOWN()
    assert len(known) > 100 and len({point.service for point in known}) > 15
    recovers_at(islice(known.items(), 0, None, 12))


@pytest.mark.soak
def test_every_job_ends_after_a_crash_at_any_point_of_any_service() -> None:
    recovers_at(KNOWN().items())


OF_KEYS = [
    Point("by_key.put", "take_keys", END),  # the job has its key but is not enqueued
    Point("by_key.put", "change", "send"),  # the job is replaced but not enqueued
    Point("by_key.cancel_by_key", "change", END),
]


@pytest.mark.long
def test_every_job_ends_after_a_crash_in_an_operation_by_key() -> None:
    known = points_of_keys((1,))
    for point in OF_KEYS:
        report, died = crash(known[point])
        assert died == point.service
        assert report.violations == {}, (point, report.examples)


@pytest.mark.long
def test_every_job_ends_after_a_crash_at_any_point_of_an_operation_by_key() -> None:
    known = points_of_keys()
    assert len(known) > 8
    recovers_at(known.items())


@pytest.mark.long
def test_the_page_on_faults_names_the_services_with_points() -> None:
    page = (ROOT / "docs/internals/faults.md").read_text()
    table = page.partition("| part | services |")[2].partition("\n\n")[0]
    known = KNOWN() | points_of_keys() | points_of_followers()
    assert len(known) > 200 and {point.service for point in known} == set(re.findall(r"`([a-z_.]+)`", table))
