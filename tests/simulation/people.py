"""Users with tasks in a simulated world: they create, edit, pause, resume, run and delete them; and the oracles of tasks."""

import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import takewhile
from random import Random
from typing import Any, NamedTuple

from lab.world.faults import Faults
from lab.world.hub import Hub
from scheduler.admission.gate import READ_WINDOW_MS
from scheduler.model import ids, instants, lifecycle
from scheduler.model.errors import Conflict, NotFound, Unavailable
from scheduler.model.job import Job, JobKey, Misfire, Overlap, TaskKey
from scheduler.model.spec import CallBack, JobSpec
from scheduler.model.task import Task
from scheduler.storage.memory.stores import MemoryJobs
from scheduler.storage.memory.tasks import MemoryReceipts, MemoryTasks
from scheduler.storage.ports import Ports
from scheduler.tasks import schedule, schedule_form
from scheduler.tasks import service as verbs
from scheduler.tasks.service import NewTask

SCHEDULES: tuple[dict[str, object], ...] = (
    {"cron": "* * * * *"},
    {"cron": ["*/3 * * * *", "1-59/3,2-59/3 * * * *", "*/2 * * * *"]},  # each minute, and half of them by two expressions
    {"cron": "*/2 * * * *", "jitter_seconds": 30},
    {"rate": "20 seconds"},
    {"rate": "45 seconds"},
    {"rate": "5 seconds", "max_runs": 60},
)
TAKES = (5, 5, 5, 5, 300, 300, 4_000, 4_000, 4_000, 25_000, 25_000, 90_000)
LOOKED_MS = 60_000  # an executor may have read the run that blocks another this long before it decides the skip: some calls are slow
GRACE_MS = 1_500  # clocks differ by up to half a second, and an executor may have read the task just before
CLEARED_MS = READ_WINDOW_MS + 100  # a run may start on data that its gates read this long ago
SETTLED_MS = 25 * 60_000  # a run older than this must have ended once the faults are over


class LaggingTasks(MemoryTasks):
    """The tasks table with a replenish index that shows the changes of each task in order, but later. `watch` receives every write."""

    def __init__(self, hub: Hub, faults: Faults, jobs: MemoryJobs, receipts: MemoryReceipts, watch: Callable[[TaskKey, Task | None], None]):
        super().__init__(jobs, receipts)
        self._hub, self._faults, self._watch = hub, faults, watch
        self._shown: dict[TaskKey, int] = {}

    def _project(self, key: TaskKey, slot: str | None) -> None:
        self._watch(key, self.rows.get(key))
        lag = self._faults.random.randint(0, self._faults.rates.lag_ms) if self._faults.on and self._faults.rates.lag_ms else 0
        if self._faults.strike("replenish lag", self._faults.rates.storm):
            lag = self._faults.random.randint(60_000, 400_000)
        self._shown[key] = max(self._shown.get(key, 0), self._hub.time + lag)
        self._hub.at(self._shown[key], lambda: self._show(key, slot))


@dataclass
class Version:
    """One generation of a task, and the time in which its promises apply."""

    task: Task
    since: int
    until: int | None = None  # when it was replaced, paused or deleted


@dataclass
class People:
    """Keeps tasks, and checks their promises."""

    hub: Hub
    faults: Faults
    random: Random
    ports: Callable[[], Ports]  # as one invocation sees them
    violation: Callable[[str, str], None]
    versions: dict[TaskKey, list[Version]] = field(default_factory=lambda: defaultdict(list))
    _replaced: dict[TaskKey, tuple[int, int]] = field(default_factory=dict)  # last edit: its generation, and when it returned
    _silent: dict[TaskKey, int] = field(default_factory=dict)  # when the pause or deletion of a task returned
    _active: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # running jobs, by task
    _reopened: dict[JobKey, int] = field(default_factory=dict)  # when an ended run was retried by a user
    _deleted: set[TaskKey] = field(default_factory=set)
    acts: tuple[str, ...] = ("edit", "edit", "edit", "pause", "run", "run", "delete")
    starts: int = 0

    # actions

    def plan_lives(self, count: int, start: int, end: int) -> None:
        """Create, change and delete `count` tasks between `start` and `end`."""
        for number in range(count):
            self.hub.spawn(lambda number=number: self._live(number, end), self.random.randint(start, start + (end - start) // 3))  # type: ignore[misc]

    def _live(self, number: int, end: int) -> None:
        key = self._do(lambda: self._create(number, end))
        while key is not None and self.hub.time < end:
            self.hub.sleep_until(self.hub.time + self.random.randint(30_000, 600_000))
            act = getattr(self, f"_{self.random.choice(self.acts)}")
            if self.hub.time >= end or (act is self._delete and self.random.random() < 0.7):
                continue
            self._do(lambda key=key, act=act: act(key, end))  # type: ignore[misc]
            if key not in {key for key, seen in self.versions.items() if seen and seen[-1].until is None}:
                return

    def _do(self, act: Callable[[], Any]) -> Any:
        """Return the result of `act`. Repeats it if the scheduler is unavailable, three times at most; returns None if it fails."""
        for _ in range(3):
            try:
                return act()
            except Unavailable:
                self.hub.sleep_until(self.hub.time + 1_000)
            except (Conflict, NotFound):
                return None
        return None

    def _new(self, number: int, end: int) -> NewTask:
        form = dict(self.random.choice(SCHEDULES)) | {"end": instants.render(end + 300_000)}
        payload = {"takes": self.random.choice(TAKES), "fails": self.random.choice((0, 0, 0, 1, 5))}
        return NewTask(
            owner=f"user{number % 3}",
            name=f"task {number}",
            schedule=form,
            overlap=self.random.choice(list(Overlap)),
            misfire=self.random.choice(list(Misfire)),
            max_catch_up=self.random.choice((3, 100)),
            spec=JobSpec("log", payload, timeout_ms=120_000, callback=self.random.choice((None,) * 5 + (CallBack(20_000, 300_000),))),
        )

    def _create(self, number: int, end: int) -> TaskKey:
        return verbs.create(self._new(number, end), self.ports(), random=self.random.getrandbits(ids.RANDOM_BITS)).key

    def _edit(self, key: TaskKey, end: int) -> None:
        task = verbs.edit(key, self._new(self.random.randint(0, 2), end), self.ports())
        self._replaced[key] = (task.generation, self.hub.time)

    def _rename(self, key: TaskKey, end: int) -> None:
        def renamed(task: Task) -> NewTask:
            assert task.schedule is not None
            kept = {name: getattr(task, name) for name in ("owner", "spec", "overlap", "misfire", "max_catch_up")}
            return NewTask(name=f"{task.name}, renamed", schedule=schedule_form.write(task.schedule), **kept)

        task = verbs.edit(key, renamed, self.ports())
        self._replaced[key] = (task.generation, self.hub.time)

    def _pause(self, key: TaskKey, end: int) -> None:
        verbs.deactivate(key, "holidays", self.ports())
        self._silent[key] = self.hub.time
        self.hub.sleep_until(self.hub.time + self.random.randint(5_000, 300_000))
        self._silent.pop(key, None)
        while self._do(lambda: verbs.activate(key, self.ports())) is None:
            self.hub.sleep_until(self.hub.time + 10_000)

    def _delete(self, key: TaskKey, end: int) -> None:
        verbs.delete(key, self.ports())
        self._silent[key] = self.hub.time

    def _run(self, key: TaskKey, end: int) -> None:
        verbs.run_now(key, self.ports(), random=self.random.getrandbits(ids.RANDOM_BITS))

    # oracles

    def stored(self, key: TaskKey, task: Task | None) -> None:
        """Follow a write of the tasks table."""
        seen = self.versions[key]
        if seen and task is not None and seen[-1].task.generation == task.generation and seen[-1].until is None:
            seen[-1].task = task
            return
        if seen and seen[-1].until is None:
            seen[-1].until = self.hub.time
        if task is None:
            self._deleted.add(key)
        if task is not None and task.inactive_at is None:
            seen.append(Version(task, self.hub.time))
            self._silent.pop(key, None)  # an operation may resume a task that a person paused

    def started(self, job: Job, now: int, jobs: MemoryJobs) -> None:
        """Check the start of a run; `now` is the time of its executor's clock."""
        origin = job.origin
        if origin is None:
            return
        self.starts += 1
        key = TaskKey(job.owner, origin.task)
        generation, returned = self._replaced.get(key, (0, 0))
        first = not any(attempt.started_at is not None for attempt in job.attempts)
        if origin.nominal_at is not None and first and origin.generation < generation and self.hub.time > returned + GRACE_MS:
            self.violation("old_generation_started", job.id)
        if self.hub.time > self._silent.get(key, self.hub.time) + GRACE_MS:
            self.violation("started_while_paused", job.id)
        if origin.late_from is not None and first and now >= origin.late_from and origin.previous_at is not None:
            before = jobs.get(JobKey(job.owner, ids.run(origin.previous_at, origin.task, origin.generation)))
            if (
                before is not None
                and lifecycle.is_open(before)
                and self.hub.time > self._reopened.get(before.key, -CLEARED_MS) + CLEARED_MS
            ):
                self.violation("out_of_order", job.id)
        if origin.overlap is not Overlap.ALLOW:
            if self._active[origin.task] - {job.id}:
                self.violation("overlapped", job.id)
            self._active[origin.task].add(job.id)

    def written(self, before: Job | None, after: Job, jobs: MemoryJobs) -> None:
        """Check a write of the jobs table: a run without a claim does not run, and a skipped run had a reason."""
        if before is not None and not lifecycle.is_open(before) and lifecycle.is_open(after):
            self._reopened[after.key] = self.hub.time
        if after.origin is None or after.claim is not None:
            return
        self._active[after.origin.task].discard(after.id)
        if after.skipped_at is not None and (blocker := re.match(r"overlap: run (\S+) has not ended", after.reason or "")):
            found = jobs.get(JobKey(after.owner, blocker[1]))
            ends = [getattr(found, name) for name in lifecycle.FINAL_TIMES.values() if getattr(found, name)] if found else []
            # The table may have refused the write of the skip for minutes: it is judged by the time of the decision.
            if found is None or (not lifecycle.is_open(found) and max(ends) < after.skipped_at - LOOKED_MS):
                self.violation("skipped_for_nothing", after.id)

    def judge(self, jobs: MemoryJobs) -> None:
        """Check at the end that each nominal time of each version has its run, or is counted by one, and that each past run has ended.

        A run that a version missed may be a run of a later version, but not if it has started before.
        """
        self._gaps, self._runs = _gaps(jobs), _runs(jobs)
        settled = self.hub.time - SETTLED_MS
        for key, seen in self.versions.items():
            for version in seen:
                self._judge(version, jobs, settled, is_last=version is seen[-1] and key in self._deleted)
        self._judge_handed_on()
        at_work = {job.origin.task for job in jobs.rows.values() if job.origin is not None and job.claim is not None}
        for job in jobs.rows.values():
            if job.origin is not None and job.scheduled_at < settled and lifecycle.is_open(job) and job.origin.task not in at_work:
                self.violation("run_open", job.id)  # late runs may take longer than the simulation, if one of them runs

    def _judge(self, version: Version, jobs: MemoryJobs, settled: int, *, is_last: bool) -> None:
        """`is_last`: the task was deleted then. Nothing stands for the runs that it had missed."""
        task = version.task
        assert task.schedule is not None
        low = max(version.since, task.updated_at) + 1_000
        high = settled if version.until is None else version.until - GRACE_MS
        if is_last:
            high = min(high, task.planned_until if task.gap is None else task.gap.after)
        if task.schedule.max_runs is not None:
            high = min(high, _last_of_max_runs(task))
        for run in schedule.after(task.schedule, min(task.updated_at, version.since) - 1_000, seed=task.id):
            if run.nominal > high:
                return
            # An earlier version may have stored the run, if its change could not withdraw it: then it is cancelled.
            if run.nominal > low and run.at <= high and not self._runs[task.id, run.at]:
                if any(at >= task.generation and first <= run.at <= last for at, first, last in self._gaps[task.id]):
                    continue  # an entry of the history stands for it
                self.violation("run_missing", f"{task.id} of {task.name}, generation {task.generation}, {instants.render(run.nominal)}")

    def _judge_handed_on(self) -> None:
        """Check that no version has started a run again that an earlier version had started before the change."""
        began = {(key.id, each.task.generation): each.task.updated_at for key, seen in self.versions.items() for each in seen}
        for (id, at), runs in self._runs.items():
            first, *later = sorted(run.generation for run in runs if run.started) or [0]
            if any(at < began[id, generation] - GRACE_MS for generation in later):
                self.violation("missed_run_twice", f"{id}, generation {first} and later ones, {instants.render(at)}")


def _last_of_max_runs(task: Task) -> int:
    """The nominal time of the last run that its `max_runs` may allow, as far as it is planned."""
    assert task.schedule is not None and task.schedule.max_runs is not None
    if task.gap is None:
        return task.planned_until
    missed = schedule.after(task.schedule, task.gap.after, seed=task.id, planned=task.planned)
    return max((run.nominal for run in takewhile(lambda run: run.nominal <= task.planned_until, missed)), default=task.gap.after)


class Ran(NamedTuple):
    """A stored run by its schedule."""

    generation: int
    started: bool


def _runs(jobs: MemoryJobs) -> dict[tuple[str, int], list[Ran]]:
    """Return the runs by task and instant."""
    found: dict[tuple[str, int], list[Ran]] = defaultdict(list)
    for job in jobs.rows.values():
        if job.origin is not None and job.origin.nominal_at is not None:
            found[job.origin.task, job.scheduled_at].append(Ran(job.origin.generation, job.delay_ms is not None))
    return found


def _gaps(jobs: MemoryJobs) -> dict[str, list[tuple[int, int, int]]]:
    """Return by task the spans of missed runs for which an entry of the history stands: its generation, and their instants, with jitter."""
    found: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for job in jobs.rows.values():
        if job.origin is None or job.reason is None:
            continue
        if stands := re.search(r"stands for [\d,]+ missed runs, the first of (\S+):", job.reason):
            found[job.origin.task].append((job.origin.generation, instants.parse(stands[1]), job.scheduled_at))
    return found
