from typing import Any

import pytest

from tests.contract import tables
from tests.infra.conftest import Synthesized


def test_jobs_is_keyed_by_owner_and_id_and_streams_both_images(any_stage: Synthesized) -> None:
    jobs = any_stage.one("DynamoDB::GlobalTable", "StorageJobs")
    assert jobs["KeySchema"] == [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}]
    assert jobs["StreamSpecification"] == {"StreamViewType": "NEW_AND_OLD_IMAGES"}


def test_the_due_index_projects_only_what_dispatch_needs(any_stage: Synthesized) -> None:
    jobs = any_stage.one("DynamoDB::GlobalTable", "StorageJobs")
    due = next(index for index in jobs["GlobalSecondaryIndexes"] if index["IndexName"] == "due")
    assert due["KeySchema"] == [{"AttributeName": "slot", "KeyType": "HASH"}, {"AttributeName": "due_at", "KeyType": "RANGE"}]
    assert due["Projection"] == {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["lane", "fence"]}
    types = {item["AttributeName"]: item["AttributeType"] for item in jobs["AttributeDefinitions"]}
    assert types["due_at"] == "N" and {kind for name, kind in types.items() if name != "due_at"} == {"S"}


@pytest.mark.parametrize(
    ("kind", "prefix"), [("JOBS", "StorageJobs"), ("TASKS", "StorageTasks"), ("LEDGER", "StorageLedger"), ("USERS", "StorageUsers")]
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
    assert len(made) == 4
    for table in made.values():
        assert table["BillingMode"] == "PAY_PER_REQUEST"
        assert table["TimeToLiveSpecification"] == {"AttributeName": "expires", "Enabled": True}
        assert [replica["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"] for replica in table["Replicas"]] == [True]


def test_the_data_of_prod_and_of_no_other_stage_is_kept(any_stage: Synthesized) -> None:
    in_prod = any_stage.settings.stage == "prod"
    for kind in ("DynamoDB::GlobalTable", "Cognito::UserPool", "SQS::Queue"):
        for id in any_stage.all(kind):
            assert any_stage.template["Resources"][id]["DeletionPolicy"] == ("Retain" if in_prod else "Delete")
    for table in any_stage.all("DynamoDB::GlobalTable").values():
        assert [replica["DeletionProtectionEnabled"] for replica in table["Replicas"]] == [in_prod]
    assert any_stage.stack.termination_protection is in_prod
