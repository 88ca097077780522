"""redrive: runs dead jobs again, at a limited rate; it checks every minute for requested redrives, and api also calls it at once."""

from aws_cdk import Duration
from constructs import Construct

from infra.function import JOB_RESOURCES, Foundation, Function, allow, change_jobs, step_in
from infra.schedule import every_minute


class Redrive(Construct):
    """The function and the schedule that calls it."""

    def __init__(self, scope: Construct, id: str, foundation: Foundation) -> None:
        super().__init__(scope, id)
        storage, lanes = foundation.storage, foundation.lanes
        self.function = Function(
            self,
            "redrive",
            foundation,
            foundation.environment(*JOB_RESOURCES, "ledger_table"),
            grants=[
                allow(storage.failures_index_arn, "dynamodb:Query"),
                allow(storage.jobs.table_arn, "dynamodb:BatchGetItem"),
                change_jobs(foundation),
                allow(storage.tasks.table_arn, "dynamodb:BatchGetItem"),  # whether the task of a run still allows it
                step_in(foundation),
                allow(  # the redrive records; an ended one moves in a transaction, which needs the grants of its parts
                    storage.ledger.table_arn, "dynamodb:GetItem", "dynamodb:Query", "dynamodb:PutItem", "dynamodb:DeleteItem"
                ),
                allow(lanes.arns, "sqs:SendMessage"),
            ],
            timeout=Duration.minutes(2),
        )
        self.schedule = every_minute(self, self.function, "Punctual's check for redrives to carry out")
