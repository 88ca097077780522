"""The calls of AWS for which a job for now waits, one after the other: its `POST`, and its start in an executor.

The real handlers run over tables and a queue in process (moto), with a clock that only this module moves on. Calls that a service makes
side by side are one round. Calls after the start of the job are not counted.
"""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from unittest.mock import patch

from moto import mock_aws

from bench.inprocess import ENVIRONMENT, OWNER, SETTINGS, _post
from lab.world.clock import FixedClock
from lab.world.events import Context
from lambdas._clock import SystemClock
from lambdas._settings import Settings
from scheduler.model import slots
from scheduler.model.account import COGNITO, Profile, Subject
from scheduler.model.job import Cursor, Lane
from scheduler.storage.aws import clients
from tests.contract import tables

Round = tuple[str, ...]  # the calls that are made side by side
TABLES = {
    "jobs_table": tables.JOBS,
    "tasks_table": tables.TASKS,
    "ledger_table": tables.LEDGER,
    "users_table": tables.USERS,
    "audit_table": tables.AUDIT,
    "counters_table": tables.COUNTERS,
}
MOMENT_MS, SECONDS_MS, MINUTE_MS = 100, 3_000, 60_000  # since the job before
PREPARED = 4  # jobs before: as many as make the API read which of them have ended


class Case(NamedTuple):
    """A job for now, this time after the job before; None: both functions are cold."""

    key: str
    what: str
    after_ms: int | None


class Rounds(NamedTuple):
    """The rounds of a request until its answer, and those of its executor until the start."""

    request: tuple[Round, ...]
    start: tuple[Round, ...]


CASES = (
    Case("moment", "a moment after another one", MOMENT_MS),
    Case("seconds", "three seconds after another one", SECONDS_MS),
    Case("minute", "a minute after another one", MINUTE_MS),
    Case("cold", "the first one of both functions", None),
)


@dataclass(slots=True)
class _Recorder:
    """The rounds since `rounds` was emptied."""

    rounds: list[list[str]] = field(default_factory=list)

    def called(self, model: Any, **_: Any) -> None:
        self.rounds.append([model.name])

    def side_by_side(self, *calls: Callable[[], Any]) -> list[Any]:
        """As `Ports.side_by_side`, one after the other: their first calls are one round, and so on."""
        before, answers, joined = self.rounds, list[Any](), list[list[str]]()
        for call in calls:
            self.rounds = []
            answers.append(call())
            joined += [[] for _ in range(len(self.rounds) - len(joined))]
            for number, names in enumerate(self.rounds):
                joined[number] += names
        self.rounds = [*before, *joined]
        return answers

    def taken(self) -> tuple[Round, ...]:
        taken, self.rounds = self.rounds, []
        return tuple(tuple(sorted(names)) for names in taken)


class Stage:
    """One process of each function. Their clock stands still, so that what is read again does not depend on the machine."""

    def __init__(self, settings: Settings) -> None:
        from lambdas import _runtime
        from lambdas._executor import Executor

        self.recorder, self.clock = _Recorder(), FixedClock(SystemClock().now())
        with patch.object(_runtime, "SystemClock", lambda: self.clock):
            self.api, ports_of_executor = _runtime.Api(settings), _runtime.AwsPorts(settings)
            self.executor = Executor(ports_of_executor, settings)
        for ports in (self.api, ports_of_executor):
            ports.side_by_side = self.recorder.side_by_side  # type: ignore[method-assign]
            for client in (ports._dynamodb, ports._sqs):
                client.meta.events.register("before-call", self.recorder.called)
        self._started: tuple[Round, ...] = ()
        self._number = 0

    def job(self, after_ms: int, keyed: bool) -> Rounds:
        """Post a job for now, and run it."""
        from lambdas import api, execute

        self.clock.at += after_ms
        self._number += 1
        event = _post({"message": "now"})
        event["headers"] |= {"idempotency-key": f"key {self._number}"} if keyed else {}
        self.recorder.taken()
        answer = api.handler(event, Context(f"request {self._number}"))
        if answer["statusCode"] != 201:
            raise RuntimeError(f"the request was refused: {answer}")
        request = self.recorder.taken()
        execute.handler({"Records": self._received()}, Context(f"batch {self._number}"))
        if self.clock.slept:
            raise RuntimeError("a job for now waits for nothing")
        return Rounds(request, self._started)

    def started(self) -> None:
        self._started = self.recorder.taken()

    def _received(self) -> list[dict[str, Any]]:
        url = self.api.settings.queues[Lane.ONE_TIME]
        received: Any = self.api._sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, AttributeNames=["All"])["Messages"]
        self.recorder.taken()
        names = {"messageId": "MessageId", "receiptHandle": "ReceiptHandle", "body": "Body", "attributes": "Attributes"}
        return [{name: message[its] for name, its in names.items()} for message in received]


def rounds(case: Case, *, keyed: bool = True) -> Rounds:
    """Return the rounds of a job that is created as the client does, or without an idempotency key."""
    with _stage() as stage:
        if case.after_ms is None:
            return stage.job(0, keyed)
        for _ in range(PREPARED):
            stage.job(MOMENT_MS, keyed)
        return stage.job(case.after_ms, keyed)


@contextmanager
def _stage() -> Iterator[Stage]:
    from lambdas import _pool, _runtime
    from lambdas._logger import logger

    with mock_aws(), patch.dict("os.environ", ENVIRONMENT), patch.object(logger._logger, "handlers", []), redirect_stdout(io.StringIO()):
        queue = clients.sqs(region_name="us-east-1").create_queue(QueueName="lane")["QueueUrl"]
        database = clients.dynamodb(region_name="us-east-1")
        for name, table in TABLES.items():
            database.create_table(TableName=getattr(SETTINGS, name), **table)
        stage = Stage(Settings(**vars(SETTINGS) | {"one_time_queue_url": queue, "topic_arn": ""}))
        stage.api.ledger.advance(None, Cursor(slots.minute_of(stage.clock.now()), SETTINGS.rules.shards, 1))
        person = Profile(OWNER, name="bench", account=OWNER)
        stage.api.owners.add_person(person, Subject(COGNITO, OWNER))
        start = _pool.ThreadPool.start

        def started(pool: _pool.ThreadPool, *job: Any) -> None:
            stage.started()
            start(pool, *job)

        with (
            patch.object(_runtime, "api", lambda: stage.api),
            patch.object(_runtime, "execute", lambda: stage.executor),
            patch.object(_pool.ThreadPool, "start", started),
        ):
            yield stage
