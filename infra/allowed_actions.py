"""The operations of the option `allowed_actions`, as two policies of the executors' roles: what is allowed, and what is always denied.

They are policies of their own, since the inline policies of a role have at most 10,240 characters together.
"""

from collections.abc import Iterator, Sequence

from aws_cdk import Acknowledgment, ArnFormat, Aws, Stack, Validations
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra import targets
from infra.execute import Execute
from infra.settings import Settings
from scheduler.targets.denied_actions import PATTERNS

PASS = "iam:PassRole"
# The service that takes the roles of a call. https://docs.aws.amazon.com/IAM/latest/UserGuide/id_roles_use_passrole.html
TAKEN_BY = {
    "backup": "backup",
    "cloudformation": "cloudformation",
    "codebuild": "codebuild",
    "codepipeline": "codepipeline",
    "datasync": "datasync",
    "ec2": "ec2",
    "ecs": "ecs-tasks",
    "emr-serverless": "emr-serverless",
    "events": "events",
    "firehose": "firehose",
    "glue": "glue",
    "lambda": "lambda",
    "pipes": "pipes",
    "sagemaker": "sagemaker",
    "scheduler": "scheduler",
    "ssm": "ssm",
    "stepfunctions": "states",
}
# Those of the denied actions that executors need themselves, or that another statement denies with an exception.
EXCEPT = ("iam:*", "sts:*", "secretsmanager:GetSecretValue", "kms:Decrypt", "kms:GenerateDataKey*")


class AllowedActions(Construct):
    """Both policies. `secret`: the ARN of the callback secret; `own`: those of other resources whose names are not the stage's."""

    def __init__(
        self, scope: Construct, id: str, settings: Settings, executors: Sequence[Execute], *, secret: str, own: Sequence[str]
    ) -> None:
        super().__init__(scope, id)
        roles = [role.role_name for each in executors if (role := each.function.role) is not None]
        used = sorted({action for each in executors for action in each.actions})
        denied = self._policy("Denied", roles, [*_denied(settings, self, secret), _own(settings, self, used, [secret, *own])])
        allowed = self._policy("Allowed", roles, list(_allowed(settings)))
        allowed.add_resource_dependency(denied)  # else a denied action might be allowed at first
        found = {resource for each in settings.allowed_actions for resource in each.resources if "*" in resource}
        for resource in sorted(found):
            reason = "a resource of an allowed action of this stage"
            Validations.of(allowed).acknowledge(Acknowledgment(id=f"AwsSolutions-IAM5[Resource::{resource}]", reason=reason))

    def _policy(self, id: str, roles: Sequence[str], statements: Sequence[iam.PolicyStatement]) -> iam.CfnManagedPolicy:
        return iam.CfnManagedPolicy(self, id, policy_document=iam.PolicyDocument(statements=list(statements)), roles=list(roles))


def _allowed(settings: Settings) -> Iterator[iam.PolicyStatement]:
    passed: dict[str | None, set[str]] = {}  # roles by the service that takes them; None: it is not known
    for entry in settings.allowed_actions:
        yield iam.PolicyStatement(actions=list(entry.granted), resources=list(entry.resources))
        if entry.pass_roles:
            passed.setdefault(TAKEN_BY.get(entry.action.partition(":")[0]), set()).update(entry.pass_roles)
    for taker, roles in passed.items():
        only = None if taker is None else {"StringEquals": {"iam:PassedToService": f"{taker}.amazonaws.com"}}
        yield iam.PolicyStatement(actions=[PASS], resources=sorted(roles), conditions=only)


def _denied(settings: Settings, scope: Construct, secret: str) -> Iterator[iam.PolicyStatement]:
    """The denied actions, except for what executors do themselves: read their secrets, and use keys by way of other services.

    If the stage allows roles to be passed, or has roles in other accounts, all of IAM and STS but that is denied; only the listed roles
    are allowed.
    """
    deny = iam.Effect.DENY
    yield iam.PolicyStatement(effect=deny, actions=[each for each in PATTERNS if each not in EXCEPT], resources=["*"])
    on_roles = [PASS] if any(entry.pass_roles for entry in settings.allowed_actions) else []
    on_roles += [targets.ASSUME] if settings.accounts else []
    if on_roles:
        roles = f"arn:{Aws.PARTITION}:iam::*:role/*"
        yield iam.PolicyStatement(effect=deny, actions=["iam:*", "sts:*"], not_resources=[roles])
        yield iam.PolicyStatement(effect=deny, not_actions=on_roles, resources=[roles])
    else:
        yield iam.PolicyStatement(effect=deny, actions=["iam:*", "sts:*"], resources=["*"])
    used = [targets.secrets(scope, settings), secret]
    yield iam.PolicyStatement(effect=deny, actions=["secretsmanager:GetSecretValue"], not_resources=used)
    direct = {"Null": {"kms:ViaService": "true"}}
    yield iam.PolicyStatement(effect=deny, actions=["kms:Decrypt", "kms:GenerateDataKey*"], resources=["*"], conditions=direct)


def _own(settings: Settings, scope: Construct, used: Sequence[str], own: Sequence[str]) -> iam.PolicyStatement:
    """Deny all on the stage's own resources that its executors do not do there. The check of each payload protects them from the rest."""
    name, stack = f"{settings.stack}-*", Stack.of(scope)
    places = [("dynamodb", f"table/{name}"), ("lambda", f"function:{name}"), ("sqs", name), ("sns", name)]
    places += [
        ("ssm", f"parameter/punctual/{settings.stage}/*"),
        ("cloudformation", f"stack/{settings.stack}*"),
        ("events", f"rule/{name}"),
        ("events", f"event-bus/{settings.stack}"),
        ("secretsmanager", f"secret:{settings.secret_prefix}*"),
    ]
    made = [
        stack.format_arn(service=service, region="*", resource=place, arn_format=ArnFormat.NO_RESOURCE_NAME) for service, place in places
    ]
    buckets = stack.format_arn(service="s3", region="", account="", resource=name, arn_format=ArnFormat.NO_RESOURCE_NAME)
    return iam.PolicyStatement(effect=iam.Effect.DENY, not_actions=list(used), resources=[*made, buckets, *own])
