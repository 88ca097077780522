"""tick: every minute, opens the minutes ahead, sends their work, and sends unfinished work again."""

from aws_cdk import Duration
from constructs import Construct

from infra.function import Foundation, Function, allow
from infra.schedule import every_minute


class Tick(Construct):
    """The function and the schedule that calls it."""

    def __init__(self, scope: Construct, id: str, foundation: Foundation) -> None:
        super().__init__(scope, id)
        storage, lanes = foundation.storage, foundation.lanes
        self.function = Function(
            self,
            "tick",
            foundation,
            foundation.environment("jobs_table", "ledger_table", "users_table", "work_queue_url"),
            grants=[
                allow(storage.ledger.table_arn, "dynamodb:GetItem", "dynamodb:Query", "dynamodb:PutItem"),  # cursor, units, lanes
                allow(storage.jobs.table_arn, "dynamodb:GetItem", "dynamodb:PutItem"),  # canaries, and the mark of the table
                allow(storage.users.table_arn, "dynamodb:GetItem"),  # whether the users of waiting rooms are still disabled
                allow(lanes.work.queue_arn, "sqs:SendMessage"),
            ],
            timeout=Duration.seconds(50),
        )
        self.schedule = every_minute(self, self.function.live, "Punctual's heartbeat")
