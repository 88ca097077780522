"""fetch: calls the URLs of `http` jobs. An attacker who takes it over gets a role that may only write its log, and no other addresses.

fetch-private is the same code in the private network of the option `network`. It calls private targets, and nothing else.
"""

from dataclasses import replace

from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.function import Foundation, Function, allow
from infra.lanes import EXECUTE_TIMEOUT
from infra.options import Network
from lambdas._settings import Settings as Environment
from scheduler.model.rules import Rules

# Lambda uses them to connect the function: https://docs.aws.amazon.com/aws-managed-policy/latest/reference/AWSLambdaVPCAccessExecutionRole.html
INTERFACES = (
    "ec2:CreateNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:DeleteNetworkInterface",
    "ec2:AssignPrivateIpAddresses",
    "ec2:UnassignPrivateIpAddresses",
)


class Fetch(Construct):
    """The function. Only executors and notify may invoke it, and only executors the one in the private network."""

    def __init__(self, scope: Construct, id: str, foundation: Foundation, *, network: Network | None = None, api_url: str = "") -> None:
        """Create it. With `network` it is fetch-private, which never calls the stage's own API at `api_url`."""
        super().__init__(scope, id)
        settings = foundation.settings
        allowed = network.allow if network else ()
        names = {"api_url": api_url} if network else {}
        self.function = Function(
            self,
            "fetch",
            foundation,
            Environment(
                stage=settings.stage,
                rules=Rules(allow_private_http=settings.rules.allow_private_http, deployment=foundation.deployment),
                reach=replace(
                    settings.reach,
                    arns=(),
                    sender="",
                    actions=(),
                    accounts=(),
                    stage="",
                    network=allowed,
                    hosts=() if network else settings.reach.hosts,
                ),
                **names,
            ),
            grants=_interfaces() if network else [],
            timeout=EXECUTE_TIMEOUT,
            traced=False,  # tracing would add X-Ray to its role
        )
        if network:
            raw = self.function.node.default_child
            assert isinstance(raw, lambda_.CfnFunction)
            raw.reserved_concurrent_executions = settings.reserved.get("fetch-private")
            raw.vpc_config = lambda_.CfnFunction.VpcConfigProperty(  # ids alone: nothing in the account is looked up
                subnet_ids=list(network.subnets),
                security_group_ids=list(network.security_groups),
                ipv6_allowed_for_dual_stack=any(":" in entry for entry in allowed),
            )


def _interfaces() -> list[iam.PolicyStatement]:
    """The grants with which Lambda connects a function to a network. The code of the function itself may not use them."""
    own = iam.PolicyStatement(
        effect=iam.Effect.DENY,
        actions=["ec2:*"],
        resources=["*"],
        # A call of the function's code has this key: https://docs.aws.amazon.com/lambda/latest/dg/permissions-source-function-arn.html
        conditions={"Null": {"lambda:SourceFunctionArn": "false"}},
    )
    return [allow("*", *INTERFACES), own]
