"""The port WorkQueue, its items as messages, and the deliveries that a function reads from the queue."""

import json
from typing import Any

import pytest

from scheduler.model.errors import Invalid, SchedulerError
from scheduler.model.job import UnitKey
from scheduler.model.work import WorkDelivery, WorkItem, WorkKind
from scheduler.storage.aws import clients, work_queue
from scheduler.storage.aws.work_queue import SqsWorkQueue, decode, delivery, encode
from scheduler.storage.memory.stores import MemoryWork
from scheduler.storage.ports import WorkQueue
from tests.contract.test_lanes import records
from tests.contract.wire import Wire

UNIT = WorkItem.of_unit(UnitKey("2026-11-20T10:01", 3))
ITEMS = [UNIT, WorkItem(WorkKind.CHECKS), WorkItem(WorkKind.OPERATION, "ann", "01JD2F7Q")]


def received(work: WorkQueue) -> list[WorkDelivery]:
    """The visible messages, which are hidden from now on."""
    if isinstance(work, MemoryWork):
        return work.receive(work._clock.now())
    assert isinstance(work, SqsWorkQueue)
    return [found for found in map(delivery, records(work._client, work._url)) if found is not None]


def test_every_item_sent_is_delivered_once_and_then_hidden(work: WorkQueue) -> None:
    sent = ITEMS + [WorkItem.of_unit(UnitKey("2026-11-20T10:02", part)) for part in range(20)]
    assert work.send(sent) == [] and work.send([]) == []
    taken = received(work)
    assert sorted(each.item for each in taken) == sorted(sent)
    assert len({each.message_id for each in taken}) == len(sent) and {each.receive_count for each in taken} == {1}
    assert received(work) == []


def test_delayed_work_is_not_visible_yet(work: WorkQueue) -> None:
    assert work.send([UNIT], delay_ms=60_000) == []
    assert work.send([ITEMS[1]], delay_ms=999) == []
    assert [each.item for each in received(work)] == [ITEMS[1]]


def test_a_message_hidden_for_no_time_is_delivered_again(work: WorkQueue) -> None:
    work.send([UNIT])
    (first,) = received(work)
    assert work.hide(first.receipt, 0)
    (second,) = received(work)
    assert (second.item, second.message_id, second.receive_count) == (UNIT, first.message_id, 2)
    assert work.hide(second.receipt, 60) and received(work) == []


def test_a_message_may_be_hidden_for_longer_than_sqs_can(work: WorkQueue) -> None:
    work.send([UNIT])
    (taken,) = received(work)
    assert work.hide(taken.receipt, 10**6)
    assert received(work) == []


def test_an_unknown_receipt_hides_nothing(work: WorkQueue) -> None:
    work.send([UNIT])
    (taken,) = received(work)
    assert not work.hide(f"{taken.receipt}x", 0)
    assert received(work) == []


@pytest.fixture
def wired() -> tuple[SqsWorkQueue, Wire]:
    client = clients.sqs()
    wire = Wire(client)
    wire.answer("SendMessageBatch", {"Successful": [], "Failed": []})
    wire.answer("ChangeMessageVisibilityBatch", {"Successful": [{"Id": "0"}], "Failed": []})
    return SqsWorkQueue(client, "https://queue/work"), wire


@pytest.mark.parametrize(("delay_ms", "seconds"), [(0, 0), (999, 0), (1_000, 1), (59_999, 59), (900_000, 900), (5_000_000, 900)])
def test_sqs_delays_work_by_whole_seconds_at_most_900(wired: tuple[SqsWorkQueue, Wire], delay_ms: int, seconds: int) -> None:
    work, wire = wired
    work.send([UNIT], delay_ms=delay_ms)
    assert [entry["DelaySeconds"] for call in wire.sent("SendMessageBatch") for entry in call["Entries"]] == [seconds]


def test_refused_items_are_returned_from_every_batch(wired: tuple[SqsWorkQueue, Wire]) -> None:
    work, wire = wired
    wire.answer("SendMessageBatch", {"Failed": [{"Id": "1", "SenderFault": False, "Code": "InternalError"}]})
    sent = [WorkItem.of_unit(UnitKey("2026-11-20T10:01", part)) for part in range(12)]
    assert work.send(sent) == [sent[1], sent[11]]
    wire.refuse("SendMessageBatch", "RequestThrottled")
    assert work.send(sent) == sent
    wire.cut("SendMessageBatch")
    assert work.send(sent) == sent


def test_a_receipt_that_sqs_refuses_is_not_hidden(wired: tuple[SqsWorkQueue, Wire]) -> None:
    """An outdated receipt belongs to a worker that is too late, and is no error."""
    work, wire = wired
    assert work.hide("r", 17)
    wire.answer("ChangeMessageVisibilityBatch", {"Failed": [{"Id": "0", "SenderFault": True, "Code": "ReceiptHandleIsInvalid"}]})
    assert not work.hide("r", 17)
    wire.refuse("ChangeMessageVisibilityBatch", "RequestThrottled")
    assert not work.hide("r", 17)
    wire.cut("ChangeMessageVisibilityBatch")
    assert not work.hide("r", 17)
    hidden = [call["Entries"][0] for call in wire.sent("ChangeMessageVisibilityBatch")]
    assert {(entry["ReceiptHandle"], entry["VisibilityTimeout"]) for entry in hidden} == {("r", 17)}


def test_sqs_hides_no_message_for_longer_than_its_limit(wired: tuple[SqsWorkQueue, Wire]) -> None:
    work, wire = wired
    work.hide("r", 10**6)
    assert wire.sent("ChangeMessageVisibilityBatch")[0]["Entries"][0]["VisibilityTimeout"] == work_queue.HIDDEN_LIMIT


@pytest.mark.parametrize("operation", ["SendMessageBatch", "ChangeMessageVisibilityBatch"])
def test_a_missing_grant_on_the_work_queue_is_raised(wired: tuple[SqsWorkQueue, Wire], operation: str) -> None:
    work, wire = wired
    wire.refuse(operation, "AccessDenied", 403)
    with pytest.raises(SchedulerError, match="AccessDenied"):
        work.send([UNIT]) if operation == "SendMessageBatch" else work.hide("r", 1)


@pytest.mark.parametrize("item", ITEMS, ids=[item.kind for item in ITEMS])
def test_an_item_survives_its_message(item: WorkItem) -> None:
    assert decode(encode(item)) == item


GOOD = json.loads(encode(UNIT))
NO_WORK: list[Any] = [
    *("", "null", "[]", "7", '"unit"', "{", "[" * 5_000, "{}"),
    *(json.dumps({name: value for name, value in GOOD.items() if name != gone}) for gone in GOOD),
    *(
        json.dumps(GOOD | wrong)
        for wrong in (
            {"v": 2},
            {"v": "1"},
            {"v": True},
            {"v": 1.0},
            {"kind": "other"},
            {"kind": ["unit"]},
            {"of": 7},
            {"of": "\ud800"},
            {"part": 3},
            {"part": None},
            {"part": "x"},
            {"part": "3.5"},
            {"part": "³"},
            {"part": " 3"},
            {"part": "1" * 5_000},
        )
    ),
]


@pytest.mark.parametrize("body", NO_WORK)
def test_a_body_that_is_no_item_of_work_is_invalid_and_no_delivery(body: str) -> None:
    with pytest.raises(Invalid):
        decode(body)
    assert delivery({"messageId": "m", "receiptHandle": "r", "body": body, "attributes": {"ApproximateReceiveCount": "1"}}) is None


@pytest.mark.parametrize("record", [{}, {"body": None}, {"body": encode(UNIT)}, {"body": encode(UNIT), "attributes": {}}, None, 7, "x"])
def test_a_record_with_missing_parts_is_no_delivery(record: Any) -> None:
    assert delivery(record) is None


def test_a_record_of_the_work_queue_is_a_delivery() -> None:
    record = {"messageId": "m", "receiptHandle": "r", "body": encode(UNIT), "attributes": {"ApproximateReceiveCount": "3"}}
    assert delivery(record) == WorkDelivery(UNIT, "m", "r", 3)
