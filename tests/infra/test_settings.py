import subprocess
import sys
from dataclasses import FrozenInstanceError, fields, replace
from typing import Literal

import pytest

from infra.options import Options
from infra.settings import DEV, EXECUTOR_JOBS, LOCAL, PROD, STAGES, settings_for
from lambdas._pool import THREADS
from local.warmup import READY
from scheduler.model.job import Lane
from scheduler.model.rules import Rules
from tests.infra.conftest import ROOT


def test_three_stages_have_settings_of_their_own() -> None:
    assert list(STAGES) == ["local", "dev", "prod"] and all(settings.base == name for name, settings in STAGES.items())


@pytest.mark.parametrize("base", ["dev", "prod"])
def test_a_stage_with_a_name_of_its_own_has_the_settings_of_its_base(base: Literal["dev", "prod"]) -> None:
    made = settings_for("eu-staging", Options(base=base))
    assert (made.stack, made.console_stack, made.secret_prefix) == (
        "punctual-eu-staging",
        "punctual-eu-staging-console",
        "punctual/eu-staging/",
    )
    assert made.archive_database == "punctual_eu_staging", "Athena quotes a name with a hyphen"
    assert replace(made, stage=base, options={}) == STAGES[base]


def test_a_stage_with_a_name_of_its_own_needs_a_base() -> None:
    for options in (None, Options(), Options(console=False)):
        with pytest.raises(ValueError) as refused:
            settings_for("staging", options)
        assert str(refused.value) == (
            'stages/staging.toml: base is missing: a stage other than local, dev and prod needs base = "dev" or base = "prod", '
            "whose settings it has"
        )


def test_dev_and_prod_may_have_the_base_of_the_other_and_local_none() -> None:
    assert settings_for("dev", Options(base="prod")).protected and not settings_for("prod", Options(base="dev")).protected
    with pytest.raises(ValueError, match="base: local has settings of its own"):
        settings_for("local", Options(base="dev"))


@pytest.mark.parametrize("name", ["qa", "a1", "staging", "customer-a-prod", "x2-3"])
def test_a_name_may_have_letters_digits_and_hyphens(name: str) -> None:
    assert settings_for(name, Options(base="dev")).stage == name


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("", "has 2 to 15 characters, not 0"),
        ("x", "has 2 to 15 characters, not 1"),
        ("customer-ab-prod", "has 2 to 15 characters, not 16: longer names of functions and roles are cut by CloudFormation"),
        ("Staging", "has small letters a to z, digits and single hyphens"),
        ("1st", "has small letters a to z, digits and single hyphens, begins with a letter"),
        ("a--b", "single hyphens"),
        ("a_b", "small letters a to z, digits and single hyphens"),
        ("../x", "small letters a to z, digits and single hyphens"),
        ("qa-", "ends with a letter or a digit"),
        ("qa\n", "ends with a letter or a digit"),
        ("my-aws", "does not contain aws: Cognito refuses it"),
        ("cognito1", "does not contain cognito: Cognito refuses it"),
        ("amazonia", "does not contain amazon: Cognito refuses it"),
        ("prod-console", "does not end with -console: prod has a stack of that name"),
        ("dev-samples", "does not end with -samples: dev has a stack of that name"),
        ("example", "is not example: stages/example.toml has the comments on all options"),
    ],
)
def test_a_name_that_aws_refuses_or_that_collides_is_refused_with_the_rule(name: str, rule: str) -> None:
    with pytest.raises(ValueError) as refused:
        settings_for(name, Options(base="dev"))
    assert str(refused.value).startswith(f"stage {name!r}: the name of a stage ") and rule in str(refused.value)


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        DEV.batching_s = 3  # type: ignore[misc]


def test_every_stage_gives_each_lane_the_concurrency_that_aws_accepts() -> None:
    for settings in STAGES.values():
        assert set(settings.concurrency) == set(Lane)
        assert all(2 <= limit <= 1_000 for limit in settings.concurrency.values())


@pytest.mark.parametrize(("steps", "operating"), [(3, 1), (25, 5), (50, 10), (1_000, 10)])
def test_operations_take_a_fifth_of_the_steps_and_at_most_ten(steps: int, operating: int) -> None:
    assert replace(PROD, steps=steps).deployed.operating == operating


def test_the_local_stage_differs_only_in_this_list() -> None:
    differing = {item.name for item in fields(LOCAL) if getattr(LOCAL, item.name) != getattr(DEV, item.name)}
    assert differing - {"architecture"} == {  # the machine's own; on an Arm machine it does not differ
        "stage",
        "base",
        "api_at_endpoint",
        "endpoint_port",
        "events",
        "intake",
        "rules",
        "reach",
        "concurrency",
        "batching_s",
        "archive",
        "saved_queries",
        "http_apart",
        "sample_targets",
        "aws_issuers",
        "log_retention",
        "host_packages",
        "tls_only",
        "access_logs",
        "nag",
        "renamed_actions",
    }
    rules = {item.name for item in fields(Rules) if getattr(LOCAL.rules, item.name) != getattr(DEV.rules, item.name)}
    assert rules == {"shards", "ready_executors", "direct_burst", "direct_rate", "lead_ms", "one_shard", "allow_private_http"}
    assert (LOCAL.reach.plain_http, LOCAL.reach.hosts) == (True, ())


def test_only_the_local_stage_lets_jobs_call_private_addresses() -> None:
    assert [settings.stage for settings in STAGES.values() if settings.rules.allow_private_http] == ["local"]


def test_jobs_reach_nothing_on_aws_by_default() -> None:
    for stage in ("dev", "prod"):
        assert (settings_for(stage).allowed_targets, settings_for(stage).email_sender, settings_for(stage).sample_targets) == (
            (),
            "",
            False,
        )
    assert settings_for("local").allowed_targets == LOCAL.allowed_targets
    assert all("*" not in arn for arn in LOCAL.allowed_targets)


def test_only_prod_is_protected() -> None:
    assert PROD.protected
    assert not DEV.protected
    assert not LOCAL.protected


def test_the_app_is_small_and_calls_neither_aws_nor_git() -> None:
    source = (ROOT / "app.py").read_text()
    assert len(source.splitlines()) < 35
    assert "boto3" not in source
    assert "subprocess" not in source


@pytest.mark.long
def test_importing_infra_loads_no_boto3() -> None:
    asked = "import sys, infra.stack; sys.exit('boto3' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", asked], cwd=ROOT, capture_output=True).returncode == 0


def test_as_many_executors_are_warmed_as_packs_are_made_for() -> None:
    assert LOCAL.rules.ready_executors == READY


def test_an_executor_holds_as_many_jobs_as_it_has_threads() -> None:
    assert EXECUTOR_JOBS == THREADS
