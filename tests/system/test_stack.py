"""The deployed stack as a whole: it answers, it is on time, and its roles are enforced."""

import os
import subprocess
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from punctual import Punctual
from punctual.records import Json

from local.aws import REGION
from local.home import Commands
from local.run import example, task_example
from local.samples import rfc3339
from tests.system.conftest import System

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]
CLIENT = Commands().client
TRUST = '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}]}'


def finished(client: Punctual, job_id: str, within: float) -> Json:
    """Return the job once it is final. Fails after `within` seconds."""
    deadline = time.monotonic() + within
    while (job := client.jobs.get(job_id).raw)["status"] in ("scheduled", "queued", "running"):
        assert time.monotonic() < deadline, f"still {job['status']}: {job}"
        time.sleep(0.2)
    return job


def test_health_is_open_to_everyone(system: System) -> None:
    assert system.anonymous().health().raw


def test_a_job_for_the_near_future_starts_at_its_time_and_never_before(client: Punctual) -> None:
    job = client.jobs.create("log", {"message": "hello"}, execute_at=rfc3339(datetime.now(UTC) + timedelta(seconds=8))).raw
    job = finished(client, job["id"], within=40)
    assert job["status"] == "succeeded"
    assert job["output"] == "hello"
    assert 0 <= job["start_delay_ms"] <= 5_000  # the benchmark measures the exact delay: this machine may be busy
    assert [attempt["outcome"] for attempt in job["attempts"]] == ["succeeded"]


def test_a_call_that_fails_once_is_repeated_and_succeeds(system: System, client: Punctual) -> None:
    job = client.jobs.create("http", {"method": "POST", "url": system.receiver.url("/fail-once/system")}).raw
    job = finished(client, job["id"], within=60)
    assert [attempt["outcome"] for attempt in job["attempts"]] == ["failed", "succeeded"]
    assert [call.status for call in system.receiver.calls("/fail-once/system")] == [500, 200]


def test_a_role_without_a_grant_is_refused(system: System) -> None:
    role = system.aws("iam").create_role(RoleName="without-grants", AssumeRolePolicyDocument=TRUST)["Role"]["Arn"]
    granted = system.aws("sts").assume_role(RoleArn=role, RoleSessionName="test")["Credentials"]
    tables: Any = boto3.client(
        "dynamodb",
        endpoint_url=system.stack.aws.endpoint,
        region_name=REGION,
        aws_access_key_id=granted["AccessKeyId"],
        aws_secret_access_key=granted["SecretAccessKey"],
        aws_session_token=granted["SessionToken"],
    )
    with pytest.raises(ClientError) as refused:
        tables.scan(TableName=system.outputs["JobsTable"])
    assert refused.value.response["Error"]["Code"] == "AccessDeniedException"


def test_the_printed_commands_run_a_job_and_create_a_task(system: System, tmp_path: Path) -> None:
    lines = f"set -e\n{example(system.address, system.stack.username, system.stack.password, CLIENT)}\n{task_example(CLIENT)}"
    own = {"PUNCTUAL_CONFIG": str(tmp_path / "profiles.json"), "PYTHONPATH": str(ROOT / "client/src")}
    answer = subprocess.run(["sh", "-c", lines], cwd=ROOT, env={**os.environ, **own}, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    assert "Signed in" in answer.stdout and "succeeded" in answer.stdout and "Task" in answer.stdout
