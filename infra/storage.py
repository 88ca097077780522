"""The tables: `jobs` and `tasks` with their sparse indexes, the `ledger` of minutes, `users`, the `audit` trail, the `counters` and
the `notices`; a bucket for outputs and logs; and the secret that signs call-backs."""

from typing import cast

from aws_cdk import Acknowledgment, CfnElement, Duration, RemovalPolicy, Stack, Validations
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from infra.encryption import Encryption
from infra.settings import Settings

DUE_INDEX = "due"
FAILURES_INDEX = "failures"
MOVED_INDEX = "moved"
BY_TASK_INDEX = "by_task"
REPLENISH_INDEX = "replenish"
BY_MONTH_INDEX = "by_month"
LEAST_CAPACITY = 5  # units a second of a table with provisioned capacity, and of each of its indexes
UTILIZATION = 70  # percent


def _text(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)


def _number(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.NUMBER)


def _billing(most: int) -> dynamodb.Billing:
    """On demand if `most` is 0. Indexes inherit the capacity of their table.

    A table that changes between the two modes needs a seed: it has that capacity until its autoscaling exists and has seen its load.
    https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-dynamodb-globaltable-capacityautoscalingsettings.html
    """
    if not most:
        return dynamodb.Billing.on_demand()
    read, write = (
        dynamodb.Capacity.autoscaled(
            min_capacity=LEAST_CAPACITY, max_capacity=most, seed_capacity=most, target_utilization_percent=UTILIZATION
        )
        for _ in range(2)
    )
    return dynamodb.Billing.provisioned(read_capacity=read, write_capacity=write)


class Storage(Construct):
    """Tables on demand, with point-in-time recovery; TTL deletes items by `expires` (epoch seconds).

    The jobs table and its indexes may have provisioned capacity instead, which AWS raises and lowers within minutes. It costs less than
    half for an even load, and refuses writes in sudden bursts.
    """

    def __init__(self, scope: Construct, id: str, settings: Settings, encryption: Encryption) -> None:
        super().__init__(scope, id)
        self._encryption = encryption
        self.indexes: list[tuple[dynamodb.TableV2, str]] = []  # of all tables, by name
        self.jobs = self._table(
            "Jobs",
            settings,
            billing=_billing(settings.provisioned_writes),
            stream=dynamodb.StreamViewType.NEW_AND_OLD_IMAGES,
            indexes=[
                dynamodb.GlobalSecondaryIndexPropsV2(  # exactly the unfinished jobs, by the minute in which they are checked next
                    index_name=DUE_INDEX,
                    partition_key=_text("slot"),
                    sort_key=_number("due_at"),
                    projection_type=dynamodb.ProjectionType.INCLUDE,
                    non_key_attributes=["lane", "fence"],  # all fields that dispatch needs, and none that a claim changes
                ),
                dynamodb.GlobalSecondaryIndexPropsV2(  # failed and killed jobs; reading them is independent of successful ones
                    index_name=FAILURES_INDEX,
                    partition_key=_text("pk"),
                    sort_key=_text("failed_position"),
                    projection_type=dynamodb.ProjectionType.INCLUDE,
                    non_key_attributes=["type", "task", "fingerprint", "failed_at", "killed_at"],  # to count by error, and to select
                ),
                dynamodb.GlobalSecondaryIndexPropsV2(  # rescheduled jobs: a list by time does not find them by their ids
                    index_name=MOVED_INDEX,
                    partition_key=_text("moved_partition"),
                    sort_key=_text("moved_position"),
                    projection_type=dynamodb.ProjectionType.INCLUDE,
                    non_key_attributes=["task"],  # to select; a claim and a settlement change nothing of it
                ),
                dynamodb.GlobalSecondaryIndexPropsV2(  # the runs of one task
                    index_name=BY_TASK_INDEX,
                    partition_key=_text("task"),
                    sort_key=_text("sk"),
                    projection_type=dynamodb.ProjectionType.KEYS_ONLY,
                ),
            ],
        )
        self.tasks = self._table(
            "Tasks",
            settings,
            stream=dynamodb.StreamViewType.NEW_AND_OLD_IMAGES,
            indexes=[
                dynamodb.GlobalSecondaryIndexPropsV2(  # tasks whose next runs must be stored, by the minute in which that is due
                    index_name=REPLENISH_INDEX,
                    partition_key=_text("replenish"),
                    sort_key=_text("sk"),
                    projection_type=dynamodb.ProjectionType.KEYS_ONLY,
                ),
            ],
        )
        self.ledger = self._table("Ledger", settings)
        self.users = self._table("Users", settings)
        self.audit = self._table(
            "Audit",
            settings,
            indexes=[
                dynamodb.GlobalSecondaryIndexPropsV2(  # the changes of all users, by month
                    index_name=BY_MONTH_INDEX,
                    partition_key=_text("month"),
                    sort_key=_text("sk"),
                    projection_type=dynamodb.ProjectionType.ALL,
                ),
            ],
        )
        self.counters = self._table("Counters", settings)
        self.notices = self._table("Notices", settings)
        self.outputs = self._outputs(settings)
        self.audit_lock = self._audit_lock(settings) if settings.audit_lock_days else None
        self.callback_secret_arn = self._callback_secret(settings)
        self.due_index_arn = f"{self.jobs.table_arn}/index/{DUE_INDEX}"
        self.by_month_index_arn = f"{self.audit.table_arn}/index/{BY_MONTH_INDEX}"
        self.replenish_index_arn = f"{self.tasks.table_arn}/index/{REPLENISH_INDEX}"
        self.list_index_arns = [f"{self.jobs.table_arn}/index/{name}" for name in (FAILURES_INDEX, MOVED_INDEX, BY_TASK_INDEX)]

    def acknowledge_outputs(self, role: Construct) -> None:
        """Acknowledge the finding that a function may read or write the outputs of any job."""
        self._acknowledge_objects(self.outputs, role, "all objects of one bucket, which holds only outputs")

    def lock_audit(self, role: Construct) -> list[iam.PolicyStatement]:
        """The grant to add objects to the bucket that locks audit entries, if there is one."""
        if self.audit_lock is None:
            return []
        self._acknowledge_objects(self.audit_lock, role, "all objects of one bucket, which holds only audit entries; none can be replaced")
        return [iam.PolicyStatement(actions=["s3:PutObject"], resources=[self.audit_lock.arn_for_objects("*")])]

    def _acknowledge_objects(self, bucket: s3.Bucket, role: Construct, reason: str) -> None:
        id = Stack.of(self).get_logical_id(cast(CfnElement, bucket.node.default_child))
        Validations.of(role).acknowledge(Acknowledgment(id=f"AwsSolutions-IAM5[Resource::<{id}.Arn>/*]", reason=reason))

    def _audit_lock(self, settings: Settings) -> s3.Bucket:
        """The bucket with a copy of each audit entry. In compliance mode nobody, not even the account's root user, can delete a version or
        shorten its retention: https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-lock.html"""
        days = settings.audit_lock_days
        bucket = s3.Bucket(
            self,
            "AuditLock",
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            encryption=self._encryption.of_buckets,
            encryption_key=self._encryption.key,
            bucket_key_enabled=self._encryption.key is not None,
            enforce_ssl=settings.tls_only,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            object_lock_default_retention=s3.ObjectLockRetention.compliance(Duration.days(days)),
            lifecycle_rules=[s3.LifecycleRule(expiration=Duration.days(days + 1), noncurrent_version_expiration=Duration.days(1))],
            removal_policy=RemovalPolicy.RETAIN,  # in every stage: a stack with locked objects could not be deleted
        )
        reason = "only the API writes it; CloudTrail data events can record each access"
        Validations.of(bucket).acknowledge(Acknowledgment(id="AwsSolutions-S1", reason=reason))
        return bucket

    def _outputs(self, settings: Settings) -> s3.Bucket:
        """The bucket of outputs and logs that are too large for their items. Objects expire when the last of those items do."""
        days = max(settings.rules.retention.days, settings.rules.retention.failure_days)
        bucket = s3.Bucket(
            self,
            "Outputs",
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            encryption=self._encryption.of_buckets,
            encryption_key=self._encryption.key,
            bucket_key_enabled=self._encryption.key is not None,
            enforce_ssl=settings.tls_only,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            lifecycle_rules=[s3.LifecycleRule(expiration=Duration.days(days), abort_incomplete_multipart_upload_after=Duration.days(1))],
            removal_policy=settings.removal_policy,
        )
        Validations.of(bucket).acknowledge(
            Acknowledgment(id="AwsSolutions-S1", reason="only the functions access it; CloudTrail data events can record each access")
        )
        return bucket

    def _callback_secret(self, settings: Settings) -> str:
        """The ARN of the callback secret, which signs tokens. To rotate it, put a new value; tokens of the previous value stay valid."""
        secret = secretsmanager.Secret(
            self,
            "CallbackKey",
            description="signs the tokens with which workers report on jobs",
            encryption_key=self._encryption.key,
            generate_secret_string=secretsmanager.SecretStringGenerator(password_length=64, exclude_punctuation=True),
            removal_policy=settings.removal_policy,
        )
        Validations.of(secret).acknowledge(
            Acknowledgment(id="AwsSolutions-SMG4", reason="an operator rotates it: tokens live for up to 30 days, and two values are valid")
        )
        raw = secret.node.default_child
        assert isinstance(raw, secretsmanager.CfnSecret)
        return raw.attr_id  # the ARN; a reference is the ARN on AWS, but the name on the local AWS

    def _table(
        self,
        id: str,
        settings: Settings,
        *,
        billing: dynamodb.Billing | None = None,
        stream: dynamodb.StreamViewType | None = None,
        indexes: list[dynamodb.GlobalSecondaryIndexPropsV2] | None = None,
    ) -> dynamodb.TableV2:
        # TableV2 is a global table of one region: a standby region can be added later without a new table.
        table = dynamodb.TableV2(
            self,
            id,
            partition_key=_text("pk"),
            sort_key=_text("sk"),
            billing=billing or dynamodb.Billing.on_demand(),
            dynamo_stream=stream,
            global_secondary_indexes=indexes,
            time_to_live_attribute="expires",
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(point_in_time_recovery_enabled=True),
            deletion_protection=settings.protected,
            removal_policy=settings.guarded_removal_policy,
        )
        self._encryption.of_table(table)
        self.indexes += [(table, index.index_name) for index in indexes or ()]
        return table
