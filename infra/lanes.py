"""The lanes: one topic, whose filters put each message into its queue; behind each queue a dead-letter queue."""

from dataclasses import dataclass

from aws_cdk import Duration
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

# Holds, throttles and duplicates count as receives too, so the number is generous.
MAX_RECEIVES = 10


@dataclass(frozen=True)
class Queues:
    """One lane: its queue and the dead-letter queue behind it."""

    main: sqs.Queue
    dead: sqs.Queue


class Lanes(Construct):
    """Topic and queues of the three lanes."""

    def __init__(self, scope: Construct, id: str, settings: Settings, encryption: Encryption) -> None:
        super().__init__(scope, id)
        key = encryption.of_lanes
        self._kind = settings, encryption, key
        self.topic = sns.Topic(self, "Topic", enforce_ssl=settings.tls_only, master_key=key)
        self.queues = {lane: self._lane(lane) for lane in Lane}

    @property
    def arns(self) -> list[str]:
        """Of the three queues that jobs are handed to."""
        return [queues.main.queue_arn for queues in self.queues.values()]

    def _lane(self, lane: Lane) -> Queues:
        name = camel(lane)
        # A dead letter keeps the date of its first sending, so the dead-letter queue keeps longer than the queue's own 4 days.
        dead = queue(self, f"{name}Dead", *self._kind, retention_period=Duration.days(14), visibility_timeout=BURY_TIMEOUT)
        main = queue(
            self,
            name,
            *self._kind,
            # The executor shortens it to its lease as soon as it has a batch; AWS wants no less than the function's time-out.
            visibility_timeout=EXECUTE_TIMEOUT,
            dead_letter_queue=sqs.DeadLetterQueue(queue=dead, max_receive_count=MAX_RECEIVES),
        )
        # The subscription lets this topic, and no other source, send into the queue.
        self.topic.add_subscription(
            subscriptions.SqsSubscription(
                main,
                raw_message_delivery=True,
                filter_policy={"lane": sns.SubscriptionFilter.string_filter(allowlist=[str(lane)])},
            )
        )
        return Queues(main, dead)


def camel(lane: Lane) -> str:
    """A lane's name as construct ids and outputs spell it.

    >>> camel(Lane.ONE_TIME)
    'OneTime'
    """
    return "".join(word.capitalize() for word in lane.split("-"))
