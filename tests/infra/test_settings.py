import subprocess
import sys
from dataclasses import FrozenInstanceError, fields, replace

import pytest

from infra.settings import DEV, EXECUTOR_JOBS, LOCAL, PROD, STAGES, settings_for
from lambdas._pool import THREADS
from local.warmup import READY
from scheduler.model.job import Lane
from scheduler.model.rules import Rules
from tests.infra.conftest import ROOT


def test_there_are_three_stages() -> None:
    assert list(STAGES) == ["local", "dev", "prod"]


def test_an_unknown_stage_is_refused_with_the_list_of_stages() -> None:
    with pytest.raises(ValueError, match="no stage 'staging'; choose one of local, dev, prod"):
        settings_for("staging")


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
        "api_at_endpoint",
        "endpoint_port",
        "events",
        "rules",
        "reach",
        "concurrency",
        "batching_s",
        "archive",
        "saved_queries",
        "http_apart",
        "sample_targets",
        "machine_clients",
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
