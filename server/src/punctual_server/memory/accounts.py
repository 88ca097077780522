"""The users of a stage in memory: each signs in with a password, and one token of each is always valid.

The token of a sign-in is `token-<id>@<instant>`; the one that is always valid has no instant.
"""

from lab.world.gateway import Caller
from scheduler.model.account import Account, Role
from scheduler.model.errors import Invalid, Unauthorized
from scheduler.storage.memory.accounts import MemoryIdentity, MemoryUsers
from scheduler.storage.ports import Session, User

LASTS_MS = 3_600_000  # by the answer to a sign-in; no token expires
_TOKEN, _REFRESH = "token-", "refresh-"
_GROUPS = {Role.USER: None, Role.OPERATOR: "[operators]", Role.ADMINISTRATOR: "[administrators]"}


class Accounts(MemoryIdentity):
    """The port `Identity`."""

    now = 0  # of the request

    def __init__(self, users: MemoryUsers) -> None:
        super().__init__()
        self._users = users

    def token_of(self, username: str) -> str:
        """Return the token of a user. Raises LookupError."""
        return f"{_TOKEN}{self._named(username).id}"

    def caller(self, token: str) -> Caller | None:
        """Return the caller as the authorizer passes them on; None for a token of nobody."""
        account = self._of(token)
        if account is None or not account.enabled:
            return None
        signed_in = token.partition("@")[2]
        return Caller(account.id, _GROUPS[account.role], account.username, int(signed_in) if signed_in else self._since(account))

    def login(self, username: str, password: str) -> Session:
        try:
            account = self._named(username)
        except LookupError:
            raise Unauthorized("The user name or the password is wrong.") from None
        if self.passwords[account.id] != password or not account.enabled:
            raise Unauthorized("The user name or the password is wrong.")
        return self._session(account)

    def refresh(self, refresh_token: str) -> Session:
        account = self.rows.get(refresh_token.removeprefix(_REFRESH))
        if account is None:
            raise Unauthorized("The refresh token has expired.")
        return self._session(account)

    def revoke(self, refresh_token: str) -> None:
        """Do nothing: the tokens stay valid."""

    def change_password(self, token: str, current: str, new: str) -> None:
        account = self._of(token)
        if account is None or self.passwords[account.id] != current:
            raise Invalid.field("current_password", "is wrong")
        self.set_password(account.id, new)

    def user(self, token: str, now: int) -> User:
        caller = self.caller(token)
        if caller is None:
            raise Unauthorized("The token is invalid or has expired.")
        return User(caller.id, caller.name)

    def _since(self, account: Account) -> int:
        """When a sign-in now begins a session that lasts. The API waits until then after it has ended all others; here no request waits."""
        return max(self.now, self._users.profiles([account.id])[account.id].sessions_since or 0)

    def _of(self, token: str) -> Account | None:
        return self.rows.get(token.removeprefix(_TOKEN).partition("@")[0]) if token.startswith(_TOKEN) else None

    def _session(self, account: Account) -> Session:
        user = User(account.id, account.username)
        return Session(f"{_TOKEN}{account.id}@{self._since(account)}", self.now + LASTS_MS, f"{_REFRESH}{account.id}", user)

    def _named(self, username: str) -> Account:
        for account in self.rows.values():
            if account.username.casefold() == username.casefold():
                return account
        raise LookupError(f"there is no user {username!r}")
