"""The customer key of a stage, an option: it encrypts tables, lanes, buckets, logs and the callback secret.

Without it AWS encrypts all of them with its own keys, which are free and cannot be revoked.
"""

from aws_cdk import ArnFormat, Aws, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.settings import Settings
from scheduler.model.intake import PRINCIPALS

THROUGH = ("dynamodb", "sqs", "sns", "s3", "secretsmanager")  # services that may use the key for a function; no function uses it directly


class Encryption(Construct):
    """The key, if there is one, and the encryption settings of each kind of store."""

    def __init__(self, scope: Construct, id: str, settings: Settings) -> None:
        super().__init__(scope, id)
        self.key: kms.Key | None = None
        if settings.customer_key:
            stack = Stack.of(self).stack_name
            description = f"everything that Punctual ({settings.stage}) stores and sends"
            self.key = kms.Key(
                self, "Key", description=description, enable_key_rotation=True, removal_policy=settings.guarded_removal_policy
            )
            self.key.add_to_resource_policy(
                iam.PolicyStatement(
                    principals=[iam.ServicePrincipal("sns.amazonaws.com")],  # the topic writes to queues that the key encrypts
                    actions=["kms:Decrypt", "kms:GenerateDataKey"],
                    resources=["*"],
                    # Its name, not its ARN, which would be a cycle: the topic names the key.
                    conditions={"ArnLike": {"aws:SourceArn": Stack.of(self).format_arn(service="sns", resource=f"{stack}-Lanes*")}},
                )
            )
            self.key.add_to_resource_policy(self._of_logs(stack))
            if any(owner != PRINCIPALS for owner in settings.intake.values()):
                self.key.add_to_resource_policy(self._of_rules())

    def _of_logs(self, stack: str) -> iam.PolicyStatement:
        """https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/encrypt-log-data-kms.html, for the log groups of this stack alone."""
        groups = Stack.of(self).format_arn(
            service="logs", resource="log-group", resource_name=f"{stack}-*", arn_format=ArnFormat.COLON_RESOURCE_NAME
        )
        return iam.PolicyStatement(
            principals=[iam.ServicePrincipal(f"logs.{Stack.of(self).region}.amazonaws.com")],
            actions=["kms:Decrypt*", "kms:Describe*", "kms:Encrypt*", "kms:GenerateDataKey*", "kms:ReEncrypt*"],
            resources=["*"],
            conditions={"ArnLike": {"kms:EncryptionContext:aws:logs:arn": groups}},
        )

    @staticmethod
    def _of_rules() -> iam.PolicyStatement:
        """Rules of this account send to an intake queue with a fixed owner, which the key encrypts."""
        return iam.PolicyStatement(
            principals=[iam.ServicePrincipal("events.amazonaws.com")],
            actions=["kms:Decrypt", "kms:GenerateDataKey"],
            resources=["*"],
            conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}},
        )

    @property
    def grants(self) -> list[iam.PolicyStatement]:
        """The grants of every function that stores or sends something."""
        if self.key is None:
            return []
        region = Stack.of(self).region
        services = [f"{service}.{region}.amazonaws.com" for service in THROUGH]
        return [
            iam.PolicyStatement(
                actions=["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey"],
                resources=[self.key.key_arn],
                conditions={"StringEquals": {"kms:ViaService": services}},
            )
        ]

    def of_table(self, table: dynamodb.TableV2) -> None:
        """Set by property overrides: the construct requires a known region, and this stack has none."""
        raw = table.node.default_child
        if self.key is not None and isinstance(raw, dynamodb.CfnGlobalTable):
            raw.add_property_override("SSESpecification", {"SSEEnabled": True, "SSEType": "KMS"})
            raw.add_property_override("Replicas.0.SSESpecification", {"KMSMasterKeyId": self.key.key_arn})

    @property
    def of_lanes(self) -> kms.IKey | None:
        """The key by its ARN, to avoid a cycle: a subscription would add the topic's name to the policy of the key that the topic names."""
        return None if self.key is None else kms.Key.from_key_arn(self, "OfLanes", self.key.key_arn)

    @property
    def of_queues(self) -> sqs.QueueEncryption:
        return sqs.QueueEncryption.SQS_MANAGED if self.key is None else sqs.QueueEncryption.KMS

    @property
    def of_buckets(self) -> s3.BucketEncryption:
        return s3.BucketEncryption.S3_MANAGED if self.key is None else s3.BucketEncryption.KMS
