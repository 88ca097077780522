"""What this project relies on in DynamoDB itself, by AWS's documentation. `make parity` compares the answers of three implementations."""

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from tests.contract import tables

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

WHERE = 'WHERE "pk"=? AND "sk"=?'
KEY = {"pk": {"S": "a"}, "sk": {"S": "b"}}
STORED: dict[str, Any] = {**KEY, "n": {"S": "1"}, "o": {"S": "2"}, "m": {"M": {"inner": {"S": "3"}}}}
_numbers = itertools.count()


class Stored:
    """One item in a table of its own."""

    def __init__(self, client: "DynamoDBClient") -> None:
        self.client, self.name = client, f"forms-{next(_numbers)}"
        client.create_table(TableName=self.name, **tables.USERS)
        client.put_item(TableName=self.name, Item=STORED)

    def run(self, statement: str, *values: str, key: Sequence[str] = ("a", "b")) -> Any:
        """The answer to a statement in company of another, as a batch of one may differ."""
        content: Any = {
            "Statement": statement.format(table=f'"{self.name}"', where=WHERE),
            "Parameters": [{"S": value} for value in (*values, *key)],
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        other: Any = {"Statement": f"INSERT INTO \"{self.name}\" VALUE {{'pk':?,'sk':?}}", "Parameters": [{"S": "c"}, {"S": "d"}]}
        return self.client.batch_execute_statement(Statements=[content, other])["Responses"][0]

    def item(self) -> Any:
        return self.client.get_item(TableName=self.name, Key=KEY, ConsistentRead=True)["Item"]


@pytest.fixture
def stored(local_dynamodb: "DynamoDBClient") -> Stored:
    return Stored(local_dynamodb)


def without(*names: str) -> dict[str, Any]:
    return {name: value for name, value in STORED.items() if name not in names}


def test_set_may_be_repeated(stored: Stored) -> None:
    """The first example of https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-reference.update.html"""
    stored.run('UPDATE {table} SET "n"=? SET "p"=? {where}', "x", "y")
    assert stored.item() == STORED | {"n": {"S": "x"}, "p": {"S": "y"}}


def test_remove_may_be_repeated(stored: Stored) -> None:
    """By the syntax on the same page; AWS shows no example."""
    stored.run('UPDATE {table} REMOVE "n" REMOVE "o" {where}')
    assert stored.item() == without("n", "o")


def test_set_and_remove_go_together(stored: Stored) -> None:
    stored.run('UPDATE {table} SET "n"=? REMOVE "o" {where}', "x")
    assert stored.item() == without("o") | {"n": {"S": "x"}}


def test_the_error_of_a_false_condition_carries_the_item(stored: Stored) -> None:
    """https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchStatementError.html"""
    error = stored.run('UPDATE {table} SET "n"=? {where} AND "n" IS MISSING', "x")["Error"]
    assert error["Code"] == "ConditionalCheckFailed" and error["Item"] == STORED
    assert stored.item() == STORED


def test_a_false_condition_changes_nothing(stored: Stored) -> None:
    for condition in ('"n" IS MISSING', '"q" IS NOT MISSING', '"m"."inner" IS MISSING', '"m"."other" IS NOT MISSING'):
        error = stored.run(f'UPDATE {{table}} SET "n"=? {{where}} AND {condition}', "x")["Error"]
        assert error["Code"] == "ConditionalCheckFailed"
    assert stored.item() == STORED


def test_a_statement_may_return_the_new_item(stored: Stored) -> None:
    answer = stored.run('UPDATE {table} SET "n"=? {where} RETURNING ALL NEW *', "x")
    assert answer["Item"] == STORED | {"n": {"S": "x"}}


def test_an_update_of_a_missing_item_creates_none(stored: Stored) -> None:
    assert stored.run('UPDATE {table} SET "n"=? {where}', "x", key=("a", "missing"))["Error"]["Code"] == "ConditionalCheckFailed"


def test_an_insert_overwrites_nothing(stored: Stored) -> None:
    statement: Any = {"Statement": f"INSERT INTO \"{stored.name}\" VALUE {{'pk':?,'sk':?}}", "Parameters": [{"S": "a"}, {"S": "b"}]}
    (answer,) = stored.client.batch_execute_statement(Statements=[statement])["Responses"]
    assert answer["Error"]["Code"] == "DuplicateItem" and stored.item() == STORED


def test_a_delete_of_a_missing_item_succeeds(stored: Stored) -> None:
    assert "Error" not in stored.run("DELETE FROM {table} {where}", key=("a", "missing"))


def test_two_statements_on_one_item_are_refused(stored: Stored) -> None:
    statement: Any = {"Statement": f'DELETE FROM "{stored.name}" {WHERE}', "Parameters": [{"S": "a"}, {"S": "b"}]}
    with pytest.raises(ClientError, match="duplicates"):
        stored.client.batch_execute_statement(Statements=[statement, statement])


def test_update_item_returns_the_item_of_a_false_condition(stored: Stored) -> None:
    with pytest.raises(ClientError) as refused:
        stored.client.update_item(
            TableName=stored.name,
            Key=KEY,
            UpdateExpression="SET n = :n REMOVE o, m",
            ConditionExpression="attribute_not_exists(n)",
            ExpressionAttributeValues={":n": {"S": "x"}},
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    answer: Any = refused.value.response
    assert answer["Item"] == STORED
