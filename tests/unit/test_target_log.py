"""The `log` target: it writes, waits until its deadline at most, and returns its message."""

import logging
import threading
import time

import pytest

from scheduler.model.job import FailureKind
from scheduler.targets import registry
from scheduler.targets.base import Context
from scheduler.targets.job_context import JobContext


def context(seconds: float = 60.0, *, stop: threading.Event | None = None) -> Context:
    return Context(JobContext("job"), deadline=time.monotonic() + seconds, stop=stop or threading.Event())


def test_it_writes_the_message_with_the_job_id_and_returns_it(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        result = registry.load("log").run({"message": "50 % of 3"}, context())
    assert (result.output, result.failure) == ("50 % of 3", None)
    assert [(record.getMessage(), record.job_id) for record in caplog.records] == [("50 % of 3", "job")]  # type: ignore[attr-defined]


def test_only_waiting_needs_a_child_process() -> None:
    log = registry.load("log")
    assert log.is_work({"message": "m", "sleep_seconds": 0.1})
    assert not log.is_work({"message": "m", "sleep_seconds": 0}) and not log.is_work({"message": "m"})
    assert not registry.load("http").is_work({"url": "http://example.com"})


def test_a_log_job_waits_as_long_as_requested() -> None:
    began = time.monotonic()
    result = registry.load("log").run({"message": "slow", "sleep_seconds": 0.05}, context())
    assert result.output == "slow" and time.monotonic() - began >= 0.05


def test_a_sleep_ends_at_the_deadline_as_a_time_out() -> None:
    began = time.monotonic()
    result = registry.load("log").run({"message": "slow", "sleep_seconds": 600}, context(0.05))
    assert result.failure is not None and result.failure.kind is FailureKind.TIMEOUT
    assert 0.05 <= time.monotonic() - began < 60


def test_a_sleep_ends_at_a_stop() -> None:
    stop = threading.Event()
    threading.Timer(0.05, stop.set).start()
    result = registry.load("log").run({"message": "slow", "sleep_seconds": 600}, context(stop=stop))
    assert result.failure is not None and result.failure.message == "stopped while it waited"


def test_a_sleep_that_fits_exactly_before_the_deadline_succeeds() -> None:
    assert registry.load("log").run({"message": "m", "sleep_seconds": 0}, context(-1)).failure is not None
    assert registry.load("log").run({"message": "m", "sleep_seconds": 0}, context(60)).failure is None
