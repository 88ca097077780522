"""Alerts in virtual years: none is false, none is forgotten, and the simulation notices each removed guard."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from scheduler.model.job import Job
from scheduler.notify import alerting, notify, watch_runs
from scheduler.notify import policy as notices
from scheduler.tasks import deadlines, run_timers, service, watch
from tests.simulation.alerting import Effects, Year
from tests.simulation.seeds import each

DAYS = 8
SEEDS = 6  # that a removed guard may take
FIRST = {"local times in the offset of the run": 17}  # where the earlier years have no such run


@each([1, 3], range(10, 18), range(18, 400))
def test_a_year_of_alerts(seed: int) -> None:
    year = Year(seed)
    assert year.run() == [] and len(year.courses) > 300 and year.told


def effects(seed: int) -> int:
    """The number of effects in some days without a fault."""
    year = Year(seed, tasks=1, days=DAYS)
    assert year.run() == [] and year.told
    return year.effects.count


@pytest.mark.parametrize("fate", ["dies", "refused", "unanswered"])
@pytest.mark.parametrize(("seed", "step"), [(1, 7), *(pytest.param(seed, 1, marks=pytest.mark.long) for seed in (1, 2, 5, 15))])
def test_a_fault_at_any_effect_is_repaired(seed: int, step: int, fate: str) -> None:
    for fatal in range(1, effects(seed) + 1, step):
        assert Year(seed, tasks=1, days=DAYS, effects=Effects(fatal, fate)).run() == [], fatal


def at_elapsed_time(done_by: int, zone: str, nominal_at: int) -> int:
    """Reads `done_by` in the offset that the zone has at the run."""
    offset = deadlines._local(nominal_at, zone).utcoffset()
    assert offset is not None
    local = nominal_at + int(offset.total_seconds()) * 1_000
    return nominal_at + (done_by * 60_000 - local - 1) % 86_400_000 + 1


def of_starts_alone(before: Job | None, after: Job) -> Any:
    return (found for found in OF_CHANGE(before, after) if found[1] is None)


def of_ends_alone(before: Job | None, after: Job) -> Any:
    return (found for found in OF_CHANGE(before, after) if found[1] is not None)


def judged_once(*arguments: Any) -> deadlines.Judgement:
    return replace_next(JUDGE(*arguments), None)


def as_of_now(job: Job, alerts: Any, zone: str, since: int, now: int) -> deadlines.Judgement:
    """Judges a late run by its present state alone."""
    found = JUDGE(job, alerts, zone, since, now)
    open_ = job.slot is not None and job.claim is None
    return found._replace(broken=tuple(each for each in found.broken if open_))


def replace_next(found: deadlines.Judgement, at: int | None) -> deadlines.Judgement:
    return found._replace(next_at=at)


def always_opens(state: Any, news: Any, now: int, edited_at: int) -> Any:
    return OPENED(replace(state, incidents={}), news, now, edited_at)


def ends_with_any_success(alert: Any, run: Any, news: Any) -> bool:
    return bool(ENDS(alert, run._replace(scheduled_at=0), news))


def own_rules_alone(tasks: Any, _ports: Any) -> Any:
    return {task.key: task.alerts for task in tasks if task.alerts is not None and task.alerts.kinds}


OF_CHANGE, JUDGE, OPENED, ENDS = alerting.of_change, deadlines.judge, alerting.opened, alerting._ends
SABOTAGES: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "runs planned with their task have no timer": (service, "_arm", lambda *_: None),
    "runs planned later have no timer": (watch, "timers_of_all", lambda *_: []),
    "default alerts do not apply": (watch, "rules", own_rules_alone),
    "runs of tasks with default alerts are not marked": (watch, "marked", list),
    "changed default alerts reach no planned run": (service, "replan", lambda *_, **__: False),
    "lost messages are not sent again": (run_timers, "request", lambda *_: 0),
    "local times in the offset of the run": (deadlines, "done_at", at_elapsed_time),
    "no second deadline": (deadlines, "judge", judged_once),
    "late runs are judged by their present state": (deadlines, "judge", as_of_now),
    "each run has an incident": (alerting, "opened", always_opens),
    "starts do not end an incident": (alerting, "of_change", of_ends_alone),
    "skipped runs are not reported": (alerting, "of_change", of_starts_alone),
    "an earlier run ends an incident": (alerting, "_ends", ends_with_any_success),
    "an incident that is over at once stays open": (notify, "_already_over", lambda *_: None),
    "notices do not wait for the one before": (notify, "_wait_for_former", lambda *_: None),
}
FAST = ("runs planned later have no timer", "changed default alerts reach no planned run", "each run has an incident", "no second deadline")
assert notices.alerting is alerting and watch_runs.deadlines is deadlines  # the patched names are those in use


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in FAST else pytest.mark.long) for name in SABOTAGES])
def test_the_simulation_notices_a_removed_guard(name: str) -> None:
    module, attribute, other = SABOTAGES[name]
    with patch.object(module, attribute, other):
        assert any(Year(seed).run() for seed in range(FIRST.get(name, 1), FIRST.get(name, 1) + SEEDS))
