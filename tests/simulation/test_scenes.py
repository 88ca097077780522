"""Small forms of the scenes at real sizes."""

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.admission.lane_state import pause, resume
from scheduler.model import slots
from scheduler.model.job import DueEntry, JobKey, Lane, Message
from scheduler.model.rules import Rules
from scheduler.pipeline import dispatch
from scheduler.storage.memory.stores import _Shown
from tests.simulation.crowds import CrowdWorld, Shown
from tests.simulation.scenes import broken, crowd, flood, resumed
from tests.simulation.world import START


@pytest.mark.long
def test_a_minute_of_a_million_jobs_is_handed_out() -> None:
    seen = crowd()
    assert broken(seen) == [], seen


@pytest.mark.long
def test_a_flood_goes_through_the_overflow() -> None:
    seen = flood()
    assert broken(seen) == [], seen


@pytest.mark.long
def test_a_resumed_lane_drains_at_its_own_speed() -> None:
    seen = resumed()
    assert broken(seen) == [], seen


def test_a_crowd_that_its_lane_can_take_starts_on_time() -> None:
    world = CrowdWorld({Lane.ONE_TIME: 100}, rules=Rules(shards=4))
    at = START + 8 * slots.MINUTE
    world.store("ada", Lane.ONE_TIME, [at + second * 1_000 for second in range(60)], created_at=START)
    world.keep_ticking(START + 7_000, at + 4 * slots.MINUTE)
    world.hub.run(at + 4 * slots.MINUTE)
    assert (world.stored, world.ended, dict(world.report.violations)) == (60, 60, {})
    assert world.waits("ada")["max_s"] < 0.2


def test_a_lane_starts_no_more_than_its_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "SPARSE", -1)  # no bundles, and no packs: the jobs of a message start together
    world = CrowdWorld({Lane.ONE_TIME: 10}, rules=Rules(shards=4, ready_executors=100))
    at = START + 8 * slots.MINUTE
    world.store("ada", Lane.ONE_TIME, [at] * 100, created_at=START)
    world.keep_ticking(START + 7_000, at + 4 * slots.MINUTE)
    world.hub.run(at + 4 * slots.MINUTE)
    assert world.ended == 100
    assert 8 < world.waits("ada")["max_s"] < 15
    assert max(world.starts[Lane.ONE_TIME].values()) <= 12


def test_jobs_of_a_paused_lane_wait_in_its_room_until_the_resume() -> None:
    world = CrowdWorld({Lane.ONE_TIME: 100}, rules=Rules(shards=4))
    at = START + 8 * slots.MINUTE
    world.store("ada", Lane.ONE_TIME, [at], created_at=START)
    (job,) = world.jobs.rows.values()
    pause([Lane.ONE_TIME], None, world.plain)
    world.lanes.add(Message(job.key, job.fence, job.lane, job.due_at), at)
    world.hub.run(at + slots.MINUTE)
    assert world.ended == 0 and not world.lanes.queues[Lane.ONE_TIME]
    assert world.jobs.rows[job.key].slot == slots.waiting(Lane.ONE_TIME, job.id, 4)
    resume([Lane.ONE_TIME], None, world.plain)
    world.hub.run(at + slots.MINUTE + 2_000)
    assert world.ended == 1


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5), st.booleans()), max_size=40))
def test_the_index_of_a_crowd_shows_what_the_usual_one_shows(changes: list[tuple[int, int, bool]]) -> None:
    one, other = Shown(), _Shown()
    for number, due_at, read in changes:
        entry = DueEntry.of(JobKey("ada", str(number)), "2026-11-20T10:01#00", due_at, Lane.ONE_TIME, 1)
        for shown in (one, other):
            if entry.key in shown.by_key and due_at == 0:
                shown.drop(entry.key)
            else:
                shown.show(entry)
        if read:
            assert one.entries() == other.entries()
    assert one.entries() == other.entries()
    assert [one.count(Lane.ONE_TIME, 1, at) for at in range(6)] == [other.count(Lane.ONE_TIME, 1, at) for at in range(6)]


@pytest.mark.long
def test_a_scene_prints_its_table_and_its_json() -> None:
    command = [sys.executable, "-m", "tests.simulation.scenes", "deployments", "--jobs", "20"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    head, *_, last = done.stdout.splitlines()
    assert head.startswith("deployments: ") and done.returncode in (0, 1), done.stderr
    assert [row["scene"] for row in json.loads(last)["rows"]] == ["rolling", "rollback", "emptied", "restored"]
