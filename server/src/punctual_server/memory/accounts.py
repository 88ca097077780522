"""The users of a stage in memory: each signs in with a password, and one token of each is always valid.

The token of a sign-in is `token-<subject>@<instant>`; the one that is always valid has no instant.
"""

from lab.world.gateway import Caller
from scheduler.model.account import COGNITO, Subject
from scheduler.model.errors import Unauthorized
from scheduler.storage.memory.accounts import LASTS_MS, REFRESH, TOKEN, MemoryIdentity, MemoryUsers
from scheduler.storage.memory.owners import MemoryOwners
from scheduler.storage.ports import Session, User


class Accounts(MemoryIdentity):
    """The port `Identity`. `now` is the instant of the request."""

    def __init__(self, users: MemoryUsers, owners: MemoryOwners) -> None:
        super().__init__()
        self._users, self._owners = users, owners

    def token_of(self, username: str) -> str:
        """Return the token of a user. Raises LookupError."""
        subject, account = self._named(username)
        if account is None:
            raise LookupError(f"there is no user {username!r}")
        return f"{TOKEN}{subject}"

    def caller(self, token: str) -> Caller | None:
        """Return the caller as the authorizer passes them on; None for a token of nobody."""
        subject, _, signed_in = token.removeprefix(TOKEN).partition("@")
        account = self.rows.get(subject)
        if account is None or not token.startswith(TOKEN) or not account.enabled:
            return None
        return Caller(subject, account.username, int(signed_in) if signed_in else self._since(subject))

    def user(self, token: str, now: int) -> User:
        caller = self.caller(token)
        if caller is None:
            raise Unauthorized("The token is invalid or has expired.")
        return User(caller.id, caller.name)

    def _since(self, subject: str) -> int:
        """When a sign-in now begins a session that lasts. The API waits until then after it has ended all others; here no request waits."""
        person = self._owners.person_of(Subject(COGNITO, subject))
        ended_at = None if person is None else self._users.profiles([person])[person].sessions_since
        return max(self.now, ended_at or 0)

    def _session(self, subject: str) -> Session:
        user = User(subject, self.rows[subject].username)
        return Session(f"{TOKEN}{subject}@{self._since(subject)}", self.now + LASTS_MS, f"{REFRESH}{subject}", user)
