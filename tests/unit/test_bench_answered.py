"""AWS answered in process: a read by key returns the items of its keys, in any order of the reads."""

from collections.abc import Callable
from typing import Any

import boto3
import pytest

from bench import cpu
from lab.world.answered import Answered
from scheduler.model.job import RunLock, TaskHead, TaskKey
from scheduler.storage.aws import keys
from scheduler.storage.aws.tasks import DynamoTasks

ONE, OTHER = TaskKey("ada", "one"), TaskKey("ada", "other")


@pytest.fixture
def aws() -> Answered:
    answered = Answered()
    answered.store("tasks", [keys.stored_task(key) | {"generation": {"N": "3"}} for key in (ONE, OTHER)])
    answered.store("tasks", [keys.holder(key) | {"job": {"S": "j"}, "version": {"N": "7"}} for key in (ONE, OTHER)])
    return answered


@pytest.fixture
def gate(aws: Answered) -> DynamoTasks:
    client: Any = boto3.Session().client("dynamodb", region_name="us-east-1")
    aws.listen(client.meta.events)
    return DynamoTasks(client, "tasks", jobs="jobs", ledger="ledger")


def heads(gate: DynamoTasks) -> None:
    assert gate.heads([ONE, OTHER]) == {key: TaskHead(3, None, None) for key in (ONE, OTHER)}


def holders(gate: DynamoTasks) -> None:
    assert gate.holders([ONE, OTHER]) == {key: RunLock(key, "j", None, 7) for key in (ONE, OTHER)}


@pytest.mark.parametrize("reads", [(heads, holders), (holders, heads)])
def test_reads_are_answered_by_key_in_any_order(aws: Answered, gate: DynamoTasks, reads: tuple[Callable[[DynamoTasks], None], ...]) -> None:
    for read in reads:
        assert not aws.is_all_read()
        read(gate)
    assert aws.is_all_read()


def test_a_read_without_a_prepared_item_fails_the_measurement(gate: DynamoTasks) -> None:
    with pytest.raises(LookupError, match="third"):
        gate.heads([ONE, TaskKey("ada", "third")])


def test_an_item_is_read_once(gate: DynamoTasks) -> None:
    gate.heads([ONE])
    with pytest.raises(LookupError, match="one"):
        gate.heads([ONE])


def test_a_table_without_items_is_empty(gate: DynamoTasks, aws: Answered) -> None:
    aws.stored.clear()
    assert gate.heads([ONE]) == {}


@pytest.mark.long
def test_execute_reads_the_items_that_the_bench_has_prepared() -> None:
    assert cpu.spent("execute-runs", 20)["calls"]["BatchGetItem"] == 6
