import pytest

from scheduler.model.job import Lane
from tests.infra.conftest import Synthesized, name_of

LANES = {"OneTime": "one-time", "Recurring": "recurring", "Retry": "retry"}


def test_every_lane_of_the_model_has_a_queue(any_stage: Synthesized) -> None:
    assert set(LANES.values()) == set(Lane)
    queues = {id[:-8] for id in any_stage.all("SQS::Queue")}
    assert queues - {"NotifyQueue", "NotifyDead", "LanesWork", "LanesDead", "AnnounceLost", "IntakeDead", "IntakeJobs"} == {
        f"Lanes{name}" for name in LANES
    }


@pytest.mark.parametrize("name", LANES)
def test_the_topic_routes_exactly_its_messages_to_a_lane_unwrapped(any_stage: Synthesized, name: str) -> None:
    subscriptions = any_stage.all("SNS::Subscription").values()
    (mine,) = [item for item in subscriptions if name_of(item["Endpoint"]) == f"Lanes{name}"]
    assert mine["FilterPolicy"] == {"lane": [LANES[name]]}
    assert mine.get("FilterPolicyScope", "MessageAttributes") == "MessageAttributes"
    assert mine["RawMessageDelivery"] is True
    assert mine["Protocol"] == "sqs"
    assert name_of(mine["TopicArn"]) == "LanesTopic"


@pytest.mark.parametrize("name", LANES)
def test_a_message_received_too_often_becomes_a_dead_letter(any_stage: Synthesized, name: str) -> None:
    queue = any_stage.one("SQS::Queue", f"Lanes{name}")
    assert name_of(queue["RedrivePolicy"]["deadLetterTargetArn"]) == "LanesDead"
    assert queue["RedrivePolicy"]["maxReceiveCount"] == 10
    dead = any_stage.one("SQS::Queue", "LanesDead")
    assert dead["MessageRetentionPeriod"] == 14 * 24 * 3600
    assert dead["MessageRetentionPeriod"] > queue.get("MessageRetentionPeriod", 4 * 24 * 3600)


def test_a_message_stays_invisible_while_its_function_may_run(any_stage: Synthesized) -> None:
    functions = any_stage.functions()
    for mapping in any_stage.all("Lambda::EventSourceMapping").values():
        queue = any_stage.all("SQS::Queue").get(mapping["EventSourceArn"]["Fn::GetAtt"][0])
        if queue is None:  # a stream
            continue
        assert queue["VisibilityTimeout"] >= functions[any_stage.called(mapping["FunctionName"])]["Timeout"]


def test_no_dead_letter_queue_takes_the_work_of_the_engine(any_stage: Synthesized) -> None:
    """A message is received once for each step of its unit, which may be hundreds of times."""
    assert "RedrivePolicy" not in any_stage.one("SQS::Queue", "LanesWork")


def test_queues_are_encrypted(any_stage: Synthesized) -> None:
    assert all(queue["SqsManagedSseEnabled"] for queue in any_stage.all("SQS::Queue").values())


def test_only_our_topic_may_send_to_a_lane(any_stage: Synthesized) -> None:
    lets_in = [
        (name_of(statement["Resource"]), statement["Principal"], name_of(statement["Condition"]["ArnEquals"]["aws:SourceArn"]))
        for policy in any_stage.all("SQS::QueuePolicy").values()
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Allow"
    ]
    assert sorted(lets_in) == [(f"Lanes{name}", {"Service": "sns.amazonaws.com"}, "LanesTopic") for name in LANES]


def test_every_queue_and_topic_refuses_plain_http(on_aws: Synthesized) -> None:
    policies = [*on_aws.all("SQS::QueuePolicy").values(), *on_aws.all("SNS::TopicPolicy").values()]
    refused = {
        name_of(statement["Resource"])
        for policy in policies
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Deny" and statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    }
    assert refused == {id[:-8] for kind in ("SQS::Queue", "SNS::Topic") for id in on_aws.all(kind)}
