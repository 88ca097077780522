"""Users: the scheduler's own records, the identity provider, and the audit trail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:  # hot functions do not load these records
    from scheduler.model.account import Ceiling, Membership, Profile, Quotas, Stock, Tally
    from scheduler.model.audit import AuditEntry


class Barred(NamedTuple):
    """The users whose jobs do not run: those of disabled users wait, those of deleted users are cancelled."""

    disabled: frozenset[str] = frozenset()
    deleted: frozenset[str] = frozenset()


class OwnerRecord(NamedTuple):
    """All that a process reads of an owner at once. `memberships`: of a person, the teams."""

    profile: Profile
    tally: Tally
    memberships: Sequence[Membership] = ()


class Users(Protocol):
    """The scheduler's own records of users: weights, quotas, states; and tallies, counts by name that many processes share."""

    def weights(self, ids: Sequence[str]) -> dict[str, float]:
        """Return the fair-share weights of these users. Users without a weight are omitted (they get `fair_queue.DEFAULT_WEIGHT`)."""

    def set_weight(self, id: str, weight: float) -> None:
        """Store the weight of a user. It applies within a minute, to jobs stored already as well."""

    def profiles(self, ids: Sequence[str]) -> dict[str, Profile]:
        """Return a profile for each of these users; a user without a record gets the defaults."""

    def set_quotas(self, id: str, quotas: Quotas) -> None:
        """Store the quotas of a user; None in a quota removes it.

        Other fields of the profile are unchanged.
        """

    def set_disabled(self, id: str, at: int | None) -> None:
        """Store the instant at which a user was disabled; None: the user is enabled. `barred` lists the user from then on, or no longer.

        Idempotent. A refusal may leave one of the two done.
        """

    def set_sessions_since(self, id: str, at: int) -> None:
        """Store the instant before which all sessions of the user began that have ended. Idempotent."""

    def delete(self, id: str, at: int) -> None:
        """Note that a user was deleted at this instant: the profile is disabled, and `barred` lists the user as deleted. Idempotent."""

    def barred(self) -> Barred:
        """Return the users whose jobs do not run, from one item that has them all (strongly consistent)."""

    def set_stock(self, id: str, stock: Stock) -> None:
        """Store a user's latest count of open jobs."""

    def free(self, id: str, jobs: int) -> None:
        """Add to the `freed` of a user's profile, if a count of the user's jobs is stored; else nothing is stored. Not idempotent."""

    def owner(self, id: str) -> OwnerRecord:
        """Return the profile of an owner, the tally of the same name (`Tally()` if none is stored) and the teams (strongly consistent)."""

    def add_to_tally(self, name: str, number: int, now: int) -> Tally:
        """Add `number` to a tally, creating it if necessary, and return the tally after that. Atomic, not idempotent.

        A tally that nothing was added to for a month expires: the next call creates it again.
        """

    def add_within(self, name: str, number: int, now: int, ceiling: Ceiling, *, restart: bool) -> tuple[bool, Tally]:
        """Add `number` to a tally if it is within the ceiling; with `restart` its count begins again at `number`, since `now`.

        Return whether it was added, and the tally after that: `Tally()` if none is stored. Atomic, not idempotent; expires as above.
        """

    def restart_tally(self, name: str, seen: Tally, number: int, now: int) -> bool:
        """Set the count of a tally to `number`, counted since `now`, if it still counts since `seen.since`; `total` is unchanged.

        False if another process restarted it, or if it does not exist.
        """


class Identity(Protocol):
    """The identity provider (a Cognito user pool): accounts with a password, second factors, sessions, and single sign-on.

    An account is named by its `subject`, which the pool chose. User names are compared without regard to case.
    """

    def login(self, username: str, password: str) -> Session | Challenge:
        """Sign in. Raises Unauthorized for a wrong name or password, without revealing which of them."""

    def answer_challenge(self, challenge: Challenge, code: str) -> Session:
        """Complete a sign-in with a code of the second factor. Raises Unauthorized for a wrong code and for an expired challenge."""

    def refresh(self, refresh_token: str) -> Session:
        """Return a session with a new token. Raises Unauthorized for an invalid or expired refresh token."""

    def revoke(self, refresh_token: str) -> None:
        """End the session of a refresh token. Idempotent. Raises Unauthorized for a text that is none."""

    def exchange(self, code: str, verifier: str, redirect_uri: str) -> tuple[Session, IdpClaims]:
        """Return the session and the claims of a single sign-on, for the code that the browser brought back.

        Raises Unauthorized for a code or a verifier that is wrong, used or expired, and NotFound if the stage has no single sign-on.
        """

    def check_password(self, username: str, password: str) -> bool:
        """Return whether this is the password of the account, which can sign in. No session remains."""

    def user(self, token: str, now: int) -> User:
        """Return the user of an access token. Raises Unauthorized for an invalid or expired token.

        No authorizer has checked the token. The check calls the identity provider at most once a minute, so that a flood of tokens
        uses up no quota.
        """

    def begin_totp(self, username: str, password: str) -> str:
        """Return a new secret for one-time codes, in base32. It applies once a code has confirmed it.

        Raises Invalid naming `current_password` if it is wrong, and Conflict if the account has a second factor.
        """

    def confirm_totp(self, username: str, password: str, code: str) -> None:
        """Switch the second factor on. Raises as `begin_totp`, and Invalid naming `code` if it is not a code of the secret."""

    def has_totp(self, subject: str) -> bool:
        """Return whether the account has a second factor; False if there is no such account."""

    def remove_totp(self, subject: str) -> None:
        """Switch the second factor off. Idempotent. Raises NotFound."""

    def create(self, username: str, password: str) -> str:
        """Create an account that can sign in; return its subject.

        Raises Conflict if the name is taken or has the form of a name of single sign-on, and Invalid if the policy refuses the password.
        A refused account leaves nothing behind: its user name stays free.
        """

    def set_enabled(self, subject: str, enabled: bool) -> None:
        """Enable or disable an account. A disabled account can neither sign in nor refresh."""

    def delete(self, subject: str) -> None:
        """Delete an account, by its subject or its user name, which is free again. Idempotent."""

    def set_password(self, subject: str, password: str) -> None:
        """Set a permanent password. Raises Invalid if the policy refuses it."""

    def sign_out(self, subject: str) -> None:
        """Revoke all refresh tokens of an account. Access tokens stay valid for the gateway until they expire. Raises NotFound."""


@dataclass(frozen=True, slots=True)
class User:
    """A user who has signed in. The weight is not in the token: `accounts.login` adds it from the users table."""

    id: str  # the subject of the account
    username: str  # of the pool; of single sign-on: `<provider>_<subject at the provider>`
    job_weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Session:
    """The tokens of a user who has signed in. `expire` is the instant (ms) at which `token` expires."""

    token: str = field(repr=False)
    expire: int
    refresh_token: str | None = field(default=None, repr=False)
    user: User | None = None


@dataclass(frozen=True, slots=True)
class Challenge:
    """A sign-in whose password was right, and which needs a code of the second factor."""

    username: str  # as the identity provider names the account
    session: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class IdpClaims:
    """The statements of the identity provider about a person at a single sign-on.

    `groups`: None if the provider sent no claim about groups. The e-mail address is for display, never for finding a person.
    """

    provider: str
    subject: str  # in small letters: the pool does not distinguish case
    groups: frozenset[str] | None = None
    name: str = ""
    email: str = ""
    email_verified: bool = False


class Trail(Protocol):
    """The audit trail. An entry expires after `model.audit.KEPT_DAYS`."""

    def write(self, entry: AuditEntry) -> None:
        """Store an entry, over an earlier one of the same id: an entry is written when its request begins and when it ends."""

    def entries(self, owner: str | None, *, since: int, until: int, after: str | None, limit: int) -> tuple[list[AuditEntry], str | None]:
        """Return a page of entries with `since <= at < until`, newest first, beyond the id `after`, and the cursor of the next page.

        The cursor is the id of the page's last entry. `owner`: entries about this owner's objects; None: all entries, eventually
        consistent.
        """
