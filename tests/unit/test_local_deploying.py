"""The parts of `make deploy`, `make destroy` and `make doctor` that decide, without AWS."""

import io
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from infra.options import Network, Options
from infra.settings import DEV, PROD, STAGES, settings_for
from local.aws import Deployed, LocalAws
from local.failure import Trouble
from ops import concurrency, destroy, doctor, rollout, taken_back
from ops.cloud import Stage
from ops.confirm import confirm
from scheduler.model import slots
from scheduler.model.breaker import Breaker, Circuit
from scheduler.model.instants import render
from scheduler.model.job import Cursor, Lane, LaneState
from scheduler.storage.memory.stores import MemoryLedger
from tests.conftest import NOW

SECRET = "/punctual/dev/cloudfront-secret"
COSTS = Path(__file__).resolve().parents[2] / "docs/concepts/cost.md"


# The meaning of the account's concurrency.


@pytest.mark.parametrize("stage", [DEV, PROD])
def test_the_limit_of_a_new_account_is_judged_as_too_low(stage: Any) -> None:
    found = concurrency.judge(10, 10, stage)
    assert not found.enough and found.sentences[0].startswith("The account may run 10 functions at once.")
    assert "The engine alone takes up to 10" in found.sentences[0] and "Service Quotas" in found.sentences[-1]


def test_the_usual_limit_is_enough_for_dev_but_not_for_prod() -> None:
    found = concurrency.judge(1_000, 1_000, DEV)
    assert found.enough and "120 executors of dev, 6 calls of URLs of each" in found.sentences[0]
    assert "account_concurrency = 1000" in found.sentences[1] and "350 calls" in found.sentences[1]
    found = concurrency.judge(1_000, 1_000, PROD)
    assert not found.enough and "The executors of prod may take 1,700, their calls of URLs 6 each, the engine 10" in found.sentences[0]
    assert "With more than 141 executors at work" in found.sentences[1]
    assert concurrency.judge(11_910, 11_910, PROD).enough and not concurrency.judge(11_909, 11_909, PROD).enough


def test_what_other_functions_reserve_does_not_count() -> None:
    found = concurrency.judge(1_000, 100, DEV)
    assert not found.enough and "1,000 functions at once, 900 of them reserved by other functions" in found.sentences[0]
    assert "account_concurrency = 100 " in found.sentences[2]


def kept(stage: str, part: int, limit: int, free: int) -> concurrency.Verdict:
    return concurrency.judge(limit, free, settings_for(stage, Options(account_concurrency=part)))


def test_a_second_stage_is_refused_whose_reservations_aws_would_refuse() -> None:
    """The first one reserves 456 of 1,000, and AWS keeps 100 for functions that reserve none."""
    found = kept("dev", 1_000, 1_000, 1_000 - 456)
    assert not found.enough
    assert found.sentences[0].endswith("This stage would reserve 456 and leave 88 for functions that reserve none.")
    assert "AWS refuses to leave fewer than 100. Write account_concurrency = 544 to the file of the stage" in found.sentences[1]
    assert "give each its part" in found.sentences[2]
    assert kept("dev", 544, 1_000, 544).enough, "the next step must work"


@pytest.mark.parametrize(("left", "enough"), [(99, False), (100, True)])
def test_a_hundred_executions_stay_unreserved(left: int, enough: bool) -> None:
    assert kept("prod", 1_000, 1_000, 456 + left).enough is enough


@pytest.mark.parametrize("free", [*range(0, 1_001, 7), 10, 249, 250])
def test_the_next_step_of_a_refusal_is_one_that_works(free: int) -> None:
    found = kept("prod", 1_000, 1_000, free)
    if not found.enough and (part := re.search(r"account_concurrency = (\d+)", found.sentences[1])):
        assert kept("prod", int(part[1]), 1_000, free).enough


def test_two_stages_that_have_parts_of_the_account_fit() -> None:
    for first, second in ((700, 300), (500, 500), (900, 100)):
        reserved = [sum(settings_for(*each).reserved.values()) for each in (("prod", Options(account_concurrency=first)),)]
        assert kept("dev", second, 1_000, 1_000 - reserved[0]).enough


def test_executors_that_share_what_is_left_are_reported() -> None:
    found = kept("prod", 1_000, 1_000, 900)
    assert found.enough and "Only 444 are left for its executors and all other functions" in found.sentences[1]
    assert len(kept("prod", 1_000, 1_000, 1_000).sentences) == 1


def test_a_new_account_reserves_nothing_beside_another_stage() -> None:
    assert kept("dev", 10, 10, 10).enough and "too few to reserve any" in kept("dev", 10, 10, 10).sentences[0]
    assert not kept("dev", 20, 10, 10).enough


class Functions:
    """Lambda, with what functions reserve by name."""

    exceptions = SimpleNamespace(ResourceNotFoundException=KeyError)

    def __init__(self, limit: int, reserved: Mapping[str, int]) -> None:
        self.limit, self.reserved, self.asked = limit, reserved, list[str]()

    def get_account_settings(self) -> dict[str, Any]:
        left = self.limit - sum(self.reserved.values())
        return {"AccountLimit": {"ConcurrentExecutions": self.limit, "UnreservedConcurrentExecutions": left}}

    def get_function_concurrency(self, FunctionName: str) -> dict[str, Any]:
        self.asked.append(FunctionName)
        return {"ReservedConcurrentExecutions": self.reserved[FunctionName]} if self.reserved[FunctionName] else {}


def test_the_answer_of_lambda_is_read() -> None:
    assert not concurrency.read(Functions(10, {}), DEV, {}).enough
    functions = Functions(10, {})
    concurrency.read(functions, DEV, {"TickFunction": "ours-tick"})
    assert functions.asked == [], "nobody reserves anything"


def test_what_the_stage_has_reserved_itself_is_free_for_its_next_version() -> None:
    made = settings_for("prod", Options(account_concurrency=1_000))
    outputs = {f"{verb.capitalize()}Function": f"ours-{verb}" for verb in made.reserved} | {"BuryFunction": "ours-bury"}
    own = {f"ours-{verb}": count for verb, count in made.reserved.items()}
    functions = Functions(1_000, own | {"other": 400})
    assert concurrency.read(functions, made, outputs).enough and len(functions.asked) == len(made.reserved)
    assert not concurrency.read(functions, made, {}).enough
    assert not concurrency.read(Functions(1_000, own | {"other": 445}), made, outputs).enough


def test_a_function_that_is_gone_or_reserves_none_has_reserved_nothing() -> None:
    functions = Functions(1_000, {"ours-tick": 0, "other": 500})
    assert (
        concurrency.read(functions, DEV, {"TickFunction": "ours-tick", "ApiFunction": "gone"})
        .sentences[0]
        .startswith("The account may run 1,000 functions at once, 500 of them")
    )


def test_every_function_that_may_reserve_is_read() -> None:
    network = Network(subnets=("subnet-0a1b2c3d4e5f67890",), security_groups=("sg-0a1b2c3d4e5f67890",), allow=("10.0.0.0/16",))
    for stage in ("dev", "prod"):
        options = Options(account_concurrency=1_000, network=network)
        assert set(concurrency.RESERVING) == settings_for(stage, options).reserved.keys()


# Options that would be reverted.


def test_a_left_out_option_is_taken_back_unless_it_had_its_default() -> None:
    before = {"operator_email": "ops@example.org", "waf": True, "raw_http": False, "tracing": False, "console": True}
    assert taken_back.taken_back(before, {"waf": True}) == [
        'operator_email is "ops@example.org" in the deployed stage, and absent from the file',
        "raw_http is false in the deployed stage, and absent from the file",
    ]


def test_a_missing_element_is_taken_back_and_a_changed_value_is_a_decision() -> None:
    before = {"http_hosts": ["a.example.com", "b.example.com"], "aws_issuers": {"123456789012": "https://a"}, "provisioned_writes": 500}
    after = {"http_hosts": ["b.example.com", "c.example.com"], "aws_issuers": {}, "provisioned_writes": 0}
    assert taken_back.taken_back(before, after) == ["http_hosts no longer has a.example.com", "aws_issuers no longer has 123456789012"]
    assert taken_back.taken_back({}, after) == []


def test_a_question_without_a_terminal_is_a_no(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    with pytest.raises(Trouble, match="repeat with YES=1"):
        confirm("Delete?")
    monkeypatch.setenv("YES", "1")
    confirm("Delete?")


@pytest.mark.parametrize(("typed", "agreed"), [("y", True), (" YES ", True), ("", False), ("n", False)])
def test_only_a_typed_yes_is_a_yes(monkeypatch: pytest.MonkeyPatch, typed: str, agreed: bool) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("builtins.input", lambda _: typed)
    if agreed:
        confirm("Delete?")
    else:
        with pytest.raises(Trouble, match="Nothing was changed"):
            confirm("Delete?")


def test_the_cdk_asks_for_approval_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: False))
    assert rollout.approval() == "never"
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
    assert rollout.approval() == "broadening"
    monkeypatch.setenv("APPROVAL", "any-change")
    assert rollout.approval() == "any-change"


def test_a_deployment_reports_the_cost_of_the_document() -> None:
    dev, prod = re.findall(r"\*\*together\*\* \| \*\*([\d.]+)\*\* \| \*\*([\d.]+)\*\*", COSTS.read_text())[0]
    assert rollout.AT_REST == {"dev": dev, "prod": prod}


# Checks.


def a_stage(name: str = "dev", region: str = "eu-central-1") -> Stage:
    return Stage(STAGES[name], boto3.Session(region_name=region))


@pytest.mark.parametrize(("ahead", "ok"), [(0, True), (5, True), (-5, True), (7, False), (-6, False), (300, False)])
def test_a_clock_that_differs_from_aws_is_not_ok(ahead: int, ok: bool) -> None:
    check = doctor.clock_check(1_795_168_800 + ahead, "Fri, 20 Nov 2026 10:00:00 GMT")
    assert check.ok is ok
    if not ok:
        assert f"{abs(ahead)} s {'ahead of' if ahead > 0 else 'behind'} AWS" in str(check) and "NTP" in str(check)


@pytest.mark.parametrize(("late_s", "ok"), [(0, True), (60, True), (121, False)])
def test_a_missing_tick_is_not_ok(late_s: int, ok: bool) -> None:
    ledger = MemoryLedger()
    assert not doctor.judge_tick(ledger, NOW).ok
    opened = slots.minute_of(NOW + slots.OPEN_AHEAD + slots.MINUTE)
    assert ledger.advance(None, Cursor(opened, 1))
    check = doctor.judge_tick(ledger, slots.start_of(opened) - slots.OPEN_AHEAD + late_s * 1_000)
    assert check.ok is ok and ("`Lag`" in str(check)) is not ok


@pytest.mark.parametrize(("lag_s", "ok"), [(0, True), (180, True), (181, False)])
def test_the_lag_is_judged_like_its_alarm(lag_s: int, ok: bool) -> None:
    ledger, minute = MemoryLedger(), slots.minute_of(NOW)
    assert ledger.advance(None, Cursor(minute, 1))
    ledger.set_mark(99)
    check = doctor.judge_lag(ledger, slots.start_of(minute) + slots.MINUTE + lag_s * 1_000)
    assert (check.ok, f"{lag_s} s since" in check.text) == (ok, True)


def test_paused_lanes_and_open_breakers_are_named_with_their_cause() -> None:
    ledger = MemoryLedger()
    well = doctor.judge_status(ledger)
    assert well.ok and "punctual status --everyone" in well.remedy
    ledger.set_lane_state(LaneState(Lane.RETRY, resumed_at=NOW))
    assert doctor.judge_status(ledger).ok
    ledger.set_lane_state(LaneState(Lane.ONE_TIME, NOW, reason="incident 17", paused_by="u1", paused_by_name="ann"))
    assert ledger.set_breaker(None, Breaker(Circuit("host api.example.com", "u2"), NOW, NOW + 60_000, 60_000))
    check = doctor.judge_status(ledger)
    at = render(NOW)
    assert not check.ok
    assert check.text == (
        f"the lane one-time is paused since {at} by ann: incident 17; the breaker of host api.example.com has been open since {at}"
    )


def test_a_line_has_a_next_step_only_if_there_is_one() -> None:
    assert str(doctor.Check("region", True, "eu-central-1")) == "ok      region       eu-central-1"
    assert str(doctor.Check("stack", False, "gone", "Deploy it")).splitlines()[1].strip() == "Deploy it"


@pytest.mark.long
def test_after_refused_credentials_no_other_check_runs() -> None:
    (check,) = doctor.checks(Stage(DEV, boto3.Session(region_name="eu-central-1"), LocalAws(9)), lambda: 0.0)
    assert not check.ok and "Check the network" in check.text


# Deleting.


class Aws:
    """A fake of CloudFormation, S3 and Systems Manager with one stack."""

    def __init__(self, **stack: Any) -> None:
        self.stack = {"StackName": "punctual-dev", "StackStatus": "CREATE_COMPLETE", **stack}
        self.resources = [("Files", "AWS::S3::Bucket", "files"), ("Jobs", "AWS::DynamoDB::GlobalTable", "jobs")]
        self.policies = {"Files": "Delete", "Jobs": "Delete"}
        self.versions: list[dict[str, Any]] = [
            {
                "Versions": [{"Key": "a", "VersionId": "1"}, {"Key": "a", "VersionId": "2"}],
                "DeleteMarkers": [{"Key": "b", "VersionId": "3"}],
            },
            {},
        ]
        self.deleted: list[str] = []

    def describe_stacks(self, **_: str) -> dict[str, Any]:
        return {"Stacks": [self.stack]}

    def get_template(self, **_: str) -> dict[str, Any]:
        return {"TemplateBody": {"Resources": {id: {"DeletionPolicy": policy} for id, policy in self.policies.items()}}}

    def get_paginator(self, operation: str) -> Any:
        listed = [
            {"LogicalResourceId": id, "ResourceType": kind, "PhysicalResourceId": name, "ResourceStatus": "CREATE_COMPLETE"}
            for id, kind, name in self.resources
        ]
        pages = {"list_stack_resources": [{"StackResourceSummaries": listed}], "list_object_versions": self.versions}
        return SimpleNamespace(paginate=lambda **_: iter(pages[operation]))

    def delete_objects(self, *, Bucket: str, Delete: Mapping[str, Any]) -> dict[str, Any]:
        self.deleted += [f"{Bucket}/{each['Key']}@{each['VersionId']}" for each in Delete["Objects"]]
        return {}

    def delete_stack(self, *, StackName: str) -> None:
        self.deleted.append(StackName)

    def delete_parameters(self, *, Names: list[str]) -> None:
        self.deleted += Names

    def get_waiter(self, _name: str) -> Any:
        return SimpleNamespace(wait=lambda **_: None)


@pytest.fixture
def agreed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("YES", "1")
    yield


def deleting(monkeypatch: pytest.MonkeyPatch, aws: Aws, stage: str = "dev") -> list[str]:
    monkeypatch.setattr(Stage, "client", lambda self, service: aws)
    destroy.destroy(a_stage(stage), [f"punctual-{stage}"])
    return aws.deleted


@pytest.mark.usefixtures("agreed")
def test_buckets_are_emptied_with_all_versions_before_their_stack_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert deleting(monkeypatch, Aws()) == ["files/a@1", "files/a@2", "files/b@3", "punctual-dev", SECRET]


@pytest.mark.usefixtures("agreed")
def test_a_protected_stack_is_left_with_the_commands_that_lift_it(monkeypatch: pytest.MonkeyPatch) -> None:
    aws = Aws(EnableTerminationProtection=True)
    with pytest.raises(Trouble, match="--no-enable-termination-protection --stack-name punctual-prod"):
        deleting(monkeypatch, aws, "prod")
    assert aws.deleted == []


@pytest.mark.usefixtures("agreed")
def test_a_bucket_that_outlives_its_stack_is_not_emptied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its objects may be locked: nobody could delete them."""
    aws = Aws()
    aws.policies["Files"] = "Retain"
    assert deleting(monkeypatch, aws) == ["punctual-dev", SECRET]


@pytest.mark.usefixtures("agreed")
def test_a_protected_stage_keeps_its_buckets_and_lists_the_rest(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    aws = Aws()
    aws.resources.append(("Version", "AWS::Lambda::Version", "version"))
    aws.policies = {"Files": "Retain", "Jobs": "RetainExceptOnCreate", "Version": "RetainExceptOnCreate"}
    assert deleting(monkeypatch, aws, "prod") == ["punctual-prod", SECRET.replace("dev", "prod")]
    told = capsys.readouterr().out
    assert "Left AWS::S3::Bucket files" in told and "Left AWS::DynamoDB::GlobalTable jobs" in told
    assert "version" not in told, "it goes with its function"


def test_without_a_yes_nothing_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    aws = Aws()
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    with pytest.raises(Trouble, match="Nothing was changed"):
        deleting(monkeypatch, aws)
    assert aws.deleted == []


def test_an_object_that_cannot_be_deleted_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    aws = Aws()
    monkeypatch.setattr(aws, "delete_objects", lambda **_: {"Errors": [{"Code": "AccessDenied", "Message": "no"}]})
    with pytest.raises(Trouble, match="files could not be emptied: AccessDenied: no"):
        destroy.empty(aws, "files")


# Refused before anything is deployed.


def test_a_bad_file_is_refused_before_any_call_of_aws(tmp_path: Path) -> None:
    path = tmp_path / "dev.toml"
    path.write_text("waf = 1\n")
    with pytest.raises(Trouble, match="line 1: waf must be true or false, not 1\nNothing was deployed"):
        rollout.read_options("dev", path)


class Account(Aws):
    """An account that answers every call before a deployment."""

    exceptions = SimpleNamespace(ParameterNotFound=KeyError, ParameterAlreadyExists=KeyError)

    def get_caller_identity(self) -> dict[str, str]:
        return {"Account": "123456789012", "Arn": "arn:aws:iam::123456789012:user/ann"}

    def get_account_settings(self) -> dict[str, Any]:
        return {"AccountLimit": {"ConcurrentExecutions": 10, "UnreservedConcurrentExecutions": 10}}

    def get_parameter(self, *, Name: str, **_: Any) -> dict[str, Any]:
        if Name.startswith("/cdk-bootstrap/"):
            return {"Parameter": {"Value": "31"}}
        raise KeyError


def prepared(monkeypatch: pytest.MonkeyPatch, account: Account, options: Options, region: str = "eu-central-1") -> Deployed | None:
    monkeypatch.setattr(Stage, "client", lambda self, service: account)
    return rollout.prepare(a_stage(region=region), options, Path("dev.toml"))


def test_reservations_that_do_not_fit_are_refused_before_a_deployment(monkeypatch: pytest.MonkeyPatch) -> None:
    account = Account()
    account.get_account_settings = lambda: {"AccountLimit": {"ConcurrentExecutions": 1_000, "UnreservedConcurrentExecutions": 544}}
    with pytest.raises(Trouble, match=r"would reserve 456 and leave 88 .* account_concurrency = 544"):
        prepared(monkeypatch, account, Options(account_concurrency=1_000))
    assert account.deleted == []


def test_a_web_acl_outside_of_its_region_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    account = Account()
    with pytest.raises(Trouble, match=r"waf needs the stage in us-east-1, .* the region is eu-central-1"):
        prepared(monkeypatch, account, Options(waf=True))
    assert account.deleted == []
    assert prepared(monkeypatch, account, Options(waf=True), "us-east-1")


def test_a_role_in_the_account_of_the_stage_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    own, other = (
        Options.model_validate({"accounts": [{"id": id, "role": f"arn:aws:iam::{id}:role/x"}]}) for id in ("123456789012", "2" * 12)
    )
    with pytest.raises(Trouble, match=r"accounts: 123456789012 is the account of the stage\. Jobs need no role in it\."):
        prepared(monkeypatch, Account(), own)
    assert prepared(monkeypatch, Account(), other)


def test_a_deployment_in_progress_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Trouble, match=r"UPDATE_IN_PROGRESS. Wait until it has ended"):
        prepared(monkeypatch, Account(StackStatus="UPDATE_IN_PROGRESS"), Options())


def test_a_deployment_reports_its_region_and_the_limits_of_the_account(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    account = Account()
    prepared(monkeypatch, account, Options())
    told = capsys.readouterr().out
    assert "123456789012, as arn:aws:iam" in told and "eu-central-1" in told and "The account may run 10 functions at once" in told


# Checks of an account.


def checked(monkeypatch: pytest.MonkeyPatch, account: Account, check: Any) -> doctor.Check:
    monkeypatch.setattr(Stage, "client", lambda self, service: account)
    made: doctor.Check = check(a_stage())
    return made


@pytest.mark.parametrize(
    ("status", "ok", "told"),
    [
        ("UPDATE_COMPLETE", True, "punctual-dev is UPDATE_COMPLETE"),
        ("UPDATE_ROLLBACK_COMPLETE", True, "the last deployment failed, and the version before it runs"),
        ("ROLLBACK_COMPLETE", False, "make deploy STAGE=dev"),
        ("UPDATE_IN_PROGRESS", False, "Wait until it has ended"),
    ],
)
def test_a_stack_is_judged_by_its_status(monkeypatch: pytest.MonkeyPatch, status: str, ok: bool, told: str) -> None:
    check = checked(monkeypatch, Account(StackStatus=status), doctor.stack_check)
    assert check.ok is ok and told in str(check)


def test_the_concurrency_of_a_new_account_is_not_ok(monkeypatch: pytest.MonkeyPatch) -> None:
    check = checked(monkeypatch, Account(), lambda stage: doctor.concurrency_check(stage, 0))
    assert not check.ok and "may run 10 functions" in check.text and "Service Quotas" in check.remedy


def test_options_that_are_not_deployed_are_not_ok(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(doctor.options, "file_of", lambda _: tmp_path / "dev.toml")
    account = Account()
    assert checked(monkeypatch, account, lambda stage: doctor.options_check(stage, 0)).ok
    (tmp_path / "dev.toml").write_text("tracing = true\n")
    check = checked(monkeypatch, account, lambda stage: doctor.options_check(stage, 0))
    assert not check.ok and check.text.startswith("tracing differ")
    (tmp_path / "dev.toml").write_text("tracing = 1\n")
    assert "must be true or false" in checked(monkeypatch, account, lambda stage: doctor.options_check(stage, 0)).text


def test_a_refused_check_is_one_line_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> Any:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "GetAccountSettings")

    account = Account()
    account.get_account_settings = refuse
    account.get_caller_identity = lambda: {"Account": "1", "Arn": "a", "ResponseMetadata": {"HTTPHeaders": {}}}
    account.stack["StackStatus"] = "ROLLBACK_COMPLETE"
    monkeypatch.setattr(Stage, "client", lambda self, service: account)
    found = {check.name: check for check in doctor.checks(a_stage(), lambda: 0.0)}
    assert list(found) == ["credentials", "region", "clock", "concurrency", "options", "console", "stack"]
    assert "do not allow GetAccountSettings" in found["concurrency"].text and found["options"].ok
