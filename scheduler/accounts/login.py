"""Sign-in. Guessing is slow, and neither the text nor the time of a refusal reveals which users exist."""

import hashlib
from dataclasses import replace

from scheduler.model.errors import TooMany, Unauthorized
from scheduler.storage.ports import Ports, Session, User, Users

WINDOW_MS = 900_000
OF_NAME = 10  # failures of one user name within a window, from all addresses together
OF_ADDRESS = 100  # failures from one address within a window
GRID_MS = 500  # a refusal is sent at the next multiple of this after the request came: its duration reveals nothing


def login(username: str, password: str, address: str, ports: Ports) -> Session:
    """Raises Unauthorized, in the same words for whatever is wrong, and TooMany after too many failures.

    Each try is counted before it is made, so that parallel tries cannot exceed the limit; a successful try is subtracted again.
    """
    began = ports.clock.now()
    # The address first: an address that has used up its tries cannot use up those of a name.
    counted = [(_name("address", address), OF_ADDRESS), (_name("name", username.casefold()), OF_NAME)]
    try:
        _count(counted, ports.users, began)
        session = ports.identity.login(username, password)
    except Unauthorized:
        ports.clock.sleep_until(began + -(-max(ports.clock.now() - began, 1) // GRID_MS) * GRID_MS)
        raise
    for name, _ in counted:
        ports.users.add_to_tally(name, -1, ports.clock.now())
    return replace(session, user=session.user and _weighed(session.user, ports.users))


def _weighed(user: User, users: Users) -> User:
    return replace(user, job_weight=users.weights([user.id]).get(user.id, user.job_weight))


def change_password(id: str, token: str, current: str, new: str, ports: Ports) -> None:
    """Change one's own password. Raises Invalid for a wrong current password or a bad new one, and TooMany after too many tries."""
    counted = [(_name("password", id), OF_NAME)]
    _count(counted, ports.users, ports.clock.now())
    ports.identity.change_password(token, current, new)
    ports.users.add_to_tally(counted[0][0], -1, ports.clock.now())


def _count(names: list[tuple[str, int]], users: Users, now: int) -> None:
    for name, most in names:
        tally = users.add_to_tally(name, 1, now)
        if now - tally.since >= WINDOW_MS:
            users.restart_tally(name, tally, 1, now)
        elif tally.count > most:
            raise TooMany("Too many failed sign-ins. Wait before you try again.", tally.since + WINDOW_MS - now)


def _name(kind: str, value: str) -> str:
    """The name of a tally. It contains a hash: people sometimes type a password as user name, and that must not be stored."""
    return f"{kind}#{hashlib.sha256(value.encode()).hexdigest()}"
