"""The composition root: reads the settings from the environment and creates the ports on AWS, each when it is first used.

An import only defines names. On Lambda, a handler's import also creates the ports of its first invocation (`_init.end`).
"""

import logging
import os
import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from lambdas._clock import SystemClock
from lambdas._logger import logger
from lambdas._settings import Settings
from scheduler.model.job import Job, Lane
from scheduler.model.rules import Rules
from scheduler.storage.aws import clients, readable
from scheduler.storage.aws.jobs import DynamoJobs
from scheduler.storage.aws.lanes import SqsLanes
from scheduler.storage.aws.ledger import DynamoLedger
from scheduler.storage.confirmed import ConfirmedRules
from scheduler.storage.ports import (
    Clock,
    Counters,
    EventBus,
    Functions,
    Identity,
    Jobs,
    Lanes,
    Ledger,
    Notices,
    Operations,
    OrderingQueues,
    Outputs,
    Receipts,
    Secrets,
    Targets,
    Tasks,
    Trail,
    Users,
    WorkQueue,
)

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_sqs import SQSClient

    from lambdas._pool import ThreadPool
    from scheduler.accounts.names import Names
    from scheduler.accounts.quota import QuotaGate
    from scheduler.admission.lane_state import LaneStateCache
    from scheduler.admission.target_cache import TargetCache
    from scheduler.pipeline.direct_path import DirectPath
    from scheduler.storage.aws.notice_queue import SqsNoticeQueue
    from scheduler.targets.base import Reach
    from scheduler.targets.calls import Calls


SIDE_BY_SIDE = 4  # threads: no service makes more calls at once


class _Unreadable(logging.Handler):
    """Counts each item that cannot be read, in whichever function, as a metric."""

    def emit(self, record: logging.LogRecord) -> None:
        from lambdas._metrics import emit  # loads Powertools' metrics, with the first such item
        from scheduler.insight import metrics

        emit("storage", {metrics.UNREADABLE: 1})


logging.getLogger(readable.__name__).addHandler(_Unreadable())


class AwsPorts:
    """The record `Ports` of one function. Using a port whose settings the function does not have raises SettingsError."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.clock: Clock = SystemClock()
        self._confirmed = ConfirmedRules(settings.rules, lambda: self.ledger, self.clock)

    @property
    def rules(self) -> Rules:
        return self._confirmed.get() if self.settings.given("ledger_table") else self.settings.rules

    @property
    def reach(self) -> "Reach":
        return self.settings.reach

    def side_by_side(self, *calls: Callable[[], Any]) -> list[Any]:
        """See `Ports`. The first call is made in this thread, the others in threads of their own."""
        others = [self._side.submit(call) for call in calls[1:]]
        try:
            first = [call() for call in calls[:1]]
        finally:
            wait(others)
        return [*first, *(other.result() for other in others)]

    @cached_property
    def _side(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(SIDE_BY_SIDE, "side")

    @cached_property
    def jobs(self) -> Jobs:
        return DynamoJobs(self._dynamodb, self.settings.jobs_table)

    @cached_property
    def tasks(self) -> Tasks:
        from scheduler.storage.aws.tasks import DynamoTasks

        settings = self.settings  # notify only reads tasks: it has no ledger
        return DynamoTasks(self._dynamodb, settings.tasks_table, jobs=settings.given("jobs_table"), ledger=settings.given("ledger_table"))

    @cached_property
    def orders(self) -> OrderingQueues:
        from scheduler.storage.aws.ordering_queues import DynamoOrderingQueues

        return DynamoOrderingQueues(self._dynamodb, self.settings.tasks_table)

    @cached_property
    def ledger(self) -> Ledger:
        return DynamoLedger(self._dynamodb, self.settings.ledger_table)

    @cached_property
    def lanes(self) -> Lanes:
        topic = None
        if arn := self.settings.given("topic_arn"):
            from scheduler.storage.aws.topic import SnsTopic

            topic = SnsTopic(clients.sns(), arn)
        return SqsLanes(self._sqs, self.settings.queues, topic)

    @cached_property
    def work(self) -> WorkQueue:
        from scheduler.storage.aws.work_queue import SqsWorkQueue

        return SqsWorkQueue(self._sqs, self.settings.work_queue_url)

    @cached_property
    def functions(self) -> Functions:
        from scheduler.storage.aws.functions import LambdaFunctions

        settings = self.settings
        named = {Lane.ONE_TIME: settings.one_time_mapping, Lane.RECURRING: settings.recurring_mapping}
        return LambdaFunctions(
            clients.functions(),
            mappings={lane: mapping for lane, mapping in named.items() if mapping},
            most_pollers=self.rules.most_pollers,
            concurrency=self.rules.concurrency,
        )

    @cached_property
    def receipts(self) -> Receipts:
        from scheduler.storage.aws.receipts import DynamoReceipts

        return DynamoReceipts(self._dynamodb, self.settings.ledger_table)

    @cached_property
    def operations(self) -> Operations:
        from scheduler.storage.aws.operations import DynamoOperations

        return DynamoOperations(self._dynamodb, self.settings.ledger_table)

    @cached_property
    def targets(self) -> Targets:
        from scheduler.storage.aws.targets import DynamoTargets

        return DynamoTargets(self._dynamodb, self.settings.tasks_table)

    @cached_property
    def users(self) -> Users:
        from scheduler.storage.aws.users import DynamoUsers

        return DynamoUsers(self._dynamodb, self.settings.users_table)

    @cached_property
    def identity(self) -> Identity:
        from scheduler.storage.aws.identity import CognitoIdentity

        settings = self.settings
        return CognitoIdentity(clients.cognito(), settings.user_pool, settings.user_pool_client_id, settings.clients)

    @cached_property
    def trail(self) -> Trail:
        from scheduler.storage.aws.trail import DynamoTrail, LockedTrail

        trail, bucket = DynamoTrail(self._dynamodb, self.settings.audit_table), self.settings.audit_lock_bucket
        return LockedTrail(trail, clients.s3(), bucket) if bucket else trail

    @cached_property
    def counters(self) -> Counters:
        from scheduler.storage.aws.counters import DynamoCounters  # imported late: counting imports schedules

        return DynamoCounters(self._dynamodb, self.settings.counters_table)

    @cached_property
    def notices(self) -> Notices:
        from scheduler.storage.aws.notices import DynamoNotices

        return DynamoNotices(self._dynamodb, self.settings.given("notices_table"), self.notice_queue)  # project only sends: it has no table

    @cached_property
    def notice_queue(self) -> "SqsNoticeQueue":
        """The queue to which `notices` sends, and whose messages notify defers."""
        from scheduler.storage.aws.notice_queue import SqsNoticeQueue

        return SqsNoticeQueue(self._sqs, self.settings.notices_queue_url)

    @cached_property
    def events(self) -> EventBus:
        from scheduler.storage.aws.event_bus import EventBridgeBus

        return EventBridgeBus(clients.events(), self.settings.event_bus)

    @cached_property
    def outputs(self) -> Outputs:
        from scheduler.storage.aws.archive import FirehoseArchive
        from scheduler.storage.aws.outputs import S3Outputs

        bucket, stream = self.settings.given("outputs_bucket"), self.settings.archive_stream  # a function has one of them, not both
        archive = FirehoseArchive(clients.firehose(), stream) if stream else None
        return S3Outputs(clients.s3() if bucket else None, bucket, archive)

    @cached_property
    def secrets(self) -> Secrets:
        from scheduler.storage.aws.secrets import AwsSecrets

        return AwsSecrets(self.settings.callback_secret, self.settings.secret_prefix)

    @cached_property
    def _dynamodb(self) -> "DynamoDBClient":
        """One client for all tables: each client lengthens a cold start and has its own connections."""
        return clients.dynamodb()

    @cached_property
    def _sqs(self) -> "SQSClient":
        """One client for all queues, likewise."""
        return clients.sqs()


class Api(AwsPorts):
    """The ports of api, and the caches that its process keeps from one request to the next."""

    @cached_property
    def named(self) -> "TargetCache":
        from scheduler.admission.target_cache import TargetCache

        return TargetCache(self)

    @cached_property
    def direct(self) -> "DirectPath":
        from scheduler.pipeline.direct_path import DirectPath

        return DirectPath(self)

    @cached_property
    def pauses(self) -> "LaneStateCache":
        from scheduler.admission.lane_state import LaneStateCache

        return LaneStateCache(self)

    @cached_property
    def names(self) -> "Names":
        from scheduler.accounts.names import Names

        return Names(self)

    @cached_property
    def quotas(self) -> "QuotaGate":
        from scheduler.accounts.quota import QuotaGate

        return QuotaGate(self)


class Executor(AwsPorts):
    """The ports of an executor, and the state that its process keeps from one batch to the next: threads, child processes, caches."""

    def __init__(self, settings: Settings) -> None:
        from lambdas._children import Children
        from lambdas._make_way import Way
        from lambdas._pool import THREADS, InOrder
        from scheduler.callbacks.reports import Addresses
        from scheduler.pipeline.execute import Process
        from scheduler.pipeline.latency import REPORTERS
        from scheduler.targets.call_limit import CallLimit

        super().__init__(settings)
        self.lane = Lane(settings.lane)
        self.process = Process.of(self.lane, str(secrets.randbelow(REPORTERS)), self, ahead)
        self.threads = ThreadPoolExecutor(THREADS, "job")
        self.in_order = InOrder(self.clock)
        self.children = Children()
        self.limit = CallLimit(settings.rules.calls_at_once)
        self.way = Way(_call_fetcher, self.clock)
        self.callbacks = Addresses(settings.api_url.replace("{endpoint}", os.environ.get("AWS_ENDPOINT_URL", "")), self.secrets)


@cache
def ports() -> AwsPorts:
    """Return the ports of a function that keeps no other state."""
    return AwsPorts(Settings.parse(os.environ))


@cache
def api() -> Api:
    return Api(Settings.parse(os.environ))


@cache
def execute() -> Executor:
    return Executor(Settings.parse(os.environ))


def pool() -> "ThreadPool":
    """Create the pool for the jobs of one batch. Its threads and child processes belong to the executor and outlive it."""
    from lambdas._pool import ThreadPool

    at = execute()
    return ThreadPool(
        at.threads,
        at.clock,
        at.children,
        lambda: at.outputs,
        in_order=at.in_order,
        allow_private=at.rules.allow_private_http,
        reach=at.reach,
        calls=calls,
        callbacks=at.callbacks.of,
        named=at.process.named,
        fetcher=at.settings.fetch_function,
        limit=at.limit,
        secrets=_secrets_of,
        admits_mail=_admits_mail,
    )


def ahead(job: Job, jobs: int) -> int:
    """Return how long before its instant (ms) the pool gets a job that the executor has just taken; `jobs`: those of its batch."""
    from lambdas import _pool
    from scheduler.targets import registry

    try:
        target = registry.load(job.spec.type)  # also imports the type, before the instant
    except registry.UnknownType:  # the pool reports it, for this job alone
        return 0
    if not (target.ahead_ms and execute().settings.fetch_function):
        return _pool.ahead(jobs, prepares=target.prepares)
    execute().way.use(job.due_at, (job.spec.timeout_ms + target.ahead_ms) / 1000)
    return target.ahead_ms


def _call_fetcher(seconds: float) -> None:
    from scheduler.targets import aws_call, fetch_call
    from scheduler.targets.calls import Refused

    at, is_busy = execute(), False
    if not at.limit.take():
        return
    try:
        aws_call.invoke(calls(), at.settings.fetch_function, "{}", wait=True, left=lambda: seconds)
    except Exception as error:  # the job itself reports a lasting error
        is_busy = isinstance(error, Refused) and error.code in fetch_call.BUSY
        logger.info("could not start the function that calls URLs ahead of its first job")
    finally:
        (at.limit.refused if is_busy else at.limit.answered)()


def _admits_mail(job: Job, recipients: int) -> bool:
    from scheduler.targets import mail_budget  # with the first e-mail

    at = execute()
    return mail_budget.admit(job.owner, recipients, at.rules.mails_per_day, at.users, at.clock.now())


def _secrets_of(job: Job, name: str) -> Sequence[str]:
    """Return the values of a secret of the job's owner, or of its named target if `named_target.secret_of` composed the name."""
    target, _, own = name.rpartition("/")
    return execute().secrets.values(f"targets/{target}" if target else job.key.owner, own, execute().clock.now())


@cache
def calls() -> "Calls":
    """Return the means by which an executor calls AWS for its jobs. It is loaded with the first job that needs it."""
    from scheduler.storage.aws.calls import AwsCalls

    return AwsCalls(execute().clock)
