"""The commands for a stage with a name of its own: its settings come from the base in its file."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from moto import mock_aws

from infra import options
from infra.options import Options
from infra.settings import DEV, PROD
from local.aws import Deployed
from local.failure import Trouble
from ops import bootstrap, destroy, doctor, recount, rollout, taken_back, user, versions
from ops.cloud import Stage, remedy, stage_of

REGION = {"AWS_REGION": "eu-central-1"}
PROGRAMS = (rollout, destroy, doctor, recount, user, versions)


@pytest.fixture(autouse=True)
def files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of the files of options."""
    monkeypatch.setattr(options, "FOLDER", tmp_path)
    for name, value in REGION.items():
        monkeypatch.setenv(name, value)
    return tmp_path


@pytest.fixture
def staging(files: Path) -> Path:
    (files / "staging.toml").write_text('base = "prod"\n')
    return files / "staging.toml"


@pytest.mark.usefixtures("staging")
def test_a_stage_has_the_settings_of_the_base_in_its_file() -> None:
    found = stage_of("staging", REGION)
    assert (found.name, found.stack, found.console) == ("staging", "punctual-staging", "punctual-staging-console")
    assert found.settings.protected and found.settings.concurrency == PROD.concurrency


def test_a_file_with_an_error_is_reported_where_the_base_is_needed(files: Path) -> None:
    (files / "staging.toml").write_text('base = "staging"\n')
    with pytest.raises(Trouble, match=r'line 1: base must be "dev" or "prod", not \'staging\''):
        stage_of("staging", REGION)
    (files / "dev.toml").write_text("waf = 1\n")
    assert stage_of("dev", REGION).settings == DEV, "the check of the options reports it"


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.parametrize(("name", "said"), [("prd", "base is missing"), ("../prd", "the name of a stage has small letters")])
def test_a_typing_error_calls_nothing(monkeypatch: pytest.MonkeyPatch, program: Any, name: str, said: str) -> None:
    monkeypatch.setattr(sys, "argv", [program.__name__, "--stage", name])
    monkeypatch.setattr(boto3, "Session", lambda *_, **__: pytest.fail("AWS is called"))
    if program is user:
        monkeypatch.setattr(user, "_ask", lambda: ("secret", False))
    if program is rollout:
        monkeypatch.setattr(sys, "stdout", SimpleNamespace(reconfigure=lambda **_: None, write=lambda _: None))
    with pytest.raises(Trouble, match=said):
        program.main()


@pytest.mark.parametrize(
    ("name", "before", "after", "asks"),
    [
        ("staging", {"base": "prod"}, "dev", True),
        ("staging", {"base": "prod"}, "prod", False),
        ("staging", {"base": "dev"}, "prod", False),
        ("staging", {}, "dev", False),
        ("prod", {}, "dev", True),
        ("prod", {}, None, False),
        ("dev", {"base": "prod"}, None, True),
        ("dev", {}, None, False),
    ],
)
def test_the_end_of_a_protection_is_no_silent_change(name: str, before: dict[str, Any], after: Any, asks: bool) -> None:
    found = taken_back.unprotected(name, before, Options(base=after))
    assert bool(found) is asks
    assert all(f"{name} is protected as prod is" in sentence for sentence in found)


def test_the_remedy_of_a_console_is_that_of_its_stage() -> None:
    assert "make destroy STAGE=staging ONLY=console" in remedy(Deployed("punctual-staging-console", "DELETE_FAILED"), "staging")


@pytest.fixture
def account() -> Iterator[None]:
    """An account that the CDK may deploy to."""
    with mock_aws():
        parameter = f"/cdk-bootstrap/{bootstrap.DEFAULT}/version"
        boto3.client("ssm", region_name="eu-central-1").put_parameter(Name=parameter, Value="30", Type="String")
        yield


@pytest.mark.usefixtures("account", "staging")
def test_make_deploy_deploys_its_stacks(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """All of the command but the CDK itself, which has nothing to deploy to."""
    commands: list[list[str]] = []
    limits = {"AccountLimit": {"ConcurrentExecutions": 10_000, "UnreservedConcurrentExecutions": 10_000}}
    functions = SimpleNamespace(get_account_settings=lambda: limits)
    formation = SimpleNamespace(describe_stacks=lambda **_: {"Stacks": []})
    client = Stage.client

    def replaced(self: Stage, service: Any) -> Any:
        return {"lambda": functions, "cloudformation": formation}.get(service) or client(self, service)

    def run(command: list[str], **_: Any) -> Any:
        commands.append(command)
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(sys, "argv", ["ops.rollout", "--stage", "staging"])
    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(Stage, "client", replaced)
    monkeypatch.setattr(Stage, "outputs", lambda self: {"ApiUrl": "https://abc", "ConsoleBucket": "b", "ConsoleUrl": "https://c"})
    monkeypatch.setattr(Stage, "state", lambda self, stack: None)
    monkeypatch.setattr(rollout, "prune", lambda *_: 0)
    monkeypatch.setattr(rollout, "publish", lambda *_: 3)
    monkeypatch.setattr(rollout, "find_cdk", lambda: ["cdk"])
    assert rollout.main() == 0
    (command,) = commands
    assert command[:4] == ["cdk", "deploy", "punctual-staging", "punctual-staging-console"] and "stage=staging" in command
    said = capsys.readouterr().out
    assert "staging.toml: base" in said and "7.11 USD a month at rest" in said and "make doctor STAGE=staging" in said
