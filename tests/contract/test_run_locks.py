"""The run locks of the port Tasks: of several runs of a task, one may start."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from scheduler.model.job import RunLock, TaskKey
from scheduler.storage.ports import Tasks, Written
from tests.contract import make


def after(holder: RunLock, **fields: str | None) -> RunLock:
    return replace(holder, version=holder.version + 1, **fields)  # type: ignore[arg-type]


def test_a_task_has_no_holder_at_first(tasks: Tasks) -> None:
    holder = make.holder()
    assert tasks.holders([holder.task]) == {}
    assert tasks.hold([(None, holder)]) == [Written.YES]
    assert tasks.holders([holder.task, holder.task, TaskKey("eve", holder.task.id)]) == {holder.task: holder}
    assert tasks.hold([]) == [] and tasks.holders([]) == {}


def test_a_holder_changes_only_from_its_last_version(tasks: Tasks) -> None:
    first = make.holder()
    second = after(first, waiting="b")
    assert tasks.hold([(None, first)]) == [Written.YES]
    assert tasks.hold([(None, replace(first, job="z"))]) == [Written.NO]
    assert tasks.hold([(first, second)]) == [Written.YES]
    assert tasks.hold([(first, after(first, job="z"))]) == [Written.NO]
    assert tasks.holders([first.task]) == {first.task: second}
    third = after(second, job="b", waiting=None)
    assert tasks.hold([(second, third)]) == [Written.YES]
    assert tasks.holders([first.task]) == {first.task: third}
    nobody = make.holder()
    assert tasks.hold([(nobody, after(nobody))]) == [Written.NO]
    assert tasks.holders([nobody.task]) == {}


def test_a_hold_whose_answer_was_lost_succeeds_when_repeated(tasks: Tasks) -> None:
    first = make.holder()
    second = after(first, waiting="b")
    assert tasks.hold([(None, first)]) == [Written.YES]
    assert tasks.hold([(None, first)]) == [Written.YES]
    assert tasks.hold([(first, second)]) == [Written.YES]
    assert tasks.hold([(first, second)]) == [Written.YES]
    assert tasks.hold([(None, first)]) == [Written.NO], "it was, and is no longer"


def test_holders_of_one_call_change_independently_in_order(tasks: Tasks) -> None:
    made = [make.holder() for _ in range(30)]
    assert tasks.hold([(None, holder) for holder in made]) == [Written.YES] * 30
    stale = [(replace(holder, version=9), after(replace(holder, version=9))) for holder in made[:2]]
    again = after(made[5], waiting="w")
    changes = [*stale, *((holder, after(holder)) for holder in made[2:5]), (made[5], again), (again, after(again))]
    assert tasks.hold(changes) == [Written.NO, Written.NO, Written.YES, Written.YES, Written.YES, Written.YES, Written.YES]
    stands = tasks.holders([holder.task for holder in made])
    assert [stands[holder.task].version for holder in made[:7]] == [1, 1, 2, 2, 2, 3, 1]


def test_deleting_a_task_deletes_its_holder(tasks: Tasks) -> None:
    task = make.task()
    holder = make.holder(task.key)
    assert tasks.store(None, task, []) and tasks.hold([(None, holder)]) == [Written.YES]
    assert tasks.delete(task)
    assert tasks.holders([task.key]) == {}


def test_one_of_the_executors_that_race_for_a_holder_wins(tasks: Tasks) -> None:
    racers = 4
    ready = threading.Barrier(racers)

    def race(gate: Tasks, before: RunLock | None, wanted: RunLock) -> Written:
        ready.wait(60)
        (held,) = gate.hold([(before, wanted)])
        return held

    stands: RunLock | None = None
    task = make.task().key
    with ThreadPoolExecutor(racers) as threads:
        for number in range(10):
            wanted = [RunLock(task, f"{number}-{racer}", version=number + 1) for racer in range(racers)]
            won = list(threads.map(race, [tasks] * racers, [stands] * racers, wanted))
            assert [won.count(each) for each in Written] == [1, racers - 1, 0]
            stands = wanted[won.index(Written.YES)]
            assert tasks.holders([task]) == {task: stands}
