"""`make deploy`, `make doctor` and `make destroy` on a local AWS: options of a file, no console, no unconfirmed revert."""

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from infra.parameters import OPTIONS, ORIGIN_SECRET, parameter
from infra.settings import LOCAL
from local import server
from local.aws import CONSOLE, STACK, LocalAws, deployed
from local.deploy import Cdk, find_cdk
from local.home import REPOSITORY, Home
from local.steps import silent

pytestmark = pytest.mark.apart

CHOSEN = 'console = false\nhttp_hosts = ["127.0.0.1", "*.example.com"]\n'


@dataclass
class Account:
    """A local AWS on which nothing is deployed yet, and a file of options."""

    aws: LocalAws
    options: Path

    def run(self, command: str, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run one of the commands behind `make`, without a terminal."""
        return subprocess.run(
            [sys.executable, "-m", f"ops.{command}", "--stage", "local", *arguments],
            cwd=REPOSITORY,
            env={**self.aws.environment(), **environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )

    def deploy(self, options: str, **environ: str) -> subprocess.CompletedProcess[str]:
        self.options.write_text(options)
        return self.run("rollout", "--options", str(self.options), **environ)

    def recorded(self) -> object:
        found = self.aws.client("ssm").get_parameter(Name=parameter("local", OPTIONS))["Parameter"]["Value"]
        return json.loads(found)

    def hosts(self) -> object:
        """The hosts that the deployed API lets jobs call."""
        return json.loads(self.aws.variables(self.aws.outputs()["ApiFunction"])["PUNCTUAL_REACH"]).get("hosts")

    def through_the_console(self, path: str) -> Any:
        """The API's answer to a request through CloudFront."""
        host = self.aws.console_address(self.aws.outputs()).removeprefix("http://")
        with urllib.request.urlopen(urllib.request.Request(self.aws.endpoint + path, headers={"Host": host})) as answered:
            return json.load(answered)

    def stacks(self) -> list[str]:
        return [name for name in (STACK, CONSOLE) if deployed(self.aws.client("cloudformation"), name)]


@pytest.fixture
def account(tmp_path: Path) -> Iterator[Account]:
    home = Home(Path(os.path.realpath(tmp_path)) / "aws")
    running = server.start(home, server.choose_port(home, None))
    try:
        yield Account(running.aws, tmp_path / "local.toml")
    finally:
        running.stop()


def test_options_survive_deployments_and_only_a_yes_takes_them_back(account: Account) -> None:
    refused = account.deploy("consol = false\n")
    assert refused.returncode == 1 and ", line 1: there is no option consol;" in refused.stderr and account.stacks() == []
    refused = account.deploy(CHOSEN)
    assert refused.returncode == 1 and "cdk bootstrap aws://000000000000/us-east-1" in refused.stderr
    cdk = Cdk(Home(account.options.parent / "aws"), account.aws, find_cdk())
    cdk.synth(silent)
    cdk.bootstrap(silent)

    made = account.deploy(CHOSEN)
    assert made.returncode == 0, made.stdout + made.stderr
    assert f"Created {STACK} in us-east-1." in made.stdout and "make admin STAGE=local" in made.stdout
    assert account.stacks() == [STACK], "the stage without a console"
    assert account.hosts() == ["127.0.0.1", "*.example.com"]
    again = account.deploy(CHOSEN)
    assert again.returncode == 0 and f"Updated {STACK}" in again.stdout
    assert account.hosts() == ["127.0.0.1", "*.example.com"]
    chosen = {"console": False, "http_hosts": ["127.0.0.1", "*.example.com"]}
    assert account.recorded() == chosen

    refused = account.deploy('console = true\nhttp_hosts = ["127.0.0.1"]\n')
    assert refused.returncode == 1 and "repeat with YES=1" in refused.stderr
    assert "http_hosts no longer has *.example.com" in refused.stdout
    assert (account.recorded(), account.stacks()) == (chosen, [STACK]), "nothing was changed"
    agreed = account.deploy('console = true\nhttp_hosts = ["127.0.0.1"]\n', YES="1")
    assert agreed.returncode == 0, agreed.stdout + agreed.stderr
    assert (account.hosts(), account.stacks()) == (["127.0.0.1"], [STACK, CONSOLE])
    assert account.through_the_console("/api/v1/health")["data"]["status"] == "ok"

    doctor = account.run("doctor")
    assert (
        "ok      credentials  account 000000000000" in doctor.stdout and f"ok      stack        {STACK} is UPDATE_COMPLETE" in doctor.stdout
    )
    assert doctor.returncode == 1 and "not ok  options      console, http_hosts differ" in doctor.stdout

    kept = account.run("destroy")
    assert kept.returncode == 1 and account.stacks() == [STACK, CONSOLE]
    console = account.run("destroy", "--only", "console", YES="1")
    assert console.returncode == 0 and account.stacks() == [STACK], console.stdout + console.stderr
    gone = account.run("destroy", YES="1")
    assert gone.returncode == 0 and account.stacks() == [], gone.stdout + gone.stderr
    assert "Emptied the bucket" in gone.stdout
    parameters = account.aws.client("ssm").get_parameters(Names=[parameter("local", ORIGIN_SECRET), LOCAL.console_address, LOCAL.api_id])
    assert parameters["Parameters"] == []
    assert "not ok  stack        there is no stack punctual-local" in account.run("doctor").stdout
