"""The names of users by their ids, as a process of the API keeps them."""

from scheduler.accounts.names import CACHED_MS, PAGE, Names
from scheduler.model.account import Role
from scheduler.storage.memory.accounts import MemoryIdentity
from tests.conftest import FixedClock
from tests.unit.stage import Stage, Wrapped, refuse


def stage_of(users: int) -> tuple[Stage, list[str]]:
    identity = MemoryIdentity({"3h5robot": "robot"})
    ids = [identity.create(f"user{number}", "correct horse battery", Role.USER).id for number in range(users)]
    return Stage(clock=FixedClock(), identity=identity), ids


def test_people_on_several_pages_and_machine_clients_have_names() -> None:
    stage, ids = stage_of(PAGE + 1)
    known = Names(stage).all()
    assert (known[ids[0]], known[ids[-1]], known["3h5robot"]) == ("user0", f"user{PAGE}", "robot")


def test_at_most_five_pages_are_read() -> None:
    stage, ids = stage_of(5 * PAGE + 1)
    assert set(ids) - Names(stage).all().keys() == {ids[-1]}


def test_a_new_user_is_known_within_half_a_minute() -> None:
    assert CACHED_MS <= 30_000
    stage, _ = stage_of(1)
    names = Names(stage)
    names.all()
    new = stage.identity.create("late", "correct horse battery", Role.USER).id
    stage.clock.advance(CACHED_MS - 1)
    assert new not in names.all()
    stage.clock.advance(1)
    assert names.all()[new] == "late"


def test_names_stay_while_the_identity_provider_refuses() -> None:
    stage, ids = stage_of(1)
    names = Names(stage)
    names.all()
    stage.clock.advance(CACHED_MS)
    stage.identity = Wrapped(stage.identity, page=refuse)
    assert names.all()[ids[0]] == "user0"
    assert Names(stage).all() == {}
