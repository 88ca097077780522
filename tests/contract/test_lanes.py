"""The port Lanes with its topic, and the deliveries that a function reads from a lane."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from scheduler.model.errors import SchedulerError
from scheduler.model.job import JobKey, Lane, Message, Packed
from scheduler.storage import messages
from scheduler.storage.aws import clients
from scheduler.storage.aws.deliveries import delivery
from scheduler.storage.aws.lanes import SqsLanes
from scheduler.storage.aws.topic import SnsTopic
from scheduler.storage.memory.stores import MemoryLanes
from scheduler.storage.ports import Lanes
from tests.contract import make
from tests.contract.make import NOW
from tests.contract.wire import Wire


def received(lanes: Lanes, lane: Lane) -> dict[str, Message]:
    """The visible messages of a lane, by their receipts."""
    if isinstance(lanes, MemoryLanes):
        return {item.receipt: item.message for item in lanes.receive(lane, 1_000, NOW)}
    assert isinstance(lanes, SqsLanes)
    return {item.receipt: item.message for item in map(delivery, records(lanes._client, lanes._urls[lane])) if item}


def records(client: Any, url: str) -> Iterator[dict[str, Any]]:
    """The records that an event source mapping would pass to a function."""
    while True:
        answer = client.receive_message(QueueUrl=url, MaxNumberOfMessages=10, AttributeNames=["All"])
        for message in answer.get("Messages", ()):
            yield {
                "messageId": message["MessageId"],
                "receiptHandle": message["ReceiptHandle"],
                "body": message["Body"],
                "attributes": message["Attributes"],
            }
        if not answer.get("Messages"):
            return


def test_a_message_arrives_in_its_lane_with_its_time_of_sending(lanes: Lanes) -> None:
    sent = [make.message(lane=lane, fence=number) for lane in Lane for number in range(1, 13)]
    assert lanes.send(sent, NOW) == []
    for lane in Lane:
        arrived = sorted(received(lanes, lane).values(), key=lambda message: message.fence)
        assert arrived == [message._replace(sent_at=NOW) for message in sent if message.lane is lane]


def test_a_message_sent_again_keeps_its_first_time_of_sending(lanes: Lanes) -> None:
    assert lanes.send([make.message(sent_at=NOW - 5)], NOW) == []
    (message,) = received(lanes, Lane.ONE_TIME).values()
    assert message.sent_at == NOW - 5


def test_a_delayed_message_is_neither_delivered_nor_backlog(lanes: Lanes) -> None:
    lanes.send([make.message(not_before=NOW + 60_000), make.message()], NOW)
    assert len(received(lanes, Lane.ONE_TIME)) == 1
    assert lanes.backlog(Lane.ONE_TIME) == 0


def test_the_backlog_counts_the_messages_of_one_lane(lanes: Lanes) -> None:
    lanes.send([make.message(), make.message(), make.message(lane=Lane.RETRY)], NOW)
    received(lanes, Lane.RETRY)
    assert (lanes.backlog(Lane.ONE_TIME), lanes.backlog(Lane.RETRY)) == (2, 0)


def test_the_visibility_of_received_messages_is_extended(lanes: Lanes) -> None:
    lanes.send([make.message() for _ in range(12)], NOW)
    receipts = list(received(lanes, Lane.ONE_TIME))
    assert lanes.extend(Lane.ONE_TIME, receipts, 0) == set(receipts)
    assert len(received(lanes, Lane.ONE_TIME)) == 12


def test_empty_batches_are_accepted(lanes: Lanes) -> None:
    assert lanes.send([], NOW) == [] and lanes.extend(Lane.ONE_TIME, [], 30) == set()


@pytest.fixture
def wired() -> tuple[SqsLanes, Wire]:
    client = clients.sqs()
    wire = Wire(client)
    wire.answer("SendMessageBatch", {"Successful": [], "Failed": []})
    return SqsLanes(client, {lane: f"https://queue/{lane}" for lane in Lane}), wire


@pytest.mark.parametrize(
    ("ahead_ms", "seconds"), [(-1, None), (0, None), (999, None), (1_000, 1), (59_999, 59), (900_000, 900), (5_000_000, 900)]
)
def test_sqs_delays_by_whole_seconds_rounded_down_at_most_900(wired: tuple[SqsLanes, Wire], ahead_ms: int, seconds: int | None) -> None:
    lanes, wire = wired
    lanes.send([make.message(not_before=NOW + ahead_ms)], NOW)
    ((entry,),) = (call["Entries"] for call in wire.sent("SendMessageBatch"))
    assert entry.get("DelaySeconds") == seconds


def test_sqs_messages_are_grouped_by_owner(wired: tuple[SqsLanes, Wire]) -> None:
    lanes, wire = wired
    lanes.send([make.message(key=JobKey("eve", "x"))], NOW)
    assert wire.sent("SendMessageBatch")[0]["Entries"][0]["MessageGroupId"] == "eve"


def test_entries_that_sqs_refuses_are_returned(wired: tuple[SqsLanes, Wire]) -> None:
    lanes, wire = wired
    wire.answer("SendMessageBatch", {"Failed": [{"Id": "1", "SenderFault": False, "Code": "InternalError"}]})
    sent = [make.message() for _ in range(3)]
    assert lanes.send(sent, NOW) == [sent[1]]


@pytest.mark.parametrize("code", ["RequestThrottled", "KMS.ThrottlingException", "KmsThrottled"])
def test_a_batch_that_sqs_throttles_is_returned_whole(wired: tuple[SqsLanes, Wire], code: str) -> None:
    lanes, wire = wired
    wire.refuse("SendMessageBatch", code, 400)
    sent = [make.message() for _ in range(13)]
    assert lanes.send(sent, NOW) == sent


def test_a_missing_grant_is_raised(wired: tuple[SqsLanes, Wire]) -> None:
    lanes, wire = wired
    wire.refuse("SendMessageBatch", "AccessDenied", 403)
    with pytest.raises(SchedulerError, match="AccessDenied") as raised:
        lanes.send([make.message()], NOW)
    assert raised.value.code == "internal_error"


def test_receipts_that_sqs_does_not_extend_are_not_returned(wired: tuple[SqsLanes, Wire]) -> None:
    lanes, wire = wired
    wire.answer("ChangeMessageVisibilityBatch", {"Successful": [{"Id": "1"}], "Failed": [{"Id": "0"}]})
    assert lanes.extend(Lane.RETRY, ["a", "b"], 30) == {"b"}
    wire.cut("ChangeMessageVisibilityBatch")
    assert lanes.extend(Lane.RETRY, ["a", "b"], 30) == set()


def test_a_published_message_arrives_unchanged_in_its_lane(moto: None) -> None:
    sns, sqs = clients.sns(), clients.sqs()
    arn = sns.create_topic(Name="jobs")["TopicArn"]
    urls = {lane: sqs.create_queue(QueueName=lane)["QueueUrl"] for lane in Lane}
    for lane, url in urls.items():
        queue = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        filters = {"RawMessageDelivery": "true", "FilterPolicy": json.dumps({"lane": [lane]})}
        sns.subscribe(TopicArn=arn, Protocol="sqs", Endpoint=queue, Attributes=filters)
    sent = [make.message(lane=lane, sent_at=NOW) for lane in Lane for _ in range(11)]
    assert SqsLanes(sqs, urls, SnsTopic(sns, arn)).publish(sent) == []
    for lane, url in urls.items():
        arrived = [item.message for item in map(delivery, records(sqs, url)) if item]
        assert sorted(arrived, key=str) == sorted((message for message in sent if message.lane is lane), key=str)


@pytest.fixture
def topic() -> tuple[SnsTopic, Wire]:
    client = clients.sns()
    return SnsTopic(client, "arn:aws:sns:us-east-1:123456789012:jobs"), Wire(client)


def test_entries_that_sns_refuses_are_returned_from_every_batch(topic: tuple[SnsTopic, Wire]) -> None:
    sns, wire = topic
    wire.answer("PublishBatch", {"Failed": [{"Id": "2", "Code": "InternalError"}]})
    sent = [make.message() for _ in range(25)]
    assert sns.publish(sent) == [sent[2], sent[12], sent[22]]
    assert sorted(len(call["PublishBatchRequestEntries"]) for call in wire.sent("PublishBatch")) == [5, 10, 10]


@pytest.mark.parametrize(("packs", "calls"), [(3, [1, 1, 1, 2, 10]), (14, [*[1] * 14, 2, 10]), (15, [7, 10, 10])])
def test_packs_have_a_call_each_if_no_call_waits_for_a_connection(topic: tuple[SnsTopic, Wire], packs: int, calls: list[int]) -> None:
    sns, wire = topic
    wire.answer("PublishBatch", {})
    pack = make.message(more=(Packed(JobKey("ada", "01"), 1, NOW),))
    assert sns.publish([*[pack] * packs, *(make.message() for _ in range(12))]) == []
    assert sorted(len(call["PublishBatchRequestEntries"]) for call in wire.sent("PublishBatch")) == calls


def test_a_batch_that_does_not_reach_sns_is_returned_whole(topic: tuple[SnsTopic, Wire]) -> None:
    sns, wire = topic
    wire.cut("PublishBatch")
    sent = [make.message() for _ in range(12)]
    assert sns.publish(sent) == sent
    wire.refuse("PublishBatch", "KMSThrottling")
    assert sns.publish(sent) == sent
    assert sns.publish([]) == []


def test_a_valid_record_is_a_delivery() -> None:
    message = make.message(sent_at=NOW)
    record = {"messageId": "m", "receiptHandle": "r", "body": messages.encode(message), "attributes": {"ApproximateReceiveCount": "3"}}
    found = delivery(record)
    assert found is not None
    assert (found.message, found.message_id, found.receipt, found.receive_count) == (message, "m", "r", 3)


def test_an_invalid_record_is_no_delivery() -> None:
    record = {"messageId": "m", "receiptHandle": "r", "body": "hello", "attributes": {"ApproximateReceiveCount": "1"}}
    assert delivery(record) is None
