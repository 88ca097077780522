"""A deployment and a roll-back on the local stack while jobs are due: every function moves to another version, and back.

Ten jobs a second call an HTTP receiver, which shows what the stored jobs may hide. In one of two runs the stream of `make load` is beside
them, 200 jobs a second. The test prints its start delays and does not judge them: two cores start all executors anew at once.
`tests/upgrade` has the version before; here the code is ours, and each version has another deployment in its environment. The later one
has the lead of stages on AWS, which is long enough for cold executors; that of the local stage is not.
"""

import json
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from infra.settings import STAGES
from lab.judge import percentile
from lab.scenarios import load
from local.home import Home
from local.receiver import Receiver
from local.samples import rfc3339
from local.stack import Stack, up
from local.steps import step
from local.warmup import READY, warm_up
from ops import versions
from ops.cloud import Stage
from scheduler.pipeline.latency import COLD_LEAD_MS
from scheduler.storage.aws.jobs import DynamoJobs

pytestmark = [pytest.mark.apart, pytest.mark.soak]
CALLS_PER_S, PART_S = 10, 60  # HTTP jobs a second; seconds before the deployment, until the roll-back, and after it
ANNOUNCED_S = 10  # longer than any job is published ahead
LATE_MS = 500


def deploy(stack: Stack, stage: Stage, deployment: str) -> None:
    """Move all functions to a new version, as `make deploy` does: announced, and dispatch first."""
    before = versions.published(stage)
    versions.announce(stage, before, round(time.time() * 1000))
    time.sleep(ANNOUNCED_S)
    for each in sorted(before, key=lambda each: not each.id.startswith(versions.DISPATCH)):
        rules = json.loads(each.environments[each.live]["PUNCTUAL_RULES"]) | {"deployment": deployment, "lead_ms": COLD_LEAD_MS}
        stack.aws.set_variables(each.function, PUNCTUAL_RULES=json.dumps(rules))
    assert versions.prune(stage, before) == 0, "the version before may still run"


@pytest.mark.parametrize("per_second", [0, load.PER_SECOND])
def test_jobs_run_once_and_on_time_through_a_deployment_and_a_roll_back(
    per_second: int, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(os.environ, "YES", "1")
    home = Home(Path(os.path.realpath(tmp_path_factory.mktemp("upgrade"))))
    with Receiver() as receiver, up(home, enforce_iam=True) as stack:
        stage = Stage(STAGES["local"], stack.aws.session, stack.aws)
        warm_up(stack.aws, stack.outputs, OneTime=READY)
        client = stack.client()
        start = int(time.time() + per_second * 3 * PART_S / load.POSTED_PER_S + load.SAFE_S) * 1000
        instants = [start + number * 1000 // per_second for number in range(per_second * 3 * PART_S)]
        streams = [load.Part("stream", instants)] if instants else []
        due = {f"/ok/{number}": start + number * 1000 // CALLS_PER_S for number in range(CALLS_PER_S * 3 * PART_S)}
        jobs = [
            {
                "type": "http",
                "payload": {"method": "POST", "url": receiver.url(path)},
                "execute_at": rfc3339(datetime.fromtimestamp(at / 1000, UTC)),
            }
            for path, at in due.items()
        ]
        assert len(list(stack.user("caller").jobs.create_many(jobs).all_jobs())) == len(jobs)
        for stream in streams:
            load.post(stream, client)
        until(start / 1000 + PART_S - ANNOUNCED_S)
        first = {each.deployments[each.live] for each in versions.published(stage)}
        deploy(stack, stage, "later")
        until(start / 1000 + 2 * PART_S)
        assert {each.deployments[each.live] for each in versions.published(stage)} == {"later"}
        assert {versions.roll_back(stage)} == first
        table = DynamoJobs(stack.aws.client("dynamodb"), stack.outputs["JobsTable"])
        for stream in streams:
            with step("Reading the results") as say:
                load.read(stream, table, client.me().id, say)
        end = start / 1000 + 3 * PART_S + 60
        while len(receiver.counts()) < len(due) and time.time() < end:
            time.sleep(1)
        calls = receiver.calls()
    delays = [call.at - due[call.path] for call in calls]
    figures = {"calls": {"p50_ms": percentile(delays, 50), "p99_ms": percentile(delays, 99), "max_ms": max(delays)}}
    figures |= {stream.name: load.figures(stream) for stream in streams}
    with capsys.disabled():
        sys.stdout.write(f"\n{json.dumps(figures)}\n")
    assert {path for path, count in receiver.counts().items() if count > 1} == set(), "twice"
    assert due.keys() - receiver.counts().keys() == set(), "lost"
    assert min(delays) >= 0, "early"
    for stream in streams:
        assert [figures[stream.name][kind] for kind in ("lost", "doubled", "early")] == [0, 0, 0]
    assert streams or percentile(delays, 99) <= LATE_MS


def until(at: float) -> None:
    time.sleep(max(at - time.time(), 0))
