"""The composition root: reads the settings from the environment and creates the ports on AWS, each when it is first used.

An import only defines names. On Lambda, a handler's import also creates the ports of its first invocation (`_init.end`).
"""

import logging
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from lambdas._clock import SystemClock
from lambdas._settings import Settings
from scheduler import VERSION
from scheduler.model.job import Lane
from scheduler.model.rules import Rules
from scheduler.storage.aws import clients, readable
from scheduler.storage.aws.jobs import DynamoJobs
from scheduler.storage.aws.lanes import SqsLanes
from scheduler.storage.aws.ledger import DynamoLedger
from scheduler.storage.confirmed import ConfirmedRules
from scheduler.storage.ports import (
    Calendars,
    Clock,
    Counters,
    EventBus,
    Followers,
    Functions,
    Groups,
    Identity,
    IntakeDeadLetters,
    Jobs,
    Lanes,
    Ledger,
    Monitors,
    Notices,
    Operations,
    OrderingQueues,
    Outputs,
    OwnerAlerts,
    Owners,
    Receipts,
    Receivers,
    RunTimers,
    Secrets,
    Targets,
    Tasks,
    Traces,
    Trail,
    Users,
    WorkQueue,
)

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_sqs import SQSClient

    from lambdas._executor import Executor
    from scheduler.accounts.callers import Callers
    from scheduler.accounts.names import Names
    from scheduler.accounts.quota import QuotaGate
    from scheduler.admission.lane_state import LaneStateCache
    from scheduler.admission.target_cache import TargetCache
    from scheduler.intake.intake import Services
    from scheduler.monitors.throttle import PingThrottle
    from scheduler.pipeline.direct_path import DirectPath
    from scheduler.storage.aws.intake_queues import SqsIntakeQueues
    from scheduler.storage.aws.notice_queue import SqsNoticeQueue
    from scheduler.targets.base import Reach


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
        return self._confirmed.get() if self.settings.get("ledger_table") else self.settings.rules

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
        return DynamoTasks(self._dynamodb, settings.tasks_table, jobs=settings.get("jobs_table"), ledger=settings.get("ledger_table"))

    @cached_property
    def calendars(self) -> Calendars:
        from scheduler.storage.aws.calendars import DynamoCalendars

        return DynamoCalendars(self._dynamodb, self.settings.tasks_table)

    @cached_property
    def orders(self) -> OrderingQueues:
        from scheduler.storage.aws.ordering_queues import DynamoOrderingQueues

        return DynamoOrderingQueues(self._dynamodb, self.settings.tasks_table)

    @cached_property
    def groups(self) -> Groups:
        from scheduler.storage.aws.groups import DynamoGroups

        return DynamoGroups(self._dynamodb, self.settings.tasks_table)

    @cached_property
    def followers(self) -> Followers:
        from scheduler.storage.aws.followers import DynamoFollowers

        return DynamoFollowers(self._dynamodb, self.settings.tasks_table)

    @cached_property
    def ledger(self) -> Ledger:
        return DynamoLedger(self._dynamodb, self.settings.ledger_table)

    @cached_property
    def lanes(self) -> Lanes:
        topic = None
        if arn := self.settings.get("topic_arn"):
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
    def owners(self) -> Owners:
        from scheduler.storage.aws.owners import DynamoOwners

        return DynamoOwners(self._dynamodb, self.settings.users_table)

    @cached_property
    def identity(self) -> Identity:
        from scheduler.accounts import sso
        from scheduler.storage.aws.accounts import AppClient
        from scheduler.storage.aws.identity import CognitoIdentity

        settings = self.settings
        app = AppClient(settings.user_pool_client_id, settings.user_pool_client_secret)
        return CognitoIdentity(clients.cognito(), settings.user_pool, app, sso.of_setting(settings.sso))

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
    def monitors(self) -> Monitors:
        from scheduler.storage.aws.monitors import DynamoMonitors

        return DynamoMonitors(self._dynamodb, self.settings.ledger_table)

    @cached_property
    def run_timers(self) -> RunTimers:
        from scheduler.storage.aws.run_timers import DynamoRunTimers

        return DynamoRunTimers(self._dynamodb, self.settings.ledger_table)

    @cached_property
    def notices(self) -> Notices:
        from scheduler.storage.aws.notices import DynamoNotices

        return DynamoNotices(self._dynamodb, self.settings.get("notices_table"), self.notice_queue)  # project and api only send

    @cached_property
    def receivers(self) -> Receivers:
        from scheduler.storage.aws.receivers import DynamoReceivers

        return DynamoReceivers(self._dynamodb, self.settings.users_table)

    @cached_property
    def owner_alerts(self) -> OwnerAlerts:
        from scheduler.storage.aws.owner_alerts import DynamoOwnerAlerts

        return DynamoOwnerAlerts(self._dynamodb, self.settings.users_table)

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
    def traces(self) -> Traces:
        from scheduler.storage.aws.collector import Collector

        settings, region = self.settings, os.environ.get("AWS_REGION", "")
        resource = {"service.version": VERSION, "deployment.environment.name": settings.stage}
        resource |= {"cloud.provider": "aws", "cloud.region": region}
        return Collector(settings.traces_endpoint, settings.traces_secret, resource)

    @cached_property
    def outputs(self) -> Outputs:
        from scheduler.storage.aws.archive import FirehoseArchive
        from scheduler.storage.aws.outputs import S3Outputs

        bucket, stream = self.settings.get("outputs_bucket"), self.settings.archive_stream  # a function has one of them, not both
        archive = FirehoseArchive(clients.firehose(), stream) if stream else None
        return S3Outputs(clients.s3() if bucket else None, bucket, archive)

    @cached_property
    def intake_letters(self) -> IntakeDeadLetters:
        from scheduler.storage.aws.intake_letters import DynamoIntakeDeadLetters

        return DynamoIntakeDeadLetters(self._dynamodb, self.settings.ledger_table)

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
    def callers(self) -> "Callers":
        from scheduler.accounts.callers import Callers

        return Callers(self, self.quotas)

    @cached_property
    def quotas(self) -> "QuotaGate":
        from scheduler.accounts.quota import QuotaGate

        return QuotaGate(self)

    @cached_property
    def pings(self) -> "PingThrottle":
        from scheduler.monitors.throttle import PingThrottle

        return PingThrottle()

    @cached_property
    def intake(self) -> "Services":
        """The services that make jobs of messages: of the intake queues, and of dead letters that are retried."""
        from lambdas.rest.intake_reading import services

        return services(self, {name: owner for name, (owner, _) in self.settings.intake.items()})

    @cached_property
    def intake_queues(self) -> "SqsIntakeQueues":
        from scheduler.storage.aws.intake_queues import SqsIntakeQueues

        return SqsIntakeQueues(self._sqs, {name: url for name, (_, url) in self.settings.intake.items()})


@cache
def ports() -> AwsPorts:
    """Return the ports of a function that keeps no other state."""
    return AwsPorts(Settings.parse(os.environ))


@cache
def api() -> Api:
    return Api(Settings.parse(os.environ))


@cache
def execute() -> "Executor":
    from lambdas._executor import Executor

    return Executor(ports(), ports().settings)
