"""What wakes an operator, and the topic that tells them. `function.py` adds one alarm on the errors of each function."""

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
from scheduler import metrics

LAG_SECONDS = 180
PLAN_LAG_SECONDS = 180  # besides the three minutes that plan gives every minute: when its own comes, a task has 7.5 minutes of runs left
NOT_BREACHING = cloudwatch.TreatMissingData.NOT_BREACHING
BREACHING = cloudwatch.TreatMissingData.BREACHING


class Operators(Construct):
    """The operators' topic, and the only place that makes an alarm."""

    def __init__(self, scope: Construct, id: str, settings: Settings) -> None:
        super().__init__(scope, id)
        self.topic = sns.Topic(self, "Topic", enforce_ssl=settings.tls_only)
        # A topic policy replaces the default one, so the alarms of this account need their own leave.
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
        """Alarm when the metric is above (or below) the threshold for so many minutes in a row."""
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
    ) -> None:
        super().__init__(scope, id)
        for lane, queues in lanes.queues.items():
            dead = queues.dead.metric_approximate_number_of_messages_visible(statistic="Maximum")
            operators.alarm(self, f"{camel(lane)}Dead", dead, f"A dead letter waits in the lane {lane}", above=0)
        operators.alarm(self, "Buried", own_metric(metrics.BURIED, "bury", "Sum"), "A job ended in a dead-letter queue", above=0)
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
            f"Recurring tasks wait for their next runs for over {PLAN_LAG_SECONDS} s: runs may be late",
            above=PLAN_LAG_SECONDS,
        )
        for id, function, description in (
            ("NoTick", tick, "The scheduler has not ticked for 3 minutes: nothing is started"),
            ("NoPlan", plan, "Recurring tasks have not been planned for 3 minutes: their stored runs last a few minutes more"),
        ):
            called = function.metric_invocations(statistic="Sum")
            operators.alarm(self, id, called, description, below=1, minutes=3, missing=BREACHING)
        operators.alarm(self, "ApiErrors", api.metric_server_error(statistic="Sum"), "The API answered with a 5xx status", above=0)


def own_metric(name: str, service: str, statistic: str) -> cloudwatch.Metric:
    """A metric that our functions emit."""
    return cloudwatch.Metric(namespace=metrics.NAMESPACE, metric_name=name, dimensions_map={metrics.SERVICE: service}, statistic=statistic)
