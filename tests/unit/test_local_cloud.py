"""A stage in an account: its region, its stacks, and AWS's errors in plain words."""

from collections.abc import Mapping
from typing import Any

import pytest
from botocore import exceptions
from botocore.exceptions import ClientError

from infra.settings import DEV
from local.aws import Deployed, deployed
from local.failure import Trouble
from ops import rollout
from ops.cloud import Stage, remedy, reported, stage_of, trouble
from scheduler.model.errors import Unavailable


def refusal(code: str, message: str = "no", operation: str = "DescribeStacks") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, operation)


class Formation:
    """A fake client of CloudFormation: these stacks, or this refusal."""

    def __init__(self, *stacks: Mapping[str, Any], refuses: ClientError | None = None) -> None:
        self.stacks = {str(each["StackName"]): each for each in stacks}
        self.refuses = refuses

    def describe_stacks(self, *, StackName: str) -> dict[str, Any]:
        if self.refuses:
            raise self.refuses
        if StackName not in self.stacks:
            raise refusal("ValidationError", f"Stack with id {StackName} does not exist")
        return {"Stacks": [self.stacks[StackName]]}


def a_stack(status: str, name: str = "punctual-dev", **more: Any) -> dict[str, Any]:
    return {"StackName": name, "StackStatus": status, "Outputs": [{"OutputKey": f"Of{name}", "OutputValue": "1"}], **more}


def a_stage(monkeypatch: pytest.MonkeyPatch, formation: Formation) -> Stage:
    monkeypatch.setattr(Stage, "client", lambda self, service: formation)
    return stage_of("dev", {"AWS_REGION": "eu-central-1"})


def test_only_a_missing_stack_is_none() -> None:
    assert deployed(Formation(), "punctual-dev") is None
    with pytest.raises(ClientError):
        deployed(Formation(refuses=refusal("AccessDenied")), "punctual-dev")
    with pytest.raises(ClientError):
        deployed(Formation(refuses=refusal("ValidationError", "1 validation error detected")), "punctual-dev")


def test_the_outputs_of_a_stage_include_both_stacks(monkeypatch: pytest.MonkeyPatch) -> None:
    console = a_stack("CREATE_COMPLETE", "punctual-dev-console")
    stage = a_stage(monkeypatch, Formation(a_stack("UPDATE_COMPLETE"), console))
    assert stage.outputs() == {"Ofpunctual-dev": "1", "Ofpunctual-dev-console": "1"}


@pytest.mark.parametrize("status", ["UPDATE_ROLLBACK_COMPLETE", "CREATE_COMPLETE", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"])
def test_a_stack_whose_last_update_failed_can_be_used(monkeypatch: pytest.MonkeyPatch, status: str) -> None:
    assert a_stage(monkeypatch, Formation(a_stack(status))).outputs() == {"Ofpunctual-dev": "1"}


@pytest.mark.parametrize(
    ("status", "what_to_do"),
    [
        ("ROLLBACK_COMPLETE", "describe-stack-events --stack-name punctual-dev. Then: make deploy STAGE=dev"),
        ("CREATE_IN_PROGRESS", "Wait until it has ended"),
        ("UPDATE_ROLLBACK_FAILED", "continue-update-rollback --stack-name punctual-dev"),
        ("DELETE_FAILED", "describe-stack-events --stack-name punctual-dev. Delete what is left of it:\n  make destroy STAGE=dev"),
    ],
)
def test_an_unusable_stack_is_reported_with_its_reason(monkeypatch: pytest.MonkeyPatch, status: str, what_to_do: str) -> None:
    stage = a_stage(monkeypatch, Formation(a_stack(status, StackStatusReason="Jobs already exists")))
    with pytest.raises(Trouble) as told:
        stage.outputs()
    assert f"punctual-dev is {status} (Jobs already exists)" in str(told.value) and what_to_do in str(told.value)
    assert remedy(Deployed("punctual-dev", status), "dev") in str(told.value)


def test_a_missing_stage_is_reported_with_its_region(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Trouble, match=r"There is no stack punctual-dev in eu-central-1. Deploy it: make deploy STAGE=dev"):
        a_stage(monkeypatch, Formation()).outputs()


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (refusal("ExpiredToken"), "Your credentials have expired. Sign in again"),
        (
            refusal("AccessDenied", "not authorized"),
            "Your credentials do not allow DescribeStacks: not authorized\ndocs/get-started/aws.md lists",
        ),
        (refusal("InvalidClientTokenId"), "AWS does not recognize your credentials"),
        (refusal("SignatureDoesNotMatch"), "Check the secret key, and the clock of this machine"),
        (refusal("ThrottlingException"), "Repeat in a minute"),
        (refusal("NoSuchThing", "what"), "AWS refused DescribeStacks: NoSuchThing: what"),
        (exceptions.NoCredentialsError(), "There are no credentials. Set AWS_PROFILE"),
        (exceptions.ProfileNotFound(profile="mine"), "The config profile (mine) could not be found"),
        (exceptions.UnauthorizedSSOTokenError(), "The single sign-on has expired"),
        (exceptions.EndpointConnectionError(endpoint_url="https://x"), "the name of the region"),
        (exceptions.ConnectTimeoutError(endpoint_url="https://x"), "AWS does not answer"),
        (exceptions.NoRegionError(), "AWS could not be called: You must specify a region"),
    ],
)
def test_an_error_of_aws_has_its_cause_and_the_remedy(error: Exception, told: str) -> None:
    assert told in str(trouble(error))
    with pytest.raises(Trouble), reported():
        raise error


def test_an_error_of_an_adapter_is_reported_too() -> None:
    with pytest.raises(Trouble, match=str(Unavailable())), reported():
        raise Unavailable


def test_either_variable_sets_the_region() -> None:
    """The CDK reads the first, boto only the second."""
    assert stage_of("dev", {"AWS_REGION": "eu-central-1"}).region == "eu-central-1"
    assert stage_of("dev", {"AWS_DEFAULT_REGION": "eu-west-1"}).region == "eu-west-1"
    both = stage_of("dev", {"AWS_REGION": "eu-central-1", "AWS_DEFAULT_REGION": "eu-west-1"})
    assert both.client("sts").meta.region_name == "eu-central-1"
    assert (rollout.environment(both)["AWS_REGION"], rollout.environment(both)["AWS_DEFAULT_REGION"]) == ("eu-central-1",) * 2


def test_without_a_region_no_call_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    with pytest.raises(Trouble, match=r"There is no region\. Set AWS_REGION"):
        stage_of("dev", {})


def test_a_missing_profile_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(Trouble, match="nobody"):
        stage_of("dev", {"AWS_REGION": "eu-central-1"})


def test_a_stage_without_a_base_is_refused_with_the_stages_that_need_none() -> None:
    with pytest.raises(Trouble, match=r"stages/staging\.toml: base is missing"):
        stage_of("staging", {})
    assert DEV.console_stack == "punctual-dev-console"
