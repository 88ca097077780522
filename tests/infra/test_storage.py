from typing import Any

import pytest

from tests.contract import tables
from tests.infra.conftest import Synthesized


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
def test_the_tables_of_the_contract_tests_are_these(any_stage: Synthesized, kind: str, prefix: str) -> None:
    """Keys, indexes and what they project: what those tests say holds for what is deployed."""
    made, tested = any_stage.one("DynamoDB::GlobalTable", prefix), getattr(tables, kind)

    def by_name(values: list[dict[str, Any]], name: str) -> dict[str, dict[str, Any]]:
        return {value[name]: value for value in values}

    assert made["KeySchema"] == tested["KeySchema"]
    assert by_name(made["AttributeDefinitions"], "AttributeName") == by_name(tested["AttributeDefinitions"], "AttributeName")
    assert by_name(made.get("GlobalSecondaryIndexes", []), "IndexName") == by_name(tested.get("GlobalSecondaryIndexes", []), "IndexName")


def test_tables_are_on_demand_expire_items_and_can_be_restored_to_a_point_in_time(any_stage: Synthesized) -> None:
    made = any_stage.all("DynamoDB::GlobalTable")
    assert len(made) == 7
    for table in made.values():
        assert table["BillingMode"] == "PAY_PER_REQUEST"
        assert table["TimeToLiveSpecification"] == {"AttributeName": "expires", "Enabled": True}
        assert [replica["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"] for replica in table["Replicas"]] == [True]


def test_the_data_of_prod_and_of_no_other_stage_is_kept(any_stage: Synthesized) -> None:
    in_prod = any_stage.settings.stage == "prod"
    for kind in ("DynamoDB::GlobalTable", "Cognito::UserPool", "SQS::Queue", "S3::Bucket"):
        for id in any_stage.all(kind):
            assert any_stage.template["Resources"][id]["DeletionPolicy"] == ("Retain" if in_prod else "Delete")
    for table in any_stage.all("DynamoDB::GlobalTable").values():
        assert [replica["DeletionProtectionEnabled"] for replica in table["Replicas"]] == [in_prod]
    assert any_stage.stack.termination_protection is in_prod


def test_outputs_are_private_encrypted_and_kept_as_long_as_the_last_of_their_items(any_stage: Synthesized) -> None:
    bucket = any_stage.one("S3::Bucket", "StorageOutputs")
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True} and len(bucket["PublicAccessBlockConfiguration"]) == 4
    (encryption,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert encryption["ServerSideEncryptionByDefault"] == {"SSEAlgorithm": "AES256"}
    assert bucket["OwnershipControls"] == {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}
    (rule,) = bucket["LifecycleConfiguration"]["Rules"]
    assert (rule["Status"], rule["ExpirationInDays"]) == ("Enabled", any_stage.settings.rules.retention.failure_days)


def test_outputs_travel_by_tls_alone(on_aws: Synthesized) -> None:
    policy = on_aws.one("S3::BucketPolicy", "StorageOutputsPolicy")
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert (statement["Effect"], statement["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})


def test_what_signs_call_backs_is_made_by_aws_and_no_template_shows_it(any_stage: Synthesized) -> None:
    secret = any_stage.one("SecretsManager::Secret", "StorageCallbackKey")
    assert secret["GenerateSecretString"] == {"ExcludePunctuation": True, "PasswordLength": 64}
    assert "SecretString" not in secret


def test_executors_tell_workers_the_address_of_this_api(any_stage: Synthesized) -> None:
    environment = any_stage.one("Lambda::Function", "ExecuteRetryFunction")["Environment"]["Variables"]
    (url,) = [environment["PUNCTUAL_API_URL"]]
    assert {"Ref": any_stage.id("ApiGatewayV2::Api", "ApiHttp")} in str_parts(url)


def str_parts(value: Any) -> list[Any]:
    """What a template joins to a text or, of an attribute, the resource that has it."""
    if "Fn::GetAtt" in value:
        return [{"Ref": value["Fn::GetAtt"][0]}]
    return list(value["Fn::Join"][1])
