"""plan, every minute: tops up the runs of the tasks that are due for it in this minute.

After a long time without plan, all tasks get their future runs first. The missed runs (`planning.Gap`) follow in small steps, task by task
in turn, while there is time; the next plan continues.

The clock decides, not the triggering event: plan checks every minute from the ledger's plan cursor on, however old. The
replenish index lags, so plan checks a minute again until it has been over for PLAN_SETTLED_MS and is empty. The repair pass, which
reads the whole (small) index, finds the tasks that appear later still.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from scheduler.model import slots
from scheduler.model.errors import Unavailable
from scheduler.model.job import TaskKey
from scheduler.model.slots import MINUTE
from scheduler.model.task import Task
from scheduler.pipeline.lag import PLAN_SETTLED_MS
from scheduler.storage.ports import Barred, Found, Ports, Written
from scheduler.tasks.planning import PLAN_SHARDS
from scheduler.tasks.top_up import TopUp

WORK_MS = 45_000  # the longest time of a plan; the next one continues
GROUP = 100  # tasks topped up together: one read, one round of writes
GAPS = 25  # tasks with missed runs that take one step together
FIRST_MINUTES = 15  # without a cursor a plan starts this far back; the repair pass finds older tasks
LEAP_MS = 900_000  # a cursor this much before the minutes that plan may give up jumps to them
PASS_MS = 900_000  # the cursor passes a minute that ended this long ago; the repair pass takes its failing tasks
REPAIR_EVERY = 10  # minutes
MOST_GAPS = 1_000  # tasks with missed runs that one plan remembers for its end; further ones are due again in two or three minutes

log = logging.getLogger(__name__)


@dataclass(slots=True)
class PlanResult:
    """The counts of one plan; `lag_ms` is the time for which the oldest unfinished minute is overdue."""

    minutes: int = 0
    tasks: int = 0
    runs: int = 0
    missed: int = 0  # runs whose start deadline had passed when they were planned; an entry in the history counts them
    ended: int = 0  # tasks of deleted users
    repaired: int = 0
    failed: int = 0
    lag_ms: int = 0


@dataclass(slots=True)
class Plan:
    """One run of plan. `run` is the only entry point."""

    ports: Ports
    result: PlanResult = field(default_factory=PlanResult)
    _until: int = 0
    _gaps: dict[TaskKey, Task] = field(default_factory=dict)
    _barred: Barred | None = None

    def run(self) -> PlanResult:
        now = self.ports.clock.now()
        self._until = now + WORK_MS
        known = self.ports.ledger.plan_cursor()
        cursor = self._minutes(self._leap(known, now) if known else self._seed(), now)
        if known is None or now // MINUTE % REPAIR_EVERY == 0:
            self._repair(cursor, now)
        self._catch_up()
        self.result.lag_ms = max(0, self.ports.clock.now() - slots.start_of(cursor) - MINUTE - PLAN_SETTLED_MS)
        return self.result

    def _leap(self, cursor: str, now: int) -> str:
        """Move a cursor that is far behind: one pass through the (small) index is faster than hundreds of minutes one by one."""
        start = slots.minute_of(now - PASS_MS)
        if slots.start_of(cursor) + LEAP_MS > slots.start_of(start):
            return cursor
        self._repair(start, now)
        return start if self._has_time() and self.ports.ledger.set_plan_cursor(cursor, start) else cursor

    def _repair(self, cursor: str, now: int) -> None:
        """Top up all tasks that are due before the cursor."""
        before = self.result.tasks
        self._found(lambda after: self.ports.tasks.overdue(cursor, after=after), now)
        self.result.repaired += self.result.tasks - before

    def _catch_up(self) -> None:
        """Work off the gaps of the tasks found, one step of each task in turn."""
        left = list(self._gaps.values())
        while left and self._has_time():
            group, left = left[:GAPS], left[GAPS:]
            work = TopUp(self.ports)
            moved = work.catch_up(group)
            left += [task for task in moved if task.gap is not None]
            work.top_up([task for task in moved if task.gap is None], self._until)
            self._count(work)

    def _seed(self) -> str:
        start = slots.minute_of(self.ports.clock.now() - FIRST_MINUTES * MINUTE)
        self.ports.ledger.set_plan_cursor(None, start)
        return self.ports.ledger.plan_cursor() or start

    def _minutes(self, cursor: str, now: int) -> str:
        """Check every minute from the cursor to this one, and return the new cursor."""
        minute, follows = cursor, True
        while minute <= slots.minute_of(now) and self._has_time():
            done = self._minute(minute, now)
            follows = follows and done and self.ports.ledger.set_plan_cursor(cursor, slots.following(minute))
            minute = slots.following(minute)
            cursor = minute if follows else cursor
        return cursor

    def _minute(self, minute: str, now: int) -> bool:
        """Top up the tasks in the slots of the minute. Returns whether the minute is done."""
        self.result.minutes += 1
        failed, seen = self.result.failed, 0
        for shard in range(PLAN_SHARDS):
            slot = f"{minute}#{shard:02d}"
            seen += self._found(lambda after, slot=slot: self.ports.tasks.to_replenish(slot, after=after), now)  # type: ignore[misc]
        age = now - slots.start_of(minute) - MINUTE
        settled = seen == 0 and self.result.failed == failed and age >= PLAN_SETTLED_MS
        return self._has_time() and (settled or age >= PASS_MS)

    def _found(self, read: Callable[[str | None], tuple[list[TaskKey], str | None]], now: int) -> int:
        """Top up the tasks of all pages, in groups. Returns the number of keys read."""
        seen = 0
        for group in self._groups(read):
            seen += len(group)
            work = TopUp(self.ports)
            done = work.top_up(self._due(group, now), self._until)
            self.result.tasks += len(done)
            self._gaps |= {task.key: task for task in done[: MOST_GAPS - len(self._gaps)] if task.gap is not None}
            self._count(work)
        return seen

    def _count(self, work: TopUp) -> None:
        self.result.runs += work.runs
        self.result.missed += work.missed
        self.result.failed += len(work.failed)

    def _groups(self, read: Callable[[str | None], tuple[list[TaskKey], str | None]]) -> Iterator[list[TaskKey]]:
        after: str | None = None
        while self._has_time():
            keys, after = read(after)
            for first in range(0, len(keys), GROUP):
                if self._has_time():
                    yield keys[first : first + GROUP]
            if after is None:
                return

    def _due(self, keys: Sequence[TaskKey], now: int) -> list[Task]:
        """The stored tasks that are due for their top-up: the index may still list tasks that are already topped up."""
        found = Found[TaskKey, Task]()
        try:
            found = self.ports.tasks.get_many(keys)
            self.result.failed += len(found.unreadable)
        except Unavailable as error:
            log.warning("could not read tasks for now", extra={"tasks": len(keys), "error": str(error)})
            self.result.failed += len(keys)
        except Exception:  # it must not stop the planning of all other tasks
            log.exception("tasks cannot be read", extra={"tasks": len(keys)})
            self.result.failed += len(keys)
        listed = [found[key] for key in keys if key in found]
        self._end([task for task in listed if self._is_deleted(task.owner)])  # their stored runs are cancelled when they are due
        return [
            task
            for task in listed
            if task.replenish is not None and slots.minute(task.replenish) <= slots.minute_of(now) and not self._is_deleted(task.owner)
        ]

    def _end(self, tasks: Sequence[Task]) -> None:
        """Plan nothing more of these tasks of deleted users."""
        try:
            ended = self.ports.tasks.move_on([(task, replace(task, replenish=None, gap=None)) for task in tasks]) if tasks else []
        except Unavailable:
            ended = [Written.REFUSED] * len(tasks)
        self.result.ended += ended.count(Written.YES)
        self.result.failed += ended.count(Written.REFUSED)

    def _is_deleted(self, owner: str) -> bool:
        """Whether the owner was deleted, by one read per plan. If that is refused, the tasks get further runs, which do not start."""
        if self._barred is None:
            self._barred = Barred()
            try:
                self._barred = self.ports.users.barred()
            except Exception as error:  # a missing grant, too
                log.warning("could not read which users were deleted", extra={"error": str(error)})
        return owner in self._barred.deleted

    def _has_time(self) -> bool:
        return self.ports.clock.now() < self._until


def plan(ports: Ports) -> PlanResult:
    """Run plan once. Raises Unavailable if the ledger or the index refuses: the next plan starts where this one stopped."""
    return Plan(ports).run()
