"""Fingerprints: equal for errors of one kind with different details."""

import pytest

from scheduler.model import fingerprint
from scheduler.model.fingerprint import error, normal, of, of_job
from scheduler.model.job import Attempt, Failure, FailureKind, Outcome
from tests.conftest import NOW, a_job


def alike(one: str, other: str, kind: FailureKind = FailureKind.RETRYABLE) -> bool:
    return of(Failure(kind, one)) == of(Failure(kind, other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("order 17 is gone", "order 18 is gone"),
        ("no row 6f1c8a52-8f0d-4a0c-9d53-0a6f4b7de011", "no row 01b7be33-31f1-4d25-a3a7-5f0b2a4f7a9c"),
        ("job 01JD4Q8XKZ38W2M5R7T9V1C4FH", "job 01JD4Q8XKZ38W2M5R7T9V1C4FZ"),
        ("refused at 2026-11-20T10:00:00.250+01:00 by it", "refused at 2027-01-02T23:59:59Z by it"),
        ("at 10:00:00 sharp", "at 9:07 sharp"),
        ("cannot reach 10.0.0.1:443", "cannot reach 192.168.7.12:8080"),
        ("cannot reach fe80::1", "cannot reach 2001:db8::ff00:42"),
        ("<Thing object at 0x7f21d4>", "<Thing object at 0x55e0aa10>"),
        ("no mailbox for ann@example.com here", "no mailbox for bob@example.org here"),
        ("after 3.5 s", "after -12 s"),
        ("GET /orders/7/expire", "GET /orders/12345/expire"),
        ("line one\n  line   two", "line one line two"),
        ("HTTP 5031", "HTTP 9999"),
    ],
)
def test_errors_that_differ_only_in_details_have_one_fingerprint(one: str, other: str) -> None:
    assert alike(one, other), (normal(one), normal(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("HTTP 404", "HTTP 500"),
        ("HTTP 404: order 7", "HTTP 410: order 7"),
        ("KeyError: 'name'", "KeyError: 'address'"),
        ("connection refused", "connection reset"),
        ("order 17 is gone", "orders 17 is gone"),
        ("", "x"),
    ],
)
def test_different_errors_have_different_fingerprints(one: str, other: str) -> None:
    assert not alike(one, other)


def test_the_failure_kind_is_part_of_the_fingerprint() -> None:
    assert of(Failure(FailureKind.RETRYABLE, "no")) != of(Failure(FailureKind.PERMANENT, "no"))


def test_a_fingerprint_has_twelve_hex_digits_and_never_changes() -> None:
    """Fingerprints are stored: another format would split every group."""
    assert of(Failure(FailureKind.PERMANENT, "HTTP 404")) == "2c82480b15e9"
    assert fingerprint.is_fingerprint(of(Failure(FailureKind.PERMANENT, "\ud800 broken text")))
    assert not any(map(fingerprint.is_fingerprint, ("", "0123456789a", "0123456789abc", "0123456789aB", "0123456789ab\n")))


def test_the_error_of_a_job_is_the_failure_of_its_last_attempt() -> None:
    first = Attempt(1, NOW, NOW, NOW + 5, Outcome.FAILED, Failure(FailureKind.RETRYABLE, "HTTP 500"))
    last = Attempt(2, NOW, NOW, NOW + 9, Outcome.FAILED, Failure(FailureKind.PERMANENT, "HTTP 404"))
    job = a_job(slot=None, failed_at=NOW, fence=2, attempts=(first, last), reason="the error is permanent")
    assert error(job) == last.failure and of_job(job) == of(Failure(FailureKind.PERMANENT, "HTTP 404"))


def test_the_error_of_a_job_that_could_not_start_is_its_reason() -> None:
    attempt = Attempt(1, NOW, NOW, NOW + 5, Outcome.FAILED, Failure(FailureKind.RETRYABLE, "HTTP 500"))
    job = a_job(slot=None, failed_at=NOW, fence=2, attempts=(attempt,), reason="it could not be started")
    assert error(job) == Failure(FailureKind.BURIED, "it could not be started")
