"""Sign-in. Guessing is slow, and neither the text nor the time of a refusal reveals which users exist.

Failures are counted by address, by user name and address together, and by user name. The second limit stops a guesser, and locks out no
user at another address. The third one bounds a guesser with many addresses, and does not apply at an address from which the user
has signed in within a month.
"""

import hashlib
import ipaddress
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from scheduler.model.errors import TooMany, Unauthorized
from scheduler.storage.ports import Ports, Session, User, Users

WINDOW_MS = 900_000
OF_PAIR = 10  # failures of one user name from one address within a window
OF_NAME = 100  # failures of one user name within a window, from all addresses together
OF_ADDRESS = 100  # failures from one address within a window
GRID_MS = 500  # a refusal is sent at the next multiple of this after the request: its duration reveals nothing


def login(username: str, password: str, address: str, ports: Ports) -> Session:
    """Raises Unauthorized, in the same words for every cause, and TooMany after too many failures.

    Each try is counted before it is made, so that parallel tries cannot exceed the limit; a successful try is subtracted again.
    """
    began = ports.clock.now()
    name, place = username.casefold(), _network(address)
    known = _name("known", f"{place} {name}")
    # In this order: a try that exceeds one limit is not counted for the next ones.
    counted = [(_name("address", place), OF_ADDRESS), (_name("pair", f"{place} {name}"), OF_PAIR)]
    of_name = [(_name("name", name), OF_NAME)]
    try:
        _count(counted, ports.users, began)
        try:
            _count(of_name, ports.users, began)
        except TooMany:
            if ports.users.add_to_tally(known, 0, began).total <= 0:
                raise
        session = ports.identity.login(username, password)
    except Unauthorized:
        ports.clock.sleep_until(began + -(-max(ports.clock.now() - began, 1) // GRID_MS) * GRID_MS)
        raise
    for each, _ in (*counted, *of_name):
        ports.users.add_to_tally(each, -1, ports.clock.now())
    ports.users.add_to_tally(known, 1, ports.clock.now())
    return replace(session, user=session.user and _weighed(session.user, ports.users))


def _network(address: str) -> str:
    """The addresses that are counted together: of IPv6 a /64, because every network has at least one."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    return str(ipaddress.ip_network((found, 64), strict=False)) if found.version == 6 else address


def _weighed(user: User, users: Users) -> User:
    return replace(user, job_weight=users.weights([user.id]).get(user.id, user.job_weight))


@contextmanager
def count_change(id: str, ports: Ports) -> Iterator[None]:
    """Count one try to change one's own password, unless it succeeds. Raises TooMany after too many tries."""
    counted = [(_name("password", id), OF_PAIR)]
    _count(counted, ports.users, ports.clock.now())
    yield
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
