"""The tables: `jobs` and `tasks` with their sparse indexes, the `ledger` of minutes, `users`, the `audit` trail, the `counters` and
the `notices`; a bucket for outputs and logs; and the secret that signs call-backs."""

from typing import cast

from aws_cdk import Acknowledgment, CfnElement, Duration, Stack, Validations
from aws_cdk import aws_dynamodb as dynamodb
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


def _text(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)


def _number(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.NUMBER)


class Storage(Construct):
    """On demand, with point-in-time recovery; items leave by TTL (`expires`, epoch seconds)."""

    def __init__(self, scope: Construct, id: str, settings: Settings, encryption: Encryption) -> None:
        super().__init__(scope, id)
        self._encryption = encryption
        self.jobs = self._table(
            "Jobs",
            settings,
            stream=dynamodb.StreamViewType.NEW_AND_OLD_IMAGES,
            indexes=[
                dynamodb.GlobalSecondaryIndexPropsV2(  # exactly the jobs that are not finished, by the minute to look at them next
                    index_name=DUE_INDEX,
                    partition_key=_text("slot"),
                    sort_key=_number("due_at"),
                    projection_type=dynamodb.ProjectionType.INCLUDE,
                    non_key_attributes=["lane", "fence"],  # all that dispatch needs, and nothing that a claim changes
                ),
                dynamodb.GlobalSecondaryIndexPropsV2(  # failed and killed jobs of one owner, whatever the number of good ones
                    index_name=FAILURES_INDEX,
                    partition_key=_text("failed_owner"),
                    sort_key=_text("position"),
                    projection_type=dynamodb.ProjectionType.INCLUDE,
                    non_key_attributes=["type", "task", "fingerprint", "failed_at", "killed_at"],  # to count them by error, and to choose
                ),
                dynamodb.GlobalSecondaryIndexPropsV2(  # jobs that were rescheduled: a list by time does not find them by their ids
                    index_name=MOVED_INDEX,
                    partition_key=_text("moved_owner"),
                    sort_key=_text("position"),
                    projection_type=dynamodb.ProjectionType.ALL,  # they are few, and a page of a list is one query of each partition
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
                dynamodb.GlobalSecondaryIndexPropsV2(  # tasks whose next runs must be stored, by the minute of it
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
                dynamodb.GlobalSecondaryIndexPropsV2(  # everybody's changes by month
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
        self.callback_secret_arn = self._callback_secret(settings)
        self.due_index_arn = f"{self.jobs.table_arn}/index/{DUE_INDEX}"
        self.failures_index_arn = f"{self.jobs.table_arn}/index/{FAILURES_INDEX}"
        self.by_month_index_arn = f"{self.audit.table_arn}/index/{BY_MONTH_INDEX}"
        self.replenish_index_arn = f"{self.tasks.table_arn}/index/{REPLENISH_INDEX}"
        self.list_index_arns = [f"{self.jobs.table_arn}/index/{name}" for name in (FAILURES_INDEX, MOVED_INDEX, BY_TASK_INDEX)]

    def acknowledge_outputs(self, role: Construct) -> None:
        """That a function may read or write outputs means: of whatever job."""
        id = Stack.of(self).get_logical_id(cast(CfnElement, self.outputs.node.default_child))
        name = f"AwsSolutions-IAM5[Resource::<{id}.Arn>/*]"
        Validations.of(role).acknowledge(Acknowledgment(id=name, reason="the objects of one bucket, which has no others"))

    def _outputs(self, settings: Settings) -> s3.Bucket:
        """What attempts put out and logged beyond what their items hold. Goes when the last of those items does."""
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
            Acknowledgment(id="AwsSolutions-S1", reason="only the functions reach it; CloudTrail data events tell of each access if wanted")
        )
        return bucket

    def _callback_secret(self, settings: Settings) -> str:
        """The ARN of what signs the tokens of call-backs. To change it, put a new value; tokens of the one before it still count."""
        secret = secretsmanager.Secret(
            self,
            "CallbackKey",
            description="signs the tokens with which workers report on jobs",
            encryption_key=self._encryption.key,
            generate_secret_string=secretsmanager.SecretStringGenerator(password_length=64, exclude_punctuation=True),
            removal_policy=settings.removal_policy,
        )
        Validations.of(secret).acknowledge(
            Acknowledgment(id="AwsSolutions-SMG4", reason="an operator puts a new value: tokens live for up to 30 days, and only two count")
        )
        raw = secret.node.default_child
        assert isinstance(raw, secretsmanager.CfnSecret)
        return raw.attr_id  # the ARN, as is a reference on AWS; on the local AWS that is the name

    def _table(
        self,
        id: str,
        settings: Settings,
        *,
        stream: dynamodb.StreamViewType | None = None,
        indexes: list[dynamodb.GlobalSecondaryIndexPropsV2] | None = None,
    ) -> dynamodb.TableV2:
        # TableV2, a global table of one region: a standby region joins later without a new table.
        table = dynamodb.TableV2(
            self,
            id,
            partition_key=_text("pk"),
            sort_key=_text("sk"),
            billing=dynamodb.Billing.on_demand(),
            dynamo_stream=stream,
            global_secondary_indexes=indexes,
            time_to_live_attribute="expires",
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(point_in_time_recovery_enabled=True),
            deletion_protection=settings.protected,
            removal_policy=settings.removal_policy,
        )
        self._encryption.of_table(table)
        return table
