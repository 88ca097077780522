"""Quotas: the number of jobs that a user may create per second, and the number that may wait.

No write per job is needed. Each process counts locally and adds to the user's shared tally only in blocks of half a second's worth, so
that it admits at most one block too many. The tally is a bucket that leaks at the allowed rate: an excess must leak out before further
jobs are admitted. Waiting jobs are counted by a query, and only when there could be too many of them since the last count.
"""

import logging
from dataclasses import dataclass, field, replace

from scheduler.accounts.model import Profile, Quotas, Stock, Tally
from scheduler.model.errors import TooMany, Unavailable
from scheduler.storage.ports import Ports

FRESH_MS = 30_000  # how long a process uses a profile that it has read
BURST_S = 10  # seconds' worth of jobs that may be created in a burst
BLOCK_S = 0.5  # seconds' worth of jobs that a process admits before it adds them to the tally
RECOUNT_MS = 60_000  # the shortest time between two counts for a user at the limit; more waiting jobs lengthen it
MANY = 1_000  # users cached per process

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
    """One process's view of its users' quotas. While the table refuses, all jobs are admitted: quotas protect capacity, not secrets."""

    ports: Ports
    _users: dict[str, _Known] = field(default_factory=dict)

    def profile(self, id: str) -> Profile:
        """The profile of a user, read at most half a minute ago; the default one if the table refuses."""
        try:
            return self._known(id, self.ports.clock.now()).profile
        except Unavailable as error:
            log.warning("profile not read; the user is admitted with default quotas", extra={"user_id": id, "error": str(error)})
            return Profile(id)

    def forget(self, id: str) -> None:
        """Drop the cached profile, because this process has just changed it."""
        self._users.pop(id, None)

    def allowed(self, profile: Profile) -> Quotas:
        """The quotas that apply to a user: the user's own, else the deployment's."""
        own, rules = profile.quotas, self.ports.rules
        return Quotas(
            rules.max_jobs or None if own.max_jobs is None else own.max_jobs,
            rules.creates_per_second or None if own.creates_per_second is None else own.creates_per_second,
        )

    def admit(self, id: str, jobs: int) -> None:
        """Raises TooMany if the user may not create this many jobs now. Admitted jobs are counted even if they are not stored."""
        if not jobs:
            return
        now = self.ports.clock.now()
        try:
            self._admit(self._known(id, now), jobs, now)
        except Unavailable as error:
            log.warning("quota not checked; the jobs are admitted", extra={"user_id": id, "error": str(error)})

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
            if above > jobs:  # the bucket was full before these jobs
                _refuse(known, jobs, rule, now, int((above - jobs) / rate * 1000) + 1)
            _close(known, rule, now, int(above / rate * 1000) + 1)
        if most is not None:
            self._check_stock(known, tally, jobs, most, now)

    def _count(self, known: _Known, now: int, rate: float | None) -> Tally:
        """Add to the shared tally. An empty bucket is restarted: no user can save up more than a burst."""
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
        known.profile = self.ports.users.profiles([id])[id]  # another process may have counted in between
        stock = known.profile.stock
        pause = max(RECOUNT_MS, stock.count)
        if _bound(stock, tally, jobs) > most and now - stock.at >= pause:
            stock = Stock(self.ports.jobs.count_ahead(id, now), tally.total - jobs, now)
            self.ports.users.set_stock(id, stock)
            known.profile = replace(known.profile, stock=stock)
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
    known.uncounted -= jobs  # they were counted, and are refused
    _close(known, rule, now, wait_ms)
    raise TooMany(known.rule, known.refused_until - now)


def _close(known: _Known, rule: str, now: int, wait_ms: int) -> None:
    known.refused_until, known.rule = now + max(wait_ms, 1), f"Your quota is used up: {rule}."


def _block(rate: float | None, most: int | None) -> float:
    """The number of jobs that one process admits before it adds them to the tally."""
    if rate is None and most is None:
        return float("inf")
    return max(1, min(float("inf") if rate is None else rate * BLOCK_S, float("inf") if most is None else most / 20))


def _bound(stock: Stock, tally: Tally, jobs: int) -> float:
    """The most jobs that can be waiting: those counted, and those created since, including the requested `jobs`."""
    grown = tally.total - stock.total
    return float("inf") if grown < jobs else stock.count + grown  # fewer than requested: the tally has been restarted
