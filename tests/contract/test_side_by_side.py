"""`Ports.side_by_side`: calls that do not wait for each other."""

import threading
from typing import Any

import pytest

from lambdas._runtime import AwsPorts
from lambdas._settings import Settings
from scheduler.model.errors import Conflict, Unavailable
from scheduler.storage.memory.ports import MemoryPorts
from scheduler.storage.ports import Ports
from tests.conftest import FixedClock


@pytest.fixture(params=["memory", "memory, last first", "aws"])
def ports(request: pytest.FixtureRequest) -> Any:
    if request.param == "aws":
        return AwsPorts(Settings())
    return MemoryPorts(FixedClock(), order=range if request.param == "memory" else lambda calls: reversed(range(calls)))


def test_the_answers_are_in_the_order_of_the_calls(ports: Ports) -> None:
    assert ports.side_by_side(lambda: 1, lambda: 2, lambda: 3) == [1, 2, 3]
    assert ports.side_by_side(lambda: 1) == [1]
    assert ports.side_by_side() == []


def test_the_first_error_is_raised_once_all_calls_have_ended(ports: Ports) -> None:
    done = list[int]()

    def fail(error: Exception) -> None:
        raise error

    with pytest.raises(Unavailable):
        ports.side_by_side(lambda: done.append(1), lambda: fail(Unavailable()), lambda: fail(Conflict("x")), lambda: done.append(2))
    assert sorted(done) == [1, 2]


def test_on_aws_no_call_waits_for_another_one() -> None:
    meeting = threading.Barrier(4, timeout=60)
    assert sorted(AwsPorts(Settings()).side_by_side(*[meeting.wait] * 4)) == [0, 1, 2, 3]
