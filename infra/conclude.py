"""conclude: settles jobs whose work in AWS has ended, by the events of the services. Only in stages whose jobs may start such work.

The events are free, and executors check the work too: a lost event delays an end by ten minutes at most.
"""

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from constructs import Construct

from infra.function import JOB_RESOURCES, Foundation, Function, allow, change_jobs, step_out
from infra.settings import Settings
from scheduler.targets import arns, registry

TIMEOUT = Duration.seconds(30)


def patterns(settings: Settings) -> dict[str, events.EventPattern]:
    """The patterns of the events that may end a job of the stage, by the name of the target type."""
    found = {}
    for name in registry.names():
        type_ = registry.load(name)
        allowed = arns.of_service(type_.resource.service, settings.allowed_targets) if type_.resource is not None else ()
        if type_.ends is not None and allowed:
            detail = type_.ends.pattern(allowed)
            found[name] = events.EventPattern(source=[type_.ends.source], detail_type=[type_.ends.detail_type], detail=detail)
    return found


class Conclude(Construct):
    """The function, and the rules of the default bus that call it."""

    def __init__(self, scope: Construct, id: str, foundation: Foundation) -> None:
        super().__init__(scope, id)
        storage, lanes = foundation.storage, foundation.lanes
        self.function = Function(
            self,
            "conclude",
            foundation,
            foundation.environment(*JOB_RESOURCES, "ledger_table", "work_queue_url"),
            grants=[
                allow(storage.jobs.table_arn, "dynamodb:GetItem"),
                change_jobs(foundation),
                allow(storage.ledger.table_arn, "dynamodb:GetItem"),  # the shards that it may use
                allow(storage.tasks.table_arn, "dynamodb:UpdateItem"),  # concurrency slots of named targets
                *step_out(foundation),
                allow([*lanes.arns, lanes.work.queue_arn], "sqs:SendMessage"),  # jobs that waited for the ended one
            ],
            timeout=TIMEOUT,
            retries=2,
        )
        for name, pattern in patterns(foundation.settings).items():
            events.Rule(self, name.capitalize(), event_pattern=pattern, targets=[targets.LambdaFunction(self.function.live)])
