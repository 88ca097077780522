"""Conditions on the keys of a query of the local AWS."""

from typing import Any

import pytest
from ministack.services import dynamodb

from local import emulator
from scheduler.model.job import Lane
from scheduler.storage.aws import keys

QUERIES = [
    keys.all_of("p1"),
    keys.up_to("p1", "b"),
    keys.IN_PARTITION.query("p1", "a", "b"),
    keys.FAILED.query("p1", "a", "b"),
    keys.MOVED_BETWEEN.query("p1", "a", "b"),
    keys.OF_TASK.query("p1", "a", "b"),
    keys.IN_MONTH.query("p1", "a", "b"),
    keys.to_replenish("p1"),
    keys.in_slot("p1", 0),
    keys.in_slot("p1", 10),
    keys.in_slot_of_lane("p1", Lane.ONE_TIME, 9, 10),
    keys.canaries_in_slot("p1"),
]
ITEMS = [
    {name: {"S": partition} for name in ("pk", "slot", "moved_partition", "task", "month", "replenish")}
    | {"sk": {"S": place}, "failed_position": {"S": place}, "moved_position": {"S": place}, "due_at": {"N": due}}
    for partition in ("p1", "p2")
    for place in ("", "a", "ab", "b", "c")
    for due in ("0", "9", "10", "100")
]


def _holds(evaluate: Any, query: dict[str, Any]) -> list[bool]:
    names, values = query.get("ExpressionAttributeNames", {}), query["ExpressionAttributeValues"]
    return [evaluate(query["KeyConditionExpression"], item, values, names, slot="KeyConditionExpression") for item in [*ITEMS, {}]]


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: str(query["KeyConditionExpression"]))
def test_a_condition_on_keys_holds_for_the_same_items(query: dict[str, Any]) -> None:
    def parse(*_: Any, **__: Any) -> bool:
        raise AssertionError("parsed again")

    found = _holds(emulator._by_comparisons(parse), query)
    assert found == _holds(dynamodb._evaluate_condition, query)
    assert any(found) and not all(found)


@pytest.mark.parametrize(
    "condition",
    [
        "pk = :pk AND begins_with(sk, :low)",
        "pk = :pk AND",
        "size(pk) = :pk",
        "pk = :pk OR sk = :low",
        "pk == :pk",
        "pk = :other",
        "#pk = :pk",
    ],
)
def test_other_conditions_are_left_to_the_local_aws(condition: str) -> None:
    asked = list[str]()

    def evaluate(condition: str, *_: Any) -> bool:
        asked.append(condition)
        return True

    emulator._by_comparisons(evaluate)(condition, {}, {":pk": {"S": "p1"}}, {}, "KeyConditionExpression")
    emulator._by_comparisons(evaluate)("pk = :pk", {}, {}, {})
    assert asked == [condition, "pk = :pk"]
