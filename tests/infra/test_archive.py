"""The archive of the stages that have one."""

import json
from typing import Any

import pytest

from scheduler.insight import archive
from tests.infra.conftest import Synthesized, allowed, name_of

KINDS = ("KinesisFirehose::DeliveryStream", "Glue::Database", "Glue::Table", "Athena::WorkGroup", "Athena::NamedQuery")


def test_there_is_an_archive_on_aws_but_not_on_the_local_stage(any_stage: Synthesized) -> None:
    assert all(bool(any_stage.all(kind)) == any_stage.settings.archive for kind in KINDS)
    assert any_stage.settings.archive == (any_stage.settings.stage != "local")
    told = any_stage.functions()["Project"]["Environment"]["Variables"]["PUNCTUAL_ARCHIVE_STREAM"]
    assert (told == "") != any_stage.settings.archive


@pytest.fixture
def stream(prod: Synthesized) -> dict[str, Any]:
    (made,) = prod.all("KinesisFirehose::DeliveryStream").values()
    return dict(made)


def test_records_are_compressed_and_partitioned_by_day(stream: dict[str, Any]) -> None:
    to = stream["ExtendedS3DestinationConfiguration"]
    assert (to["CompressionFormat"], to["Prefix"]) == ("GZIP", "jobs/day=!{partitionKeyFromQuery:day}/")
    (processor,) = to["ProcessingConfiguration"]["Processors"]
    told = {each["ParameterName"]: each["ParameterValue"] for each in processor["Parameters"]}
    assert told == {"MetadataExtractionQuery": "{day: .day}", "JsonParsingEngine": "JQ-1.6"}
    assert to["DynamicPartitioningConfiguration"] == {"Enabled": True} and to["BufferingHints"]["SizeInMBs"] >= 64
    assert stream["DeliveryStreamEncryptionConfigurationInput"] == {"KeyType": "AWS_OWNED_CMK"}


def test_only_project_writes_to_the_stream_and_it_only_to_its_bucket(prod: Synthesized) -> None:
    granted = {(name, action) for name in prod.functions() for action, _ in prod.grants(name) if action.startswith("firehose:")}
    assert granted == {("Project", "firehose:PutRecordBatch")}
    role = prod.one("IAM::Role", "ArchiveStreamRole")
    assert {what for _, what in allowed(role["Policies"][0]["PolicyDocument"])} == {"ArchiveBucket", "ArchiveBucket/*", "ArchiveFailures"}


def test_a_delivery_that_failed_is_in_a_log(prod: Synthesized, stream: dict[str, Any]) -> None:
    told = stream["ExtendedS3DestinationConfiguration"]["CloudWatchLoggingOptions"]
    group = prod.id("Logs::LogGroup", "ArchiveFailures")
    assert (told["Enabled"], told["LogGroupName"]) == (True, {"Ref": group})
    assert prod.all("Logs::LogStream")[told["LogStreamName"]["Ref"]]["LogGroupName"] == {"Ref": group}
    assert ("logs:PutLogEvents", "ArchiveFailures") in allowed(prod.one("IAM::Role", "ArchiveStreamRole")["Policies"][0]["PolicyDocument"])


def test_the_table_has_the_columns_of_a_record_and_projects_its_days(prod: Synthesized) -> None:
    (table,) = prod.all("Glue::Table").values()
    made = table["TableInput"]
    assert {each["Name"]: each["Type"] for each in made["StorageDescriptor"]["Columns"]} == archive.COLUMNS
    assert made["PartitionKeys"] == [{"Name": archive.DAY, "Type": "string"}]
    told = made["Parameters"]
    assert (told["projection.enabled"], told["projection.day.type"], told["projection.day.format"]) == ("true", "date", "yyyy-MM-dd")
    assert name_of(told["storage.location.template"]) == "s3://ArchiveBucket/jobs/day=${day}/"


def test_saved_queries_use_the_table_and_the_work_group_of_the_stack(prod: Synthesized) -> None:
    (group,) = prod.all("Athena::WorkGroup").values()
    for query in prod.all("Athena::NamedQuery").values():
        assert (query["WorkGroup"], query["Database"]) == (group["Name"], "punctual_prod")
        assert " FROM punctual_prod.jobs WHERE " in query["QueryString"] and "day" in query["QueryString"]
    result = group["WorkGroupConfiguration"]["ResultConfiguration"]
    assert (
        result["EncryptionConfiguration"] == {"EncryptionOption": "SSE_S3"}
        and group["WorkGroupConfiguration"]["EnforceWorkGroupConfiguration"]
    )


def test_archived_records_are_private_encrypted_and_expire_as_set(prod: Synthesized) -> None:
    bucket = prod.one("S3::Bucket", "ArchiveBucket")
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    days = {rule.get("Prefix"): rule.get("ExpirationInDays") for rule in bucket["LifecycleConfiguration"]["Rules"]}
    assert (days["jobs/"], days["results/"]) == (prod.settings.archive_days, 7)
    assert json.dumps(bucket["BucketEncryption"]).count("AES256") == 1
