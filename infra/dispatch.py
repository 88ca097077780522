"""dispatch: hands out one unit of a minute, each batch just ahead of its instant. Called by tick alone."""

from aws_cdk import Duration
from constructs import Construct

from infra.function import Foundation, Function, allow
from lambdas._settings import DispatchSettings


class Dispatch(Construct):
    """The function; tick starts it."""

    def __init__(self, scope: Construct, id: str, foundation: Foundation) -> None:
        super().__init__(scope, id)
        storage, topic = foundation.storage, foundation.lanes.topic
        self.function = Function(
            self,
            "dispatch",
            foundation,
            DispatchSettings(**foundation.hand_over, topic_arn=topic.topic_arn, lead_ms=foundation.settings.lead_ms),
            grants=[
                allow(  # its lease and progress; the measured latency of the lanes
                    storage.ledger.table_arn, "dynamodb:GetItem", "dynamodb:Query", "dynamodb:PutItem", "dynamodb:UpdateItem"
                ),
                allow(storage.due_index_arn, "dynamodb:Query"),
                allow(topic.topic_arn, "sns:Publish"),
            ],
            timeout=Duration.minutes(10),
        )
