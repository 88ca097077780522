import subprocess
import sys
from dataclasses import FrozenInstanceError, fields

import pytest

from infra.settings import DEV, LOCAL, PROD, STAGES, settings_for
from scheduler.model import Lane
from tests.infra.conftest import ROOT


def test_there_are_three_stages() -> None:
    assert list(STAGES) == ["local", "dev", "prod"]


def test_an_unknown_stage_is_refused_with_the_list_of_stages() -> None:
    with pytest.raises(ValueError, match="no stage 'staging'; choose one of local, dev, prod"):
        settings_for("staging")


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        DEV.shards = 3  # type: ignore[misc]


def test_every_stage_gives_each_lane_the_concurrency_that_aws_accepts() -> None:
    for settings in STAGES.values():
        assert set(settings.concurrency) == set(Lane)
        assert all(2 <= limit <= 1_000 for limit in settings.concurrency.values())


def test_what_differs_locally_is_this_list_and_no_more() -> None:
    differing = {item.name for item in fields(LOCAL) if getattr(LOCAL, item.name) != getattr(DEV, item.name)}
    assert differing - {"architecture"} == {  # which is that of the machine: an Arm laptop has no difference there
        "stage",
        "shards",
        "concurrency",
        "allow_private_http",
        "log_retention",
        "host_packages",
        "tracing",
        "tls_only",
        "access_logs",
        "nag",
        "renamed_actions",
    }


def test_only_the_local_stage_lets_jobs_call_private_addresses() -> None:
    assert [settings.stage for settings in STAGES.values() if settings.allow_private_http] == ["local"]


def test_only_prod_is_protected() -> None:
    assert PROD.protected
    assert not DEV.protected
    assert not LOCAL.protected


def test_the_app_is_small_and_asks_neither_aws_nor_git() -> None:
    source = (ROOT / "app.py").read_text()
    assert len(source.splitlines()) < 30
    assert "boto3" not in source
    assert "subprocess" not in source


def test_importing_infra_loads_no_boto3() -> None:
    asked = "import sys, infra.stack; sys.exit('boto3' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", asked], cwd=ROOT, capture_output=True).returncode == 0
