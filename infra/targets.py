"""What the executors' roles may do on AWS for jobs: the actions that the target types declare, on the allowed ARNs alone."""

from collections.abc import Iterator

from aws_cdk import Acknowledgment, ArnFormat, Aws, Stack, Validations
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.settings import Settings
from scheduler.targets import arns, registry


def grants(scope: Construct, settings: Settings) -> list[iam.PolicyStatement]:
    """Empty for a stage that allows nothing."""
    return [*_on_arns(settings), *mail(scope, settings)]


def secrets(scope: Construct, settings: Settings) -> str:
    """The secrets that jobs may use: those of this account and region whose names begin with the stage's prefix."""
    return Stack.of(scope).format_arn(
        service="secretsmanager", resource="secret", resource_name=f"{settings.secret_prefix}*", arn_format=ArnFormat.COLON_RESOURCE_NAME
    )


def acknowledge(role: Construct, settings: Settings) -> None:
    """Stars that an operator wrote are what an operator wanted; those over executions are over one machine's."""
    found = {resource for statement in _on_arns(settings) for resource in statement.resources if "*" in resource}
    for resource in sorted(found):
        reason = "an allowed target of this stage, or the executions of one"
        Validations.of(role).acknowledge(Acknowledgment(id=f"AwsSolutions-IAM5[Resource::{resource}]", reason=reason))
    name = secrets(role, settings)
    for token, shown in ((Aws.PARTITION, "<AWS::Partition>"), (Aws.REGION, "<AWS::Region>"), (Aws.ACCOUNT_ID, "<AWS::AccountId>")):
        name = name.replace(token, shown)
    reason = "the secrets that owners of jobs have put there to be used; an executor asks for those of a job's owner"
    Validations.of(role).acknowledge(Acknowledgment(id=f"AwsSolutions-IAM5[Resource::{name}]", reason=reason))


def _on_arns(settings: Settings) -> Iterator[iam.PolicyStatement]:
    for resource in registry.resources():
        if allowed := arns.of_service(resource.service, settings.allowed_targets):
            for permission in resource.permissions:
                yield iam.PolicyStatement(actions=[permission.action], resources=[permission.on(arn) for arn in allowed])


def mail(scope: Construct, settings: Settings) -> Iterator[iam.PolicyStatement]:
    """The sender may be verified by itself or with its whole domain; either way mail leaves under its name alone."""
    if not settings.email_sender:
        return
    stack, sender = Stack.of(scope), settings.email_sender
    identities = [stack.format_arn(service="ses", resource="identity", resource_name=name) for name in (sender, sender.partition("@")[2])]
    # "IfExists" for the local AWS, which does not tell the sender; AWS does.
    only = {"StringEqualsIfExists": {"ses:FromAddress": sender}}
    yield iam.PolicyStatement(actions=["ses:SendEmail"], resources=identities, conditions=only)
