"""tick: every minute, opens the minutes ahead, starts their dispatchers, reconciles past minutes and closes them."""

from aws_cdk import Duration
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.function import JOB_RESOURCES, Foundation, Function, allow, change_jobs, step_out
from infra.schedule import every_minute


class Tick(Construct):
    """The function and the schedule that calls it."""

    def __init__(self, scope: Construct, id: str, foundation: Foundation, dispatch: lambda_.Function) -> None:
        super().__init__(scope, id)
        storage, lanes = foundation.storage, foundation.lanes
        self.function = Function(
            self,
            "tick",
            foundation,
            foundation.environment(*JOB_RESOURCES, "ledger_table", dispatch_function=dispatch.function_name),
            grants=[
                allow(  # cursor, units, checks, paused lanes; a minute is closed in a transaction, which needs the grants of its parts
                    storage.ledger.table_arn, "dynamodb:GetItem", "dynamodb:Query", "dynamodb:PutItem", "dynamodb:DeleteItem"
                ),
                allow(storage.jobs.table_arn, "dynamodb:PutItem", "dynamodb:DeleteItem"),  # canaries
                allow(storage.jobs.table_arn, "dynamodb:BatchGetItem"),  # reconciling reads whole jobs
                change_jobs(foundation),
                *step_out(foundation),  # ends jobs whose last attempt died with its executor
                allow(storage.due_index_arn, "dynamodb:Query", "dynamodb:Scan"),  # the scan finds the oldest slot if the ledger is empty
                allow(lanes.arns, "sqs:SendMessage", "sqs:GetQueueAttributes"),
                allow(dispatch.function_arn, "lambda:InvokeFunction"),
            ],
            timeout=Duration.minutes(5),  # it keeps running while units are open, to replace a dead dispatcher within seconds
        )
        self.schedule = every_minute(self, self.function, "Punctual's heartbeat")
