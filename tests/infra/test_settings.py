import subprocess
import sys
from dataclasses import FrozenInstanceError, fields

import pytest

from infra.settings import DEV, HELD, LOCAL, PROD, STAGES, settings_for
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


def test_the_local_stage_differs_only_in_this_list() -> None:
    differing = {item.name for item in fields(LOCAL) if getattr(LOCAL, item.name) != getattr(DEV, item.name)}
    assert differing - {"architecture"} == {  # the machine's own; on an Arm machine it does not differ
        "stage",
        "api_at_endpoint",
        "endpoint_port",
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


@pytest.mark.parametrize("between", [" ", ",", " , ", "\n"])
def test_allowed_targets_are_separated_by_blanks_or_commas(between: str) -> None:
    one, two = "arn:aws:sqs:eu-west-1:123456789012:orders-*", "arn:aws:sns:eu-west-1:123456789012:news"
    assert settings_for("dev", allowed_targets=one + between + two).allowed_targets == (one, two)


@pytest.mark.parametrize("bad", ["*", "orders", "arn:aws:s3:::bucket", "arn:aws:*:*:*:*"])
def test_a_bad_allowed_target_is_refused_by_name(bad: str) -> None:
    with pytest.raises(ValueError, match="is no ARN of events, lambda, sns, sqs, states"):
        settings_for("dev", allowed_targets=f"arn:aws:sqs:eu-west-1:123456789012:orders {bad}")


def test_allowed_hosts_are_separated_by_blanks_and_checked() -> None:
    assert settings_for("dev").reach.hosts == ()
    assert settings_for("dev", http_hosts="*.example.com, hooks.example.org").reach.hosts == ("*.example.com", "hooks.example.org")
    for bad in ("*", "https://example.com", "example.com/path", "example.com:80"):
        with pytest.raises(ValueError, match="is no host name"):
            settings_for("dev", http_hosts=bad)
    with pytest.raises(ValueError, match="longer than 1000 characters"):
        settings_for("dev", http_hosts=" ".join(["hooks.example.com"] * 60))


def test_tracing_is_an_option() -> None:
    assert [settings_for("prod", tracing=choice).tracing for choice in (None, "true", "false")] == [False, True, False]


def test_provisioned_capacity_is_an_option() -> None:
    chosen = [settings_for("prod", provisioned_writes=choice).provisioned_writes for choice in (None, "0", "25", "40000")]
    assert chosen == [0, 0, 25, 40_000]
    for bad in ("24", "40001", "-1", "many", ""):
        with pytest.raises(ValueError, match=r"must be 0 \(on demand\) or from 25 to 40000"):
            settings_for("prod", provisioned_writes=bad)


def test_plain_http_and_a_customer_key_are_options() -> None:
    assert (settings_for("prod").reach.plain_http, settings_for("prod").customer_key) == (False, False)
    chosen = settings_for("prod", plain_http="true", customer_key="true")
    assert (chosen.reach.plain_http, chosen.customer_key) == (True, True)
    with pytest.raises(ValueError, match="plain_http must be true or false, not 'yes'"):
        settings_for("prod", plain_http="yes")


def test_allowed_targets_must_fit_into_an_environment() -> None:
    with pytest.raises(ValueError, match="longer than 2000 characters"):
        settings_for("dev", allowed_targets=" ".join(["arn:aws:sqs:eu-west-1:123456789012:orders"] * 60))
    with pytest.raises(ValueError, match="allowed_targets and http_hosts are longer than 2000 characters"):
        settings_for("dev", allowed_targets=" ".join(["arn:aws:sqs:*:*:q-00"] * 90), http_hosts=" ".join(["hooks.example.com"] * 10))


def test_machine_clients_are_written_with_their_scopes() -> None:
    made = settings_for("dev", machine_clients="ci=jobs:read+jobs:write, ops=admin").machine_clients
    assert made == {"ci": ("jobs:read", "jobs:write"), "ops": ("admin",)}


@pytest.mark.parametrize("bad", ["ci", "ci=", "ci=jobs:delete", "CI=admin", "ci=admin ci=jobs:read", "=admin"])
def test_a_bad_machine_client_is_refused(bad: str) -> None:
    with pytest.raises(ValueError, match="a machine client has"):
        settings_for("dev", machine_clients=bad)


def test_self_sign_up_is_true_or_false() -> None:
    assert settings_for("dev", self_sign_up="true").self_sign_up and not settings_for("dev").self_sign_up
    with pytest.raises(ValueError, match="self_sign_up must be true or false"):
        settings_for("dev", self_sign_up="yes")


def test_only_prod_is_protected() -> None:
    assert PROD.protected
    assert not DEV.protected
    assert not LOCAL.protected


def test_the_app_is_small_and_calls_neither_aws_nor_git() -> None:
    source = (ROOT / "app.py").read_text()
    assert len(source.splitlines()) < 30
    assert "boto3" not in source
    assert "subprocess" not in source


@pytest.mark.long
def test_importing_infra_loads_no_boto3() -> None:
    asked = "import sys, infra.stack; sys.exit('boto3' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", asked], cwd=ROOT, capture_output=True).returncode == 0


def test_as_many_executors_are_warmed_as_packs_are_made_for() -> None:
    assert LOCAL.rules.ready_executors == READY


def test_an_executor_holds_as_many_jobs_as_it_has_threads() -> None:
    assert HELD == THREADS
