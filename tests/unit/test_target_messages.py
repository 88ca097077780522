"""The targets `sqs`, `sns`, `eventbridge` and `email`: their requests to AWS."""

import json
from typing import Any

import pytest

from scheduler.model.job import FailureKind
from scheduler.notify.announce import SOURCE
from scheduler.targets import registry
from scheduler.targets.calls import Request
from tests.unit.fake_calls import BUS, QUEUE, TOPIC, FakeCalls, attributes, context
from tests.unit.test_target_aws import checked, rules

IDS = {"Idempotency-Key": "01JOB", "Punctual-Job-Id": "01JOB"}
REGION = "eu-west-1"
MAIL: dict[str, Any] = {"to": ["ann@example.com", "bob@example.com"], "subject": "Grüße", "text": "t", "html": "<p>t</p>"}


@pytest.mark.parametrize(
    "queue",
    [QUEUE, "https://sqs.eu-west-1.amazonaws.com/123456789012/orders", "https://eu-west-1.queue.amazonaws.com/123456789012/orders"],
)
def test_a_queue_is_accepted_by_its_arn_or_its_url(queue: str) -> None:
    calls = FakeCalls()
    payload = {"queue": queue, "body": "b", "attributes": {"color": "red"}}
    checked("sqs", payload)
    assert registry.load("sqs").run(payload, context(calls)).output == "m1"
    url = "https://sqs.eu-west-1.amazonaws.com/123456789012/orders"
    message = {"QueueUrl": url, "MessageBody": "b", "MessageAttributes": attributes(color="red", **IDS)}
    assert calls.asked == [Request("sqs", "send_message", message, REGION)]


def test_a_topic_gets_message_subject_and_attributes() -> None:
    calls = FakeCalls()
    payload = {"topic": TOPIC, "message": "m", "subject": "s", "attributes": {"color": "red"}}
    assert registry.load("sns").run(payload, context(calls)).output == "m2"
    message = {"TopicArn": TOPIC, "Message": "m", "MessageAttributes": attributes(color="red", **IDS), "Subject": "s"}
    assert calls.asked == [Request("sns", "publish", message, REGION)]


@pytest.mark.parametrize("subject", ["", " s", "a\nb", "ü", "x" * 101])
def test_a_subject_that_sns_would_refuse_is_refused(subject: str) -> None:
    assert list(rules("sns", {"topic": TOPIC, "message": "m", "subject": subject})) == ["subject"]


def test_a_bus_gets_the_event() -> None:
    calls = FakeCalls()
    payload = {"bus": BUS, "source": "shop", "detail_type": "Paid", "detail": {"order": 7}}
    assert registry.load("eventbridge").run(payload, context(calls)).output == "e1"
    (request,) = calls.asked
    (event,) = request.parameters["Entries"]
    assert (request.region, event["EventBusName"], event["Source"], event["DetailType"]) == (REGION, BUS, "shop", "Paid")
    assert json.loads(event["Detail"]) == {"order": 7, "punctual": {"job_id": "01JOB", "idempotency_key": "01JOB"}}


@pytest.mark.parametrize("source", ["aws.ec2", SOURCE])
def test_a_source_of_aws_or_of_the_stage_is_refused(source: str) -> None:
    payload, calls = {"bus": BUS, "source": source, "detail_type": "Punctual Job Failed"}, FakeCalls()
    assert list(rules("eventbridge", payload)) == ["source"]
    failure = registry.load("eventbridge").run(payload, context(calls)).failure  # by a placeholder
    assert failure is not None and failure.kind is FailureKind.PERMANENT and calls.asked == []


def test_an_e_mail_is_sent_with_the_ids_as_headers() -> None:
    calls = FakeCalls()
    checked("email", MAIL)
    assert registry.load("email").run(MAIL, context(calls)).output == "s1"
    (request,) = calls.asked
    assert (request.service, request.operation, request.region) == ("sesv2", "send_email", None)
    assert request.parameters["FromEmailAddress"] == "punctual@example.com"
    assert request.parameters["Destination"] == {"ToAddresses": ["ann@example.com", "bob@example.com"]}
    simple = request.parameters["Content"]["Simple"]
    assert (simple["Subject"]["Data"], simple["Body"]["Text"]["Data"], simple["Body"]["Html"]["Data"]) == ("Grüße", "t", "<p>t</p>")
    assert {each["Name"]: each["Value"] for each in simple["Headers"]} == IDS


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"to": []}, "to"),
        ({"to": ["a@example.com"] * 51}, "to"),
        ({"to": ["ann"]}, "to.0"),
        ({"to": ["Ann <ann@example.com>"]}, "to.0"),
        ({"to": ["a@example.com\nBcc: b@example.com"]}, "to.0"),
        ({"subject": "a\r\nBcc: b@example.com"}, "subject"),
        ({"text": None, "html": None}, ""),
    ],
)
def test_an_e_mail_that_cannot_be_sent_is_refused(change: dict[str, Any], field: str) -> None:
    assert list(rules("email", MAIL | change)) == [field]
