from dataclasses import FrozenInstanceError

import pytest

from scheduler.model.job import Failure, FailureKind, Lane, Unit, UnitKey
from tests.conftest import a_job


def test_records_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        a_job().fence = 2  # type: ignore[misc]


def test_a_unit_lists_its_slots() -> None:
    assert Unit(UnitKey("2026-11-20T10:01", 1), 8, 10).slots == ["2026-11-20T10:01#08", "2026-11-20T10:01#09", "2026-11-20T10:01#10"]


def test_a_log_line_identifies_the_job_without_its_content() -> None:
    job = a_job(payload={"message": "secret"}, lane=Lane.RETRY)
    context = job.log_context()
    assert context == {"job_id": job.id, "user_id": "ann", "fence": 1, "lane": "retry", "type": "log"}


@pytest.mark.parametrize("kind", FailureKind)
def test_a_failure_takes_its_kind_as_a_text_too(kind: FailureKind) -> None:
    assert Failure(kind.value, "why").kind is kind  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["Permanent", "", None, 5])
def test_a_failure_of_an_unknown_kind_is_refused(kind: object) -> None:
    listed = "retryable, permanent, throttled, timeout, crashed, cancelled, buried, refused"
    with pytest.raises(ValueError, match=f"^{kind!r} is no kind of a failure; use one of {listed}$"):
        Failure(kind, "why")  # type: ignore[arg-type]
