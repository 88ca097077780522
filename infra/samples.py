"""One resource of each kind that jobs of the local stage can reach, in a separate stack beside the stage's own."""

import aws_cdk as cdk
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as event_targets
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_ses as ses
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as states
from constructs import Construct

from infra.bundle import RUNTIME
from infra.settings import SAMPLE, Settings

SOURCE = f"""
import boto3, json, os

def handler(event, context):
    print("called")
    sqs = boto3.client("sqs")
    sqs.send_message(QueueUrl=os.environ["QUEUE"], MessageBody=json.dumps(event))
    if event.get("fail"):
        raise ValueError("as requested")
    return {{"received": event, "by": "{SAMPLE}"}}
"""


class SamplesStack(cdk.Stack):
    """All messages to the function, the topic or the bus end in a queue, where a test can check them."""

    def __init__(self, scope: Construct, settings: Settings) -> None:
        super().__init__(scope, f"punctual-{settings.stage}-samples")
        self._queue("queue")
        calls = self._queue("calls")
        function = lambda_.Function(
            self,
            "Function",
            function_name=SAMPLE,
            runtime=RUNTIME,
            architecture=lambda_.Architecture.custom(settings.architecture),
            handler="index.handler",
            code=lambda_.Code.from_inline(SOURCE),
            environment={"QUEUE": calls.queue_url},
        )
        calls.grant_send_messages(function)

        topic = sns.Topic(self, "Topic", topic_name=SAMPLE)
        topic.add_subscription(subscriptions.SqsSubscription(self._queue("notifications"), raw_message_delivery=True))

        bus = events.EventBus(self, "Bus", event_bus_name=SAMPLE)
        everything = events.EventPattern(source=events.Match.prefix("sample"))
        events.Rule(self, "Rule", event_bus=bus, event_pattern=everything, targets=[event_targets.SqsQueue(self._queue("events"))])

        wait = states.Wait(self, "Wait", time=states.WaitTime.seconds_path("$.seconds"))
        chosen = states.Choice(self, "Which").when(states.Condition.is_present("$.fail"), states.Fail(self, "Fail", error="AsItWasTold"))
        chosen.when(states.Condition.is_present("$.seconds"), wait)
        definition = states.DefinitionBody.from_chainable(chosen.otherwise(states.Pass(self, "Pass")))
        states.StateMachine(self, "Machine", state_machine_name=SAMPLE, definition_body=definition)
        self._containers()
        ses.EmailIdentity(self, "Sender", identity=ses.Identity.email(settings.email_sender))

    def _containers(self) -> None:
        """A cluster and a task definition. The local AWS runs no image: a task ends as its environment says (`local/containers.py`)."""
        cdk.CfnResource(self, "Cluster", type="AWS::ECS::Cluster", properties={"ClusterName": SAMPLE})
        options = {"awslogs-group": SAMPLE, "awslogs-region": self.region, "awslogs-stream-prefix": "ecs"}
        container = {"Name": "main", "Image": "sample", "LogConfiguration": {"LogDriver": "awslogs", "Options": options}}
        cdk.CfnResource(
            self,
            "Task",
            type="AWS::ECS::TaskDefinition",
            properties={"Family": SAMPLE, "ContainerDefinitions": [container], "Memory": "512"},
        )

    def _queue(self, name: str) -> sqs.Queue:
        return sqs.Queue(self, name.title(), queue_name=f"{SAMPLE}-{name}")
