"""Hand out the intake: the slots, open at all times, of jobs due too soon for any minute whose owner is above their share.

Like the dispatch of a minute, and in the same flow; but what is to be sent keeps coming, so the slots are read every second, and what
was sent long ago and is still there is rechecked here. It ends when nothing has come for a while; whoever puts a job into the intake
starts it, and the tick does so every minute.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from scheduler import recheck as rule
from scheduler import slots
from scheduler.model import DueEntry, Lane, Unit, UnitKey
from scheduler.ports import Clock, Dispatchers, Jobs, Lanes, Ledger, Orders, TaskGate, Topic, Users
from scheduler.records import replace
from scheduler.rules import Rules
from scheduler.services.dispatch import LEASE_MS, Dispatch, DispatchResult
from scheduler.services.recheck import read, recheck, remaining

INTAKE = UnitKey(slots.INTAKE, 0)
READ_MS = 1_000
EMPTY_MS = 3_000  # it stays so long after it has seen the last job: the next one needs no start
RECHECK_AGAIN_MS = 10_000  # after a recheck that the table refused

log = logging.getLogger(__name__)
Mark = tuple[str, int]  # job id, fence


@dataclass(slots=True)
class Intake(Dispatch):
    """One dispatcher at the intake. `run` is its only entry."""

    tasks: TaskGate = field(kw_only=True)  # of jobs that end here: their executor died for the last time
    orders: Orders = field(kw_only=True)
    _there: list[DueEntry] = field(default_factory=list)  # by the last read
    _read_at: int = 0
    _seen_at: int = 0  # the last time that anything was there
    _sent_at: dict[Mark, int] = field(default_factory=dict)

    def run(self) -> DispatchResult:
        self._seen_at = self.clock.now()
        while self._hand_out_all():
            if self._leave():
                break
        self._flow.close()
        return self.result

    def _hand_out_all(self) -> bool:
        """Until nothing has been there for a while. False: lost the intake, or left it to another dispatcher."""
        while self.clock.now() - self._seen_at < EMPTY_MS:
            now = self.clock.now()
            if not self._keep(now):
                return False
            if now >= self._stay_until:
                self._change(replace(self.unit, lease_until=0))
                return False
            if now - self._read_at >= READ_MS:
                self._read()
                self._recheck()
            elif not self._go_on(now):
                self.clock.sleep_until(max(min([*self._wakes(), self._read_at + READ_MS]), now + 1))
        return True

    def _leave(self) -> bool:
        """Give the lease back, and look once more: who put a job here meanwhile found it taken. False: go on."""
        self.unit = replace(self.unit, progress=0)
        if not self._change(replace(self.unit, lease_until=0)):
            return True
        self.clock.sleep_until(self.clock.now() + READ_MS)
        if not read(self.unit, self.jobs):
            return True
        unit = take_lease(self.ledger, self.clock.now(), self.rules)
        if unit is None:
            return True
        self.unit, self._seen_at = unit, self.clock.now()
        return False

    def _read(self) -> None:
        self._read_at = self.clock.now()
        self._there = read(self.unit, self.jobs)
        there = {(entry.key.id, entry.fence) for entry in self._there}
        self._sent_at = {mark: at for mark, at in self._sent_at.items() if mark in there}
        self._planned = [item for item in self._plan(self._there, self._planned) if (item.entry.key.id, item.entry.fence) in there]
        if there:
            self._seen_at = self._read_at

    def _publish(self, entries: Sequence[DueEntry]) -> None:
        Dispatch._publish(self, entries)  # a class with slots is made anew, so `super` would not know it
        self._sent_at |= dict.fromkeys(((entry.key.id, entry.fence) for entry in entries), self.clock.now())

    def _outstanding(self, lane: Lane, until: int) -> int:
        self._read()
        return sum(1 for entry in self._there if entry.lane is lane and (entry.key.id, entry.fence) in self._sent_at)

    def _recheck(self) -> None:
        """What was sent long ago and is still there: it runs for long, or was lost. It moves to a minute that looks after it."""
        now = self.clock.now()
        old = [entry for entry in self._there if self._sent_at.get((entry.key.id, entry.fence), now) <= now - rule.RECHECK_AFTER]
        if not old:
            return
        left = remaining(old, self.jobs)
        ports: dict[str, Any] = {"jobs": self.jobs, "tasks": self.tasks, "orders": self.orders, "lanes": self.lanes}
        recheck(left, **ports, now=now, rules=self.rules, paused=self._watch.paused)
        again = now - rule.RECHECK_AFTER + RECHECK_AGAIN_MS
        self._sent_at |= dict.fromkeys(((entry.key.id, entry.fence) for entry in old), again)

    def _progress(self) -> int:
        """The due time of the oldest job not sent yet, 0 without one: its lag."""
        waits = [item.entry.due_at for item in [*self._planned, *self._held]] + [entry.due_at for entry in self._flow.waiting()]
        return min(waits, default=0)


def open_intake(ledger: Ledger, now: int, rules: Rules) -> None:
    """Whoever puts jobs into the intake does this first, once: else no tick would look there. Idempotent."""
    ledger.open_unit(Unit(INTAKE, 0, rules.shards - 1, opened_at=now))


def take_lease(ledger: Ledger, now: int, rules: Rules) -> Unit | None:
    """The intake, leased to us under a new epoch; None if another dispatcher is at it, or nobody ever opened it."""
    unit = ledger.unit(INTAKE)
    if unit is None or unit.lease_until > now:
        return None
    last = max(unit.last_shard, rules.shards - 1)
    leased = replace(unit, last_shard=last, epoch=unit.epoch + 1, lease_until=now + LEASE_MS)
    return leased if ledger.change_unit(unit, leased) else None


def intake(
    *,
    jobs: Jobs,
    tasks: TaskGate,
    orders: Orders,
    ledger: Ledger,
    topic: Topic,
    lanes: Lanes,
    users: Users,
    clock: Clock,
    rules: Rules,
) -> DispatchResult:
    """Hand out the intake, if nobody else does. Raises Unavailable if a service refuses: the tick starts another one."""
    unit = take_lease(ledger, clock.now(), rules)
    if unit is None:
        return DispatchResult()
    return Intake(unit, jobs, ledger, topic, lanes, users, clock, rules, tasks=tasks, orders=orders).run()


def start_if_waiting(*, jobs: Jobs, ledger: Ledger, dispatchers: Dispatchers, now: int, rules: Rules) -> bool:
    """Start a dispatcher for the intake if anything is there and nobody is at it: who put it there may have died."""
    unit = ledger.unit(INTAKE)
    if unit is None or unit.lease_until > now:
        return False
    last = max(rules.shards - 1, unit.last_shard)
    if not any(jobs.due(slot)[0] for slot in Unit(INTAKE, 0, last).slots):
        return False
    dispatchers.start(INTAKE)
    return True
