"""The only module that creates functions: each with a role of its own that has exactly the given grants, a log group and alarms.

A deployment publishes a version of each function that it changes, and then moves the function's alias `live` to it. Everything that calls
a function calls its alias, so its code, environment and memory change in one step.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from aws_cdk import Acknowledgment, Duration, RemovalPolicy, Stack, Validations
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.alarms import Operators
from infra.bundle import RUNTIME
from infra.encryption import Encryption
from infra.lanes import Lanes
from infra.parameters import LIVE
from infra.settings import Settings
from infra.storage import Storage
from lambdas._settings import Settings as Environment
from scheduler.insight import metrics
from scheduler.model.job import Lane


@dataclass(frozen=True)
class Foundation:
    """The resources and settings from which every function is built."""

    settings: Settings
    code: lambda_.Code
    storage: Storage
    lanes: Lanes
    operators: Operators
    encryption: Encryption
    deployment: str

    def environment(self, *names: str, **more: Any) -> Environment:
        """Return the settings of a function: the stage's rules, the settings `names` of `shared`, and `more` for this function alone."""
        shared = self.shared
        values: dict[str, Any] = {"stage": self.settings.stage} | {name: shared[name] for name in names} | more
        return Environment(rules=replace(self.settings.deployed, deployment=self.deployment), **values)

    @property
    def shared(self) -> dict[str, str]:
        """The settings that several functions have: the names of shared resources."""
        storage, queues = self.storage, self.lanes.queues
        return {
            "jobs_table": storage.jobs.table_name,
            "tasks_table": storage.tasks.table_name,
            "ledger_table": storage.ledger.table_name,
            "users_table": storage.users.table_name,
            "counters_table": storage.counters.table_name,
            "outputs_bucket": storage.outputs.bucket_name,
            "callback_secret": storage.callback_secret_arn,
            "one_time_queue_url": queues[Lane.ONE_TIME].queue_url,
            "recurring_queue_url": queues[Lane.RECURRING].queue_url,
            "retry_queue_url": queues[Lane.RETRY].queue_url,
            "work_queue_url": self.lanes.work.queue_url,
        }


def deployment(stack: Stack, code: lambda_.Code, settings: Settings) -> str:
    """The name of a deployment: another one if the code or a setting of the stage changes, and the same if nothing changes."""
    place = code.bind(stack).s3_location
    assert place is not None
    return hashlib.sha256(f"{place.object_key} {settings}".encode()).hexdigest()[:12]


# Every function that creates or ends jobs uses all of these.
JOB_RESOURCES = ("jobs_table", "tasks_table", "one_time_queue_url", "recurring_queue_url", "retry_queue_url")


def allow(resources: str | Sequence[str], *actions: str) -> iam.PolicyStatement:
    """One grant: these actions on these ARNs."""
    return iam.PolicyStatement(actions=list(actions), resources=[resources] if isinstance(resources, str) else list(resources))


def change_jobs(foundation: Foundation) -> iam.PolicyStatement:
    """The grant behind `Jobs.change` and `Jobs.claim`: conditional updates, alone or 25 a call (a PartiQL batch).

    A batch returns no item for a condition that was false, so the item is read.
    """
    return allow(foundation.storage.jobs.table_arn, "dynamodb:UpdateItem", "dynamodb:PartiQLUpdate", "dynamodb:BatchGetItem")


def list_jobs(foundation: Foundation) -> list[iam.PolicyStatement]:
    """The grants behind the lists of jobs; the indexes of failures and of the runs of a task hold keys only."""
    storage = foundation.storage
    return [
        allow(storage.jobs.table_arn, "dynamodb:Query", "dynamodb:BatchGetItem"),
        allow(storage.list_index_arns, "dynamodb:Query"),
    ]


def change_tasks(foundation: Foundation) -> list[iam.PolicyStatement]:
    """The grants behind the service of tasks: a task is stored in a transaction with its runs, and its run lock is deleted with it."""
    storage = foundation.storage
    tasks = ("GetItem", "Query", "PutItem", "UpdateItem", "DeleteItem", "ConditionCheckItem")  # the last one: the versions of its calendars
    return [
        allow(storage.tasks.table_arn, *(f"dynamodb:{action}" for action in tasks)),
        allow(storage.jobs.table_arn, "dynamodb:PutItem", "dynamodb:PartiQLInsert", "dynamodb:PartiQLDelete"),
    ]


def read_callback_secret(foundation: Foundation) -> iam.PolicyStatement:
    """The grant behind `Secrets.keys`."""
    return allow(foundation.storage.callback_secret_arn, "secretsmanager:GetSecretValue")


def step_out(foundation: Foundation) -> list[iam.PolicyStatement]:
    """The grants of functions that end jobs: to leave ordering queues, find the next entry, and find runs that wait for this run's end; to
    count ended members of groups, and start call-backs."""
    table = foundation.storage.tasks.table_arn
    return [
        allow(table, "dynamodb:Query"),
        allow(table, "dynamodb:PartiQLDelete"),
        allow(table, "dynamodb:BatchGetItem"),
        *count_members(foundation),
    ]


def count_members(foundation: Foundation) -> list[iam.PolicyStatement]:
    """The grants to count ended members of groups, and to store call-backs."""
    storage = foundation.storage
    return [
        allow(storage.tasks.table_arn, "dynamodb:GetItem", "dynamodb:UpdateItem", "dynamodb:BatchGetItem"),
        allow(storage.jobs.table_arn, "dynamodb:PartiQLInsert", "dynamodb:BatchGetItem"),
    ]


def step_in(foundation: Foundation) -> iam.PolicyStatement:
    """The grant of functions that create jobs: entries in the ordering queues."""
    return allow(foundation.storage.tasks.table_arn, "dynamodb:PartiQLInsert")


class Function(lambda_.Function):
    """The function of one verb: `lambdas/<verb>.py`. Callers use `live`, the alias of its deployed version."""

    def __init__(
        self,
        scope: Construct,
        verb: str,
        foundation: Foundation,
        environment: Environment,
        grants: Sequence[iam.PolicyStatement],
        timeout: Duration,
        traced: bool = True,
        loops: bool = False,
        retries: int = 0,
    ) -> None:
        """Create it.

        `loops`: its messages may start it again, directly or through other functions, any number of times. `retries`: of an asynchronous
        call; 0 if the next minute does the work of a failed call, so that a retry by Lambda would only duplicate it.
        """
        settings = foundation.settings if traced else replace(foundation.settings, tracing=False)
        key = foundation.encryption.key
        log_group = logs.LogGroup(
            scope, "Logs", encryption_key=key, retention=settings.log_retention, removal_policy=settings.removal_policy
        )
        super().__init__(
            scope,
            "Function",
            code=foundation.code,
            handler=f"lambdas.{verb}.handler",
            runtime=RUNTIME,
            architecture=lambda_.Architecture.custom(settings.architecture),
            memory_size=settings.memory_mb[verb],
            timeout=timeout,
            environment=environment.render() | powertools(verb, settings),
            role=_role(scope, log_group, settings, [*grants, *(foundation.encryption.grants if grants else [])]),
            log_group=log_group,
            logging_format=lambda_.LoggingFormat.JSON,
            # START, END and REPORT lines would be half of a job's log; their figures are available as metrics.
            system_log_level_v2=lambda_.SystemLogLevel.WARN,
            application_log_level_v2=lambda_.ApplicationLogLevel(settings.log_level),
            tracing=lambda_.Tracing.ACTIVE if settings.tracing else lambda_.Tracing.DISABLED,
            reserved_concurrent_executions=settings.reserved.get(verb),
            # Lambda stops a chain of about 16 calls that start each other; by default it takes such a chain for a mistake.
            recursive_loop=lambda_.RecursiveLoop.ALLOW if loops else None,
            # CloudFormation would delete the version before, which may still run and to which a roll-back returns; `ops/versions.py`
            # deletes older ones. The version of a deployment that fails goes: AWS publishes none twice.
            current_version_options=lambda_.VersionOptions(removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE),
        )
        self.live = lambda_.Alias(
            scope,
            "Live",
            alias_name=LIVE,
            version=self.current_version,
            retry_attempts=retries,
            # Lambda retries a throttled asynchronous call for up to six hours: calls of a past minute would hinder the next ones.
            max_event_age=Duration.minutes(5 if retries else 1),
        )
        raw = self.node.default_child
        assert isinstance(raw, lambda_.CfnFunction)
        raw.add_deletion_override("DependsOn")  # the construct names the role once more, which cfn-lint reports (W3005)
        Validations.of(self).acknowledge(
            Acknowledgment(id="AwsSolutions-L1", reason="the lock contains wheels for this runtime; a newer runtime needs a new lock")
        )


def trigger(scope: Construct, source: str, settings: Settings, encryption: Encryption, environment: Mapping[str, str]) -> lambda_.Function:
    """Create a function whose source is in the template, for the user pool: it starts in a tenth of the time, as each sign-in waits for it.

    It has no grants, and no alias: CloudFormation changes it in one step, since its source, environment and memory are in one resource.
    """
    group = logs.LogGroup(
        scope, "Logs", encryption_key=encryption.key, retention=settings.log_retention, removal_policy=settings.removal_policy
    )
    made = lambda_.Function(
        scope,
        "Function",
        code=lambda_.Code.from_inline(source),
        handler="index.handler",
        runtime=RUNTIME,
        architecture=lambda_.Architecture.custom(settings.architecture),
        memory_size=settings.memory_mb["tokens"],
        timeout=Duration.seconds(5),  # Cognito waits no longer
        environment=dict(environment),
        role=_role(scope, group, replace(settings, tracing=False), []),
        log_group=group,
        logging_format=lambda_.LoggingFormat.JSON,
        system_log_level_v2=lambda_.SystemLogLevel.WARN,
        application_log_level_v2=lambda_.ApplicationLogLevel(settings.log_level),
        reserved_concurrent_executions=settings.reserved.get("tokens"),
    )
    raw = made.node.default_child
    assert isinstance(raw, lambda_.CfnFunction)
    raw.add_deletion_override("DependsOn")  # as in `Function`
    Validations.of(made).acknowledge(Acknowledgment(id="AwsSolutions-L1", reason="the same runtime as the functions of the bundle"))
    return made


def powertools(verb: str, settings: Settings) -> dict[str, str]:
    """The environment of Powertools' logger and metrics; Powertools specifies the names."""
    return {
        "POWERTOOLS_SERVICE_NAME": verb,
        "POWERTOOLS_METRICS_NAMESPACE": metrics.namespace(settings.stage),
        "LOG_LEVEL": settings.log_level,
    }


def _renamed(grants: Sequence[iam.PolicyStatement], settings: Settings) -> Iterator[iam.PolicyStatement]:
    """The grants repeated under the action names that the stage enforces, where these differ."""
    for grant in grants:
        for name, renamed in settings.renamed_actions.items():
            if name in grant.actions:
                yield allow("*" if renamed.anywhere else grant.resources, renamed.action)


def actions_of(grants: Sequence[iam.PolicyStatement], settings: Settings) -> Sequence[str]:
    """The actions that grants allow in a stage, under all names that it may enforce."""
    return sorted({action for grant in [*grants, *_renamed(grants, settings)] for action in grant.actions})


def _role(scope: Construct, log_group: logs.LogGroup, settings: Settings, grants: Sequence[iam.PolicyStatement]) -> iam.IRole:
    statements = [allow(log_group.log_group_arn, "logs:CreateLogStream", "logs:PutLogEvents"), *grants, *_renamed(grants, settings)]
    if settings.tracing:
        statements.append(allow("*", "xray:PutTraceSegments", "xray:PutTelemetryRecords"))
    role = iam.Role(
        scope,
        "Role",
        assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
        inline_policies={"Grants": iam.PolicyDocument(statements=statements)},
    )
    Validations.of(role).acknowledge(
        Acknowledgment(id="AwsSolutions-IAM5[Resource::*]", reason="X-Ray, and Lambda's connection to a network, have no resource but *")
    )
    # Closed: no construct may add to the explicit grants.
    return role.without_policy_updates()
