"""The verdict of `make prove`: it reports each broken promise of each part, and no kept one."""

from typing import Any

import pytest

from lab.judge import Promise
from prove import judging
from prove.judging import grouped, of_cancelled, of_http, of_killed, of_order, of_part, of_peer, promises

DUE = 1_795_168_800_000  # 2026-11-20T10:00:00Z


def at(ms: int) -> str:
    return f"2026-11-20T10:00:{ms // 1000:02}.{ms % 1000:03}Z"


def job(id: str, *, start: int = 3, end: int = 13, **values: Any) -> dict[str, Any]:
    attempt = {"number": 1, "outcome": "succeeded", "started_at": at(start), "ended_at": at(end)}
    common = {"id": id, "status": "succeeded", "scheduled_at": at(0), "started_at": at(start), "start_delay_ms": start}
    return {**common, "attempts": [attempt], "killed_at": None, "reason": None, "response": None, **values}


def found(*jobs: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["id"]: each for each in jobs}


def test_a_part_has_the_figures_of_its_jobs_alone() -> None:
    jobs = [job(str(n), start=n, end=n + 1) for n in range(100)]
    row, complaints = of_part("spread", "100 jobs", promises([str(n) for n in range(99)]), found(*jobs))
    assert (row.jobs, row.p50_ms, row.p99_ms, row.max_ms) == (99, 49, 98, 98)
    assert (row.lost, row.early, row.twice, complaints) == (0, 0, 0, [])


@pytest.mark.parametrize(
    ("bad", "figure", "complaint"),
    [
        (None, "lost", "does not exist"),
        (job("a", start_delay_ms=None, status="queued", attempts=[]), "lost", "has not started; its status is queued"),
        (job("a", start_delay_ms=-2), "early", "started 2 ms early"),
        (job("a", attempts=[{"number": 1}, {"number": 2}]), "twice", "ran 2 times instead of 1"),
        (job("a", start_delay_ms=10_001), None, "started 10001 ms late"),
        (job("a", status="failed", reason="so"), None, "ended as failed: so"),
    ],
)
def test_each_broken_promise_is_counted_and_reported(bad: dict[str, Any] | None, figure: str | None, complaint: str) -> None:
    row, complaints = of_part("steady", "jobs", promises(["a", "b"]), found(job("b"), *([bad] if bad else [])))
    assert {name: getattr(row, name) for name in ("lost", "early", "twice")} == {
        "lost": int(figure == "lost"),
        "early": int(figure == "early"),
        "twice": int(figure == "twice"),
    }
    assert complaints == [f"steady: job (a): {complaint}"]


def test_a_part_without_any_start_has_no_delays() -> None:
    row, _ = of_part("cold", "one", promises(["a"]), {})
    assert (row.p50_ms, row.p99_ms, row.max_ms) == (None, None, None)


def test_many_complaints_of_a_part_are_counted() -> None:
    _, complaints = of_part("steady", "jobs", promises([str(n) for n in range(50)]), {})
    assert len(complaints) == judging.NAMED + 1
    assert complaints[-1] == f"steady: {50 - judging.NAMED} more of its jobs broke a promise"


def in_line(*spans: tuple[int, int]) -> list[dict[str, Any]]:
    return [job(f"{n}", start=start, end=end) for n, (start, end) in enumerate(spans)]


def test_a_line_that_runs_one_after_the_other_is_in_order() -> None:
    row, complaints = of_order(["0", "1", "2"], found(*in_line((0, 100), (100, 200), (15_000, 15_300))))
    assert complaints == []
    assert row.note == "in order, one at a time, 15.3 s in all"
    assert row.p99_ms is None, "the later jobs wait for the earlier ones"


@pytest.mark.parametrize("spans", [[(0, 100), (99, 200)], [(100, 200), (0, 100)]])
def test_a_line_that_overlaps_or_turns_is_out_of_order(spans: list[tuple[int, int]]) -> None:
    row, complaints = of_order(["0", "1"], found(*in_line(*spans)))
    assert row.note == "out of order"
    assert complaints == ["order: 1 started before 0, which is before it, had ended"]


def test_a_job_killed_at_its_time_out_keeps_the_promise() -> None:
    row, complaints = of_killed("a", found(job("a", start=0, status="killed", killed_at=at(2_400))), timeout_s=2)
    assert (complaints, row.note, row.lost) == ([], "killed 0.40 s after its time-out", 0)


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"status": "succeeded"}, "killed: job (a): ended as succeeded, not killed: no reason given"),
        ({"status": "killed", "killed_at": at(3_200)}, "killed: a was killed 1.200 s after its time-out, not within 1 s"),
        ({"status": "killed", "killed_at": at(1_500)}, "killed: a was killed -0.500 s after its time-out, not within 1 s"),
    ],
)
def test_a_job_not_killed_in_time_breaks_the_promise(values: dict[str, Any], complaint: str) -> None:
    assert of_killed("a", found(job("a", start=0, **values)), timeout_s=2)[1] == [complaint]


def test_a_cancelled_job_must_never_run() -> None:
    never = job("a", status="cancelled", started_at=None, start_delay_ms=None, attempts=[])
    assert of_cancelled("a", found(never))[1] == []
    assert of_cancelled("a", found(job("a")))[1] == ["cancelled: a ran, although it was cancelled before its instant"]
    assert of_cancelled("a", found({**never, "status": "queued"}))[1] == ["cancelled: a is queued, although it was cancelled"]
    assert of_cancelled("a", {})[1] == ["cancelled: a does not exist"]


def test_an_http_job_calls_once_and_gets_its_answer() -> None:
    good = found(job("a", response={"status": 200}))
    assert of_http("a", good, [DUE + 4], "it")[1] == []
    assert of_http("a", good, None, "it")[1] == []
    assert of_http("a", good, [], "it")[1] == ["http: the receiver was called 0 times instead of once"]
    assert "http: the receiver was called 2 times instead of once" in of_http("a", good, [DUE + 4, DUE + 5], "it")[1]
    assert of_http("a", good, [DUE - 1], "it")[0].early == 1
    moved = found(job("a", response={"status": 204}))
    assert of_http("a", moved, None, "it")[1] == ["http: a succeeded with the status 204 instead of 200"]


def test_a_peer_is_measured_and_never_judged() -> None:
    delays = grouped([(0, 200), (1, -5), (2, 59_000), (0, 900)])
    row = of_peer("scheduler-spread", "title", 4, delays, 0.5, "note")
    assert (row.p50_ms, row.p99_ms, row.max_ms) == (200, 59_000, 59_000)
    assert (row.lost, row.early, row.twice) == (1, 1, 1)


def test_a_peer_that_sent_nothing_has_no_delays() -> None:
    row = of_peer("sqs-spread", "title", 4, {}, 0.5, "note")
    assert (row.p50_ms, row.max_ms, row.lost) == (None, None, 4)


def test_a_run_of_a_task_is_promised_to_start_like_a_job() -> None:
    assert of_part("cron", "a task", [Promise("no job", "run at noon")], {})[1] == ["cron: run at noon (no job): does not exist"]
