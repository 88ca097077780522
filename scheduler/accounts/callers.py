"""The caller of a request: from the credential of the request to the caller and the caller's present rights.

A process of the API uses each record for at most `quota.FRESH_MS`: the key, the mapping, and the owner's record with role and memberships.
No record is derived from another cached one. So what was revoked, removed or lowered is refused within half a minute everywhere.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from scheduler.accounts import api_keys, people, principals, sessions
from scheduler.accounts.access import Caller, Rights
from scheduler.accounts.quota import FRESH_MS, MANY, QuotaGate
from scheduler.model.account import ApiKey, OwnerKind, Principal, Scope, Subject
from scheduler.model.errors import Forbidden, NotFound, SchedulerError, Unauthorized, Unavailable
from scheduler.storage.cache import Cache
from scheduler.storage.ports import OwnerRecord, Ports

DOUBTED_MS = 1_000  # the most age of a record by which a request or a message is refused
DISABLED = "This account is disabled."
NO_KEY = "The API key is not valid."  # one text for unknown, wrong, expired and revoked ones
UNKNOWN = "unknown"  # the actor of a request with a key that nobody has
NO_ROLE = "This AWS role may not act here."  # one text for unknown ones and for those with several mappings


class Refusal(SchedulerError):
    """The credential of a program is refused. `caller`: whose it is; `key`: the id of an API key that nobody has."""

    def __init__(self, message: str, caller: Caller, key: str | None = None) -> None:
        super().__init__(message)
        self.caller, self.key = caller, key


class NotValid(Refusal, Unauthorized):
    """The credential is wrong or has expired."""


class NotMapped(Refusal, Forbidden):
    """The AWS role may not act."""


class _SignedIn(NamedTuple):
    """A subject, and the name that a new person gets."""

    subject: Subject
    name: str


@dataclass(slots=True)
class Callers:
    """One process's view of the credentials. Every method raises Unavailable if a record was never read and cannot be read now."""

    ports: Ports
    owners: QuotaGate
    _persons: Cache[_SignedIn, str] = field(init=False)
    _keys: Cache[str, ApiKey] = field(init=False)
    _principals: Cache[None, Sequence[Principal]] = field(init=False)

    def __post_init__(self) -> None:
        self._persons = Cache("the person of a subject", self._read_persons, FRESH_MS, most=MANY)
        self._keys = Cache("an API key", self._read_keys, FRESH_MS, most=MANY)
        self._principals = Cache("the principals", lambda keys, now: {None: self.ports.owners.principals()}, FRESH_MS)

    def of_subject(self, subject: Subject, name: str, signed_in_at: int) -> Caller:
        """The person who signed in as this subject (ms). Raises Unauthorized if that session has ended."""
        person = self._persons.get(_SignedIn(subject, name), self.ports.clock.now())
        record = self.owners.record(person)
        sessions.check(record.profile, signed_in_at)
        return Caller(person, record.profile.name or name, person, _rights(record))

    def of_key(self, text: str) -> Caller:
        """The caller with this API key. Raises Unauthorized for a text that is no key, and NotValid for one that is not valid."""
        key = self._key(text)
        now = self.ports.clock.now()
        if key is None:
            raise NotValid(NO_KEY, Caller(UNKNOWN, UNKNOWN, "system"), api_keys.id_of(text))
        maker = self.owners.record(key.maker)
        is_current = key.expires_at is None or now < key.expires_at
        if not (api_keys.matches(key, text) and is_current) or maker.profile.disabled_at is not None or maker.profile.name is None:
            raise NotValid(NO_KEY, Caller(key.maker, key.maker, key.owner, key=key.id))
        if key.used_at is None or now - key.used_at >= api_keys.USE_MS:
            self._note_use(key, now)
        return Caller(key.maker, maker.profile.name, key.owner, _rights(maker), key.scopes, key.id)

    def of_role(self, arn: str) -> Caller:
        """The AWS principal whose verified token has this subject. Raises NotMapped if no mapping, or more than one, fits."""
        try:
            found = principals.by_arn(arn, self.principals())
        except Forbidden:
            found = None
        role = principals.role_of(arn) or arn
        if found is None:
            raise NotMapped(NO_ROLE, Caller(role, role, "system"))
        return Caller(role, role.rpartition("/")[2], found.owner, None, found.scopes)

    def of_template(self, name: str, owner: str, scopes: frozenset[Scope]) -> Caller:
        """The stacks that call the entry `name` of the option `templates`. Raises NotMapped if there is no such owner."""
        caller = Caller(f"template:{name}", name, owner, None, scopes)
        if self.owners.record(owner, DOUBTED_MS).profile.name is None:
            raise NotMapped(f"The entry {name} of the option templates names the owner {owner}, whom the stage does not have.", caller)
        return caller

    def again(self, caller: Caller) -> Caller:
        """The caller by a record that is at most a second old: before a refusal, since the right may be new."""
        if caller.rights is None:
            return caller
        return replace(caller, rights=_rights(self.owners.record(caller.id, DOUBTED_MS)))

    def may_act_for(self, caller: Caller, owner: str) -> None:
        """Raise Forbidden if the caller or the owner is disabled or deleted."""
        for id in dict.fromkeys([caller.id, owner] if caller.rights is not None else [owner]):
            if self.owners.record(id).profile.disabled_at is not None:
                raise Forbidden(DISABLED)

    def principals(self, age_ms: int = FRESH_MS) -> Sequence[Principal]:
        """All mappings of AWS roles, at most `age_ms` old."""
        return self._principals.get(None, self.ports.clock.now(), age_ms)

    def forget_principals(self) -> None:
        """Read the principals again, because this process has just changed one."""
        self._principals.forget(None)

    def forget_key(self, id: str) -> None:
        self._keys.forget(id)

    def _key(self, text: str) -> ApiKey | None:
        if not api_keys.is_well_formed(text):
            raise Unauthorized(NO_KEY)
        try:
            return self._keys.get(api_keys.id_of(text), self.ports.clock.now())
        except NotFound:
            return None

    def _note_use(self, key: ApiKey, now: int) -> None:
        with suppress(Unavailable):
            self.ports.owners.note_key_use(key.id, now)
        self._keys.forget(key.id)

    def _read_persons(self, keys: Sequence[_SignedIn], now: int) -> dict[_SignedIn, str]:
        return {key: people.person_of(key.subject, key.name, self.ports) for key in keys}

    def _read_keys(self, ids: Sequence[str], now: int) -> dict[str, ApiKey]:
        found = {id: self.ports.owners.key(id) for id in ids}
        known = {id: key for id, key in found.items() if key is not None}
        if len(known) < len(found):
            raise NotFound("there is no such API key")  # not kept: a flood of wrong keys must not push out the others
        return known


def _rights(record: OwnerRecord) -> Rights:
    profile = record.profile
    teams = {each.team: each.role for each in record.memberships}
    return Rights(profile.id, profile.highest_role, teams) if profile.kind is OwnerKind.PERSON else Rights(profile.id)
