"""A world in which a calendar changes again and again, and tasks that use it are created, edited and planned meanwhile.

Each change excludes the day of the simulation, or allows it. The oracles: once the operation of a change that excludes the day is done, no
run of these tasks starts until the next change (`excluded_run`); once the operation of a change that allows it is done, each task has a
run ahead (`no_run`); each operation ends (`never_done`). `judged` counts the changes of both kinds that were judged.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from lab.world.faults import ROUGH, Rates
from lab.world.hub import Hub
from scheduler.model import ids, slots
from scheduler.model.calendar import Calendar
from scheduler.model.errors import Conflict, Unavailable
from scheduler.model.job import Job, TaskKey
from scheduler.model.operation import State
from scheduler.model.spec import JobSpec
from scheduler.operations import calendars
from scheduler.operations.calendars import NewCalendar
from scheduler.tasks import service
from scheduler.tasks.service import NewTask
from tests.simulation.people import GRACE_MS
from tests.simulation.world import START, World

OWNER, CHANGES = "user", 6
FROZEN_MS = (0, 5_000, 20_000, 60_000)
EVERY_MS = 5 * slots.MINUTE  # from one change to the next
PATIENCE_MS = 4 * slots.MINUTE
SCHEDULES = ({"cron": "* * * * *"}, {"rate": "20 seconds"}, {"cron": "*/2 * * * *", "jitter_seconds": 30})
TRIES = 40


class _Slow:
    """The calendars of a request that is frozen after it has read them."""

    def __init__(self, calendars: Any, hub: Hub, ms: int) -> None:
        self._calendars, self._hub, self._ms = calendars, hub, ms

    def named(self, owner: str, names: Sequence[str]) -> dict[str, Calendar]:
        found: dict[str, Calendar] = self._calendars.named(owner, names)
        self._hub.sleep_until(self._hub.time + self._ms)
        return found


class ExcludedWorld(World):
    """See the module."""

    FAULTY = (*World.FAULTY, "calendars")

    def __init__(self, seed: int, rates: Rates = ROUGH) -> None:
        super().__init__(seed, rates)
        self.judged: Counter[str] = Counter()
        self._made: set[TaskKey] = set()
        self.ran = 0  # starts of runs of the tasks
        self._operation: str | None = None
        self._closed_since: int | None = None  # since when no run may start

    def run_changes(self) -> "ExcludedWorld":
        """Create the tasks, change the calendar, and judge each change."""
        until = START + (CHANGES + 2) * EVERY_MS
        self._put(frozenset())
        for number in range(CHANGES + 1):  # a while before each change
            for ahead in (slots.MINUTE, 4_000, 2_000):
                self.hub.spawn(lambda: self._patiently(self._create), START + (number + 1) * EVERY_MS - ahead)
        for number in range(CHANGES):
            self.hub.spawn(lambda number=number: self._change(number), START + (number + 1) * EVERY_MS)  # type: ignore[misc]
        self._schedule(self._tick, until)
        self._schedule(self._plan, until)
        self.hub.run(until)
        return self

    def _create(self) -> None:
        schedule = dict(self.random.choice(SCHEDULES)) | {"exclude": ["cal"]}
        spec, random = JobSpec("log", {"takes": 5, "fails": 0}), self.random.getrandbits(ids.RANDOM_BITS)
        slow = _Slow(self.plain.calendars, self.hub, self.random.choice(FROZEN_MS))
        ports = self._ports().but(calendars=slow)
        self._made.add(service.create(NewTask(OWNER, "a task", spec, schedule), ports, random=random).key)

    def _patiently(self, call: Callable[[], None]) -> None:
        """Repeat the request as a client does."""
        for _ in range(TRIES):
            try:
                return call()
            except (Unavailable, Conflict):
                self.hub.sleep_until(self.hub.time + 2_000)

    def _put(self, days: frozenset[int]) -> None:
        made = calendars.put(NewCalendar(OWNER, "cal", days), self.plain, random=self.random.getrandbits(ids.RANDOM_BITS))
        self._operation = None if made.operation is None else made.operation.id

    def _change(self, number: int) -> None:
        """Change the calendar, and judge once all is done."""
        closes = number % 2 == 0
        today = datetime.fromtimestamp(START // 1000, UTC).toordinal()
        self._closed_since = None
        self._put(frozenset({today}) if closes else frozenset())
        id, deadline = self._operation, self.hub.time + PATIENCE_MS
        while id is not None and self.hub.time < deadline:
            if (found := self.operations.get(OWNER, id)) is not None and found.state is State.DONE:
                break
            self.hub.sleep_until(self.hub.time + 250)
        else:
            if id is not None:
                self._violation("never_done", id)
                return
        self.judged["closed" if closes else "open"] += 1
        if closes:
            self._closed_since = self.hub.time
        else:
            self.hub.sleep_until(self.hub.time + slots.MINUTE)
            for key in self._made:
                if not any(self._is_ahead(job, key) for job in self.jobs.rows.values()):
                    self._violation("no_run", key.id)

    def _is_ahead(self, job: Job, key: TaskKey) -> bool:
        of = job.origin is not None and job.owner == key.owner and job.origin.task == key.id
        return of and job.scheduled_at > self.hub.time

    def _started(self, job: Job, now: int) -> None:
        super()._started(job, now)
        if job.origin is None or TaskKey(job.owner, job.origin.task) not in self._made:
            return
        self.ran += 1
        first = not any(attempt.started_at is not None for attempt in job.attempts)  # a run that may have started gets its other attempts
        if first and self._closed_since is not None and self.hub.time > self._closed_since + GRACE_MS:
            self._violation("excluded_run", job.id)
