"""`make parity`: which differences between implementations of DynamoDB are red."""

from pathlib import Path

import pytest

from tests.parity.differences import Difference, Outcome, counted, judge, read, table

PASSED, FAILED, ELSEWHERE = Outcome("passed", True, False), Outcome("failed", True, False), Outcome("passed", False, False)
KNOWN = (Difference("moto", "test_jobs.*", "it lacks conditions", statements=True), Difference("dynoxide", "test_a.one", "no item"))


def test_an_unexplained_failure_is_red() -> None:
    outcomes = {"ministack": {"test_a.one": FAILED}, "dynoxide": {"test_a.one": FAILED}}
    assert judge(outcomes, KNOWN) == ["ministack: test_a.one fails, and no known difference explains it"]


def test_an_explanation_of_statements_explains_no_other_test() -> None:
    outcomes = {"moto": {"test_jobs.one": FAILED, "test_jobs.two": FAILED._replace(statements=True)}}
    assert judge(outcomes, KNOWN) == ["moto: test_jobs.one fails, and no known difference explains it"]


def test_an_explanation_that_explains_nothing_is_red() -> None:
    outcomes = {"moto": {"test_jobs.two": FAILED._replace(statements=True)}, "dynoxide": {"test_a.one": PASSED}}
    assert judge(outcomes, KNOWN) == ["dynoxide: test_a.one passes now: delete its explanation"]


def test_an_explanation_of_a_rare_failure_may_explain_nothing() -> None:
    assert judge({"moto": {"test_a.one": PASSED}}, [Difference("moto", "test_a.*", "threads", rare=True)]) == []


def test_a_missing_implementation_needs_no_explanation() -> None:
    assert judge({"ministack": {"test_a.one": PASSED}}, KNOWN) == []


def test_only_tests_that_call_dynamodb_are_counted() -> None:
    outcomes = {"ministack": {"a": PASSED, "b": ELSEWHERE}, "moto": {"a": ELSEWHERE, "b": ELSEWHERE}}
    assert counted(outcomes) == {"ministack": {"a": PASSED}, "moto": {"a": ELSEWHERE}}


def test_the_table_counts_results_and_names_reasons() -> None:
    outcomes = {"ministack": {"test_a.one": PASSED}, "dynoxide": {"test_a.one": FAILED}}
    assert table(outcomes, KNOWN).splitlines() == [
        "implementation  passed  failed  skipped",
        "ministack            1       0        0",
        "dynoxide             0       1        0",
        "",
        "dynoxide, 1 tests: no item",
    ]


@pytest.mark.parametrize(("inner", "result"), [("", "passed"), ("<failure/>", "failed"), ("<error/>", "failed"), ("<skipped/>", "skipped")])
def test_a_report_is_read(tmp_path: Path, inner: str, result: str) -> None:
    report = tmp_path / "report.xml"
    case = f'<testcase classname="tests.contract.test_jobs" name="one[dynamodb]">{inner}<properties><property name="called"/></properties>'
    report.write_text(f"<testsuites><testsuite>{case}</testcase></testsuite></testsuites>")
    assert read(report) == {"test_jobs.one[dynamodb]": Outcome(result, True, False)}
