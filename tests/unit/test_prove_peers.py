"""The peers of `make prove`: the calls of EventBridge Scheduler, IAM and SQS, the measurements, and the deletion of all resources."""

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from prove import peers
from prove.cleanup import Cleanup
from prove.peers import Delayed, Inbox, Peers, Schedules
from prove.place import Place
from prove.plan import SHORT, Part, Plan, planned

pytestmark = pytest.mark.long

NAME = "punctual-prove-0a1b2c3d"
FAR = 4_102_444_800_000  # 2100-01-01T00:00:00Z: Scheduler refuses instants of the past
PART = Part("spread", "2 jobs", [FAR, FAR + 5_000])


@pytest.fixture(autouse=True)
def _no_long_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "POLL_S", 0)


@pytest.fixture
def place() -> Iterator[Place]:
    with mock_aws():
        session = boto3.Session(region_name="eu-west-1")
        yield Place("dev", "eu-west-1", {}, "https://api.example.com", lambda service, **_: session.client(service))


@pytest.fixture
def cleanup() -> Cleanup:
    return Cleanup()


def send(place: Place, queue: str, **body: Any) -> None:
    place.client("sqs").send_message(QueueUrl=queue, MessageBody=json.dumps(body))


def test_a_schedule_names_its_second_and_deletes_itself(place: Place, cleanup: Cleanup) -> None:
    made = Schedules(place, NAME, cleanup)
    made.create([PART])
    scheduler = place.client("scheduler")
    schedule = scheduler.get_schedule(GroupName=NAME, Name="spread-1")
    assert schedule["ScheduleExpression"] == "at(2100-01-01T00:00:05)"
    assert (schedule["ActionAfterCompletion"], schedule["FlexibleTimeWindow"]) == ("DELETE", {"Mode": "OFF"})
    assert schedule["Target"]["Arn"] == made.inbox.arn
    assert json.loads(schedule["Target"]["Input"]) == {"part": "spread", "number": 1, "due": FAR + 5_000}
    assert len(scheduler.list_schedules(GroupName=NAME)["Schedules"]) == 2


def test_only_the_scheduler_of_this_account_may_use_the_role_to_send(place: Place, cleanup: Cleanup) -> None:
    made = Schedules(place, NAME, cleanup)
    iam = place.client("iam")
    (trust,) = iam.get_role(RoleName=NAME)["Role"]["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "scheduler.amazonaws.com"}
    assert trust["Condition"] == {"StringEquals": {"aws:SourceAccount": "123456789012"}}
    (grant,) = iam.get_role_policy(RoleName=NAME, PolicyName=peers.POLICY)["PolicyDocument"]["Statement"]
    assert (grant["Action"], grant["Resource"]) == ("sqs:SendMessage", made.inbox.arn)


def test_the_first_schedule_is_tried_again_until_the_role_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers.time, "sleep", lambda _seconds: None)
    answers: list[Exception | None] = [error("ValidationException", "The execution role you provide must allow ..."), None]

    def create() -> None:
        if answer := answers.pop(0):
            raise answer

    peers._until_trusted(create)
    assert answers == []


@pytest.mark.parametrize("refusal", [("AccessDeniedException", "no role"), ("ValidationException", "Invalid expression")])
def test_another_refusal_of_a_schedule_is_raised_at_once(refusal: tuple[str, str]) -> None:
    def create() -> None:
        raise error(*refusal)

    with pytest.raises(ClientError):
        peers._until_trusted(create)


def error(code: str, message: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, "CreateSchedule")


def test_a_delayed_message_is_hidden_for_whole_seconds(cleanup: Cleanup) -> None:
    sent: list[dict[str, Any]] = []

    class Sqs:
        def create_queue(self, **_arguments: Any) -> dict[str, str]:
            return {"QueueUrl": "q"}

        def send_message_batch(self, **arguments: Any) -> dict[str, Any]:
            sent.extend(arguments["Entries"])
            return {}

    place = Place("dev", "eu-west-1", {}, "", lambda _service: Sqs())
    Delayed(place, NAME, cleanup).send(Part("spread", "12 jobs", [FAR + n * 1_000 for n in range(12)]), FAR - 10_400)
    assert [each["DelaySeconds"] for each in sent] == list(range(11, 23))
    assert json.loads(sent[0]["MessageBody"]) == {"part": "spread", "number": 0, "due": 11_000}


def test_the_real_model_of_sqs_takes_the_delayed_messages(place: Place, cleanup: Cleanup) -> None:
    delayed = Delayed(place, NAME, cleanup)
    delayed.send(Part("spread", "12 jobs", [FAR + n * 1_000 for n in range(12)]), FAR)
    attributes = place.client("sqs").get_queue_attributes(QueueUrl=delayed.inbox.url, AttributeNames=["All"])["Attributes"]
    assert int(attributes["ApproximateNumberOfMessagesDelayed"]) + int(attributes["ApproximateNumberOfMessages"]) == 12


def test_a_received_message_is_deleted_and_has_the_times_of_sqs(place: Place, cleanup: Cleanup) -> None:
    inbox = Inbox(place.client("sqs"), "queue", cleanup)
    send(place, inbox.url, part="spread", number=7, due=1_000)
    inbox.poll(wait_s=0)
    (arrival,) = inbox.arrivals
    assert (arrival.part, arrival.number, arrival.due) == ("spread", 7, 1_000)
    assert 0 <= arrival.received_at - arrival.sent_at < 60_000
    attributes = place.client("sqs").get_queue_attributes(QueueUrl=inbox.url, AttributeNames=["All"])["Attributes"]
    assert (attributes["ApproximateNumberOfMessages"], attributes["ApproximateNumberOfMessagesNotVisible"]) == ("0", "0")


def short_run() -> Plan:
    """Return a plan for now: SQS takes only delays from now on."""
    return planned(time.time_ns() // 1_000_000, SHORT, ["spread", "peers"])


def test_a_peer_is_measured_by_the_times_of_sqs(place: Place, cleanup: Cleanup) -> None:
    with ExitStack() as stack:
        both = Peers(place, short_run(), NAME, cleanup, stack)
    both._inboxes[peers.SCHEDULER].arrivals = [arrived(n, due=FAR, sent_at=FAR + 100 * n, received_at=FAR + 9_000) for n in range(10)]
    both._inboxes[peers.SQS].arrivals = [arrived(n, due=11_000, sent_at=FAR, received_at=FAR + 11_020) for n in range(9)]
    scheduler, sqs = both.rows()
    assert (scheduler.key, scheduler.p50_ms, scheduler.max_ms, scheduler.lost) == ("scheduler-spread", 400, 900, 0)
    assert (sqs.key, sqs.p50_ms, sqs.max_ms, sqs.lost) == ("sqs-spread", 20, 20, 1)


def arrived(number: int, **times: int) -> peers.Arrival:
    return peers.Arrival("spread", number, **times)


def test_a_peer_that_aws_refuses_is_reported_in_words(place: Place, cleanup: Cleanup, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: Any) -> None:
        raise error("AccessDenied", "iam:CreateRole is not allowed")

    monkeypatch.setattr(Schedules, "_make_role", refuse)
    with ExitStack() as stack:
        scheduler, sqs = Peers(place, short_run(), NAME, cleanup, stack).rows()
    assert scheduler.note.startswith("not measured: ") and "iam:CreateRole is not allowed" in scheduler.note
    assert scheduler.lost is None
    assert sqs.lost == 10, "the other peer is still measured"


def test_a_delay_that_sqs_refuses_is_reported_in_words(place: Place, cleanup: Cleanup) -> None:
    with ExitStack() as stack:
        _, sqs = Peers(place, planned(FAR, SHORT, ["spread", "peers"]), NAME, cleanup, stack).rows()
    assert sqs.note == "not measured: SQS refused 10 delayed messages: InvalidParameterValue"


def test_the_local_aws_is_no_measure_of_a_peer(place: Place, cleanup: Cleanup) -> None:
    local = Place("local", "us-east-1", {}, "", place.make_client)
    with ExitStack() as stack:
        for row in Peers(local, short_run(), NAME, cleanup, stack).rows():
            assert (row.p50_ms, row.lost, row.dollars) == (None, None, None)
            assert row.note.startswith("0 of 10 came; the local AWS ") and "compare on AWS" in row.note


def test_everything_that_the_peers_made_is_deleted(place: Place, cleanup: Cleanup) -> None:
    with ExitStack() as stack:
        Peers(place, short_run(), NAME, cleanup, stack)
    assert left(place) == (2, 1, 1)
    assert cleanup.run() == []
    assert left(place) == (0, 0, 0)


def left(place: Place) -> tuple[int, int, int]:
    """Return the numbers of queues, roles and schedule groups of the run."""
    groups = place.client("scheduler").list_schedule_groups()["ScheduleGroups"]
    return (
        len(place.client("sqs").list_queues().get("QueueUrls", [])),
        len(place.client("iam").list_roles()["Roles"]),
        sum(group["Name"] == NAME for group in groups),
    )
