"""Clients at the limit of their quotas, in virtual time, with the real quota gate; and the oracles of what is admitted.

    above_rate      a user created notably more jobs than the rate allows
    below_rate      a user who always wanted to create more, and waited as told, created notably fewer
    above_stock     a user had notably more open jobs than `max_jobs`
    below_stock     a user was refused by `max_jobs` with notably fewer open jobs

Processes serve one call or many, calls are smaller and larger than a block, and each call of a table takes its time. The other user creates
jobs up to the limit and cancels them: all, many or one, while processes create others, and runs of tasks that no quota saw.
"""

import math
from collections.abc import Callable
from random import Random
from typing import Any

from lab.world.clock import SimClock
from lab.world.hub import Hub
from scheduler.accounts.quota import BELIEVED, BLOCK_S, BURST_S, QuotaGate
from scheduler.jobs.cancel import cancel, cancel_many
from scheduler.model import ids, lifecycle, slots
from scheduler.model.account import Ceiling, Quotas, Stock, Tally
from scheduler.model.errors import TooMany
from scheduler.model.job import Job
from scheduler.model.rules import Rules
from scheduler.model.spec import JobSpec
from scheduler.storage.memory.accounts import MemoryUsers
from scheduler.storage.memory.ports import MemoryPorts
from scheduler.storage.ports import OwnerRecord
from tests.simulation.world import START, Report

FAST, KEEPS = "fast", "keeps"  # the users at the limit of the rate, and of the stock
MINUTES = 3
TAKES_MS = (1, 15)  # a call of a table
FOREVER = 1 << 30
CHUNK = 50  # jobs that are cancelled at once


class SlowUsers(MemoryUsers):
    """The users table, whose calls take time before they do their work."""

    def __init__(self, hub: Hub, random: Random) -> None:
        super().__init__()
        self._hub, self._random = hub, random

    def owner(self, id: str) -> OwnerRecord:
        return self._later(lambda: MemoryUsers.owner(self, id))

    def add_within(self, name: str, number: int, now: int, ceiling: Ceiling, *, restart: bool) -> tuple[bool, Tally]:
        return self._later(lambda: MemoryUsers.add_within(self, name, number, now, ceiling, restart=restart))

    def set_stock(self, id: str, stock: Stock) -> None:
        self._later(lambda: MemoryUsers.set_stock(self, id, stock))

    def _later(self, call: Callable[[], Any]) -> Any:
        self._hub.sleep_until(self._hub.time + self._random.randint(*TAKES_MS))
        return call()


class Processes:
    """API processes, each replaced after it has served `life` calls."""

    def __init__(self, count: int, life: int, make: Callable[[], QuotaGate], random: Random) -> None:
        self._idle = [(make(), life) for _ in range(count)]
        self._life, self._make, self._random = life, make, random

    def admit(self, user: str, jobs: int) -> None:
        gate, left = self._idle.pop(self._random.randrange(len(self._idle))) if self._idle else (self._make(), self._life)
        try:
            gate.admit(user, jobs)
        finally:
            self._idle.append((gate, left - 1) if left > 1 else (self._make(), self._life))


class QuotaWorld:
    """See the module."""

    def __init__(self, seed: int) -> None:
        self.hub, self.random, self.report = Hub(START), Random(seed), Report(seed)
        users = SlowUsers(self.hub, self.random)
        self.ports = MemoryPorts(SimClock(self.hub, 0), Rules(max_jobs=0, creates_per_second=0), users=users)
        self.end = START + MINUTES * slots.MINUTE
        self.rate, self.most = self.random.choice((2, 100, 1_000)), self.random.choice((5, 60, 1_000))
        users.set_quotas(FAST, Quotas(creates_per_second=self.rate))
        users.set_quotas(KEEPS, Quotas(max_jobs=self.most))
        self.made = self.open = 0
        self._count, life = self.random.choice((2, 20, 50)), self.random.choice((1, 1, 3, 20, FOREVER))
        self._sizes = [max(1, int(self.rate * part)) for part in (0.01, 0.2, 0.6, 1, 5)][: self.random.randint(1, 5)]
        fast = Processes(self._count, life, self._gate, self.random)
        clients = self.random.choice((1, 8))
        for _ in range(clients):
            self.hub.spawn(lambda: self._create_fast(fast, clients), START + self.random.randint(0, 999))
        life = self.random.choice((1, FOREVER))
        block = max(1, self.most // 20)
        self._unsure = 3 * block + (4 * math.sqrt(block * self.most) if life == 1 else 0)  # see `run`
        keeps = Processes(3, life, self._gate, self.random)
        for _ in range(2):
            self.hub.spawn(lambda: self._create_up_to_the_limit(keeps))
        self.hub.spawn(self._cancel)

    def run(self) -> None:
        self.hub.run(self.end)
        seconds = (self.end - START) / 1_000
        block = max(1.0, self.rate * BLOCK_S)
        # Processes of few calls are counted right on average only: the standard deviation of n blocks is at most the root of n.
        slack = max(self._sizes) + 4 * math.sqrt(block * self.rate * seconds)
        if self.made > self.rate * (seconds + BURST_S) + self._count * block + slack:
            self._violation("above_rate", f"{self.made} jobs in {seconds:.0f} s at {self.rate}/s")
        if self.made < self.rate * seconds * 0.9 - slack:
            self._violation("below_rate", f"{self.made} jobs in {seconds:.0f} s at {self.rate}/s")

    def _gate(self) -> QuotaGate:
        return QuotaGate(self.ports, self.begin)

    def begin(self) -> float:
        """The place in its block at which a process begins."""
        return self.random.random()

    def _create_fast(self, processes: Processes, clients: int) -> None:
        """Always try to create five times as many jobs as allowed, and wait as told after a refusal."""
        while True:
            size = self.random.choice(self._sizes)
            try:
                processes.admit(FAST, size)
                self.made += size
                wait = size * 1_000 * clients // (5 * self.rate)
            except TooMany as refused:
                wait = refused.retry_after_ms
            self.hub.sleep_until(self.hub.time + max(wait, 1))

    def _create_up_to_the_limit(self, processes: Processes) -> None:
        size = self.random.choice((1, max(1, self.most // 10)))
        slack = self._unsure + 2 * size
        while True:
            before = self.open
            try:
                processes.admit(KEEPS, size)
                self._put(size)
                if self.open > self.most + max(BELIEVED, self.most // 20) + slack:
                    self._violation("above_stock", f"{self.open} open jobs of {self.most}")
            except TooMany:
                if max(before, self.open) + size <= self.most * 0.9 - slack:
                    self._violation("below_stock", f"{self.open} open jobs of {self.most}")
                self.hub.sleep_until(self.hub.time + self.random.choice((500, 5_000)))
            self.hub.sleep_until(self.hub.time + 60_000 * size // self.most // 10 + 1)

    def _cancel(self) -> None:
        """Cancel all jobs, some or one again and again. Sometimes runs of tasks were stored before, which no quota saw."""
        while True:
            self.hub.sleep_until(self.hub.time + self.random.choice((3_000, 20_000)))
            if self.open > self.most * 0.9 and self.random.random() < 0.3:
                self._put(self.most // 20)
            jobs = [job for job in self.ports.jobs.rows.values() if job.owner == KEEPS and lifecycle.is_open(job)]
            chosen = jobs[: self.random.choice((1, len(jobs) // 3, len(jobs), len(jobs)))]
            for first in range(0, len(chosen), CHUNK):
                chunk = chosen[first : first + CHUNK]
                if len(chunk) == 1:
                    cancel(chunk[0].key, self.ports)
                else:
                    cancel_many(chunk, self.ports)
                self.open -= len(chunk)
                self.hub.sleep_until(self.hub.time + self.random.randint(1, 100))

    def _put(self, count: int) -> None:
        at = self.hub.time + 60 * slots.MINUTE
        for _ in range(count):
            id = ids.new(at, self.random.getrandbits(ids.RANDOM_BITS))
            slot = slots.place(at, self.hub.time, id, 2).slot
            self.ports.jobs.put(Job(KEEPS, id, JobSpec("log", {}), at, at, self.hub.time, slot))
        self.open += count

    def _violation(self, kind: str, text: str) -> None:
        self.report.violations[kind] += 1
        self.report.examples.append(f"{kind}: {text}")


def at_the_quota(seed: int) -> QuotaWorld:
    """Run a world of this kind."""
    world = QuotaWorld(seed)
    world.run()
    return world
