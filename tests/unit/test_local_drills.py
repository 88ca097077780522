"""The drills' count of jobs that run at once."""

from typing import Any

from lab.scenarios.drills import most_at_once


def job(started: int | None, ended: int) -> dict[str, Any]:
    """Return a job that ran between these milliseconds; without `started`, one that never started."""
    at, end = (None if ms is None else f"2026-11-20T10:00:00.{ms:03d}Z" for ms in (started, ended))
    return {"started_at": at, "completed_at": end, "failed_at": None, "killed_at": None, "cancelled_at": None}


def test_consecutive_jobs_of_no_duration_count_as_one_at_once() -> None:
    assert most_at_once([job(0, 0), job(7, 7)]) == 1
    assert most_at_once([job(0, 0), job(9, 20), job(20, 30)]) == 1


def test_a_short_job_counts_with_the_jobs_that_run_beside_it() -> None:
    assert most_at_once([job(0, 50), job(20, 20)]) == 2
    assert most_at_once([job(10, 30), job(10, 40), job(15, 16)]) == 3


def test_a_job_without_a_start_does_not_count() -> None:
    assert most_at_once([job(None, 5)]) == 0
