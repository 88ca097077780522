"""Copies of frozen records with other values."""

import dataclasses

import pytest

from scheduler.model.job import Claim, JobKey
from scheduler.model.records import differences, quick, replace
from tests.conftest import NOW, a_job


def test_a_copy_equals_that_of_the_standard_library() -> None:
    job = a_job()
    changes = {"fence": 7, "claim": Claim("m", "n", NOW, True), "slot": None}
    assert replace(job, **changes) == dataclasses.replace(job, **changes)
    assert (job.fence, job.claim) == (1, None)
    assert replace(job) == job and replace(job).spec is job.spec


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(KeyError):
        replace(a_job(), nonsense=1)


def test_a_copy_is_as_frozen_as_the_record() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        replace(a_job(), fence=2).fence = 3  # type: ignore[misc]


def test_the_differences_turn_one_record_into_the_other() -> None:
    one, other = a_job(), a_job(fence=3, reason="late")
    assert replace(one, **differences(one, other)) == other
    assert differences(one, replace(one)) == {}


@pytest.mark.parametrize("kind", ["Job", "Attempt", "Claim"])
def test_all_records_of_hot_paths_can_be_copied(kind: str) -> None:
    from scheduler.model import job as records_of

    assert "__dict__" not in dir(getattr(records_of, kind))


def test_derived_fields_are_computed_again() -> None:
    copied = replace(a_job(), id="another")
    assert copied.key == JobKey(copied.owner, "another")


def test_a_quick_record_equals_that_of_the_standard_library() -> None:
    @dataclasses.dataclass(frozen=True, slots=True)
    class Usual:
        first: int
        second: str = "two"

    made, quickly = Usual(1), quick(Usual)(1)
    assert (made, repr(made), hash(made)) == (quickly, repr(quickly), hash(quickly)) and quickly != Usual(1, second="three")
    for bad in ((), (1, "two", 3)):
        with pytest.raises(TypeError):
            Usual(*bad)
    with pytest.raises(dataclasses.FrozenInstanceError):
        quickly.first = 2  # type: ignore[misc]
