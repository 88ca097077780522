"""Quotas: how many jobs a user may create a second, and have waiting.

Nothing is written per job. A process counts for itself and tells the user's tally only in blocks of half a second's worth, so that it
lets at most one block pass before it knows. The tally is a bucket that leaks at the allowed rate: what was let pass beyond it is paid
back before anything else is. Waiting jobs are counted by a query, and only when they could have become too many since the last count.
"""

import logging
from dataclasses import dataclass, field

from scheduler.accounts.model import Profile, Quotas, Stock, Tally
from scheduler.model.errors import TooMany, Unavailable
from scheduler.storage.ports import Ports

FRESH_MS = 30_000  # how long what is known of a user is taken for true
BURST_S = 10  # so many seconds' worth may come at once
BLOCK_S = 0.5  # so many seconds' worth are let pass uncounted
RECOUNT_MS = 60_000  # who is at the limit is counted no more often; the more there is to count, the less often
MANY = 1_000  # users remembered

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Known:
    profile: Profile
    read_at: int
    uncounted: int = 0
    refused_until: int = 0
    rule: str = ""  # which quota refused


@dataclass(slots=True)
class QuotaGate:
    """One process's view of its users' quotas. While the table refuses, everybody is let in: quotas guard the rest, not secrets."""

    ports: Ports
    _users: dict[str, _Known] = field(default_factory=dict)

    def profile(self, id: str) -> Profile:
        """What is kept of a user, as read half a minute ago at most."""
        try:
            return self._known(id, self.ports.clock.now()).profile
        except Unavailable as error:
            log.warning("a user cannot be looked up", extra={"user_id": id, "error": str(error)})
            return Profile(id)

    def forget(self, id: str) -> None:
        """It was changed just now, by this process."""
        self._users.pop(id, None)

    def allowed(self, profile: Profile) -> Quotas:
        """Those that hold for a user."""
        own, rules = profile.quotas, self.ports.rules
        return Quotas(
            rules.max_jobs or None if own.max_jobs is None else own.max_jobs,
            rules.creates_per_second or None if own.creates_per_second is None else own.creates_per_second,
        )

    def admit(self, id: str, jobs: int) -> None:
        """Raises TooMany if the user may not create so many now. What is let in counts, whatever becomes of it."""
        if not jobs:
            return
        now = self.ports.clock.now()
        try:
            self._admit(self._known(id, now), jobs, now)
        except Unavailable as error:
            log.warning("quotas cannot be looked at", extra={"user_id": id, "error": str(error)})

    def _admit(self, known: _Known, jobs: int, now: int) -> None:
        if now < known.refused_until:
            raise TooMany(known.rule, known.refused_until - now)
        quotas = self.allowed(known.profile)
        rate, most = quotas.creates_per_second, quotas.max_jobs
        known.uncounted += jobs
        if known.uncounted < _block(rate, most):
            return
        tally = self._count(known, now, rate)
        if rate is not None and (above := tally.level(now, rate) - rate * BURST_S) > 0:
            rule = f"creates_per_second: at most {rate:g} jobs a second"
            if above > jobs:  # it was full before these came
                _refuse(known, jobs, rule, now, int((above - jobs) / rate * 1000) + 1)
            _close(known, rule, now, int(above / rate * 1000) + 1)
        if most is not None:
            self._check_stock(known, tally, jobs, most, now)

    def _count(self, known: _Known, now: int, rate: float | None) -> Tally:
        """Tell the shared tally. A bucket that has run dry starts anew: nobody saves up for more than a burst."""
        name, number = known.profile.id, known.uncounted
        tally = self.ports.users.add_to_tally(name, number, now)
        known.uncounted = 0
        if rate is not None and tally.level(now, rate) < number and self.ports.users.restart_tally(name, tally, number, now):
            return Tally(number, now, tally.total)
        return tally

    def _check_stock(self, known: _Known, tally: Tally, jobs: int, most: int, now: int) -> None:
        if _bound(known.profile.stock, tally, jobs) <= most:
            return
        id = known.profile.id
        known.profile = self.ports.users.profiles([id])[id]  # another process may have counted meanwhile
        stock = known.profile.stock
        pause = max(RECOUNT_MS, stock.count)
        if _bound(stock, tally, jobs) > most and now - stock.at >= pause:
            stock = Stock(self.ports.jobs.count_ahead(id, now), tally.total - jobs, now)
            self.ports.users.set_stock(id, stock)
            known.profile = Profile(id, known.profile.quotas, known.profile.disabled_at, stock)
        if _bound(stock, tally, jobs) > most:
            _refuse(known, jobs, f"max_jobs: at most {most:,} jobs may wait for their time", now, stock.at + pause - now)

    def _known(self, id: str, now: int) -> _Known:
        known = self._users.get(id)
        if known is None or now - known.read_at >= FRESH_MS:
            profile = self.ports.users.profiles([id])[id]
            if known is None:
                if len(self._users) >= MANY:
                    self._users.pop(next(iter(self._users)))
                known = self._users[id] = _Known(profile, now)
            known.profile, known.read_at = profile, now
        return known


def _refuse(known: _Known, jobs: int, rule: str, now: int, wait_ms: int) -> None:
    known.uncounted -= jobs  # they were counted and do not come
    _close(known, rule, now, wait_ms)
    raise TooMany(known.rule, known.refused_until - now)


def _close(known: _Known, rule: str, now: int, wait_ms: int) -> None:
    known.refused_until, known.rule = now + max(wait_ms, 1), f"Your quota is used up: {rule}."


def _block(rate: float | None, most: int | None) -> float:
    """How many jobs one process lets pass before it tells the tally."""
    if rate is None and most is None:
        return float("inf")
    return max(1, min(float("inf") if rate is None else rate * BLOCK_S, float("inf") if most is None else most / 20))


def _bound(stock: Stock, tally: Tally, jobs: int) -> float:
    """No more can be waiting than were counted and have come since, with those `jobs` that are asked for."""
    grown = tally.total - stock.total
    return float("inf") if grown < jobs else stock.count + grown  # fewer than asked for: the tally has begun anew
