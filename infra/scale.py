"""scale: every minute, reports the executors that the next minutes require, and adjusts the pollers that are kept ready."""

from aws_cdk import Duration
from constructs import Construct

from infra.function import JOB_RESOURCES, Foundation, Function, allow, change_jobs
from infra.provision import Mappings, names_of, set_pollers
from infra.schedule import every_minute


class Scale(Construct):
    """The function and the schedule that calls it. `mappings`: the event source mappings that may keep pollers ready, by lane."""

    def __init__(self, scope: Construct, id: str, foundation: Foundation, mappings: Mappings) -> None:
        super().__init__(scope, id)
        storage = foundation.storage
        self.function = Function(
            self,
            "scale",
            foundation,
            foundation.environment(*JOB_RESOURCES, "ledger_table", "counters_table", **names_of(mappings)),
            grants=[
                allow(storage.counters.table_arn, "dynamodb:Query"),
                allow(storage.ledger.table_arn, "dynamodb:GetItem", "dynamodb:PutItem"),  # the shards that it may use
                allow(storage.jobs.table_arn, "dynamodb:PutItem"),  # the canary ...
                change_jobs(foundation),  # ... which is moved and enqueued at once if its put took too long
                allow(foundation.lanes.arns, "sqs:SendMessage"),
                *set_pollers(foundation, mappings),
            ],
            timeout=Duration.minutes(1),
        )
        self.schedule = every_minute(self, self.function.live, "Punctual's forecast of required executors")
