"""`python -m bench.ratios` on a stack whose executors are slowed: the check fails, and does not without."""

from pathlib import Path

import pytest

from bench.ratios import rounds, verdict
from compare.contestants import Ours
from local.warmup import READY, warm_up

pytestmark = pytest.mark.apart
SLOWED = Path(__file__).parents[1] / "slowed"
SLOWED_MS = 100  # of processor time for each start of a job: a job takes some 5 ms
JOBS = 60


def slow(own: Ours) -> None:
    own.stack.aws.set_variables(own.stack.outputs["ExecuteOneTimeFunction"], PYTHONPATH=str(SLOWED), SLOWED_MS=str(SLOWED_MS))
    warm_up(own.stack.aws, own.stack.outputs, OneTime=READY)


def test_slower_executors_are_a_regression() -> None:
    with rounds(JOBS) as running:
        running.one()
        usual = running.one()
        slow(running.own)
        slower = running.one()
    baseline = {name: {"median": value} for name, value in usual.items()}
    assert verdict([usual], baseline) == []
    worse = {each.split()[0] for each in verdict([slower], baseline)}
    assert {"cpu_to_loop", "cpu_to_sqs"} <= worse, (usual, slower)
