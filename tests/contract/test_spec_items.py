"""The stored form of a job's spec. Items of this form are in the tables: a change that breaks one of these tests needs a new format."""

from dataclasses import replace
from typing import Any

import pytest

from scheduler.model.spec import REQUESTED_RETRIES, CallBack, Jitter, JobSpec, OnFailure, Ordering, RetryPolicy
from scheduler.storage.aws import items, spec_items, task_items
from tests.contract import make

FULL = JobSpec(
    type="http",
    payload={"url": "https://a", "größe": 1.5},
    target="reports",
    tags=("a", "b"),
    max_attempts=5,
    retry=RetryPolicy(2_000, 60_000, Jitter.EQUAL, 3_600_000, True),
    timeout_ms=20_000,
    callback=CallBack(60_000, 120_000),
    ordering=Ordering("k", OnFailure.PAUSE),
    events=True,
    placeholders=True,
)
STORED: list[tuple[JobSpec, dict[str, Any]]] = [
    (
        FULL,
        {
            "type": {"S": "http"},
            "payload": {"S": '{"url":"https://a","größe":1.5}'},
            "target": {"S": "reports"},
            "tags": {"S": '["a","b"]'},
            "max_attempts": {"N": "5"},
            "retry": {"S": '[2000,60000,"equal",3600000,true]'},
            "timeout_ms": {"N": "20000"},
            "callback": {"S": "[60000,120000]"},
            "ordering": {"S": '["k","pause"]'},
            "events": {"N": "1"},
            "placeholders": {"BOOL": True},
        },
    ),
    (JobSpec("log", {}), {"type": {"S": "log"}, "payload": {"S": "{}"}}),
    (JobSpec("log", {}, retry=REQUESTED_RETRIES), {"type": {"S": "log"}, "payload": {"S": "{}"}, "ot": {"BOOL": True}}),
    (JobSpec("log", {}, ordering=Ordering("k")), {"type": {"S": "log"}, "payload": {"S": "{}"}, "ordering": {"S": '["k"]'}}),
]


@pytest.mark.parametrize(("spec", "stored"), STORED)
def test_a_spec_is_stored_under_these_names_and_values(spec: JobSpec, stored: dict[str, Any]) -> None:
    assert (spec_items.encode(spec), spec_items.decode(stored)) == (stored, spec)


def test_only_a_job_with_events_has_eight_bytes_more() -> None:
    plain, chosen = (items.size(spec_items.encode(JobSpec("log", {}, events=events))) for events in (False, True))
    assert chosen - plain == 8, "as in docs/guides/events.md"


@pytest.mark.parametrize(("spec", "stored"), STORED)
def test_a_job_and_a_task_store_a_spec_alike(spec: JobSpec, stored: dict[str, Any]) -> None:
    job, task = replace(make.job(), spec=spec), replace(make.task(), spec=spec)
    assert stored.items() <= items.encode(job).items() and stored.items() <= task_items.encode(task).items()
    assert items.decode(items.encode(job)) == job and task_items.decode(task_items.encode(task)) == task
