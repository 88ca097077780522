"""Sign-in. Guessing is slow, and neither the text nor the time of a refusal reveals which users exist.

Failures are counted by address, by user name and address together, and by user name. The second limit stops a guesser, and locks out no
user at another address. The third one bounds a guesser with many addresses, and does not apply at an address from which the user
has signed in within a month. Codes of the second factor are counted in the same way. There are only a million of them, so that fewer
wrong ones are allowed from all addresses together. They are counted for a user only after the right password: a stranger cannot use
them up.
"""

import base64
import hashlib
import ipaddress
import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from scheduler.accounts.people import person_of
from scheduler.model.account import COGNITO, Subject
from scheduler.model.errors import TooMany, Unauthorized
from scheduler.storage.ports import Challenge, Ports, Session, User, Users

WINDOW_MS = 900_000
OF_PAIR = 10  # failures of one user name from one address within a window
OF_NAME = 100  # failures of one user name within a window, from all addresses together
OF_CODES = 10  # wrong codes of one user within a window, from all addresses together
OF_ADDRESS = 100  # failures from one address within a window
GRID_MS = 500  # a refusal is sent at the next multiple of this after the request: its duration reveals nothing
CODE_MS = 120_000  # a code is valid for a shorter time, including the steps before and after its own
WRONG_CODE = "The code is wrong, was used before, or came too late. Sign in again if this repeats."


def login(username: str, password: str, address: str, ports: Ports, only: Collection[str] | None = None) -> Session | Challenge:
    """Raises Unauthorized, in the same words for every cause, and TooMany after too many failures.

    Each try is counted before it is made, so that parallel tries cannot exceed the limit; a successful try is subtracted again.
    `only`: the user names, in small letters, that may sign in with a password; None: all of them.
    """
    began, name = ports.clock.now(), username.casefold()
    tries = _Tries(name, _network(address), ports.users, began)
    with _refused_late(began, ports):
        tries.count("address", OF_ADDRESS)
        tries.count("pair", OF_PAIR, name)
        tries.count_user("name", OF_NAME)
        if only is not None and name not in only:
            raise Unauthorized("The user name or the password is wrong, or this user must use single sign-on.")
        session = ports.identity.login(username, password)
    tries.subtract(ports.clock.now())
    if isinstance(session, Challenge):
        ports.users.add_to_tally(_issued(session), 1, ports.clock.now())
        return session
    tries.know(ports.clock.now())
    return replace(session, user=session.user and _person(session.user, ports))


def answer(challenge: Challenge, code: str, address: str, ports: Ports) -> Session:
    """Complete a sign-in by a code of the second factor. Raises as `login` does. A code is accepted once."""
    began, name = ports.clock.now(), challenge.username.casefold()
    tries = _Tries(name, _network(address), ports.users, began)
    with _refused_late(began, ports):
        tries.count("address", OF_ADDRESS)
        if ports.users.add_to_tally(_issued(challenge), 0, began).total <= 0:
            raise Unauthorized(WRONG_CODE)
        tries.count("code-pair", OF_PAIR, name)
        tries.count_user("codes", OF_CODES)
        spend(challenge.username, code, ports)
        session = ports.identity.answer_challenge(challenge, code)
    tries.subtract(ports.clock.now())
    tries.know(ports.clock.now())
    return replace(session, user=session.user and _person(session.user, ports))


def spend(username: str, code: str, ports: Ports) -> None:
    """Note that a user has sent a code. Raises Unauthorized if it was sent before: an observer could use it again."""
    now, name = ports.clock.now(), _name("code", f"{username.casefold()} {code}")
    tally = ports.users.add_to_tally(name, 1, now)
    if tally.count == 1:
        return
    if now - tally.since < CODE_MS or not ports.users.restart_tally(name, tally, 1, now):
        raise Unauthorized(WRONG_CODE)


def written(challenge: Challenge) -> str:
    """The challenge as the client sends it back. A client that changes it gets a refusal from the identity provider."""
    return base64.urlsafe_b64encode(json.dumps([challenge.username, challenge.session]).encode()).decode()


def read(text: str) -> Challenge:
    """Raises Unauthorized for a text that `written` did not return."""
    try:
        username, session = json.loads(base64.urlsafe_b64decode(text))
    except (TypeError, ValueError, RecursionError):
        raise Unauthorized(WRONG_CODE) from None
    if not isinstance(username, str) or not isinstance(session, str):
        raise Unauthorized(WRONG_CODE)
    return Challenge(username, session)


@dataclass(slots=True)
class _Tries:
    """The counted tries of one sign-in."""

    user: str
    place: str
    users: Users
    began: int
    _counted: list[str] = field(default_factory=list)

    def count(self, kind: str, most: int, of: str = "") -> None:
        """Count the try at its address, `of` a user if there is one. Raises TooMany: such a try is not counted for further limits."""
        name = _name(kind, f"{self.place} {of}" if of else self.place)
        _count([(name, most)], self.users, self.began)
        self._counted.append(name)

    def count_user(self, kind: str, most: int) -> None:
        """Count the try of the user at all addresses. Raises TooMany, except at a known address."""
        name = _name(kind, self.user)
        self._counted.append(name)
        try:
            _count([(name, most)], self.users, self.began)
        except TooMany:
            if self.users.add_to_tally(self._known, 0, self.began).total <= 0:
                raise

    def subtract(self, now: int) -> None:
        for each in self._counted:
            self.users.add_to_tally(each, -1, now)

    def know(self, now: int) -> None:
        """Note that the user has signed in at this address."""
        self.users.add_to_tally(self._known, 1, now)

    @property
    def _known(self) -> str:
        return _name("known", f"{self.place} {self.user}")


@contextmanager
def _refused_late(began: int, ports: Ports) -> Iterator[None]:
    try:
        yield
    except Unauthorized:
        ports.clock.sleep_until(began + -(-max(ports.clock.now() - began, 1) // GRID_MS) * GRID_MS)
        raise


def _network(address: str) -> str:
    """The addresses that are counted together: of IPv6 a /64, because every network has at least one."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    return str(ipaddress.ip_network((found, 64), strict=False)) if found.version == 6 else address


def _person(user: User, ports: Ports) -> User:
    """The person that signed in with the account."""
    id = person_of(Subject(COGNITO, user.id), user.username, ports)
    return User(id, user.username, ports.users.weights([id]).get(id, user.job_weight))


@contextmanager
def count_change(id: str, ports: Ports) -> Iterator[None]:
    """Count one try to prove one's own password or second factor, unless it succeeds. Raises TooMany after too many tries."""
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


def _issued(challenge: Challenge) -> str:
    """The name of the tally that shows that a challenge was issued."""
    return _name("challenge", f"{challenge.username} {challenge.session}")


def _name(kind: str, value: str) -> str:
    """The name of a tally. It contains a hash: people sometimes type a password as user name, and that must not be stored."""
    return f"{kind}#{hashlib.sha256(value.encode()).hexdigest()}"
