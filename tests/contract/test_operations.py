"""The port Operations."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier, Lock, local
from typing import Any

import pytest

from scheduler.model import operation
from scheduler.model.errors import Conflict
from scheduler.model.job import Lane
from scheduler.model.operation import MAX_RUNNING, Action, Filter, Operation, State
from scheduler.model.rules import Rules
from scheduler.operations import requests
from scheduler.storage.memory.ports import MemoryPorts
from scheduler.storage.ports import Operations
from tests.conftest import FixedClock
from tests.contract.make import NOW

DEAD = Filter("01JD4Q8XKZ38W2M5R7T9V1C4FH", "http", "0123456789ab", NOW - 60_000, NOW)
TASKS = Filter(type="log", tags=("a", "b"), statuses=("active",), name="report")
JOBS = Filter(task="01JD4Q8XKZ38W2M5R7T9V1C4FH", since=NOW, tags=("a",), statuses=("queued", "running"), lane=Lane.RETRY)


def made(operations: Operations, number: int = 1, action: Action = Action.REDRIVE, filter: Filter = DEAD, **fields: object) -> Operation:
    new = replace(operation.new("ada", NOW, number, action, filter, rate=20, limit=7), **fields)  # type: ignore[arg-type]
    places = operations.places(new.owner)
    assert operations.add(new, len(places), None)
    return new


def changed(before: Operation, **fields: object) -> Operation:
    return replace(before, version=before.version + 1, **fields)  # type: ignore[arg-type]


def end(operations: Operations, before: Operation, **fields: object) -> Operation:
    after = changed(before, state=State.DONE, ended_at=NOW + 5, **fields)
    assert operations.change(before, after)
    return after


@pytest.mark.parametrize(
    ("action", "filter"),
    [(Action.REDRIVE, DEAD), (Action.CANCEL_JOBS, JOBS), (Action.PAUSE_TASKS, TASKS), (Action.DELETE_TASKS, Filter())],
)
def test_an_operation_is_read_back_whole_and_is_running(operations: Operations, action: Action, filter: Filter) -> None:
    one = made(operations, 1, action, filter, reason="holidays")
    two = made(operations, 2, action, Filter(), owner="eve", limit=None)
    assert operations.get("ada", one.id) == one and operations.get("eve", two.id) == two
    assert operations.get("ada", two.id) is None
    assert operations.running() == [one, two]


def test_an_operation_has_its_payload_and_the_time_of_its_chunk(operations: Operations) -> None:
    one = made(operations, 1, Action.REPLAY_JOBS, JOBS, payload={"message": "ä", "number": 1.5, "": None})
    two = changed(one, pending=("a", "b"), announced_at=NOW + 7)
    assert operations.get("ada", one.id) == one and operations.change(one, two)
    assert operations.running() == [two] and end(operations, two, done=2) == operations.get("ada", one.id)


def test_adding_an_operation_again_overwrites_nothing(operations: Operations) -> None:
    one = made(operations)
    assert operations.change(one, changed(one, skipped=3))
    assert not operations.add(one, 0, one.id) and not operations.add(one, 1, None)
    found = operations.get("ada", one.id)
    assert found is not None and found.skipped == 3 and operations.places("ada") == {0: one.id}


def test_a_place_is_taken_only_from_the_operation_that_has_it(operations: Operations) -> None:
    one = made(operations)
    two = operation.new("ada", NOW, 2, Action.CANCEL_JOBS, JOBS)
    assert not operations.add(two, 0, None) and not operations.add(two, 0, two.id)
    assert operations.running() == [one] and operations.places("ada") == {0: one.id}
    end(operations, one)
    assert operations.places("ada") == {0: one.id}
    assert operations.add(two, 0, one.id)
    assert operations.running() == [two] and operations.places("ada") == {0: two.id} and operations.places("eve") == {}


class OneByOne:
    """The port, called by many threads: each call on its own, and all first ones before any second one."""

    def __init__(self, operations: Operations, threads: int) -> None:
        self._port, self._lock, self._begun, self._local = operations, Lock(), Barrier(threads), local()

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any) -> Any:
            with self._lock:
                answer = getattr(self._port, name)(*args)
            if not hasattr(self._local, "begun"):
                self._local.begun = True
                self._begun.wait(60)
            return answer

        return call


@pytest.mark.long
def test_five_of_many_starts_at_the_same_moment_run(operations: Operations) -> None:
    def start(number: int, ports: Any) -> str | None:
        try:
            return requests.start(operation.new("ada", NOW, number, Action.CANCEL_JOBS, JOBS), ports).id
        except Conflict as refused:
            running = [each.id for each in ports.operations.running()]
            return None if all(id in str(refused) for id in running) else "the running ones are not named"

    for first in (0, 100):
        ports = MemoryPorts(FixedClock(), Rules(), operations=OneByOne(operations, 24))
        with ThreadPoolExecutor(24) as threads:
            ids = [id for id in threads.map(start, range(first, first + 24), [ports] * 24) if id is not None]
        running = operations.running()
        assert sorted(ids) == [each.id for each in running] and len(ids) == MAX_RUNNING
        for each in running:
            end(operations, each)


def test_progress_is_stored_only_over_the_last_version(operations: Operations) -> None:
    one = made(operations, action=Action.CANCEL_JOBS, filter=JOBS)
    times = {"lease_until": NOW + 30_000, "due_at": NOW + 2, "next_at": NOW + 3}
    more = {
        "conflicts": 4,
        "pending": ("01JD4Q8XKZ38W2M5R7T9V1C4FG", "01JD4Q8XKZ38W2M5R7T9V1C4FK"),
        "tries": 2,
        "message_id": "m",
    }
    after = changed(one, done=4, skipped=1, failed=2, after="01JD4Q8XKZ38W2M5R7T9V1C4FH", **times, **more)
    assert operations.change(one, after)
    assert not operations.change(one, changed(one, done=9))
    assert operations.get("ada", one.id) == after and operations.running() == [after] and after.matched == 11


@pytest.mark.parametrize("state", [State.DONE, State.ABORTED])
def test_an_ended_operation_is_kept_and_not_running(operations: Operations, state: State) -> None:
    one = made(operations)
    ended = changed(one, state=state, ended_at=NOW + 5)
    assert operations.change(one, ended)
    assert operations.running() == [] and operations.get("ada", one.id) == ended
    assert not operations.change(one, changed(one, done=9))
    assert operations.get("ada", one.id) == ended


def test_an_end_over_an_old_version_changes_nothing(operations: Operations) -> None:
    one = made(operations)
    after = changed(one, done=5)
    assert operations.change(one, after)
    assert not operations.change(one, changed(one, state=State.ABORTED, ended_at=NOW))
    assert operations.running() == [after]


def test_the_counts_of_an_ended_operation_may_still_grow(operations: Operations) -> None:
    one = made(operations)
    ended = end(operations, one)
    more = changed(ended, done=3)
    assert operations.change(ended, more) and operations.get("ada", one.id) == more


def test_ended_operations_of_an_owner_are_listed_newest_first_by_pages(operations: Operations) -> None:
    ended = [end(operations, made(operations, number, action=Action.CANCEL_JOBS, filter=JOBS)) for number in range(1, 6)]
    made(operations, 9)
    end(operations, made(operations, 7, owner="eve"))
    newest = sorted(ended, key=lambda each: each.id, reverse=True)
    page, cursor = operations.ended("ada", after=None, limit=2)
    assert page == newest[:2] and cursor == newest[1].id
    page, cursor = operations.ended("ada", after=cursor, limit=2)
    assert page == newest[2:4]
    assert operations.ended("ada", after=cursor, limit=2) == (newest[4:], None)
    assert operations.ended("bob", after=None, limit=2) == ([], None)
