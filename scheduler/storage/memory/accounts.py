"""The ports of accounts in memory."""

import base64
import hashlib
import hmac
import itertools
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace

from scheduler.model.account import Ceiling, Membership, Profile, Quotas, Stock, Tally
from scheduler.model.audit import AuditEntry
from scheduler.model.errors import Conflict, Invalid, NotFound, Unauthorized
from scheduler.storage.ports import Barred, Challenge, IdpClaims, OwnerRecord, Session, User

SHORTEST = 12  # letters of a password
LASTS_MS = 3_600_000  # of a token, by the answer to a sign-in
STEP_MS = 30_000  # of one-time codes
TOKEN, REFRESH, CHALLENGE = "token-", "refresh-", "challenge-"


@dataclass(slots=True)
class MemoryAccount:
    """An account. `secret`: of the second factor; `begun`: one that no code has confirmed yet."""

    username: str
    password: str
    enabled: bool = True
    secret: str | None = None
    begun: str | None = None


class MemoryIdentity:
    """The accounts and their passwords. The token of an account is `token-<subject>`; sessions never end.

    `now` is the present (ms). `codes`: what a single sign-on brings back, by its code: the verifier, and the claims.
    """

    def __init__(self) -> None:
        self.now = 0
        self.rows: dict[str, MemoryAccount] = {}
        self.codes: dict[str, tuple[str, IdpClaims]] = {}
        self.signed_out: list[str] = []
        self.revoked: list[str] = []
        self._numbers = itertools.count(1)

    def login(self, username: str, password: str) -> Session | Challenge:
        subject, account = self._named(username)
        if account is None or not account.enabled or account.password != password:
            raise Unauthorized("The user name or the password is wrong.")
        return self._session(subject) if account.secret is None else Challenge(account.username, f"{CHALLENGE}{subject}")

    def answer_challenge(self, challenge: Challenge, code: str) -> Session:
        subject, account = self._named(challenge.username)
        is_theirs = challenge.session == f"{CHALLENGE}{subject}"
        if account is None or account.secret is None or not is_theirs or code not in codes(account.secret, self.now):
            raise Unauthorized("The code is wrong, was used before, or came too late. Sign in again if this repeats.")
        return self._session(subject)

    def refresh(self, refresh_token: str) -> Session:
        subject = refresh_token.removeprefix(REFRESH)
        if subject not in self.rows or not self.rows[subject].enabled:
            raise Unauthorized("The refresh token has expired.")
        return self._session(subject)

    def revoke(self, refresh_token: str) -> None:
        if not refresh_token.startswith(REFRESH):
            raise Unauthorized("The refresh token is not valid.")
        self.revoked.append(refresh_token)

    def exchange(self, code: str, verifier: str, redirect_uri: str) -> tuple[Session, IdpClaims]:
        expected, claims = self.codes.pop(code, (None, None))
        if claims is None or verifier != expected:
            raise Unauthorized("The sign-in failed. Start it again.")
        username = f"{claims.provider}_{claims.subject}"
        subject, account = self._named(username)
        if account is None:
            subject = self._add(username, "")
        return self._session(subject), claims

    def check_password(self, username: str, password: str) -> bool:
        try:
            self.login(username, password)
        except Unauthorized:
            return False
        return True

    def user(self, token: str, now: int) -> User:
        subject = token.removeprefix(TOKEN)
        if not token.startswith(TOKEN) or subject not in self.rows:
            raise Unauthorized("The token is invalid or has expired.")
        return User(subject, self.rows[subject].username)

    def begin_totp(self, username: str, password: str) -> str:
        account = self._proved(username, password)
        account.begun = base64.b32encode(hashlib.sha256(f"{username} {next(self._numbers)}".encode()).digest()[:20]).decode()
        return account.begun

    def confirm_totp(self, username: str, password: str, code: str) -> None:
        account = self._proved(username, password)
        if account.begun is None:
            raise Conflict("no second factor was begun: begin again")
        if code not in codes(account.begun, self.now):
            raise Invalid.field("code", "is not the present code of the new secret")
        account.secret, account.begun = account.begun, None

    def has_totp(self, subject: str) -> bool:
        return subject in self.rows and self.rows[subject].secret is not None

    def remove_totp(self, subject: str) -> None:
        if subject not in self.rows:
            raise NotFound("there is no such user")
        self.rows[subject].secret = None

    def create(self, username: str, password: str) -> str:
        if self._named(username)[1] is not None:
            raise Conflict("this user name is taken")
        _check(password)
        return self._add(username, password)

    def set_enabled(self, subject: str, enabled: bool) -> None:
        self.rows[subject].enabled = enabled

    def delete(self, subject: str) -> None:
        self.rows = {id: each for id, each in self.rows.items() if subject not in (id, each.username)}

    def set_password(self, subject: str, password: str) -> None:
        _check(password)
        self.rows[subject].password = password

    def sign_out(self, subject: str) -> None:
        if subject not in self.rows and self._named(subject)[1] is None:
            raise NotFound("there is no such user")
        self.signed_out.append(subject)

    def _session(self, subject: str) -> Session:
        return Session(f"{TOKEN}{subject}", self.now + LASTS_MS, f"{REFRESH}{subject}", User(subject, self.rows[subject].username))

    def _add(self, username: str, password: str) -> str:
        subject = f"00000000-0000-4000-8000-{next(self._numbers):012d}"
        self.rows[subject] = MemoryAccount(username, password)
        return subject

    def _named(self, username: str) -> tuple[str, MemoryAccount | None]:
        found = (each for each in self.rows.items() if each[1].username.casefold() == username.casefold())
        return next(found, ("", None))

    def _proved(self, username: str, password: str) -> MemoryAccount:
        _, account = self._named(username)
        if account is None or not self.check_password(username, password):
            raise Invalid.field("current_password", "is wrong")
        if account.secret is not None:
            raise Conflict("the account has a second factor: remove it first")
        return account


def codes(secret: str, now: int) -> list[str]:
    """The codes of a secret that are valid at an instant: of its step, the one before and the one after (RFC 6238).

    >>> codes(base64.b32encode(b"12345678901234567890").decode(), 59_000)[1]
    '287082'
    """
    found = []
    for step in range(now // STEP_MS - 1, now // STEP_MS + 2):
        digest = hmac.new(base64.b32decode(secret), struct.pack(">q", step), hashlib.sha1).digest()
        place = digest[-1] & 15
        found.append(f"{(int.from_bytes(digest[place : place + 4], 'big') & 0x7FFFFFFF) % 1_000_000:06d}")
    return found


def _check(password: str) -> None:
    if len(password) < SHORTEST:
        raise Invalid.field("password", "breaks the password policy: too short")


class MemoryUsers:
    """The users table: profiles, memberships and tallies. `writes` counts the writes of tallies."""

    def __init__(self) -> None:
        self.rows: dict[str, Profile] = {}
        self.memberships: dict[tuple[str, str], Membership] = {}  # by person and team
        self.tallies: dict[str, Tally] = {}
        self.writes = 0
        self._barred = Barred()

    def put(self, profile: Profile) -> None:
        self.rows[profile.id] = profile

    def weights(self, ids: Sequence[str]) -> dict[str, float]:
        weights = {id: self.rows[id].weight for id in ids if id in self.rows}
        return {id: weight for id, weight in weights.items() if weight is not None}

    def set_weight(self, id: str, weight: float) -> None:
        self.rows[id] = replace(self.rows.get(id, Profile(id)), weight=weight)

    def profiles(self, ids: Sequence[str]) -> dict[str, Profile]:
        return {id: self.rows.get(id, Profile(id)) for id in ids}

    def set_quotas(self, id: str, quotas: Quotas) -> None:
        self.rows[id] = replace(self.rows.get(id, Profile(id)), quotas=quotas)

    def set_disabled(self, id: str, at: int | None) -> None:
        self.rows[id] = replace(self.rows.get(id, Profile(id)), disabled_at=at)
        disabled = self._barred.disabled - {id} if at is None else self._barred.disabled | {id}
        self._barred = self._barred._replace(disabled=disabled)

    def set_sessions_since(self, id: str, at: int) -> None:
        self.rows[id] = replace(self.rows.get(id, Profile(id)), sessions_since=at)

    def delete(self, id: str, at: int) -> None:
        self.set_disabled(id, at)
        self._barred = Barred(self._barred.disabled - {id}, self._barred.deleted | {id})

    def barred(self) -> Barred:
        return self._barred

    def set_stock(self, id: str, stock: Stock) -> None:
        self.rows[id] = replace(self.rows.get(id, Profile(id)), stock=stock)

    def free(self, id: str, jobs: int) -> None:
        if id in self.rows and self.rows[id].stock != Stock():
            self.rows[id] = replace(self.rows[id], freed=self.rows[id].freed + jobs)

    def owner(self, id: str) -> OwnerRecord:
        of_person = [each for each in self.memberships.values() if each.person == id]
        return OwnerRecord(self.profiles([id])[id], self.tallies.get(id, Tally()), of_person)

    def add_to_tally(self, name: str, number: int, now: int) -> Tally:
        self.writes += 1
        known = self.tallies.get(name, Tally(0, now, 0))
        self.tallies[name] = Tally(known.count + number, known.since, known.total + number)
        return self.tallies[name]

    def add_within(self, name: str, number: int, now: int, ceiling: Ceiling, *, restart: bool) -> tuple[bool, Tally]:
        self.writes += 1
        known = self.tallies.get(name, Tally())
        if known.since != ceiling.since or _is_above(known.count, ceiling.count) or _is_above(known.total, ceiling.total):
            return False, known
        begun = restart or not known.since
        self.tallies[name] = Tally(number if begun else known.count + number, now if begun else known.since, known.total + number)
        return True, self.tallies[name]

    def restart_tally(self, name: str, seen: Tally, number: int, now: int) -> bool:
        self.writes += 1
        known = self.tallies.get(name)
        if known is None or known.since != seen.since:
            return False
        self.tallies[name] = Tally(number, now, known.total)
        return True


def _is_above(number: int, most: int | None) -> bool:
    return most is not None and number > most


class MemoryTrail:
    """The audit trail."""

    def __init__(self) -> None:
        self.rows: dict[str, AuditEntry] = {}

    def write(self, entry: AuditEntry) -> None:
        self.rows[entry.id] = entry

    def entries(self, owner: str | None, *, since: int, until: int, after: str | None, limit: int) -> tuple[list[AuditEntry], str | None]:
        return self._page([entry for entry in self.rows.values() if owner in (None, entry.owner)], since, until, after, limit)

    def _page(
        self, entries: list[AuditEntry], since: int, until: int, after: str | None, limit: int
    ) -> tuple[list[AuditEntry], str | None]:
        chosen = [entry for entry in entries if since <= entry.at < until and (after is None or entry.id < after)]
        chosen.sort(key=lambda entry: entry.id, reverse=True)
        return chosen[:limit], chosen[limit - 1].id if len(chosen) > limit else None
