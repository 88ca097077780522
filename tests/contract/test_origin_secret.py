"""The origin secret of a stage: created once, replaced on request."""

import boto3

from ops import origin_secret

NAME = "/punctual/dev/cloudfront-secret"


def test_the_secret_is_created_once_and_each_rotation_is_a_version(moto: None) -> None:
    ssm = boto3.client("ssm")
    assert [origin_secret.ensure(ssm, "dev") for _ in range(2)] == [1, 1]
    assert [origin_secret.rotate(ssm, "dev") for _ in range(2)] == [2, 3]
    found = [ssm.get_parameter(Name=f"{NAME}:{version}")["Parameter"]["Value"] for version in (1, 2, 3)]
    assert len({*found}) == 3 and all(len(value) == 64 and value.isalnum() for value in found)
    assert origin_secret.ensure(ssm, "dev") == 3


def test_a_first_rotation_creates_a_secret_before_it(moto: None) -> None:
    """The template refers to two versions."""
    assert origin_secret.rotate(boto3.client("ssm"), "prod") == 2


def test_a_stage_that_is_deleted_leaves_no_secret(moto: None) -> None:
    ssm = boto3.client("ssm")
    for _ in range(2):
        origin_secret.delete(ssm, "dev")
        assert origin_secret.ensure(ssm, "dev") == 1
