"""The output of `make prove`: the table, the line of JSON, and a block without an account id."""

import io
import json
from typing import Any

from rich.console import Console

from prove.report import Result, Row, anonymous, block, notes, shown, summary, table

ROW = Row("steady", "50 a second", 6_000, 1, 12, 1_234, 0, 0, 0, 0.0333000000001)
WORDS = Row(
    "scheduler-warm-burst",
    "EventBridge Scheduler: warm-burst",
    1_000,
    note="not measured: arn:aws:iam::123456789012:user/a is not authorized",
)
CONTEXT: dict[str, Any] = {"stage": "dev", "region": "eu-west-1", "commit": "abc1234"}
COMPLAINT = "steady: job (arn:aws:sqs:eu-west-1:123456789012:q): does not exist"


def result(*complaints: str) -> Result:
    return Result(CONTEXT, [ROW, WORDS], complaints)


def drawn(rows: list[Row]) -> str:
    console = Console(width=120, file=io.StringIO())
    with console.capture() as capture:
        console.print(table(rows))
    return capture.get()


def test_the_table_has_a_line_for_each_part() -> None:
    lines = drawn([ROW, WORDS]).splitlines()
    assert next(line.split() for line in lines if "50 a second" in line)[3:] == ["6,000", "1", "12", "1,234", "0", "0", "0", "0.03330"]
    assert next(line.split() for line in lines if "EventBridge" in line)[-1:] == ["1,000"], "words instead of figures"
    assert notes([ROW, WORDS]) == [f"{WORDS.title}: {WORDS.note}"]


def test_the_line_of_json_has_all_figures_and_complaints() -> None:
    said = json.loads(json.dumps(summary(result(COMPLAINT))))
    assert said["region"] == "eu-west-1"
    assert (said["parts"]["steady"]["p99_ms"], said["parts"]["steady"]["dollars"]) == (12, 0.0333)
    assert said["parts"]["scheduler-warm-burst"]["p99_ms"] is None
    assert (said["dollars"], len(said["not_kept"])) == (0.0333, 1)


def test_the_block_has_figures_versions_and_complaints_but_no_account() -> None:
    text = block(result(COMPLAINT))
    assert "region eu-west-1" in text and "commit abc1234" in text
    assert "| 50 a second | 6,000 | 1 | 12 | 1,234 | 0 | 0 | 0 | 0.03330 |" in text
    assert "broken: 1." in text and "<arn>" in text
    assert "123456789012" not in text


def test_a_block_without_complaints_has_a_line_for_it() -> None:
    assert "Promises that were broken: none." in block(result())


def test_an_account_id_is_replaced_and_an_instant_is_not() -> None:
    assert anonymous("123456789012 1795168800000") == "<account> 1795168800000"


def test_a_long_list_of_complaints_is_cut() -> None:
    assert shown([str(n) for n in range(25)]) == [*(str(n) for n in range(20)), "and 5 more"]
