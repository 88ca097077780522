"""The alarms, and the topic that notifies operators. `function.py` adds alarms on the errors and throttles of each function."""

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
from infra.storage import Storage
from scheduler.insight import metrics

LAG_SECONDS = 180
PLAN_LAG_SECONDS = 180  # beyond the three minutes that plan allows every minute: when its minute comes, a task has runs for 7.5 minutes
LATE_MS = 10_000
LANE_AGE_SECONDS = 60
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
    ) -> None:
        """Add an alarm for a metric that is above (or below) the threshold for `minutes` minutes in a row."""
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
        made.add_alarm_action(actions.SnsAction(self.topic))
        made.add_ok_action(actions.SnsAction(self.topic))


class Alarms(Construct):
    """The alarms that belong to no single function."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        operators: Operators,
        lanes: Lanes,
        tick: lambda_.Function,
        plan: lambda_.Function,
        api: apigateway.HttpApi,
        storage: Storage,
        project: lambda_.Function,
        settings: Settings,
    ) -> None:
        super().__init__(scope, id)
        self._on_time(operators, lanes, settings)
        self._holding(operators, storage, project)
        for lane, queues in lanes.queues.items():
            dead = queues.dead.metric_approximate_number_of_messages_visible(statistic="Maximum")
            operators.alarm(self, f"{camel(lane)}Dead", dead, f"The dead-letter queue of the lane {lane} is not empty", above=0)
        operators.alarm(self, "Buried", own_metric(metrics.BURIED, "bury", "Sum"), "A job's message reached a dead-letter queue", above=0)
        operators.alarm(
            self,
            "Lag",
            own_metric(metrics.OLDEST_OPEN_MINUTE, "tick", "Maximum"),
            f"The oldest minute that is not closed is over {LAG_SECONDS} s old: jobs may be late",
            above=LAG_SECONDS,
        )
        operators.alarm(
            self,
            "PlanLag",
            own_metric(metrics.PLAN_LAG, "plan", "Maximum"),
            f"Recurring tasks have waited for their next runs for over {PLAN_LAG_SECONDS} s: runs may be late",
            above=PLAN_LAG_SECONDS,
        )
        for id, function, description in (
            ("NoTick", tick, "The scheduler has not ticked for 3 minutes: nothing is started"),
            ("NoPlan", plan, "Recurring tasks have not been planned for 3 minutes: their stored runs are enough for a few minutes more"),
        ):
            called = function.metric_invocations(statistic="Sum")
            operators.alarm(self, id, called, description, below=1, minutes=3, missing=BREACHING)
        operators.alarm(self, "ApiErrors", api.metric_server_error(statistic="Sum"), "The API answered with a 5xx status", above=0)

    def _on_time(self, operators: Operators, lanes: Lanes, settings: Settings) -> None:
        late = LATE_MS - 1  # "above" includes the limit itself
        for id, metric, description in (
            ("StartDelay", metrics.START_DELAY, "At least one job in a hundred starts 10 s late, though it waits only for its time"),
            ("JobOverhead", metrics.OVERHEAD, "At least one job in a hundred ends 10 s later than its own run time explains"),
        ):
            operators.alarm(self, id, own_metric(metric, "project", "p99"), description, above=late)
        if settings.rules.lag_canary:
            delay = own_metric(metrics.CANARY_DELAY, "project", "Maximum")
            operators.alarm(self, "CanaryLate", delay, "The scheduler's canary job started 10 s late", above=late)
            seen = own_metric(metrics.CANARY_DELAY, "project", "SampleCount")
            gone = "No canary job of the scheduler has ended for 5 minutes: some part of the scheduler is stuck"
            operators.alarm(self, "NoCanary", seen, gone, below=1, minutes=5, missing=BREACHING)
        for lane, queues in lanes.queues.items():
            age = queues.main.metric_approximate_age_of_oldest_message(statistic="Maximum")
            old = f"The lane {lane} has held a message over {LANE_AGE_SECONDS} s old for 5 minutes: its executors do not keep up"
            # Messages delayed to their instants are up to four minutes old when they become visible: a single one is no backlog.
            operators.alarm(self, f"{camel(lane)}Age", age, old, above=LANE_AGE_SECONDS, minutes=5)
        # The age of the oldest message says nothing here: a step may hide its message for an hour, and SQS counts hidden messages too.
        waiting = lanes.work.metric_approximate_number_of_messages_visible(statistic="Minimum")
        at_once = settings.rules.units + settings.rules.overdue_units  # these become visible at the same second of every minute
        stuck = f"Steps of the engine have been due for {WORK_MINUTES} minutes without being taken up: jobs may be late"
        operators.alarm(self, "Work", waiting, stuck, above=at_once, minutes=WORK_MINUTES)

    def _holding(self, operators: Operators, storage: Storage, project: lambda_.Function) -> None:
        used = own_metric(metrics.USED, "scale", "Maximum")
        operators.alarm(self, "Capacity", used, "The next ten minutes require more executors than there may be", above=100, minutes=3)
        for name, table in (("Jobs", storage.jobs), ("Tasks", storage.tasks), ("Ledger", storage.ledger)):
            for kind in ("Read", "Write"):
                throttled = table_metric(table.table_name, f"{kind}ThrottleEvents", "Sum")
                operators.alarm(
                    self, f"{name}{kind}Throttles", throttled, f"DynamoDB throttles {kind.lower()}s of the table {name}", above=0, minutes=3
                )
        behind = project.metric("IteratorAge", statistic="Maximum")
        operators.alarm(self, "CountersBehind", behind, "The counters are over 5 minutes behind", above=COUNTED_LATE_MS, minutes=3)
        unreadable = own_metric(metrics.POISON, "project", "Sum")
        operators.alarm(self, "Unreadable", unreadable, "A stream record could not be read: it is missing from the counters", above=0)
        items = own_metric(metrics.UNREADABLE, "storage", "Sum")
        operators.alarm(
            self, "UnreadableItems", items, "An item that another version stored cannot be read: it waits for an update", above=0
        )
        dead = own_metric(metrics.DEAD, "project", "Sum")
        operators.alarm(self, "DeadLetters", dead, "A job failed for good, or was killed", above=0)


def table_metric(table: str, name: str, statistic: str) -> cloudwatch.Metric:
    """A metric of DynamoDB for a table, without its indexes."""
    return cloudwatch.Metric(namespace="AWS/DynamoDB", metric_name=name, dimensions_map={"TableName": table}, statistic=statistic)


def own_metric(name: str, service: str, statistic: str) -> cloudwatch.Metric:
    """A metric that our functions emit."""
    return cloudwatch.Metric(namespace=metrics.NAMESPACE, metric_name=name, dimensions_map={metrics.SERVICE: service}, statistic=statistic)
