"""Frozen records and copies of them with other values."""

import dataclasses
from dataclasses import replace
from typing import Any

import pytest

from scheduler.model import job as records
from scheduler.model import spec
from scheduler.model.job import Claim, Job, JobKey, Lane, changed, new_job
from tests.conftest import NOW, a_job


@pytest.mark.parametrize("copy", [replace, changed])
def test_a_copy_leaves_the_record_alone_and_shares_its_spec(copy: Any) -> None:
    job = a_job()
    copied = copy(job, fence=7, claim=Claim("m", "n", NOW, True), slot=None)
    assert (copied.fence, job.fence, job.claim) == (7, 1, None) and copied.spec is job.spec


@pytest.mark.parametrize("copy", [replace, changed])
def test_a_field_that_there_is_not_is_refused(copy: Any) -> None:
    with pytest.raises(TypeError, match="nonsense"):
        copy(a_job(), nonsense=1)


@pytest.mark.parametrize("copy", [replace, changed])
def test_a_copy_is_as_frozen_as_the_record(copy: Any) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        copy(a_job(), fence=2).fence = 3


def test_both_copies_are_equal() -> None:
    job = a_job()
    copied = changed(job, fence=7, slot=None)
    assert copied == replace(job, fence=7, slot=None) and copied.key == job.key


def test_a_new_job_equals_one_made_by_its_class() -> None:
    fields: dict[str, Any] = {"owner": "ada", "id": "1", "spec": spec.JobSpec("log", {}), "scheduled_at": NOW, "due_at": NOW + 1}
    fields |= {"created_at": NOW + 2, "slot": "2026-11-20T10:01#00", "lane": Lane.RECURRING, "start_by": NOW + 3}
    made = new_job(**fields)
    assert made == Job(**fields) and made.key == JobKey("ada", "1") and vars(made) == vars(Job(**fields))


def test_a_new_job_has_no_unknown_field() -> None:
    job = a_job()
    times = {"scheduled_at": NOW, "due_at": NOW, "created_at": NOW}
    with pytest.raises(TypeError, match="nonsense"):
        new_job(owner=job.owner, id=job.id, spec=job.spec, slot="slot", **times, nonsense=1)


@pytest.mark.parametrize("kind", [records.Attempt, records.Claim, spec.JobSpec])
def test_records_of_hot_paths_have_slots(kind: type) -> None:
    assert "__dict__" not in dir(kind)


def test_the_key_follows_the_fields_it_is_made_of() -> None:
    copied = replace(a_job(), id="another")
    assert copied.key == JobKey(copied.owner, "another")
