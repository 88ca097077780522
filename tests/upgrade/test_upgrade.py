"""The version before beside ours: an upgrade in both orders and a roll-back, under load, with the real code of both."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.conftest import credentials, local_aws, patience
from tests.upgrade import previous
from tests.upgrade.course import NEW, OLD, Agent, Course, Failed

__all__ = ["credentials", "local_aws", "patience"]
PHASE_MS = 2_500
# The version of dispatch, tick and the API, and that of the executors, one phase after the other. Dispatch changes first (infra/stack.py).
COURSES = {"upgrade": [(OLD, OLD), (NEW, OLD), (NEW, NEW)], "roll-back": [(NEW, NEW), (OLD, NEW), (OLD, OLD)]}
AHEAD, AT_ONCE = 30, 15  # jobs in the slots of their minutes, created by each version; jobs that are created in each phase


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {OLD: previous.unpack(tmp_path_factory.mktemp("previous")), NEW: previous.ROOT}


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.mark.long
@pytest.mark.parametrize("name", COURSES)
def test_no_job_is_lost_early_or_run_twice_while_versions_differ(local_aws: str, roots: dict[str, Path], name: str) -> None:
    phases = COURSES[name]
    with Course(local_aws, roots) as course:
        start = now_ms() + 1_000
        for version in (OLD, NEW):
            course.live["worker"] = version
            course.create(AHEAD, start + PHASE_MS + 2_000, start + len(phases) * PHASE_MS, ahead=True)
        for number, (engine, executors) in enumerate(phases):
            time.sleep(max(start + number * PHASE_MS - now_ms(), 0) / 1_000)
            course.live.update(worker=engine, execute=executors)
            if number:  # no tick before: dispatch publishes the jobs while the executors are still those of the other version
                course.tick()
            course.create(AT_ONCE, now_ms() + 500, now_ms() + PHASE_MS, ahead=False)
        seen = course.report(60)
    assert (seen.lost, seen.early, seen.twice, seen.errors) == (0, 0, 0, []), seen
    assert seen.jobs == 2 * AHEAD + len(phases) * AT_ONCE


@pytest.mark.long
def test_an_environment_of_a_later_form_before_its_code_is_noticed(local_aws: str, roots: dict[str, Path]) -> None:
    """What a deployment in two calls does. An alias changes both at once."""
    with Course(local_aws, {OLD: roots[OLD]}, {OLD: {"PUNCTUAL_RULES": '{"shards":{"of":"minutes"}}'}}) as course:
        with pytest.raises(Failed, match="SettingsError: PUNCTUAL_RULES: shards"):
            course.tick()
        course.sqs.send_message(QueueUrl=course.queues["work"], MessageBody="{}")
        end = time.monotonic() + 300
        while not course.errors and time.monotonic() < end:
            time.sleep(0.1)
        assert "SettingsError" in course.errors[0]


@pytest.fixture(scope="module")
def agents(roots: dict[str, Path]) -> Iterator[dict[str, Agent]]:
    made = {version: Agent(root, {}) for version, root in roots.items()}
    yield made
    for agent in made.values():
        agent.close()


@pytest.mark.parametrize("stage", ["local", "prod"])
def test_our_code_reads_the_environment_of_the_version_before(agents: dict[str, Agent], stage: str) -> None:
    written = agents[OLD].call("environment", stage)
    assert agents[NEW].call("parse", written) == written


def test_a_clone_without_history_says_how_to_fetch_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(previous, "commit", lambda: "0" * 40)
    with pytest.raises(previous.NoHistory, match="git fetch --unshallow --tags origin"):
        previous.unpack(tmp_path)
