"""The sessions of a user: ending them, and recognizing the tokens of an ended session.

A token shows when its user signed in, and a refreshed one keeps that time. So one instant per user separates the ended sessions from the
others. A process of the API reads it at most `quota.FRESH_MS` late.
"""

from contextlib import suppress

from scheduler.accounts import people
from scheduler.accounts.login import count_change
from scheduler.model.account import Profile
from scheduler.model.errors import Conflict, Invalid, NotFound, Unauthorized
from scheduler.storage.ports import Ports, Session

SKEW_MS = 200  # the clock that writes the time of a sign-in into a token may be this far behind ours


def check(profile: Profile, signed_in_at: int) -> None:
    """Raises Unauthorized for a token of an ended session; `signed_in_at`: the token's time of sign-in (ms, a whole second)."""
    if profile.sessions_since is not None and signed_in_at < profile.sessions_since:
        raise Unauthorized("This session has ended. Sign in again.")


def end_all(id: str, ports: Ports) -> None:
    """End every session of a user: the refresh tokens at once, the access tokens as soon as the processes of the API have read it.

    Returns when a sign-in begins a session that lasts: after the next whole second.
    """
    since = refuse_earlier(id, ports)
    for account in people.accounts_of(id, ports):
        with suppress(NotFound):  # a linked subject has no account in the pool before its first sign-in
            ports.identity.sign_out(account)
    ports.clock.sleep_until(since + SKEW_MS)


def refuse_earlier(id: str, ports: Ports) -> int:
    """Refuse the access tokens of all present sessions of a user. Return the instant from which on a sign-in lasts: a whole second."""
    since = (ports.clock.now() // 1000 + 1) * 1000
    ports.users.set_sessions_since(id, since)
    return since


def change_password(id: str, username: str, current: str, new: str, ports: Ports) -> Session | None:
    """Change one's own password, end all sessions, and begin a new one; None if that takes another sign-in: the password is changed.

    Raises Invalid for a wrong current password or a bad new one, Conflict for a person without one, and TooMany after too many tries.
    """
    account = own_account(id, ports)
    with count_change(id, ports):
        if not ports.identity.check_password(username, current):
            raise Invalid.field("current_password", "is wrong")
        try:
            ports.identity.set_password(account, new)
        except Invalid as error:  # the port names the field of another route
            raise Invalid.field("new_password", error.details[0]["rule"]) from None
    end_all(id, ports)
    try:
        session = ports.identity.login(username, new)
    except Unauthorized:
        return None
    return session if isinstance(session, Session) else None


def own_account(id: str, ports: Ports) -> str:
    """The subject of the account with which a person signs in by password. Raises Conflict for a person who uses single sign-on alone."""
    account = people.account_of(id, ports)
    if account is None:
        raise Conflict("this person signs in by single sign-on: there is no password and no second factor here")
    return account
