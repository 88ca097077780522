"""The composition root: settings from the environment, adapters on first use, one cached record per verb.

Nothing happens at import but definitions and the logger.
"""

import logging
import os
import secrets
import threading
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
    NotifySettings,
    PlanSettings,
    ProjectSettings,
    Reaching,
    RedriveSettings,
    ScaleSettings,
    TickSettings,
)
from scheduler.admission.breaker_gate import Circuits
from scheduler.admission.lane_state import Watch
from scheduler.admission.target_cache import Known
from scheduler.model.job import Job, Lane
from scheduler.model.lifecycle import Retention
from scheduler.model.rules import Rules
from scheduler.pipeline.latency import LatencyMeter
from scheduler.storage.aws import clients
from scheduler.storage.aws.jobs import DynamoJobs
from scheduler.storage.aws.lanes import SqsLanes
from scheduler.storage.aws.ledger import DynamoLedger
from scheduler.storage.ports import (
    Accounts,
    Capacity,
    Clock,
    Counters,
    Dispatchers,
    Jobs,
    Lanes,
    Ledger,
    NoticeQueue,
    Orders,
    Outputs,
    Receipts,
    Redrivers,
    Redrives,
    SecretValues,
    SigningKeys,
    Targets,
    TaskGate,
    Tasks,
    Topic,
    Users,
)

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from lambdas._children import Children
    from lambdas._pool import ThreadPool
    from scheduler.accounts.audit import Trail
    from scheduler.accounts.model import Directory, Profiles, Tallies
    from scheduler.accounts.quota import QuotaGate
    from scheduler.callbacks.reports import Addresses
    from scheduler.insight.archive import Archive
    from scheduler.pipeline.direct_path import DirectPath
    from scheduler.storage.aws.notice_queue import SqsNoticeQueue
    from scheduler.targets.base import Reach
    from scheduler.targets.calls import Calls

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
    direct: "DirectPath"
    signing: SigningKeys
    targets: Targets
    named: Known
    users: Users
    directory: "Directory"
    profiles: "Profiles"
    tallies: "Tallies"
    trail: "Trail"
    quotas: "QuotaGate"
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
    tasks: TaskGate
    orders: Orders
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
    orders: Orders
    meter: LatencyMeter
    pauses: Watch
    threads: ThreadPoolExecutor
    children: "Children"
    reach: "Reach"
    callbacks: "Addresses"
    named: Known
    circuits: Circuits


@dataclass(frozen=True)
class Project:
    settings: ProjectSettings
    counters: Counters
    queue: NoticeQueue
    archive: "Archive | None"


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
    from scheduler.pipeline.direct_path import DirectPath
    from scheduler.storage.aws.accounts import CognitoAccounts
    from scheduler.storage.aws.dispatchers import LambdaDispatchers
    from scheduler.storage.aws.receipts import DynamoReceipts
    from scheduler.storage.aws.redrives import DynamoRedrives, LambdaRedrivers
    from scheduler.storage.aws.targets import DynamoTargets

    settings = ApiSettings.parse(os.environ)
    accounts = CognitoAccounts(clients.cognito(), settings.user_pool_client_id)
    receipts = DynamoReceipts(_dynamodb(), settings.ledger_table)
    redrives = DynamoRedrives(_dynamodb(), settings.ledger_table)
    redrivers = LambdaRedrivers(clients.functions(), settings.redrive_function)
    clock, ledger, tasks, reach, signing = SystemClock(), _ledger(settings), _tasks(settings), _reach(settings), _signing(settings)
    rules = _rules(settings, direct_burst=settings.direct_burst, direct_rate=settings.direct_rate)
    direct = DirectPath(ledger, LambdaDispatchers(clients.functions(), settings.dispatch_function), clock, rules)
    stores, lines, targets = (*_stores(settings), ledger), _orders(settings), DynamoTargets(_dynamodb(), settings.tasks_table)
    rest = (reach, direct, signing, targets, Known(targets, clock), *_accounts(settings, clock), _counters(settings))
    return Api(settings, rules, clock, *stores, accounts, receipts, tasks, lines, redrives, redrivers, *rest)


@cache
def tick() -> Tick:
    from scheduler.storage.aws.dispatchers import LambdaDispatchers

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
    from scheduler.storage.aws.redrives import DynamoRedrives

    settings = RedriveSettings.parse(os.environ)
    redrives = DynamoRedrives(_dynamodb(), settings.ledger_table)
    return Redrive(_rules(settings), SystemClock(), *_stores(settings), _gate(settings), _orders(settings), redrives)


@cache
def dispatch() -> Dispatch:
    from scheduler.storage.aws.topic import SnsTopic
    from scheduler.storage.aws.users import DynamoUsers

    settings = DispatchSettings.parse(os.environ)
    windows = {Lane.ONE_TIME: settings.one_time_window, Lane.RECURRING: settings.recurring_window}
    rules = _rules(settings, lead_ms=settings.lead_ms, windows=windows)
    topic, users = SnsTopic(clients.sns(), settings.topic_arn), DynamoUsers(_dynamodb(), settings.users_table)
    return Dispatch(rules, SystemClock(), *_stores(settings), _ledger(settings), _gate(settings), _orders(settings), topic, users)


@cache
def execute() -> Execute:
    from lambdas._children import Children
    from scheduler.callbacks.reports import Addresses
    from scheduler.storage.aws.target_gate import DynamoTargetGate

    settings = ExecuteSettings.parse(os.environ)
    lane = Lane(settings.lane)
    clock, ledger, meter = SystemClock(), _ledger(settings), LatencyMeter(lane, secrets.token_hex(4))
    pauses, threads = Watch(ledger, clock), ThreadPoolExecutor(WORKERS, "job")
    rules, reach = _rules(settings), _reach(settings)
    gate, orders = _gate(settings), _orders(settings)
    address = settings.api_url.replace("{endpoint}", os.environ.get("AWS_ENDPOINT_URL", ""))
    callbacks = Addresses(address, _signing(settings))
    named, circuits = Known(DynamoTargetGate(_dynamodb(), settings.tasks_table), clock), Circuits(ledger, clock, pauses)
    stores = (*_stores(settings), ledger, gate, orders)
    return Execute(settings, lane, rules, clock, *stores, meter, pauses, threads, Children(), reach, callbacks, named, circuits)


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
        named=at.named,
        fetcher=at.settings.fetch_function,
        secrets=_secrets_of,
    )


def ahead(job: Job) -> int:
    """How long before its instant (ms) a job is sent on its way. The first one that is has the way made ready while it is held."""
    from scheduler.targets import registry

    if not execute().settings.fetch_function:
        return 0
    found = registry.load(job.spec.type).ahead_ms
    if found:
        _make_way(job.spec.timeout_ms / 1000)
    return found


_way_made = threading.Lock()  # taken by the first call, and never given back


def _make_way(seconds: float) -> None:
    """Once per process. A client takes as long to make as ten calls do, and a function to start as long as a hundred."""
    if _way_made.acquire(blocking=False):
        threading.Thread(target=_call_fetcher, args=(seconds,), name="make-way", daemon=True).start()


def _call_fetcher(seconds: float) -> None:
    from scheduler.targets import aws_call

    try:
        aws_call.invoke(calls(), execute().settings.fetch_function, "{}", wait=True, left=lambda: seconds)
    except Exception:  # the job will tell
        logger.info("the function that calls URLs was not there ahead of its first job")


@cache
def _secret_values() -> SecretValues:
    from scheduler.storage.aws.secret_values import StoredSecrets

    return StoredSecrets(clients.secrets(), execute().settings.secret_prefix)


def _secrets_of(job: Job, name: str) -> Sequence[str]:
    """By a name of its owner's, or of its target's as `named_target.secret_of` says it."""
    target, _, own = name.rpartition("/")
    return _secret_values().values(f"targets/{target}" if target else job.key.owner, own, execute().clock.now())


@cache
def executor_outputs() -> Outputs:
    """Loaded with the first output that an item cannot hold."""
    return _outputs(execute().settings)


@cache
def outputs() -> Outputs:
    """The same of the api's."""
    return _outputs(api().settings)


def _outputs(settings: ApiSettings | ExecuteSettings) -> Outputs:
    from scheduler.storage.aws.outputs import S3Outputs

    return S3Outputs(clients.s3(), settings.outputs_bucket)


@cache
def calls() -> "Calls":
    """What executors call AWS with for their jobs; loaded with the first job that does."""
    from scheduler.storage.aws.calls import AwsCalls

    return AwsCalls()


@cache
def bury() -> Bury:
    settings = BurySettings.parse(os.environ)
    return Bury(_rules(settings), SystemClock(), *_stores(settings), _gate(settings), _orders(settings))


@cache
def project() -> Project:
    settings = ProjectSettings.parse(os.environ)
    return Project(settings, _counters(settings), _notice_queue(settings), _archive(settings))


@cache
def scale() -> Scale:
    from scheduler.storage.aws.capacity import LambdaCapacity

    settings = ScaleSettings.parse(os.environ)
    named = {Lane.ONE_TIME: settings.one_time_mapping, Lane.RECURRING: settings.recurring_mapping}
    mappings = {lane: mapping for lane, mapping in named.items() if mapping}
    capacity = LambdaCapacity(clients.functions(), mappings, settings.most_pollers)
    return Scale(settings, _rules(settings), SystemClock(), *_stores(settings), _orders(settings), _counters(settings), capacity)


def _accounts(settings: ApiSettings, clock: Clock) -> tuple[Any, ...]:
    """What the api knows of users: the last fields of its world."""
    from scheduler.accounts.model import Quotas
    from scheduler.accounts.quota import QuotaGate
    from scheduler.storage.aws.directory import CognitoDirectory
    from scheduler.storage.aws.profiles import DynamoProfiles, DynamoTallies
    from scheduler.storage.aws.trail import DynamoTrail
    from scheduler.storage.aws.users import DynamoUsers

    profiles, tallies = DynamoProfiles(_dynamodb(), settings.users_table), DynamoTallies(_dynamodb(), settings.users_table)
    usual = Quotas(settings.max_jobs or None, settings.creates_per_second or None)
    quotas = QuotaGate(profiles, tallies, _jobs(settings.jobs_table), clock, usual)
    directory = CognitoDirectory(clients.cognito(), settings.user_pool)
    users, trail = DynamoUsers(_dynamodb(), settings.users_table), DynamoTrail(_dynamodb(), settings.audit_table)
    return users, directory, profiles, tallies, trail, quotas


def _rules(settings: HandOver, **more: Any) -> Rules:
    return Rules(shards=settings.shards, hold_ms=settings.hold_ms, retention=_retention(settings), **more)


def _retention(settings: HandOver) -> Retention:
    return Retention(settings.retention_days, settings.failure_retention_days)


def _reach(settings: Reaching) -> "Reach":
    from scheduler.targets.base import Reach

    return Reach(settings.allowed_targets, settings.email_sender, settings.plain_http, settings.http_hosts)


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
    from scheduler.storage.aws.signing_keys import SecretKeys

    return SecretKeys(clients.secrets(), secret)


def _archive(settings: ProjectSettings) -> "Archive | None":
    if not settings.archive_stream:
        return None
    from scheduler.storage.aws.archive import FirehoseArchive

    return FirehoseArchive(clients.firehose(), settings.archive_stream)


def _notice_queue(settings: ProjectSettings | NotifySettings) -> "SqsNoticeQueue":
    from scheduler.storage.aws.notice_queue import SqsNoticeQueue

    return SqsNoticeQueue(clients.sqs(), settings.notices_queue_url)


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
    from scheduler.storage.aws.tasks import DynamoTasks  # hot functions never load schedules

    return DynamoTasks(_dynamodb(), settings.tasks_table, jobs=settings.jobs_table, ledger=settings.ledger_table)


def _gate(settings: KnowsTasks) -> TaskGate:
    from scheduler.storage.aws.holders import DynamoTaskGate

    return DynamoTaskGate(_dynamodb(), settings.tasks_table)


def _orders(settings: KnowsTasks) -> Orders:
    from scheduler.storage.aws.orders import DynamoOrders

    return DynamoOrders(_dynamodb(), settings.tasks_table)


def _counters(settings: ApiSettings | ProjectSettings | ScaleSettings) -> Counters:
    from scheduler.storage.aws.counters import DynamoCounters  # what is counted knows schedules

    return DynamoCounters(_dynamodb(), settings.counters_table)
