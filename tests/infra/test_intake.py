"""The intake is an option: a queue for each entry, one function, and a dead-letter queue with an alarm."""

import re
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from infra.intake import MAX_RECEIVES
from infra.options import MOST_QUEUES, Options
from scheduler.intake.intake import pause_s
from scheduler.model.intake import IntakeMessage
from tests.infra.conftest import ROOT, Synthesized, name_of, synthesized

PAGE = (ROOT / "docs/internals/mechanisms.md").read_text()
TEAM = "team-abcdefghijklmnopqrst"
DAY = 86_400


@pytest.fixture(scope="module")
def stack() -> Synthesized:
    """A stage with a queue of principals and a queue of a team."""
    return synthesized("dev", intake=(("jobs", "principals"), ("web-orders", TEAM)))


def senders(stack: Synthesized, queue: str) -> list[Any]:
    """The senders of a queue beside principals of the account, with their conditions."""
    found = []
    for policy in stack.all("SQS::QueuePolicy").values():
        if [name_of(each) for each in policy["Queues"]] == [queue]:
            allowed = [each for each in policy["PolicyDocument"]["Statement"] if each["Effect"] == "Allow"]
            found += [(each["Principal"], each["Action"], each.get("Condition")) for each in allowed]
    return found


def test_there_is_no_intake_by_default(on_aws: Synthesized) -> None:
    assert not on_aws.settings.intake and not on_aws.settings.deployed.intake
    assert "Intake" not in on_aws.functions() and not [id for id in on_aws.all("SQS::Queue") if id.startswith("Intake")]


def test_the_local_stage_has_a_queue_of_principals(local: Synthesized) -> None:
    assert local.settings.intake == {"jobs": "principals"} and local.settings.deployed.intake
    assert local.one("SQS::Queue", "IntakeJobs")


@pytest.mark.long
def test_each_entry_has_a_standard_queue(stack: Synthesized) -> None:
    for id in ("IntakeJobs", "IntakeWebOrders"):
        queue = stack.one("SQS::Queue", id)
        assert "QueueName" not in queue and "FifoQueue" not in queue
        assert queue["SqsManagedSseEnabled"] and queue["MessageRetentionPeriod"] == 14 * DAY
        assert name_of(queue["RedrivePolicy"]["deadLetterTargetArn"]) == "IntakeDead"
        assert queue["RedrivePolicy"]["maxReceiveCount"] == MAX_RECEIVES
    assert stack.one("SQS::Queue", "IntakeDead")["MessageRetentionPeriod"] == 14 * DAY


@pytest.mark.long
def test_each_queue_feeds_the_function_in_batches_with_partial_failures(stack: Synthesized) -> None:
    for id in ("IntakeJobs", "IntakeWebOrders"):
        mapping = stack.one("Lambda::EventSourceMapping", f"{id}Messages")
        assert name_of(mapping["EventSourceArn"]) == id and stack.called(mapping["FunctionName"]) == "Intake"
        assert (mapping["BatchSize"], mapping["FunctionResponseTypes"]) == (10, ["ReportBatchItemFailures"])
        assert mapping["ScalingConfig"] == {"MaximumConcurrency": 10}


@pytest.mark.long
def test_only_a_queue_with_a_fixed_owner_takes_messages_of_rules(stack: Synthesized) -> None:
    ours = {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}
    assert senders(stack, "IntakeJobs") == []
    assert senders(stack, "IntakeWebOrders") == [({"Service": "events.amazonaws.com"}, "sqs:SendMessage", ours)]


@pytest.mark.long
def test_rules_may_use_the_key_of_a_stage_for_such_a_queue() -> None:
    for owner, count in (("principals", 0), (TEAM, 1)):
        made = synthesized("dev", customer_key=True, intake=(("jobs", owner),))
        statements = made.one("KMS::Key", "EncryptionKey")["KeyPolicy"]["Statement"]
        assert len([each for each in statements if each["Principal"] == {"Service": "events.amazonaws.com"}]) == count
        assert made.one("SQS::Queue", "IntakeJobs")["KmsMasterKeyId"]


@pytest.mark.long
def test_a_lost_and_a_late_message_raise_alarms(stack: Synthesized) -> None:
    lost = stack.one("CloudWatch::Alarm", "IntakeGivenUp")
    assert (name_of(lost["Dimensions"][0]["Value"]), lost["Threshold"]) == ("IntakeDead", 0)
    for queue in ("Jobs", "WebOrders"):
        late = stack.one("CloudWatch::Alarm", f"Intake{queue}IntakeBehind")
        assert (name_of(late["Dimensions"][0]["Value"]), late["Threshold"]) == (f"Intake{queue}", 900)


def test_a_message_may_wait_for_twelve_days() -> None:
    message = IntakeMessage("m", "jobs", "AROA", 0, "")
    waited = sum(pause_s(replace(message, receives=number)) for number in range(1, MAX_RECEIVES + 1))
    assert 10 * DAY < waited < 14 * DAY, "then SQS would delete it"


@pytest.mark.long
def test_the_function_has_the_grants_of_the_guide() -> None:
    made = synthesized("dev", intake=(("jobs", "principals"),))
    written = re.findall(r"^\| `([\w:]+)` \| `([^`]+)` \|", PAGE.partition("## Grants of intake")[2].partition("\n## ")[0], re.MULTILINE)
    assert set(written) == set(made.grants("Intake")) and len(written) == len(set(written))


@pytest.mark.long
def test_the_stack_names_its_queues(stack: Synthesized) -> None:
    names = {name for name in stack.template["Outputs"] if name.startswith("Intake")}
    queues = {f"Intake{queue}Queue{kind}" for queue in ("Jobs", "WebOrders") for kind in ("Url", "Arn")}
    assert names == queues | {"IntakeFunction", "IntakeDlqUrl"}


@pytest.mark.parametrize(
    ("queues", "rule"),
    [
        ({"Jobs": "principals"}, "small letters"),
        ({"web--orders": "principals"}, "small letters"),
        ({"a" * 32: "principals"}, "at most 31"),
        ({"jobs": ""}, "the id of an owner"),
        ({"jobs": "arn:aws:iam::1:role/x"}, "the id of an owner"),
        ({f"q{number}": "principals" for number in range(MOST_QUEUES + 1)}, f"at most {MOST_QUEUES}"),
    ],
)
def test_a_wrong_entry_is_refused_with_the_rule(queues: dict[str, str], rule: str) -> None:
    with pytest.raises(ValidationError, match=rule):
        Options(intake=queues)
