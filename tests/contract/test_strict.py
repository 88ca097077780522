"""The local AWS refuses the calls that AWS refuses and MiniStack alone accepts. The limits and their sources: `local/strict.py`."""

import io
import json
import zipfile
from collections.abc import Callable
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from local import strict
from scheduler.model.account import PASSWORD
from tests.contract import tables

KEY = {"pk": {"S": "a"}, "sk": {"S": "b"}}
STATUS = {":s": {"S": "x"}}


class Local:
    """Clients of the local AWS, with a table, a queue, a topic and a function."""

    def __init__(self, address: str) -> None:
        def client(service: Any) -> Any:
            return boto3.client(service, endpoint_url=address)

        self.dynamodb, self.sqs, self.sns, self.functions = map(client, ("dynamodb", "sqs", "sns", "lambda"))
        self.cognito = client("cognito-idp")
        self.dynamodb.create_table(TableName="strict", **tables.USERS)
        self.queue = self.sqs.create_queue(QueueName="strict")["QueueUrl"]
        self.topic = self.sns.create_topic(Name="strict")["TopicArn"]
        self.pool = self.cognito.create_user_pool(PoolName="strict")["UserPool"]["Id"]
        self.cognito.admin_create_user(UserPoolId=self.pool, Username="ada")
        code = io.BytesIO()
        with zipfile.ZipFile(code, "w") as packed:
            packed.writestr("index.py", "def handler(event, context):\n    print('called')\n")
        role = "arn:aws:iam::000000000000:role/any"
        self.functions.create_function(
            FunctionName="strict", Runtime="python3.13", Role=role, Handler="index.handler", Code={"ZipFile": code.getvalue()}
        )

    def send(self, **more: Any) -> Any:
        return self.sqs.send_message(QueueUrl=self.queue, MessageBody="body", **more)

    def hide(self, seconds: int, *, batch: bool = False) -> Any:
        self.send()
        receipt = self.sqs.receive_message(QueueUrl=self.queue)["Messages"][0]["ReceiptHandle"]
        asked = {"ReceiptHandle": receipt, "VisibilityTimeout": seconds}
        if batch:
            return self.sqs.change_message_visibility_batch(QueueUrl=self.queue, Entries=[{"Id": "1", **asked}])
        return self.sqs.change_message_visibility(QueueUrl=self.queue, **asked)

    def publish(self, size: int, **more: Any) -> Any:
        entries = [{"Id": str(number), "Message": "x" * (size // 2), **more} for number in range(2)]
        return self.sns.publish_batch(TopicArn=self.topic, PublishBatchRequestEntries=entries)

    def run(self, statement: str, *values: str) -> Any:
        asked = {"Statement": statement, "Parameters": [{"S": value} for value in (*values, "a", "b")]}
        return self.dynamodb.batch_execute_statement(Statements=[asked])

    def query(self, **more: Any) -> Any:
        return self.dynamodb.query(TableName="strict", KeyConditionExpression="pk = :s", ExpressionAttributeValues=STATUS, **more)

    def invoke(self, size: int, kind: str) -> Any:
        return self.functions.invoke(FunctionName="strict", InvocationType=kind, Payload=json.dumps("x" * (size - 2)))

    def password(self, text: str) -> Any:
        return self.cognito.admin_set_user_password(UserPoolId=self.pool, Username="ada", Password=text, Permanent=True)


@pytest.fixture(scope="module")
def local(local_aws: str, credentials: None) -> Local:
    return Local(local_aws)


def attributes(number: int) -> dict[str, Any]:
    return {f"n{each}": {"DataType": "String", "StringValue": "v"} for each in range(number)}


WHERE = 'WHERE "pk"=? AND "sk"=?'
UPDATE = f'UPDATE "strict" SET "status"=? {WHERE}'
CALLS: dict[str, tuple[Callable[[Local], Any], Callable[[Local], Any]]] = {  # just within a limit, and beyond it
    "attributes": (lambda aws: aws.send(MessageAttributes=attributes(10)), lambda aws: aws.send(MessageAttributes=attributes(11))),
    "delay": (lambda aws: aws.send(DelaySeconds=900), lambda aws: aws.send(DelaySeconds=901)),
    "group": (lambda aws: aws.send(MessageGroupId="g" * 128), lambda aws: aws.send(MessageGroupId="g" * 129)),
    "characters of a group": (lambda aws: aws.send(MessageGroupId="a-b@c"), lambda aws: aws.send(MessageGroupId="a b")),
    "deduplication": (lambda aws: aws.send(), lambda aws: aws.send(MessageDeduplicationId="once")),
    "visibility": (lambda aws: aws.hide(43_200), lambda aws: aws.hide(43_201)),
    "visibility in a batch": (lambda aws: aws.hide(43_200, batch=True), lambda aws: aws.hide(43_201, batch=True)),
    "published": (lambda aws: aws.publish(strict.PUBLISHED), lambda aws: aws.publish(strict.PUBLISHED + 2)),
    "published attributes": (lambda aws: aws.publish(1_000, MessageAttributes=attributes(2)),
                             lambda aws: aws.publish(strict.PUBLISHED, MessageAttributes=attributes(1))),
    "subject": (lambda aws: aws.publish(10, Subject="s" * 100), lambda aws: aws.publish(10, Subject="s" * 101)),
    "payload": (lambda aws: aws.invoke(strict.PAYLOAD, "RequestResponse"), lambda aws: aws.invoke(strict.PAYLOAD + 1, "RequestResponse")),
    "payload of an event": (lambda aws: aws.invoke(strict.ASYNC_PAYLOAD, "Event"),
                            lambda aws: aws.invoke(strict.ASYNC_PAYLOAD + 1, "Event")),
    "filter": (lambda aws: aws.query(FilterExpression="#s = :s", ExpressionAttributeNames={"#s": "status"}),
               lambda aws: aws.query(FilterExpression="status = :s")),
    "reserved word in a statement": (lambda aws: aws.run(UPDATE, "x"),
                                     lambda aws: aws.run(UPDATE.replace('"status"', "status"), "x")),
    "commas in a statement": (lambda aws: aws.run(f'UPDATE "strict" REMOVE "n" REMOVE "o" {WHERE}'),
                              lambda aws: aws.run(f'UPDATE "strict" REMOVE "n", "o" {WHERE}')),
    "length of a statement": (lambda aws: aws.run(UPDATE.ljust(8_192), "x"), lambda aws: aws.run(UPDATE.ljust(8_193), "x")),
    "password": (lambda aws: aws.password("Correct-horse-1"), lambda aws: aws.password("Correct horse 1-")),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_the_local_aws_refuses_what_aws_refuses(local: Local, name: str) -> None:
    within, beyond = CALLS[name]
    within(local)
    with pytest.raises(ClientError):
        beyond(local)


def test_the_rule_for_passwords_is_that_of_the_api() -> None:
    assert strict.PASSWORD == PASSWORD
