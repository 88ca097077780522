"""dispatch: hands out one unit of a minute, each batch just ahead of its instant. Called by tick alone."""

from aws_cdk import Duration
from constructs import Construct

from infra.function import Foundation, Function, allow
from lambdas._settings import DispatchSettings


class Dispatch(Construct):
    """The function; tick starts it."""

    def __init__(self, scope: Construct, id: str, foundation: Foundation) -> None:
        super().__init__(scope, id)
        storage, lanes = foundation.storage, foundation.lanes
        self.function = Function(
            self,
            "dispatch",
            foundation,
            DispatchSettings(**foundation.hand_over, topic_arn=lanes.topic.topic_arn, lead_ms=foundation.settings.lead_ms),
            grants=[
                allow(storage.ledger.table_arn, "dynamodb:GetItem", "dynamodb:PutItem"),  # its lease and progress
                allow(storage.ledger.table_arn, "dynamodb:Query"),  # the measured latency of the lanes, and which are paused
                allow(storage.due_index_arn, "dynamodb:Query"),
                allow(lanes.topic.topic_arn, "sns:Publish"),
                allow(lanes.arns, "sqs:GetQueueAttributes"),  # is a lane behind?
            ],
            timeout=Duration.minutes(10),
        )
