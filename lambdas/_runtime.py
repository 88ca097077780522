"""The composition root: settings from the environment, adapters on first use, one cached record per verb.

Nothing happens at import but definitions and the logger.
"""

import logging
import os
import secrets
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger

from lambdas._clock import SystemClock
from lambdas._settings import (
    ApiSettings,
    BurySettings,
    DispatchSettings,
    ExecuteSettings,
    HandOver,
    PlanSettings,
    Reaching,
    RedriveSettings,
    TickSettings,
)
from scheduler.aws import clients
from scheduler.aws.jobs import DynamoJobs
from scheduler.aws.lanes import SqsLanes
from scheduler.aws.ledger import DynamoLedger
from scheduler.lifecycle import Retention
from scheduler.model import Lane
from scheduler.ports import Accounts, Clock, Dispatchers, Jobs, Lanes, Ledger, Receipts, Redrivers, Redrives, TaskGate, Tasks, Topic, Users
from scheduler.rules import Rules
from scheduler.services.latency import LatencyMeter
from scheduler.services.pause import Watch

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from scheduler.calls import Calls
    from scheduler.services.direct import DirectPath
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
    redrives: Redrives
    redrivers: Redrivers
    reach: "Reach"
    direct: "DirectPath"


@dataclass(frozen=True)
class Tick:
    rules: Rules
    clock: Clock
    jobs: Jobs
    lanes: Lanes
    ledger: Ledger
    dispatchers: Dispatchers


@dataclass(frozen=True)
class Plan:
    rules: Rules
    clock: Clock
    jobs: Jobs
    lanes: Lanes
    ledger: Ledger
    tasks: Tasks


@dataclass(frozen=True)
class Redrive:
    rules: Rules
    clock: Clock
    jobs: Jobs
    lanes: Lanes
    tasks: TaskGate
    redrives: Redrives


@dataclass(frozen=True)
class Dispatch:
    rules: Rules
    clock: Clock
    jobs: Jobs
    lanes: Lanes
    ledger: Ledger
    topic: Topic
    users: Users


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
    meter: LatencyMeter
    pauses: Watch
    threads: ThreadPoolExecutor
    reach: "Reach"


@dataclass(frozen=True)
class Bury:
    rules: Rules
    clock: Clock
    jobs: Jobs


@cache
def api() -> Api:
    from scheduler.aws.accounts import CognitoAccounts
    from scheduler.aws.dispatchers import LambdaDispatchers
    from scheduler.aws.receipts import DynamoReceipts
    from scheduler.aws.redrives import DynamoRedrives, LambdaRedrivers
    from scheduler.services.direct import DirectPath

    settings = ApiSettings.parse(os.environ)
    accounts = CognitoAccounts(clients.cognito(), settings.user_pool_client_id)
    receipts = DynamoReceipts(_dynamodb(), settings.ledger_table)
    redrives = DynamoRedrives(_dynamodb(), settings.ledger_table)
    redrivers = LambdaRedrivers(clients.functions(), settings.redrive_function)
    clock, ledger = SystemClock(), _ledger(settings)
    rules = _rules(settings, direct_burst=settings.direct_burst, direct_rate=settings.direct_rate)
    direct = DirectPath(ledger, LambdaDispatchers(clients.functions(), settings.dispatch_function), clock, rules)
    stores = (*_stores(settings), ledger)
    return Api(settings, rules, clock, *stores, accounts, receipts, _tasks(settings), redrives, redrivers, _reach(settings), direct)


@cache
def tick() -> Tick:
    from scheduler.aws.dispatchers import LambdaDispatchers

    settings = TickSettings.parse(os.environ)
    rules = _rules(settings, units=settings.units, max_backlog=settings.max_backlog)
    dispatchers = LambdaDispatchers(clients.functions(), settings.dispatch_function)
    return Tick(rules, SystemClock(), *_stores(settings), _ledger(settings), dispatchers)


@cache
def plan() -> Plan:
    settings = PlanSettings.parse(os.environ)
    return Plan(_rules(settings), SystemClock(), *_stores(settings), _ledger(settings), _tasks(settings))


@cache
def redrive() -> Redrive:
    from scheduler.aws.holders import DynamoTaskGate
    from scheduler.aws.redrives import DynamoRedrives

    settings = RedriveSettings.parse(os.environ)
    gate, redrives = DynamoTaskGate(_dynamodb(), settings.tasks_table), DynamoRedrives(_dynamodb(), settings.ledger_table)
    return Redrive(_rules(settings), SystemClock(), *_stores(settings), gate, redrives)


@cache
def dispatch() -> Dispatch:
    from scheduler.aws.topic import SnsTopic
    from scheduler.aws.users import DynamoUsers

    settings = DispatchSettings.parse(os.environ)
    windows = {Lane.ONE_TIME: settings.one_time_window, Lane.RECURRING: settings.recurring_window}
    rules = _rules(settings, lead_ms=settings.lead_ms, windows=windows)
    topic, users = SnsTopic(clients.sns(), settings.topic_arn), DynamoUsers(_dynamodb(), settings.users_table)
    return Dispatch(rules, SystemClock(), *_stores(settings), _ledger(settings), topic, users)


@cache
def execute() -> Execute:
    from scheduler.aws.holders import DynamoTaskGate

    settings = ExecuteSettings.parse(os.environ)
    lane = Lane(settings.lane)
    gate = DynamoTaskGate(_dynamodb(), settings.tasks_table)
    clock, ledger, meter = SystemClock(), _ledger(settings), LatencyMeter(lane, secrets.token_hex(4))
    pauses, threads = Watch(ledger, clock), ThreadPoolExecutor(WORKERS, "job")
    rules, reach = _rules(settings), _reach(settings)
    return Execute(settings, lane, rules, clock, *_stores(settings), ledger, gate, meter, pauses, threads, reach)


@cache
def calls() -> "Calls":
    """What executors call AWS with for their jobs; loaded with the first job that does."""
    from scheduler.aws.calls import AwsCalls

    return AwsCalls(execute().settings.email_sender)


@cache
def bury() -> Bury:
    settings = BurySettings.parse(os.environ)
    return Bury(Rules(retention=_retention(settings)), SystemClock(), _jobs(settings.jobs_table))


def _rules(settings: HandOver, **more: Any) -> Rules:
    return Rules(shards=settings.shards, hold_ms=settings.hold_ms, retention=_retention(settings), **more)


def _retention(settings: HandOver | BurySettings) -> Retention:
    return Retention(settings.retention_days, settings.failure_retention_days)


def _reach(settings: Reaching) -> "Reach":
    from scheduler.targets import Reach

    return Reach(settings.allowed_targets, settings.email_sender)


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


def _tasks(settings: ApiSettings | PlanSettings) -> Tasks:
    from scheduler.aws.tasks import DynamoTasks  # hot functions never load schedules

    return DynamoTasks(_dynamodb(), settings.tasks_table, jobs=settings.jobs_table, ledger=settings.ledger_table)
