"""The lanes: one topic, whose subscription filters route each message into the queue of its lane. All lanes share a dead-letter queue.

Beside them there is the work queue, whose messages drive the engine itself.
"""

from aws_cdk import Acknowledgment, Duration, Validations
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.encryption import Encryption
from infra.queue import queue
from infra.settings import Settings
from scheduler.model.job import Lane

EXECUTE_TIMEOUT = Duration.minutes(15)  # Lambda's most
BURY_TIMEOUT = Duration.minutes(1)
WORKER_TIMEOUT = Duration.minutes(10)

# Deferred messages, throttles and duplicates count as receives too, so the limit is generous.
MAX_RECEIVES = 10


class Lanes(Construct):
    """Topic and queues of the three lanes, their dead-letter queue, and the work queue."""

    def __init__(self, scope: Construct, id: str, settings: Settings, encryption: Encryption) -> None:
        super().__init__(scope, id)
        key = encryption.of_lanes
        self._kind = settings, encryption, key
        self.topic = sns.Topic(self, "Topic", enforce_ssl=settings.tls_only, master_key=key)
        # A dead letter keeps its original send date, so the dead-letter queue retains messages for longer than the lanes' 4 days.
        self.dead = queue(self, "Dead", *self._kind, retention_period=Duration.days(14), visibility_timeout=BURY_TIMEOUT)
        self.queues = {lane: self._lane(lane) for lane in Lane}
        # The worker shortens the visibility to its lease; AWS requires at least the function's time-out.
        self.work = queue(self, "Work", *self._kind, visibility_timeout=WORKER_TIMEOUT)
        Validations.of(self.work).acknowledge(
            Acknowledgment(
                id="AwsSolutions-SQS3",
                reason="a step that fails is tried again: its state is in the ledger, not in the message",
            )
        )

    @property
    def arns(self) -> list[str]:
        """The ARNs of the queues of the three lanes."""
        return [queue.queue_arn for queue in self.queues.values()]

    def _lane(self, lane: Lane) -> sqs.Queue:
        made = queue(
            self,
            camel(lane),
            *self._kind,
            # The executor shortens it to its lease as soon as it has a batch; AWS requires at least the function's time-out.
            visibility_timeout=EXECUTE_TIMEOUT,
            dead_letter_queue=sqs.DeadLetterQueue(queue=self.dead, max_receive_count=MAX_RECEIVES),
        )
        # The subscription allows this topic, and no other source, to send to the queue.
        self.topic.add_subscription(
            subscriptions.SqsSubscription(
                made,
                raw_message_delivery=True,
                filter_policy={"lane": sns.SubscriptionFilter.string_filter(allowlist=[str(lane)])},
            )
        )
        return made


def camel(lane: Lane) -> str:
    """The name of a lane in construct ids and outputs.

    >>> camel(Lane.ONE_TIME)
    'OneTime'
    """
    return "".join(word.capitalize() for word in lane.split("-"))
