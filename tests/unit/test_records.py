"""Copies of frozen records with other values."""

import dataclasses

import pytest

from scheduler.model.job import Claim, JobKey
from scheduler.model.records import differences, quick, replace
from tests.conftest import NOW, a_job


def test_a_copy_is_as_that_of_the_standard_library_and_leaves_the_record_alone() -> None:
    job = a_job()
    changes = {"fence": 7, "claim": Claim("m", "n", NOW, True), "slot": None}
    assert replace(job, **changes) == dataclasses.replace(job, **changes)
    assert (job.fence, job.claim) == (1, None)
    assert replace(job) == job and replace(job).spec is job.spec


def test_a_field_that_there_is_not_is_refused() -> None:
    with pytest.raises(KeyError):
        replace(a_job(), nonsense=1)


def test_a_copy_is_as_frozen_as_the_record() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        replace(a_job(), fence=2).fence = 3  # type: ignore[misc]


def test_the_differences_make_one_record_of_the_other() -> None:
    one, other = a_job(), a_job(fence=3, reason="late")
    assert replace(one, **differences(one, other)) == other
    assert differences(one, replace(one)) == {}


@pytest.mark.parametrize("kind", ["Job", "Attempt", "Claim"])
def test_records_of_hot_paths_can_be_copied_so(kind: str) -> None:
    from scheduler.model import job as records_of

    assert "__dict__" not in dir(getattr(records_of, kind))


def test_what_is_made_of_other_fields_is_made_anew() -> None:
    copied = replace(a_job(), id="another")
    assert copied.key == JobKey(copied.owner, "another")


def test_a_record_made_quickly_is_as_the_standard_library_makes_it() -> None:
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
