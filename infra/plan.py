"""plan: every minute, stores the next runs of the recurring tasks that need further ones."""

from aws_cdk import Duration
from constructs import Construct

from infra.function import JOB_RESOURCES, Foundation, Function, allow, step_in
from infra.schedule import every_minute


class Plan(Construct):
    """The function and the schedule that calls it."""

    def __init__(self, scope: Construct, id: str, foundation: Foundation) -> None:
        super().__init__(scope, id)
        storage, lanes = foundation.storage, foundation.lanes
        self.function = Function(
            self,
            "plan",
            foundation,
            foundation.environment(*JOB_RESOURCES, "ledger_table", "users_table"),
            grants=[
                allow(storage.replenish_index_arn, "dynamodb:Query", "dynamodb:Scan"),  # the scan finds minutes that the queries missed
                allow(storage.tasks.table_arn, "dynamodb:BatchGetItem"),  # the tasks that are due for a top-up
                allow(storage.tasks.table_arn, "dynamodb:UpdateItem", "dynamodb:PartiQLUpdate"),  # how far one task is planned, or many
                allow(storage.users.table_arn, "dynamodb:GetItem"),  # which users were deleted
                allow(storage.users.table_arn, "dynamodb:BatchGetItem"),  # the default alerts of owners
                step_in(foundation),
                allow(storage.tasks.table_arn, "dynamodb:PartiQLDelete"),  # the ordering-queue entries of runs that are withdrawn
                allow(storage.jobs.table_arn, "dynamodb:PartiQLInsert"),  # new runs
                allow(storage.jobs.table_arn, "dynamodb:PartiQLDelete", "dynamodb:BatchGetItem"),  # runs of a task edited meanwhile
                allow(storage.ledger.table_arn, "dynamodb:GetItem", "dynamodb:PutItem"),  # its cursor
                allow(storage.ledger.table_arn, "dynamodb:Query"),  # which lanes are paused
                allow(lanes.arns, "sqs:SendMessage"),  # runs that are due before the first safe minute
            ],
            timeout=Duration.minutes(2),
        )
        self.schedule = every_minute(self, self.function.live, "Punctual's planning of recurring runs")
