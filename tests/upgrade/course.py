"""Two versions beside each other: their real functions, in processes of their own, on one local AWS without Lambda.

`Course` is the Lambda: it reads the queues, calls the function of the version that is live for a verb, and deletes what was done. Each
job calls a receiver, which counts.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from queue import Queue
from types import TracebackType
from typing import Any, Self

from lambdas._settings import Settings
from local.receiver import Receiver
from scheduler.model.job import Lane
from scheduler.model.rules import Rules
from scheduler.storage.aws import clients
from scheduler.targets.base import Reach
from tests.contract import tables

AGENT = Path(__file__).with_name("agent.py")
OLD, NEW = "old", "new"
ENGINES, EXECUTORS = 2, 3  # processes of each version
EARLIER_MS = 420_000  # jobs of slots were created this long before: their minute was not open yet
BATCH = {"worker": 1, "execute": 10}
VISIBLE_S = 15


class Failed(Exception):
    """A function of a version ended with an error."""


class Agent:
    """One process of a version."""

    def __init__(self, root: Path, environment: Mapping[str, str]) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PUNCTUAL_", "PYTHON"))}
        self._process = subprocess.Popen(
            [sys.executable, str(AGENT)],
            env=kept | {"PYTHONPATH": str(root)} | dict(environment),
            cwd=root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def call(self, name: str, *arguments: Any) -> Any:
        """Return the answer of a call. Raises Failed."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps([name, arguments]) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline() or '{"error": "the process ended"}')
        if "error" in answer:
            raise Failed(answer["error"])
        return answer["answer"]

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@dataclass
class Report:
    """What became of the jobs."""

    jobs: int
    lost: int = 0
    early: int = 0
    twice: int = 0
    errors: list[str] = field(default_factory=list)
    latest_ms: int = 0


class Course:
    """A context manager: the tables, queues and topic, and the processes of both versions."""

    def __init__(self, endpoint: str, roots: Mapping[str, Path], environments: Mapping[str, Mapping[str, str]] | None = None) -> None:
        """`environments`: more variables for the functions of a version."""
        self._endpoint, self._roots, self._more = endpoint, roots, environments or {}
        self.live = {"worker": OLD, "execute": OLD}  # the version of each verb
        self.errors: list[str] = []
        self.due: dict[str, int] = {}  # by path
        self._idle: dict[tuple[str, str], Queue[Agent]] = {}
        self._agents: list[Agent] = []
        self._ended = threading.Event()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self.receiver = self._stack.enter_context(Receiver())
        variables = self._resources()
        for version, root in self._roots.items():
            for verb, count in (("worker", ENGINES), ("execute", EXECUTORS)):
                idle: Queue[Agent] = Queue()
                for _ in range(count):
                    agent = Agent(root, variables | dict(self._more.get(version, {})))
                    self._agents.append(agent)
                    idle.put(agent)
                self._idle[(version, verb)] = idle
        pollers = [("worker", "work")] * ENGINES + [("execute", str(Lane.ONE_TIME))] * EXECUTORS
        self._threads = [threading.Thread(target=self._poll, args=each, daemon=True) for each in pollers]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ended.set()
        for agent in self._agents:
            agent.close()
        for thread in self._threads:
            thread.join(300)
        self._stack.close()

    def _resources(self) -> dict[str, str]:
        dynamodb = clients.dynamodb(endpoint_url=self._endpoint)
        self.sqs, sns = clients.sqs(endpoint_url=self._endpoint), clients.sns(endpoint_url=self._endpoint)
        made = {"jobs": tables.JOBS, "tasks": tables.TASKS, "ledger": tables.LEDGER, "users": tables.USERS}
        prefix = os.urandom(4).hex()
        for name, table in made.items():
            dynamodb.create_table(TableName=f"{prefix}-{name}", **table)
        names = ("work", *map(str, Lane))
        attributes = {"VisibilityTimeout": str(VISIBLE_S)}
        self.queues = {name: self.sqs.create_queue(QueueName=f"{prefix}-{name}", Attributes=attributes)["QueueUrl"] for name in names}
        topic = sns.create_topic(Name=prefix)["TopicArn"]
        for lane in Lane:
            queue = self.sqs.get_queue_attributes(QueueUrl=self.queues[lane], AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
            wanted = {"RawMessageDelivery": "true", "FilterPolicy": json.dumps({"lane": [lane]})}
            sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=queue, Attributes=wanted)
        settings = Settings(
            stage="upgrade",
            lane=str(Lane.ONE_TIME),
            topic_arn=topic,
            outputs_bucket="none",
            rules=Rules(shards=2, lead_ms=500, allow_private_http=True),
            reach=Reach(plain_http=True),
            **{f"{name}_table": f"{prefix}-{name}" for name in made},
            **{f"{name.replace('-', '_')}_queue_url": url for name, url in self.queues.items()},
        )
        return settings.render() | {"AWS_ENDPOINT_URL": self._endpoint, "POWERTOOLS_SERVICE_NAME": "upgrade", "LOG_LEVEL": "INFO",
                                    "POWERTOOLS_METRICS_NAMESPACE": "Punctual"}  # fmt: skip

    def _poll(self, verb: str, queue: str) -> None:
        url = self.queues[queue]
        while not self._ended.is_set():
            try:
                found = self.sqs.receive_message(
                    QueueUrl=url, MaxNumberOfMessages=BATCH[verb], WaitTimeSeconds=1, AttributeNames=["ApproximateReceiveCount"]
                ).get("Messages", [])
                records = [
                    {"messageId": each["MessageId"], "receiptHandle": each["ReceiptHandle"], "body": each["Body"],
                     "attributes": each["Attributes"]}
                    for each in found
                ]  # fmt: skip
                if records:
                    answer = self.call(verb, "run", verb, {"Records": records})
                    left = {each["itemIdentifier"] for each in answer["batchItemFailures"]}
                    for each in records:
                        if each["messageId"] not in left:
                            self.sqs.delete_message(QueueUrl=url, ReceiptHandle=each["receiptHandle"])
            except Exception as error:
                if not self._ended.is_set():
                    self.errors.append(f"{verb} {self.live[verb]}: {error}")
                    time.sleep(0.2)

    def call(self, verb: str, name: str, *arguments: Any) -> Any:
        """Call an idle process of the version that is live for the verb."""
        idle = self._idle[(self.live[verb], verb)]
        agent = idle.get(timeout=60)
        try:
            return agent.call(name, *arguments)
        finally:
            idle.put(agent)

    def tick(self) -> None:
        self.call("worker", "run", "tick", {})

    def create(self, count: int, since: int, until: int, *, ahead: bool) -> None:
        """Create jobs that are due between these instants: stored long `ahead` in the slots of their minutes, or just now."""
        paths = [f"/ok/{'slot' if ahead else 'direct'}-{len(self.due) + number}" for number in range(count)]
        dues = [since + number * (until - since) // count for number in range(count)]
        jobs = [{"url": self.receiver.url(path), "due_at": due} for path, due in zip(paths, dues, strict=True)]
        self.due |= zip(paths, dues, strict=True)
        self.call("worker", "submit", jobs, since - EARLIER_MS if ahead else None)

    def report(self, patience_s: float) -> Report:
        """Wait until every job has called, and report."""
        end = time.monotonic() + patience_s
        while self.receiver.counts().keys() < self.due.keys() and time.monotonic() < end:
            time.sleep(0.1)
        time.sleep(1)
        seen, calls = Report(len(self.due), errors=list(self.errors)), self.receiver.counts()
        seen.lost = len(self.due.keys() - calls.keys())
        seen.twice = sum(count > 1 for count in calls.values())
        seen.early = sum(call.at < self.due[call.path] for call in self.receiver.calls())
        seen.latest_ms = max((call.at - self.due[call.path] for call in self.receiver.calls()), default=0)
        return seen
