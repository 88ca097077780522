from collections.abc import Callable

import pytest
from aws_cdk.assertions import Template

from bench import idle
from infra.alarms import CALM_INDEXES
from infra.options import Options
from infra.settings import settings_for
from infra.stack import PunctualStack
from scheduler.insight import metrics
from tests.infra.conftest import Synthesized, app, name_of


def test_a_dead_letter_that_stays_raises_an_alarm(any_stage: Synthesized) -> None:
    assert name_of(any_stage.one("CloudWatch::Alarm", "AlarmsDead")["Dimensions"][0]["Value"]) == "LanesDead"


def test_alarms_are_few_since_each_costs_ten_cents_a_month(any_stage: Synthesized) -> None:
    of_options = 2 if any_stage.settings.deployed.events else 0
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
    assert (alarm["Namespace"], alarm["MetricName"]) == (metrics.NAMESPACE, metric)
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


def test_every_alarm_but_that_of_scaling_notifies_the_operators(any_stage: Synthesized) -> None:
    for id, alarm in any_stage.all("CloudWatch::Alarm").items():
        assert alarm["AlarmDescription"], id
        notified = [name_of(action) for action in alarm["AlarmActions"] if name_of(action) != "ProvisionLive"]
        silent = id[:-8] == "ProvisionScaling"  # it rings before each large burst, and ends by itself
        assert notified == [name_of(action) for action in alarm.get("OKActions", [])] == ([] if silent else ["OperatorsTopic"]), id


def test_alarms_of_this_account_may_publish_to_the_operators(any_stage: Synthesized) -> None:
    policy = any_stage.one("SNS::TopicPolicy", "OperatorsTopicPolicy")
    (allows,) = [item for item in policy["PolicyDocument"]["Statement"] if item["Effect"] == "Allow"]
    assert allows["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert allows["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}


@pytest.mark.long
def test_operators_get_e_mail_if_the_context_names_an_address(synth: Callable[[str], Synthesized]) -> None:
    mails = [item for item in synth("dev").all("SNS::Subscription").values() if item["Protocol"] == "email"]
    assert mails == []
    template = Template.from_stack(PunctualStack(app(), settings_for("dev", Options(operator_email="ops@example.org"))))
    template.has_resource_properties("AWS::SNS::Subscription", {"Protocol": "email", "Endpoint": "ops@example.org"})


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
