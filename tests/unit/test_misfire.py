"""The start deadline of a run."""

import pytest

from scheduler.model.job import Attempt, Job, Misfire, Outcome, RequeueCause, RunInfo
from scheduler.model.misfire import expires_at, plan_start_by, too_late
from tests.conftest import NOW, a_job

MINUTE = 60_000
HOUR = 60 * MINUTE


@pytest.mark.parametrize(
    ("misfire", "following", "expected"),
    [
        (Misfire.SKIP, [HOUR], MINUTE),
        (Misfire.SKIP, [], MINUTE),
        (Misfire.RUN_LATEST, [HOUR, 2 * HOUR], HOUR),
        (Misfire.RUN_LATEST, [1_000], MINUTE),
        (Misfire.RUN_LATEST, [], None),
        (Misfire.RUN_ALL, [HOUR, 2 * HOUR, 3 * HOUR, 4 * HOUR], 3 * HOUR),
        (Misfire.RUN_ALL, [1_000, 2_000, 3_000], MINUTE),
        (Misfire.RUN_ALL, [HOUR, 2 * HOUR], None),
    ],
)
def test_the_misfire_rule_determines_the_start_deadline(misfire: Misfire, following: list[int], expected: int | None) -> None:
    start_by = plan_start_by(misfire, NOW, [NOW + ahead for ahead in following], MINUTE, 3)
    assert start_by == (None if expected is None else NOW + expected)


def a_run(**fields: object) -> Job:
    return a_job(origin=RunInfo("t1", 1, NOW, misfire=Misfire.RUN_LATEST), **({"start_by": NOW + MINUTE} | fields))


def test_a_run_is_skipped_from_its_start_deadline_on() -> None:
    assert too_late(a_run(), NOW + MINUTE - 1) is None
    assert too_late(a_run(), NOW + MINUTE) == "misfire: it could not start before 2026-11-20T10:01:00.000Z"
    assert too_late(a_run(start_by=None), NOW + HOUR) is None


CRASHED = (Attempt(1, NOW, NOW, NOW, Outcome.CRASHED),)


@pytest.mark.parametrize(
    ("fields", "skipped"),
    [
        ({"fence": 2}, False),
        ({"fence": 2, "reason": "overlap: run X has not ended"}, False),
        ({"fence": 2, "reason": "its lane is paused"}, False),
        ({"fence": 2, "requeue_cause": RequeueCause.PAUSED}, True),
        ({"fence": 3, "requeue_cause": RequeueCause.PAUSED, "attempts": CRASHED}, False),
    ],
)
def test_a_misfire_rule_skips_no_run_that_was_tried_or_requeued(fields: dict[str, object], skipped: bool) -> None:
    assert (too_late(a_run(**fields), NOW + HOUR) is not None) is skipped


@pytest.mark.parametrize("origin", [None, RunInfo("t1", 1), RunInfo("t1", 1, NOW)])
def test_an_expiry_is_a_start_deadline_without_a_misfire_rule(origin: RunInfo | None) -> None:
    job = a_job(origin=origin, start_by=NOW + MINUTE, fence=4)
    assert expires_at(job) == NOW + MINUTE and too_late(job, NOW + MINUTE - 1) is None
    assert too_late(job, NOW + MINUTE) == "expired: it was not to start at 2026-11-20T10:01:00.000Z or later"
    assert expires_at(a_run()) is None


def test_a_job_that_has_started_once_is_not_skipped_for_its_expiry() -> None:
    """Settling its failed attempt decides whether it is retried."""
    assert too_late(a_job(start_by=NOW + MINUTE, delay_ms=0, fence=2), NOW + MINUTE) is None
