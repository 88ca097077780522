"""The sample jobs and tasks that `make run` posts."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from punctual import Punctual
from punctual.fields import ScheduleFields
from punctual.records import Json

from local.receiver import Receiver

SAMPLE = "sample"  # the tag of sample tasks: the next `make run` deletes them by it
AN_HOUR = timedelta(hours=1)  # the sample tasks end after this long, so that they do not run unnoticed


@dataclass(frozen=True)
class Sample:
    """A job to post; without `at` it is due now."""

    type: str
    payload: dict[str, Any]
    at: datetime | None = None
    attempts: int = 1  # attempts until it succeeds
    path: str | None = None  # that it calls at the receiver
    options: dict[str, Any] = field(default_factory=dict)

    def post(self, client: Punctual) -> Json:
        return client.jobs.create(self.type, self.payload, execute_at=rfc3339(self.at) if self.at else None, **self.options).raw


@dataclass(frozen=True)
class SampleTask:
    """A task to create."""

    name: str
    type: str
    payload: dict[str, Any]
    schedule: dict[str, Any]

    def create(self, client: Punctual) -> Json:
        return client.tasks.create(self.name, self.type, self.payload, schedule=cast(ScheduleFields, self.schedule), tags=[SAMPLE]).raw


def rfc3339(instant: datetime) -> str:
    """Return the instant in the format of the API, to the millisecond.

    >>> rfc3339(datetime(2026, 11, 20, 10, 0, 0, 250_000, tzinfo=UTC))
    '2026-11-20T10:00:00.250Z'
    """
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def log(message: str, at: datetime | None = None, **payload: Any) -> Sample:
    return Sample("log", {"message": message, **payload}, at)


def call(receiver: Receiver, path: str, at: datetime | None = None, *, attempts: int = 1) -> Sample:
    payload = {"method": "POST", "url": receiver.url(path), "body": f"hello from {path}"}
    return Sample("http", payload, at, attempts, path)


def samples(receiver: Receiver, now: datetime) -> Iterator[Sample]:
    """Yield the jobs that `make run` shows. Their paths are unique per run: the receiver counts calls by path."""
    run = now.strftime("%H%M%S")
    yield log("now")
    yield log("in ten seconds", now + timedelta(seconds=10))
    yield from (log(f"one of ten at one instant: {n}", now + timedelta(seconds=15)) for n in range(1, 11))
    yield call(receiver, f"/ok/{run}", now + timedelta(seconds=5))
    yield call(receiver, f"/fail-once/{run}", now + timedelta(seconds=8), attempts=2)


def sample_tasks(now: datetime) -> Iterator[SampleTask]:
    """Yield a cron task and a rate task. They use `log`: a run that is left to the next `make run` would not reach this run's receiver."""
    end = rfc3339(now + AN_HOUR)
    for name, schedule in (("minutely", {"cron": "*/1 * * * *"}), ("15 seconds", {"rate": "15 seconds"})):
        yield SampleTask(name, "log", {"message": name}, {**schedule, "end": end})


def clear_tasks(client: Punctual) -> None:
    """Delete the sample tasks of an earlier run; their past runs stay in the history."""
    for task in list(client.tasks.list(tag=SAMPLE)):
        client.tasks.delete(task.id)
