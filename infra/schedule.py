"""The schedule by which EventBridge calls a function every minute."""

from aws_cdk import Aws, Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_scheduler_targets as targets
from constructs import Construct

from infra.function import allow


def every_minute(scope: Construct, function: lambda_.Alias, description: str) -> scheduler.Schedule:
    """Create the schedule. It retries only once: the next minute's call catches up on the work of a missed one."""
    return scheduler.Schedule(
        scope,
        "EveryMinute",
        description=description,
        schedule=scheduler.ScheduleExpression.rate(Duration.minutes(1)),
        target=targets.LambdaInvoke(function, role=_role(scope, function), retry_attempts=1, max_event_age=Duration.minutes(1)),
    )


def _role(scope: Construct, function: lambda_.Alias) -> iam.IRole:
    # The group, not the schedule, as AWS asks for: https://docs.aws.amazon.com/scheduler/latest/UserGuide/cross-service-confused-deputy-prevention.html
    group = Stack.of(scope).format_arn(service="scheduler", resource="schedule-group", resource_name="default")
    ours = {"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID, "aws:SourceArn": group}}
    role = iam.Role(
        scope,
        "ScheduleRole",
        assumed_by=iam.ServicePrincipal("scheduler.amazonaws.com", conditions=ours),
        inline_policies={"Grants": iam.PolicyDocument(statements=[allow(function.function_arn, "lambda:InvokeFunction")])},
    )
    # Closed: the target construct would add every version of the function.
    return role.without_policy_updates()
