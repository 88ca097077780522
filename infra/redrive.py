"""redrive: runs dead jobs again, many at a rate; every minute it looks whether somebody wants that, and api starts it at once."""

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
                allow(storage.tasks.table_arn, "dynamodb:BatchGetItem"),  # whether a run's task still wants it
                step_in(foundation),
                allow(  # the records; one that has ended moves in a transaction, which needs the grants of its parts
                    storage.ledger.table_arn, "dynamodb:GetItem", "dynamodb:Query", "dynamodb:PutItem", "dynamodb:DeleteItem"
                ),
                allow(lanes.arns, "sqs:SendMessage"),
            ],
            timeout=Duration.minutes(2),
        )
        self.schedule = every_minute(self, self.function, "Punctual's look for dead jobs to run again")
