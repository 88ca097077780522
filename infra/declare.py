"""declare: creates, changes and deletes what stacks of CloudFormation declare. Only in stages with the option `templates`.

Each entry of the option has an alias of the function. The role of a user's stack that may call an alias acts for the owner of its entry:
IAM compares the ARN of the alias, and Lambda hands this ARN to the function. Nothing in an event decides the owner.
"""

from aws_cdk import CfnOutput, Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.function import Foundation, Function, allow
from infra.parameters import export

TIMEOUT = Duration.seconds(58)  # CloudFormation waits for 60: the time-out in the construct and in the guide


class Declare(Construct):
    """The function, its aliases, and their exports."""

    def __init__(self, scope: Construct, id: str, foundation: Foundation, api: Function, api_url: str) -> None:
        super().__init__(scope, id)
        settings, ledger = foundation.settings, foundation.storage.ledger
        own = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["declared#*"]}}
        self.function = Function(
            self,
            "declare",
            foundation,
            foundation.environment(
                "ledger_table",
                api_function=api.live.function_arn,
                api_url=api_url,
                template_entries=" ".join(each.written for each in settings.templates),
            ),
            grants=[
                allow(api.live.function_arn, "lambda:InvokeFunction"),  # every change is a request to the API, by its rules
                iam.PolicyStatement(
                    actions=["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:DeleteItem"],  # which stack declares an object
                    resources=[ledger.table_arn],
                    conditions=own,
                ),
            ],
            timeout=TIMEOUT,
        )
        for each in settings.templates:
            alias = lambda_.Alias(
                self,
                f"Of{camel(each.name)}",
                alias_name=each.name,
                version=self.function.current_version,
                retry_attempts=0,  # a later answer would come after CloudFormation has stopped waiting
                max_event_age=Duration.minutes(1),
            )
            name = f"Templates{camel(each.name)}"
            CfnOutput(Stack.of(self), name, value=alias.function_arn, export_name=export(settings.stage, each.name))


def camel(name: str) -> str:
    """The name of an entry in construct ids and outputs.

    >>> camel("web-shop")
    'WebShop'
    """
    return "".join(word.capitalize() for word in name.split("-"))
