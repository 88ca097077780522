"""Sign-in: guessing is slow and reveals nothing."""

import pytest

from scheduler.accounts import second_factor
from scheduler.accounts.login import CODE_MS, GRID_MS, OF_ADDRESS, OF_CODES, OF_NAME, OF_PAIR, WINDOW_MS, answer, login, read, written
from scheduler.accounts.sessions import change_password
from scheduler.model.account import COGNITO, Profile, Subject
from scheduler.model.errors import Conflict, Invalid, TooMany, Unauthorized
from scheduler.storage.memory.accounts import MemoryAccount, MemoryIdentity, codes
from scheduler.storage.memory.ports import MemoryPorts
from scheduler.storage.ports import Challenge, Session
from tests.conftest import FixedClock

LONG = "a-long-enough-password"
SECRET = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"


class Accounts(MemoryIdentity):
    """Ann, with the password `right`. A check takes 70 ms for her and 3 ms for an unknown name."""

    def __init__(self, clock: FixedClock) -> None:
        super().__init__()
        self.clock, self.checked = clock, 0
        self.rows["sub-ann"] = MemoryAccount("ann", "right")

    def login(self, username: str, password: str) -> Session | Challenge:
        self._take(username)
        return super().login(username, password)

    def answer_challenge(self, challenge: Challenge, code: str) -> Session:
        self._take(challenge.username)
        return super().answer_challenge(challenge, code)

    def _take(self, username: str) -> None:
        self.checked += 1
        self.clock.advance(70 if username.casefold() == "ann" else 3)
        self.now = self.clock.at


class Door(MemoryPorts):
    def __init__(self) -> None:
        clock = FixedClock()
        super().__init__(clock, identity=Accounts(clock))
        self.owners.add_person(Profile("ann", name="ann", account="sub-ann"), Subject(COGNITO, "sub-ann"))

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
            door.users.set_weight("ann", weight)
        session = login("ann", "right", "192.0.2.1", door)
        assert isinstance(session, Session) and session.user is not None
        weights.append(session.user.job_weight)
    assert weights == [1.0, 0.25]


def test_ten_failures_of_a_name_at_an_address_stop_its_sign_ins_there() -> None:
    door = Door()
    for _ in range(OF_PAIR):
        assert door.knock().startswith("unauthorized")
    checked = door.identity.checked
    assert door.knock("ANN", "right").startswith("too_many_requests") and door.identity.checked == checked
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
    assert door.identity.checked == OF_NAME
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
        change_password("ann", "ann", current, LONG, door)

    change("right")
    for _ in range(30):
        change(LONG)
    for _ in range(OF_PAIR):
        with pytest.raises(Invalid):
            change("wrong")
    with pytest.raises(TooMany):
        change(LONG)


def with_second_factor() -> Door:
    door = Door()
    door.identity.rows["sub-ann"].secret = SECRET
    return door


def code(door: Door) -> str:
    """The code that the program on the phone shows."""
    return codes(SECRET, door.clock.at)[1]


def wrong(door: Door, number: int = 0) -> str:
    return next(
        each for each in (f"{number + first:06d}" for first in range(0, 1_000_000, 1_000)) if each not in codes(SECRET, door.clock.at)
    )


def challenge(door: Door, address: str = "192.0.2.1") -> Challenge:
    found = login("ann", "right", address, door)
    assert isinstance(found, Challenge)
    return read(written(found))


def reply(door: Door, text: str, address: str = "192.0.2.1", to: Challenge | None = None) -> str:
    """The refusal and its duration."""
    to = to or challenge(door, address)
    began = door.clock.at
    try:
        answer(to, text, address, door)
    except (Unauthorized, TooMany) as error:
        return f"{error.code}: {error.message} after {door.clock.at - began} ms"
    return "in"


def test_with_a_second_factor_the_password_gets_no_session() -> None:
    door = with_second_factor()
    assert reply(door, code(door)) == "in"


def test_a_wrong_password_gets_no_challenge() -> None:
    door = with_second_factor()
    assert door.knock().startswith("unauthorized")


def test_all_refusals_of_a_code_are_alike() -> None:
    door = with_second_factor()
    refusals = {
        reply(door, wrong(door)),
        reply(door, code(door), to=Challenge("ann", "made-up")),
        reply(door, code(door), to=Challenge("eve", "x")),
    }
    door.clock.advance(CODE_MS)
    used = code(door)
    assert reply(door, used) == "in"
    assert refusals == {reply(door, used)} and all(each.endswith(f"after {GRID_MS} ms") for each in refusals)


def test_a_code_is_accepted_once() -> None:
    door = with_second_factor()
    used = code(door)
    assert reply(door, used) == "in"
    assert reply(door, used).startswith("unauthorized")
    door.clock.advance(CODE_MS)
    assert reply(door, code(door)) == "in"


def test_a_code_that_confirmed_the_second_factor_does_not_sign_in() -> None:
    door = Door()
    door.identity.now = door.clock.at
    secret, uri = second_factor.begin("ann", "ann", "right", door)
    assert secret in uri
    used = codes(secret, door.clock.at)[1]
    second_factor.confirm("ann", "ann", "right", used, door)
    assert reply(door, used).startswith("unauthorized")


def test_wrong_codes_are_limited_at_an_address() -> None:
    door = with_second_factor()
    for number in range(OF_PAIR):
        assert reply(door, wrong(door, number)).startswith("unauthorized")
    assert reply(door, code(door)).startswith("too_many_requests")


def test_wrong_codes_of_a_user_are_limited_over_all_addresses() -> None:
    door = with_second_factor()
    for number in range(OF_CODES):
        assert reply(door, wrong(door, number), f"198.51.100.{number}").startswith("unauthorized")
    assert reply(door, code(door), "198.51.100.99").startswith("too_many_requests")


def test_wrong_codes_elsewhere_lock_no_known_address_out() -> None:
    door = with_second_factor()
    assert reply(door, code(door)) == "in"
    for number in range(OF_CODES + 1):
        reply(door, wrong(door, number), f"198.51.100.{number}")
    door.clock.advance(CODE_MS)
    assert reply(door, code(door)) == "in"


def test_the_password_alone_makes_no_address_known() -> None:
    door = with_second_factor()
    challenge(door, "198.51.100.99")
    for number in range(OF_CODES):
        reply(door, wrong(door, number), f"198.51.100.{number}")
    assert reply(door, code(door), "198.51.100.99").startswith("too_many_requests")


def test_a_stranger_without_the_password_uses_up_no_tries_of_codes() -> None:
    door = with_second_factor()
    used = code(door)
    for number in range(2 * OF_CODES):
        made_up = Challenge("ann", f"made-up-{number}")
        assert reply(door, used, f"198.51.100.{number}", to=made_up).startswith("unauthorized")
    assert reply(door, used) == "in", "the code was not spent either"


def test_right_codes_use_up_no_tries() -> None:
    door = with_second_factor()
    for _ in range(OF_PAIR + 5):
        assert reply(door, code(door)) == "in"
        door.clock.advance(CODE_MS)


@pytest.mark.parametrize("text", ["", "made up", "e30=", "WyJhIl0=", "WzEsMl0=", "bnVsbA==", "W1siYSJdLCJiIl0=", "\xff"])
def test_a_text_that_is_no_challenge_is_refused(text: str) -> None:
    with pytest.raises(Unauthorized):
        read(text)


def test_where_passwords_are_off_only_the_named_users_sign_in() -> None:
    door = Door()
    assert isinstance(login("Ann", "right", "192.0.2.1", door, {"ann"}), Session)
    checked = door.identity.checked
    with pytest.raises(Unauthorized) as refused:
        login("ann", "right", "192.0.2.1", door, {"eve"})
    with pytest.raises(Unauthorized) as unknown:
        login("nobody", "wrong", "192.0.2.1", door, {"eve"})
    assert refused.value.message == unknown.value.message and door.identity.checked == checked


def test_a_second_factor_takes_the_password_at_each_step() -> None:
    door = Door()
    door.identity.now = door.clock.at
    with pytest.raises(Invalid, match="current_password"):
        second_factor.begin("ann", "ann", "wrong", door)
    secret, _ = second_factor.begin("ann", "ann", "right", door)
    now = codes(secret, door.clock.at)[1]
    with pytest.raises(Invalid, match="current_password"):
        second_factor.confirm("ann", "ann", "wrong", now, door)
    assert not door.identity.has_totp("sub-ann")


def test_a_secret_that_no_code_confirmed_asks_for_none() -> None:
    door = Door()
    second_factor.begin("ann", "ann", "right", door)
    assert door.knock(password="right") == "in"


def test_a_second_factor_is_begun_once() -> None:
    door = with_second_factor()
    with pytest.raises(Conflict):
        second_factor.begin("ann", "ann", "right", door)


def test_a_second_factor_is_removed_by_password_and_code_together() -> None:
    door = with_second_factor()
    for password, sent, field in (("wrong", code(door), "current_password"), ("right", wrong(door), "code")):
        with pytest.raises(Invalid, match=field):
            second_factor.remove("ann", "ann", password, sent, door)
    assert door.identity.has_totp("sub-ann")
    second_factor.remove("ann", "ann", "right", code(door), door)
    assert door.knock(password="right") == "in"


def test_guessing_the_code_of_a_session_is_throttled_too() -> None:
    door = with_second_factor()
    for number in range(OF_PAIR):
        with pytest.raises(Invalid):
            second_factor.remove("ann", "ann", "right", wrong(door, number), door)
    with pytest.raises(TooMany):
        second_factor.remove("ann", "ann", "right", code(door), door)


def test_an_administrator_resets_a_second_factor_and_the_sessions_end() -> None:
    door = with_second_factor()
    second_factor.reset("ann", door)
    assert door.knock(password="right") == "in" and door.identity.signed_out == ["sub-ann"]
