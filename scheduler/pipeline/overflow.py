"""Hand out the intake: the slots, open at all times, of jobs due too soon for any minute whose owner is above their share.

Like the dispatch of a minute, and in the same flow; but what is to be sent keeps coming, so the slots are read every second, and what
was sent long ago and is still there is rechecked here. It ends when nothing has come for a while; whoever puts a job into the intake
starts it, and the tick does so every minute.
"""

from dataclasses import dataclass, field, replace

from scheduler.model import slots
from scheduler.model.job import DueEntry, Lane, Unit, UnitKey
from scheduler.pipeline import leftover
from scheduler.pipeline.publisher import LEASE_MS, DispatchResult, Publisher, mark
from scheduler.pipeline.reconcile import everything, read, recheck, remaining
from scheduler.storage.ports import Ports

INTAKE = UnitKey(slots.INTAKE, 0)
READ_MS = 1_000
SAME_LOOK_MS = 250  # so long what was read for one lane tells what is outstanding in another
EMPTY_MS = 3_000  # it stays so long after it has seen the last job: the next one needs no start
RECHECK_AGAIN_MS = 10_000  # after a recheck that the table refused


@dataclass(slots=True)
class Intake:
    """One dispatcher at the intake. `run` is its only entry."""

    ports: Ports
    publisher: Publisher = field(init=False)
    _read_at: int = 0
    _rechecked_at: int = 0
    _seen_at: int = 0  # the last time that anything was there
    _entries: list[DueEntry] = field(default_factory=list)  # what the last read showed, once it was planned ...
    _marks: set[str] = field(default_factory=set)  # ... and their marks
    _out: dict[str, tuple[DueEntry, int]] = field(default_factory=dict)  # by mark: sent, and still there by the last read; and when

    @classmethod
    def of(cls, unit: Unit, ports: Ports) -> "Intake":
        """A dispatcher of the intake, which is leased to it."""
        made = cls(ports)
        made.publisher = Publisher(unit, ports, made._outstanding, made._progress)
        return made

    def run(self) -> DispatchResult:
        self._seen_at = self.ports.clock.now()
        while self._hand_out_all():
            if self._leave():
                break
        self.publisher.flow.close()
        return self.publisher.result

    def _hand_out_all(self) -> bool:
        """Until nothing has been there for a while. False: lost the intake, or left it to another dispatcher."""
        clock, publisher = self.ports.clock, self.publisher
        while clock.now() - self._seen_at < EMPTY_MS:
            now = clock.now()
            if not publisher.keep(now):
                return False
            if not publisher.stays(now):
                publisher.leave_to_another()
                return False
            if reads := now - self._read_at >= READ_MS:
                self._read()
            if reads or now - self._rechecked_at >= READ_MS:  # a flood's looks at its lane keep what was read fresh
                self._recheck()
                continue
            published = publisher.go_on(now)
            if published is None:
                clock.sleep_until(max(min([*publisher.wakes(), self._read_at + READ_MS]), now + 1))
            elif published:
                sent_at = clock.now()
                self._out |= {entry.mark: (entry, sent_at) for entry in published}
        return True

    def _leave(self) -> bool:
        """Give the lease back, and look once more: who put a job here meanwhile found it taken. False: go on."""
        clock, publisher = self.ports.clock, self.publisher
        publisher.unit = replace(publisher.unit, progress=0)
        if not publisher.change(replace(publisher.unit, lease_until=0)):
            return True
        clock.sleep_until(clock.now() + READ_MS)
        if not read(publisher.unit, self.ports.jobs):
            return True
        unit = take_lease(self.ports)
        if unit is None:
            return True
        publisher.unit, self._seen_at = unit, clock.now()
        return False

    def _read(self) -> None:
        """What is there now. Thousands may wait here for seconds, so most of it is known, and planned or waiting already."""
        publisher, self._read_at = self.publisher, self.ports.clock.now()
        entries = everything(publisher.unit, self.ports.jobs)
        if entries:
            self._seen_at = self._read_at
        is_known = entries == self._entries
        marks = self._marks if is_known else {*map(mark, entries)}
        self._out = {of: sent for of, sent in self._out.items() if of in marks}
        if is_known:
            return  # each of them has been sent, or is planned
        unsent = marks - publisher.sent
        publisher.planned = [item for item in publisher.planned if item.entry.mark in unsent]
        publisher.held = [item for item in publisher.held if item.entry.mark in unsent]
        if new := unsent - {item.entry.mark for item in [*publisher.planned, *publisher.held]}:
            publisher.plan([entry for entry in entries if entry.mark in new])
        self._entries, self._marks = entries, marks  # last: if planning was refused, the next read plans them

    def _outstanding(self, lane: Lane, until: int) -> int:
        if self.ports.clock.now() - self._read_at >= SAME_LOOK_MS:
            self._read()
        return sum(1 for entry, _ in self._out.values() if entry.lane is lane)

    def _recheck(self) -> None:
        """What was sent long ago and is still there: it runs for long, or was lost. It moves to a minute that looks after it."""
        now = self._rechecked_at = self.ports.clock.now()
        old = [entry for entry, at in self._out.values() if at <= now - leftover.RECHECK_AFTER]
        if not old:
            return
        left = remaining(old, self.ports.jobs)
        recheck(left, self.ports, now=now, paused=self.publisher.watch.paused)
        again = now - leftover.RECHECK_AFTER + RECHECK_AGAIN_MS
        self._out |= {entry.mark: (entry, again) for entry in old}

    def _progress(self) -> int:
        """The due time of the oldest job not sent yet, 0 without one: its lag."""
        waiting = [item.entry.due_at for item in [*self.publisher.planned, *self.publisher.held]]
        return min(waiting + self.publisher.flow.first_dues(), default=0)


def open_intake(ports: Ports, now: int) -> None:
    """Whoever puts jobs into the intake does this first, once: else no tick would look there. Idempotent."""
    ports.ledger.open_unit(Unit(INTAKE, 0, ports.rules.shards - 1, opened_at=now))


def take_lease(ports: Ports) -> Unit | None:
    """The intake, leased to us under a new epoch; None if another dispatcher is at it, or nobody ever opened it."""
    now = ports.clock.now()
    unit = ports.ledger.unit(INTAKE)
    if unit is None or unit.lease_until > now:
        return None
    last = max(unit.last_shard, ports.rules.shards - 1)
    leased = replace(unit, last_shard=last, epoch=unit.epoch + 1, lease_until=now + LEASE_MS)
    return leased if ports.ledger.change_unit(unit, leased) else None


def intake(ports: Ports) -> DispatchResult:
    """Hand out the intake, if nobody else does. Raises Unavailable if a service refuses: the tick starts another one."""
    unit = take_lease(ports)
    return DispatchResult() if unit is None else Intake.of(unit, ports).run()


def start_if_waiting(ports: Ports, now: int) -> bool:
    """Start a dispatcher for the intake if anything is there and nobody is at it: who put it there may have died."""
    unit = ports.ledger.unit(INTAKE)
    if unit is None or unit.lease_until > now:
        return False
    last = max(ports.rules.shards - 1, unit.last_shard)
    if not any(ports.jobs.due(slot)[0] for slot in Unit(INTAKE, 0, last).slots):
        return False
    ports.functions.start_dispatch(INTAKE)
    return True
