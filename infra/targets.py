"""The grants of the executors' roles for jobs: the actions that the target types declare, on the allowed ARNs only.

Regardless of the allowed ARNs, the roles are denied the scheduler's own resources, except those that executors use.
"""

from collections.abc import Iterator, Sequence

from aws_cdk import Acknowledgment, ArnFormat, Aws, Stack, Validations
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.settings import Settings
from scheduler.targets import arns, registry
from scheduler.targets.target_type import Permission

ASSUME = "sts:AssumeRole"
# The scheduler's own resources that no executor uses: service, text before a name in ARNs, and the beginnings of construct names. Its
# other resources (fetch, the lanes, the work queue, most tables) are protected by the check of each payload alone: `arns.is_own`.
ANY_STAGE = "punctual-*"  # a stage may allow `function:*`, which covers the functions of the other stages, too
FUNCTIONS = (
    "Accounts", "Announce", "Api", "Bury", "Conclude", "Declare", "Dispatch", "Execute",
    "Intake", "Notify", "Plan", "Project", "Provision", "Scale", "Tick",
)  # fmt: skip
UNUSED = (
    ("lambda", "function:", FUNCTIONS),
    ("sqs", "", ("Announce", "Intake", "LanesDead", "Notify")),
    ("sns", "", ("Lanes", "Operators")),
    ("dynamodb", "table/", ("StorageAudit", "StorageCounters", "StorageNotices")),
)


def denials(scope: Construct) -> list[iam.PolicyStatement]:
    """Deny everything on the scheduler's own resources that no executor uses, of whichever stage of the account.

    The event of a call of the API's function names the caller, an administrator perhaps.
    """
    stack = Stack.of(scope)

    def arns_of(service: str, before: str, names: tuple[str, ...]) -> list[str]:
        places = [f"{before}{ANY_STAGE}-{name}*" for name in names]
        return [stack.format_arn(service=service, region="*", resource=place, arn_format=ArnFormat.NO_RESOURCE_NAME) for place in places]

    return [
        iam.PolicyStatement(effect=iam.Effect.DENY, actions=[f"{service}:*"], resources=arns_of(service, before, names))
        for service, before, names in UNUSED
    ]


def grants(scope: Construct, settings: Settings, users: str) -> list[iam.PolicyStatement]:
    """The grants for all allowed targets and for e-mail; empty for a stage that allows nothing."""
    return [*_on_arns(settings), *mail(scope, settings, users)]


def assume(settings: Settings) -> list[iam.PolicyStatement]:
    """The grant to assume the roles that the stage has in other accounts, and no role of its own account, whatever else is allowed."""
    if not settings.accounts:
        return []
    own = f"arn:{Aws.PARTITION}:iam::{Aws.ACCOUNT_ID}:role/*"
    return [
        iam.PolicyStatement(actions=[ASSUME], resources=[each.role for each in settings.accounts]),
        iam.PolicyStatement(effect=iam.Effect.DENY, actions=[ASSUME], resources=[own]),
    ]


def secrets(scope: Construct, settings: Settings) -> str:
    """The ARN pattern of the secrets that jobs may use: of this account and region, with the stage's prefix."""
    return Stack.of(scope).format_arn(
        service="secretsmanager", resource="secret", resource_name=f"{settings.secret_prefix}*", arn_format=ArnFormat.COLON_RESOURCE_NAME
    )


def acknowledge(role: Construct, settings: Settings) -> None:
    """Acknowledge the findings on `*`: operators write those in allowed targets, and one over executions covers one state machine."""
    found = {resource for statement in _on_arns(settings) for resource in statement.resources if "*" in resource}
    for resource in sorted(found):
        reason = "an allowed target of this stage, or the work that one starts"
        Validations.of(role).acknowledge(Acknowledgment(id=f"AwsSolutions-IAM5[Resource::{resource}]", reason=reason))
    name = secrets(role, settings)
    for token, shown in ((Aws.PARTITION, "<AWS::Partition>"), (Aws.REGION, "<AWS::Region>"), (Aws.ACCOUNT_ID, "<AWS::AccountId>")):
        name = name.replace(token, shown)
    reason = "secrets that owners stored for their jobs; an executor reads only those of a job's owner"
    Validations.of(role).acknowledge(Acknowledgment(id=f"AwsSolutions-IAM5[Resource::{name}]", reason=reason))


def _on_arns(settings: Settings) -> Iterator[iam.PolicyStatement]:
    for resource in registry.resources():
        if allowed := arns.of_service(resource.service, settings.allowed_targets):
            for permission in resource.permissions:
                if (on := _of_kind(permission.kind, allowed)) and (only := _only(permission, allowed)) is not None:
                    resources = sorted({permission.on(arn) for arn in on})
                    yield iam.PolicyStatement(actions=[permission.action], resources=resources, conditions=only)
    if settings.container_roles:
        to_containers = {"StringEquals": {"iam:PassedToService": "ecs-tasks.amazonaws.com"}}
        yield iam.PolicyStatement(actions=["iam:PassRole"], resources=list(settings.container_roles), conditions=to_containers)


def _of_kind(kind: str, allowed: Sequence[str]) -> list[str]:
    return [arn for arn in allowed if arn.split(":", 5)[5].startswith(kind)]


def _only(permission: Permission, allowed: Sequence[str]) -> dict[str, dict[str, list[str]]] | None:
    """The condition of a permission, often empty; None: no ARN is allowed that would meet it."""
    if permission.only is None:
        return {}
    key, kind = permission.only
    return {"ArnLike": {key: of_kind}} if (of_kind := _of_kind(kind, allowed)) else None


def mail(scope: Construct, settings: Settings, users: str) -> Iterator[iam.PolicyStatement]:
    """The grants to send e-mail, and to count it in the budget of its owner; `users`: the ARN of the table.

    SES may have verified the sender or its whole domain; the grant covers only the sender's address.
    """
    if not settings.email_sender:
        return
    tallies = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["mails#*"]}}
    yield iam.PolicyStatement(actions=["dynamodb:UpdateItem"], resources=[users], conditions=tallies)
    stack, sender = Stack.of(scope), settings.email_sender
    identities = [stack.format_arn(service="ses", resource="identity", resource_name=name) for name in (sender, sender.partition("@")[2])]
    # "IfExists" for the local AWS, which does not provide the sender address to conditions; AWS does.
    only = {"StringEqualsIfExists": {"ses:FromAddress": sender}}
    yield iam.PolicyStatement(actions=["ses:SendEmail"], resources=identities, conditions=only)
