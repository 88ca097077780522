"""The composition root: settings from the environment, adapters on first use, one cached record per verb.

Nothing happens at import but definitions and the logger.
"""

import logging
import os
import secrets
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger

from lambdas._clock import SystemClock
from lambdas._settings import (
    ApiSettings,
    BurySettings,
    CallBacks,
    DispatchSettings,
    ExecuteSettings,
    HandOver,
    KnowsTasks,
    PlanSettings,
    ProjectSettings,
    Reaching,
    RedriveSettings,
    ScaleSettings,
    TickSettings,
)
from scheduler.aws import clients
from scheduler.aws.jobs import DynamoJobs
from scheduler.aws.lanes import SqsLanes
from scheduler.aws.ledger import DynamoLedger
from scheduler.lifecycle import Retention
from scheduler.model import Lane
from scheduler.ports import (
    Accounts,
    Capacity,
    Clock,
    Counters,
    Dispatchers,
    Jobs,
    Lanes,
    Ledger,
    Orders,
    Outputs,
    Receipts,
    Redrivers,
    Redrives,
    SigningKeys,
    TaskGate,
    Tasks,
    Topic,
)
from scheduler.rules import Rules
from scheduler.services.latency import LatencyMeter
from scheduler.services.pause import Watch

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from lambdas._children import Children
    from lambdas._pool import ThreadPool
    from scheduler.calls import Calls
    from scheduler.services.callback import Addresses
    from scheduler.targets import Reach

WORKERS = 32  # jobs an executor runs at once; a batch has ten

logger = Logger(location=None)  # every message is written in one place; its line number would be a tenth of the log
logging.getLogger("scheduler").parent = logger._logger  # the services log through the standard library


@dataclass(frozen=True)
class Api:
    settings: ApiSettings
    rules: Rules
    clock: Clock
    jobs: Jobs
    lanes: Lanes
    ledger: Ledger
    accounts: Accounts
    receipts: Receipts
    tasks: Tasks
    orders: Orders
    redrives: Redrives
    redrivers: Redrivers
    reach: "Reach"
    signing: SigningKeys
    counters: Counters


@dataclass(frozen=True)
class Tick:
    rules: Rules
    clock: Clock
    jobs: Jobs
    lanes: Lanes
    ledger: Ledger
    tasks: TaskGate
    orders: Orders
    dispatchers: Dispatchers


@dataclass(frozen=True)
class Plan:
    rules: Rules
    clock: Clock
    jobs: Jobs
    lanes: Lanes
    ledger: Ledger
    tasks: Tasks
    orders: Orders


@dataclass(frozen=True)
class Redrive:
    rules: Rules
    clock: Clock
    jobs: Jobs
    lanes: Lanes
    tasks: TaskGate
    orders: Orders
    redrives: Redrives


@dataclass(frozen=True)
class Dispatch:
    rules: Rules
    clock: Clock
    jobs: Jobs
    lanes: Lanes
    ledger: Ledger
    topic: Topic


@dataclass(frozen=True)
class Execute:
    settings: ExecuteSettings
    lane: Lane
    rules: Rules
    clock: SystemClock
    jobs: Jobs
    lanes: Lanes
    ledger: Ledger
    tasks: TaskGate
    orders: Orders
    meter: LatencyMeter
    pauses: Watch
    threads: ThreadPoolExecutor
    children: "Children"
    reach: "Reach"
    callbacks: "Addresses"


@dataclass(frozen=True)
class Project:
    settings: ProjectSettings
    counters: Counters


@dataclass(frozen=True)
class Scale:
    settings: ScaleSettings
    rules: Rules
    clock: Clock
    jobs: Jobs
    lanes: Lanes
    orders: Orders
    counters: Counters
    capacity: Capacity


@dataclass(frozen=True)
class Bury:
    rules: Rules
    clock: Clock
    jobs: Jobs
    lanes: Lanes
    tasks: TaskGate
    orders: Orders


@cache
def api() -> Api:
    from scheduler.aws.accounts import CognitoAccounts
    from scheduler.aws.receipts import DynamoReceipts
    from scheduler.aws.redrives import DynamoRedrives, LambdaRedrivers

    settings = ApiSettings.parse(os.environ)
    accounts = CognitoAccounts(clients.cognito(), settings.user_pool_client_id)
    receipts = DynamoReceipts(_dynamodb(), settings.ledger_table)
    redrives = DynamoRedrives(_dynamodb(), settings.ledger_table)
    redrivers = LambdaRedrivers(clients.functions(), settings.redrive_function)
    stores = (*_stores(settings), _ledger(settings))
    clock, reach, signing = SystemClock(), _reach(settings), _signing(settings)
    tasks, lines, counters = _tasks(settings), _orders(settings), _counters(settings)
    return Api(settings, _rules(settings), clock, *stores, accounts, receipts, tasks, lines, redrives, redrivers, reach, signing, counters)


@cache
def tick() -> Tick:
    from scheduler.aws.dispatchers import LambdaDispatchers

    settings = TickSettings.parse(os.environ)
    rules = _rules(settings, units=settings.units, max_backlog=settings.max_backlog)
    dispatchers = LambdaDispatchers(clients.functions(), settings.dispatch_function)
    return Tick(rules, SystemClock(), *_stores(settings), _ledger(settings), _gate(settings), _orders(settings), dispatchers)


@cache
def plan() -> Plan:
    settings = PlanSettings.parse(os.environ)
    return Plan(_rules(settings), SystemClock(), *_stores(settings), _ledger(settings), _tasks(settings), _orders(settings))


@cache
def redrive() -> Redrive:
    from scheduler.aws.redrives import DynamoRedrives

    settings = RedriveSettings.parse(os.environ)
    redrives = DynamoRedrives(_dynamodb(), settings.ledger_table)
    return Redrive(_rules(settings), SystemClock(), *_stores(settings), _gate(settings), _orders(settings), redrives)


@cache
def dispatch() -> Dispatch:
    from scheduler.aws.topic import SnsTopic

    settings = DispatchSettings.parse(os.environ)
    rules = _rules(settings, lead_ms=settings.lead_ms)
    topic = SnsTopic(clients.sns(), settings.topic_arn)
    return Dispatch(rules, SystemClock(), *_stores(settings), _ledger(settings), topic)


@cache
def execute() -> Execute:
    from lambdas._children import Children
    from scheduler.services.callback import Addresses

    settings = ExecuteSettings.parse(os.environ)
    lane = Lane(settings.lane)
    clock, ledger, meter = SystemClock(), _ledger(settings), LatencyMeter(lane, secrets.token_hex(4))
    pauses, threads = Watch(ledger, clock), ThreadPoolExecutor(WORKERS, "job")
    rules, reach = _rules(settings), _reach(settings)
    gate, orders = _gate(settings), _orders(settings)
    address = settings.api_url.replace("{endpoint}", os.environ.get("AWS_ENDPOINT_URL", ""))
    callbacks = Addresses(address, _signing(settings))
    return Execute(
        settings, lane, rules, clock, *_stores(settings), ledger, gate, orders, meter, pauses, threads, Children(), reach, callbacks
    )


def pool() -> "ThreadPool":
    """Where the jobs of one batch run; its threads and children live on."""
    from lambdas._pool import ThreadPool

    at, private = execute(), execute().settings.allow_private_http
    return ThreadPool(
        at.threads,
        at.clock,
        at.children,
        executor_outputs,
        allow_private=private,
        reach=at.reach,
        calls=calls,
        callbacks=at.callbacks.of,
    )


@cache
def executor_outputs() -> Outputs:
    """Loaded with the first output that an item cannot hold."""
    return _outputs(execute().settings)


@cache
def outputs() -> Outputs:
    """The same of the api's."""
    return _outputs(api().settings)


def _outputs(settings: ApiSettings | ExecuteSettings) -> Outputs:
    from scheduler.aws.outputs import S3Outputs

    return S3Outputs(clients.s3(), settings.outputs_bucket)


@cache
def calls() -> "Calls":
    """What executors call AWS with for their jobs; loaded with the first job that does."""
    from scheduler.aws.calls import AwsCalls

    return AwsCalls(execute().settings.email_sender)


@cache
def bury() -> Bury:
    settings = BurySettings.parse(os.environ)
    return Bury(_rules(settings), SystemClock(), *_stores(settings), _gate(settings), _orders(settings))


@cache
def project() -> Project:
    settings = ProjectSettings.parse(os.environ)
    return Project(settings, _counters(settings))


@cache
def scale() -> Scale:
    from scheduler.aws.capacity import LambdaCapacity

    settings = ScaleSettings.parse(os.environ)
    named = {Lane.ONE_TIME: settings.one_time_mapping, Lane.RECURRING: settings.recurring_mapping}
    mappings = {lane: mapping for lane, mapping in named.items() if mapping}
    capacity = LambdaCapacity(clients.functions(), mappings, settings.most_pollers)
    return Scale(settings, _rules(settings), SystemClock(), *_stores(settings), _orders(settings), _counters(settings), capacity)


def _rules(settings: HandOver, **more: Any) -> Rules:
    return Rules(shards=settings.shards, hold_ms=settings.hold_ms, retention=_retention(settings), **more)


def _retention(settings: HandOver) -> Retention:
    return Retention(settings.retention_days, settings.failure_retention_days)


def _reach(settings: Reaching) -> "Reach":
    from scheduler.targets import Reach

    return Reach(settings.allowed_targets, settings.email_sender)


def _signing(settings: CallBacks) -> SigningKeys:
    return LazyKeys(settings.callback_secret)


class LazyKeys:
    """The port `SigningKeys`; its client is made with the first job that reports by call-back."""

    def __init__(self, secret: str) -> None:
        self._secret = secret

    def keys(self, now: int, *, newest: bool = False) -> Sequence[bytes]:
        return _secret_keys(self._secret).keys(now, newest=newest)


@cache
def _secret_keys(secret: str) -> SigningKeys:
    from scheduler.aws.signing_keys import SecretKeys

    return SecretKeys(clients.secrets(), secret)


def _stores(settings: HandOver) -> tuple[Jobs, Lanes]:
    return _jobs(settings.jobs_table), SqsLanes(clients.sqs(), _queues(settings))


def _queues(settings: HandOver) -> Mapping[Lane, str]:
    return {
        Lane.ONE_TIME: settings.one_time_queue_url,
        Lane.RECURRING: settings.recurring_queue_url,
        Lane.RETRY: settings.retry_queue_url,
    }


@cache
def _dynamodb() -> "DynamoDBClient":
    """One for all tables: each costs a cold start its time, and connections of its own."""
    return clients.dynamodb()


def _jobs(table: str) -> DynamoJobs:
    return DynamoJobs(_dynamodb(), table)


def _ledger(settings: HandOver) -> DynamoLedger:
    return DynamoLedger(_dynamodb(), settings.ledger_table)


def _tasks(settings: KnowsTasks) -> Tasks:
    from scheduler.aws.tasks import DynamoTasks  # hot functions never load schedules

    return DynamoTasks(_dynamodb(), settings.tasks_table, jobs=settings.jobs_table, ledger=settings.ledger_table)


def _gate(settings: KnowsTasks) -> TaskGate:
    from scheduler.aws.holders import DynamoTaskGate

    return DynamoTaskGate(_dynamodb(), settings.tasks_table)


def _orders(settings: KnowsTasks) -> Orders:
    from scheduler.aws.orders import DynamoOrders

    return DynamoOrders(_dynamodb(), settings.tasks_table)


def _counters(settings: ApiSettings | ProjectSettings | ScaleSettings) -> Counters:
    from scheduler.aws.counters import DynamoCounters  # what is counted knows schedules

    return DynamoCounters(_dynamodb(), settings.counters_table)
