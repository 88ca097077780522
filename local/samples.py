"""The sample jobs and tasks that `make run` posts: one of each thing worth seeing."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from local.client import Client, Json
from local.receiver import Receiver

SAMPLE = "sample"  # the tag by which the next `make run` knows the tasks of this one
AN_HOUR = timedelta(hours=1)  # the sample tasks end: nobody wants them to go on for ever


@dataclass(frozen=True)
class Sample:
    """One job to post; `at` None means now."""

    type: str
    payload: dict[str, Any]
    at: datetime | None = None
    attempts: int = 1  # how many it takes to succeed
    path: str | None = None  # where the receiver sees it
    options: dict[str, Any] = field(default_factory=dict)

    def post(self, client: Client) -> Json:
        return client.post_job(self.type, self.payload, execute_at=rfc3339(self.at) if self.at else None, **self.options)


@dataclass(frozen=True)
class SampleTask:
    """One task to create."""

    name: str
    type: str
    payload: dict[str, Any]
    schedule: dict[str, Any]

    def create(self, client: Client) -> Json:
        return client.create_task(self.name, self.type, self.payload, self.schedule, tags=[SAMPLE])


def rfc3339(instant: datetime) -> str:
    """An instant as the API reads it, to the millisecond.

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
    """What a first look should show. Names are unique per run: the receiver tells them apart."""
    run = now.strftime("%H%M%S")
    yield log("now")
    yield log("in ten seconds", now + timedelta(seconds=10))
    yield from (log(f"one of ten at one instant: {n}", now + timedelta(seconds=15)) for n in range(1, 11))
    yield call(receiver, f"/ok/{run}", now + timedelta(seconds=5))
    yield call(receiver, f"/fail-once/{run}", now + timedelta(seconds=8), attempts=2)


def sample_tasks(now: datetime) -> Iterator[SampleTask]:
    """A cron and a rate. They log: the receiver would be gone for what an outage leaves to the next `make run`."""
    end = rfc3339(now + AN_HOUR)
    for name, schedule in (("minutely", {"cron": "*/1 * * * *"}), ("15 seconds", {"rate": "15 seconds"})):
        yield SampleTask(name, "log", {"message": name}, {**schedule, "end": end})


def clear_tasks(client: Client) -> None:
    """Delete the sample tasks of an earlier run; what they ran stays in the history."""
    for task in list(client.tasks(tag=SAMPLE)):
        client.delete_task(task["id"])
