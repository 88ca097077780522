"""Each option alone, and all pairs of options, through the CDK app as `make deploy` runs it: cdk-nag, cfn-lint, and as a change of a stage.

`make templates` runs all of it, `make test` the pairs, each file in one of the stages.
"""

import json
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from infra.options import Options, OptionsError, lasting, read
from ops.bootstrap import DEFAULT, NEEDED
from tests.infra import choices, conftest
from tests.infra.choices import Chosen
from tests.infra.cloudformation import GOVCLOUD, REGIONS, lint, replaced

templates = pytest.mark.templates
STAGES = pytest.mark.parametrize("stage", ["dev", "prod"])
NAMED_WITHIN = {  # another resource of the stage; an alarm has the name of its metric, whose dimensions have the stage
    *("ApiGatewayV2::Authorizer", "ApiGatewayV2::Stage", "Athena::NamedQuery", "CloudWatch::Alarm"),
    "Lambda::Alias",
}
EVERYWHERE = (*REGIONS, GOVCLOUD)

# Resources with data that a change of options may remove from the template, by their logical id without its hash.
MAY_GO = {
    "StorageAuditLock": "every stage keeps the bucket, whose objects are locked",
    "EncryptionKey": "`make deploy` refuses the change: customer_key stays",
    "AnnounceLost": "without the option `events` no event can be lost; prod keeps the queue",
    "AnnounceBus": "the page on events says that rules on the bus are lost",
    "IntakeJobs": "the page of options says that the messages of a removed queue are lost; prod keeps it",
    "IntakeWebOrders": "the same",
    "IntakeDead": "without the option `intake` there is nothing to give up; prod keeps the queue",
    "IntakeLogs": "the logs of a function that is gone; prod keeps them",
    "DeclareLogs": "the logs of a function that is gone; prod keeps them",
    "AnnounceLogs": "the logs of a function that is gone; prod keeps them",
    "ConcludeLogs": "the logs of a function that is gone; prod keeps them",
    "FetchPrivateLogs": "the logs of a function that is gone; prod keeps them",
    "ProvisionLogs": "the logs of a function that is gone; prod keeps them",
    "AccountsUsersDomain": "the address of the sign-in pages, which nobody needs then",
    "ApiOriginSecret": "without a console there is no origin",
    "ApiId": "without a console nobody looks for the API",
}
WITH_DATA = (
    *("DynamoDB::GlobalTable", "S3::Bucket", "SQS::Queue", "KMS::Key", "SecretsManager::Secret", "Logs::LogGroup", "SSM::Parameter"),
    *("Cognito::UserPool", "Cognito::UserPoolDomain", "Events::EventBus", "KinesisFirehose::DeliveryStream", "Glue::Table"),
)


# The sets of options.


def test_each_option_has_its_values() -> None:
    assert choices.VALUES.keys() == Options.model_fields.keys()
    for name, (default, *others) in choices.VALUES.items():
        assert Options.model_validate({name: default}).model_dump() == Options().model_dump(), name
        assert others and default not in others and None not in others, f"stages/example.toml lacks another value of {name}"


def test_every_pair_of_values_occurs_in_few_files() -> None:
    found = {
        pair
        for chosen in choices.pairs()
        for pair in combinations(sorted((name, values.index(chosen.get(name, values[0]))) for name, values in choices.VALUES.items()), 2)
    }
    assert found == set(choices.wanted()) and len(found) == 1_400 and len(choices.pairs()) <= 12


def test_the_files_are_valid_and_the_excluded_pairs_are_not(tmp_path: Path) -> None:
    for chosen in (*choices.alone(), *choices.pairs(), *choices.EXCLUDED):
        (tmp_path / "options.toml").write_text(choices.toml(chosen))
        if chosen in choices.EXCLUDED:
            with pytest.raises(OptionsError):
                read(tmp_path / "options.toml")
        else:
            assert read(tmp_path / "options.toml") == Options.model_validate(dict(chosen))


# Their templates.


def shown(chosen: Chosen) -> str:
    return choices.toml(chosen).replace("\n", "; ")


def synthesized(stage: str, files: Mapping[str, Chosen], folder: Path, *, rules: bool) -> Iterator[tuple[Chosen, dict[str, Any]]]:
    for name, chosen in files.items():
        try:
            yield chosen, choices.synthesize(stage, chosen, folder / name, rules=rules)
        except RuntimeError as error:
            raise AssertionError(f"{stage} with {shown(chosen)}: {error}") from None


def check(stage: str, files: Mapping[str, Chosen], folder: Path, *, rules: bool, base: str = "") -> None:
    """Synthesize the stage with each of the files, look at each as a change of the stage without options, and lint all.

    `base`: of a stage with a name of its own.
    """
    usual = choices.synthesize(stage, {"base": base} if base else {}, folder / "usual", rules=False)
    for chosen, made in synthesized(stage, files, folder, rules=rules):
        assert made.keys() == {f"punctual-{stage}", *([f"punctual-{stage}-console"] if chosen.get("console", True) else [])}
        for stack in made:
            for before, after in ((usual[stack], made[stack]), (made[stack], usual[stack])):
                assert list(broken(before, after)) == [], f"{stage}, a change of {shown(chosen)}"
    assert lint(folder.glob(f"*/punctual-{stage}.template.json"), EVERYWHERE) == ""
    assert lint(folder.glob("*/*-console.template.json"), REGIONS) == ""


def broken(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """A sentence for each resource that an update may not replace or remove, and for each rule of AWS on updates that it breaks."""
    for id in replaced(before, after):  # none is, with data or without
        yield f"{id} ({before['Resources'][id]['Type']}) is replaced"
    for id in before["Resources"].keys() - after["Resources"].keys():
        kind = before["Resources"][id]["Type"].removeprefix("AWS::")
        if kind in WITH_DATA and id[:-8] not in MAY_GO:
            yield f"{id} ({kind}) is removed with its data"
    for id, was in before["Resources"].items():
        becomes = after["Resources"].get(id)
        if was["Type"] == "AWS::DynamoDB::GlobalTable" and becomes:
            for table in (was["Properties"], becomes["Properties"]):
                if was["Properties"]["BillingMode"] != becomes["Properties"]["BillingMode"] and not seeded(table):
                    yield f"{id}: AWS refuses to change the billing mode of a table without a seed for each autoscaled capacity"


def seeded(value: Any) -> bool:
    """Whether each autoscaled capacity of a table has a seed."""
    if isinstance(value, list):
        return all(map(seeded, value))
    if isinstance(value, Mapping):
        return all(
            (not name.endswith("CapacityAutoScalingSettings") or "SeedCapacity" in each) and seeded(each) for name, each in value.items()
        )
    return True


@templates
@pytest.mark.long
@STAGES
@pytest.mark.parametrize("half", [0, 1], ids=["first", "second"])
def test_pairs_of_options_deploy(stage: str, half: int, tmp_path: Path) -> None:
    """`make test` deploys each file in one of the stages: the first half in dev, the second in prod."""
    check(stage, {f"pairs-{number}": chosen for number, chosen in enumerate(choices.pairs()) if number % 2 == half}, tmp_path, rules=False)


@templates
@pytest.mark.long
@STAGES
def test_options_alone_deploy(stage: str, tmp_path: Path) -> None:
    check(stage, {f"alone-{number}": chosen for number, chosen in enumerate(choices.alone())}, tmp_path, rules=True)


@templates
@pytest.mark.long
@pytest.mark.parametrize("base", ["dev", "prod"])
def test_a_stage_with_a_name_of_its_own_deploys_with_options(base: str, tmp_path: Path) -> None:
    """The files with the most values of `pairs`: its name is all that it does not share with its base."""
    files = sorted(choices.pairs(), key=len)[-3:]
    own = {f"own-{number}": {**chosen, "base": base} for number, chosen in enumerate(files)}
    check("eu-staging", own, tmp_path, rules=False, base=base)


@pytest.mark.long
def test_stages_of_one_account_share_no_name() -> None:
    """Names that CloudFormation makes begin with that of the stack, and end at random."""
    stages = (("dev", "dev"), ("prod", "prod"), ("eu-staging", "prod"))
    found = {stage: set(named(conftest.synthesized(stage, base=base))) for stage, base in stages}
    assert all(len(names) >= 10 for names in found.values()), found
    assert any("punctual_eu_staging" in each for each in found["eu-staging"])
    watched = {stage: set(measured(conftest.synthesized(stage, base=base))) for stage, base in stages}
    assert all(len(metrics) >= 8 for metrics in watched.values())
    for (one, first), (two, second) in combinations(watched.items(), 2):
        assert first & second == set(), f"an alarm of {one} rings for {two}"
    for (one, first), (two, second) in combinations(found.items(), 2):
        assert first & second == set(), f"{one} and {two}"


def measured(made: conftest.Synthesized) -> Iterator[str]:
    """The metrics of our own that the alarms of a stage watch."""
    for alarm in made.all("CloudWatch::Alarm").values():
        if alarm.get("Namespace", "").startswith("Punctual"):
            yield f"{alarm['Namespace']} {alarm['MetricName']} {alarm['Dimensions']}"


def named(made: conftest.Synthesized) -> Iterator[str]:
    """The names that the templates of a stage and its console give to what is one of a kind in an account and region."""
    for each in (made, made.console):
        assert each is not None
        yield each.stack.stack_name
        for resource in each.template["Resources"].values():
            kind = resource["Type"].removeprefix("AWS::")
            for key, value in resource.get("Properties", {}).items():
                if kind not in NAMED_WITHIN and (key.endswith("Name") or key == "Domain") and not refers(value, each):
                    yield f"{kind} {json.dumps(value)}"


def refers(value: Any, made: conftest.Synthesized) -> bool:
    """Whether a name is that of another resource of the stack."""
    return any(f'"{id}"' in json.dumps(value) for id in made.template["Resources"])


# That these checks would find something.


@templates
@pytest.mark.long
def test_a_replaced_table_and_what_refers_to_it_would_be_found() -> None:
    table = {"Type": "AWS::DynamoDB::GlobalTable", "Properties": {"TableName": "a", "BillingMode": "PAY_PER_REQUEST"}}
    mapping = {"Type": "AWS::Lambda::EventSourceMapping", "Properties": {"EventSourceArn": {"Fn::GetAtt": ["Table12345678", "StreamArn"]}}}
    before = {"Resources": {"Table12345678": table, "Mapping12345678": mapping}}
    after: dict[str, Any] = json.loads(json.dumps(before))
    assert not list(broken(before, after))
    after["Resources"]["Table12345678"]["Properties"]["TableName"] = "b"
    assert replaced(before, after) == {"Table12345678", "Mapping12345678"}
    assert len(list(broken(before, after))) == 2
    del after["Resources"]["Table12345678"]
    assert list(broken(before, after)) == ["Table12345678 (DynamoDB::GlobalTable) is removed with its data"]


def test_a_change_of_the_billing_mode_without_a_seed_would_be_found() -> None:
    scaled = {"WriteCapacityAutoScalingSettings": {"MinCapacity": 5, "MaxCapacity": 500}}
    assert not seeded({"GlobalSecondaryIndexes": [scaled]})
    assert seeded({"GlobalSecondaryIndexes": [{"WriteCapacityAutoScalingSettings": {"SeedCapacity": 500}}]})


@pytest.mark.long
def test_the_bootstrap_that_is_asked_for_is_that_of_the_assembly(tmp_path: Path) -> None:
    choices.synthesize("dev", {}, tmp_path, rules=False)
    properties = json.loads((tmp_path / "manifest.json").read_text())["artifacts"]["punctual-dev"]["properties"]
    assert properties["requiresBootstrapStackVersion"] == NEEDED
    assert properties["bootstrapStackVersionSsmParameter"] == f"/cdk-bootstrap/{DEFAULT}/version"


def test_what_may_go_with_the_key_is_refused() -> None:
    assert "customer_key" in lasting()
