"""The verdict of `python -m bench.ratios`: slower code fails it, some rounds on a busy machine do not."""

from bench.ratios import RATIOS, loop_ms, quartile, summary, verdict

BASELINE = {name: {"median": 2.0} for name in RATIOS}


def rounds(*values: float) -> list[dict[str, float]]:
    return [dict.fromkeys(RATIOS, value) for value in values]


def test_the_baseline_itself_is_no_regression() -> None:
    assert verdict(rounds(2.0, 2.1, 1.9, 2.0, 2.0), BASELINE) == []


def test_code_that_is_more_than_half_slower_in_all_rounds_is_a_regression() -> None:
    worse = verdict(rounds(3.1, 3.2, 3.3, 3.1, 3.4), BASELINE)
    assert len(worse) == len(RATIOS) and worse[0] == "cpu_to_loop is 3.1: more than 3, half above its baseline of 2"


def test_rounds_that_a_busy_machine_spoiled_are_no_regression() -> None:
    assert verdict(rounds(2.0, 2.1, 9.0, 8.0, 7.0), BASELINE) == []


def test_faster_code_is_no_regression() -> None:
    assert verdict(rounds(0.1, 0.1, 0.1), BASELINE) == []


def test_one_ratio_alone_may_be_the_regression() -> None:
    seen = [{**each, "delay_to_sqs": 4.0} for each in rounds(2.0, 2.0, 2.0, 2.0)]
    assert [each.split()[0] for each in verdict(seen, BASELINE)] == ["delay_to_sqs"]


def test_a_summary_has_median_and_range() -> None:
    assert summary(rounds(3.0, 1.0, 2.0))["cpu_to_sqs"] == {"median": 2.0, "least": 1.0, "most": 3.0}
    assert quartile([4, 1, 3, 2]) == 2


def test_the_loop_takes_processor_time() -> None:
    assert loop_ms() > 1
