"""The names of owners by their ids, as a process of the API keeps them."""

from scheduler.accounts.names import CACHED_MS, PAGE, PAGES, Names
from scheduler.model.account import COGNITO, Profile, Subject
from tests.conftest import FixedClock
from tests.unit.stage import Stage, Wrapped, refuse


def add_person(stage: Stage, number: int, name: str | None = None) -> str:
    id = f"person-{number:04d}"
    assert stage.owners.add_person(Profile(id, name=name or f"user{number}"), Subject(COGNITO, id))
    return id


def stage_of(persons: int) -> tuple[Stage, list[str]]:
    stage = Stage(clock=FixedClock())
    return stage, [add_person(stage, number) for number in range(persons)]


def test_people_on_several_pages_and_teams_have_names() -> None:
    stage, ids = stage_of(PAGE + 1)
    stage.owners.add_team(Profile("team-1", name="shop"), ids[0])
    known = Names(stage).all()
    assert (known[ids[0]], known[ids[-1]], known["team-1"]) == ("user0", f"user{PAGE}", "shop")


def test_a_bounded_number_of_pages_is_read() -> None:
    stage, ids = stage_of(PAGES * PAGE + 1)
    assert set(ids) - Names(stage).all().keys() == {ids[-1]}


def test_names_of_some_owners_are_found_beyond_the_pages() -> None:
    stage, ids = stage_of(PAGES * PAGE + 1)
    assert Names(stage).of([ids[-1], "nobody"]) == {ids[-1]: f"user{PAGES * PAGE}"}


def test_a_deleted_person_has_no_name() -> None:
    stage, (id,) = stage_of(1)
    stage.owners.erase_person(id, [])
    assert (Names(stage).all(), Names(stage).of([id])) == ({}, {})


def test_a_deleted_team_has_no_name() -> None:
    stage, (id,) = stage_of(1)
    stage.owners.add_team(Profile("team-1", name="shop"), id)
    stage.owners.delete_team("team-1")
    assert Names(stage).all() == {id: "user0"}
    assert Names(stage).of(["team-1"]) == {}


def test_a_new_person_is_known_within_half_a_minute() -> None:
    assert CACHED_MS <= 30_000
    stage, _ = stage_of(1)
    names = Names(stage)
    names.all()
    new = add_person(stage, 1, "late")
    stage.clock.advance(CACHED_MS - 1)
    assert new not in names.all()
    stage.clock.advance(1)
    assert names.all()[new] == "late"


def test_names_stay_while_the_table_refuses() -> None:
    stage, ids = stage_of(1)
    names = Names(stage)
    names.all()
    names.of(ids)
    stage.clock.advance(CACHED_MS)
    stage.users = Wrapped(stage.users, profiles=refuse)
    assert names.all()[ids[0]] == "user0"
    assert names.of(ids) == {ids[0]: "user0"}
    assert (Names(stage).all(), Names(stage).of(ids)) == ({}, {})
