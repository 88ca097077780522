"""Fixtures of all tests: a settable clock, records with defaults, and an environment without AWS."""

import gc
import itertools
import logging
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from lab.world.clock import NOW, FixedClock
from lab.world.pools import ScriptedPool
from scheduler.model import ids, slots
from scheduler.model.job import Delivery, DueEntry, Job, JobKey, Message
from scheduler.model.spec import JobSpec

__all__ = ["NOW", "FixedClock", "ScriptedPool"]
_numbers = itertools.count(1)
SPEC = {each.name for each in fields(JobSpec)}
HELLO = JobSpec("log", {"message": "hello"})

# A busy machine is no failure: examples are not timed. Nor is a test red for one and green for another: examples follow from the
# tests' own text. `make fuzz` draws others each time.
_untimed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None, print_blob=True)
settings.register_profile("repeatable", _untimed, derandomize=True)
settings.register_profile("exploring", _untimed, max_examples=1_000)
settings.load_profile("repeatable")


gc.set_threshold(100_000, 50, 100)  # thousands of tests and recorded examples are live: a usual search of them takes an eighth of the time


def only_of_soak() -> frozenset[str]:
    """The names in `tests/soak.txt`: of a test with its parameters, or without them for all."""
    lines = Path(__file__).with_name("soak.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))


@pytest.hookimpl(tryfirst=True)  # before the marks are compared with those that are asked for
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only `make soak` runs, unless it is asked for by its mark or its name."""
    listed = only_of_soak()
    for item in items:
        if item.nodeid in listed or item.nodeid.partition("[")[0] in listed:
            item.add_marker(pytest.mark.soak)
    if "soak" in config.option.markexpr or any("::" in each for each in config.args):
        return
    long = [item for item in items if item.get_closest_marker("soak")]
    config.hook.pytest_deselected(items=long)
    items[:] = [item for item in items if not item.get_closest_marker("soak")]


def pytest_collection_finish() -> None:
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def no_aws_but_fake_credentials() -> Iterator[None]:
    """Whatever this machine is signed in to, no test reaches it."""
    with pytest.MonkeyPatch.context() as environment:
        for name in [name for name in os.environ if name.startswith(("AWS_", "PUNCTUAL_"))]:
            environment.delenv(name)
        environment.setenv("AWS_ACCESS_KEY_ID", "test")
        environment.setenv("AWS_SECRET_ACCESS_KEY", "test")
        environment.setenv("AWS_DEFAULT_REGION", "us-east-1")
        environment.setenv("AWS_EC2_METADATA_DISABLED", "true")
        yield


@pytest.fixture(autouse=True)
def usual_turns() -> Iterator[None]:
    """An executor's pool changes how long the threads of its process take turns."""
    usual = sys.getswitchinterval()
    yield
    sys.setswitchinterval(usual)


@pytest.fixture
def caplog(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> pytest.LogCaptureFixture:
    """The log of the services, too, if a handler was imported before: they log through its logger, which the root does not see."""
    monkeypatch.setattr(logging.getLogger("scheduler"), "parent", logging.getLogger())
    return caplog


@pytest.fixture
def dense(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a dispatcher treat even a few jobs as many: each leaves just before it is due."""
    monkeypatch.setattr("scheduler.pipeline.dispatch.SPARSE", -1)


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


def with_spec(given: Mapping[str, Any], rest: JobSpec = HELLO) -> dict[str, Any]:
    """The `given` fields of a job, a task or a draft, those of its spec put into one; `rest` has what is not given of it."""
    spec = {name: value for name, value in given.items() if name in SPEC}
    return {name: value for name, value in given.items() if name not in SPEC} | {"spec": replace(rest, **spec)}


def a_job(**fields: Any) -> Job:
    """An open job, due at `NOW` unless told, in the slot of its minute."""
    due_at = fields.get("due_at", fields.get("scheduled_at", NOW))
    scheduled_at = fields.get("scheduled_at", due_at)
    chosen: dict[str, Any] = {
        "owner": "ann",
        "id": ids.new(scheduled_at, next(_numbers)),
        "scheduled_at": scheduled_at,
        "due_at": due_at,
        "created_at": NOW - 600_000,
        "slot": f"{slots.minute_of(due_at)}#00",
    }
    return Job(**with_spec(chosen | fields))


def entries_of(*jobs: Job) -> list[DueEntry]:
    """Return the entries of these jobs in the due index."""
    return [DueEntry.of(job.key, job.slot or "", job.due_at, job.lane, job.fence) for job in jobs]


def a_message(job: Job | None = None, **fields: Any) -> Message:
    """The message that a job's hand-over sends."""
    job = job or a_job()
    chosen: dict[str, Any] = {"key": job.key, "fence": job.fence, "lane": job.lane, "due_at": job.due_at, "sent_at": NOW - 400}
    return Message(**(chosen | fields))


def a_delivery(job: Job | None = None, **fields: Any) -> Delivery:
    """The message of `a_message`, as an executor receives it."""
    number = next(_numbers)
    chosen: dict[str, Any] = {"message": a_message(job), "message_id": f"d{number}", "receipt": f"d{number}/1", "receive_count": 1}
    return Delivery(**(chosen | fields))


def a_key(owner: str = "ann", at: int = NOW) -> JobKey:
    return JobKey(owner, ids.new(at, next(_numbers)))
