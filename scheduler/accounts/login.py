"""Sign-in. Guessing is slow, and neither the text nor the time of a refusal reveals which users exist."""

import hashlib

from scheduler.accounts.model import Tallies
from scheduler.model.errors import TooMany, Unauthorized
from scheduler.storage.ports import Accounts, Clock, Session

WINDOW_MS = 900_000
OF_NAME = 10  # failures of one user name within a window, from all addresses together
OF_ADDRESS = 100  # failures from one address within a window
GRID_MS = 500  # a refusal is sent at the next multiple of this after the request came: its duration reveals nothing


def login(username: str, password: str, address: str, *, accounts: Accounts, tallies: Tallies, clock: Clock) -> Session:
    """Sign in. Raises Unauthorized, with the same text for every cause, and TooMany after too many failures.

    Each try is counted before it is made, so that parallel tries cannot exceed the limit; a successful try is subtracted again.
    """
    began = clock.now()
    # The address first: an address that has used up its tries cannot use up those of a name.
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
    """Change one's own password. Raises Invalid for a wrong current password or a bad new one, and TooMany after too many tries."""
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
    """The name of a tally. It contains a hash: people sometimes type a password as user name, and that must not be stored."""
    return f"{kind}#{hashlib.sha256(value.encode()).hexdigest()}"
