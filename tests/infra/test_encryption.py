"""A key of the operator's own, for everything that is stored and sent."""

from tests.infra.conftest import Synthesized, name_of, synthesized


def keyed() -> Synthesized:
    return synthesized("prod", customer_key="true")


def test_without_the_option_there_is_no_key_to_pay(prod: Synthesized) -> None:
    assert not prod.all("KMS::Key") and not any("kms:" in action for name in prod.functions() for action, _ in prod.grants(name))


def test_all_that_stores_or_carries_jobs_is_under_the_key() -> None:
    stack = keyed()
    (key,) = stack.all("KMS::Key").values()
    assert key["EnableKeyRotation"] is True
    queues = [queue["KmsMasterKeyId"] for queue in stack.all("SQS::Queue").values()]
    tables = [table["Replicas"][0]["SSESpecification"]["KMSMasterKeyId"] for table in stack.all("DynamoDB::GlobalTable").values()]
    topic, secret = stack.one("SNS::Topic", "LanesTopic"), stack.one("SecretsManager::Secret", "StorageCallbackKey")
    (rule,) = stack.one("S3::Bucket", "StorageOutputs")["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert rule["BucketKeyEnabled"] is True
    bucket = rule["ServerSideEncryptionByDefault"]["KMSMasterKeyID"]
    assert (len(queues), len(tables)) == (8, 7)
    assert {name_of(used) for used in (*queues, *tables, topic["KmsMasterKeyId"], secret["KmsKeyId"], bucket)} == {"EncryptionKey"}


def test_functions_use_it_through_the_services_alone_and_what_calls_urls_not_at_all() -> None:
    stack = keyed()
    assert {name for name in stack.functions() if any(action.startswith("kms:") for action, _ in stack.grants(name))} == {
        name for name in stack.functions() if name != "Fetch"
    }
    for role in stack.all("IAM::Role").values():
        for statement in role["Policies"][0]["PolicyDocument"]["Statement"]:
            if "kms:Decrypt" in statement["Action"]:
                assert len(statement["Condition"]["StringEquals"]["kms:ViaService"]) in (5, 1)  # functions; the archive's stream


def test_the_topic_may_write_to_queues_under_the_key() -> None:
    (key,) = keyed().all("KMS::Key").values()
    (granted,) = [each for each in key["KeyPolicy"]["Statement"] if each["Principal"].get("Service") == "sns.amazonaws.com"]
    assert granted["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}
