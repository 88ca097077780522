"""scale: every minute, reports how many executors the next minutes require, and keeps enough pollers ready."""

from collections.abc import Mapping
from typing import Any

from aws_cdk import Duration
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.function import JOB_RESOURCES, Foundation, Function, allow, change_jobs
from infra.schedule import every_minute
from scheduler.model.job import Lane


class Scale(Construct):
    """The function and the schedule that calls it. `mappings`: the event source mappings of the lanes."""

    def __init__(self, scope: Construct, id: str, foundation: Foundation, mappings: Mapping[Lane, lambda_.EventSourceMapping]) -> None:
        super().__init__(scope, id)
        settings, storage = foundation.settings, foundation.storage
        kept = [mappings[lane] for lane in (Lane.ONE_TIME, Lane.RECURRING)] if settings.rules.most_pollers else []
        names = ("one_time_mapping", "recurring_mapping")
        named: dict[str, Any] = {name: mapping.event_source_mapping_id for name, mapping in zip(names, kept, strict=False)}
        self.function = Function(
            self,
            "scale",
            foundation,
            foundation.environment(*JOB_RESOURCES, "ledger_table", "counters_table", **named),
            grants=[
                allow(storage.counters.table_arn, "dynamodb:Query"),
                allow(storage.ledger.table_arn, "dynamodb:GetItem", "dynamodb:PutItem"),  # the shards that it may use
                allow(storage.jobs.table_arn, "dynamodb:PutItem"),  # the canary ...
                change_jobs(foundation),  # ... which is moved and enqueued at once if its put took too long
                allow(foundation.lanes.arns, "sqs:SendMessage"),
                *[
                    allow(mapping.event_source_mapping_arn, "lambda:GetEventSourceMapping", "lambda:UpdateEventSourceMapping")
                    for mapping in kept
                ],
            ],
            timeout=Duration.minutes(1),
        )
        self.schedule = every_minute(self, self.function, "Punctual's forecast of required executors")
