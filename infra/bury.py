"""bury: settles the jobs whose messages ended in the dead-letter queue of the lanes."""

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.function import JOB_RESOURCES, Foundation, Function, allow, change_jobs, step_out
from infra.lanes import BURY_TIMEOUT


class Bury(Construct):
    """The function, and the dead-letter queue as its event source."""

    def __init__(self, scope: Construct, id: str, foundation: Foundation) -> None:
        super().__init__(scope, id)
        dead = foundation.lanes.dead
        self.function = Function(
            self,
            "bury",
            foundation,
            foundation.environment(*JOB_RESOURCES, "ledger_table", "work_queue_url"),
            grants=[
                change_jobs(foundation),
                allow(foundation.storage.ledger.table_arn, "dynamodb:GetItem", "dynamodb:PutItem"),  # the shards that it may use
                *step_out(foundation),
                allow(foundation.storage.tasks.table_arn, "dynamodb:UpdateItem"),  # concurrency slots that its executor could not free
                # Jobs that waited for the failed job, and release steps of jobs that waited for its slot.
                allow([*foundation.lanes.arns, foundation.lanes.work.queue_arn], "sqs:SendMessage"),
                allow(dead.queue_arn, "sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"),
            ],
            timeout=BURY_TIMEOUT,
            loops=True,  # a buried job enqueues those that waited for it, which may be buried as well: ends, since each job is buried once
        )
        lambda_.EventSourceMapping(
            self,
            "Dead",
            target=self.function.live,
            event_source_arn=dead.queue_arn,
            batch_size=10,
            max_concurrency=2,  # the lowest value that AWS allows; dead letters are not urgent
            report_batch_item_failures=True,
        )
