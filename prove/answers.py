"""Rows of the first hour that ask DynamoDB and Lambda on things of the run's own: a table with one item, and a function."""

import io
import itertools
import json
import time
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import httpx
from botocore.exceptions import ClientError
from punctual import NoRoleToken
from punctual.aws_identity import RoleTokens

from prove.first_hour import Check, Hour, Seen, not_run, passed

KEY = {"pk": {"S": "a"}, "sk": {"S": "b"}}
STORED: dict[str, Any] = {**KEY, "n": {"S": "1"}, "o": {"S": "2"}, "by": {"S": "a"}, "at": {"S": "5"}}
WHERE = 'WHERE "pk"=? AND "sk"=?'
INDEX = "moved"  # as the index of the jobs table: its keys are other attributes than those of the table
WORK_S, DELETED_AFTER_S = 20, 5  # of the function whose version is deleted while it works
CODE = f"import time\n\ndef handler(event, context):\n    time.sleep({WORK_S})\n    return 'ended'\n"
TRUST = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}],
    }
)
PATIENCE_S = 60  # until a new role can be used, or an index has followed

_numbers = itertools.count(1)


def _table(hour: Hour) -> tuple[Any, str]:
    """A client, and the name of a new table with the item `STORED`."""
    client, name = hour.place.client("dynamodb"), f"{hour.name}-{next(_numbers)}"
    hour.cleanup.later(f"the table {name}", lambda: client.delete_table(TableName=name))
    client.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": each, "AttributeType": "S"} for each in ("pk", "sk", "by", "at")],
        KeySchema=_keys("pk", "sk"),
        GlobalSecondaryIndexes=[{"IndexName": INDEX, "KeySchema": _keys("by", "at"), "Projection": {"ProjectionType": "KEYS_ONLY"}}],
    )
    client.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 2, "MaxAttempts": 30})
    client.put_item(TableName=name, Item=STORED)
    return client, name


def _keys(partition: str, sort: str) -> list[dict[str, str]]:
    return [{"AttributeName": partition, "KeyType": "HASH"}, {"AttributeName": sort, "KeyType": "RANGE"}]


def _answer(client: Any, statement: str, *values: str) -> Any:
    """The answer to a statement beside another, as the scheduler sends them: 25 a call."""
    parameters = [{"S": value} for value in (*values, "a", "b")]
    one = {"Statement": statement, "Parameters": parameters, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    table = statement.split('"')[1]
    other = {"Statement": f"INSERT INTO \"{table}\" VALUE {{'pk':?,'sk':?}}", "Parameters": [{"S": "c"}, {"S": "d"}]}
    return client.batch_execute_statement(Statements=[one, other])["Responses"][0]


def remove(hour: Hour) -> Seen:
    client, name = _table(hour)
    answer = _answer(client, f'UPDATE "{name}" SET "p"=? REMOVE "n" REMOVE "o" {WHERE}', "x")
    item = client.get_item(TableName=name, Key=KEY, ConsistentRead=True)["Item"]
    return passed(sorted(item) == ["at", "by", "p", "pk", "sk"], str(answer.get("Error", "")))


def refused_item(hour: Hour) -> Seen:
    client, name = _table(hour)
    error = _answer(client, f'UPDATE "{name}" SET "p"=? {WHERE} AND "n" IS MISSING', "x").get("Error", {})
    if error.get("Code") != "ConditionalCheckFailed":
        return passed(False, f"the error is {error.get('Code')}")
    return passed("Item" in error, "" if "Item" in error else "no item: the scheduler reads it, which costs a read for each refusal")


def new_item(hour: Hour) -> Seen:
    client, name = _table(hour)
    answer = _answer(client, f'UPDATE "{name}" SET "p"=? {WHERE} RETURNING ALL NEW *', "x")
    return passed(answer.get("Item") == STORED | {"p": {"S": "x"}}, "" if "Item" in answer else "no item: claims read their jobs")


def sort_key_filter(hour: Hour) -> Seen:
    client, name = _table(hour)
    query = {
        "TableName": name,
        "IndexName": INDEX,
        "KeyConditionExpression": "#by = :a AND #at BETWEEN :low AND :high",
        "FilterExpression": "sk < :sk",
        "ExpressionAttributeNames": {"#by": "by", "#at": "at"},
        "ExpressionAttributeValues": {":a": {"S": "a"}, ":low": {"S": "0"}, ":high": {"S": "9"}, ":sk": {"S": "c"}},
    }
    found = _until(lambda: client.query(**query)["Items"])  # an index follows its table
    return passed([item["sk"]["S"] for item in found] == ["b"], f"{len(found)} items")


def mappings(hour: Hour) -> Seen:
    """Of the stage's functions; `events` has the one with the most patterns."""
    pages = hour.place.client("lambda").get_paginator("list_event_source_mappings").paginate()
    own = f":function:punctual-{hour.place.stage}-"
    found = [each for page in pages for each in page["EventSourceMappings"] if own in each["FunctionArn"]]
    bad = [
        f"{each['FunctionArn'].rpartition(own)[2]} is {each['State']}: {each.get('LastProcessingResult')}"
        for each in found
        if each["State"] != "Enabled" or str(each.get("LastProcessingResult", "")).startswith("PROBLEM")
    ]
    return passed(bool(found) and not bad, "; ".join(bad) or f"{len(found)} mappings")


def role_token(hour: Hour) -> Seen:
    """By the role of the caller's credentials. The job is due in an hour and is cancelled at the end."""
    place, sts = hour.place, hour.place.client("sts")
    identity = sts.get_caller_identity()
    account = identity["Account"]
    if ":assumed-role/" not in identity["Arn"]:
        return not_run("your credentials are those of a user, not of a role")
    if account not in place.outputs.get("AwsAccounts", "").split():
        return not_run("the option aws_issuers of the stage lacks the account of your credentials")
    try:
        token = RoleTokens(place.address, sts).fetch()
    except NoRoleToken as error:
        return not_run(str(error))
    base = f"{place.address}/api/v1/aws/{account}"
    with httpx.Client(headers={"Authorization": f"Bearer {token.text}"}, timeout=30) as client:
        answer = client.post(f"{base}/jobs", json={"type": "log", "payload": {"message": "prove: role"}, "delay": "1h"})
        if answer.status_code == 403:
            return not_run("API Gateway accepts the token, but no principal has the role of your credentials: punctual principals create")
        if answer.status_code != 201:
            return passed(False, f"the API answered {answer.status_code}: {answer.text[:200]}")
        job = answer.json()["data"]["id"]
        read = client.get(f"{base}/jobs/{job}")
        client.post(f"{base}/jobs/{job}/cancel")
        return passed(read.status_code == 200 and read.json()["data"]["id"] == job, f"the job was read with {read.status_code}")


def deleted_version(hour: Hour) -> Seen:
    if hour.place.local:
        return not_run("only on AWS: the local AWS runs a function in a process of its own")
    functions = hour.place.client("lambda", read_timeout=WORK_S + 60, retries={"max_attempts": 0})
    _make_function(hour, functions)
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(functions.invoke, FunctionName=hour.name, Qualifier="1")
        time.sleep(DELETED_AFTER_S)
        functions.delete_function(FunctionName=hour.name, Qualifier="1")
        answer = call.result()
    text = answer["Payload"].read().decode()
    return passed(text == '"ended"', f"the call answered {text[:200]}")


def _make_function(hour: Hour, functions: Any) -> None:
    """A function whose version 1 works for `WORK_S` seconds, and which may do nothing else."""
    roles, code = hour.place.client("iam"), io.BytesIO()
    with zipfile.ZipFile(code, "w") as packed:
        packed.writestr("index.py", CODE)
    hour.cleanup.later(f"the role {hour.name}-function", lambda: roles.delete_role(RoleName=f"{hour.name}-function"))
    role = roles.create_role(RoleName=f"{hour.name}-function", AssumeRolePolicyDocument=TRUST)["Role"]["Arn"]
    hour.cleanup.later(f"the function {hour.name}", lambda: functions.delete_function(FunctionName=hour.name))
    create = partial(
        functions.create_function,
        FunctionName=hour.name,
        Runtime="python3.13",
        Handler="index.handler",
        Role=role,
        Timeout=WORK_S + 20,
        Code={"ZipFile": code.getvalue()},
        Publish=True,
    )
    _until(lambda: _unless_new(create))
    functions.get_waiter("function_active_v2").wait(FunctionName=hour.name)


def _unless_new(create: Callable[[], Any]) -> Any:
    """Create the function; None while Lambda cannot assume the new role."""
    try:
        return create()
    except ClientError as error:
        if error.response["Error"]["Code"] != "InvalidParameterValueException":
            raise
        return None


def _until(condition: Callable[[], Any]) -> Any:
    """The first result that is not empty, or the last one after `PATIENCE_S`."""
    until = time.monotonic() + PATIENCE_S
    while not (found := condition()) and time.monotonic() < until:
        time.sleep(1)
    return found


CHECKS = (
    Check("remove", "runs a statement with `SET` and two `REMOVE`, as each job that ends does", "both attributes are gone", remove),
    Check("refused-item", "runs a statement whose condition is false, as a claim that loses does", "its error has the item", refused_item),
    Check("new-item", "runs a statement with `RETURNING ALL NEW *`, as each claim does", "its answer has the new item", new_item),
    Check("sort-key-filter", "queries an index with a filter on the sort key of the table", "the query is accepted", sort_key_filter),
    Check("mappings", "reads the event source mappings of the stage, with their patterns", "each is enabled, without a problem", mappings),
    Check("role-token", "signs in by the token of your AWS role, and creates and reads a job", "API Gateway accepts the token", role_token),
    Check("deleted-version", "deletes the version of a function while it works", "the work ends", deleted_version),
)
