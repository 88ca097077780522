"""The figures, ratios, tables and the picture of `make compare`."""

from xml.etree import ElementTree

from compare import report
from compare.work import QUANTILES, Outcome, Spent, Start, Workload, outcome, ratios, record, workloads

TEN = Workload("ten", 10)
SPENT = Spent(create_s=0.5, run_s=1.0, memory_mb=20.4, idle_percent=1.26)


def seen(*delays: float, work: Workload = TEN) -> Outcome:
    return outcome(work, [Start(f"j{number}", delay) for number, delay in enumerate(delays)], SPENT, 2.0)


def test_an_outcome_has_the_percentiles_by_nearest_rank() -> None:
    found = seen(*(float(number) for number in range(1, 11)))
    assert (found.first, found.p50, found.p95, found.p99, found.most) == (1, 5, 10, 10, 10)
    assert (found.lost, found.doubled, found.early, found.created_per_s) == (0, 0, 0, 5)
    assert (found.cpu_ms_per_job, found.run_cpu_ms_per_job, found.memory_mb, found.idle_percent) == (150, 100, 20, 1.3)
    assert len(found.quantiles) == len(QUANTILES) and found.quantiles[0] == 1


def test_a_second_start_is_doubled_and_the_first_one_is_measured() -> None:
    starts = [Start("a", 5.0), Start("a", 2.0), Start("b", 3.0)]
    found = outcome(TEN, starts, SPENT, 1.0)
    assert (found.lost, found.doubled, found.first, found.most) == (8, 1, 2.0, 3.0)


def test_a_start_more_than_a_millisecond_early_is_early() -> None:
    assert seen(-1.5, -0.5, 0.0).early == 1


def test_a_run_without_starts_has_no_delays() -> None:
    found = seen()
    assert (found.p50, found.lost, list(found.quantiles)) == (None, 10, [])
    assert "p50" not in record([found, seen(1.0)])


def test_a_record_has_median_and_range() -> None:
    found = record([seen(*[delay] * 10) for delay in (30.0, 10.0, 20.0)])
    assert found["p50"] == {"median": 20.0, "least": 10.0, "most": 30.0}
    assert found["lost"] == 0 and len(found["runs"]) == 3


def test_the_ratio_is_to_the_best_peer_that_lost_nothing() -> None:
    ten = [10.0] * 10
    found = {
        "ours": {"ten": record([seen(*ten)])},
        "floor": {"ten": record([seen(*[0.1] * 10)])},
        "loses": {"ten": record([seen(*[1.0] * 9)])},
        "slow": {"ten": record([seen(*[100.0] * 10)])},
        "good": {"ten": record([seen(*[20.0] * 10)])},
    }
    assert ratios(found, "ours", ["floor"])["ten"]["p50"] == {"ours": 10.0, "best": "good", "its": 20.0, "ratio": 0.5}


def test_a_workload_that_only_we_ran_has_no_ratio() -> None:
    assert ratios({"ours": {"ten": record([seen(1.0)])}}, "ours", []) == {"ten": {}}


def test_the_table_has_a_row_for_each_contestant_and_says_what_was_not_run() -> None:
    found = {"ours": {"ten": record([seen(*[1.0] * 10), seen(*[3.0] * 10)])}, "other": {}}
    rows = report.table("ten", found, {"ours": "Ours", "other": "Other"}, {"other.ten": "it has no store"})
    assert rows[2].startswith("| Ours | 2 (1–3) | 2 (1–3) |") and rows[3].startswith("| Other | it has no store |")


def test_the_picture_has_a_curve_for_each_contestant_with_starts() -> None:
    found = {"a": {"ten": record([seen(*[1.0] * 10)])}, "b": {"ten": record([seen(*[0.0] * 10)])}, "c": {"ten": record([seen()])}}
    root = ElementTree.fromstring(report.picture(found, {"a": "A", "b": "B < C", "c": "C"}, {"ten": "ten"}))
    assert len(root.findall("{http://www.w3.org/2000/svg}polyline")) == 2


def test_the_quick_form_has_the_first_workloads_only_smaller() -> None:
    whole, quick = workloads(quick=False), workloads(quick=True)
    assert [work.key for work in whole] == ["burst", "crowd", "steady", "now", "http", "stored"]
    assert {work.key for work in quick} < {work.key for work in whole}
    assert sum(work.count for work in quick) < sum(work.count for work in whole) / 5


def test_the_title_of_a_workload_says_what_it_is() -> None:
    assert [work.title for work in workloads(quick=False)] == [
        "1,000 at one instant",
        "10,000 at one instant",
        "50 a second for 60 s",
        "for now, one by one: 5 a second for 40 s",
        "1,000 at one instant, each calls a URL",
        "1,000 at one instant, 100,000 stored for tomorrow",
    ]
