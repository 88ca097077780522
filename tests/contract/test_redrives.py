"""The port Redrives."""

from dataclasses import replace

import pytest

from scheduler.dead_letters import model
from scheduler.dead_letters.model import Filter, Redrive, State
from scheduler.storage.ports import Redrives
from tests.contract.make import NOW

FILTER = Filter("01JD4Q8XKZ38W2M5R7T9V1C4FH", "http", "0123456789ab", NOW - 60_000, NOW)


def made(redrives: Redrives, number: int = 1, **fields: object) -> Redrive:
    new = replace(model.new("ada", NOW, number, FILTER, rate=20, limit=7), **fields)  # type: ignore[arg-type]
    redrives.add(new)
    return new


def changed(before: Redrive, **fields: object) -> Redrive:
    return replace(before, version=before.version + 1, **fields)  # type: ignore[arg-type]


def test_a_redrive_is_read_back_whole_and_is_running(redrives: Redrives) -> None:
    one, two = made(redrives), made(redrives, 2, owner="eve", filter=Filter(), limit=None)
    assert redrives.get("ada", one.id) == one and redrives.get("eve", two.id) == two
    assert redrives.get("ada", two.id) is None
    assert redrives.running() == [one, two]


def test_adding_a_redrive_again_overwrites_nothing(redrives: Redrives) -> None:
    one = made(redrives)
    assert redrives.change(one, changed(one, found=3))
    redrives.add(one)
    found = redrives.get("ada", one.id)
    assert found is not None and found.found == 3


def test_progress_is_stored_only_over_the_last_version(redrives: Redrives) -> None:
    one = made(redrives)
    after = changed(one, found=5, redriven=4, skipped=1, after="01JD4Q8XKZ38W2M5R7T9V1C4FH", lease_until=NOW + 30_000)
    assert redrives.change(one, after)
    assert not redrives.change(one, changed(one, found=9))
    assert redrives.get("ada", one.id) == after and redrives.running() == [after]


@pytest.mark.parametrize("state", [State.DONE, State.ABORTED])
def test_an_ended_redrive_is_kept_and_not_running(redrives: Redrives, state: State) -> None:
    one = made(redrives)
    ended = changed(one, state=state, ended_at=NOW + 5)
    assert redrives.change(one, ended)
    assert redrives.running() == [] and redrives.get("ada", one.id) == ended
    assert not redrives.change(one, changed(one, found=9))
    assert redrives.get("ada", one.id) == ended


def test_an_end_over_an_old_version_changes_nothing(redrives: Redrives) -> None:
    one = made(redrives)
    after = changed(one, found=5)
    assert redrives.change(one, after)
    assert not redrives.change(one, changed(one, state=State.ABORTED, ended_at=NOW))
    assert redrives.running() == [after]


def test_the_counts_of_an_ended_redrive_may_still_grow(redrives: Redrives) -> None:
    one = made(redrives)
    ended = changed(one, state=State.ABORTED, ended_at=NOW + 5)
    assert redrives.change(one, ended)
    more = changed(ended, found=3, redriven=3)
    assert redrives.change(ended, more) and redrives.get("ada", one.id) == more
