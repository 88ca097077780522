"""The second factor of one's own account: a program on a phone shows one-time codes (TOTP, RFC 6238).

Each step takes the password again: an access token alone must not lock its owner out. Sign-in with a code is in `login`.
"""

from urllib.parse import quote

from scheduler.accounts import sessions
from scheduler.accounts.login import count_change, spend
from scheduler.model.errors import Invalid, Unauthorized
from scheduler.storage.ports import Challenge, Ports

ISSUER = "Punctual"  # shown by the program on the phone


def begin(id: str, username: str, password: str, ports: Ports) -> tuple[str, str]:
    """A new secret in base32, and the URI that a QR code contains. It applies once `confirm` has received a code of it.

    Raises Invalid for a wrong password, Conflict if there is a second factor, and TooMany after too many tries.
    """
    sessions.own_account(id, ports)
    with count_change(id, ports):
        secret = ports.identity.begin_totp(username, password)
    return secret, uri(username, secret)


def uri(username: str, secret: str) -> str:
    """The URI of a secret, as programs for one-time codes read it.

    >>> uri("ann", "ABC")
    'otpauth://totp/Punctual:ann?secret=ABC&issuer=Punctual'
    """
    return f"otpauth://totp/{ISSUER}:{quote(username, safe='')}?secret={secret}&issuer={ISSUER}"


def confirm(id: str, username: str, password: str, code: str, ports: Ports) -> None:
    """Switch the second factor on. Raises as `begin`, and Invalid for a wrong code. Other sessions go on."""
    sessions.own_account(id, ports)
    with count_change(id, ports):
        _spend(username, code, ports)
        ports.identity.confirm_totp(username, password, code)


def remove(id: str, username: str, password: str, code: str, ports: Ports) -> None:
    """Switch the second factor off, for its password and a code. Idempotent. Raises Invalid, Conflict, and TooMany after too many tries."""
    account = sessions.own_account(id, ports)
    with count_change(id, ports):
        try:
            session = ports.identity.login(username, password)
        except Unauthorized:
            raise Invalid.field("current_password", "is wrong") from None
        if isinstance(session, Challenge):
            _spend(username, code, ports)
            try:
                session = ports.identity.answer_challenge(session, code)
            except Unauthorized:
                raise Invalid.field("code", "is wrong") from None
            ports.identity.remove_totp(account)
        if session.refresh_token is not None:
            ports.identity.revoke(session.refresh_token)


def reset(id: str, ports: Ports) -> None:
    """Switch off the second factor of a person who has lost it, and end all sessions. Raises NotFound, Conflict."""
    ports.identity.remove_totp(sessions.own_account(id, ports))
    sessions.end_all(id, ports)


def _spend(username: str, code: str, ports: Ports) -> None:
    try:
        spend(username, code, ports)
    except Unauthorized:
        raise Invalid.field("code", "was sent before: wait for the next one") from None
