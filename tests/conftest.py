"""Fixtures of all tests: a settable clock, records with defaults, and an environment without AWS."""

import gc
import itertools
import logging
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from scheduler.model import ids, slots
from scheduler.model.instants import parse
from scheduler.model.job import Delivery, DueEntry, Failure, FailureKind, Finished, Job, JobKey, Message, Result, TaskHead
from scheduler.model.spec import JobSpec

NOW = parse("2026-11-20T10:00:00Z")
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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only `make soak` runs, unless it is asked for by its mark or its name."""
    if "soak" in config.option.markexpr or any("::" in each for each in config.args):
        return
    long = [item for item in items if item.get_closest_marker("soak")]
    config.hook.pytest_deselected(items=long)
    items[:] = [item for item in items if item not in long]


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


class FixedClock:
    """The port `Clock`, standing still until it is moved; a sleep moves it."""

    def __init__(self, at: int = NOW) -> None:
        self.at = at
        self.frozen_ms = 0
        self.slept: list[int] = []

    def now(self) -> int:
        return self.at

    def monotonic(self) -> int:
        return self.at - self.frozen_ms

    def advance(self, ms: int) -> None:
        self.at += ms

    def freeze(self, ms: int) -> None:
        """The machine is frozen, and its monotonic clock stands still meanwhile."""
        self.at += ms
        self.frozen_ms += ms

    def sleep_until(self, at: int) -> None:
        self.slept.append(at)
        self.at = max(self.at, at)


class ScriptedPool:
    """The port `Pool`: every job takes `takes` ms and ends as `result` says. `starts` has the started jobs and their starts.

    A cancelled job ends `stops_after` ms later as a failure; None: it ignores the request.
    """

    def __init__(self, clock: FixedClock, *, takes: int = 10, result: Result | None = None, stops_after: int | None = 50) -> None:
        self.clock, self.takes, self.result, self.stops_after = clock, takes, result or Result("done"), stops_after
        self.starts: list[tuple[Job, int]] = []
        self.cancels: list[tuple[JobKey, int]] = []
        self.kills: list[tuple[JobKey, int]] = []
        self.stopped = False
        self._running: list[Finished] = []

    def has_room(self, job: Job) -> bool:
        return True

    def start(self, job: Job, not_after: int | None = None, task: TaskHead | None = None) -> None:
        now = self.clock.now()
        self.starts.append((job, now))
        self._running.append(Finished(job, now, now + self.takes, self.result))

    def wait(self, until: int) -> list[Finished]:
        ends = min((item.ended_at for item in self._running), default=until)
        self.clock.sleep_until(min(ends, until))
        done = [item for item in self._running if item.ended_at <= self.clock.now()]
        self._running = [item for item in self._running if item not in done]
        return done

    def cancel(self, job: Job) -> None:
        now = self.clock.now()
        self.cancels.append((job.key, now))
        if self.stops_after is not None:
            stopped = Result(failure=Failure(FailureKind.TIMEOUT, "stopped"))
            ends = now + self.stops_after
            self._running = [
                item._replace(ended_at=ends, result=stopped) if item.job.key == job.key and item.ended_at > ends else item
                for item in self._running
            ]

    def kill(self, job: Job) -> None:
        self.kills.append((job.key, self.clock.now()))
        self._running = [item for item in self._running if item.job.key != job.key]

    def stop(self) -> None:
        self.stopped = True
        self._running.clear()


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
