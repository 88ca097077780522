"""The live table: the choice of jobs, their rows, and the width."""

from datetime import UTC
from typing import Any

from rich.console import Console

from local import run, table


def job(number: int, status: str = "scheduled", **values: Any) -> dict[str, Any]:
    return {"id": f"job-{number:02}", "type": "log", "scheduled_at": f"2026-11-20T10:00:{number:02}.000Z", "status": status, **values}


def ids(jobs: list[Any]) -> list[str]:
    return [job["id"] for job in jobs]


def test_jobs_are_shown_in_order_of_time() -> None:
    assert ids(table.choose([job(2, "succeeded"), job(1, "failed")], [job(4), job(3)], 10)) == ["job-01", "job-02", "job-03", "job-04"]


def test_a_short_table_keeps_the_latest_past_and_next_future_jobs() -> None:
    past = [job(number, "succeeded") for number in range(10)]
    ahead = [job(number) for number in range(20, 30)]
    assert ids(table.choose(past, ahead, 4)) == ["job-08", "job-09", "job-20", "job-21"]


def test_scheduled_jobs_take_at_most_their_share_of_a_tall_terminal() -> None:
    chosen = table.choose([job(1, "succeeded")], [job(number) for number in range(20, 50)], 100)
    assert len(chosen) == 1 + table.AHEAD


def test_a_job_that_fell_due_between_two_reads_is_shown_once() -> None:
    chosen = table.choose([job(1, "running")], [job(1, "scheduled")], 10)
    assert ids(chosen) == ["job-01"]


def test_a_row_shows_the_delay_and_the_outcome_of_each_attempt() -> None:
    attempts = [{"number": 1, "outcome": "failed"}, {"number": 2, "outcome": "succeeded"}]
    row = table.row(job(1, "succeeded", start_delay_ms=1_234, attempts=attempts), UTC)
    assert (row.due, row.delay, row.attempts) == ("10:00:01.000", "1,234 ms", "✗✓")


def test_a_job_that_has_not_started_has_no_delay() -> None:
    row = table.row(job(1, start_delay_ms=None, attempts=[]), UTC)
    assert (row.delay, row.attempts) == ("", "")


def test_a_delay_of_zero_is_shown() -> None:
    assert table.row(job(1, "succeeded", start_delay_ms=0), UTC).delay == "0 ms"


def test_without_a_terminal_only_changes_are_printed() -> None:
    jobs = [job(1, "running"), job(2)]
    assert ids(table.changed({"job-01": "scheduled", "job-02": "scheduled"}, jobs)) == ["job-01"]


def test_a_run_of_a_task_is_shown_with_the_name_of_the_task() -> None:
    names = {"t": "nightly"}
    assert table.row(job(1, task_id="t"), UTC, names).line().endswith("nightly")
    assert [table.row(job(1, task_id=task), UTC, names).task for task in ("t", "unknown", None)] == ["nightly", "", ""]


def test_a_line_of_a_job_without_a_task_has_no_trailing_space() -> None:
    assert table.row(job(1), UTC).line().endswith("scheduled")


def test_task_names_are_read_only_when_a_new_task_appears() -> None:
    names: dict[str, str] = {}
    run.learn(names, [job(1, task_id="t"), job(2, task_id="gone"), job(3, task_id=None)], lambda: [{"id": "t", "name": "nightly"}])
    assert names == {"t": "nightly", "gone": run.GONE}
    run.learn(names, [job(4, task_id="t"), job(5, task_id="gone")], never)
    assert names["t"] == "nightly"


def never() -> list[Any]:
    raise AssertionError("asked again")


def drawn(jobs: list[Any], width: int, **names: str) -> str:
    console = Console(width=width, force_terminal=False)
    with console.capture() as capture:
        console.print(table.picture(jobs, "caption", UTC, names))
    return capture.get()


def test_the_table_counts_the_states_and_shows_every_job() -> None:
    shown = drawn([job(1, "succeeded"), job(2, "succeeded"), job(3, "brand-new")], 80)
    assert "2 succeeded" in shown
    assert "job-03" in shown


def test_eighty_columns_show_everything() -> None:
    attempts = [{"outcome": "failed"}, {"outcome": "failed"}, {"outcome": "succeeded"}]
    values = {"id": "01M7X79EKJ3YQJCWKXJ3JTA5BP", "start_delay_ms": 123_456, "attempts": attempts}
    [line] = [line for line in drawn([{**job(1, "succeeded"), **values}], 80).splitlines() if "01M7" in line]
    assert line.split() == ["10:00:01.000", "01M7X79EKJ3YQJCWKXJ3JTA5BP", "log", "succeeded", "123,456", "ms", "✗✗✓"]


def test_a_narrow_terminal_cuts_only_the_name_of_the_task() -> None:
    values = {"id": "01M7X79EKJ3YQJCWKXJ3JTA5BP", "start_delay_ms": 12, "attempts": [{"outcome": "succeeded"}], "task_id": "t"}
    shown = {**job(1, "succeeded"), **values}
    [narrow] = [line for line in drawn([shown], 80, t="15 seconds").splitlines() if "01M7" in line]
    assert narrow.split() == ["10:00:01.000", "01M7X79EKJ3YQJCWKXJ3JTA5BP", "log", "succeeded", "12", "ms", "✓", "15", "se…"]
    assert "15 seconds" in drawn([shown], 100, t="15 seconds")
