"""The operator's own key for everything that is stored and sent."""

import pytest

from tests.infra.conftest import Synthesized, name_of, synthesized


def keyed() -> Synthesized:
    return synthesized("prod", customer_key=True)


def test_there_is_no_customer_key_by_default(prod: Synthesized) -> None:
    assert not prod.all("KMS::Key") and not any("kms:" in action for name in prod.functions() for action, _ in prod.grants(name))


@pytest.mark.long
def test_the_key_encrypts_every_store_and_queue_of_jobs() -> None:
    stack = keyed()
    (key,) = stack.all("KMS::Key").values()
    assert key["EnableKeyRotation"] is True
    queues = [queue["KmsMasterKeyId"] for queue in stack.all("SQS::Queue").values()]
    tables = [table["Replicas"][0]["SSESpecification"]["KMSMasterKeyId"] for table in stack.all("DynamoDB::GlobalTable").values()]
    topic, secret = stack.one("SNS::Topic", "LanesTopic"), stack.one("SecretsManager::Secret", "StorageCallbackKey")
    (rule,) = stack.one("S3::Bucket", "StorageOutputs")["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert rule["BucketKeyEnabled"] is True
    bucket = rule["ServerSideEncryptionByDefault"]["KMSMasterKeyID"]
    assert (len(queues), len(tables)) == (7, 7)
    assert {name_of(used) for used in (*queues, *tables, topic["KmsMasterKeyId"], secret["KmsKeyId"], bucket)} == {"EncryptionKey"}


@pytest.mark.long
def test_functions_use_the_key_only_through_services_and_fetch_does_not() -> None:
    stack = keyed()
    assert {name for name in stack.functions() if any(action.startswith("kms:") for action, _ in stack.grants(name))} == {
        name for name in stack.functions() if name != "Fetch"
    }
    for role in stack.all("IAM::Role").values():
        for statement in role["Policies"][0]["PolicyDocument"]["Statement"]:
            if "kms:Decrypt" in statement["Action"]:
                assert len(statement["Condition"]["StringEquals"]["kms:ViaService"]) in (5, 1)  # functions; the archive's stream


@pytest.mark.long
def test_every_log_group_is_under_the_key_for_this_stack_alone() -> None:
    stack = keyed()
    groups = stack.all("Logs::LogGroup")
    assert len(groups) == len(stack.functions()) + 3, "the access log, the failures of the archive, and the trigger of tokens"
    assert {name_of(group["KmsKeyId"]) for group in groups.values()} == {"EncryptionKey"}
    assert not any("LogGroupName" in group for group in groups.values()), "so that their names begin with that of the stack"
    (key,) = stack.all("KMS::Key").values()
    (granted,) = [each for each in key["KeyPolicy"]["Statement"] if "logs." in str(each["Principal"].get("Service"))]
    assert granted["Principal"]["Service"] == {"Fn::Join": ["", ["logs.", {"Ref": "AWS::Region"}, ".amazonaws.com"]]}
    (where,) = granted["Condition"]["ArnLike"].values()
    assert where["Fn::Join"][1][-1] == ":log-group:punctual-prod-*" and {"Ref": "AWS::AccountId"} in where["Fn::Join"][1]


@pytest.mark.long
def test_the_topic_may_write_to_encrypted_queues() -> None:
    (key,) = keyed().all("KMS::Key").values()
    (granted,) = [each for each in key["KeyPolicy"]["Statement"] if each["Principal"].get("Service") == "sns.amazonaws.com"]
    (where,) = granted["Condition"]["ArnLike"].values()
    assert where["Fn::Join"][1][-1] == ":punctual-prod-Lanes*"
