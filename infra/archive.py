"""The archive: items that TTL deletes from the jobs table reach S3 through project and Firehose; Athena queries them."""

from aws_cdk import Acknowledgment, CfnElement, Duration, Stack, Validations
from aws_cdk import aws_athena as athena
from aws_cdk import aws_glue as glue
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kinesisfirehose as firehose
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.encryption import Encryption
from infra.settings import Settings
from scheduler.insight import archive

FOLDER = "jobs"
FIRST_DAY = "2026-01-01"
QUERIES = {
    "one job": "SELECT DISTINCT * FROM {table} WHERE id = 'PUT THE ID HERE' AND day = 'PUT THE DAY HERE, SUCH AS 2026-11-20'",
    "how a week's jobs ended": "SELECT day, type, status, count(DISTINCT id) AS jobs, approx_percentile(start_delay_ms, 0.99) AS p99_ms "
    "FROM {table} WHERE day BETWEEN '2026-11-20' AND '2026-11-26' GROUP BY day, type, status ORDER BY day, type, status",
    "the runs of a task that failed": "SELECT DISTINCT id, day, reason, fingerprint, details FROM {table} "
    "WHERE task_id = 'PUT THE ID HERE' AND status IN ('failed', 'killed') AND day >= '2026-11-20' ORDER BY id",
}


class Archive(Construct):
    """The delivery stream, its bucket, the table over it, a work group and saved queries."""

    def __init__(self, scope: Construct, id: str, settings: Settings, encryption: Encryption) -> None:
        super().__init__(scope, id)
        self.bucket = self._bucket(settings, encryption)
        self.stream = self._stream(settings, encryption)
        self.database = settings.archive_database
        self._table()
        self._queries(settings.stage, encryption)

    def _bucket(self, settings: Settings, encryption: Encryption) -> s3.Bucket:
        bucket = s3.Bucket(
            self,
            "Bucket",
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            encryption=encryption.of_buckets,
            encryption_key=encryption.key,
            bucket_key_enabled=encryption.key is not None,
            enforce_ssl=settings.tls_only,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            lifecycle_rules=[
                s3.LifecycleRule(prefix=f"{FOLDER}/", expiration=Duration.days(settings.archive_days)),
                s3.LifecycleRule(prefix="results/", expiration=Duration.days(7)),
                s3.LifecycleRule(abort_incomplete_multipart_upload_after=Duration.days(1)),
            ],
            removal_policy=settings.removal_policy,
        )
        reason = "only Firehose writes it, and only users of Athena read it; CloudTrail data events can record each access"
        Validations.of(bucket).acknowledge(Acknowledgment(id="AwsSolutions-S1", reason=reason))
        return bucket

    def _stream(self, settings: Settings, encryption: Encryption) -> firehose.CfnDeliveryStream:
        """Created without the construct, which would add policies to its role beyond the explicit grants."""
        failures = logs.LogGroup(
            self,
            "Failures",
            encryption_key=encryption.key,
            retention=settings.log_retention,
            removal_policy=settings.removal_policy,
        )
        failed = failures.add_stream("Stream")
        failed.apply_removal_policy(settings.removal_policy)  # without it the CDK retains it in every stage
        made = firehose.CfnDeliveryStream(
            self,
            "Stream",
            delivery_stream_type="DirectPut",
            delivery_stream_encryption_configuration_input=firehose.CfnDeliveryStream.DeliveryStreamEncryptionConfigurationInputProperty(
                key_type="AWS_OWNED_CMK"
            ),
            extended_s3_destination_configuration=firehose.CfnDeliveryStream.ExtendedS3DestinationConfigurationProperty(
                bucket_arn=self.bucket.bucket_arn,
                role_arn=self._role(settings, encryption, failures).role_arn,
                # Deliveries that failed: Firehose reports them nowhere else.
                cloud_watch_logging_options=firehose.CfnDeliveryStream.CloudWatchLoggingOptionsProperty(
                    enabled=True,
                    log_group_name=failures.log_group_name,
                    log_stream_name=failed.log_stream_name,
                ),
                # Items of the same age expire at about the same time, so few days (partitions) are open at once.
                prefix=f"{FOLDER}/{archive.DAY}=!{{partitionKeyFromQuery:{archive.DAY}}}/",
                error_output_prefix="errors/!{firehose:error-output-type}/",
                buffering_hints=firehose.CfnDeliveryStream.BufferingHintsProperty(interval_in_seconds=900, size_in_m_bs=64),
                compression_format="GZIP",
                dynamic_partitioning_configuration=firehose.CfnDeliveryStream.DynamicPartitioningConfigurationProperty(enabled=True),
                processing_configuration=firehose.CfnDeliveryStream.ProcessingConfigurationProperty(
                    enabled=True,
                    processors=[
                        firehose.CfnDeliveryStream.ProcessorProperty(
                            type="MetadataExtraction",
                            parameters=[
                                firehose.CfnDeliveryStream.ProcessorParameterProperty(
                                    parameter_name="MetadataExtractionQuery", parameter_value=f"{{{archive.DAY}: .{archive.DAY}}}"
                                ),
                                firehose.CfnDeliveryStream.ProcessorParameterProperty(
                                    parameter_name="JsonParsingEngine", parameter_value="JQ-1.6"
                                ),
                            ],
                        )
                    ],
                ),
            ),
        )
        made.apply_removal_policy(settings.removal_policy)
        return made

    def _role(self, settings: Settings, encryption: Encryption, failures: logs.LogGroup) -> iam.IRole:
        statements = [
            iam.PolicyStatement(actions=["s3:AbortMultipartUpload", "s3:PutObject"], resources=[self.bucket.arn_for_objects("*")]),
            iam.PolicyStatement(
                actions=["s3:GetBucketLocation", "s3:ListBucket", "s3:ListBucketMultipartUploads"], resources=[self.bucket.bucket_arn]
            ),
            iam.PolicyStatement(actions=["logs:PutLogEvents"], resources=[failures.log_group_arn]),
        ]
        if encryption.key is not None:
            statements.append(
                iam.PolicyStatement(
                    actions=["kms:Decrypt", "kms:GenerateDataKey"],
                    resources=[encryption.key.key_arn],
                    conditions={"StringEquals": {"kms:ViaService": [f"s3.{Stack.of(self).region}.amazonaws.com"]}},
                )
            )
        role = iam.Role(
            self,
            "StreamRole",
            assumed_by=iam.ServicePrincipal(
                "firehose.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": Stack.of(self).account}}
            ),
            inline_policies={"Grants": iam.PolicyDocument(statements=statements)},
        )
        role.apply_removal_policy(settings.removal_policy)  # that of the stream, which cannot deliver without it
        raw = self.bucket.node.default_child
        assert isinstance(raw, CfnElement)
        name = f"AwsSolutions-IAM5[Resource::<{Stack.of(self).get_logical_id(raw)}.Arn>/*]"
        Validations.of(role).acknowledge(Acknowledgment(id=name, reason="the objects of one bucket, which has no others"))
        return role.without_policy_updates()

    def _table(self) -> None:
        """Days need not be added one by one: Athena derives them."""
        catalog = Stack.of(self).account
        database = glue.CfnDatabase(
            self, "Database", catalog_id=catalog, database_input=glue.CfnDatabase.DatabaseInputProperty(name=self.database)
        )
        place = f"s3://{self.bucket.bucket_name}/{FOLDER}/"
        table = glue.CfnTable(
            self,
            "Jobs",
            catalog_id=catalog,
            database_name=self.database,
            table_input=glue.CfnTable.TableInputProperty(
                name="jobs",
                table_type="EXTERNAL_TABLE",
                partition_keys=[glue.CfnTable.ColumnProperty(name=archive.DAY, type="string")],
                parameters={
                    "projection.enabled": "true",
                    f"projection.{archive.DAY}.type": "date",
                    f"projection.{archive.DAY}.format": "yyyy-MM-dd",
                    f"projection.{archive.DAY}.range": f"{FIRST_DAY},NOW",
                    "storage.location.template": f"{place}{archive.DAY}=${{{archive.DAY}}}/",
                },
                storage_descriptor=glue.CfnTable.StorageDescriptorProperty(
                    columns=[glue.CfnTable.ColumnProperty(name=name, type=kind) for name, kind in archive.COLUMNS.items()],
                    location=place,
                    input_format="org.apache.hadoop.mapred.TextInputFormat",
                    output_format="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
                    serde_info=glue.CfnTable.SerdeInfoProperty(serialization_library="org.openx.data.jsonserde.JsonSerDe"),
                ),
            ),
        )
        table.add_dependency(database)

    def _queries(self, stage: str, encryption: Encryption) -> None:
        key = encryption.key
        group = athena.CfnWorkGroup(
            self,
            "Queries",
            name=f"punctual-{stage}",
            recursive_delete_option=True,  # AWS refuses to delete a group in which a query ever ran
            work_group_configuration=athena.CfnWorkGroup.WorkGroupConfigurationProperty(
                enforce_work_group_configuration=True,
                result_configuration=athena.CfnWorkGroup.ResultConfigurationProperty(
                    output_location=f"s3://{self.bucket.bucket_name}/results/",
                    encryption_configuration=athena.CfnWorkGroup.EncryptionConfigurationProperty(
                        encryption_option="SSE_S3" if key is None else "SSE_KMS", kms_key=None if key is None else key.key_arn
                    ),
                ),
            ),
        )
        for number, (name, query) in enumerate(QUERIES.items()):
            athena.CfnNamedQuery(
                self,
                f"Query{number}",
                database=self.database,
                name=name,
                query_string=query.format(table=f"{self.database}.jobs"),
                work_group=group.name,
            ).add_dependency(group)
