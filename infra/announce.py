"""announce: puts the ends of jobs on an event bus, from the stream of the jobs table. Only in stages whose option `events` is on.

Filters pass only the ends that are to be announced, and AWS bills no read of a stream: other jobs cost nothing.
"""

from collections.abc import Mapping
from typing import Any

from aws_cdk import Acknowledgment, Duration, Validations
from aws_cdk import aws_events as events
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_event_sources as sources
from constructs import Construct

from infra.alarms import COUNTED_LATE_MS, AlarmClass, Description, log_of
from infra.function import Foundation, Function, allow
from infra.options import Events
from infra.project import OF_USERS, THERE, stream_of
from infra.queue import queue
from scheduler.model import lifecycle

TIMEOUT = Duration.minutes(1)
MAX_AGE = Duration.hours(12)  # Lambda retries a refused event within this time; a stream keeps its records for a day


def filters(chosen: Events) -> list[dict[str, Any]]:
    """The patterns of the stream: one for each time by which a job can end, since Lambda's patterns have no "or" between attributes."""
    marked: Mapping[str, Any] = {} if chosen is Events.ALL else {"events": THERE}
    return [
        {"dynamodb": {"Keys": OF_USERS, "NewImage": {"scheduled_at": THERE, time: THERE, **marked}}}
        for time in lifecycle.FINAL_TIMES.values()
    ]


class Announce(Construct):
    """The bus, the function, and the queue for the events that Lambda gives up."""

    def __init__(self, scope: Construct, id: str, foundation: Foundation) -> None:
        super().__init__(scope, id)
        settings, storage = foundation.settings, foundation.storage
        encryption = foundation.encryption
        self.bus = events.EventBus(self, "Bus", event_bus_name=settings.stack)
        self.lost = queue(
            self, "Lost", settings, encryption, encryption.key, visibility_timeout=TIMEOUT, retention_period=Duration.days(14)
        )
        Validations.of(self.lost).acknowledge(
            Acknowledgment(
                id="AwsSolutions-SQS3", reason="it is the dead-letter queue of the event source mapping, which cdk-nag does not see"
            )
        )
        stream = stream_of(storage.jobs)
        self.function = Function(
            self,
            "announce",
            foundation,
            foundation.environment(event_bus=self.bus.event_bus_arn),
            grants=[
                allow(self.bus.event_bus_arn, "events:PutEvents"),
                allow(stream, "dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator", "dynamodb:ListStreams"),
                allow(self.lost.queue_arn, "sqs:SendMessage"),  # Lambda sends the events that it gives up with this role
            ],
            timeout=TIMEOUT,
        )
        lambda_.EventSourceMapping(
            self,
            "Jobs",
            target=self.function.live,
            event_source_arn=stream,
            starting_position=lambda_.StartingPosition.TRIM_HORIZON,
            batch_size=100,
            max_batching_window=Duration.seconds(1),
            bisect_batch_on_error=True,  # one record that fails alone delays no other for long
            report_batch_item_failures=True,
            max_record_age=MAX_AGE,
            on_failure=sources.SqsDlq(self.lost),
            filters=[lambda_.FilterCriteria.filter(pattern) for pattern in filters(settings.events)],
        )
        behind = self.function.metric("IteratorAge", statistic="Maximum")
        late = Description(
            AlarmClass.PAGE,
            "AnnounceBehind",
            log_of(self.function),
            "For 3 minutes, events of ended jobs have been more than 5 minutes late: the event bus refuses them.",
            f"Receivers get them late. None is lost within {MAX_AGE.to_hours():g} hours.",
            "search that log for `refused` and `AccessDenied`.",
        )
        foundation.operators.alarm(self, "Behind", behind, late, above=COUNTED_LATE_MS, minutes=3)
        lost = self.lost.metric_approximate_number_of_messages_visible(statistic="Maximum")
        gone = Description(
            AlarmClass.PAGE,
            "AnnounceGivenUp",
            log_of(self.function),
            f"The event bus refused events for {MAX_AGE.to_hours():g} hours, and Lambda discarded them.",
            "Receivers do not get these events.",
            "read the messages of the queue in the output EventsLostQueueUrl: they have the positions in the stream.",
        )
        foundation.operators.alarm(self, "GivenUp", lost, gone, above=0)
