"""A job of each type runs on the local AWS with IAM enforced; its receiver gets payload, job id and idempotency key."""

import json
import urllib.request
from typing import Any

import pytest
from punctual import ApiError, Punctual

from infra.settings import LOCAL, SAMPLE
from local.failure import Trouble
from tests.system.conftest import System, ended, until

ARN = {arn.split(":")[2]: arn for arn in LOCAL.allowed_targets}


def arrived(system: System, queue: str, job_id: str) -> dict[str, Any]:
    """Wait for the message of a job in one of the sample queues, and delete it there."""
    sqs = system.aws("sqs")
    url = sqs.get_queue_url(QueueName=f"{SAMPLE}-{queue}")["QueueUrl"]

    def look() -> dict[str, Any] | None:
        for message in sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"]).get("Messages", []):
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
            if job_id in json.dumps(message):
                return dict(message)
        return None

    return until(60, look)


def attributes(message: dict[str, Any]) -> dict[str, str]:
    return {name: value["StringValue"] for name, value in message["MessageAttributes"].items()}


def ran(client: Punctual, name: str, payload: dict[str, Any], **more: Any) -> dict[str, Any]:
    (job,) = ended(client, [client.jobs.create(name, payload, **more).raw], 60)
    return job


def facts(job: dict[str, Any], *, attempt: bool = True) -> dict[str, Any]:
    """The field `punctual` of a one-time job's message."""
    at = dict.fromkeys(("scheduled_at", "nominal_at"), job["scheduled_at"])
    return dict.fromkeys(("job_id", "idempotency_key"), job["id"]) | at | ({"attempt": 1} if attempt else {})


def are_ids(given: dict[str, str], job: dict[str, Any], **more: str) -> bool:
    """Whether the attributes of a message are the ids, the context and `more`."""
    context = json.loads(given.get("Punctual-Context", "null"))
    rest = {name: value for name, value in given.items() if name != "Punctual-Context"}
    return context == facts(job) and rest == {"Idempotency-Key": job["id"], "Punctual-Job-Id": job["id"], **more}


def with_ids(given: dict[str, Any], job: dict[str, Any], *, attempt: bool = True) -> dict[str, Any]:
    return {**given, "punctual": facts(job, attempt=attempt)}


def test_an_sqs_job_sends_its_message_to_the_queue(system: System, client: Punctual) -> None:
    job = ran(client, "sqs", {"queue": ARN["sqs"], "body": {"order": 7}, "attributes": {"color": "red"}})
    message = arrived(system, "queue", job["id"])
    assert (job["status"], job["output"]) == ("succeeded", message["MessageId"])
    assert json.loads(message["Body"]) == {"order": 7}
    assert are_ids(attributes(message), job, color="red")


def test_a_message_to_a_topic_reaches_its_subscriber(system: System, client: Punctual) -> None:
    job = ran(client, "sns", {"topic": ARN["sns"], "message": "hello", "subject": "news"})
    message = arrived(system, "notifications", job["id"])
    assert (job["status"], message["Body"]) == ("succeeded", "hello")
    assert are_ids(attributes(message), job)


def test_an_event_reaches_its_rule_on_the_bus(system: System, client: Punctual) -> None:
    job = ran(client, "eventbridge", {"bus": ARN["events"], "source": "sample.shop", "detail_type": "Paid", "detail": {"order": 7}})
    event = json.loads(arrived(system, "events", job["id"])["Body"])
    assert (job["status"], job["output"]) == ("succeeded", event["id"])
    assert (event["source"], event["detail-type"], event["detail"]) == ("sample.shop", "Paid", with_ids({"order": 7}, job))


def test_a_function_is_called_and_its_answer_kept(system: System, client: Punctual) -> None:
    job = ran(client, "lambda", {"function": ARN["lambda"], "event": {"order": 7}})
    event = json.loads(arrived(system, "calls", job["id"])["Body"])
    assert event == with_ids({"order": 7}, job)
    assert (job["status"], json.loads(job["output"])) == ("succeeded", {"received": event, "by": SAMPLE})


def test_a_function_is_called_asynchronously(system: System, client: Punctual) -> None:
    job = ran(client, "lambda", {"function": ARN["lambda"], "event": {"order": 8}, "mode": "async"})
    assert (job["status"], job["output"]) == ("succeeded", None)
    assert json.loads(arrived(system, "calls", job["id"])["Body"]) == with_ids({"order": 8}, job)


def test_a_function_that_fails_fails_its_job(client: Punctual) -> None:
    job = ran(client, "lambda", {"function": ARN["lambda"], "event": {"fail": True}}, max_attempts=1)
    assert (job["status"], job["attempts"][0]["failure"]["kind"]) == ("failed", "retryable")
    assert "as requested" in job["attempts"][0]["failure"]["message"]


def test_an_execution_is_named_after_its_job(system: System, client: Punctual) -> None:
    job = ran(client, "stepfunctions", {"state_machine": ARN["states"], "input": {"order": 7}})
    assert job["status"] == "succeeded" and job["output"].endswith(f":{job['id']}")
    found = system.aws("stepfunctions").describe_execution(executionArn=job["output"])
    assert json.loads(found["input"]) == with_ids({"order": 7}, job, attempt=False)


@pytest.mark.parametrize(("given", "status"), [({"order": 7}, "succeeded"), ({"fail": True}, "failed")])
def test_a_job_that_waits_for_its_execution_ends_as_the_execution(client: Punctual, given: dict[str, Any], status: str) -> None:
    job = ran(client, "stepfunctions", {"state_machine": ARN["states"], "input": given, "wait": True}, max_attempts=1)
    assert (job["status"], len(job["attempts"])) == (status, 1)
    if status == "failed":
        assert "AsItWasTold" in job["attempts"][0]["failure"]["message"]
    else:
        assert json.loads(job["output"]) == with_ids(given, job, attempt=False)


def test_an_e_mail_is_sent(system: System, client: Punctual) -> None:
    job = ran(client, "email", {"to": ["ann@example.com"], "subject": "Hello", "text": "It is time."})
    assert job["status"] == "succeeded", job["attempts"][0]["failure"]
    with urllib.request.urlopen(f"{system.stack.aws.endpoint}/_ministack/ses/messages") as answer:
        stored = [mail for account in json.load(answer)["messages"].values() for mail in account]
    (mail,) = [mail for mail in stored if mail["MessageId"] == job["output"]]
    assert (mail["To"], mail["Subject"], mail["BodyText"]) == (["ann@example.com"], "Hello", "It is time.")
    assert LOCAL.email_sender in json.dumps(mail)


def test_a_job_for_a_target_that_is_not_allowed_is_refused(system: System, client: Punctual) -> None:
    with pytest.raises((ApiError, Trouble)) as refused:
        client.jobs.create("sqs", {"queue": f"{ARN['sqs']}-2", "body": "b"})
    assert "payload.queue" in str(refused.value) and ARN["sqs"] in str(refused.value)
