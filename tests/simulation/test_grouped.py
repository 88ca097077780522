"""Short runs with groups of jobs, and the removal of each guard. `make simulate` has groups in all its worlds."""

import itertools
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from unittest.mock import patch

import pytest

from lab.world.faults import CALM, ROUGH
from scheduler.groups import counting
from scheduler.model import ids
from scheduler.model.group import SPAN, CallKind, End, Group, Leaf, LeafKey, Marks
from scheduler.pipeline import later_checks, submit
from scheduler.storage.memory.groups import MemoryGroups
from scheduler.storage.ports import Written
from tests.simulation.grouped import Groupers
from tests.simulation.seeds import each
from tests.simulation.world import START, Report, World

SCENE = {"jobs": 40, "minutes": 15, "groups": 60, "wind_down": 100}


def run(seed: int) -> Report:
    return World(seed, ROUGH).run(**SCENE)


@each([3], range(1, 9), range(9, 200))
def test_each_group_is_counted_right_and_calls_back_once(seed: int) -> None:
    report = run(seed)
    assert report.violations == {}, report.examples


@pytest.mark.long
def test_a_group_of_ten_thousand_survives_the_deaths_of_executors() -> None:
    """Three of a hundred jobs fail, and are redriven."""
    world = World(1, ROUGH)
    world.groupers.plan_one(10_000, 0.03, START)
    report = world.run(40, 15)
    assert report.violations == {}, report.examples
    assert report.faults["crash"] >= 20
    (group,) = [group for group in world.groups.heads.values() if group.members >= 10_000]
    assert dict(world.groupers.stored) == {(group.id, kind.value): 1 for kind in CallKind}


def test_without_faults_a_call_back_starts_within_a_second_of_the_last_end() -> None:
    world = World(1, CALM)
    report = world.run(20, 10, groups=40)
    assert report.violations == {}, report.examples
    groups = [group for key in world.groups.heads if (group := world.groups.get(key)) is not None and group.ended_at is not None]
    assert len(groups) > 20
    for group in groups:
        calls = [job for job in world.jobs.rows.values() if job.group == group.id and job.member is None]
        first = min(job.started_at or 0 for job in calls)
        assert first - max(world.groupers.last_end.get(group.id, 0), group.sealed_at or 0) <= 1_000


def _overwritten(self: MemoryGroups, marks: dict[LeafKey, Marks], now: int) -> list[Leaf | Group]:
    """Marks replace those of the same kind."""
    changed: list[Leaf | Group] = []
    for key, added in marks.items():
        leaf = self._change_leaf(key, marks={**self.all_leaves.get(key, Leaf(key)).marks, **added})
        changed.append((self.get(key.group) if key.number == 0 else None) or leaf)
    return changed


def _unsealed(group: Group) -> bool:
    return COMPLETE(group if group.sealed_at is not None else replace(group, sealed_at=1))


def _first_ends(leaf: Leaf) -> dict[int, End]:
    first = sorted((mark, end) for end, marks in leaf.marks.items() for mark in marks)
    return {mark % SPAN: end for mark, end in reversed(first)}


COMPLETE, NUMBERS = counting.is_complete, itertools.count()
SABOTAGES: dict[str, Callable[[], tuple[AbstractContextManager[object], str]]] = {
    "nobody reads the streams": lambda: (patch.object(Groupers, "_read", lambda self, news: None), "group_never"),
    "marks overwrite each other": lambda: (patch.object(MemoryGroups, "mark", _overwritten), "group_never"),
    "a group ends before its seal": lambda: (patch.object(counting, "is_complete", _unsealed), "group_early"),
    "call-backs have ids of their own": lambda: (
        patch.object(counting, "call_id", lambda group, kind, at: ids.derived(at, f"{group.id} {next(NUMBERS)}")),
        "group_twice",
    ),
    "the first end of a job counts, not the last": lambda: (patch.object(counting, "ends", _first_ends), "group_never"),
    "open groups are not checked": lambda: (patch.object(later_checks, "request_due", lambda ports, now: 0), "group_never"),
    "a refused job is void at once": lambda: (
        patch.object(submit, "_is_not_stored", lambda result: result is not Written.YES),
        "group_miscounted",
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("name", SABOTAGES)
def test_a_removed_guard_is_noticed(name: str) -> None:
    broken, oracle = SABOTAGES[name]()
    found: set[str] = set()
    with broken:
        for seed in range(1, 13):
            found |= run(seed).violations.keys()
            if oracle in found:
                return
    raise AssertionError(f"{name}: no run noticed by {oracle}, but by {found}")
