"""The alarms, by what users or operators would notice, and the topic that notifies operators.

A function that fails or is throttled has no alarm of its own: what it does not do rings one of these. The dashboard shows its errors.
"""

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
from infra.storage import DUE_INDEX, Storage
from scheduler.insight import metrics
from scheduler.model.job import Lane

LAG_SECONDS = 180
PLAN_LAG_SECONDS = 180  # beyond the three minutes that plan allows every minute: when its minute comes, a task has runs for 7.5 minutes
LATE_MS = 10_000
LANE_AGE_SECONDS = 1_800  # a message is up to 4 minutes old when it becomes visible, and its job may run for 15
WORK_MINUTES = 5  # a step that is due is taken up within a second
COUNTED_LATE_MS = 300_000  # how far the counters may lag behind the streams
NOT_BREACHING = cloudwatch.TreatMissingData.NOT_BREACHING
BREACHING = cloudwatch.TreatMissingData.BREACHING


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
        description: str,
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
            alarm_description=description,
        )
        self.alarms.append(made)
        if notify:
            made.add_alarm_action(actions.SnsAction(self.topic))
            made.add_ok_action(actions.SnsAction(self.topic))
        return made

    @staticmethod
    def call(function: lambda_.IFunction, *alarms: cloudwatch.Alarm) -> None:
        """Let CloudWatch call the function when one of the alarms begins to ring; the function may then be called by it."""
        for each in alarms:
            each.add_alarm_action(actions.LambdaAction(function))


class Alarms(Construct):
    """All alarms but those of notify and provision, which are in `notify.py` and `provision.py`."""

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
        operators.alarm(self, "ApiErrors", api.metric_server_error(statistic="Sum"), "The API answered with a 5xx status", above=0)

    def _engine(self, operators: Operators, lanes: Lanes, settings: Settings) -> None:
        """Each minute tick emits its lag: a missing one means that it does not do its work. It also notices a plan that does not."""
        for id, metric, service, above, description in (
            (
                "Lag",
                metrics.OLDEST_OPEN_MINUTE,
                "tick",
                LAG_SECONDS,
                f"No tick, or a minute is open for over {LAG_SECONDS} s: jobs are late",
            ),
            (
                "PlanLag",
                metrics.PLAN_LAG,
                "tick",
                PLAN_LAG_SECONDS,
                f"No plan, or it is over {PLAN_LAG_SECONDS} s behind: runs may be late",
            ),
            (
                "Capacity",
                metrics.REQUIRED,
                "scale",
                settings.deployed.executors,
                "The next ten minutes require more executors than there may be",
            ),
        ):
            missing = BREACHING if metric == metrics.OLDEST_OPEN_MINUTE else NOT_BREACHING
            operators.alarm(self, id, own_metric(metric, service, "Maximum"), description, above=above, minutes=3, missing=missing)
        # The age of the oldest message says nothing here: a step may hide its message for an hour, and SQS counts hidden messages too.
        waiting = lanes.work.metric_approximate_number_of_messages_visible(statistic="Minimum")
        at_once = settings.rules.units + settings.rules.overdue_units  # these become visible at the same second of every minute
        stuck = f"Steps of the engine have been due for {WORK_MINUTES} minutes without being taken up: jobs may be late"
        operators.alarm(self, "Work", waiting, stuck, above=at_once, minutes=WORK_MINUTES)

    def _on_time(self, operators: Operators, lanes: Lanes, settings: Settings) -> None:
        late = LATE_MS - 1  # "above" includes the limit itself
        for id, metric, description in (
            ("StartDelay", metrics.START_DELAY, "At least one job in a hundred starts 10 s late, though it waits only for its time"),
            ("JobOverhead", metrics.OVERHEAD, "Jobs end 10 s later than their own run time explains: one in a hundred of a batch, or more"),
        ):
            operators.alarm(self, id, own_metric(metric, "project", "p99"), description, above=late)
        if settings.rules.lag_canary:
            seen = own_metric(metrics.CANARY_DELAY, "project", "SampleCount")
            gone = "No canary job of the scheduler has ended for 5 minutes: some part of the scheduler is stuck"
            operators.alarm(self, "NoCanary", seen, gone, below=1, minutes=5, missing=BREACHING)
        for lane, queue in lanes.queues.items():
            age = queue.metric_approximate_age_of_oldest_message(statistic="Maximum")
            old = f"The lane {lane} has held a message over {LANE_AGE_SECONDS} s old for 5 minutes: its executors do not keep up, or fail"
            self.ages[lane] = operators.alarm(self, f"{camel(lane)}Age", age, old, above=LANE_AGE_SECONDS, minutes=5)

    def _data(self, operators: Operators, lanes: Lanes, storage: Storage, project: lambda_.Function) -> None:
        throttled = table_metric(storage.jobs.table_name, "WriteThrottleEvents", "Sum")
        operators.alarm(self, "JobsThrottles", throttled, "DynamoDB throttles writes of the table Jobs", above=0, minutes=3)
        # All jobs of a minute are in few partitions of this index, and what it cannot take, the table refuses as well.
        indexed = table_metric(storage.jobs.table_name, "WriteThrottleEvents", "Sum", index=DUE_INDEX)
        operators.alarm(self, "DueThrottles", indexed, "DynamoDB throttles writes of the index of due jobs", above=0, minutes=3)
        behind = project.metric("IteratorAge", statistic="Maximum")
        operators.alarm(self, "CountersBehind", behind, "The counters are over 5 minutes behind", above=COUNTED_LATE_MS, minutes=3)
        unreadable = own_metric(metrics.UNREADABLE, "storage", "Sum")
        what = "An item or a record of a stream cannot be read: it waits for an update, or is missing from the counters"
        operators.alarm(self, "Unreadable", unreadable, what, above=0)
        dead = own_metric(metrics.DEAD, "project", "Sum")
        operators.alarm(self, "DeadLetters", dead, "A job failed for good, or was killed", above=0)
        unsettled = lanes.dead.metric_approximate_number_of_messages_visible(statistic="Minimum")
        operators.alarm(self, "Dead", unsettled, "bury does not settle the messages of the dead-letter queue", above=0, minutes=5)
        operators.alarm(self, "Buried", own_metric(metrics.BURIED, "bury", "Sum"), "A job's message reached the dead-letter queue", above=0)


def table_metric(table: str, name: str, statistic: str, index: str | None = None) -> cloudwatch.Metric:
    """A metric of DynamoDB for one index of a table, or for the table without its indexes.

    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/metrics-dimensions.html
    """
    dimensions = {"TableName": table} | ({} if index is None else {"GlobalSecondaryIndexName": index})
    return cloudwatch.Metric(namespace="AWS/DynamoDB", metric_name=name, dimensions_map=dimensions, statistic=statistic)


def own_metric(name: str, service: str, statistic: str) -> cloudwatch.Metric:
    """A metric that our functions emit."""
    return cloudwatch.Metric(namespace=metrics.NAMESPACE, metric_name=name, dimensions_map={metrics.SERVICE: service}, statistic=statistic)
