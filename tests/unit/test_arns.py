"""ARNs and the patterns that allow them."""

import pytest

from scheduler.targets import arns

SERVICES = ("events", "sqs")
QUEUE = "arn:aws:sqs:eu-west-1:123456789012:orders-in"


@pytest.mark.parametrize(
    ("pattern", "is_one"),
    [
        (QUEUE, True),
        ("arn:aws:sqs:eu-west-1:123456789012:orders-*", True),
        ("arn:aws:sqs:*:*:*", True),
        ("arn:aws:sqs:eu-*:123456789012:*-in", True),
        ("arn:aws:sqs:eu-west-1:123456789012:orders", False),
        ("arn:aws:sqs:eu-west-1:123456789012:ordersXin", False),
        ("arn:aws:sqs:eu-west-1:210987654321:*", False),
        ("arn:aws:sns:*:*:*", False),
        ("arn:aws:sqs:*", False),
    ],
)
def test_a_star_matches_any_text_within_its_part(pattern: str, is_one: bool) -> None:
    assert arns.matches(pattern, QUEUE) is is_one
    assert arns.is_allowed(QUEUE, ["arn:aws:states:a:1:x", pattern]) is is_one


def test_a_star_does_not_match_beyond_its_part() -> None:
    assert not arns.matches("arn:aws:sqs:eu-*:orders", "arn:aws:sqs:eu-west-1:123456789012:orders")


def test_no_patterns_allow_nothing() -> None:
    assert not arns.is_allowed(QUEUE, [])


def test_only_the_last_part_has_colons() -> None:
    assert arns.matches("arn:aws:lambda:r:1:function:orders:*", "arn:aws:lambda:r:1:function:orders:live")
    assert not arns.matches("arn:aws:lambda:r:1:function:orders", "arn:aws:lambda:r:1:function:orders:live")


@pytest.mark.parametrize(
    "bad", ["*", "arn:*", "arn:aws:*:*:*:*", "arn:aws:s3:::bucket", "arn:aws:sqs:r:1:", "arn:aws:sqs:r:1:a?", "arn:aws:sqs:r:1:a b", ""]
)
def test_a_pattern_must_name_its_service(bad: str) -> None:
    with pytest.raises(ValueError, match="is no ARN of events, sqs; such as"):
        arns.check_pattern(bad, SERVICES)


def test_a_valid_pattern_is_returned_unchanged() -> None:
    assert arns.check_pattern("arn:aws-cn:events:*:*:event-bus/*", SERVICES) == "arn:aws-cn:events:*:*:event-bus/*"


@pytest.mark.parametrize("arn", [QUEUE, "arn:aws-cn:sqs:cn-north-1:123456789012:orders.fifo"])
def test_a_queue_s_url_and_arn_convert_into_each_other(arn: str) -> None:
    assert arns.queue(arns.queue_url(arn)) == arn
    assert arns.queue(arn) == arn


def test_other_texts_than_queue_urls_are_unchanged() -> None:
    assert arns.queue("http://127.0.0.1:4566/000000000000/orders") == "http://127.0.0.1:4566/000000000000/orders"
    assert arns.queue("https://sqs.eu-west-1.amazonaws.com.evil.example/123456789012/orders").startswith("https")


@pytest.mark.parametrize(
    ("arn", "own"),
    [
        ("arn:aws:lambda:eu-west-1:123456789012:function:punctual-prod-ApiFunction3DD2C2CF-abc", True),
        ("arn:aws:lambda:eu-west-1:123456789012:function:punctual-other-stage-ApiFunction3DD2C2CF-abc:live", True),
        ("arn:aws:sqs:eu-west-1:123456789012:punctual-prod-LanesWork4C7573CB-abc", True),
        ("arn:aws:dynamodb:eu-west-1:123456789012:table/punctual-dev-StorageAudit4C7573CB-abc/index/by_month", True),
        ("arn:aws:sqs:*:*:punctual-prod-L*", True),
        ("arn:aws:sqs:*:*:*", False),
        ("arn:aws:lambda:eu-west-1:123456789012:function:punctual-sample", False),
        ("arn:aws:sqs:eu-west-1:123456789012:punctual-sample-queue", False),
        ("arn:aws:sqs:eu-west-1:123456789012:orders-punctual-prod-L", False),
    ],
)
def test_resources_of_the_scheduler_itself_are_known_by_their_names(arn: str, own: bool) -> None:
    assert arns.is_own(arn) is own


def test_a_pattern_must_not_name_resources_of_the_scheduler_itself() -> None:
    with pytest.raises(ValueError, match="names resources of the scheduler itself, which no job may reach"):
        arns.check_pattern("arn:aws:sqs:*:*:punctual-prod-LanesWork*", SERVICES)


@pytest.mark.parametrize(
    ("arn", "place", "address"),
    [
        ("arn:aws:ecs:eu-west-1:123456789012:task/jobs/1", "", "https://eu-west-1.console.aws.amazon.com"),
        ("arn:aws:ecs:eu-west-1:123456789012:task/jobs/1", "us-east-1", "https://us-east-1.console.aws.amazon.com"),
        ("arn:aws-cn:ecs:cn-north-1:123456789012:task/jobs/1", "", "https://cn-north-1.console.amazonaws.cn"),
        ("arn:aws-us-gov:states:us-gov-west-1:123456789012:execution:bill:7", "", "https://us-gov-west-1.console.amazonaws-us-gov.com"),
    ],
)
def test_each_partition_has_its_own_console(arn: str, place: str, address: str) -> None:
    assert arns.console(arn, place) == address
