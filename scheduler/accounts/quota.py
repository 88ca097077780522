"""Quotas: the number of jobs that a user may create per second, and the number that may be open.

No write per job is needed. Each process counts locally and adds to the user's shared tally only in blocks of half a second's worth, so
that it admits at most one block too many. It begins at a random place in its block: so processes that end before a block is full are
counted right on average. The tally is a bucket that leaks at the allowed rate: an excess must leak out before further jobs are admitted.
It is written under the condition that the jobs fit, so refused jobs are counted nowhere.

Open jobs are counted by a query, and only when there could be too many of them since the last count. Cancelled jobs leave the stock at
once: `jobs.stock.free` adds them up. The last count may not have contained them, so after many cancels the jobs are counted again.
"""

import logging
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from scheduler.model.account import Ceiling, Membership, Profile, Quotas, Stock, Tally
from scheduler.model.errors import TooMany, Unavailable
from scheduler.storage.cache import Cache
from scheduler.storage.ports import OwnerRecord, Ports

FRESH_MS = 30_000  # how long a process uses a profile that it has read
BURST_S = 10  # seconds' worth of jobs that may be created in a burst
BLOCK_S = 0.5  # seconds' worth of jobs that a process admits before it adds them to the tally
RECOUNT_MS = 60_000  # the shortest time between two counts for a user at the limit; more open jobs lengthen it
BELIEVED = 50  # freed jobs that leave the stock without another count, or a twentieth of the limit if that is more
MANY = 1_000  # users cached per process
TRIES = 5  # to add to a tally that other processes restart

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Known:
    profile: Profile
    tally: Tally  # as this process last saw it
    uncounted: int  # jobs that this process has admitted since its last block
    memberships: Sequence[Membership] = ()


@dataclass(slots=True)
class QuotaGate:
    """One process's view of its users' quotas. While the table refuses, all jobs are admitted: quotas protect capacity, not secrets.

    `random` returns a number from 0 to below 1.
    """

    ports: Ports
    random: Callable[[], float] = random.random
    _users: Cache[str, _Known] = field(init=False)

    def __post_init__(self) -> None:
        self._users = Cache("the profile of a user", self._read, FRESH_MS, most=MANY)

    def profile(self, id: str) -> Profile:
        """The profile of a user, read at most half a minute ago. While the table refuses, the last one read, else the default one."""
        try:
            return self._users.get(id, self.ports.clock.now()).profile
        except Unavailable as error:
            log.warning("profile not read; the user is admitted with default quotas", extra={"user_id": id, "error": str(error)})
            return Profile(id)

    def record(self, id: str, age_ms: int = FRESH_MS) -> OwnerRecord:
        """The record of an owner, at most `age_ms` old. Raises Unavailable if it was never read and cannot be read now."""
        known = self._users.get(id, self.ports.clock.now(), age_ms)
        return OwnerRecord(known.profile, known.tally, known.memberships)

    def forget(self, id: str) -> None:
        """Read the profile again, because this process has just changed it."""
        self._users.forget(id)

    def allowed(self, profile: Profile) -> Quotas:
        """The quotas that apply to a user: the user's own, else the deployment's."""
        own, rules = profile.quotas, self.ports.rules
        return Quotas(
            rules.max_jobs or None if own.max_jobs is None else own.max_jobs,
            rules.creates_per_second or None if own.creates_per_second is None else own.creates_per_second,
        )

    def within_rate(self, id: str, rate: int) -> int:
        """The rate (jobs per second), or the user's own create rate if that is lower."""
        allowed = self.allowed(self.profile(id)).creates_per_second
        return rate if allowed is None else max(1, min(rate, int(allowed)))

    def admit(self, id: str, jobs: int) -> None:
        """Raises TooMany if the user may not create this many jobs now. Admitted jobs are counted even if they are not stored."""
        if not jobs:
            return
        now = self.ports.clock.now()
        try:
            self._admit(self._users.get(id, now), jobs, now)
        except Unavailable as error:
            log.warning("quota not checked; the jobs are admitted", extra={"user_id": id, "error": str(error)})

    def _admit(self, known: _Known, jobs: int, now: int) -> None:
        quotas = self.allowed(known.profile)
        rate, most, block = quotas.creates_per_second, quotas.max_jobs, _block(quotas)
        if block is None:
            return
        # Smaller calls are seldom written, and each write stands for others. So all are admitted by what this process knows.
        whole = jobs >= block
        for tries in range(TRIES):
            if rate is not None and (whole or not tries):
                _check_rate(known.tally, rate, now)
            if most is not None:
                self._check_stock(known, jobs, most, now)
            blocks = (known.uncounted + jobs) // block * block
            total = None if most is None else known.tally.total + most - math.ceil(_bound(known, jobs, most))
            if not blocks or self._add(known, blocks, rate, total, now, limited=whole):
                known.uncounted += jobs - blocks
                return
        raise Unavailable("other processes keep changing the tally")

    def _add(self, known: _Known, blocks: int, rate: float | None, total: int | None, now: int, *, limited: bool) -> bool:
        """Add to the shared tally up to this total and, if `limited`, up to the rate.

        An empty bucket is restarted: no user saves up more than a burst.
        """
        seen, count, empty = known.tally, None, False
        if rate is not None:
            empty = seen.level(now, rate) <= 0
            count = _count_at(0 if empty else rate * BURST_S, seen, rate, now) if empty or limited else None
        added, known.tally = self.ports.users.add_within(known.profile.id, blocks, now, Ceiling(seen.since, count, total), restart=empty)
        return added

    def _check_stock(self, known: _Known, jobs: int, most: int, now: int) -> None:
        if _bound(known, jobs, most) <= most:
            return
        id = known.profile.id
        known.profile, known.tally, known.memberships = self.ports.users.owner(id)  # another process may have counted, or freed jobs
        if _bound(known, jobs, most) <= most:
            return
        if now >= known.profile.stock.at + _pause(known.profile.stock) or _freed(known.profile) > _believed(most):
            stock = Stock(self.ports.jobs.count_ahead(id, now), known.tally.total, now, known.profile.freed)
            self.ports.users.set_stock(id, stock)
            known.profile = replace(known.profile, stock=stock)
            if _bound(known, jobs, most) <= most:
                return
        stock = known.profile.stock
        raise _refusal(f"max_jobs: at most {most:,} jobs may be open", stock.at + _pause(stock) - now)

    def _read(self, ids: Sequence[str], now: int) -> dict[str, _Known]:
        return {id: self._read_one(id) for id in ids}

    def _read_one(self, id: str) -> _Known:
        profile, tally, memberships = self.ports.users.owner(id)
        before = self._users.peek(id)
        uncounted = int(self.random() * (_block(self.allowed(profile)) or 0)) if before is None else before.uncounted
        return _Known(profile, tally, uncounted, memberships)


def _check_rate(tally: Tally, rate: float, now: int) -> None:
    """Raise TooMany if the bucket is full. Jobs that make it overflow are admitted, and the excess leaks out before others are."""
    above = round(tally.level(now, rate) - rate * BURST_S, 6)
    if above > 0:
        raise _refusal(f"creates_per_second: at most {rate:g} jobs a second", math.ceil(above / rate * 1000))


def _count_at(level: float, tally: Tally, rate: float, now: int) -> int:
    """The count of the tally at which its level is this."""
    return math.floor(level + rate * max(now - tally.since, 0) / 1000 + 1e-6)


def _refusal(rule: str, wait_ms: int) -> TooMany:
    return TooMany(f"Your quota is used up: {rule}.", max(wait_ms, 1))


def _block(quotas: Quotas) -> int | None:
    """The number of jobs that one process admits before it adds them to the tally. None: there is nothing to count."""
    rate, most = quotas.creates_per_second, quotas.max_jobs
    sizes = ([] if rate is None else [rate * BLOCK_S]) + ([] if most is None else [most / 20])
    return max(1, int(min(sizes))) if sizes else None


def _bound(known: _Known, jobs: int, most: int) -> float:
    """The most jobs that can be open: those counted, those created since, and the requested `jobs`; without those that were freed."""
    stock, grown = known.profile.stock, known.tally.total - known.profile.stock.total
    if grown < 0:  # the tally has expired and begun again
        return math.inf
    return stock.count + grown + jobs - min(_freed(known.profile), _believed(most))


def _freed(profile: Profile) -> int:
    return profile.freed - profile.stock.freed


def _believed(most: int) -> int:
    return max(most // 20, BELIEVED)


def _pause(stock: Stock) -> int:
    """The time after a count until the next one (ms)."""
    return max(RECOUNT_MS, stock.count)
