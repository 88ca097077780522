"""The parser of DynamoDB's answers and the serializer of its requests: they make the same of them as botocore's."""

import json
from typing import Any

import pytest
from botocore.parsers import JSONParser, QueryParser
from botocore.serialize import JSONSerializer
from botocore.session import get_session

from scheduler.storage.aws import clients, items, keys
from scheduler.storage.aws.clients import Answers, Requests
from scheduler.storage.aws.jobs import _changing
from scheduler.storage.aws.updates import as_call, as_statement
from scheduler.storage.ports import Change
from tests.contract import make

ITEM = {**items.encode(make.claimed(make.job())), "n": {"NULL": True}, "l": {"L": [{"BOOL": False}]}, "text": {"S": '"B":"AA=="'}}
BINARY = {**keys.MARK, "early": {"B": "AAEC"}, "many": {"BS": ["AA=="]}}


def answers(item: Any) -> dict[str, Any]:
    more = {"Count": 1, "ScannedCount": 1, "LastEvaluatedKey": keys.MARK}
    return {
        "BatchExecuteStatement": {
            "Responses": [{"TableName": "t", "Item": item}, {"Error": {"Code": "ThrottlingError", "Item": item}}, {}]
        },
        "BatchGetItem": {"Responses": {"t": [item]}, "UnprocessedKeys": {"t": {"Keys": [keys.MARK], "ConsistentRead": False}}},
        "GetItem": {"Item": item},
        "Query": {"Items": [item], **more},
        "Scan": {"Items": [item, item], **more},
        "UpdateItem": {"Attributes": item},
    }


@pytest.mark.parametrize("item", [ITEM, BINARY], ids=["plain", "binary"])
@pytest.mark.parametrize("operation", answers({}))
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_an_answer_is_parsed_as_botocore_parses_it(operation: str, item: Any, separators: tuple[str, str]) -> None:
    shape = get_session().get_service_model("dynamodb").operation_model(operation).output_shape
    assert shape is not None
    body = json.dumps(answers(item)[operation], separators=separators).encode()
    response = {"status_code": 200, "headers": {"x-amzn-RequestId": "1"}, "body": body}
    parsed, expected = (parser().parse(dict(response), shape) for parser in (Answers, JSONParser))
    assert parsed == expected
    if item is BINARY and operation == "GetItem":
        assert parsed["Item"]["early"]["B"] == b"\x00\x01\x02"


def test_the_clients_use_it() -> None:
    endpoint: Any = clients.dynamodb(region_name="us-east-1")._endpoint  # type: ignore[attr-defined]
    made = [type(endpoint._response_parser_factory.create_parser(protocol)) for protocol in ("json", "query")]
    assert made == [Answers, QueryParser]
    assert isinstance(clients.dynamodb(region_name="us-east-1")._serializer, Requests)  # type: ignore[attr-defined]


def _requests(call: dict[str, Any], operation: str) -> list[Any]:
    model = get_session().get_service_model("dynamodb").operation_model(operation)
    return [serializer().serialize_to_request(call, model) for serializer in (Requests, JSONSerializer)]


def test_a_request_is_sent_as_botocore_sends_it() -> None:
    job = make.claimed(make.job())
    update = _changing(Change(make.job(), job))
    statement, call = as_statement(update, "t"), as_call(update, "t")
    for operation, request in (("BatchExecuteStatement", {"Statements": [statement, statement]}), ("UpdateItem", call)):
        plain, expected = _requests(request, operation)
        assert plain == expected
        assert len(plain["body"]) > 100


def test_a_binary_value_is_sent_by_other_operations_only() -> None:
    early = {"early": {"B": b"AA"}}
    plain, expected = _requests({"TableName": "t", "Item": early}, "PutItem")
    assert plain == expected
    with pytest.raises(TypeError, match="bytes"):
        _requests(
            {"Statements": [{"Statement": "INSERT INTO t VALUE {'early': ?}", "Parameters": [early["early"]]}]}, "BatchExecuteStatement"
        )
