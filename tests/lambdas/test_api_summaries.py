"""The forecast and the durations of jobs: the caller's own, or those of all users for administrators."""

from typing import Any

import pytest

from lambdas.rest import shapes, summary_models
from scheduler.insight.project import project
from scheduler.model import lifecycle
from scheduler.model.instants import render
from scheduler.model.job import Result
from scheduler.model.schedule import Cron, Schedule
from scheduler.storage.aws.stream import JobChange, TaskChange
from tests.contract import make
from tests.lambdas.gateway import NOW, World, send

pytestmark = pytest.mark.usefixtures("world")

MINUTE = 60_000
FIRST = NOW // MINUTE * MINUTE
DAYS = NOW // 86_400_000 - make.NOW // 86_400_000 + 1  # back to the day on which jobs have ended
ADMIN = "administrator"
ANN, BOB = "sub-ann", "sub-bob"


@pytest.fixture
def counted(world: World) -> None:
    """Ahead: a job and a half-hourly task of ann, two jobs of bob. Ended: three of ann's jobs after a second, one of bob's after two."""
    changes: list[Any] = []

    def told(kind: Any, *states: Any) -> None:
        for before, after in zip((None, *states), states, strict=False):
            changes.append(kind(f"{len(changes) + 1:040d}", before, after))

    told(JobChange, make.job(at=NOW + 5 * MINUTE, owner=ANN))
    for _ in range(2):
        told(JobChange, make.job(at=NOW + 5 * MINUTE, owner=BOB, type="http"))
    told(TaskChange, make.task(owner=ANN, schedule=Schedule(Cron("*/30 * * * *")), created_at=NOW, updated_at=NOW))
    for owner, count, took in ((ANN, 3, 1_000), (BOB, 1, 2_000)):
        for _ in range(count):
            claimed = make.claimed(make.job(at=make.NOW, owner=owner))
            told(JobChange, claimed, make.succeeded(claimed, make.NOW + took))
    project("s", changes, world)


def minutes(**more: Any) -> dict[str, dict[str, Any]]:
    answered = send("GET", "/forecast", **more)
    shapes.Answer[summary_models.ScheduledSummaryShape].model_validate(answered.body)
    assert [each["scheduled_at"] for each in answered.data["minutes"]] == [render(FIRST + number * MINUTE) for number in range(181)]
    return {each.pop("scheduled_at"): each for each in answered.data["minutes"] if each["jobs"]}


@pytest.mark.usefixtures("counted")
def test_a_user_sees_the_forecast_of_their_own_jobs() -> None:
    half_hours = {render(FIRST + number * 30 * MINUTE): {"jobs": 1, "compute_ms": 1_250, "required_instances": 1} for number in range(7)}
    in_five = {render(FIRST + 5 * MINUTE): {"jobs": 1, "compute_ms": 1_250, "required_instances": 1}}
    assert minutes(user=ANN) == half_hours | in_five
    assert minutes(user=BOB) == {render(FIRST + 5 * MINUTE): {"jobs": 2, "compute_ms": 2_000, "required_instances": 1}}


@pytest.mark.usefixtures("counted")
def test_an_administrator_sees_all_users_or_only_their_own() -> None:
    shown = minutes(user=ANN, role=ADMIN)[render(FIRST + 5 * MINUTE)]
    assert shown == {"jobs": 3, "compute_ms": 3_250, "required_instances": 1}
    assert minutes(user=ANN, role=ADMIN, query={"scope": "own"}) == minutes(user=ANN)
    assert send("GET", "/forecast", user=ANN, role=ADMIN).data["scope"] == "all"


@pytest.mark.parametrize("path", ["/forecast", "/statistics"])
def test_only_administrators_see_all_users(path: str) -> None:
    answered = send("GET", path, query={"scope": "all"})
    assert (answered.status, answered.error["code"]) == (403, "forbidden")


@pytest.mark.parametrize("path", ["/forecast", "/statistics"])
@pytest.mark.parametrize(("query", "field"), [({"scope": "everybody"}, "scope"), ({"hours": "4"}, "hours")])
def test_invalid_parameters_are_refused_by_name(path: str, query: dict[str, str], field: str) -> None:
    answered = send("GET", path, query=query)
    assert (answered.status, list(answered.fields)) == (400, [field])


def test_empty_counters_are_answered_as_zeros() -> None:
    assert minutes() == {}
    assert send("GET", "/forecast").data["available_instances"] == 100
    assert send("GET", "/statistics").data["types"] == []


@pytest.mark.usefixtures("counted")
def test_types_show_durations_and_results_of_their_jobs() -> None:
    answered = send("GET", "/statistics", user=ANN, role=ADMIN)
    shapes.Answer[summary_models.TaskSummaryShape].model_validate(answered.body)
    (log,) = answered.data["types"]
    assert (log["type"], log["runs"], log["succeeded"], log["failed"]) == ("log", 4, 4, 0)
    assert log["average_ms"] == 1_250
    assert log["p50_ms"] == pytest.approx(1_000, rel=0.1) and log["p95_ms"] == pytest.approx(2_000, rel=0.1)
    (own,) = send("GET", "/statistics", user=ANN).data["types"]
    assert (own["runs"], own["average_ms"]) == (3, 1_000)


@pytest.mark.usefixtures("counted")
def test_types_are_listed_by_day_for_the_requested_days(world: World) -> None:
    earlier = make.NOW - 86_400_000
    claimed = make.claimed(make.job(at=earlier, owner=ANN))
    ended = lifecycle.succeed(claimed, earlier + 4_000, started_at=earlier, result=Result("hello"))
    project("s", [JobChange(f"{99:040d}", claimed, ended)], world)

    def told(days: int) -> dict[str, Any]:
        answered = send("GET", "/statistics", user=ANN, query={"days": str(days)})
        shapes.Answer[summary_models.TaskSummaryShape].model_validate(answered.body)
        found: dict[str, Any] = answered.data
        return found

    whole = told(DAYS + 1)
    assert [each["day"] for each in whole["daily"]] == [render(earlier)[:10], render(make.NOW)[:10]]
    assert [(day["types"][0]["runs"], day["types"][0]["average_ms"]) for day in whole["daily"]] == [(1, 4_000), (3, 1_000)]
    assert (whole["types"][0]["runs"], whole["types"][0]["average_ms"]) == (4, 1_750)
    without = told(DAYS)
    assert ([each["day"] for each in without["daily"]], without["types"][0]["runs"]) == ([render(make.NOW)[:10]], 3)
    assert send("GET", "/statistics", user=ANN).data["daily"] is None


@pytest.mark.parametrize("days", ["0", "91", "many"])
def test_a_number_of_days_out_of_bounds_is_refused(days: str) -> None:
    answered = send("GET", "/statistics", query={"days": days})
    assert (answered.status, list(answered.fields)) == (400, ["days"])
