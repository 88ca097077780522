"""The pollers that are kept ready: an alarm begins, scale follows every minute until none is left."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.insight import scaling
from scheduler.insight.forecast import MINUTE
from scheduler.insight.project import project
from scheduler.insight.provision import Provisioned, provision
from scheduler.insight.scale import scale
from scheduler.model.errors import SchedulerError, Unavailable
from scheduler.model.job import Lane
from scheduler.model.rules import Rules
from scheduler.model.schedule import Cron, Schedule
from scheduler.storage.aws.stream import JobChange, TaskChange
from scheduler.storage.memory.stores import MemoryFunctions
from tests.conftest import NOW, a_message
from tests.contract import make
from tests.unit.stage import Stage, Wrapped, refuse

ONE_TIME, RECURRING = Lane.ONE_TIME, Lane.RECURRING
MOST = {ONE_TIME: 100, RECURRING: 50}
SECOND = 9  # jobs of a second for which an executor is required


@dataclass
class Provisioning(Stage):
    """The stage with counters, and lanes that may keep pollers ready."""

    rules: Rules = field(default_factory=lambda: Rules(shards=2, most_pollers=MOST))

    def plan_jobs(self, at: int, executors: int) -> None:
        """Count enough jobs of a second at the instant to require these executors."""
        self.requests += 1
        project("s", [JobChange(f"{self.requests:040d}", None, make.job(at=at))], self)
        for (partition, _, _), amounts in self.counters.rows.items():
            if partition.startswith("load#"):
                amounts[f"{at // MINUTE % 60:02d}#log"] = executors * SECOND

    def plan_runs(self, cron: str, executors: int) -> None:
        tasks = [make.task(schedule=Schedule(Cron(cron)), created_at=NOW, updated_at=NOW) for _ in range(executors * SECOND)]
        project("t", [TaskChange(f"{number:040d}", None, task) for number, task in enumerate(tasks, 1)], self)

    def wait(self, lane: Lane, messages: int) -> None:
        """Let messages wait in a lane."""
        for _ in range(messages):
            self.lanes.add(a_message(lane=lane), 0)

    def alarm(self) -> Provisioned:
        return provision(self)

    def minute(self) -> dict[str, int]:
        """One round of scale, and a minute later."""
        self.requests += 1
        pollers = scale(self, random=self.requests).pollers
        self.clock.advance(MINUTE)
        return pollers


def test_an_alarm_keeps_pollers_ready_for_all_that_is_required() -> None:
    stage = Provisioning()
    stage.plan_jobs(NOW + 9 * MINUTE, 612)
    assert stage.alarm() == Provisioned({"one-time": 62, "recurring": 0})
    assert stage.functions.provisioned == {ONE_TIME: 62}, "a lane that needs none is not changed"


@pytest.mark.long
def test_runs_of_tasks_keep_pollers_ready_in_their_own_lane() -> None:
    stage = Provisioning()
    stage.plan_runs("5 10 * * *", 320)
    assert stage.alarm().pollers == {"one-time": 0, "recurring": 32}


def test_lanes_that_require_much_together_both_keep_pollers() -> None:
    stage = Provisioning()
    stage.plan_jobs(NOW + MINUTE, 200)
    stage.wait(RECURRING, 1_500)
    assert stage.alarm().pollers == {"one-time": 20, "recurring": 15}


def test_an_old_backlog_keeps_pollers_ready_without_any_forecast() -> None:
    stage = Provisioning()
    stage.wait(ONE_TIME, 3_500)
    assert stage.alarm().pollers == {"one-time": 35, "recurring": 0}, "an executor takes ten messages, a poller calls ten executors"


def test_what_aws_adds_in_a_minute_keeps_no_poller_ready() -> None:
    stage = Provisioning()
    stage.plan_jobs(NOW + MINUTE, scaling.FOLLOWED)
    assert stage.alarm().pollers == {"one-time": 0, "recurring": 0}
    assert stage.functions.provisioned == {}


def test_a_refused_lane_does_not_stop_the_other_and_is_reported() -> None:
    class Half(MemoryFunctions):
        def keep_pollers(self, lane: Lane, count: int) -> None:
            if lane is ONE_TIME:
                raise SchedulerError("AWS refused the call: AccessDenied")
            super().keep_pollers(lane, count)

    stage = Provisioning(functions=Half())
    stage.plan_jobs(NOW + MINUTE, 500)
    stage.wait(RECURRING, 500)
    assert stage.alarm() == Provisioned({"recurring": 5}, ["one-time"])
    assert stage.functions.provisioned == {RECURRING: 5}


@pytest.mark.parametrize("broken", ["counters", "lanes", "functions"])
def test_an_alarm_whose_requirement_cannot_be_read_is_unavailable(broken: str) -> None:
    stage = Provisioning()
    calls = {"counters": "read", "lanes": "backlog", "functions": "pollers"}
    setattr(stage, broken, Wrapped(getattr(stage, broken), **{calls[broken]: refuse}))
    with pytest.raises(Unavailable):
        stage.alarm()


def test_scale_begins_nothing_without_an_alarm() -> None:
    stage = Provisioning()
    stage.plan_jobs(NOW + 9 * MINUTE, 900)
    assert [stage.minute() for _ in range(3)] == [{}] * 3
    assert stage.functions.provisioned == {}


def test_scale_follows_at_once_what_rises_while_the_alarm_rings() -> None:
    stage = Provisioning()
    stage.plan_jobs(NOW + 9 * MINUTE, 400)
    stage.alarm()
    stage.plan_jobs(NOW + 9 * MINUTE, 900)
    stage.plan_jobs(NOW + 10 * MINUTE, 950)
    assert [stage.minute()["one-time"] for _ in range(3)] == [90, 95, 95]


def test_scale_keeps_pollers_until_the_minute_is_over_then_lowers_to_none() -> None:
    stage = Provisioning()
    stage.plan_jobs(NOW + 9 * MINUTE, 400)
    stage.alarm()
    seen = [stage.minute().get("one-time", 0) for _ in range(40)]
    assert seen[:10] == [40] * 10, "also in the minute in which the jobs are due"
    assert seen[10:14] == [36, 33, 30, 27] and sorted(seen, reverse=True) == seen
    assert seen[-1] == 0 and stage.functions.provisioned[ONE_TIME] == 0 and scaling.LEAST in seen


def test_scale_lowers_nothing_while_messages_wait() -> None:
    stage = Provisioning()
    stage.wait(ONE_TIME, 3_500)
    stage.alarm()
    assert [stage.minute()["one-time"] for _ in range(3)] == [35] * 3


@pytest.mark.parametrize("call", ["pollers", "keep_pollers"])
def test_refused_pollers_do_not_stop_the_figures_of_scale(call: str) -> None:
    stage = Provisioning()
    stage.functions.provisioned[ONE_TIME] = 2
    stage.plan_jobs(NOW + MINUTE, 400)
    stage.functions = Wrapped(stage.functions, **{call: refuse})
    result = scale(stage, random=1)
    assert result.required == 400 and "one-time" not in result.pollers


def test_pollers_above_a_lowered_limit_are_reduced_to_it() -> None:
    stage = Provisioning(rules=Rules(shards=2, most_pollers={ONE_TIME: 30}))
    stage.functions.provisioned[ONE_TIME] = 80
    stage.plan_jobs(NOW + MINUTE, 900)
    assert stage.minute() == {"one-time": 30}


counts = st.integers(0, 3_000)
limits = st.integers(scaling.LEAST, scaling.MOST)
lanes = st.fixed_dictionaries({ONE_TIME: counts, RECURRING: counts})


def kept(most: dict[Lane, int]) -> st.SearchStrategy[dict[Lane, int]]:
    return st.fixed_dictionaries({lane: st.just(0) | st.integers(scaling.LEAST, limit) for lane, limit in most.items()})


cases = st.fixed_dictionaries({ONE_TIME: limits, RECURRING: limits}).flatmap(lambda most: st.tuples(kept(most), lanes, st.just(most)))


@given(cases)
def test_pollers_are_none_or_within_the_limits_of_aws(case: tuple[dict[Lane, int], dict[Lane, int], dict[Lane, int]]) -> None:
    current, required, most = case
    for lane, count in scaling.pollers(current, required, most).items():
        assert count == 0 or scaling.LEAST <= count <= most[lane]


@given(cases)
def test_pollers_cover_the_requirement_at_once_up_to_their_limit(case: tuple[dict[Lane, int], dict[Lane, int], dict[Lane, int]]) -> None:
    current, required, most = case
    found = scaling.pollers(current, required, most)
    if sum(required.values()) > scaling.FOLLOWED:
        assert any(found.values())
        for lane, count in found.items():
            needed = min(required[lane], most[lane] * scaling.EXECUTORS_EACH)
            assert count * scaling.EXECUTORS_EACH >= needed or required[lane] <= scaling.LEAST * scaling.EXECUTORS_EACH
    else:
        assert all(found[lane] <= current[lane] for lane in most), "they only fall"


@given(cases)
def test_pollers_fall_by_a_tenth_at_most_until_the_last_ones_go(case: tuple[dict[Lane, int], dict[Lane, int], dict[Lane, int]]) -> None:
    current, required, most = case
    for lane, count in scaling.pollers(current, required, most).items():
        assert count >= current[lane] * 0.9 - 1 or current[lane] == scaling.LEAST


@given(cases)
def test_pollers_that_are_not_required_end_within_an_hour(case: tuple[dict[Lane, int], dict[Lane, int], dict[Lane, int]]) -> None:
    current, _, most = case
    for _ in range(60):
        current = scaling.pollers(current, dict.fromkeys(most, 0), most)
    assert not any(current.values())


@given(cases, lanes)
def test_a_larger_requirement_never_keeps_fewer_pollers(
    case: tuple[dict[Lane, int], dict[Lane, int], dict[Lane, int]], more: dict[Lane, int]
) -> None:
    current, required, most = case
    larger = {lane: required[lane] + more[lane] for lane in most}
    before, after = scaling.pollers(current, required, most), scaling.pollers(current, larger, most)
    assert all(after[lane] >= before[lane] for lane in most)
