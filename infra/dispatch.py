"""dispatch: hands out one unit of a minute, each batch just ahead of its instant, or the intake. Called by tick and api."""

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
                allow(storage.ledger.table_arn, "dynamodb:Query"),  # the latency and the backlogs of the lanes, and which are paused
                allow(storage.ledger.table_arn, "dynamodb:DeleteItem"),  # its own backlog, once nothing waits
                allow(storage.due_index_arn, "dynamodb:Query"),
                allow(storage.jobs.table_arn, "dynamodb:BatchGetItem"),  # rechecks of the intake read whole jobs
                change_jobs(foundation),  # and move them
                *step_out(foundation),  # of jobs whose executor died for the last time
                allow(storage.users.table_arn, "dynamodb:BatchGetItem"),  # weights
                allow(lanes.topic.topic_arn, "sns:Publish"),
                allow(lanes.arns, "sqs:SendMessage", "sqs:GetQueueAttributes"),  # rechecks hand over again, unless a lane is behind
            ],
            timeout=Duration.minutes(10),
        )
