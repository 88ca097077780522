"""No excluded run starts once a change of a calendar is done, whatever fails meanwhile; without each guard the oracle notices."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

import pytest

from scheduler.model.operation import Counts
from scheduler.model.task import Task
from scheduler.operations.apply_calendar import ApplyCalendar
from scheduler.storage.memory.calendars import MemoryCalendars
from tests.simulation.excluded import ExcludedWorld


def _take_anything(self: MemoryCalendars, before: Task | None, after: Task) -> bool:
    for name in after.calendars:
        self._users.setdefault((after.owner, name), set()).add(after.id)
    return True


def _apply_nothing(self: ApplyCalendar, operation: Any, chosen: list[Any]) -> Counts:
    return Counts(len(chosen))


def _sabotaged(target: Any, name: str, broken: Any) -> Callable[[], AbstractContextManager[Any]]:
    return lambda: patch.object(target, name, broken)


SABOTAGES = {
    "a task is stored with dates of any version": (_sabotaged(MemoryCalendars, "take", _take_anything), {"excluded_run", "no_run"}),
    "an operation changes no task": (_sabotaged(ApplyCalendar, "apply", _apply_nothing), {"excluded_run", "no_run"}),
}


@pytest.mark.long
def test_no_excluded_run_starts_after_a_change() -> None:
    for seed in range(1, 5):
        world = ExcludedWorld(seed).run_changes()
        assert world.report.violations == {}, world.report.examples
        assert world.ran > 50 and min(world.judged["closed"], world.judged["open"]) > 0


@pytest.mark.long
@pytest.mark.parametrize("guard", SABOTAGES)
def test_the_oracle_notices_each_missing_guard(guard: str) -> None:
    broken, kinds = SABOTAGES[guard]
    with broken():
        found = [ExcludedWorld(seed).run_changes().report.violations for seed in range(1, 5)]
    assert any(kinds & each.keys() for each in found)
