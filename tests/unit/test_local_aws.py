"""The boto3 clients of the local AWS: all threads share one client per service."""

from concurrent.futures import ThreadPoolExecutor

from local.aws import LocalAws


def test_all_threads_use_one_client_of_a_service() -> None:
    aws = LocalAws(4566)
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(aws.client, ["sqs"] * 16))
    assert len({id(each) for each in made}) == 1 and aws.client("sns") is not made[0]
    assert made[0].meta.endpoint_url == "http://127.0.0.1:4566"


def test_a_client_with_options_is_created_each_time() -> None:
    aws = LocalAws(4566)
    own = aws.client("sqs", read_timeout=120)
    assert own.meta.config.read_timeout == 120
    assert aws.client("sqs") is not own and aws.client("sqs").meta.config.read_timeout == 60
