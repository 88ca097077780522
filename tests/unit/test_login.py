"""Sign-in: guessing is slow and reveals nothing."""

import pytest

from scheduler.accounts.login import GRID_MS, OF_ADDRESS, OF_NAME, OF_PAIR, WINDOW_MS, login
from scheduler.accounts.sessions import change_password
from scheduler.model.errors import Invalid, TooMany, Unauthorized
from scheduler.storage.memory.ports import MemoryPorts
from scheduler.storage.ports import Session, User
from tests.conftest import FixedClock


class Accounts:
    """One user, ann, with the password `right`. A check takes 70 ms for her and 3 ms for an unknown name."""

    def __init__(self, clock: FixedClock) -> None:
        self.clock, self.asked = clock, 0

    def login(self, username: str, password: str) -> Session:
        self.asked += 1
        self.clock.advance(70 if username.casefold() == "ann" else 3)
        if (username.casefold(), password) != ("ann", "right"):
            raise Unauthorized("The user name or the password is wrong.")
        return Session("token", self.clock.at, "fresh", User("sub-ann", "ann"))

    def change_password(self, token: str, current: str, new: str) -> None:
        if current != "right":
            raise Invalid.field("current_password", "is wrong")

    def sign_out(self, id: str) -> None:
        pass


class Door(MemoryPorts):
    def __init__(self) -> None:
        clock = FixedClock()
        super().__init__(clock, identity=Accounts(clock))

    def knock(self, name: str = "ann", password: str = "wrong", address: str = "192.0.2.1") -> str:
        """The refusal and its duration."""
        began = self.clock.at
        try:
            login(name, password, address, self)
        except (Unauthorized, TooMany) as error:
            return f"{error.code}: {error.message} after {self.clock.at - began} ms"
        return "in"


def test_an_unknown_name_and_a_wrong_password_get_the_same_refusal() -> None:
    door = Door()
    known, unknown = door.knock("ann"), door.knock("nobody")
    assert known == unknown and known.endswith(f"after {GRID_MS} ms")


def test_a_successful_sign_in_does_not_wait() -> None:
    door = Door()
    assert door.knock(password="right") == "in"
    assert door.clock.slept == []


def test_a_session_shows_the_weight_of_the_users_table() -> None:
    door = Door()
    weights = []
    for weight in (None, 0.25):
        if weight is not None:
            door.users.set_weight("sub-ann", weight)
        user = login("ann", "right", "192.0.2.1", door).user
        weights.append(user and user.job_weight)
    assert weights == [1.0, 0.25]


def test_ten_failures_of_a_name_at_an_address_stop_its_sign_ins_there() -> None:
    door = Door()
    for _ in range(OF_PAIR):
        assert door.knock().startswith("unauthorized")
    asked = door.identity.asked
    assert door.knock("ANN", "right").startswith("too_many_requests") and door.identity.asked == asked
    assert door.knock("ben", "right").startswith("unauthorized")


def test_a_stranger_locks_no_user_out() -> None:
    door = Door()
    for _ in range(1_000):
        door.knock(address="198.51.100.1")
    assert door.knock(password="right") == "in"


def test_a_guesser_with_many_addresses_has_a_hundred_tries_in_a_window() -> None:
    door = Door()
    for number in range(1_000):
        door.knock(address=f"198.51.{number // 250}.{number % 250}")
    assert door.identity.asked == OF_NAME
    assert door.knock(password="right").startswith("too_many_requests")


def test_a_guesser_with_many_addresses_locks_no_known_address_out() -> None:
    door = Door()
    assert door.knock(password="right") == "in"
    for number in range(1_000):
        door.knock(address=f"198.51.{number // 250}.{number % 250}")
    assert door.knock(password="right") == "in"
    for _ in range(OF_PAIR):
        door.knock()
    assert door.knock(password="right").startswith("too_many_requests"), "the user's own address has ten tries as well"


def test_the_addresses_of_an_ipv6_network_count_as_one() -> None:
    door = Door()
    for number in range(OF_PAIR):
        door.knock(address=f"2001:db8:1:2::{number:x}")
    assert door.knock(address="2001:db8:1:2:ffff::1").startswith("too_many_requests")
    assert door.knock(address="2001:db8:1:3::1").startswith("unauthorized")


def test_an_unknown_name_is_throttled_like_a_known_one() -> None:
    door = Door()
    assert [door.knock("nobody") for _ in range(OF_PAIR + 2)] == [door.knock("ann") for _ in range(OF_PAIR + 2)]


def test_after_fifteen_minutes_sign_in_works_again() -> None:
    door = Door()
    for _ in range(OF_PAIR + 5):
        door.knock()
    door.clock.advance(WINDOW_MS)
    assert door.knock(password="right") == "in"


def test_a_throttled_address_uses_up_no_tries_of_names() -> None:
    door = Door()
    for number in range(OF_ADDRESS):
        door.knock(f"user{number}")
    assert all(door.knock("victim").startswith("too_many_requests") for _ in range(OF_NAME + 1))
    assert door.knock("victim", address="198.51.100.1").startswith("unauthorized")


def test_successful_sign_ins_use_up_no_tries() -> None:
    door = Door()
    assert [door.knock(password="right") for _ in range(OF_ADDRESS + 50)] == ["in"] * (OF_ADDRESS + 50)


def test_user_names_are_stored_only_as_hashes() -> None:
    door = Door()
    door.knock("my-password-typed-into-the-wrong-field")
    assert not any("password-typed" in name for name in door.users.tallies)


def test_guessing_the_current_password_of_a_session_is_throttled_too() -> None:
    door = Door()

    def change(current: str) -> None:
        change_password("sub-ann", "ann", "token", current, "right", door)

    for _ in range(30):
        change("right")
    for _ in range(OF_PAIR):
        with pytest.raises(Invalid):
            change("wrong")
    with pytest.raises(TooMany):
        change("right")
