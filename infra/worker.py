"""worker: consumes the work queue: units of minutes, the overflow, the queues of limited targets, operations, checks and the sweep."""

from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.function import JOB_RESOURCES, Foundation, Function, allow, change_jobs, change_tasks, list_jobs, step_in, step_out
from infra.lanes import WORKER_TIMEOUT


class Worker(Construct):
    """The function, with the work queue as event source. Its id in the template is that of its first duty, `Dispatch`."""

    def __init__(self, scope: Construct, id: str, foundation: Foundation, notices: sqs.Queue, *, api_url: str) -> None:
        super().__init__(scope, id)
        storage, lanes = foundation.storage, foundation.lanes
        self.function = Function(
            self,
            "worker",
            foundation,
            foundation.environment(
                *(*JOB_RESOURCES, "ledger_table", "users_table", "work_queue_url"),
                topic_arn=lanes.topic.topic_arn,
                notices_queue_url=notices.queue_url,
                api_url=api_url,
            ),
            grants=[
                allow(  # units, operations, checks, the sweep; a unit is closed in a transaction, which needs the grants of its parts
                    storage.ledger.table_arn, "dynamodb:GetItem", "dynamodb:Query", "dynamodb:PutItem", "dynamodb:DeleteItem"
                ),
                allow(storage.ledger.table_arn, "dynamodb:BatchGetItem"),  # the monitors whose timers are due
                allow(notices.queue_arn, "sqs:SendMessage"),  # the notices of monitors, and news of watched runs
                allow(storage.due_index_arn, "dynamodb:Query", "dynamodb:Scan"),  # the sweep scans it
                allow(  # canaries; redrives of jobs with keys, and the check whether the table takes changes
                    storage.jobs.table_arn, "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:DeleteItem"
                ),
                *list_jobs(foundation),  # operations; reconciling reads jobs in batches too
                *change_tasks(foundation),  # operations; the usage of limits, and the target queues
                change_jobs(foundation),
                *step_out(foundation),  # ends jobs whose last attempt ended with its executor; whether the task of a run allows a redrive
                step_in(foundation),
                allow(storage.users.table_arn, "dynamodb:BatchGetItem"),  # weights
                allow(storage.users.table_arn, "dynamodb:UpdateItem"),  # jobs that operations cancel leave their owner's stock
                allow(storage.users.table_arn, "dynamodb:GetItem"),  # whether the users of waiting rooms are still disabled
                _read_default_receivers(storage.users.table_arn),
                allow(lanes.topic.topic_arn, "sns:Publish"),
                allow(lanes.arns, "sqs:SendMessage", "sqs:GetQueueAttributes"),  # reconciling enqueues again, unless a lane has a backlog
                allow(
                    lanes.work.queue_arn,
                    "sqs:SendMessage",
                    "sqs:ReceiveMessage",
                    "sqs:DeleteMessage",
                    "sqs:GetQueueAttributes",
                    "sqs:ChangeMessageVisibility",
                ),
            ],
            timeout=WORKER_TIMEOUT,
            loops=True,  # a unit wakes others: ends, since each message does one step of a unit that is open and due, and units close
        )
        lambda_.EventSourceMapping(
            self,
            "Work",
            target=self.function.live,
            event_source_arn=lanes.work.queue_arn,
            batch_size=1,  # a step may take minutes, and no other step waits for it
            max_concurrency=foundation.settings.steps,
            report_batch_item_failures=True,
        )


def _read_default_receivers(users: str) -> iam.PolicyStatement:
    """The grant to list the receivers of the owner of a monitor that names none."""
    only = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["receivers#*"]}}
    return iam.PolicyStatement(actions=["dynamodb:Query"], resources=[users], conditions=only)
