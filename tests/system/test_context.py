"""A run of each type on the local AWS: its receiver prints the context that it got, and its payload had placeholders."""

import json
import logging
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
from punctual import Punctual

from scheduler.targets.job_context import HEADERS
from tests.system.conftest import FINAL, System, until
from tests.system.test_targets import ARN, arrived, attributes

NAME = "Grüße"
TEXT = "{{task.name}} for {{nominal_at:date}}, attempt {{attempt}}, {{{{as it is}}"
Json = dict[str, Any]

log = logging.getLogger(__name__)


def show(*received: object) -> None:
    """Print the message of a receiver: `pytest --log-cli-level=INFO` shows it."""
    log.info("%s", received)


def ran(client: Punctual, kind: str, payload: Json, **options: Any) -> Json:
    """Create a task that runs once, now; return its run once it has ended."""
    task = client.tasks.create(NAME, kind, payload, **options).raw

    def look() -> Json | None:
        return next((run for run in (job.raw for job in client.tasks.jobs(task["id"])) if run["status"] in FINAL), None)

    run = until(60, look)
    assert run["status"] == "succeeded", run["attempts"]
    return run


def text(run: Json) -> str:
    date = (run["nominal_at"] or run["scheduled_at"])[:10]
    return f"{NAME} for {date}, attempt {len(run['attempts'])}, {{{{as it is}}}}"


def facts(run: Json, *, attempt: bool = True) -> Json:
    nominal_at = run["nominal_at"] or run["scheduled_at"]
    found: Json = {"scheduled_at": run["scheduled_at"], "nominal_at": nominal_at, "task_id": run["task_id"], "task_name": NAME}
    return found | ({"attempt": len(run["attempts"])} if attempt else {})


def of_queue(system: System, run: Json) -> tuple[Json, str]:
    message = arrived(system, "queue", run["id"])
    return json.loads(attributes(message)["Punctual-Context"]), message["Body"]


def of_topic(system: System, run: Json) -> tuple[Json, str]:
    message = arrived(system, "notifications", run["id"])
    return json.loads(attributes(message)["Punctual-Context"]), message["Body"]


def of_function(system: System, run: Json) -> tuple[Json, str]:
    event = json.loads(arrived(system, "calls", run["id"])["Body"])
    return event["punctual"], event["text"]


def of_bus(system: System, run: Json) -> tuple[Json, str]:
    detail = json.loads(arrived(system, "events", run["id"])["Body"])["detail"]
    return detail["punctual"], detail["text"]


CASES: list[tuple[str, Json, Callable[[System, Json], tuple[Json, str]]]] = [
    ("sqs", {"queue": ARN["sqs"], "body": TEXT}, of_queue),
    ("sns", {"topic": ARN["sns"], "message": TEXT}, of_topic),
    ("lambda", {"function": ARN["lambda"], "event": {"text": TEXT}}, of_function),
    ("eventbridge", {"bus": ARN["events"], "source": "sample.shop", "detail_type": "Due", "detail": {"text": TEXT}}, of_bus),
]


@pytest.mark.parametrize(("kind", "payload", "received"), CASES, ids=[case[0] for case in CASES])
def test_a_message_carries_the_context(
    system: System, client: Punctual, kind: str, payload: Json, received: Callable[[System, Json], tuple[Json, str]]
) -> None:
    run = ran(client, kind, payload)
    got, said = received(system, run)
    show(kind, got, said)
    assert got == {"job_id": run["id"], "idempotency_key": run["id"]} | facts(run)
    assert said == text(run)


def test_an_execution_gets_the_context_but_not_the_attempt(system: System, client: Punctual) -> None:
    said = TEXT.replace("{{attempt}}", "1")
    run = ran(client, "stepfunctions", {"state_machine": ARN["states"], "input": {"text": said}})
    given = json.loads(system.aws("stepfunctions").describe_execution(executionArn=run["output"])["input"])
    show("stepfunctions", given)
    assert given["punctual"] == {"job_id": run["id"], "idempotency_key": run["id"]} | facts(run, attempt=False)
    assert given["text"] == text(run)


def test_a_url_is_called_with_the_context_as_headers_in_each_attempt(system: System, client: Punctual) -> None:
    payload = {"method": "POST", "url": system.receiver.url("/fail-once/context?of={{job.id}}&by={{task.name}}"), "body": {"text": TEXT}}
    run = ran(client, "http", payload, retry={"base_seconds": 0.1})
    calls = [call for call in system.receiver.calls() if run["id"] in call.path]
    assert [call.headers["Punctual-Attempt"] for call in calls] == ["1", "2"] and len(run["attempts"]) == 2
    got = {name: calls[-1].headers[header] for name, header in HEADERS.items() if header in calls[-1].headers}
    show("http", got, calls[-1].path, calls[-1].body.decode())
    assert got == {name: str(value) for name, value in facts(run).items()} | {"task_name": "Gr%C3%BC%C3%9Fe"}
    assert calls[-1].path.endswith(f"?of={run['id']}&by=Gr%C3%BC%C3%9Fe") and json.loads(calls[-1].body) == {"text": text(run)}


def test_an_e_mail_is_written_with_the_values_of_its_run(system: System, client: Punctual) -> None:
    """The local AWS does not keep the headers of an e-mail: `tests/unit/test_context.py` checks those."""
    run = ran(client, "email", {"to": ["ann@example.com"], "subject": "{{task.name}}", "text": TEXT})
    with urllib.request.urlopen(f"{system.stack.aws.endpoint}/_ministack/ses/messages") as answer:
        stored = [mail for account in json.load(answer)["messages"].values() for mail in account]
    (mail,) = [mail for mail in stored if mail["MessageId"] == run["output"]]
    show("email", mail["Subject"], mail["BodyText"])
    assert (mail["Subject"], mail["BodyText"]) == (NAME, text(run))


def test_the_log_line_of_a_run_has_the_context(system: System, client: Punctual) -> None:
    run = ran(client, "log", {"message": TEXT})
    assert run["output"] == text(run)
    logs = system.aws("logs")
    groups = [group["logGroupName"] for page in logs.get_paginator("describe_log_groups").paginate() for group in page["logGroups"]]

    def look() -> Json | None:
        events = logs.get_paginator("filter_log_events")
        lines = (event["message"] for group in groups for page in events.paginate(logGroupName=group) for event in page["events"])
        return next((json.loads(line) for line in lines if run["id"] in line and "as it is" in line), None)

    line = until(60, look)
    show("log", line)
    assert {name: line[name] for name in facts(run)} == facts(run)
    assert (line["job_id"], line["message"]) == (run["id"], text(run))
