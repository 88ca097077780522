"""provision: called by CloudWatch's alarms, keeps pollers ready for lanes that require more executors than AWS adds in time."""

from collections.abc import Mapping
from typing import Any

from aws_cdk import Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.alarms import AlarmClass, Description, log_of
from infra.function import Foundation, Function, allow
from scheduler.insight import metrics, scaling
from scheduler.model.job import Lane

QUEUES = ("one_time_queue_url", "recurring_queue_url", "retry_queue_url")

Mappings = Mapping[Lane, lambda_.EventSourceMapping]


class Provision(Construct):
    """The function and the alarm on the required executors. `mappings`: the event source mappings that may keep pollers ready, by lane."""

    def __init__(self, scope: Construct, id: str, foundation: Foundation, mappings: Mappings) -> None:
        super().__init__(scope, id)
        self.function = Function(
            self,
            "provision",
            foundation,
            foundation.environment(*QUEUES, "counters_table", **names_of(mappings)),
            grants=[
                allow(foundation.storage.counters.table_arn, "dynamodb:Query"),
                *set_pollers(foundation, mappings),
            ],
            timeout=Duration.minutes(1),
            retries=2,  # after one minute and after three: an alarm calls only when it begins to ring, and nothing else calls
        )
        is_high = Description(
            AlarmClass.SIGNAL,
            "Scaling",
            log_of(self.function),
            f"The next ten minutes require more than {scaling.FOLLOWED} executors, which AWS does not add within a minute.",
            "The function provision keeps pollers ready.",
            "if no lane gets pollers, search that log for `pollers not set`.",
        )
        required = foundation.operators.own_metric(metrics.REQUIRED, "scale", "Maximum")
        alarm = foundation.operators.alarm(self, "Scaling", required, is_high, above=scaling.FOLLOWED)
        foundation.operators.call(self.function.live, alarm)


def names_of(mappings: Mappings) -> dict[str, Any]:
    """The settings by which a function finds the mappings."""
    return {f"{lane.replace('-', '_')}_mapping": mapping.event_source_mapping_id for lane, mapping in mappings.items()}


def set_pollers(foundation: Foundation, mappings: Mappings) -> list[iam.PolicyStatement]:
    """The grants behind `provision` and `follow`: the pollers of these lanes, and the number of messages that wait there."""
    queues = [foundation.lanes.queues[lane].queue_arn for lane in mappings]
    actions = ("lambda:GetEventSourceMapping", "lambda:UpdateEventSourceMapping")
    return [
        *(allow(mapping.event_source_mapping_arn, *actions) for mapping in mappings.values()),
        *([allow(queues, "sqs:GetQueueAttributes")] if queues else []),
    ]
