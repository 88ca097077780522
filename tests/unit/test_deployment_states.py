"""Each state in which a deployment or a deletion can leave a stack, and the next step from there."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, WaiterError
from moto import mock_aws

from infra.options import Options, lasting
from infra.settings import STAGES
from local.aws import Deployed
from local.failure import Trouble
from ops import bootstrap, destroy, rollout, taken_back
from ops.cloud import Stage, remedy

REGION = "eu-central-1"
STATUSES = boto3.Session(region_name=REGION).client("cloudformation").meta.service_model.shape_for("StackStatus").enum


def a_stage(name: str = "dev", region: str = REGION) -> Stage:
    return Stage(STAGES[name], boto3.Session(region_name=region))


@pytest.fixture
def aws() -> Iterator[None]:
    with mock_aws():
        yield


@pytest.fixture
def agreed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YES", "1")


def bootstrapped(version: int = 6, qualifier: str = bootstrap.DEFAULT) -> None:
    ssm = a_stage().client("ssm")
    ssm.put_parameter(Name=f"/cdk-bootstrap/{qualifier}/version", Value=str(version), Type="String", Overwrite=True)


# What each status means.


@pytest.mark.parametrize("protected", [False, True])
@pytest.mark.parametrize("status", STATUSES)
def test_every_status_has_a_next_step_that_aws_accepts(status: str, protected: bool) -> None:
    found = Deployed("punctual-prod", status, protected=protected)
    step = remedy(found, "prod")
    if status.endswith("_IN_PROGRESS") and status != "REVIEW_IN_PROGRESS":
        assert step == "Wait until it has ended, then repeat." and not found.deployable
    elif found.deployable:
        assert step.endswith("make deploy STAGE=prod") and "make destroy" not in step
    elif status in ("UPDATE_FAILED", "UPDATE_ROLLBACK_FAILED"):
        assert "rollback" in step.partition("describe-stack-events")[2] and step.endswith("Then: make deploy STAGE=prod")
    else:
        assert ("--no-enable-termination-protection --stack-name punctual-prod" in step) is protected
        assert "\n  make destroy STAGE=prod" in step


def test_a_console_is_deleted_alone() -> None:
    step = remedy(Deployed("punctual-prod-console", "ROLLBACK_COMPLETE", protected=True), "prod")
    assert "make destroy STAGE=prod ONLY=console\n  make deploy STAGE=prod" in step


@pytest.mark.parametrize("status", ["ROLLBACK_COMPLETE", "ROLLBACK_FAILED"])
def test_the_cdk_deletes_a_failed_creation_only_if_it_is_not_protected(status: str) -> None:
    assert Deployed("x", status).deployable and not Deployed("x", status, protected=True).deployable


# Before a deployment.


class Formation:
    """A fake client of CloudFormation: stacks in these statuses. moto's needs packages that are not here, and knows few of the statuses."""

    def __init__(self, **statuses: str) -> None:
        self.statuses = {f"punctual-{name.replace('_', '-')}": status for name, status in statuses.items()}

    def describe_stacks(self, *, StackName: str) -> dict[str, Any]:
        if StackName not in self.statuses:
            error = {"Error": {"Code": "ValidationError", "Message": f"Stack with id {StackName} does not exist"}}
            raise ClientError(error, "DescribeStacks")  # type: ignore[arg-type]
        return {"Stacks": [{"StackStatus": self.statuses[StackName], "EnableTerminationProtection": "prod" in StackName}]}

    def get_paginator(self, _operation: str) -> Any:
        return SimpleNamespace(paginate=lambda **_: [{"StackResourceSummaries": []}])

    def delete_stack(self, *, StackName: str) -> None:
        del self.statuses[StackName]

    def get_waiter(self, _name: str) -> Any:
        return SimpleNamespace(wait=lambda **_: None)


SSM = SimpleNamespace(  # with the origin secret
    exceptions=SimpleNamespace(ParameterNotFound=KeyError),
    get_parameter=lambda Name: {"Parameter": {"Version": 1}},
    delete_parameters=lambda Names: {},
)


def prepared(stage: str = "dev", options: Options | None = None, region: str = REGION, **statuses: str) -> Deployed | None:
    limits = {"AccountLimit": {"ConcurrentExecutions": 10_000, "UnreservedConcurrentExecutions": 10_000}}
    session = boto3.Session(region_name=region)
    fakes = {"cloudformation": Formation(**statuses), "lambda": SimpleNamespace(get_account_settings=lambda: limits)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stage, "client", lambda self, service: fakes.get(service) or session.client(service))
        return rollout.prepare(Stage(STAGES[stage], session), options or Options(), Path("dev.toml"))


@pytest.mark.long
@pytest.mark.usefixtures("aws")
def test_a_deployment_that_was_broken_off_before_it_began_blocks_none() -> None:
    bootstrapped()
    assert prepared(dev="REVIEW_IN_PROGRESS", dev_console="REVIEW_IN_PROGRESS") is None, "nothing was there before"
    before = prepared(dev="UPDATE_ROLLBACK_COMPLETE", dev_console="ROLLBACK_COMPLETE")
    assert before is not None and before.name == "punctual-dev"


@pytest.mark.long
@pytest.mark.usefixtures("aws")
def test_a_failed_first_deployment_of_prod_is_refused_with_its_commands() -> None:
    bootstrapped()
    with pytest.raises(Trouble) as refused:
        prepared("prod", prod="CREATE_COMPLETE", prod_console="ROLLBACK_COMPLETE")
    told = str(refused.value)
    assert told.startswith("The stack punctual-prod-console is ROLLBACK_COMPLETE.")
    assert told.endswith("--stack-name punctual-prod-console\n  make destroy STAGE=prod ONLY=console\n  make deploy STAGE=prod")
    assert prepared("prod", Options(console=False), prod="CREATE_COMPLETE", prod_console="ROLLBACK_COMPLETE")


@pytest.mark.usefixtures("aws")
def test_every_stack_that_blocks_is_named() -> None:
    bootstrapped()
    with pytest.raises(Trouble, match=r"(?s)punctual-dev is UPDATE_IN_PROGRESS.*punctual-dev-console is DELETE_FAILED"):
        prepared(dev="UPDATE_IN_PROGRESS", dev_console="DELETE_FAILED")


@pytest.mark.usefixtures("aws")
def test_the_bootstrap_is_found_by_its_parameter_and_its_version() -> None:
    with pytest.raises(Trouble, match=r"no parameter /cdk-bootstrap/hnb659fds/version.*cdk bootstrap aws://123456789012/eu-central-1\n"):
        prepared()
    bootstrapped(5)
    with pytest.raises(Trouble, match=r"has version 5; the stacks need 6 or newer. Renew it: .*cdk bootstrap aws://"):
        prepared()
    bootstrapped(31)
    assert prepared() is None, "whatever the name of the CDK's stack is"


@pytest.mark.usefixtures("aws")
def test_a_bootstrap_under_another_qualifier_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    place = tmp_path / "cdk.json"
    place.write_text('{"context": {"@aws-cdk/core:bootstrapQualifier": "acme"}}')
    assert bootstrap.qualifier([tmp_path / "none.json", place]) == "acme" and bootstrap.qualifier([]) == bootstrap.DEFAULT
    monkeypatch.setattr(bootstrap, "qualifier", lambda: "acme")
    with pytest.raises(Trouble, match=r"cdk bootstrap aws://\S+ --qualifier acme --toolkit-stack-name CDKToolkit-acme"):
        prepared()
    bootstrapped(qualifier="acme")
    assert prepared() is None


@pytest.mark.usefixtures("aws")
@pytest.mark.parametrize(
    ("region", "told"),
    [
        ("cn-north-1", "Cognito has no user pools in cn-north-1"),
        ("us-gov-west-1", r"is not in GovCloud. Write console = false to dev.toml"),
    ],
)
def test_a_region_without_a_service_of_the_stage_is_refused(region: str, told: str) -> None:
    with pytest.raises(Trouble, match=told):
        prepared(region=region)


@pytest.mark.parametrize(("after", "told"), [(Options(), True), (Options(customer_key=False), True), (Options(customer_key=True), False)])
def test_an_option_that_stays_is_refused_otherwise(after: Options, told: bool) -> None:
    sentences = taken_back.forbidden({"customer_key": True, "tracing": True}, after)
    assert [each.partition(":")[0] for each in sentences] == (["customer_key cannot be changed back"] if told else [])
    assert not told or sentences[0].endswith("Write customer_key = true to the file.")
    assert list(lasting()) == ["customer_key"] and not taken_back.forbidden({"customer_key": False}, after)


@pytest.mark.usefixtures("aws", "agreed")
def test_a_yes_does_not_take_back_an_option_that_stays() -> None:
    bootstrapped()
    a_stage().client("ssm").put_parameter(Name="/punctual/dev/options", Value='{"customer_key": true}', Type="String")
    with pytest.raises(Trouble, match=r"(?s)dev.toml: customer_key cannot be changed back: .*make destroy STAGE=dev.*Nothing was deployed"):
        prepared(options=Options(tracing=True))
    prepared(options=Options(customer_key=True))


# After a deployment that failed.


def failing(monkeypatch: pytest.MonkeyPatch, formation: Formation, ends: int | type[BaseException] = 1) -> str:
    def run(*_: Any, **__: Any) -> Any:
        if isinstance(ends, int):
            return SimpleNamespace(returncode=ends)
        raise ends

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(rollout, "find_cdk", lambda: ["cdk"])
    monkeypatch.setattr(Stage, "client", lambda self, service: SSM if service == "ssm" else formation)
    with pytest.raises(Trouble) as told:
        rollout.cdk_deploy(a_stage("prod"), Options(), Path("prod.toml"), bytecode_optional=True)
    return str(told.value)


def test_a_failed_deployment_ends_with_the_state_and_the_next_step(monkeypatch: pytest.MonkeyPatch) -> None:
    told = failing(monkeypatch, Formation(prod="UPDATE_COMPLETE", prod_console="ROLLBACK_COMPLETE"))
    assert told.startswith("`cdk deploy` failed; its output is above.\nThe stack punctual-prod-console is ROLLBACK_COMPLETE.")
    assert "punctual-prod is" not in told and told.endswith("make deploy STAGE=prod")
    assert "Then: make deploy STAGE=prod" in failing(monkeypatch, Formation(prod="UPDATE_ROLLBACK_COMPLETE"))


def test_a_deployment_that_changed_nothing_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    told = failing(monkeypatch, Formation(prod="UPDATE_COMPLETE"))
    assert told.endswith("No stack is in an incomplete state. Fix the cause, then: make deploy STAGE=prod")


def test_an_interrupted_deployment_goes_on_at_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    told = failing(monkeypatch, Formation(prod="UPDATE_IN_PROGRESS"), KeyboardInterrupt)
    assert told.startswith("Interrupted. AWS completes an update that has begun.\n") and "Wait until it has ended" in told


# Deleting.


@pytest.mark.usefixtures("agreed")
def test_a_stack_in_review_is_deleted(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    formation = Formation(dev="REVIEW_IN_PROGRESS")  # whose template CloudFormation does not return
    monkeypatch.setattr(Stage, "client", lambda self, service: SSM if service == "ssm" else formation)
    destroy.destroy(a_stage(), ["punctual-dev"])
    assert not formation.statuses and "Deleted the stack punctual-dev." in capsys.readouterr().out


class Imported:
    """A CloudFormation whose stack exports two values, of which two stacks import one."""

    def describe_stacks(self, *, StackName: str) -> dict[str, Any]:
        outputs = [{"OutputKey": "ApiId", "OutputValue": "a"}]
        outputs += [{"OutputKey": name, "OutputValue": "arn", "ExportName": f"punctual-dev-templates-{name}"} for name in ("web", "shop")]
        return {"Stacks": [{"StackName": StackName, "StackStatus": "UPDATE_COMPLETE", "Outputs": outputs}]}

    def list_imports(self, *, ExportName: str) -> dict[str, Any]:
        if ExportName.endswith("web"):
            message = f"Export '{ExportName}' is not imported by any stack."
            raise ClientError({"Error": {"Code": "ValidationError", "Message": message}}, "ListImports")
        return {"Imports": ["shop-prod", "shop-test"]}


@pytest.mark.usefixtures("agreed")
def test_a_stage_whose_exports_are_imported_is_not_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    """CloudFormation would refuse it, after the buckets were emptied."""
    monkeypatch.setattr(Stage, "client", lambda self, service: Imported())
    with pytest.raises(Trouble) as refused:
        destroy.destroy(a_stage(), ["punctual-dev"])
    assert str(refused.value) == (
        "Nothing was deleted: other stacks declare tasks by this stage. Delete these stacks first:\n"
        "  shop-prod (by the export punctual-dev-templates-shop)\n"
        "  shop-test (by the export punctual-dev-templates-shop)"
    )


def test_other_errors_of_imports_are_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    formation = Imported()
    denied = ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "ListImports")
    monkeypatch.setattr(formation, "list_imports", lambda **_: (_ for _ in ()).throw(denied))
    with pytest.raises(ClientError):
        list(destroy.imports(formation, Deployed("punctual-dev", "UPDATE_COMPLETE")))


class Writers:
    """A fake of CloudFormation and S3. While `writing`, objects come into the bucket before CloudFormation deletes it."""

    def __init__(self, writing: int) -> None:
        self.writing = writing
        self.emptied = 0
        self.status = "CREATE_COMPLETE"

    def describe_stacks(self, **_: str) -> dict[str, Any]:
        return {"Stacks": [{"StackStatus": self.status, "StackStatusReason": "The bucket is not empty"}]}

    def get_template(self, **_: str) -> dict[str, Any]:
        return {"TemplateBody": {"Resources": {}}}

    def get_paginator(self, operation: str) -> Any:
        listed = [
            {
                "LogicalResourceId": "Gone",
                "ResourceType": "AWS::S3::Bucket",
                "PhysicalResourceId": "g",
                "ResourceStatus": "DELETE_COMPLETE",
            },
            {"LogicalResourceId": "Files", "ResourceType": "AWS::S3::Bucket", "PhysicalResourceId": "f", "ResourceStatus": self.status},
        ]
        objects = [{"Versions": [{"Key": "a", "VersionId": "1"}]}]
        pages = {"list_stack_resources": [{"StackResourceSummaries": listed}], "list_object_versions": objects}
        return SimpleNamespace(paginate=lambda **_: iter(pages[operation]))

    def delete_objects(self, *, Bucket: str, Delete: Any) -> dict[str, Any]:
        assert Bucket == "f", "the other one is deleted already"
        self.emptied += 1
        return {}

    def delete_stack(self, **_: str) -> None:
        self.status = "DELETE_FAILED" if self.writing else "DELETE_COMPLETE"
        self.writing = max(self.writing - 1, 0)

    def get_waiter(self, _name: str) -> Any:
        def wait(**_: Any) -> None:
            if self.status == "DELETE_FAILED":
                raise WaiterError("stack_delete_complete", "failed", {})

        return SimpleNamespace(wait=wait)


@pytest.mark.usefixtures("agreed")
def test_a_bucket_that_is_written_to_while_its_stack_goes_is_emptied_again(monkeypatch: pytest.MonkeyPatch) -> None:
    writers = Writers(writing=2)
    monkeypatch.setattr(Stage, "client", lambda self, service: SSM if service == "ssm" else writers)
    destroy.destroy(a_stage(), ["punctual-dev"])
    assert (writers.status, writers.emptied) == ("DELETE_COMPLETE", 3)


@pytest.mark.usefixtures("agreed")
def test_a_deletion_that_fails_again_and_again_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    writers = Writers(writing=9)
    monkeypatch.setattr(Stage, "client", lambda self, service: SSM if service == "ssm" else writers)
    with pytest.raises(
        Trouble, match=r"(?s)is DELETE_FAILED \(The bucket is not empty\)\. Its events have the cause: .*make destroy STAGE=dev"
    ):
        destroy.destroy(a_stage(), ["punctual-dev"])
    assert writers.emptied == destroy.TRIES


def test_what_an_incomplete_stack_leaves_is_empty() -> None:
    def paginate(**_: str) -> Any:
        resource = {"LogicalResourceId": "Jobs", "ResourceType": "AWS::DynamoDB::GlobalTable", "PhysicalResourceId": "jobs"}
        return [{"StackResourceSummaries": [resource | {"ResourceStatus": "DELETE_SKIPPED"}]}]

    formation = SimpleNamespace(
        get_paginator=lambda _: SimpleNamespace(paginate=paginate),
        get_template=lambda **_: {"TemplateBody": {"Resources": {"Jobs": {"DeletionPolicy": "Retain"}}}},
    )
    (told,) = destroy.leftover(formation, Deployed("punctual-prod", "ROLLBACK_COMPLETE"))
    assert told == "Left AWS::DynamoDB::GlobalTable jobs: it is empty, because no deployment of its stack ever succeeded."
    (told,) = destroy.leftover(formation, Deployed("punctual-prod", "UPDATE_COMPLETE"))
    assert told.endswith("it holds data that outlives its stage.")
