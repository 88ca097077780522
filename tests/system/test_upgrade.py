"""A deployment and a roll-back on the local stack, while jobs are due: every function moves to another version, and back.

`tests/upgrade` has the version before; here the code is ours, and each version has another deployment in its environment. The later one
has the lead of stages on AWS, which is long enough for cold executors; that of the local stage is not.
"""

import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from infra.settings import STAGES
from local import versions
from local.cloud import Stage
from local.home import Home
from local.receiver import Receiver
from local.samples import rfc3339
from local.stack import Stack, up
from local.verdict import percentile
from local.warmup import READY, warm_up
from scheduler.pipeline.latency import COLD_LEAD_MS

pytestmark = [pytest.mark.apart, pytest.mark.soak]
PER_S, PART_S = 10, 25  # jobs a second; seconds before the deployment, until the roll-back, and after it
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


def test_jobs_run_once_and_on_time_through_a_deployment_and_a_roll_back(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "YES", "1")
    home = Home(Path(os.path.realpath(tmp_path_factory.mktemp("upgrade"))))
    with Receiver() as receiver, up(home, enforce_iam=True) as stack:
        stage = Stage(STAGES["local"], stack.aws.session, stack.aws)
        warm_up(stack.aws, stack.outputs, OneTime=READY)
        client, start = stack.client(), float(round(time.time()) + 15)
        due = {f"/ok/{number}": start + number / PER_S for number in range(PER_S * PART_S * 3)}
        jobs = [
            {
                "type": "http",
                "payload": {"method": "POST", "url": receiver.url(path)},
                "execute_at": rfc3339(datetime.fromtimestamp(at, UTC)),
            }
            for path, at in due.items()
        ]
        assert len(list(client.jobs.create_many(jobs).all_jobs())) == len(jobs)
        time.sleep(max(start + PART_S - ANNOUNCED_S - time.time(), 0))
        first = {each.deployments[each.live] for each in versions.published(stage)}
        deploy(stack, stage, "later")
        time.sleep(max(start + 2 * PART_S - time.time(), 0))
        assert {each.deployments[each.live] for each in versions.published(stage)} == {"later"}
        assert {versions.roll_back(stage)} == first
        end = start + 3 * PART_S + 60
        while len(receiver.counts()) < len(due) and time.time() < end:
            time.sleep(1)
        calls = receiver.calls()
    assert {path for path, count in receiver.counts().items() if count > 1} == set(), "twice"
    assert due.keys() - receiver.counts().keys() == set(), "lost"
    delays = [call.at - int(due[call.path] * 1000) for call in calls]
    assert min(delays) >= 0, "early"
    figures = f"p50 {percentile(delays, 50)} ms, p99 {percentile(delays, 99)} ms, most {max(delays)} ms"
    assert percentile(delays, 99) <= LATE_MS, figures
