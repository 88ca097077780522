"""tick: every minute, opens the minutes ahead, starts their dispatchers, looks again, closes."""

from aws_cdk import Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_scheduler_targets as targets
from constructs import Construct

from infra.function import Foundation, Function, allow, change_jobs
from lambdas._settings import TickSettings


class Tick(Construct):
    """The function and the schedule that calls it."""

    def __init__(self, scope: Construct, id: str, foundation: Foundation, dispatch: lambda_.Function) -> None:
        super().__init__(scope, id)
        settings, storage, lanes = foundation.settings, foundation.storage, foundation.lanes
        self.function = Function(
            self,
            "tick",
            foundation,
            TickSettings(**foundation.hand_over, dispatch_function=dispatch.function_name, units=settings.units),
            grants=[
                allow(  # cursor, units, looks; a minute closes in a transaction, which needs the grants of its parts
                    storage.ledger.table_arn, "dynamodb:GetItem", "dynamodb:Query", "dynamodb:PutItem", "dynamodb:DeleteItem"
                ),
                allow(storage.jobs.table_arn, "dynamodb:PutItem", "dynamodb:DeleteItem"),  # canaries
                allow(storage.jobs.table_arn, "dynamodb:BatchGetItem"),  # rechecks read whole jobs
                change_jobs(foundation),
                allow(storage.due_index_arn, "dynamodb:Query", "dynamodb:Scan"),  # the scan looks for the oldest slot of an empty ledger
                allow(lanes.arns, "sqs:SendMessage", "sqs:GetQueueAttributes"),
                allow(dispatch.function_arn, "lambda:InvokeFunction"),
            ],
            timeout=Duration.minutes(5),  # it stays while units are open, to replace a dead dispatcher in seconds
        )
        self.schedule = scheduler.Schedule(
            self,
            "EveryMinute",
            description="Punctual's heartbeat",
            schedule=scheduler.ScheduleExpression.rate(Duration.minutes(1)),
            target=targets.LambdaInvoke(
                self.function,
                role=self._schedule_role(),
                retry_attempts=1,  # the next minute's tick does all that this one missed
                max_event_age=Duration.minutes(1),
            ),
        )

    def _schedule_role(self) -> iam.IRole:
        role = iam.Role(
            self,
            "ScheduleRole",
            assumed_by=iam.ServicePrincipal("scheduler.amazonaws.com"),
            inline_policies={"Grants": iam.PolicyDocument(statements=[allow(self.function.function_arn, "lambda:InvokeFunction")])},
        )
        # Closed: the target would add every version of the function.
        return role.without_policy_updates()
