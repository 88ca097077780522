"""Models validate requests and write answers without the composition root; the names in a request are checked against a given stage."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from lambdas.rest.dead_letter_models import FilterShape
from lambdas.rest.job_answers import JobShape
from lambdas.rest.models import JobRequest
from lambdas.rest.resolution import Stage
from lambdas.rest.target_models import TargetRequest
from lambdas.rest.task_models import TaskRequest
from scheduler.model.instants import parse
from scheduler.model.job import Job
from scheduler.model.named_target import NamedTarget
from scheduler.model.operation import Filter
from scheduler.model.spec import JobSpec
from scheduler.targets.base import Reach

ROOT = Path(__file__).parents[2]
NOW = parse("2026-11-20T10:00:00.500Z")
NAMED = {
    "reports": NamedTarget("reports", "log", NOW, NOW, "ada", "ada"),
    "closed": NamedTarget("closed", "log", NOW, NOW, "ada", "ada", enabled=False),
}
OPEN = Stage(NAMED.get, Reach(("*",), "sender@example.com"), raw_http=True, events=True)
CLOSED = Stage(NAMED.get, Reach(), raw_http=False, events=False)
MAIL = {"emails": ["ann@example.com"]}
HOOK = {"webhooks": [{"url": "https://example.com/hook", "signing_secret": "hook"}]}


def fields(error: ValidationError) -> list[str]:
    return [".".join(map(str, each["loc"])) for each in error.errors()]


@pytest.mark.long
def test_a_request_is_validated_without_the_composition_root() -> None:
    code = """
import os
os.environ.clear()
import sys
from lambdas.rest import callback_models, dead_letter_models, form_models, models, notification_models
from lambdas.rest import summary_models, system_models, target_models, task_models, user_models
job = models.JobRequest.model_validate({"type": "http", "payload": {"method": "GET", "url": "https://example.com"}}).new_job("ann", 0)
assert job.spec.type == "http", job
print(*(module for module in sys.modules if module.startswith(("lambdas._", "boto"))))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= {"botocore"}, "the bare package: Powertools writes its name into it"


@pytest.mark.parametrize(
    ("body", "broken"),
    [
        ({"message": "m"}, []),
        ({"target": "reports", "payload": {"message": "m"}}, []),
        ({"target": "missing"}, ["target"]),
        ({"target": "closed", "payload": {"message": "m"}}, ["target"]),
        ({"target": "reports", "payload": {"other": 1}}, ["payload.message", "payload.other"]),
        ({"type": "http", "payload": {"method": "GET", "url": "https://example.com"}}, ["type"]),
        ({"type": "sqs", "payload": {"queue": "arn:aws:sqs:us-east-1:123456789012:q", "body": "b"}}, ["payload.queue"]),
        ({"message": "m", "callback": {}}, ["callback"]),
        ({"message": "m", "notifications": MAIL | HOOK}, ["notifications.emails.0", "notifications.webhooks.0.url"]),
    ],
)
def test_the_names_in_a_task_are_checked_against_its_stage(body: dict[str, Any], broken: list[str]) -> None:
    request = TaskRequest.model_validate({"name": "n"} | body)
    if broken:
        with pytest.raises(ValidationError) as refused:
            request.resolve(CLOSED)
        assert sorted(fields(refused.value)) == broken
    else:
        request.resolve(CLOSED)


def test_an_open_stage_accepts_mail_and_calls() -> None:
    TaskRequest.model_validate({"name": "n", "message": "m", "notifications": MAIL | HOOK}).resolve(OPEN)
    JobRequest.model_validate({"type": "http", "payload": {"method": "GET", "url": "https://example.com"}}).resolve(OPEN)


def test_a_job_for_a_target_has_the_targets_kind() -> None:
    request = JobRequest.model_validate({"target": "reports", "payload": {"message": "m"}})
    request.resolve(OPEN)
    assert request.new_job("ann", NOW).spec.type == "log"


def test_the_defaults_of_a_target_must_be_within_reach() -> None:
    queue = {"queue": "arn:aws:sqs:us-east-1:123456789012:q"}
    request = TargetRequest.model_validate({"name": "q", "kind": "sqs", "defaults": queue})
    with pytest.raises(ValidationError) as refused:
        request.resolve(CLOSED)
    assert fields(refused.value) == ["defaults.queue"]


def test_an_answer_has_the_fields_of_its_model_in_their_order() -> None:
    shown = JobShape.of(Job("ann", "j", JobSpec("log", {"message": "m"}), NOW, NOW, NOW, "2026-11-20T10:00#3"), NOW)
    assert list(shown) == list(JobShape.model_fields)
    assert (shown["shard_id"], shown["created_at"], shown["completed_at"]) == (3, "2026-11-20T10:00:00.500Z", None)
    JobShape.model_validate_json(json.dumps(shown))


def test_a_field_is_answered_under_its_alias() -> None:
    assert FilterShape.from_record(Filter(since=NOW)) == {
        "task": None,
        "type": None,
        "fingerprint": None,
        "from": "2026-11-20T10:00:00.500Z",
        "to": None,
    }
