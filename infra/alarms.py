"""The alarms, by what users or operators would notice, and the topic that notifies operators.

A function that fails or is throttled has no alarm of its own: its missing work rings one of these. The dashboard shows its errors.
"""

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
from infra.storage import BY_MONTH_INDEX, BY_TASK_INDEX, REPLENISH_INDEX, Storage
from scheduler.insight import metrics
from scheduler.model.job import Lane

LAG_SECONDS = 180
PLAN_LAG_SECONDS = 180  # beyond the three minutes that plan may take; when plan is due for a task, its stored runs reach 7.5 minutes ahead
LATE_MS = 10_000
LANE_AGE_SECONDS = 1_800  # a message is up to 4 minutes old when it becomes visible, and its job may run for 15
WORK_MINUTES = 5  # a step that is due is taken up within a second
COUNTED_LATE_MS = 300_000  # how far the counters may lag behind the streams
# Indexes without an alarm, which costs ten cents a month. Their entries are one a request or one a run, and change seldom: one partition
# gets no more writes than the API accepts in a second, or than tasks are planned in a slot.
CALM_INDEXES = (BY_TASK_INDEX, REPLENISH_INDEX, BY_MONTH_INDEX)
NOT_BREACHING = cloudwatch.TreatMissingData.NOT_BREACHING
BREACHING = cloudwatch.TreatMissingData.BREACHING
RUNBOOK = "docs/reference/metrics-alarms.md"  # its table of alarms has a row for each entry


class Description(NamedTuple):
    """The text of an alarm, for an operator who reads it in a mail."""

    entry: str
    """The name of its row in the runbook."""
    happened: str
    effect: str
    first: str
    """The first step, in the imperative."""

    @property
    def text(self) -> str:
        return f"{self.happened} {self.effect} First step: {self.first} Runbook: {self.entry} in {RUNBOOK}."


class Operators(Construct):
    """The operators' topic, and the only place that makes an alarm."""

    def __init__(self, scope: Construct, id: str, settings: Settings) -> None:
        super().__init__(scope, id)
        self.alarms: list[cloudwatch.Alarm] = []
        self.topic = sns.Topic(self, "Topic", enforce_ssl=settings.tls_only)
        # A topic policy replaces the default one, so the alarms of this account need a permission of their own.
        self.topic.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                actions=["sns:Publish"],
                resources=[self.topic.topic_arn],
                conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}},
            )
        )
        if settings.operator_email:
            self.topic.add_subscription(subscriptions.EmailSubscription(settings.operator_email))

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
        missing: cloudwatch.TreatMissingData = NOT_BREACHING,
        notify: bool = True,
    ) -> cloudwatch.Alarm:
        """Add an alarm for a metric that is above (or below) the threshold for `minutes` minutes in a row.

        `notify`: operators are notified when it rings and when it ends.
        """
        compare = cloudwatch.ComparisonOperator
        made = cloudwatch.Alarm(
            scope,
            id,
            metric=metric.with_(period=Duration.minutes(1)),
            threshold=above if above is not None else below or 0,
            comparison_operator=compare.GREATER_THAN_THRESHOLD if above is not None else compare.LESS_THAN_THRESHOLD,
            evaluation_periods=minutes,
            treat_missing_data=missing,
            alarm_description=description.text,
        )
        self.alarms.append(made)
        if notify:
            made.add_alarm_action(actions.SnsAction(self.topic))
            made.add_ok_action(actions.SnsAction(self.topic))
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
        project: lambda_.Function,
        settings: Settings,
    ) -> None:
        super().__init__(scope, id)
        self.ages: dict[Lane, cloudwatch.Alarm] = {}
        self._engine(operators, lanes, settings)
        self._on_time(operators, lanes, settings)
        self._data(operators, lanes, storage, project)
        failed = Description(
            "ApiErrors",
            "The API answered with a 5xx status.",
            "A client's request failed: 503 if a table is throttled, 500 for a bug.",
            "Find the request id in the log of api.",
        )
        operators.alarm(self, "ApiErrors", api.metric_server_error(statistic="Sum"), failed, above=0)

    def _engine(self, operators: Operators, lanes: Lanes, settings: Settings) -> None:
        """Tick emits its lag every minute: without it, tick does not work. Tick also notices if plan does not work."""
        lag = Description(
            "Lag",
            f"For 3 minutes, tick has not run, or a minute has been open for more than {LAG_SECONDS} s.",
            "Jobs start late. None is lost.",
            "Check that the schedule of tick is enabled, and look for errors and throttles on the dashboard.",
        )
        plan_lag = Description(
            "PlanLag",
            f"For 3 minutes, plan has not run, or has been more than {PLAN_LAG_SECONDS} s behind.",
            "Runs of tasks may start late.",
            "Check that the schedule of plan is enabled, and read its log.",
        )
        capacity = Description(
            "Capacity",
            "For 3 minutes, the jobs of the next ten minutes have required more executors than the stage allows.",
            "Jobs will start late, unless they mostly wait for answers.",
            "Read GET /forecast. If the requirement stays high, raise `concurrency`.",
        )
        for id, metric, service, above, description in (
            ("Lag", metrics.OLDEST_OPEN_MINUTE, "tick", LAG_SECONDS, lag),
            ("PlanLag", metrics.PLAN_LAG, "tick", PLAN_LAG_SECONDS, plan_lag),
            ("Capacity", metrics.REQUIRED, "scale", settings.deployed.executors, capacity),
        ):
            missing = BREACHING if metric == metrics.OLDEST_OPEN_MINUTE else NOT_BREACHING
            operators.alarm(self, id, own_metric(metric, service, "Maximum"), description, above=above, minutes=3, missing=missing)
        # The age of the oldest message is useless here: a step may hide its message for an hour, and SQS counts hidden messages too.
        waiting = lanes.work.metric_approximate_number_of_messages_visible(statistic="Minimum")
        at_once = settings.rules.units + settings.rules.overdue_units  # these become visible at the same second of every minute
        stuck = Description(
            "Work",
            f"For {WORK_MINUTES} minutes, due steps of the engine have not been carried out.",
            "Jobs may start late. None is lost.",
            "Look for errors and throttles of dispatch on the dashboard, and check that the trigger of the work queue is enabled.",
        )
        operators.alarm(self, "Work", waiting, stuck, above=at_once, minutes=WORK_MINUTES)

    def _on_time(self, operators: Operators, lanes: Lanes, settings: Settings) -> None:
        late = LATE_MS - 1  # "above" includes the limit itself
        delay = Description(
            "StartDelay",
            "At least one job in a hundred started 10 s late or later, though it waited only for its time.",
            "Jobs start late.",
            "Look on the dashboard for an old message in a lane, an open minute, errors and throttles.",
        )
        overhead = Description(
            "JobOverhead",
            "At least one job in a hundred ended 10 s later than its run time explains.",
            "Jobs start late, or their ends cannot be stored.",
            "Check the alarm StartDelay, and look for errors of the executors on the dashboard.",
        )
        operators.alarm(self, "StartDelay", own_metric(metrics.START_DELAY, "project", "p99"), delay, above=late)
        operators.alarm(self, "JobOverhead", own_metric(metrics.OVERHEAD, "project", "p99"), overhead, above=late)
        if settings.rules.lag_canary:
            seen = own_metric(metrics.CANARY_DELAY, "project", "SampleCount")
            gone = Description(
                "NoCanary",
                "For 5 minutes, no canary job of the scheduler has ended.",
                "The one-time lane is paused, or a part of the scheduler is stuck.",
                "Check whether the lane is paused, then the alarms Lag and CountersBehind.",
            )
            operators.alarm(self, "NoCanary", seen, gone, below=1, minutes=5, missing=BREACHING)
        for lane, queue in lanes.queues.items():
            age = queue.metric_approximate_age_of_oldest_message(statistic="Maximum")
            old = Description(
                "Age",
                f"For 5 minutes, the oldest message of the lane {lane} has been more than {LANE_AGE_SECONDS} s old.",
                "Its executors fail or do not keep up. Jobs are late. None is lost.",
                "Compare the running executors with `concurrency`, and look for errors and throttles on the dashboard.",
            )
            self.ages[lane] = operators.alarm(self, f"{camel(lane)}Age", age, old, above=LANE_AGE_SECONDS, minutes=5)

    def _data(self, operators: Operators, lanes: Lanes, storage: Storage, project: lambda_.Function) -> None:
        self._throttles(operators, storage)
        behind = Description(
            "CountersBehind",
            "For 3 minutes, the counters have been more than 5 minutes behind.",
            "Statistics, forecast and notices are late. Jobs are not affected.",
            "Read the log of project.",
        )
        operators.alarm(
            self, "CountersBehind", project.metric("IteratorAge", statistic="Maximum"), behind, above=COUNTED_LATE_MS, minutes=3
        )
        unreadable = Description(
            "Unreadable",
            "An item of a table or a record of a stream cannot be read.",
            "The item waits, unchanged, for a version that can read it. The record is missing from the counters.",
            "Search the logs for `cannot be read`. After a rollback, deploy the newer version again.",
        )
        operators.alarm(self, "Unreadable", own_metric(metrics.UNREADABLE, "storage", "Sum"), unreadable, above=0)
        dead = Description(
            "DeadLetters",
            "A job failed permanently, or was killed.",
            "The job does not run again by itself.",
            "List the errors with GET /dead-letters. Many jobs of one error mean that their target is down.",
        )
        operators.alarm(self, "DeadLetters", own_metric(metrics.DEAD, "project", "Sum"), dead, above=0)
        unsettled = Description(
            "Dead",
            "For 5 minutes, messages have been in the dead-letter queue of the lanes: bury does not settle them.",
            "The jobs of these messages wait.",
            "Read the log of bury.",
        )
        visible = lanes.dead.metric_approximate_number_of_messages_visible(statistic="Minimum")
        operators.alarm(self, "Dead", visible, unsettled, above=0, minutes=5)
        buried = Description(
            "Buried",
            "The message of a job reached the dead-letter queue: its executors ended, or a table refused writes.",
            "The job is enqueued again. None is lost.",
            "Find the job's id in the log of bury, then read its reason and its attempts.",
        )
        operators.alarm(self, "Buried", own_metric(metrics.BURIED, "bury", "Sum"), buried, above=0)

    def _throttles(self, operators: Operators, storage: Storage) -> None:
        """Of the indexes too: a table refuses a write that one of its indexes refuses, and its own metric does not count that."""
        table = Description(
            "Throttles",
            "For 3 minutes, DynamoDB has throttled writes of the jobs table.",
            "Writes are repeated, so jobs may be late.",
            "Compare capacity and throttles on the dashboard, then raise the table's warm throughput.",
        )
        name, throttles = storage.jobs.table_name, "WriteThrottleEvents"
        operators.alarm(self, "JobsThrottles", table_metric(name, throttles, "Sum"), table, above=0, minutes=3)
        for indexed, index in storage.indexes:
            if index in CALM_INDEXES:
                continue
            of_index = Description(
                "Throttles",
                f"For 3 minutes, DynamoDB has throttled writes of the index {index}, and with them writes of its table.",
                "Writes are repeated, so jobs or requests may be late.",
                "Compare capacity and throttles on the dashboard, then find the hot partition by the runbook.",
            )
            metric = table_metric(indexed.table_name, throttles, "Sum", index=index)
            operators.alarm(self, f"{index.capitalize()}Throttles", metric, of_index, above=0, minutes=3)


def table_metric(table: str, name: str, statistic: str, index: str | None = None) -> cloudwatch.Metric:
    """A metric of DynamoDB for one index of a table, or for the table without its indexes.

    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/metrics-dimensions.html
    """
    dimensions = {"TableName": table} | ({} if index is None else {"GlobalSecondaryIndexName": index})
    return cloudwatch.Metric(namespace="AWS/DynamoDB", metric_name=name, dimensions_map=dimensions, statistic=statistic)


def own_metric(name: str, service: str, statistic: str) -> cloudwatch.Metric:
    """A metric that our functions emit."""
    return cloudwatch.Metric(namespace=metrics.NAMESPACE, metric_name=name, dimensions_map={metrics.SERVICE: service}, statistic=statistic)
