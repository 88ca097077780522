"""The ports of accounts in memory."""

import itertools
from collections.abc import Sequence
from dataclasses import replace

from scheduler.model.account import Ceiling, Membership, Profile, Quotas, Stock, Tally
from scheduler.model.audit import AuditEntry
from scheduler.model.errors import Conflict, Invalid
from scheduler.storage.ports import Barred, OwnerRecord

SHORTEST = 12  # letters of a password


class MemoryIdentity:
    """The accounts of the user pool and their passwords, by their subjects. Tests that sign in bring their own sign-in."""

    def __init__(self) -> None:
        self.rows: dict[str, str] = {}  # user names
        self.passwords: dict[str, str] = {}
        self.disabled: set[str] = set()
        self.signed_out: list[str] = []
        self._numbers = itertools.count(1)

    def create(self, username: str, password: str) -> str:
        if any(known.casefold() == username.casefold() for known in self.rows.values()):
            raise Conflict("this user name is taken")
        _check(password)
        account = f"00000000-0000-4000-8000-{next(self._numbers):012d}"
        self.rows[account], self.passwords[account] = username, password
        return account

    def set_enabled(self, account: str, enabled: bool) -> None:
        (self.disabled.discard if enabled else self.disabled.add)(account)

    def delete(self, account: str) -> None:
        self.rows.pop(account, None)
        self.passwords.pop(account, None)

    def set_password(self, account: str, password: str) -> None:
        _check(password)
        self.passwords[account] = password

    def sign_out(self, account: str) -> None:
        self.signed_out.append(account)


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
