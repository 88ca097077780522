"""The ports Notices and NoticeQueue."""

from dataclasses import replace

import pytest

from scheduler.model.job import Status, TaskKey
from scheduler.model.notice import DeliveryRecord, News, Notice, NotificationState, Outbox, Window, WindowEnd
from scheduler.model.notifications import Occasion, Webhook
from scheduler.notify.messages import encode
from scheduler.storage.aws import clients
from scheduler.storage.aws.notice_queue import SqsNoticeQueue, received
from scheduler.storage.aws.notices import DynamoNotices
from scheduler.storage.memory.notices import MemoryNoticeQueue
from scheduler.storage.ports import Notices
from tests.contract.make import NOW

TASK = TaskKey("ada", "t1")
NEWS = News(TASK, "j1.0", "j1", "http", Status.FAILED, NOW, NOW - 5, NOW - 4, 1, 3, 3, "retryable: HTTP 500", "HTTP 500\nsorry")
END = WindowEnd(TASK, Occasion.FAILURE, NOW, NOW + 900_000)
OUTBOX = Outbox((Notice("n1", Occasion.FAILURE, NEWS, 1, None, 1, NOW, "Nightly", NOW + 1),), (END,), ("a@example.com", Webhook("u", "s")))


def test_a_decision_is_read_with_the_task_s_state(notices: Notices) -> None:
    assert notices.read(TASK, "j1.0") == (None, None)
    standing = NotificationState(
        TASK, 1, NOW, NOW, NOW - 9, "j0", True, {Occasion.FAILURE: Window(NOW, NOW + 900_000, 1, NOW, NEWS, "j0.0")}
    )
    assert notices.decide(None, standing, "j1.0", OUTBOX, NOW)
    assert notices.read(TASK, "j1.0") == (replace(standing, version=1), OUTBOX)
    assert notices.read(TASK, "j2.0") == (replace(standing, version=1), None)
    assert notices.read(TaskKey("eve", "t1"), "j1.0") == (None, None)


def test_a_decision_is_stored_once_and_only_on_its_state(notices: Notices) -> None:
    first = NotificationState(TASK, 1)
    assert notices.decide(None, first, "j1.0", OUTBOX, NOW)
    assert not notices.decide(None, NotificationState(TASK, 5), "j2.0", OUTBOX, NOW), "a state exists already"
    (known, _) = notices.read(TASK, "j1.0")
    assert not notices.decide(known, NotificationState(TASK, 5), "j1.0", Outbox(), NOW), "that news was decided already"
    assert not notices.decide(replace(first, version=7), NotificationState(TASK, 5), "j2.0", Outbox(), NOW)
    assert notices.read(TASK, "j2.0") == (replace(first, version=1), None), "neither of the two was written"
    assert notices.decide(known, NotificationState(TASK, 2), "j2.0", Outbox(), NOW)
    assert notices.read(TASK, "j2.0") == (NotificationState(TASK, 2, version=2), Outbox())


def test_a_decision_without_an_outbox_changes_only_the_state(notices: Notices) -> None:
    assert notices.decide(None, NotificationState(TASK, succeeded_at=NOW), "j1.0", None, NOW)
    (known, outbox) = notices.read(TASK, "j1.0")
    assert (known, outbox) == (NotificationState(TASK, succeeded_at=NOW, version=1), None)
    assert not notices.decide(None, NotificationState(TASK), "j1.0", None, NOW)


def test_only_one_process_takes_a_sending(notices: Notices) -> None:
    assert notices.delivery(TASK, "s1") is None
    mine = DeliveryRecord(TASK, "s1", NOW + 60_000, 1)
    assert notices.set_delivery(None, mine, NOW)
    assert not notices.set_delivery(None, mine, NOW)
    known = notices.delivery(TASK, "s1")
    assert known == replace(mine, version=1)
    done = DeliveryRecord(TASK, "s1", 0, 1, NOW + 5, "retryable: HTTP 500")
    assert notices.set_delivery(known, done, NOW)
    assert not notices.set_delivery(known, done, NOW)
    assert notices.delivery(TASK, "s1") == replace(done, version=2)
    assert notices.delivery(TASK, "s2") is None


@pytest.mark.usefixtures("moto")
def test_messages_are_received_and_a_window_s_end_is_delayed() -> None:
    client = clients.sqs()
    url = client.create_queue(QueueName="notices")["QueueUrl"]
    queue = SqsNoticeQueue(client, url)
    many = [replace(NEWS, id=f"j{number}.0") for number in range(23)]
    port = DynamoNotices(clients.dynamodb(), "notices", queue)
    port.send([*many, *OUTBOX.sendings()], NOW)
    port.send([END], NOW)
    taken = []
    while batch := client.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
        records = [{"messageId": each["MessageId"], "receiptHandle": each["ReceiptHandle"], "body": each["Body"]} for each in batch]
        taken += received({"Records": records})[0]
    assert {each.message for each in taken if isinstance(each.message, News)} == set(many)
    assert [each.message for each in taken if not isinstance(each.message, News)] == list(OUTBOX.sendings())
    counts = client.get_queue_attributes(QueueUrl=url, AttributeNames=["ApproximateNumberOfMessagesDelayed"])["Attributes"]
    assert counts == {"ApproximateNumberOfMessagesDelayed": "1"}
    queue.put_back({taken[0].receipt: 0})
    assert client.receive_message(QueueUrl=url)["Messages"][0]["MessageId"] == taken[0].message_id
    queue.put_back({"no receipt": 5})


def test_a_message_is_received_until_it_is_deleted(notice_queue: MemoryNoticeQueue | SqsNoticeQueue) -> None:
    notice_queue.send([NEWS], NOW)
    (first,) = notice_queue.receive(0)
    assert first.message == NEWS and first.sent_at is not None
    assert notice_queue.receive(0) == [], "a received message is hidden"
    notice_queue.put_back({first.receipt: 0})
    (again,) = notice_queue.receive(1)
    assert again.message_id == first.message_id and again.receipt != first.receipt
    notice_queue.delete([again.receipt])
    notice_queue.put_back({again.receipt: 0})
    notice_queue.delete(["no receipt"])
    assert notice_queue.receive(0) == []


@pytest.mark.usefixtures("moto")
def test_messages_of_one_owner_are_one_group_for_the_fair_queue() -> None:
    client = clients.sqs()
    url = client.create_queue(QueueName="notices")["QueueUrl"]
    SqsNoticeQueue(client, url).send([NEWS, END, *OUTBOX.sendings()], NOW + 900_000)
    found = client.receive_message(QueueUrl=url, MaxNumberOfMessages=10, AttributeNames=["MessageGroupId"])["Messages"]
    assert {each["Attributes"]["MessageGroupId"] for each in found} == {"ada"} and len(found) == 4


@pytest.mark.usefixtures("moto")
def test_an_unreadable_message_is_left_in_the_queue() -> None:
    client = clients.sqs()
    url = client.create_queue(QueueName="notices")["QueueUrl"]
    client.send_message(QueueUrl=url, MessageBody="what is this")
    assert SqsNoticeQueue(client, url).receive(0) == []
    counts = client.get_queue_attributes(QueueUrl=url, AttributeNames=["ApproximateNumberOfMessagesNotVisible"])["Attributes"]
    assert counts == {"ApproximateNumberOfMessagesNotVisible": "1"}


@pytest.mark.long
def test_a_queue_that_refuses_has_no_messages_for_now() -> None:
    assert SqsNoticeQueue(clients.sqs(endpoint_url="http://127.0.0.1:9"), "http://127.0.0.1:9/notices").receive(0) == []


@pytest.mark.parametrize(
    "body", ["", "{}", "[]", '{"v": 2, "kind": "news"}', '{"v": 1, "kind": "other"}', '{"v": 1, "kind": "news"}', "null"]
)
def test_a_record_that_is_no_message_is_recognized(body: str) -> None:
    good = {"messageId": "m1", "receiptHandle": "r1", "body": encode(NEWS)}
    taken, poison = received({"Records": [good, {"messageId": "m2", "receiptHandle": "r2", "body": body}]})
    assert ([each.message for each in taken], poison) == ([NEWS], {"m2": "r2"})
