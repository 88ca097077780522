"""The demo's verdict: it reports every kind of broken promise, and no kept one."""

from typing import Any

import pytest

from lab.judge import Promise, Verdict, judge, of_task

DUE = 1_795_168_800_000  # 2026-11-20T10:00:00Z


def job(**values: Any) -> dict[str, Any]:
    attempts = [{"number": 1, "outcome": "succeeded"}]
    return {
        "id": "a",
        "status": "succeeded",
        "scheduled_at": "2026-11-20T10:00:00.000Z",
        "start_delay_ms": 3,
        "attempts": attempts,
        **values,
    }


def judged(promise: Promise, found: dict[str, Any] | None) -> tuple[dict[str, int], list[str]]:
    verdict = judge([promise], {} if found is None else {"a": found})
    return verdict.figures(), verdict.complaints


def test_a_job_that_ran_once_and_on_time_is_no_complaint() -> None:
    figures, complaints = judged(Promise("a", "good", calls=[DUE + 4]), job())
    assert complaints == []
    assert figures == {"jobs": 1, "succeeded": 1, "late_p50_ms": 3, "late_p99_ms": 3, "early": 0, "lost": 0, "duplicated": 0}


def test_a_job_that_is_gone_is_lost() -> None:
    assert judged(Promise("a", "gone"), None)[0]["lost"] == 1


def test_a_job_that_never_started_is_lost_and_its_status_reported() -> None:
    figures, complaints = judged(Promise("a", "stuck"), job(status="queued", start_delay_ms=None, attempts=[]))
    assert figures["lost"] == 1
    assert "queued" in complaints[0]


def test_a_start_before_its_time_is_early() -> None:
    assert judged(Promise("a", "hasty"), job(start_delay_ms=-1))[0]["early"] == 1


def test_a_call_before_its_time_is_early_despite_the_jobs_own_delay() -> None:
    assert judged(Promise("a", "liar", calls=[DUE - 1]), job())[0]["early"] == 1


def test_a_start_more_than_ten_seconds_late_is_a_complaint() -> None:
    assert judged(Promise("a", "late"), job(start_delay_ms=10_001))[1]
    assert not judged(Promise("a", "in time"), job(start_delay_ms=10_000))[1]


def test_more_attempts_than_expected_count_as_duplicated() -> None:
    attempts = [{"number": 1, "outcome": "crashed"}, {"number": 2, "outcome": "succeeded"}]
    assert judged(Promise("a", "twice"), job(attempts=attempts))[0]["duplicated"] == 1
    assert judged(Promise("a", "retried", attempts=2), job(attempts=attempts))[0]["duplicated"] == 0


def test_more_calls_than_attempts_count_as_duplicated() -> None:
    assert judged(Promise("a", "called twice", calls=[DUE, DUE + 1]), job())[0]["duplicated"] == 1


def test_a_job_that_did_not_succeed_is_a_complaint_with_its_reason() -> None:
    figures, complaints = judged(Promise("a", "bad"), job(status="failed", reason="500 from the target"))
    assert figures["succeeded"] == 0
    assert "500 from the target" in complaints[0]


def test_the_verdict_of_no_jobs_is_all_zero() -> None:
    assert judge([], {}).figures() == {
        "jobs": 0,
        "succeeded": 0,
        "late_p50_ms": 0,
        "late_p99_ms": 0,
        "early": 0,
        "lost": 0,
        "duplicated": 0,
    }


NOMINALS = ["2026-11-20T10:00:00.000Z", "2026-11-20T10:00:05.000Z"]


def of_one_task(jobs: list[dict[str, Any]], **calls: list[int]) -> Verdict:
    return judge(of_task("task", NOMINALS, jobs, calls), {job["id"]: job for job in jobs})


def runs() -> list[dict[str, Any]]:
    return [job(id=name, scheduled_at=nominal, nominal_at=nominal) for name, nominal in zip("ab", NOMINALS, strict=True)]


def test_a_task_that_ran_once_at_each_of_its_times_is_no_complaint() -> None:
    verdict = of_one_task(runs()[::-1], a=[DUE + 4], b=[DUE + 5_004])
    assert (verdict.complaints, verdict.jobs, verdict.succeeded) == ([], 2, 2)


def test_a_time_of_a_task_without_a_run_is_lost() -> None:
    verdict = of_one_task(runs()[:1])
    assert (verdict.jobs, verdict.lost) == (2, 1)
    assert NOMINALS[1] in verdict.complaints[0]


@pytest.mark.parametrize("nominal", [NOMINALS[1], "2026-11-20T10:00:10.000Z"])
def test_an_additional_run_of_a_task_counts_as_duplicated(nominal: str) -> None:
    assert of_one_task([*runs(), job(id="c", nominal_at=nominal)]).duplicated == 1


def test_the_complaints_name_the_run_that_called_twice_or_early() -> None:
    verdict = of_one_task(runs(), a=[DUE + 1, DUE + 2], b=[DUE + 4_999])
    assert (verdict.duplicated, verdict.early) == (1, 1)
    assert "(a)" in verdict.complaints[0]
    assert "(b)" in verdict.complaints[1]
