"""The streams start project with jobs and tasks, and with nothing else."""

import itertools
import json
from dataclasses import replace
from typing import Any

import pytest

from bench.metered import matches
from infra import project
from infra.settings import DEV
from scheduler.model import lifecycle
from scheduler.model.job import CANARY_OWNER, Claim, Finished, Job, Result, TaskKey, UnitKey
from scheduler.model.rules import Rules
from scheduler.model.settlement import settle
from scheduler.storage.aws import items, keys, task_items
from scheduler.storage.aws.items import Item
from tests.conftest import NOW, a_job
from tests.contract import make
from tests.infra.conftest import Synthesized

JOB = a_job(due_at=NOW)
CANARY = a_job(due_at=NOW, owner=CANARY_OWNER)
TASK = task_items.encode(make.task())


def claimed(job: Job) -> Job:
    return lifecycle.claim(job, claim=Claim("m1", "n1", NOW, True))


def ended(job: Job) -> Job:
    return settle(Finished(claimed(job), NOW, NOW + 1, Result(output="done")), NOW + 2, Rules(shards=1))


def record(before: Item | None, after: Item | None) -> dict[str, Any]:
    known: Item = after or before or {}
    images = {name: image for name, image in (("OldImage", before), ("NewImage", after)) if image is not None}
    return {"eventName": "any", "dynamodb": {"Keys": {name: known[name] for name in ("pk", "sk")}, **images}}


def starts(stack: Synthesized, stream: str, before: Item | None, after: Item | None) -> bool:
    """Whether the record starts the function, by the filters in the template."""
    (mapping,) = [each for id, each in stack.all("Lambda::EventSourceMapping").items() if id.startswith(f"Project{stream}")]
    patterns = [json.loads(each["Pattern"]) for each in mapping["FilterCriteria"]["Filters"]]
    assert 0 < len(patterns) <= 5, "AWS accepts five, unless a quota was raised"
    return any(matches(pattern, record(before, after)) for pattern in patterns)


@pytest.mark.parametrize(
    ("before", "after"),
    [(None, JOB), (JOB, claimed(JOB)), (claimed(JOB), ended(JOB)), (JOB, replace(JOB, due_at=NOW + 1)), (ended(JOB), None)],
)
def test_every_change_of_a_job_starts_project(any_stage: Synthesized, before: Job | None, after: Job | None) -> None:
    assert starts(any_stage, "Jobs", before and items.encode(before), after and items.encode(after))


@pytest.mark.parametrize(("before", "after"), [(None, TASK), (TASK, TASK), (TASK, None)])
def test_every_change_of_a_task_starts_project(any_stage: Synthesized, before: Item | None, after: Item | None) -> None:
    assert starts(any_stage, "Tasks", before, after)


def test_the_filters_name_all_partitions_of_the_schedulers_own_jobs() -> None:
    assert keys.partitions(CANARY_OWNER) == project._CANARIES


def test_of_the_schedulers_own_job_only_the_end_starts_project(any_stage: Synthesized) -> None:
    life = [None, CANARY, claimed(CANARY), ended(CANARY), None]
    changes = [(before and items.encode(before), after and items.encode(after)) for before, after in itertools.pairwise(life)]
    assert [starts(any_stage, "Jobs", *change) for change in changes] == [False, False, True, False]


@pytest.mark.parametrize(
    ("stream", "item"),
    [
        ("Jobs", keys.canary(UnitKey("2026-11-20T10:01", 0)) | {"slot": {"S": "2026-11-20T10:01#00"}, "due_at": {"N": "0"}}),
        ("Jobs", keys.MARK | {"number": {"N": "7"}}),
        ("Tasks", keys.holder(TaskKey("ann", "t1")) | {"job": {"S": "j1"}, "version": {"N": "1"}}),
        ("Tasks", keys.usage("crm") | {"tokens": {"N": "1"}}),
        ("Tasks", keys.target("crm") | {"type": {"S": "http"}}),
    ],
)
def test_items_beside_jobs_and_tasks_start_nothing(any_stage: Synthesized, stream: str, item: Item) -> None:
    assert not any(starts(any_stage, stream, *change) for change in ((None, item), (item, item), (item, None)))


def test_changes_are_collected_for_half_a_minute(on_aws: Synthesized) -> None:
    windows = [each.get("MaximumBatchingWindowInSeconds") for each in on_aws.all("Lambda::EventSourceMapping").values()]
    assert windows.count(DEV.batching_s) == 2 and DEV.batching_s == 30
