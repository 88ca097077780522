"""notify: notifies receivers of the ends of jobs, from a queue of its own. No function that runs jobs waits for notify."""

from dataclasses import replace

from aws_cdk import Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra import targets
from infra.alarms import AlarmClass, Description, log_of
from infra.function import Foundation, Function, allow
from infra.queue import queue

TIMEOUT = Duration.minutes(2)  # an invocation receives further messages for 75 s, and then its last call may take 15 s
# Each try to reach a receiver is a receive, as is each early check of a window's end and each return without a place for a call.
MAX_RECEIVES = 300


class Notify(Construct):
    """The queue, its dead-letter queue, and the function behind them, which `add_function` creates: the API sends to the queue."""

    def __init__(self, scope: Construct, id: str, foundation: Foundation) -> None:
        super().__init__(scope, id)
        settings = foundation.settings
        kind = settings, foundation.encryption, foundation.encryption.key
        self.dead = queue(self, "Dead", *kind, visibility_timeout=TIMEOUT, retention_period=Duration.days(14))
        dead_letters = sqs.DeadLetterQueue(queue=self.dead, max_receive_count=MAX_RECEIVES)
        self.queue = queue(self, "Queue", *kind, visibility_timeout=TIMEOUT, dead_letter_queue=dead_letters)

    def add_function(self, foundation: Foundation, fetch: lambda_.Alias, *, api_url: str) -> None:
        """Create the function behind the queue."""
        settings, storage = foundation.settings, foundation.storage
        self.function = Function(
            self,
            "notify",
            foundation,
            foundation.environment(
                "jobs_table",
                "tasks_table",
                "users_table",
                reach=replace(settings.reach, arns=(), actions=(), accounts=(), stage=""),
                notices_table=storage.notices.table_name,
                notices_queue_url=self.queue.queue_url,
                api_url=api_url,
                console_address=settings.console_address,
                fetch_function=fetch.function_arn if settings.http_apart else "",
                secret_prefix=settings.secret_prefix,
            ),
            grants=[
                allow(storage.tasks.table_arn, "dynamodb:GetItem"),  # the receivers of a task
                allow(storage.jobs.table_arn, "dynamodb:GetItem"),  # the receivers of a one-time job; whether a run still breaks a rule
                allow(storage.notices.table_arn, "dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:PutItem"),
                allow(
                    self.queue.queue_arn,
                    "sqs:ReceiveMessage",
                    "sqs:DeleteMessage",
                    "sqs:GetQueueAttributes",
                    "sqs:ChangeMessageVisibility",  # the wait before another try
                    "sqs:SendMessage",  # one sending for each receiver, and the ends of windows
                ),
                *targets.mail(self, settings, storage.users.table_arn),
                self._read_receivers(storage.users.table_arn),
                allow(targets.secrets(self, settings), "secretsmanager:GetSecretValue"),  # the signing secrets of webhooks
                allow(fetch.function_arn, "lambda:InvokeFunction"),
                allow(self._parameter(settings.console_address), "ssm:GetParameter"),
            ],
            timeout=TIMEOUT,
            loops=True,  # one sending for each receiver, and the ends of windows: ends, since tries and windows are counted
        )
        targets.acknowledge(self, settings)
        lambda_.EventSourceMapping(
            self,
            "Notices",
            target=self.function.live,
            event_source_arn=self.queue.queue_arn,
            batch_size=10,
            max_concurrency=foundation.settings.notices,
            report_batch_item_failures=True,
        )
        dead = self.dead.metric_approximate_number_of_messages_visible(statistic="Maximum")
        undecided = Description(
            AlarmClass.PAGE,
            "Undecided",
            log_of(self.function),
            "The function notify could not process a message, which is now in its dead-letter queue.",
            "A notice may be missing.",
            "read the message in the queue NotifyDead.",
        )
        foundation.operators.alarm(self, "Undecided", dead, undecided, above=0)

    @staticmethod
    def _read_receivers(users: str) -> iam.PolicyStatement:
        """The grant to read the named receivers and the default alerts of owners, and to record how receivers answer."""
        actions = ["dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:Query", "dynamodb:UpdateItem"]
        only = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["receivers#*", "alerts#*"]}}
        return iam.PolicyStatement(actions=actions, resources=[users], conditions=only)

    def _parameter(self, name: str) -> str:
        return Stack.of(self).format_arn(service="ssm", resource="parameter", resource_name=name.removeprefix("/"))
