"""intake: makes jobs of messages. One queue for each entry of the option `intake`. Only in stages that have some."""

from aws_cdk import Aws, Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.alarms import AlarmClass, Description, log_of
from infra.function import JOB_RESOURCES, Foundation, Function, allow, change_jobs, step_in
from infra.queue import queue
from infra.storage import MOVED_INDEX
from scheduler.model.intake import PRINCIPALS

TIMEOUT = Duration.minutes(2)  # ten messages with a thousand jobs each take some seconds
RETENTION = Duration.days(14)  # SQS's most: a message waits while a service refuses, or while its owner's quota is used up
# The waits of `pause_s` up to this receive take twelve days. A message that ends the process each time has them within ten hours.
MAX_RECEIVES = 300
BEHIND_SECONDS = 900


class Intake(Construct):
    """The queues, their dead-letter queue, and the function behind them."""

    def __init__(self, scope: Construct, id: str, foundation: Foundation) -> None:
        super().__init__(scope, id)
        settings, storage, lanes = foundation.settings, foundation.storage, foundation.lanes
        self._kind = settings, foundation.encryption, foundation.encryption.key
        self.dead = queue(self, "Dead", *self._kind, visibility_timeout=TIMEOUT, retention_period=RETENTION)
        self.queues = {name: self._queue(name, owner) for name, owner in settings.intake.items()}
        listed = (f"{name}={settings.intake[name]}={made.queue_url}" for name, made in self.queues.items())
        self.function = Function(
            self,
            "intake",
            foundation,
            foundation.environment(
                *JOB_RESOURCES,
                "ledger_table",
                "work_queue_url",
                "users_table",
                reach=settings.reach,
                intake_queues=" ".join(listed),
            ),
            grants=[
                allow(
                    [made.queue_arn for made in self.queues.values()],
                    "sqs:ReceiveMessage",
                    "sqs:DeleteMessage",
                    "sqs:GetQueueAttributes",
                    "sqs:ChangeMessageVisibility",  # the wait before a message comes again
                ),
                allow(storage.jobs.table_arn, "dynamodb:PutItem", "dynamodb:PartiQLInsert"),
                allow(storage.jobs.table_arn, "dynamodb:GetItem"),  # the job of a key
                change_jobs(foundation),  # a put that took long: its job moves to a safe slot
                allow(storage.jobs.table_arn, "dynamodb:Query"),  # the number of open jobs, for the quota
                allow(f"{storage.jobs.table_arn}/index/{MOVED_INDEX}", "dynamodb:Query"),  # likewise
                step_in(foundation),
                allow(storage.tasks.table_arn, "dynamodb:GetItem", "dynamodb:UpdateItem"),  # jobs that join a group, the limits of keys
                allow(storage.tasks.table_arn, "dynamodb:Query"),  # jobs that wait for one that is skipped at once
                allow(
                    storage.tasks.table_arn, "dynamodb:BatchGetItem", "dynamodb:PartiQLDelete"
                ),  # named targets; an ordering entry too many
                allow(storage.ledger.table_arn, "dynamodb:GetItem", "dynamodb:Query"),  # the overflow, backlogs
                allow(storage.ledger.table_arn, "dynamodb:PutItem"),  # a single receipt, dead letters, the overflow
                allow(storage.ledger.table_arn, "dynamodb:PartiQLInsert", "dynamodb:UpdateItem", "dynamodb:PartiQLUpdate"),  # receipts
                allow(storage.ledger.table_arn, "dynamodb:BatchGetItem"),  # dead letters of messages that come again
                allow(storage.users.table_arn, "dynamodb:Query", "dynamodb:UpdateItem"),  # owners, principals; tallies
                allow([*lanes.arns, lanes.work.queue_arn], "sqs:SendMessage"),
            ],
            timeout=TIMEOUT,
        )
        for name, made in self.queues.items():
            lambda_.EventSourceMapping(
                self,
                f"{camel(name)}Messages",
                target=self.function.live,
                event_source_arn=made.queue_arn,
                batch_size=10,
                max_concurrency=settings.intakes,
                report_batch_item_failures=True,
            )
        self._alarms(foundation)

    def _queue(self, name: str, owner: str) -> sqs.Queue:
        """The queue of an entry. AWS chooses its name: a protected stage keeps the queue of an entry that is removed and comes again."""
        dead_letters = sqs.DeadLetterQueue(queue=self.dead, max_receive_count=MAX_RECEIVES)
        made = queue(
            self,
            camel(name),
            *self._kind,
            visibility_timeout=TIMEOUT,
            retention_period=RETENTION,
            dead_letter_queue=dead_letters,
        )
        if owner != PRINCIPALS:  # a rule has no unique id that a principal could have
            made.add_to_resource_policy(
                iam.PolicyStatement(
                    principals=[iam.ServicePrincipal("events.amazonaws.com")],
                    actions=["sqs:SendMessage"],
                    resources=[made.queue_arn],
                    conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}},
                )
            )
        return made

    def _alarms(self, foundation: Foundation) -> None:
        operators, log = foundation.operators, log_of(self.function)
        lost = Description(
            AlarmClass.PAGE,
            "IntakeGivenUp",
            log,
            f"The function intake could not process a message in {MAX_RECEIVES} deliveries. The message is now in the queue IntakeDead.",
            "Its jobs are not created.",
            "search that log for the id of the message, and send the message again once the cause is repaired.",
        )
        visible = self.dead.metric_approximate_number_of_messages_visible(statistic="Maximum")
        operators.alarm(self, "GivenUp", visible, lost, above=0)
        for name, made in self.queues.items():
            behind = Description(
                AlarmClass.PAGE,
                "IntakeBehind",
                log,
                f"For 5 minutes, the oldest message of the intake queue {name} has been more than {BEHIND_SECONDS} s old.",
                "Jobs are created late. No message is lost.",
                "look for errors and throttles of intake on the dashboard, and check that the trigger of the queue is enabled.",
            )
            age = made.metric_approximate_age_of_oldest_message(statistic="Maximum")
            operators.alarm(self, f"{camel(name)}IntakeBehind", age, behind, above=BEHIND_SECONDS, minutes=5)


def camel(name: str) -> str:
    """The name of a queue in construct ids and outputs.

    >>> camel("web-orders")
    'WebOrders'
    """
    return "".join(word.capitalize() for word in name.split("-"))
