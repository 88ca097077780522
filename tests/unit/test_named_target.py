"""The payload with which a job of a named target runs."""

from dataclasses import replace
from typing import Any

from scheduler.model.job import Failure, FailureKind
from scheduler.model.named_target import NamedTarget
from scheduler.targets.job_context import JobContext
from scheduler.targets.named_target import default_locks, work_of
from tests.conftest import a_job

DEFAULTS: dict[str, Any] = {"url": "https://a", "bearer_secret": "key", "header_secrets": {"X-Api-Key": "json#a"}, "body": {"a": 1}}


TARGET = NamedTarget("reports", "http", 0, 0, "ada", "ada", defaults=DEFAULTS, locked=default_locks("http", DEFAULTS))


def work(target: NamedTarget | None, payload: dict[str, Any]) -> Any:
    return work_of(a_job(type="http", target="reports", payload=payload), target, JobContext("01JOB"))


def test_a_job_gives_what_is_open_and_locked_fields_are_the_targets() -> None:
    ran = work(TARGET, {"body": {"b": 2}, "url": "https://thief"})
    assert (ran["url"], ran["body"]) == ("https://a", {"b": 2})


def test_locked_secrets_belong_to_the_target_and_no_job_can_write_them() -> None:
    ran = work(TARGET, {})
    assert (ran["bearer_secret"], ran["header_secrets"]) == ("reports/key", {"X-Api-Key": "reports/json#a"})


def test_a_secret_that_is_not_locked_is_of_the_jobs_owner() -> None:
    open_one = replace(TARGET, locked=("url",))
    assert work(open_one, {})["bearer_secret"] == "key"
    assert work(open_one, {"bearer_secret": "mine"})["bearer_secret"] == "mine"


def test_a_target_that_is_gone_disabled_or_another_fails_the_job_for_good() -> None:
    for found in (None, replace(TARGET, enabled=False), replace(TARGET, kind="log")):
        failure = work(found, {})
        assert isinstance(failure, Failure) and failure.kind is FailureKind.PERMANENT
