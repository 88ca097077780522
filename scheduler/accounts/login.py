"""Signing in, so that guessing is slow and tells nothing: not which users exist, neither by words nor by time."""

import hashlib

from scheduler.accounts.model import Tallies
from scheduler.model.errors import TooMany, Unauthorized
from scheduler.storage.ports import Accounts, Clock, Session

WINDOW_MS = 900_000
OF_NAME = 10  # failures of one user name within a window, wherever they come from
OF_ADDRESS = 100  # failures from one address
GRID_MS = 500  # a refusal is answered at the next multiple of this from its beginning: what it took to find out does not show


def login(username: str, password: str, address: str, *, accounts: Accounts, tallies: Tallies, clock: Clock) -> Session:
    """Raises Unauthorized, in the same words for whatever is wrong, and TooMany after too many failures.

    Each try is counted before it is made, so that many at once do not slip through; a good one is taken off again.
    """
    began = clock.now()
    # The address first: who has used up its tries cannot use up those of a name.
    counted = [(_name("address", address), OF_ADDRESS), (_name("name", username.casefold()), OF_NAME)]
    try:
        _count(counted, tallies, began)
        session = accounts.login(username, password)
    except Unauthorized:
        clock.sleep_until(began + -(-max(clock.now() - began, 1) // GRID_MS) * GRID_MS)
        raise
    for name, _ in counted:
        tallies.add(name, -1, clock.now())
    return session


def change_password(id: str, token: str, current: str, new: str, *, accounts: Accounts, tallies: Tallies, clock: Clock) -> None:
    """Raises Invalid for a wrong current password or a bad new one, and TooMany after too many tries."""
    counted = [(_name("password", id), OF_NAME)]
    _count(counted, tallies, clock.now())
    accounts.change_password(token, current, new)
    tallies.add(counted[0][0], -1, clock.now())


def _count(names: list[tuple[str, int]], tallies: Tallies, now: int) -> None:
    for name, most in names:
        tally = tallies.add(name, 1, now)
        if now - tally.since >= WINDOW_MS:
            tallies.restart(name, tally, 1, now)
        elif tally.count > most:
            raise TooMany("Too many failed sign-ins. Wait before you try again.", tally.since + WINDOW_MS - now)


def _name(kind: str, value: str) -> str:
    """A user name that nobody has is somebody's password now and then: it is not stored."""
    return f"{kind}#{hashlib.sha256(value.encode()).hexdigest()}"
