"""Scans of an index of the local AWS."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from ministack.services import dynamodb

from local import emulator

KEYS = [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}]
INDEX = {"IndexName": "due", "KeySchema": [{"AttributeName": "slot", "KeyType": "HASH"}, {"AttributeName": "due", "KeyType": "RANGE"}]}
SCAN = {"TableName": "jobs", "IndexName": "due"}


@pytest.fixture
def scan() -> Iterator[Any]:
    texts = [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk", "slot", "due")]
    index = INDEX | {"Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["fence"]}}
    table = {"TableName": "jobs", "KeySchema": KEYS, "AttributeDefinitions": texts, "BillingMode": "PAY_PER_REQUEST"}
    dynamodb._create_table(table | {"GlobalSecondaryIndexes": [index]})
    for number in range(40):
        item = {"pk": f"user{number % 3}", "sk": f"{number:02d}", "slot": f"m{number % 5}", "due": f"{number // 20}", "payload": "long"}
        dynamodb._put_item(
            {"TableName": "jobs", "Item": {key: {"S": value} for key, value in item.items() if key != "slot" or number < 35}}
        )
    paged = emulator._page_of_index(dynamodb._scan)
    yield lambda request: json.loads(paged(request)[2])
    dynamodb._delete_table({"TableName": "jobs"})


@pytest.mark.parametrize("page", [1, 4, 7, 35, 100])
def test_pages_of_an_index_have_each_of_its_items_once(scan: Any, monkeypatch: pytest.MonkeyPatch, page: int) -> None:
    monkeypatch.setattr(emulator, "PAGE", page)
    found, start = list[Any](), dict[str, Any]()
    while True:
        answer = scan(SCAN | start)
        assert answer["Count"] == len(answer["Items"]) <= page
        found += answer["Items"]
        if "LastEvaluatedKey" not in answer:
            break
        start = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}
    assert sorted(item["sk"]["S"] for item in found) == [f"{number:02d}" for number in range(35)]
    assert all(item.keys() == {"pk", "sk", "slot", "due"} for item in found)


def test_an_item_that_leaves_between_two_pages_hides_no_other_one(scan: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulator, "PAGE", 4)
    first = scan(SCAN)
    dynamodb._delete_item({"TableName": "jobs", "Key": {key: first["LastEvaluatedKey"][key] for key in ("pk", "sk")}})
    seen = {item["sk"]["S"] for item in first["Items"]}
    rest = scan(SCAN | {"ExclusiveStartKey": first["LastEvaluatedKey"]})["Items"]
    monkeypatch.setattr(emulator, "PAGE", 100)
    left = {item["sk"]["S"] for item in scan(SCAN)["Items"]} - seen
    assert {item["sk"]["S"] for item in rest} <= left and len(rest) == 4


def test_other_scans_are_left_to_the_local_aws(scan: Any) -> None:
    assert scan({"TableName": "jobs"})["Count"] == 40
    assert scan(SCAN | {"Limit": 3})["Count"] == 3
