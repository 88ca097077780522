"""project: adds the changes in the streams of jobs and tasks to the counters, sends news to notify, and archives expired jobs. It counts
the ends of members of groups again.

It also requests the steps that care for the jobs that waited for ended ones.

Filters drop every item that is neither a job nor a task: the canaries of units, the mark of the tick, run locks, ordering queues,
limits. Of the scheduler's own jobs it gets only the ends, which have their delays.
"""

from typing import Any

from aws_cdk import Duration
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.archive import Archive
from infra.function import JOB_RESOURCES, Foundation, Function, allow, count_members
from scheduler.model import ids
from scheduler.model.job import CANARY_OWNER

WINDOW = Duration.minutes(15)  # AWS's longest
THERE, NOT_THERE = {"N": [{"exists": True}]}, {"N": [{"exists": False}]}
_CANARIES = [f"{CANARY_OWNER}#{number:02d}" for number in range(ids.PARTITIONS)]  # the partitions of its jobs
OF_USERS = {"pk": {"S": [{"anything-but": _CANARIES}]}}
FILTERS: dict[str, list[dict[str, Any]]] = {  # a record that fits one pattern of its stream starts the function
    "Jobs": [
        {"dynamodb": {"Keys": OF_USERS, "NewImage": {"scheduled_at": THERE}}},
        {"dynamodb": {"Keys": OF_USERS, "OldImage": {"scheduled_at": THERE}}},  # a removed job
        {"dynamodb": {"Keys": {"pk": {"S": _CANARIES}}, "NewImage": {"completed_at": THERE}}},
    ],
    "Tasks": [
        *({"dynamodb": {image: {"planned_until": THERE}}} for image in ("NewImage", "OldImage")),
        *({"dynamodb": {"NewImage": {name: THERE}, "OldImage": {name: NOT_THERE}}} for name in ("sealed_at", "ended_at")),  # groups
    ],
}


class Project(Construct):
    """The function, with both streams as event sources. A failed batch is delivered again for a day, as long as a stream keeps it."""

    def __init__(self, scope: Construct, id: str, foundation: Foundation, notices: sqs.Queue, archive: Archive | None) -> None:
        super().__init__(scope, id)
        settings, storage = foundation.settings, foundation.storage
        streams = {"Jobs": stream_of(storage.jobs), "Tasks": stream_of(storage.tasks)}
        self.function = Function(
            self,
            "project",
            foundation,
            foundation.environment(
                *JOB_RESOURCES,
                "ledger_table",
                "counters_table",
                "work_queue_url",
                notices_queue_url=notices.queue_url,
                archive_stream=archive.stream.ref if archive is not None else "",
            ),
            grants=[
                allow(storage.counters.table_arn, "dynamodb:UpdateItem"),
                *count_members(foundation),
                allow(storage.ledger.table_arn, "dynamodb:GetItem", "dynamodb:PutItem"),  # the shards that it may use
                allow(foundation.lanes.arns, "sqs:SendMessage"),  # call-backs of groups
                allow(notices.queue_arn, "sqs:SendMessage"),
                allow(foundation.lanes.work.queue_arn, "sqs:SendMessage"),  # steps for the jobs that waited for ended ones
                *([allow(archive.stream.attr_arn, "firehose:PutRecordBatch")] if archive is not None else []),
                allow(list(streams.values()), "dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"),
                allow(list(streams.values()), "dynamodb:ListStreams"),
            ],
            timeout=Duration.minutes(2),
        )
        for name, arn in streams.items():
            lambda_.EventSourceMapping(
                self,
                name,
                target=self.function.live,
                event_source_arn=arn,
                starting_position=lambda_.StartingPosition.TRIM_HORIZON,
                batch_size=1_000,
                max_batching_window=Duration.seconds(settings.batching_s),
                parallelization_factor=1,  # more would break the order within a shard, which ensures that each change is counted once
                bisect_batch_on_error=True,
                filters=[lambda_.FilterCriteria.filter(pattern) for pattern in FILTERS[name]],
                # An event names its shard only if there is a tumbling window; the window's state is not used.
                tumbling_window=None if settings.rules.one_shard else WINDOW,
            )


def stream_of(table: dynamodb.TableV2) -> str:
    assert table.table_stream_arn is not None
    return table.table_stream_arn
