"""conclude: settles jobs whose work in AWS has ended, by the events of the services. Only in stages whose jobs may start such work.

The events are free, and executors check the work too: a lost event delays an end by ten minutes at most.
"""

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from constructs import Construct

from infra.function import JOB_RESOURCES, Foundation, Function, allow, change_jobs, step_out
from infra.settings import Settings
from scheduler.targets import arns

TIMEOUT = Duration.seconds(30)


def patterns(settings: Settings) -> dict[str, events.EventPattern]:
    """The patterns of the events that may end a job of the stage, by the id of their rule: ECS names who started a task, Step Functions
    does not, so there the state machines are those that jobs may start."""
    found = {}
    if arns.of_service("ecs", settings.allowed_targets):
        ours = {"startedBy": events.Match.prefix("punctual/"), "lastStatus": ["STOPPED"]}
        found["Containers"] = events.EventPattern(source=["aws.ecs"], detail_type=["ECS Task State Change"], detail=ours)
    if machines := arns.of_service("states", settings.allowed_targets):
        ended = {"status": ["SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"], "stateMachineArn": [_match(each) for each in machines]}
        kind = "Step Functions Execution Status Change"
        found["Executions"] = events.EventPattern(source=["aws.states"], detail_type=[kind], detail=ended)
    return found


def _match(machine: str) -> object:
    return {"wildcard": machine} if "*" in machine else machine


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
            events.Rule(self, name, event_pattern=pattern, targets=[targets.LambdaFunction(self.function.live)])
