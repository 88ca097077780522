"""The implementations of each port, one fixture per port: every test runs over all of them.

Jobs, tasks and receipts need conditional PartiQL, which moto lacks: their tests run on the local AWS, a process of its own.
All others run on moto, in process.
"""

import os
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from botocore.config import Config
from moto import mock_aws

from local.server import START
from scheduler.model.job import Lane
from scheduler.storage.aws import clients
from scheduler.storage.aws.calendars import DynamoCalendars
from scheduler.storage.aws.counters import DynamoCounters
from scheduler.storage.aws.declarations import DynamoDeclarations
from scheduler.storage.aws.groups import DynamoGroups
from scheduler.storage.aws.intake_letters import DynamoIntakeDeadLetters
from scheduler.storage.aws.jobs import DynamoJobs
from scheduler.storage.aws.lanes import SqsLanes
from scheduler.storage.aws.ledger import DynamoLedger
from scheduler.storage.aws.monitors import DynamoMonitors
from scheduler.storage.aws.notice_queue import SqsNoticeQueue
from scheduler.storage.aws.notices import DynamoNotices
from scheduler.storage.aws.operations import DynamoOperations
from scheduler.storage.aws.ordering_queues import DynamoOrderingQueues
from scheduler.storage.aws.receipts import DynamoReceipts
from scheduler.storage.aws.run_timers import DynamoRunTimers
from scheduler.storage.aws.targets import DynamoTargets
from scheduler.storage.aws.tasks import DynamoTasks
from scheduler.storage.aws.users import DynamoUsers
from scheduler.storage.aws.work_queue import SqsWorkQueue
from scheduler.storage.memory.accounts import MemoryUsers
from scheduler.storage.memory.counters import MemoryCounters
from scheduler.storage.memory.declarations import MemoryDeclarations
from scheduler.storage.memory.groups import MemoryGroups
from scheduler.storage.memory.intake_letters import MemoryIntakeDeadLetters
from scheduler.storage.memory.monitors import MemoryMonitors
from scheduler.storage.memory.notices import MemoryNoticeQueue, MemoryNotices
from scheduler.storage.memory.ordering_queues import MemoryOrderingQueues
from scheduler.storage.memory.run_timers import MemoryRunTimers
from scheduler.storage.memory.stores import MemoryJobs, MemoryLanes, MemoryLedger, MemoryOperations, MemoryWork
from scheduler.storage.memory.targets import MemoryTargets
from scheduler.storage.memory.tasks import MemoryReceipts, MemoryTasks
from scheduler.storage.ports import (
    Calendars,
    Counters,
    Declarations,
    Groups,
    IntakeDeadLetters,
    Jobs,
    Lanes,
    Ledger,
    Monitors,
    Notices,
    Operations,
    OrderingQueues,
    Receipts,
    RunTimers,
    Targets,
    Tasks,
    Users,
    WorkQueue,
)
from tests.conftest import FixedClock
from tests.contract import tables

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

PATIENCE_S = 300  # for a process to start or end, where other lanes of the tests go first; its end is noticed at once


@pytest.fixture(autouse=True, scope="session")
def credentials() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_ACCESS_KEY_ID", "test")
        environment.setenv("AWS_SECRET_ACCESS_KEY", "test")
        environment.setenv("AWS_DEFAULT_REGION", "us-east-1")
        yield


@pytest.fixture(autouse=True, scope="session")
def patience() -> Iterator[None]:
    """Clients wait a minute for an answer. On a busy machine the local AWS may take longer than the usual five seconds,
    and a call that is sent twice finds its own table or item there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clients, "CONFIG", clients.CONFIG.merge(Config(read_timeout=60)))
        yield


@pytest.fixture(scope="session")
def local_aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a local AWS, which runs until the end of the session."""
    with running(tmp_path_factory.mktemp("aws")) as address:
        yield address


@contextmanager
def running(folder: Path, **variables: str) -> Iterator[str]:
    """The address of a local AWS that runs meanwhile. `variables`: more of its environment."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = os.environ | {"GATEWAY_PORT": str(port), "BIND_HOST": "127.0.0.1", "IOT_MTLS_ENABLED": "0", "PERSIST_STATE": "0"}
    command = [sys.executable, "-c", START, str(folder)]
    ready = threading.Event()
    whole = environment | variables
    with subprocess.Popen(command, env=whole, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        reader = threading.Thread(target=_drain, args=(process, ready), daemon=True)
        reader.start()
        try:
            assert ready.wait(PATIENCE_S) and process.poll() is None, "the local AWS did not start"
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(PATIENCE_S)
            reader.join(PATIENCE_S)


def _drain(process: "subprocess.Popen[str]", ready: threading.Event) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if "Running on" in line:
            ready.set()
    ready.set()  # it has ended; nobody need wait for it


@pytest.fixture(scope="session")
def local_dynamodb(request: pytest.FixtureRequest) -> "DynamoDBClient":
    """One client for all tests: making one takes longer than most of them."""
    if tables.elsewhere is not None:
        return tables.elsewhere()  # type: ignore[no-any-return]
    return clients.dynamodb(endpoint_url=request.getfixturevalue("local_aws"))


@pytest.fixture
def moto() -> Iterator[None]:
    with mock_aws():
        yield


class Stores(NamedTuple):
    """The ports that one transaction may write, over the same tables."""

    jobs: Jobs
    tasks: Tasks
    receipts: Receipts
    calendars: Calendars


@pytest.fixture(params=["memory", "dynamodb"])
def stores(request: pytest.FixtureRequest) -> Iterator[Stores]:
    if request.param == "memory":
        jobs, receipts = MemoryJobs(), MemoryReceipts()
        memory = MemoryTasks(jobs, receipts)
        yield Stores(jobs, memory, receipts, memory.calendars)
        return
    client: DynamoDBClient = request.getfixturevalue("local_dynamodb")
    made = {f"{kind}-{uuid.uuid4().hex}": table for kind, table in tables.ALL.items()}
    for name, table in made.items():
        client.create_table(TableName=name, **table)
    jobs_table, tasks_table, ledger_table = made
    tasks = DynamoTasks(client, tasks_table, jobs=jobs_table, ledger=ledger_table)
    yield Stores(DynamoJobs(client, jobs_table), tasks, DynamoReceipts(client, ledger_table), DynamoCalendars(client, tasks_table))


@pytest.fixture
def jobs(stores: Stores) -> Jobs:
    return stores.jobs


@pytest.fixture
def tasks(stores: Stores) -> Tasks:
    return stores.tasks


@pytest.fixture
def receipts(stores: Stores) -> Receipts:
    return stores.receipts


@pytest.fixture(params=["memory", "dynamodb"])
def orders(request: pytest.FixtureRequest) -> Iterator[OrderingQueues]:
    if request.param == "memory":
        yield MemoryOrderingQueues()
        return
    client: DynamoDBClient = request.getfixturevalue("local_dynamodb")
    name = f"tasks-{uuid.uuid4().hex}"
    client.create_table(TableName=name, **tables.TASKS)
    yield DynamoOrderingQueues(client, name)


@pytest.fixture(params=["memory", "dynamodb"])
def targets(request: pytest.FixtureRequest) -> Iterator[Targets]:
    if request.param == "memory":
        yield MemoryTargets()
        return
    client: DynamoDBClient = request.getfixturevalue("local_dynamodb")
    name = f"tasks-{uuid.uuid4().hex}"
    client.create_table(TableName=name, **tables.TASKS)
    yield DynamoTargets(client, name)


@pytest.fixture(params=["memory", "dynamodb"])
def ledger(request: pytest.FixtureRequest) -> Ledger:
    if request.param == "memory":
        return MemoryLedger()
    return DynamoLedger(tables.on_moto(request, "ledger", tables.LEDGER), "ledger")


@pytest.fixture(params=["memory", "dynamodb"])
def operations(request: pytest.FixtureRequest) -> Operations:
    if request.param == "memory":
        return MemoryOperations()
    return DynamoOperations(tables.on_moto(request, "ledger", tables.LEDGER), "ledger")


@pytest.fixture(params=["memory", "dynamodb"])
def monitors(request: pytest.FixtureRequest) -> Monitors:
    if request.param == "memory":
        return MemoryMonitors()
    return DynamoMonitors(tables.on_moto(request, "ledger", tables.LEDGER), "ledger")


@pytest.fixture(params=["memory", "dynamodb"])
def run_timers(request: pytest.FixtureRequest) -> RunTimers:
    if request.param == "memory":
        return MemoryRunTimers()
    return DynamoRunTimers(tables.on_moto(request, "ledger", tables.LEDGER), "ledger")


@pytest.fixture(params=["memory", "dynamodb"])
def declarations(request: pytest.FixtureRequest) -> Declarations:
    if request.param == "memory":
        return MemoryDeclarations()
    return DynamoDeclarations(tables.on_moto(request, "ledger", tables.LEDGER), "ledger")


@pytest.fixture(params=["memory", "dynamodb"])
def groups(request: pytest.FixtureRequest) -> Groups:
    if request.param == "memory":
        return MemoryGroups()
    return DynamoGroups(tables.on_moto(request, "tasks", tables.TASKS), "tasks")


@pytest.fixture(params=["memory", "dynamodb"])
def intake_letters(request: pytest.FixtureRequest) -> IntakeDeadLetters:
    if request.param == "memory":
        return MemoryIntakeDeadLetters()
    return DynamoIntakeDeadLetters(tables.on_moto(request, "ledger", tables.LEDGER), "ledger")


@pytest.fixture(params=["memory", "dynamodb"])
def users(request: pytest.FixtureRequest) -> Users:
    if request.param == "memory":
        return MemoryUsers()
    return DynamoUsers(tables.on_moto(request, "users", tables.USERS), "users")


@pytest.fixture(params=["memory", "sqs"])
def lanes(request: pytest.FixtureRequest) -> Lanes:
    if request.param == "memory":
        return MemoryLanes()
    request.getfixturevalue("moto")
    client = clients.sqs()
    return SqsLanes(client, {lane: client.create_queue(QueueName=lane)["QueueUrl"] for lane in Lane})


@pytest.fixture(params=["memory", "sqs"])
def work(request: pytest.FixtureRequest) -> WorkQueue:
    if request.param == "memory":
        return MemoryWork(FixedClock())
    request.getfixturevalue("moto")
    client = clients.sqs()
    return SqsWorkQueue(client, client.create_queue(QueueName="work")["QueueUrl"])


@pytest.fixture(params=["memory", "dynamodb"])
def counters(request: pytest.FixtureRequest) -> Counters:
    if request.param == "memory":
        return MemoryCounters()
    return DynamoCounters(tables.on_moto(request, "counters", tables.COUNTERS), "counters")


@pytest.fixture(params=["memory", "dynamodb"])
def notices(request: pytest.FixtureRequest) -> Notices:
    if request.param == "memory":
        return MemoryNotices()
    return DynamoNotices(tables.on_moto(request, "notices", tables.NOTICES), "notices")


@pytest.fixture(params=["memory", "sqs"])
def notice_queue(request: pytest.FixtureRequest) -> MemoryNoticeQueue | SqsNoticeQueue:
    if request.param == "memory":
        return MemoryNoticeQueue(FixedClock())
    request.getfixturevalue("moto")
    client = clients.sqs()
    return SqsNoticeQueue(client, client.create_queue(QueueName="notices")["QueueUrl"])
