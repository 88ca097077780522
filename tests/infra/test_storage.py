from typing import Any

import pytest
from aws_cdk.assertions import Template

from infra.options import Options
from infra.settings import settings_for
from infra.stack import PunctualStack
from tests.contract import tables
from tests.infra.cloudformation import references
from tests.infra.conftest import Synthesized, app, synthesized
from tests.infra.test_grants import who_may


def test_jobs_is_keyed_by_owner_and_id_and_streams_both_images(any_stage: Synthesized) -> None:
    jobs = any_stage.one("DynamoDB::GlobalTable", "StorageJobs")
    assert jobs["KeySchema"] == [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}]
    assert jobs["StreamSpecification"] == {"StreamViewType": "NEW_AND_OLD_IMAGES"}


def test_tasks_stream_both_images(any_stage: Synthesized) -> None:
    assert any_stage.one("DynamoDB::GlobalTable", "StorageTasks")["StreamSpecification"] == {"StreamViewType": "NEW_AND_OLD_IMAGES"}


def test_the_due_index_projects_only_what_dispatch_needs(any_stage: Synthesized) -> None:
    jobs = any_stage.one("DynamoDB::GlobalTable", "StorageJobs")
    due = next(index for index in jobs["GlobalSecondaryIndexes"] if index["IndexName"] == "due")
    assert due["KeySchema"] == [{"AttributeName": "slot", "KeyType": "HASH"}, {"AttributeName": "due_at", "KeyType": "RANGE"}]
    assert due["Projection"] == {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["lane", "fence"]}
    types = {item["AttributeName"]: item["AttributeType"] for item in jobs["AttributeDefinitions"]}
    assert types["due_at"] == "N" and {kind for name, kind in types.items() if name != "due_at"} == {"S"}


@pytest.mark.parametrize(
    ("kind", "prefix"), [(kind.upper(), f"Storage{kind}") for kind in ("Jobs", "Tasks", "Ledger", "Users", "Audit", "Counters", "Notices")]
)
def test_the_contract_tests_use_the_same_tables(any_stage: Synthesized, kind: str, prefix: str) -> None:
    """Keys, indexes and projections are equal, so the results of the contract tests apply to the deployed tables."""
    made, tested = any_stage.one("DynamoDB::GlobalTable", prefix), getattr(tables, kind)

    def by_name(values: list[dict[str, Any]], name: str) -> dict[str, dict[str, Any]]:
        return {value[name]: value for value in values}

    assert made["KeySchema"] == tested["KeySchema"]
    assert by_name(made["AttributeDefinitions"], "AttributeName") == by_name(tested["AttributeDefinitions"], "AttributeName")
    assert by_name(made.get("GlobalSecondaryIndexes", []), "IndexName") == by_name(tested.get("GlobalSecondaryIndexes", []), "IndexName")


def test_tables_are_on_demand_with_ttl_and_point_in_time_recovery(any_stage: Synthesized) -> None:
    made = any_stage.all("DynamoDB::GlobalTable")
    assert len(made) == 7
    for table in made.values():
        assert table["BillingMode"] == "PAY_PER_REQUEST"
        assert table["TimeToLiveSpecification"] == {"AttributeName": "expires", "Enabled": True}
        assert [replica["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"] for replica in table["Replicas"]] == [True]


@pytest.mark.long
def test_the_jobs_table_and_its_indexes_may_have_provisioned_capacity() -> None:
    template = Template.from_stack(PunctualStack(app(), settings_for("prod", Options(provisioned_writes=500)))).to_json()
    made = {id: each["Properties"] for id, each in template["Resources"].items() if each["Type"] == "AWS::DynamoDB::GlobalTable"}
    assert sorted(each["BillingMode"] for each in made.values()) == ["PAY_PER_REQUEST"] * 6 + ["PROVISIONED"]
    (jobs,) = [each for each in made.values() if each["BillingMode"] == "PROVISIONED"]
    writes = [jobs, *jobs["GlobalSecondaryIndexes"]]
    reads = [*jobs["Replicas"], *jobs["Replicas"][0]["GlobalSecondaryIndexes"]]
    scaled = [each["WriteProvisionedThroughputSettings"]["WriteCapacityAutoScalingSettings"] for each in writes]
    scaled += [each["ReadProvisionedThroughputSettings"]["ReadCapacityAutoScalingSettings"] for each in reads]
    assert len(scaled) == 10
    for each in scaled:  # without a seed AWS refuses to change the billing mode of a table
        assert (each["MinCapacity"], each["SeedCapacity"], each["MaxCapacity"]) == (5, 500, 500)


GUARDED = ("DynamoDB::GlobalTable", "Cognito::UserPool")  # by a deletion protection of their own: no rollback can delete them
KEPT = ("SQS::Queue", "S3::Bucket", "SecretsManager::Secret", "Logs::LogGroup", "KinesisFirehose::DeliveryStream")


def test_only_prod_retains_its_data(any_stage: Synthesized) -> None:
    in_prod = any_stage.settings.stage == "prod"
    for kind in (*GUARDED, *KEPT):
        for id in any_stage.all(kind):
            made = any_stage.template["Resources"][id]
            kept = ("Retain" if kind in GUARDED else "RetainExceptOnCreate", "Retain") if in_prod else ("Delete", "Delete")
            assert (made["DeletionPolicy"], made["UpdateReplacePolicy"]) == kept, id
    assert any_stage.console is not None
    for each in (*any_stage.template["Resources"].values(), *any_stage.console.template["Resources"].values()):
        goes = (
            each["Type"] == "AWS::Lambda::Version" or each.get("DeletionPolicy", "Delete") == "Delete"
        )  # a version goes with its function
        assert in_prod or goes, "`make destroy` would report that it is left"
    for table in any_stage.all("DynamoDB::GlobalTable").values():
        assert [replica["DeletionProtectionEnabled"] for replica in table["Replicas"]] == [in_prod]
    assert any_stage.one("Cognito::UserPool", "AccountsUsers")["DeletionProtection"] == ("ACTIVE" if in_prod else "INACTIVE")
    assert any_stage.stack.termination_protection is in_prod


def test_a_retained_delivery_stream_keeps_its_role(prod: Synthesized) -> None:
    stream = prod.one("KinesisFirehose::DeliveryStream", "ArchiveStream")
    role = stream["ExtendedS3DestinationConfiguration"]["RoleARN"]["Fn::GetAtt"][0]
    assert prod.template["Resources"][role]["DeletionPolicy"] == "RetainExceptOnCreate"


def test_cloudformation_deletes_writers_before_their_bucket(any_stage: Synthesized) -> None:
    """Else `make destroy` would find new objects each time that it empties a bucket. A resource is deleted before those it refers to."""
    resources = any_stage.template["Resources"]

    def refers(id: str) -> set[str]:
        direct = set(references(resources[id])) & resources.keys()
        return direct.union(*map(refers, direct))

    writers = [
        (id, where)
        for id, function in any_stage.all("Lambda::Function").items()
        for action, where in any_stage.grants(id[:-8].removesuffix("Function"))
        if action == "s3:PutObject"
    ]
    writers += [(id, "ArchiveBucket/*") for id in any_stage.all("KinesisFirehose::DeliveryStream")]
    assert {where for _, where in writers} == {f"{id[:-8]}/*" for id in any_stage.all("S3::Bucket")}
    for id, where in writers:
        assert where.removesuffix("/*") in {each[:-8] for each in refers(id)}, id


def test_a_work_group_can_be_deleted_after_its_first_query(any_stage: Synthesized) -> None:
    assert all(group["RecursiveDeleteOption"] is True for group in any_stage.all("Athena::WorkGroup").values())


def test_outputs_are_private_encrypted_and_expire_with_their_items(any_stage: Synthesized) -> None:
    bucket = any_stage.one("S3::Bucket", "StorageOutputs")
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True} and len(bucket["PublicAccessBlockConfiguration"]) == 4
    (encryption,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert encryption["ServerSideEncryptionByDefault"] == {"SSEAlgorithm": "AES256"}
    assert bucket["OwnershipControls"] == {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}
    (rule,) = bucket["LifecycleConfiguration"]["Rules"]
    assert (rule["Status"], rule["ExpirationInDays"]) == ("Enabled", any_stage.settings.rules.retention.failure_days)


def test_outputs_require_tls(on_aws: Synthesized) -> None:
    policy = on_aws.one("S3::BucketPolicy", "StorageOutputsPolicy")
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert (statement["Effect"], statement["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})


@pytest.mark.long
@pytest.mark.parametrize("stage", ["dev", "prod"])
def test_audit_entries_are_locked_against_everybody_if_chosen(stage: str) -> None:
    stack = synthesized(stage, audit_lock_days=365)
    bucket = stack.one("S3::Bucket", "StorageAuditLock")
    assert bucket["ObjectLockEnabled"] is True
    assert bucket["ObjectLockConfiguration"]["Rule"]["DefaultRetention"] == {"Mode": "COMPLIANCE", "Days": 365}
    assert min(rule["ExpirationInDays"] for rule in bucket["LifecycleConfiguration"]["Rules"]) > 365
    assert stack.template["Resources"][stack.id("S3::Bucket", "StorageAuditLock")]["DeletionPolicy"] == "Retain"
    assert who_may(stack, "s3:PutObject", "StorageAuditLock/*") == {"Api"}
    assert {action for name in stack.functions() for action, what in stack.grants(name) if "StorageAuditLock" in what} == {"s3:PutObject"}
    environment = stack.template["Resources"][stack.id("Lambda::Function", "ApiFunction")]["Properties"]["Environment"]["Variables"]
    assert environment["PUNCTUAL_AUDIT_LOCK_BUCKET"] == {"Ref": stack.id("S3::Bucket", "StorageAuditLock")}


def test_audit_entries_are_not_locked_by_default(prod: Synthesized) -> None:
    assert not [id for id in prod.all("S3::Bucket") if "AuditLock" in id]


def test_aws_generates_the_callback_secret_outside_the_template(any_stage: Synthesized) -> None:
    secret = any_stage.one("SecretsManager::Secret", "StorageCallbackKey")
    assert secret["GenerateSecretString"] == {"ExcludePunctuation": True, "PasswordLength": 64}
    assert "SecretString" not in secret


def test_executors_give_workers_the_address_of_this_api(any_stage: Synthesized) -> None:
    environment = any_stage.one("Lambda::Function", "ExecuteRetryFunction")["Environment"]["Variables"]
    (url,) = [environment["PUNCTUAL_API_URL"]]
    assert {"Ref": any_stage.id("ApiGatewayV2::Api", "ApiHttp")} in str_parts(url)


def str_parts(value: Any) -> list[Any]:
    """The text that a template joins or, for an attribute, the resource that has it."""
    if "Fn::GetAtt" in value:
        return [{"Ref": value["Fn::GetAtt"][0]}]
    return list(value["Fn::Join"][1])
