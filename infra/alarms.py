"""The alarms in their classes, by what users or operators would notice, and the topics that notify operators.

The service causes pages; users' load and failing targets cause tickets. A function that fails or is throttled has no alarm of its own:
its missing work rings one of these. The dashboard shows its errors.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from aws_cdk import Aws, Duration
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from infra.lanes import Lanes, camel
from infra.settings import Settings
from infra.storage import BY_MONTH_INDEX, BY_TASK_INDEX, FAILURES_INDEX, MOVED_INDEX, REPLENISH_INDEX, Storage
from scheduler.insight import metrics
from scheduler.model.job import Lane

LAG_SECONDS = 180
PLAN_LAG_SECONDS = 180  # beyond the three minutes that plan may take; when plan is due for a task, its stored runs reach 7.5 minutes ahead
LATE_MS = 10_000
LANE_AGE_SECONDS = 1_800  # a message is up to 4 minutes old when it becomes visible, and its job may run for 15
WORK_MINUTES = 5  # a step that is due is taken up within a second
MANY_FAILED, FAILED_MINUTES = 20, 5  # a task that runs every minute fails 5 times in 5 minutes; 10,000 jobs a day of a dead target 35 times
COUNTED_LATE_MS = 300_000  # how far the counters may lag behind the streams
# Indexes without an alarm, which costs ten cents a month. Their entries are one a request or one a run, and change seldom: one partition
# gets no more writes than the API accepts in a second, or than tasks are planned in a slot.
CALM_INDEXES = (BY_TASK_INDEX, REPLENISH_INDEX, BY_MONTH_INDEX)
NOT_BREACHING = cloudwatch.TreatMissingData.NOT_BREACHING
BREACHING = cloudwatch.TreatMissingData.BREACHING
RUNBOOK = "docs/guides/runbook.md"  # it has a section for each entry


STATUS, FORECAST = "punctual status --everyone", "punctual forecast --everyone"


def doctor(settings: Settings) -> str:
    return f"make doctor STAGE={settings.stage}"


def log_of(function: lambda_.Function, options: str = "") -> str:
    """The command that prints a function's log of the last hour: https://docs.aws.amazon.com/cli/latest/reference/logs/tail.html"""
    return f"aws logs tail {function.log_group.log_group_name} --since 1h{options}"


class AlarmClass(StrEnum):
    """The reaction to an alarm. Pages and tickets have a topic of their own."""

    PAGE = "Page"  # the service fails to do its work: an operator acts now
    TICKET = "Ticket"  # users' load or targets cause it: an operator looks in working hours
    SIGNAL = "Signal"  # a function acts, and nobody is notified


class Description(NamedTuple):
    """The class and the text of an alarm, for an operator who reads it in a mail."""

    kind: AlarmClass
    entry: str
    """The name of its section in the runbook."""
    command: str
    """The first step, as a command line."""
    happened: str
    effect: str
    then: str
    """The second step: a clause in the imperative, with a small letter."""

    @property
    def text(self) -> str:
        runbook = f"Runbook: {self.entry} in {RUNBOOK}."
        return f"{self.kind}. First step: `{self.command}`. {self.happened} {self.effect} Then: {self.then} {runbook}"


class Operators(Construct):
    """The operators' topics, and the only place that makes an alarm."""

    def __init__(self, scope: Construct, id: str, settings: Settings) -> None:
        super().__init__(scope, id)
        self._namespace = metrics.namespace(settings.stage)
        self.alarms: list[tuple[AlarmClass, cloudwatch.Alarm]] = []
        self.topics = {
            AlarmClass.PAGE: self._topic("Topic", settings, settings.operator_email),
            AlarmClass.TICKET: self._topic("Tickets", settings, settings.ticket_email),
        }

    def own_metric(self, name: str, service: str, statistic: str) -> cloudwatch.Metric:
        """A metric that the functions of this stage emit."""
        dimensions = {metrics.SERVICE: service}
        return cloudwatch.Metric(namespace=self._namespace, metric_name=name, dimensions_map=dimensions, statistic=statistic)

    def _topic(self, id: str, settings: Settings, email: str | None) -> sns.Topic:
        topic = sns.Topic(self, id, enforce_ssl=settings.tls_only)
        # A topic policy replaces the default one, so the alarms of this account need a permission of their own.
        topic.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                actions=["sns:Publish"],
                resources=[topic.topic_arn],
                conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}},
            )
        )
        if email:
            topic.add_subscription(subscriptions.EmailSubscription(email))
        return topic

    def alarm(
        self,
        scope: Construct,
        id: str,
        metric: cloudwatch.Metric,
        description: Description,
        *,
        above: float | None = None,
        below: float | None = None,
        minutes: int = 1,
        period: int = 1,
        missing: cloudwatch.TreatMissingData = NOT_BREACHING,
    ) -> cloudwatch.Alarm:
        """Add an alarm for a metric that is above (or below) the threshold for `minutes` minutes in a row.

        The topic of its class is notified when it rings and when it ends. `period`: the minutes of one value of the metric.
        """
        compare = cloudwatch.ComparisonOperator
        made = cloudwatch.Alarm(
            scope,
            id,
            metric=metric.with_(period=Duration.minutes(period)),
            threshold=above if above is not None else below or 0,
            comparison_operator=compare.GREATER_THAN_THRESHOLD if above is not None else compare.LESS_THAN_THRESHOLD,
            evaluation_periods=minutes // period,
            treat_missing_data=missing,
            alarm_description=description.text,
        )
        self.alarms.append((description.kind, made))
        if topic := self.topics.get(description.kind):
            made.add_alarm_action(actions.SnsAction(topic))
            made.add_ok_action(actions.SnsAction(topic))
        return made

    @staticmethod
    def call(function: lambda_.IFunction, *alarms: cloudwatch.Alarm) -> None:
        """Let CloudWatch call the function when one of the alarms begins to ring, and grant it the permission."""
        for each in alarms:
            each.add_alarm_action(actions.LambdaAction(function))


class Alarms(Construct):
    """All alarms except those of announce, notify and provision, which are in the modules of these verbs."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        operators: Operators,
        lanes: Lanes,
        api: apigateway.HttpApi,
        storage: Storage,
        functions: Mapping[str, lambda_.Function],
        settings: Settings,
    ) -> None:
        super().__init__(scope, id)
        self.ages: dict[Lane, cloudwatch.Alarm] = {}
        self._engine(operators, lanes, functions, settings)
        self._on_time(operators, lanes, settings)
        self._data(operators, lanes, functions, settings)
        self._throttles(operators, storage, functions)
        failed = Description(
            AlarmClass.PAGE,
            "ApiErrors",
            log_of(functions["api"], " --filter-pattern '{ $.status >= 500 }'"),
            "The API answered with a 5xx status.",
            "A client's request failed: 503 if a table is throttled, 500 for a bug.",
            "search that log for the request's id.",
        )
        operators.alarm(self, "ApiErrors", api.metric_server_error(statistic="Sum"), failed, above=0)

    def _engine(self, operators: Operators, lanes: Lanes, functions: Mapping[str, lambda_.Function], settings: Settings) -> None:
        """Tick emits its lag every minute: without it, tick does not work. Tick also notices if plan does not work."""
        lag = Description(
            AlarmClass.PAGE,
            "Lag",
            doctor(settings),
            f"For 3 minutes, tick has not run, or a minute has been open for more than {LAG_SECONDS} s.",
            "Jobs start late. None is lost.",
            "check that the schedule of tick is enabled, and look for errors and throttles on the dashboard.",
        )
        plan_lag = Description(
            AlarmClass.PAGE,
            "PlanLag",
            log_of(functions["plan"]),
            f"For 3 minutes, plan has not run, or has been more than {PLAN_LAG_SECONDS} s behind.",
            "Runs of tasks may start late.",
            "if the log is empty, check that the schedule of plan is enabled.",
        )
        capacity = Description(
            AlarmClass.TICKET,
            "Capacity",
            FORECAST,
            "For 3 minutes, the jobs of the next ten minutes have required more executors than the stage allows.",
            "Jobs will start late, unless they mostly wait for answers.",
            "if the requirement stays high, raise `concurrency`.",
        )
        for id, metric, service, above, description in (
            ("Lag", metrics.OLDEST_OPEN_MINUTE, "tick", LAG_SECONDS, lag),
            ("PlanLag", metrics.PLAN_LAG, "tick", PLAN_LAG_SECONDS, plan_lag),
            ("Capacity", metrics.REQUIRED, "scale", settings.deployed.executors, capacity),
        ):
            missing = BREACHING if metric == metrics.OLDEST_OPEN_MINUTE else NOT_BREACHING
            operators.alarm(
                self, id, operators.own_metric(metric, service, "Maximum"), description, above=above, minutes=3, missing=missing
            )
        # The age of the oldest message is useless here: a step may hide its message for an hour, and SQS counts hidden messages too.
        waiting = lanes.work.metric_approximate_number_of_messages_visible(statistic="Minimum")
        at_once = settings.rules.units + settings.rules.overdue_units  # these become visible at the same second of every minute
        stuck = Description(
            AlarmClass.PAGE,
            "Work",
            doctor(settings),
            f"For {WORK_MINUTES} minutes, due steps of the engine have not been carried out.",
            "Jobs may start late. None is lost.",
            "look for errors and throttles of the worker on the dashboard, and check that the trigger of the work queue is enabled.",
        )
        operators.alarm(self, "Work", waiting, stuck, above=at_once, minutes=WORK_MINUTES)

    def _on_time(self, operators: Operators, lanes: Lanes, settings: Settings) -> None:
        late = LATE_MS - 1  # "above" includes the limit itself
        delay = Description(
            AlarmClass.PAGE,
            "StartDelay",
            STATUS,
            "At least one job in a hundred started 10 s late or later, though it waited only for its time.",
            "Jobs start late.",
            "look on the dashboard for an old message in a lane, an open minute, errors and throttles.",
        )
        overhead = Description(
            AlarmClass.PAGE,
            "JobOverhead",
            STATUS,
            "At least one job in a hundred ended 10 s later than its run time explains.",
            "Jobs start late, or their ends cannot be stored.",
            "check the alarm StartDelay, and look for errors of the executors on the dashboard.",
        )
        operators.alarm(self, "StartDelay", operators.own_metric(metrics.START_DELAY, "project", "p99"), delay, above=late)
        operators.alarm(self, "JobOverhead", operators.own_metric(metrics.OVERHEAD, "project", "p99"), overhead, above=late)
        if settings.rules.lag_canary:
            seen = operators.own_metric(metrics.CANARY_DELAY, "project", "SampleCount")
            gone = Description(
                AlarmClass.PAGE,
                "NoCanary",
                STATUS,
                "For 5 minutes, no canary job of the scheduler has ended.",
                "The one-time lane is paused, or a part of the scheduler is stuck.",
                "if the lane is not paused, check the alarms Lag and CountersBehind.",
            )
            operators.alarm(self, "NoCanary", seen, gone, below=1, minutes=5, missing=BREACHING)
        for lane, queue in lanes.queues.items():
            age = queue.metric_approximate_age_of_oldest_message(statistic="Maximum")
            old = Description(
                AlarmClass.PAGE,
                "Age",
                STATUS,
                f"For 5 minutes, the oldest message of the lane {lane} has been more than {LANE_AGE_SECONDS} s old.",
                "Its executors fail or do not keep up. Jobs are late. None is lost.",
                "compare the running executors with `concurrency`, and look for errors and throttles on the dashboard.",
            )
            self.ages[lane] = operators.alarm(self, f"{camel(lane)}Age", age, old, above=LANE_AGE_SECONDS, minutes=5)

    def _data(self, operators: Operators, lanes: Lanes, functions: Mapping[str, lambda_.Function], settings: Settings) -> None:
        behind = Description(
            AlarmClass.PAGE,
            "CountersBehind",
            log_of(functions["project"]),
            "For 3 minutes, the counters have been more than 5 minutes behind.",
            "Statistics, forecast and notices are late. Jobs are not affected.",
            "search that log for errors: the batch is repeated until it succeeds.",
        )
        operators.alarm(
            self,
            "CountersBehind",
            functions["project"].metric("IteratorAge", statistic="Maximum"),
            behind,
            above=COUNTED_LATE_MS,
            minutes=3,
        )
        unreadable = Description(
            AlarmClass.PAGE,
            "Unreadable",
            doctor(settings),
            "An item of a table or a record of a stream cannot be read.",
            "The item waits, unchanged, for a version that can read it. The record is missing from the counters.",
            "after a rollback, deploy the newer version again; otherwise search the logs for `cannot be read`.",
        )
        operators.alarm(self, "Unreadable", operators.own_metric(metrics.UNREADABLE, "storage", "Sum"), unreadable, above=0)
        dead = Description(
            AlarmClass.TICKET,
            "DeadLetters",
            STATUS,
            f"More than {MANY_FAILED} jobs failed permanently or were killed within {FAILED_MINUTES} minutes.",
            "They do not run again by themselves.",
            "if many jobs have one error, their target is down: run them again when it works.",
        )
        operators.alarm(
            self,
            "DeadLetters",
            operators.own_metric(metrics.DEAD, "project", "Sum"),
            dead,
            above=MANY_FAILED,
            minutes=FAILED_MINUTES,
            period=FAILED_MINUTES,
        )
        unsettled = Description(
            AlarmClass.PAGE,
            "Dead",
            log_of(functions["bury"]),
            "For 5 minutes, messages have been in the dead-letter queue of the lanes: bury does not settle them.",
            "The jobs of these messages wait.",
            "search that log for `AccessDenied` and for refused writes.",
        )
        visible = lanes.dead.metric_approximate_number_of_messages_visible(statistic="Minimum")
        operators.alarm(self, "Dead", visible, unsettled, above=0, minutes=5)
        buried = Description(
            AlarmClass.PAGE,
            "Buried",
            log_of(functions["bury"]),
            "The message of a job reached the dead-letter queue: its executors ended, or a table refused writes.",
            "The job is enqueued again. None is lost.",
            "with the job's id in that log, read its reason and its attempts.",
        )
        operators.alarm(self, "Buried", operators.own_metric(metrics.BURIED, "bury", "Sum"), buried, above=0)

    def _throttles(self, operators: Operators, storage: Storage, functions: Mapping[str, lambda_.Function]) -> None:
        """Of the indexes too: a table refuses a write that one of its indexes refuses, and its own metric does not count that."""
        of_one_user = {FAILURES_INDEX: STATUS, MOVED_INDEX: log_of(functions["api"])}  # a hot partition has jobs of one user alone
        table = Description(
            AlarmClass.PAGE,
            "Throttles",
            FORECAST,
            "For 3 minutes, DynamoDB has throttled writes of the jobs table.",
            "Writes are repeated, so jobs may be late.",
            "compare capacity and throttles on the dashboard, and raise the table's warm throughput.",
        )
        name, throttles = storage.jobs.table_name, "WriteThrottleEvents"
        operators.alarm(self, "JobsThrottles", table_metric(name, throttles, "Sum"), table, above=0, minutes=3)
        for indexed, index in storage.indexes:
            if index in CALM_INDEXES:
                continue
            of_index = Description(
                AlarmClass.TICKET if index in of_one_user else AlarmClass.PAGE,
                "Throttles",
                of_one_user.get(index, FORECAST),
                f"For 3 minutes, DynamoDB has throttled writes of the index {index}, and with them writes of its table.",
                "Writes are repeated, so jobs or requests may be late.",
                "compare capacity and throttles on the dashboard, and find the hot partition by the runbook.",
            )
            metric = table_metric(indexed.table_name, throttles, "Sum", index=index)
            operators.alarm(self, f"{index.capitalize()}Throttles", metric, of_index, above=0, minutes=3)


def table_metric(table: str, name: str, statistic: str, index: str | None = None) -> cloudwatch.Metric:
    """A metric of DynamoDB for one index of a table, or for the table without its indexes.

    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/metrics-dimensions.html
    """
    dimensions = {"TableName": table} | ({} if index is None else {"GlobalSecondaryIndexName": index})
    return cloudwatch.Metric(namespace="AWS/DynamoDB", metric_name=name, dimensions_map=dimensions, statistic=statistic)
