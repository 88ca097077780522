"""A dispatcher publishes jobs together that leave at nearly the same time."""

import pytest

from scheduler.model import slots
from scheduler.model.job import Job, Message, Unit, UnitKey
from scheduler.model.rules import Rules
from scheduler.model.spec import JobSpec
from scheduler.pipeline.dispatch import dispatch
from scheduler.pipeline.unit_lease import UnitLease
from scheduler.storage.memory.ports import MemoryPorts
from scheduler.storage.memory.stores import MemoryJobs, MemoryLanes, MemoryLedger
from tests.conftest import FixedClock

START = slots.start_of("2026-11-20T10:01")
pytestmark = pytest.mark.usefixtures("dense")


class Topic:
    """Records the published messages, by call."""

    def __init__(self, clock: FixedClock) -> None:
        self.clock = clock
        self.calls: list[tuple[int, list[int]]] = []

    def publish(self, messages: list[Message]) -> list[Message]:
        self.calls.append((self.clock.at, [single.due_at for message in messages for single in message.singles()]))
        return []


def dispatched(*due: int, ready_executors: int = 5) -> list[tuple[int, list[int]]]:
    """Return the calls for jobs with these due times (ms after the start of the minute)."""
    jobs, ledger, clock = MemoryJobs(), MemoryLedger(), FixedClock(START)
    for number, at in enumerate(due):
        times = {"scheduled_at": START + at, "due_at": START + at, "created_at": 0}
        jobs.put(Job("ada", f"{number:026d}", JobSpec("log", {"message": "hello"}), slot="2026-11-20T10:01#00", **times))
    unit = Unit(UnitKey("2026-11-20T10:01", 0), 0, 0)
    ledger.open_unit(unit)
    topic = Topic(clock)
    lanes = MemoryLanes()
    lanes.publish = topic.publish  # type: ignore[method-assign, assignment]
    done = dispatch(
        UnitLease(unit, MemoryPorts(clock, Rules(shards=1, ready_executors=ready_executors), jobs=jobs, ledger=ledger, lanes=lanes))
    )
    assert done.published == len(due) and done.handed_out
    return topic.calls


def test_jobs_that_follow_closely_fill_whole_calls() -> None:
    calls = dispatched(*range(5_000, 5_200), ready_executors=20)
    assert all(len(due) % 10 == 0 for _, due in calls)
    assert sum(len(due) for _, due in calls) == 200


def test_a_job_that_must_leave_takes_along_the_next_ones() -> None:
    assert [len(due) for _, due in dispatched(5_000, 5_015, 5_095, 5_500)] == [3, 1]


def test_jobs_that_fill_no_call_leave_when_they_must() -> None:
    assert [len(due) for _, due in dispatched(*[5_000] * 23)] == [20, 3]


def test_every_job_leaves_its_lead_ahead() -> None:
    assert all(at <= min(due) - Rules().lead_ms for at, due in dispatched(*range(5_000, 6_000, 7)))
