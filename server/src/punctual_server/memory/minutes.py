"""The rounds of a stage in memory: tick and plan at each minute, or only at those at which they have something to do.

The tables are in memory and their indexes do not lag. So the work is known: a minute with jobs, a task that is due for a top-up, a unit
that is late, jobs that wait in the overflow or a room. All other minutes are left out. The ledger's cursors pass them, and the units of
empty minutes are never opened. A new job cannot be in such a minute: its slot begins `HORIZON` later or more.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from lab.world.hub import Hub
from scheduler.model import slots
from scheduler.model.job import DueEntry, Job, JobKey, Lane, TaskKey
from scheduler.model.slots import MINUTE
from scheduler.pipeline.tick import tick
from scheduler.storage.memory.ports import MemoryPorts
from scheduler.storage.memory.stores import MemoryJobs
from scheduler.storage.memory.tasks import MemoryReceipts, MemoryTasks
from scheduler.tasks.plan import plan

OPENED_MS = 3 * MINUTE  # a minute is opened this long before its start: a tick opens those that begin within `OPEN_AHEAD`
LATE_MS = 3 * MINUTE  # a unit that is open this long after its minute began needs ticks
LONGEST_MS = 86_400_000  # between two rounds


class CountedJobs(MemoryJobs):
    """The jobs table, which knows the minutes that have jobs. `placed` receives each minute that gets one."""

    def __init__(self, placed: Callable[[str], None]) -> None:
        super().__init__()
        self.minutes: Counter[str] = Counter()
        self._placed = placed

    def _reindex(self, before: Job | None, new: DueEntry | None) -> None:
        if before is not None and before.slot is not None and before.key in (shown := self._index[before.slot]).by_key:
            shown.drop(before.key)
            self._left(before.slot, before.key)
        if new is not None:
            self._index[new.slot].show(new)
            minute = self._minute(new.slot)
            self.minutes[minute] += 1
            self._placed(minute)

    def _left(self, slot: str, key: JobKey) -> None:
        if not self._index[slot].by_key:
            del self._index[slot]
        minute = self._minute(slot)
        self.minutes[minute] -= 1
        if not self.minutes[minute]:
            del self.minutes[minute]

    @staticmethod
    def _minute(slot: str) -> str:
        """The minute of a slot; empty for one that has none."""
        return "" if slots.is_always_open(slot) or slots.is_queued(slot) else slots.minute(slot)

    def due(self, slot: str, *, since: int = 0, after: str | None = None) -> tuple[list[DueEntry], str | None]:
        return super().due(slot, since=since, after=after) if slot in self._index else ([], None)

    def count(self, slots: object, lane: Lane, *, since: int, until: int) -> int:
        known = [slot for slot in slots if slot in self._index]  # type: ignore[attr-defined]
        return super().count(known, lane, since=since, until=until)


class CountedTasks(MemoryTasks):
    """The tasks table. `placed` receives each minute in which a task is due for a top-up."""

    def __init__(self, jobs: MemoryJobs, receipts: MemoryReceipts, placed: Callable[[str], None]) -> None:
        super().__init__(jobs, receipts)
        self._placed = placed

    def _show(self, key: TaskKey, slot: str | None) -> None:
        super()._show(key, slot)
        if slot is not None:
            self._placed(slots.minute(slot))

    def first(self) -> str | None:
        """The first minute in which a task is due."""
        return slots.minute(min(self._index.values())) if self._index else None


class Minutes:
    """Calls tick and plan on the hub. With `skips` only at the minutes that need them."""

    def __init__(self, hub: Hub, *, skips: bool) -> None:
        self._hub, self._skips = hub, skips
        self._ports: MemoryPorts | None = None
        self._at = 0  # of the next round
        self._visited_at = 0  # of the last round
        self._is_required = True  # a round at the next minute, even if nothing is due
        self.rounds = 0

    def start(self, ports: MemoryPorts) -> None:
        self._ports = ports
        self._schedule(self._hub.time)

    def job_placed(self, minute: str) -> None:
        """A job is in a slot of this minute; empty: in one that has no minute."""
        self._wake(slots.start_of(minute) - OPENED_MS if minute else 0)

    def task_placed(self, minute: str) -> None:
        self._wake(slots.start_of(minute))

    def refresh(self) -> None:
        """Make a round at the next minute: a request has changed something."""
        self._is_required = True
        self._wake(0)

    def _wake(self, at: int) -> None:
        if self._ports is not None and (at := max(at, self._following())) < self._at:
            self._schedule(at)

    def _following(self) -> int:
        return self._hub.time - self._hub.time % MINUTE + MINUTE

    def _schedule(self, at: int) -> None:
        self._at = at
        self._hub.at(at, lambda: self._visit(at))

    def _visit(self, at: int) -> None:
        if at != self._at or self._ports is None:
            return  # an earlier one replaced it
        if self._skips:
            if not self._is_required and (due := self._due(self._ports)) > at:
                return self._schedule(max(due, self._following()))
            self._pass_empty(self._ports)
        self.rounds += 1
        self._visited_at, self._is_required = at, False
        self._hub.spawn(lambda: self._minute(self._ports))  # type: ignore[arg-type]

    def _minute(self, ports: MemoryPorts) -> None:
        tick(ports)
        if not self._skips or self._is_planned(ports):
            plan(ports)
        self._schedule(max(self._due(ports), self._following()) if self._skips else self._following())

    def _pass_empty(self, ports: MemoryPorts) -> None:
        """Let the ledger's cursors pass the minutes without jobs, and those without a task to top up."""
        now, jobs, tasks, cursor = self._hub.time, self._jobs(ports), self._tasks(ports), ports.ledger.cursor()
        if cursor is not None:
            opened = slots.following(slots.minute_of(now + slots.OPEN_AHEAD))
            to = min([opened, *(minute for minute in jobs.minutes if minute >= cursor.minute)])
            if to > cursor.minute:
                ports.ledger.advance(cursor, replace(cursor, minute=to, epoch=cursor.epoch + 1))
        planned = ports.ledger.plan_cursor()
        if planned is not None:
            to = min(filter(None, (tasks.first(), slots.minute_of(now))))
            if to > planned:
                ports.ledger.set_plan_cursor(planned, to)

    def _is_planned(self, ports: MemoryPorts) -> bool:
        first = self._tasks(ports).first()
        return ports.ledger.plan_cursor() is None or (first is not None and first <= slots.minute_of(self._hub.time))

    def _due(self, ports: MemoryPorts) -> int:
        """Return when tick or plan has something to do, possibly in the past."""
        now, jobs = self._hub.time, self._jobs(ports)
        cursor, first = ports.ledger.cursor(), self._tasks(ports).first()
        if "" in jobs.minutes or cursor is None or ports.operations.running():
            return now
        at = [self._visited_at + LONGEST_MS]
        at += [slots.start_of(first)] if first is not None else []
        at += [slots.start_of(unit.key.minute) + LATE_MS for unit in ports.ledger.open_units()]
        if jobs.minutes:
            ahead = [minute for minute in jobs.minutes if minute >= cursor.minute]
            at += [slots.start_of(min(ahead)) - OPENED_MS] if ahead else []
            at += [slots.start_of(min(jobs.minutes)) + LATE_MS]
        return min(at)

    @staticmethod
    def _jobs(ports: MemoryPorts) -> CountedJobs:
        found: CountedJobs = ports.jobs
        return found

    @staticmethod
    def _tasks(ports: MemoryPorts) -> CountedTasks:
        found: CountedTasks = ports.tasks
        return found
