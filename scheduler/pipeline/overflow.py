"""Hand out the intake: the slots, open at all times, of jobs due too soon for any minute whose owner is above their share.

Like the dispatch of a minute, and in the same flow; but what is to be sent keeps coming, so the slots are read every second, and what
was sent long ago and is still there is rechecked here. It ends when nothing has come for a while; whoever puts a job into the intake
starts it, and the tick does so every minute.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from scheduler.model import slots
from scheduler.model.job import DueEntry, Lane, Unit, UnitKey
from scheduler.model.rules import Rules
from scheduler.pipeline import leftover
from scheduler.pipeline.dispatch import LEASE_MS, Dispatch, DispatchResult, mark
from scheduler.pipeline.reconcile import everything, read, recheck, remaining
from scheduler.storage.ports import Clock, Dispatchers, Jobs, Lanes, Ledger, Orders, TaskGate, Topic, Users

INTAKE = UnitKey(slots.INTAKE, 0)
READ_MS = 1_000
SAME_LOOK_MS = 250  # so long what was read for one lane tells what is outstanding in another
EMPTY_MS = 3_000  # it stays so long after it has seen the last job: the next one needs no start
RECHECK_AGAIN_MS = 10_000  # after a recheck that the table refused

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Intake(Dispatch):
    """One dispatcher at the intake. `run` is its only entry."""

    tasks: TaskGate = field(kw_only=True)  # of jobs that end here: their executor died for the last time
    orders: Orders = field(kw_only=True)
    _read_at: int = 0
    _rechecked_at: int = 0
    _seen_at: int = 0  # the last time that anything was there
    _entries: list[DueEntry] = field(default_factory=list)  # what the last read showed, once it was planned ...
    _marks: set[str] = field(default_factory=set)  # ... and their marks
    _out: dict[str, tuple[DueEntry, int]] = field(default_factory=dict)  # by mark: sent, and still there by the last read; and when

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
            if reads := now - self._read_at >= READ_MS:
                self._read()
            if reads or now - self._rechecked_at >= READ_MS:  # a flood's looks at its lane keep what was read fresh
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
        """What is there now. Thousands may wait here for seconds, so most of it is known, and planned or waiting already."""
        self._read_at = self.clock.now()
        entries = everything(self.unit, self.jobs)
        if entries:
            self._seen_at = self._read_at
        is_known = entries == self._entries
        marks = self._marks if is_known else {*map(mark, entries)}
        self._out = {of: sent for of, sent in self._out.items() if of in marks}
        if is_known:
            return  # each of them has been sent, or is planned
        unsent = marks - self._sent
        self._planned = [item for item in self._planned if item.entry.mark in unsent]
        self._held = [item for item in self._held if item.entry.mark in unsent]
        if new := unsent - {item.entry.mark for item in [*self._planned, *self._held]}:
            self._planned = self._plan([entry for entry in entries if entry.mark in new], self._planned)
        self._entries, self._marks = entries, marks  # last: if planning was refused, the next read plans them

    def _publish(self, entries: Sequence[DueEntry]) -> None:
        Dispatch._publish(self, entries)  # a class with slots is made anew, so `super` would not know it
        now = self.clock.now()
        self._out |= {entry.mark: (entry, now) for entry in entries}

    def _outstanding(self, lane: Lane, until: int) -> int:
        if self.clock.now() - self._read_at >= SAME_LOOK_MS:
            self._read()
        return sum(1 for entry, _ in self._out.values() if entry.lane is lane)

    def _recheck(self) -> None:
        """What was sent long ago and is still there: it runs for long, or was lost. It moves to a minute that looks after it."""
        now = self._rechecked_at = self.clock.now()
        old = [entry for entry, at in self._out.values() if at <= now - leftover.RECHECK_AFTER]
        if not old:
            return
        left = remaining(old, self.jobs)
        ports: dict[str, Any] = {"jobs": self.jobs, "tasks": self.tasks, "orders": self.orders, "lanes": self.lanes}
        recheck(left, **ports, now=now, rules=self.rules, paused=self._watch.paused)
        again = now - leftover.RECHECK_AFTER + RECHECK_AGAIN_MS
        self._out |= {entry.mark: (entry, again) for entry in old}

    def _progress(self) -> int:
        """The due time of the oldest job not sent yet, 0 without one: its lag."""
        return min([item.entry.due_at for item in [*self._planned, *self._held]] + self._flow.first_dues(), default=0)


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
