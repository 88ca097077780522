"""Alarms and widgets show exactly the emitted metrics."""

import ast
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from scheduler.insight import metrics
from scheduler.insight.metrics import METRICS, SERVICE, namespace
from tests.infra.conftest import ROOT, Synthesized, name_of

OURS = {(metric.name, metric.service) for metric in METRICS}
CONSTANTS = {name: value for name, value in vars(metrics).items() if name.isupper() and isinstance(value, str)}
OF_AWS = {  # metrics of each AWS namespace that we show
    "AWS/Lambda": {"Errors", "Throttles", "IteratorAge"},
    "AWS/SQS": {"ApproximateAgeOfOldestMessage", "ApproximateNumberOfMessagesVisible"},
    "AWS/ApiGateway": {"Count", "Latency", "4xx", "5xx"},
    "AWS/DynamoDB": {"ConsumedReadCapacityUnits", "ConsumedWriteCapacityUnits", "ReadThrottleEvents", "WriteThrottleEvents"},
}


def plain(value: Any) -> str:
    """The text of a template's value, without the parts that CloudFormation fills in."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and "Fn::Join" in value:
        return "".join(plain(part) if isinstance(part, str) else "x" for part in value["Fn::Join"][1])
    return "x"


def board(stack: Synthesized) -> dict[str, Any]:
    (made,) = stack.all("CloudWatch::Dashboard").values()
    read: dict[str, Any] = json.loads(plain(made["DashboardBody"]))
    return read


def on_board(stack: Synthesized) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Namespace, name and dimensions of every metric of every widget."""
    for widget in board(stack)["widgets"]:
        for place, name, *rest in widget["properties"].get("metrics", []):
            words = [word for word in rest if isinstance(word, str)]
            yield place, name, dict(zip(words[::2], words[1::2], strict=True))


def in_alarms(stack: Synthesized) -> Iterator[tuple[str, str, dict[str, str]]]:
    for alarm in stack.all("CloudWatch::Alarm").values():
        yield alarm["Namespace"], alarm["MetricName"], {each["Name"]: plain(each["Value"]) for each in alarm["Dimensions"]}


def emitted_by(service: str) -> set[str]:
    """The names of the metrics that a handler's file emits."""
    tree = ast.parse((ROOT / "lambdas" / f"{service}.py").read_text())
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "metrics"}
    return {CONSTANTS[name] for name in used}


@pytest.mark.parametrize("service", sorted({path.stem for path in (ROOT / "lambdas").glob("[!_]*.py")}))
def test_a_handler_emits_the_metrics_listed_for_it(service: str) -> None:
    assert emitted_by(service) == {metric.name for metric in METRICS if metric.service == service}


def test_every_metric_of_an_alarm_or_a_widget_is_emitted(any_stage: Synthesized) -> None:
    for place, name, dimensions in [*on_board(any_stage), *in_alarms(any_stage)]:
        if place == namespace(any_stage.settings.stage):
            assert dimensions.keys() == {SERVICE} and (name, dimensions[SERVICE]) in OURS
        else:
            assert name in OF_AWS[place], (place, name)


def test_the_dashboard_has_at_most_the_free_number_of_metrics(any_stage: Synthesized) -> None:
    assert len([*on_board(any_stage)]) <= 50


def test_every_own_metric_is_on_the_dashboard(any_stage: Synthesized) -> None:
    own = namespace(any_stage.settings.stage)
    assert {(name, dimensions[SERVICE]) for place, name, dimensions in on_board(any_stage) if place == own} == OURS


def test_the_dashboard_has_its_questions_in_order(any_stage: Synthesized) -> None:
    titles = [widget["properties"]["markdown"] for widget in board(any_stage)["widgets"] if widget["type"] == "text"]
    assert titles == ["## Is it healthy?", "## Is it on time?", "## Is there enough capacity?", "## The API", "## The functions"]
    placed = {widget["properties"].get("title"): widget["y"] for widget in board(any_stage)["widgets"]}
    assert (
        placed["Pages: an operator must act now"]
        == placed["Tickets, and signals to functions"]
        < placed["Start delay (ms)"]
        < placed["Executors required in the next ten minutes"]
    )


def test_the_dashboard_shows_the_state_of_every_alarm(any_stage: Synthesized) -> None:
    pages, others = [widget["properties"]["alarms"] for widget in board(any_stage)["widgets"] if widget["type"] == "alarm"]
    paging = [alarm for alarm in any_stage.all("CloudWatch::Alarm").values() if "OperatorsTopic" in map(name_of, alarm["AlarmActions"])]
    assert (len(pages), len(pages) + len(others)) == (len(paging), len(any_stage.all("CloudWatch::Alarm")))


@pytest.mark.parametrize(
    ("id", "metric", "statistic", "threshold", "minutes"),
    [
        ("AlarmsStartDelay", metrics.START_DELAY, "p99", 9_999, 1),
        ("AlarmsJobOverhead", metrics.OVERHEAD, "p99", 9_999, 1),
        ("AlarmsUnreadable", metrics.UNREADABLE, "Sum", 0, 1),
        ("AlarmsOneTimeAge", "ApproximateAgeOfOldestMessage", "Maximum", 1_800, 5),
        ("AlarmsJobsThrottles", "WriteThrottleEvents", "Sum", 0, 3),
        ("AlarmsDead", "ApproximateNumberOfMessagesVisible", "Minimum", 0, 5),
        ("AlarmsCountersBehind", "IteratorAge", "Maximum", 300_000, 3),
    ],
)
def test_the_promised_limits_have_alarms(
    any_stage: Synthesized, id: str, metric: str, statistic: str, threshold: float, minutes: int
) -> None:
    alarm = any_stage.one("CloudWatch::Alarm", id)
    assert (alarm["MetricName"], alarm.get("Statistic") or alarm["ExtendedStatistic"]) == (metric, statistic)
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("GreaterThanThreshold", threshold)
    assert (alarm["Period"], alarm["EvaluationPeriods"], alarm["TreatMissingData"]) == (60, minutes, "notBreaching")


def test_work_that_stays_visible_raises_an_alarm(any_stage: Synthesized) -> None:
    """Hidden messages are steps that are not due yet, or are in work: neither counts."""
    alarm, rules = any_stage.one("CloudWatch::Alarm", "AlarmsWork"), any_stage.settings.rules
    assert (alarm["MetricName"], alarm["Statistic"]) == ("ApproximateNumberOfMessagesVisible", "Minimum")
    assert name_of(alarm["Dimensions"][0]["Value"]) == "LanesWork"
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("GreaterThanThreshold", rules.units + rules.overdue_units)
    assert (alarm["Period"], alarm["EvaluationPeriods"], alarm["TreatMissingData"]) == (60, 5, "notBreaching")


def test_a_missing_canary_raises_an_alarm_if_the_stage_has_canaries(any_stage: Synthesized) -> None:
    alarms = {id[:-8]: alarm for id, alarm in any_stage.all("CloudWatch::Alarm").items()}
    assert ("AlarmsNoCanary" in alarms) == any_stage.settings.rules.lag_canary
    if any_stage.settings.rules.lag_canary:
        gone = alarms["AlarmsNoCanary"]
        assert (gone["MetricName"], gone["Statistic"], gone["TreatMissingData"]) == (metrics.CANARY_DELAY, "SampleCount", "breaching")


def test_saved_queries_cover_every_function(any_stage: Synthesized) -> None:
    queries = any_stage.all("Logs::QueryDefinition")
    assert bool(queries) == any_stage.settings.saved_queries
    logs_of_api = [{"Ref": id} for id in any_stage.all("Logs::LogGroup") if id.startswith("ApiAccessLogs")]
    for query in queries.values():
        refused = query["Name"].endswith("/refused tokens")
        assert query["LogGroupNames"] == logs_of_api if refused else len(query["LogGroupNames"]) == len(any_stage.functions())
        assert re.match(rf"punctual/{any_stage.settings.stage}/", query["Name"])


def test_each_alarm_has_a_row_in_the_runbook(any_stage: Synthesized) -> None:
    text = (ROOT / "docs/reference/metrics-alarms.md").read_text()
    names = set(re.findall(r"^\| `…?(\w+)`", text.partition("## Alarms")[2].partition("\n## ")[0], re.MULTILINE))
    for id in any_stage.all("CloudWatch::Alarm"):
        name = id[:-8].removeprefix("Alarms")
        assert any(name.endswith(known) for known in names), name


def test_the_runbook_has_the_table_of_metrics() -> None:
    text = (ROOT / "docs/reference/metrics-alarms.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (\w+) \| (.+?) \|$", text.partition("## Metrics")[2].partition("\n## ")[0], re.MULTILINE)
    assert rows == [tuple(metric) for metric in METRICS]


def test_the_flow_of_jobs_is_added_up_from_the_logs(any_stage: Synthesized) -> None:
    (flow,) = [each for each in board(any_stage)["widgets"] if each["type"] == "log"]
    assert all(f"sum(jobs_{name})" in flow["properties"]["query"] for name in ("created", "pulled", "processed"))


def test_required_executors_are_shown_beside_the_available_ones(any_stage: Synthesized) -> None:
    (graph,) = [each for each in board(any_stage)["widgets"] if "Executors" in each["properties"].get("title", "")]
    (line,) = graph["properties"]["annotations"]["horizontal"]
    assert (line["label"], line["value"]) == ("available", any_stage.settings.deployed.executors)
