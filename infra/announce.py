"""announce: puts the ends of jobs on an event bus, and sends spans to a collector, from the stream of the jobs table.

Only in stages with the option `events` or `traces`. Filters pass only the writes that are to be announced, and AWS bills no read of a
stream: other jobs cost nothing. One function does both, since a stream has two readers at most, and `project` is the other one.
"""

from collections.abc import Mapping
from typing import Any

from aws_cdk import Acknowledgment, Aws, Duration, Validations
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_event_sources as sources
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.alarms import COUNTED_LATE_MS, AlarmClass, Description, log_of
from infra.function import Foundation, Function, allow
from infra.options import Events, Traces
from infra.project import NOT_THERE, OF_USERS, THERE, stream_of
from infra.queue import queue
from scheduler.model import lifecycle
from scheduler.model.job import Status

TIMEOUT = Duration.minutes(1)
UNATTEMPTED = (Status.FAILED, Status.CANCELLED, Status.SKIPPED)  # ends of jobs that may have had no attempt
TEXT, NO_TEXT = {"S": [{"exists": True}]}, {"S": [{"exists": False}]}
TRIES = 3  # of a batch without events that fails: spans are not worth a day of tries
MAX_AGE = Duration.hours(12)  # Lambda retries a refused event within this time; a stream keeps its records for a day


def filters(chosen: Events, *, traces: bool) -> list[dict[str, Any]]:
    """The patterns of the stream: one for each time by which a job can end, since Lambda's patterns have no "or" between attributes.

    With traces the same number: creations, attempts, and the ends that a job can have without an attempt.
    """
    if traces:
        created = {"NewImage": {"scheduled_at": THERE, "origin": NO_TEXT}, "OldImage": {"scheduled_at": NOT_THERE}}
        others = [{"attempts": TEXT}, *({lifecycle.FINAL_TIMES[status]: THERE} for status in UNATTEMPTED)]
        written = ({"NewImage": {"scheduled_at": THERE, **each}} for each in others)
        return [{"dynamodb": {"Keys": OF_USERS, **images}} for images in (created, *written)]
    marked: Mapping[str, Any] = {} if chosen is Events.ALL else {"events": THERE}
    return [
        {"dynamodb": {"Keys": OF_USERS, "NewImage": {"scheduled_at": THERE, time: THERE, **marked}}}
        for time in lifecycle.FINAL_TIMES.values()
    ]


class Announce(Construct):
    """The function, with the bus and the queue for the events that Lambda gives up, if the stage has events."""

    def __init__(self, scope: Construct, id: str, foundation: Foundation) -> None:
        super().__init__(scope, id)
        settings, storage = foundation.settings, foundation.storage
        has_events = settings.events is not Events.NONE
        self.bus = events.EventBus(self, "Bus", event_bus_name=settings.stack) if has_events else None
        self.lost = self._queue(foundation) if has_events else None
        stream = stream_of(storage.jobs)
        names = {} if self.bus is None else {"event_bus": self.bus.event_bus_arn}
        grants = [allow(stream, "dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator", "dynamodb:ListStreams")]
        if self.bus is not None and self.lost is not None:
            grants.append(allow(self.bus.event_bus_arn, "events:PutEvents"))
            grants.append(allow(self.lost.queue_arn, "sqs:SendMessage"))  # Lambda sends the events that it gives up with this role
        if settings.traces is not None:
            names |= {"traces_endpoint": settings.traces.endpoint, "traces_secret": settings.traces.headers_secret or ""}
            grants += collecting(settings.traces)
        self.function = Function(self, "announce", foundation, foundation.environment(**names), grants=grants, timeout=TIMEOUT)
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
            retry_attempts=None if has_events else TRIES - 1,
            on_failure=None if self.lost is None else sources.SqsDlq(self.lost),
            filters=[lambda_.FilterCriteria.filter(each) for each in filters(settings.events, traces=settings.traces is not None)],
        )
        if self.lost is not None:
            self._watch(foundation, self.lost)

    def _queue(self, foundation: Foundation) -> sqs.Queue:
        encryption = foundation.encryption
        lost = queue(
            self,
            "Lost",
            foundation.settings,
            encryption,
            encryption.key,
            visibility_timeout=TIMEOUT,
            retention_period=Duration.days(14),
        )
        Validations.of(lost).acknowledge(
            Acknowledgment(
                id="AwsSolutions-SQS3", reason="it is the dead-letter queue of the event source mapping, which cdk-nag does not see"
            )
        )
        return lost

    def _watch(self, foundation: Foundation, lost: sqs.Queue) -> None:
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
        gone = Description(
            AlarmClass.PAGE,
            "AnnounceGivenUp",
            log_of(self.function),
            f"The event bus refused events for {MAX_AGE.to_hours():g} hours, and Lambda discarded them.",
            "Receivers do not get these events.",
            "read the messages of the queue in the output EventsLostQueueUrl: they have the positions in the stream.",
        )
        number = lost.metric_approximate_number_of_messages_visible(statistic="Maximum")
        foundation.operators.alarm(self, "GivenUp", number, gone, above=0)


def collecting(traces: Traces) -> list[iam.PolicyStatement]:
    """The grants to send spans: to X-Ray, which has no resource but `*`, or to read the secret with the headers."""
    if traces.endpoint == "xray":
        return [allow("*", "xray:PutTraceSegments", "xray:PutSpans", "xray:PutSpansForIndexing")]
    if traces.headers_secret is None:
        return []
    name = traces.headers_secret
    here = f"arn:{Aws.PARTITION}:secretsmanager:{Aws.REGION}:{Aws.ACCOUNT_ID}:secret:{name}-??????"  # AWS appends six characters
    return [allow(name if name.startswith("arn:") else here, "secretsmanager:GetSecretValue")]
