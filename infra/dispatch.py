"""dispatch: publishes one unit of a minute, each batch just ahead of its instant, or the overflow. Called by tick and api."""

from aws_cdk import Duration
from constructs import Construct

from infra.function import JOB_RESOURCES, Foundation, Function, allow, change_jobs, step_out


class Dispatch(Construct):
    """The function; tick starts it."""

    def __init__(self, scope: Construct, id: str, foundation: Foundation) -> None:
        super().__init__(scope, id)
        storage, lanes = foundation.storage, foundation.lanes
        self.function = Function(
            self,
            "dispatch",
            foundation,
            foundation.environment(*JOB_RESOURCES, "ledger_table", "users_table", topic_arn=lanes.topic.topic_arn),
            grants=[
                allow(storage.ledger.table_arn, "dynamodb:GetItem", "dynamodb:PutItem"),  # its lease and progress
                allow(storage.ledger.table_arn, "dynamodb:Query"),  # the latency, the backlogs and the pauses of the lanes
                allow(storage.ledger.table_arn, "dynamodb:DeleteItem"),  # its own backlog, once nothing waits any more
                allow(storage.due_index_arn, "dynamodb:Query"),
                allow(storage.jobs.table_arn, "dynamodb:BatchGetItem"),  # reconciling the overflow reads whole jobs
                change_jobs(foundation),  # reconciling moves them
                *step_out(foundation),  # ends jobs whose last attempt died with its executor
                allow(storage.users.table_arn, "dynamodb:BatchGetItem"),  # weights
                allow(lanes.topic.topic_arn, "sns:Publish"),
                allow(lanes.arns, "sqs:SendMessage", "sqs:GetQueueAttributes"),  # reconciling enqueues again, unless a lane has a backlog
            ],
            timeout=Duration.minutes(10),
        )
