"""The rules of declarations: texts by a schema, the address and the body of an answer."""

import json
from typing import Any

import pytest

from scheduler.declarations import answers
from scheduler.declarations.answers import MOST_BYTES, Outcome
from scheduler.declarations.conversion import converted
from scheduler.model.errors import Invalid

SCHEMA: dict[str, Any] = {
    "$defs": {"Limit": {"type": "object", "properties": {"rate": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}}},
    "type": "object",
    "properties": {
        "whole": {"type": "integer"},
        "number": {"type": "number"},
        "flag": {"type": "boolean"},
        "text": {"type": "string"},
        "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        "anything": {"title": "Body"},
        "free": {"type": "object", "additionalProperties": True},
        "sizes": {"type": "object", "additionalProperties": {"type": "integer"}},
        "limit": {"anyOf": [{"$ref": "#/$defs/Limit"}, {"type": "null"}]},
        "several": {"anyOf": [{"type": "array", "items": {"type": "number"}}, {"type": "null"}]},
    },
}
EVENT = {"StackId": "arn:aws:cloudformation:eu-central-1:123456789012:stack/s/1", "RequestId": "r", "LogicalResourceId": "Nightly"}
ENDPOINT = "http://127.0.0.1:4566"


@pytest.mark.parametrize(
    ("field", "given", "value"),
    [
        ("whole", "3", 3),
        ("whole", "-3", -3),
        ("whole", "3.5", "3.5"),
        ("whole", "three", "three"),
        ("whole", "9" * 5_000, "9" * 5_000),
        ("whole", "", ""),
        ("whole", "٣", "٣"),
        ("number", "3", 3),
        ("number", "2.5", 2.5),
        ("number", "1e400", "1e400"),
        ("number", "NaN", "NaN"),
        ("flag", "true", True),
        ("flag", "false", False),
        ("flag", "True", "True"),
        ("flag", "1", "1"),
        ("text", "3", "3"),
        ("text", "true", "true"),
        ("either", "3", "3"),
        ("anything", "3", "3"),
        ("anything", {"a": "3"}, {"a": "3"}),
        ("free", {"a": "3"}, {"a": "3"}),
        ("free", '{"a": 3, "b": "3"}', {"a": 3, "b": "3"}),
        ("free", "{", "{"),
        ("free", "[" * 100_000, "[" * 100_000),
        ("sizes", {"a": "3"}, {"a": 3}),
        ("limit", {"rate": "5"}, {"rate": 5}),
        ("limit", {"rat": "5"}, {"rat": "5"}),
        ("limit", ["5"], ["5"]),
        ("several", ["1", "2.5"], [1, 2.5]),
        ("several", "[1]", [1]),
        ("unknown", "3", "3"),
    ],
)
def test_texts_become_values_by_the_schema(field: str, given: Any, value: Any) -> None:
    found = converted({field: given}, SCHEMA)[field]
    assert found == value and type(found) is type(value)


REGIONAL = "cloudformation-custom-resource-response-eucentral1.s3.eu-central-1.amazonaws.com"


@pytest.mark.parametrize(
    "url",
    [
        f"https://{REGIONAL}/arn%3Aaws%3Acloudformation?X-Amz-Signature=1",
        f"https://{REGIONAL}:443/a?b",
        "https://cloudformation-custom-resource-response-useast1.s3.amazonaws.com/a?b",
        "https://cloudformation-custom-resource-response-uswest2.s3-us-west-2.amazonaws.com/a?b",
        "https://cloudformation-custom-resource-response-cnnorth1.s3.cn-north-1.amazonaws.com.cn/a?b",
        "https://s3.eu-central-1.amazonaws.com/cloudformation-custom-resource-response-eucentral1/a?b",
    ],
)
def test_an_answer_is_sent_to_a_bucket_of_cloudformation(url: str) -> None:
    assert answers.check_address(url) == url


REFUSED = [
    f"http://{REGIONAL}/a",
    f"https://{REGIONAL}:8443/a",
    f"https://{REGIONAL}.evil.example/a",
    f"https://{REGIONAL}@evil.example/a",
    f"https://user:password@{REGIONAL}/a",
    f"https://evil.example/{REGIONAL}/a",
    f"https://evil.example#{REGIONAL}",
    f"https://{REGIONAL}\\@evil.example/",
    f"https://{REGIONAL} .evil.example/",
    "https://my-bucket.s3.eu-central-1.amazonaws.com/a",
    "https://s3.eu-central-1.amazonaws.com/my-bucket/cloudformation-custom-resource-response-eucentral1/a",
    "https://cloudformation-custom-resource-response-eucentral1.s3.evil.example/a",
    "https://169.254.169.254/latest/meta-data",
    "http://localhost:4566/_ministack/cfn-response/1",
    "http://127.0.0.1:9001/2018-06-01/runtime",
    "file:///etc/passwd",
    f"https://{REGIONAL}:x/a",
    "https://[::1/a",
    "",
    None,
    7,
]


@pytest.mark.parametrize("url", REFUSED)
def test_no_other_address_is_called(url: object) -> None:
    with pytest.raises(Invalid) as refused:
        answers.check_address(url)
    assert refused.value.message == "ResponseURL: is not an address of CloudFormation"


@pytest.mark.parametrize(
    ("url", "is_known"),
    [
        ("http://localhost:4566/_ministack/cfn-response/1", True),
        ("http://127.0.0.1:4566/_ministack/cfn-response/1", True),
        ("http://localhost:4567/_ministack/cfn-response/1", False),
        ("https://localhost:4566/_ministack/cfn-response/1", False),
        ("http://localhost:4566@evil.example/", False),
        ("http://169.254.169.254:4566/", False),
    ],
)
def test_the_local_aws_waits_for_answers_itself(url: str, is_known: bool) -> None:
    if is_known:
        assert answers.check_address(url, ENDPOINT) == url
    else:
        with pytest.raises(Invalid):
            answers.check_address(url, ENDPOINT)


@pytest.mark.parametrize("letter", ["x", "é", "日", '"', "\n", "🎉"])
@pytest.mark.parametrize("count", [1, 600, 3_700, 5_000, 100_000])
def test_an_answer_has_at_most_4096_bytes_whatever_its_reason(letter: str, count: int) -> None:
    body = answers.body(EVENT, Outcome("team-1/task/x", reason=letter * count))
    assert len(body) <= MOST_BYTES
    reason = json.loads(body)["Reason"]
    assert reason == letter * count or (reason.endswith(" …") and len(body) > MOST_BYTES - 24)


def test_a_success_has_its_data_and_no_reason() -> None:
    answer = json.loads(answers.body(EVENT, Outcome("team-1/monitor/x", {"Key": "x"}, secret=True)))
    assert answer == EVENT | {"Status": "SUCCESS", "PhysicalResourceId": "team-1/monitor/x", "NoEcho": True, "Data": {"Key": "x"}}
