"""The alarms: what rings, whom they notify, and their texts."""

import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from bench import idle
from infra.alarms import CALM_INDEXES, MANY_FAILED, RUNBOOK, AlarmClass
from scheduler.insight import metrics
from tests.command_lines import is_command_line
from tests.infra.conftest import ROOT, Resource, Synthesized, name_of, synthesized

PAGE = (ROOT / RUNBOOK).read_text()
ALARMS = (ROOT / "docs/reference/metrics-alarms.md").read_text()


def test_a_dead_letter_that_stays_raises_an_alarm(any_stage: Synthesized) -> None:
    assert name_of(any_stage.one("CloudWatch::Alarm", "AlarmsDead")["Dimensions"][0]["Value"]) == "LanesDead"


def test_alarms_are_few_since_each_costs_ten_cents_a_month(any_stage: Synthesized) -> None:
    queues = len(any_stage.settings.intake)
    of_options = (2 if any_stage.settings.deployed.events else 0) + (1 + queues if queues else 0)
    assert len(any_stage.all("CloudWatch::Alarm")) - of_options <= (22 if any_stage.settings.rules.most_pollers else 21)


@pytest.mark.parametrize(
    ("id", "metric", "service", "threshold"),
    [
        ("AlarmsBuried", metrics.BURIED, "bury", 0),
        ("AlarmsLag", metrics.OLDEST_OPEN_MINUTE, "tick", 180),
        ("AlarmsPlanLag", metrics.PLAN_LAG, "tick", 180),
    ],
)
def test_alarms_use_own_metrics_as_they_are_emitted(any_stage: Synthesized, id: str, metric: str, service: str, threshold: int) -> None:
    uses_own_metric(any_stage, id, metric, service, threshold)


def test_more_required_than_available_executors_raise_an_alarm(any_stage: Synthesized) -> None:
    uses_own_metric(any_stage, "AlarmsCapacity", metrics.REQUIRED, "scale", any_stage.settings.deployed.executors)


def uses_own_metric(any_stage: Synthesized, id: str, metric: str, service: str, threshold: int) -> None:
    alarm = any_stage.one("CloudWatch::Alarm", id)
    assert (alarm["Namespace"], alarm["MetricName"]) == (metrics.namespace(any_stage.settings.stage), metric)
    assert alarm["Dimensions"] == [{"Name": "service", "Value": service}]
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("GreaterThanThreshold", threshold)
    emitter = next(item for item in any_stage.functions().values() if item["Handler"] == f"lambdas.{service}.handler")
    assert emitter["Environment"]["Variables"]["POWERTOOLS_SERVICE_NAME"] == service
    assert emitter["Environment"]["Variables"]["POWERTOOLS_METRICS_NAMESPACE"] == alarm["Namespace"]


@pytest.mark.parametrize(("name", "missing"), [("Lag", "breaching"), ("PlanLag", "notBreaching"), ("Capacity", "notBreaching")])
def test_three_minutes_without_the_tick_raise_an_alarm(any_stage: Synthesized, name: str, missing: str) -> None:
    alarm = any_stage.one("CloudWatch::Alarm", f"Alarms{name}")
    assert (alarm["Period"], alarm["EvaluationPeriods"], alarm["TreatMissingData"]) == (60, 3, missing)


def test_refused_writes_of_the_table_or_a_hot_index_raise_an_alarm(any_stage: Synthesized) -> None:
    """A metric of the table alone leaves out its indexes. A new index has an alarm, or must be named as one that cannot be hot."""
    watched = []
    for id, alarm in any_stage.all("CloudWatch::Alarm").items():
        if id[:-8].endswith("Throttles"):
            assert (alarm["Namespace"], alarm["MetricName"]) == ("AWS/DynamoDB", "WriteThrottleEvents")
            watched.append({each["Name"]: name_of(each["Value"]) for each in alarm["Dimensions"]})
    tables = {id[:-8]: table for id, table in any_stage.all("DynamoDB::GlobalTable").items()}
    indexes = [(name, index["IndexName"]) for name, table in tables.items() for index in table.get("GlobalSecondaryIndexes", ())]
    assert {"due", "failures", "moved", *CALM_INDEXES} == {index for _, index in indexes}
    expected = [{"TableName": name, "GlobalSecondaryIndexName": index} for name, index in indexes if index not in CALM_INDEXES]
    assert sorted(watched, key=str) == sorted([{"TableName": "StorageJobs"}, *expected], key=str)


def test_an_answer_with_a_5xx_status_raises_an_alarm(any_stage: Synthesized) -> None:
    alarm = any_stage.one("CloudWatch::Alarm", "AlarmsApiErrors")
    assert (alarm["Namespace"], alarm["MetricName"]) == ("AWS/ApiGateway", "5xx")
    assert name_of(alarm["Dimensions"][0]["Value"]) == "ApiHttp"
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("GreaterThanThreshold", 0)


class Described(NamedTuple):
    """An alarm, with the parts of its description. References to resources have the readable form of `name_of`."""

    id: str
    properties: Resource
    kind: AlarmClass
    command: str  # the first step
    rest: str
    entry: str  # of the runbook

    @property
    def topics(self) -> list[str]:
        return [name_of(action) for action in self.properties["AlarmActions"] if name_of(action) != "ProvisionLive"]


def described(stage: Synthesized) -> Iterator[Described]:
    for id, alarm in stage.all("CloudWatch::Alarm").items():
        text = name_of(alarm["AlarmDescription"])
        found = re.fullmatch(rf"(\w+)\. First step: `([^`]+)`\. ([A-Z].+\.) Then: ([a-z].+\.) Runbook: (\w+) in {RUNBOOK}\.", text)
        assert found, text
        yield Described(id[:-8], alarm, AlarmClass(found[1]), found[2], found[3], found[5])


TOPICS = {AlarmClass.PAGE: ["OperatorsTopic"], AlarmClass.TICKET: ["OperatorsTickets"], AlarmClass.SIGNAL: []}


def test_pages_and_tickets_go_to_topics_of_their_own_and_signals_to_none(any_stage: Synthesized) -> None:
    for alarm in described(any_stage):
        assert alarm.topics == TOPICS[alarm.kind], alarm.id
        assert alarm.topics == [name_of(action) for action in alarm.properties.get("OKActions", [])], "they hear of the end, too"


def test_only_the_load_and_the_failures_of_users_open_tickets(any_stage: Synthesized) -> None:
    tickets = {alarm.id for alarm in described(any_stage) if alarm.kind is AlarmClass.TICKET}
    assert tickets == {"AlarmsCapacity", "AlarmsDeadLetters", "AlarmsFailuresThrottles", "AlarmsMovedThrottles"}


def test_a_few_failed_jobs_ring_nobody_and_many_open_a_ticket(any_stage: Synthesized) -> None:
    (failed,) = [alarm for alarm in described(any_stage) if alarm.properties["MetricName"] == metrics.DEAD]
    assert (failed.kind, failed.properties["ComparisonOperator"]) == (AlarmClass.TICKET, "GreaterThanThreshold")
    assert (failed.properties["Threshold"], failed.properties["Period"], failed.properties["EvaluationPeriods"]) == (MANY_FAILED, 300, 1)
    every_minute = 5  # failures of a task that runs every minute
    assert every_minute < MANY_FAILED < 10_000 / 24 / 12, "a target of all of 10,000 jobs a day that fails opens one"


def test_a_message_in_a_dead_letter_queue_of_the_service_pages(any_stage: Synthesized) -> None:
    """A failed job of a user has no message in them. Options add the queues of announce and intake."""
    sources = {"LanesDead", "NotifyDead", *(["AnnounceLost"] if any_stage.settings.deployed.events else [])}
    sources |= {"IntakeDead"} if any_stage.settings.intake else set()
    watched = {
        name_of(alarm.properties["Dimensions"][0]["Value"]): alarm.kind
        for alarm in described(any_stage)
        if alarm.properties["MetricName"] == "ApproximateNumberOfMessagesVisible" and not alarm.id.endswith("Work")
    }
    assert watched == dict.fromkeys(sources, AlarmClass.PAGE)


def test_the_first_step_of_an_alarm_is_a_command_that_exists(any_stage: Synthesized) -> None:
    """A command of the client with valid options, a target of the Makefile for this stage, or the log of a function of this stage."""
    logs = {id[:-8] for id in any_stage.all("Logs::LogGroup")}
    targets = set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for alarm in described(any_stage):
        program, *words = shlex.split(alarm.command)
        if program == "punctual":
            is_command_line(words)
        elif program == "make":
            target, stage = words
            assert target in targets and stage == f"STAGE={any_stage.settings.stage}", alarm
        else:
            assert [program, *words[:2]] == ["aws", "logs", "tail"] and words[2] in logs, alarm
            assert words[3:] in (["--since", "1h"], ["--since", "1h", "--filter-pattern", "{ $.status >= 500 }"]), alarm


def test_the_page_has_the_class_of_each_alarm(any_stage: Synthesized) -> None:
    table = dict(re.findall(r"^\| `…?(\w+)` \| (\w+) \|", ALARMS.partition("\n## Alarms\n")[2].partition("\n## ")[0], re.MULTILINE))
    for alarm in described(any_stage):
        throttles = re.search(rf"^\| `{alarm.id.removeprefix('Alarms')}` \| (\w+) \|", section_of("Throttles"), re.MULTILINE)
        listed = throttles[1] if throttles and table[alarm.entry] == "both" else table[alarm.entry]
        assert listed == alarm.kind.lower() and alarm.id.endswith(alarm.entry), alarm.id


def test_the_runbook_begins_with_the_first_step_of_the_alarm(any_stage: Synthesized) -> None:
    for alarm in described(any_stage):
        log = re.match(r"aws logs tail (\w+)Logs", alarm.command)
        step = f"Log of {log[1].lower()}" if log else f"`{alarm.command.replace(f'={any_stage.settings.stage}', '=…')}`"
        begin = section_of(alarm.entry).partition("First steps:\n\n1. ")[2].partition("\n2. ")[0]
        assert step in begin if alarm.entry == "Throttles" else begin.startswith(step), alarm.id


def test_the_text_of_an_alarm_fits_into_its_description(any_stage: Synthesized) -> None:
    """AWS takes 1,024 characters: https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html"""
    for alarm in described(any_stage):
        assert len(name_of(alarm.properties["AlarmDescription"])) <= 1_024 - 100, "the name of a log group is longer than the one here"


def section_of(entry: str) -> str:
    return PAGE.partition(f"\n### {entry}\n")[2].partition("\n### ")[0]


def test_alarms_of_this_account_may_publish_to_both_topics(any_stage: Synthesized) -> None:
    for topic in ("OperatorsTopicPolicy", "OperatorsTicketsPolicy"):
        policy = any_stage.one("SNS::TopicPolicy", topic)
        (allows,) = [item for item in policy["PolicyDocument"]["Statement"] if item["Effect"] == "Allow"]
        assert allows["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
        assert allows["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}


@pytest.mark.parametrize(("option", "topic"), [("operator_email", "OperatorsTopic"), ("ticket_email", "OperatorsTickets")])
@pytest.mark.long
def test_an_address_of_the_options_gets_the_mails_of_its_class_alone(option: str, topic: str) -> None:
    made = synthesized("dev", **{option: "ops@example.org"})
    (mail,) = [item for item in made.all("SNS::Subscription").values() if item["Protocol"] == "email"]
    assert (name_of(mail["TopicArn"]), mail["Endpoint"]) == (topic, "ops@example.org")


def test_by_default_nobody_gets_a_mail(any_stage: Synthesized) -> None:
    assert not [item for item in any_stage.all("SNS::Subscription").values() if item["Protocol"] == "email"]


def test_the_bench_counts_alarms_secrets_and_queues_for_idle_costs(on_aws: Synthesized) -> None:
    counted = len(on_aws.all("CloudWatch::Alarm")), len(on_aws.all("SecretsManager::Secret"))
    assert counted == (idle.ALARMS[on_aws.settings.stage], idle.SECRETS)
    sources = [mapping["EventSourceArn"]["Fn::GetAtt"][1] for mapping in on_aws.all("Lambda::EventSourceMapping").values()]
    assert sources.count("Arn") == idle.QUEUES, "AWS does not charge for polling streams"


def test_a_message_that_notify_cannot_process_raises_an_alarm(any_stage: Synthesized) -> None:
    alarm = any_stage.one("CloudWatch::Alarm", "NotifyUndecided")
    assert (name_of(alarm["Dimensions"][0]["Value"]), alarm["Threshold"]) == ("NotifyDead", 0)
    queue, dead = any_stage.one("SQS::Queue", "NotifyQueue"), any_stage.one("SQS::Queue", "NotifyDead")
    assert (queue["RedrivePolicy"]["maxReceiveCount"], dead["MessageRetentionPeriod"]) == (300, 14 * 24 * 3600)
