"""Alerts in a virtual year: `python -m tests.simulation.alerting COUNT FIRST` tries this number of seeds.

The real services plan the runs of tasks with random schedules and rules, judge their timers and send notices. The world decides when
runs start and end: punctually, late, too slowly, with a failure or not at all. Messages are late, doubled and lost, the engine is away
for hours, and tasks are paused and resumed. Some tasks have the default alerts of their owner, which change some times. The year has both
changes of the clock of each zone.

The oracle knows only the starts and ends of the runs, and reads the clock on the wall minute by minute. No alert may be false, forgotten,
doubled or out of order, and each incident must be over in time.
"""

import argparse
import heapq
import itertools
import logging
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from math import inf
from random import Random
from typing import Any, NamedTuple

from lab.world.clock import FixedClock
from scheduler.admission.run_gate import unwanted
from scheduler.model import lifecycle, slots
from scheduler.model.alerts import Alert, Alerts
from scheduler.model.errors import Unavailable
from scheduler.model.instants import parse
from scheduler.model.job import Claim, Failure, FailureKind, Job, JobKey, Misfire, Result, TaskKey
from scheduler.model.misfire import too_late
from scheduler.model.notice import NoticeMessage, WindowEnd
from scheduler.model.notifications import Notifications, Webhook
from scheduler.model.spec import JobSpec
from scheduler.model.task import Task
from scheduler.model.work import WorkDelivery, WorkItem, WorkKind
from scheduler.monitors import steps
from scheduler.notify.notify import Incoming, Post, notify
from scheduler.notify.policy import of_change
from scheduler.operations import default_alerts
from scheduler.operations.step import step as operate
from scheduler.storage.memory.notices import MemoryNotices
from scheduler.storage.memory.ports import MemoryPorts
from scheduler.storage.memory.stores import MemoryWork, QueuedWork
from scheduler.tasks import service, zones
from scheduler.tasks.service import NewTask
from scheduler.tasks.top_up import TopUp
from tests.simulation.threads import InTurn

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
START = parse("2027-02-01T00:00:00Z")
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Asia/Kolkata", "Pacific/Chatham", "UTC")
BOUND = 3 * MINUTE  # of an alert, and of its end, unless the engine is away: a lost message costs a minute, each message some seconds
HELD = 4 * MINUTE  # a fault may leave a notice without a record: those behind it wait for its lease, for its repeat, and for their own
DYING = ("run_timers", "notices", "work", "jobs", "tasks", "owner_alerts", "operations")
EFFECTS = ("arm", "move", "drop", "decide", "set_delivery", "send", "put_many", "store", "move_on", "put", "add", "change")
LONGEST = 3 * DAY  # a run that is in progress while the default alerts change may be reported this much later
HOOK = Webhook("https://hooks.example.com/1", "hook")


class Broken(NamedTuple):
    """A rule that a run broke, by the oracle: from the deadline until the rule is broken no longer."""

    at: float
    until: float
    bound: float  # of the alert
    may_be_dropped: bool = False  # its task was edited before the alert was due: the run is cancelled instead of started
    may_be_either: bool = False  # the default alerts changed meanwhile: the old or the new ones apply


@dataclass
class Default:
    """Default alerts: when a request stored them, and when all tasks had them."""

    at: float
    alerts: Alerts
    done: float = inf


class Told(NamedTuple):
    """A notice as the receiver got it."""

    at: int
    opens: bool


@dataclass
class Course:
    """What really happened to a run."""

    task: str
    scheduled_at: int
    nominal_at: int
    planned_at: int
    start: float = inf
    end: float = inf
    status: str = ""
    missed: bool = False


class Killed(BaseException):
    """The process ends here."""


@dataclass
class Effects:
    """Effect number `fatal` of all ports is refused, or applied with the end of its process, or without its answer."""

    fatal: int = 0
    fate: str = ""  # dies | refused | unanswered
    count: int = 0


@dataclass
class Dying:
    """A port whose process meets its fate at one of its effects."""

    port: Any
    effects: Effects

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.port, name)
        if name not in EFFECTS:
            return method

        def effect(*arguments: Any, **options: Any) -> Any:
            self.effects.count += 1
            fatal = self.effects.count == self.effects.fatal
            if fatal and self.effects.fate == "refused":
                raise Unavailable
            done = method(*arguments, **options)
            if fatal:
                raise Killed if self.effects.fate == "dies" else Unavailable
            return done

        return effect


class Rows(dict[JobKey, Job]):
    """The stored jobs; it collects new ones."""

    def __init__(self) -> None:
        super().__init__()
        self.new: list[Job] = []

    def __setitem__(self, key: JobKey, job: Job) -> None:
        if key not in self:
            self.new.append(job)
        super().__setitem__(key, job)


class HeapWork(MemoryWork):
    """The work queue: it calls `deliver` for each message when that is visible."""

    deliver: Callable[[WorkItem, int], None]

    def add(self, item: WorkItem, visible_at: int) -> QueuedWork:
        if item.kind in (WorkKind.RUN_TIMERS, WorkKind.OPERATION):
            self.deliver(item, visible_at)
        return QueuedWork(item, "", visible_at)


class HeapNotices(MemoryNotices):
    """The notices; its queue calls `deliver` for each message."""

    deliver: Callable[[NoticeMessage], None]

    def send(self, messages: Sequence[NoticeMessage], now: int) -> None:
        for message in messages:
            self.deliver(message)


@dataclass
class Year:
    """One run of the simulation."""

    seed: int
    tasks: int = 3
    days: int = 370
    courses: dict[JobKey, Course] = field(default_factory=dict)
    told: dict[tuple[str, Alert], list[Told]] = field(default_factory=dict)
    alerts: dict[str, tuple[Alerts | None, str]] = field(default_factory=dict)  # of each task, and its zone
    defaults: list[Default] = field(default_factory=list)
    edits: dict[str, list[int]] = field(default_factory=dict)
    effects: "Effects" = field(default_factory=lambda: Effects())
    received: set[str] = field(default_factory=set)
    judged: int = 0

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.clock = FixedClock(START)
        work, notices = HeapWork(self.clock), HeapNotices()
        plain = MemoryPorts(self.clock).but(work=work, notices=notices)
        plain.jobs.rows = self.rows = Rows()
        self.ports = plain.but(**{name: Dying(getattr(plain, name), self.effects) for name in DYING})
        work.deliver, notices.deliver = self._send_work, self._send_notice
        self.heap: list[tuple[int, int, Callable[[], object]]] = []
        self.numbers = itertools.count()
        self.minutes = set[int]()
        self.post = Post(lambda *_: Result(), self._receive)
        self.away = self._outages()
        self.end = START + self.days * DAY

    def run(self) -> list[str]:
        """Return the violations."""
        self._set_default()
        for _ in range(2):
            self._at(START + self.random.randrange(self.days * DAY), self._set_default)
        for number in range(self.tasks):
            self._create(number)
        self._plan_minute(START)
        self._work_off(self.end)
        for id in self.alerts:
            self._at(self.end, partial(self._switch, TaskKey("ann", id), on=False))
        self._work_off(self.end + 20 * DAY)
        return list(self._violations())

    # The world.

    def _outages(self) -> list[tuple[int, int]]:
        starts = [START + self.random.randrange(self.days * DAY) for _ in range(3)]
        return [(at, at + self.random.randrange(MINUTE, 30 * HOUR)) for at in starts]

    def _back(self, at: int) -> int:
        """The instant itself, or the end of the outages that have begun by then."""
        for begin, end in sorted(self.away):
            if begin <= at < end:
                at = end
        return at

    def _at(self, at: int, act: Callable[[], object]) -> None:
        heapq.heappush(self.heap, (at, next(self.numbers), act))

    def _work_off(self, until: int) -> None:
        while self.heap and self.heap[0][0] <= until:
            at, _, act = heapq.heappop(self.heap)
            if (back := self._back(at)) > at:
                self._at(back + self.random.randrange(5 * SECOND), act)
                continue
            self.clock.at = at
            try:
                act()
            except (Killed, Unavailable):
                self._at(at + self.random.randrange(SECOND, 20 * SECOND), act)  # its message is delivered again
            self._take_new()
            self._plan_minute(at)
        self.clock.at = max(self.clock.at, until)

    def _plan_minute(self, now: int) -> None:
        """Have the worker look for due timers in the first minute in which it finds one."""
        if not self.ports.run_timers.armed:
            return
        due = min(timer.next_at for timer in self.ports.run_timers.armed.values())
        minute = max(-(-(due - 75_000) // MINUTE), now // MINUTE + 1)
        if minute not in self.minutes:
            self.minutes.add(minute)
            checks = WorkDelivery(WorkItem(WorkKind.CHECKS), "m", "m/1", 1)
            self._at(minute * MINUTE, lambda: steps.step(checks, self.ports, lambda: None))

    def _send_work(self, item: WorkItem, visible_at: int) -> None:
        if item.kind is WorkKind.OPERATION:
            self._at(visible_at, partial(self._operate, item))
            return
        wake = WorkDelivery(item, "m", "m/1", 1)
        for _ in range(self.random.choices((0, 1, 2), (2, 96, 2))[0]):
            self._at(visible_at + self.random.randrange(20, 400), lambda: self._wake(wake))

    def _wake(self, wake: WorkDelivery) -> None:
        self.judged += 1
        steps.step(wake, self.ports, lambda: None)

    def _operate(self, item: WorkItem) -> None:
        """Carry out a step of the operation that brings changed default alerts to the tasks."""
        before = {id: self.ports.tasks.get(TaskKey("ann", id)).generation for id in self.alerts}
        try:
            next_at = operate(WorkDelivery(item, item.part, "o/1", 1), self.ports, lambda: None)
        finally:
            for id, generation in before.items():
                if self.ports.tasks.get(TaskKey("ann", id)).generation != generation:
                    self.edits[id].append(self.clock.at)
                    self._plan_later(TaskKey("ann", id))
        if next_at is not None:
            self._at(max(next_at, self.clock.at + SECOND), partial(self._operate, item))
        elif self.ports.owner_alerts.of(["ann"])["ann"].operation == item.part:
            self.defaults[-1].done = self.clock.at

    def _set_default(self) -> None:
        """Change the default alerts, as a client that repeats its request until it is answered."""
        random = Random(f"{self.seed} {len(self.defaults)}")
        late, longest = random.choice((None, 10 * SECOND, 5 * MINUTE)), random.choice((None, MINUTE, HOUR))
        self.defaults.append(Default(self.clock.at, Alerts(late, longest, missed=random.random() < 0.7)))
        self._put_default(self.defaults[-1].alerts)

    def _put_default(self, alerts: Alerts) -> None:
        try:
            default_alerts.put("ann", alerts, self.ports, random=len(self.defaults))
        except (Killed, Unavailable):
            self._at(self.clock.at + SECOND, partial(self._put_default, alerts))

    def _send_notice(self, message: NoticeMessage) -> None:
        at = max(self.clock.at, message.at) if isinstance(message, WindowEnd) else self.clock.at
        for _ in range(self.random.choices((1, 2), (97, 3))[0]):
            self._at(at + self.random.randrange(20, 3 * SECOND), lambda: self._notify(message))

    def _notify(self, message: NoticeMessage) -> None:
        result = notify([Incoming("m", message, self.clock.at)], self.ports, post=self.post, threads=InTurn())
        for seconds in result.again.values():
            self._at(self.clock.at + seconds * SECOND, lambda: self._notify(message))

    def _receive(self, _owner: str, payload: dict[str, Any], id: str) -> Result:
        body = payload["body"]
        if body["data"]["alert"] is not None and id not in self.received:  # receivers ignore an id that they know
            self.received.add(id)
            key = body["data"]["task"]["id"], Alert(body["data"]["alert"])
            self.told.setdefault(key, []).append(Told(self.clock.at, body["type"] == "task.alert"))
        return Result()

    def _create(self, number: int) -> None:
        random = self.random
        zone = random.choice(ZONES)
        schedule: dict[str, object]
        hour = random.choice((0, 1, 23, random.randrange(24)))  # many runs in the nights in which the clock changes
        minute, done_by = random.randrange(60), None
        if random.random() < 0.7:
            days = random.choice(("*", "1-5", "0,3"))
            schedule = {"cron": f"{minute} {hour} * * {days}", "time_zone": zone}
            done_by = (hour * 60 + minute + random.randrange(10, 18 * 60)) % 1_440 if random.random() < 0.7 else None
        else:
            schedule = {"rate": f"rate({random.choice((3, 7, 13))} hours)", "time_zone": zone}
        alerts: Alerts | None = Alerts(
            late_after_ms=random.choice((None, 10 * SECOND, 5 * MINUTE, 2 * HOUR)),
            max_duration_ms=random.choice((None, MINUTE, 10 * MINUTE, 3 * HOUR)),
            done_by=done_by,
            missed=random.random() < 0.7,
        )
        if random.random() < 0.5:
            alerts = random.choice((None, None, None, Alerts()))
        new = NewTask(
            "ann",
            f"task {number}",
            JobSpec("log", {"message": "hello"}),
            schedule,
            misfire=random.choice(list(Misfire)),
            misfire_threshold_ms=random.choice((MINUTE, HOUR)),
            notifications=Notifications(webhooks=(HOOK,)),
            alerts=alerts,
        )
        try:
            task = service.create(new, self.ports, random=number)
        except (Killed, Unavailable):  # the client repeats the request
            task = service.create(new, self.ports, random=number)
        self.alerts[task.id], self.edits[task.id] = (alerts, zone), []
        self._take_new()
        self._plan_later(task.key)
        for _ in range(random.randrange(4)):
            at = START + random.randrange(self.days * DAY)
            self._at(at, lambda: self._switch(task.key, on=False))
            self._at(at + random.randrange(3 * DAY), lambda: self._switch(task.key, on=True))

    def _switch(self, key: TaskKey, *, on: bool) -> None:
        with_pause = service.activate if on else lambda key, ports: service.deactivate(key, None, ports, settle=False)
        with_pause(key, self.ports)
        self.edits[key.id].append(self.clock.at)
        self._plan_later(key)

    def _plan_later(self, key: TaskKey) -> None:
        task = self.ports.tasks.get(key)
        if task.replenish is not None:
            self._at(max(slots.start_of(slots.minute(task.replenish)), self.clock.at + SECOND), lambda: self._plan(key))

    def _plan(self, key: TaskKey) -> None:
        task: Task = self.ports.tasks.get(key)
        if task.replenish is None or slots.start_of(slots.minute(task.replenish)) > self.clock.at:
            return
        top_up = TopUp(self.ports)
        for done in top_up.top_up([task]):
            while done.gap is not None and (caught := top_up.catch_up([done])):
                done = caught[0]
        self._plan_later(key)

    def _take_new(self) -> None:
        new, self.rows.new = [job for job in self.rows.new if job.key in self.rows], []
        for job in new:
            assert job.origin is not None and job.origin.nominal_at is not None
            self.courses[job.key] = Course(job.origin.task, job.scheduled_at, job.origin.nominal_at, self.clock.at)
            if lifecycle.is_open(job):
                fate = Random(f"{self.seed} {job.id}")
                waits = (fate.randrange(2, 900), fate.randrange(12 * SECOND, 12 * MINUTE), fate.randrange(9 * HOUR))
                at = job.scheduled_at + fate.choices(waits, (80, 10, 10))[0]
                self._at(max(at, self.clock.at), partial(self._claim, job.key, fate))
            else:
                self._note(None, job)

    def _claim(self, key: JobKey, fate: Random) -> None:
        job, now = self.rows.get(key), self.clock.at
        if job is None or not lifecycle.is_open(job):
            return
        task = self.ports.tasks.get(TaskKey(key.owner, job.origin.task if job.origin else ""))
        claimed = lifecycle.claim(job, claim=Claim("m", "n", now, alone=True))
        if (why := unwanted(job, task.head)) is not None:
            self._write(job, lifecycle.cancel(job, now, reason=why))
        elif (reason := too_late(job, now)) is not None:
            self._write(job, lifecycle.skip(job, now, reason=reason))
        elif fate.random() < 0.03:
            self._write(job, lifecycle.skip(job, now, reason="overlap: another run has not ended"))
        else:
            self._write(job, claimed)
            takes = fate.choices((fate.randrange(50, 20 * SECOND), fate.randrange(20 * MINUTE), fate.randrange(20 * HOUR)), (75, 15, 10))[0]
            self._at(now + takes, lambda: self._end(key, now, fate))

    def _end(self, key: JobKey, started_at: int, fate: Random) -> None:
        job, now = self.rows[key], self.clock.at
        if fate.random() < 0.85:
            self._write(job, lifecycle.succeed(job, now, started_at=started_at, result=Result(output="done")))
        else:
            failed = Result(failure=Failure(FailureKind.PERMANENT, "no"))
            self._write(job, lifecycle.fail(job, now, started_at=started_at, result=failed))

    def _write(self, before: Job, after: Job) -> None:
        self.rows[after.key] = after
        self._note(before, after)

    def _note(self, before: Job | None, after: Job) -> None:
        course, now = self.courses[after.key], self.clock.at
        if lifecycle.is_open(after):
            course.start = now
        else:
            course.end, course.status = now, str(lifecycle.state(after))
            course.missed = course.status == "skipped" and (after.reason or "").startswith("misfire")
        for news in of_change(before, after):  # the stream delivers it at least once
            self._send_notice(news)

    # The oracle.

    def _broken(self, task: str) -> dict[Alert, list[Broken]]:
        own, zone = self.alerts[task]
        runs = [each for key, each in self.courses.items() if each.task == task and (key in self.rows)]
        found: dict[Alert, list[Broken]] = {alert: [] for alert in Alert}
        periods = [Default(-inf, Alerts(), -inf), *self.defaults] if own is None else [Default(-inf, own, -inf)]
        for period, following in itertools.zip_longest(periods, periods[1:], fillvalue=Default(inf, Alerts())):
            for run in (each for each in runs if each.scheduled_at <= following.done):
                for alert, broken in self._of_run(run, runs, period.alerts, zone):
                    if run.scheduled_at > period.done and self._late(broken.at, broken.bound) < following.at:
                        found[alert].append(broken)
                    else:
                        found[alert].append(broken._replace(bound=LONGEST, may_be_either=True))
        return found

    def _of_run(self, run: Course, runs: list[Course], alerts: Alerts, zone: str) -> Iterable[tuple[Alert, Broken]]:
        """The rules that a run broke."""
        started = min(run.start, run.end)
        if alerts.late_after_ms is not None and started > (at := run.scheduled_at + alerts.late_after_ms):
            yield Alert.LATE, Broken(at, started, BOUND, self._may_be_dropped(run, at))
        if alerts.max_duration_ms is not None and run.end > (long := run.start + alerts.max_duration_ms):
            yield Alert.LONG, Broken(long, run.end, BOUND + (run.start - run.scheduled_at) / 4)
        successes = [other.end for other in runs if other.status == "succeeded" and other.scheduled_at >= run.scheduled_at]
        succeeded = min(successes, default=inf)
        if alerts.done_by is not None:
            at, own = next_on_the_wall(run.nominal_at, alerts.done_by, zone), run.end if run.status not in ("failed", "") else inf
            if own > at:
                yield Alert.NOT_DONE, Broken(at, max(at, min(own, succeeded)), BOUND, self._may_be_dropped(run, at))
        if alerts.missed and run.missed:
            yield Alert.MISSED, Broken(run.end, min((at for at in successes if at > run.end), default=inf), BOUND)

    def _may_be_dropped(self, run: Course, at: int) -> bool:
        """Whether an edit came before the alert of a run that never started was due: its executor cancels the run."""
        until = self._late(at, BOUND) + MINUTE
        is_edited = any(run.planned_at <= edit <= until for edit in self.edits[run.task])
        return run.start == inf and run.status == "cancelled" and is_edited

    def _late(self, at: float, bound: float) -> float:
        """The latest instant of what comes within `bound` of an instant, unless the engine is away."""
        held = HELD if self.effects.fatal else 0
        return at if at == inf else self._back(int(at + bound)) + bound + held

    def _violations(self) -> Iterable[str]:
        for task in self.alerts:
            for alert, broken in self._broken(task).items():
                told = self.told.get((task, alert), [])
                for what in self._check(broken, told, self.edits[task]):
                    yield f"seed {self.seed}: {alert} of {task}: {what}"

    def _check(self, broken: list[Broken], told: list[Told], edits: list[int]) -> Iterable[str]:
        late = self._late
        incidents, replaced = list[tuple[int, float]](), set[float]()  # those that an edit of the task has replaced
        for each in told:
            if each.opens:
                if incidents and incidents[-1][1] == inf:
                    if not any(incidents[-1][0] - BOUND <= edit <= each.at for edit in edits):
                        yield f"opens twice at {shown(each.at)}"
                    incidents[-1] = incidents[-1][0], each.at
                    replaced.add(each.at)
                incidents.append((each.at, inf))
            elif not incidents or incidents[-1][1] != inf:
                yield f"is over before it opened at {shown(each.at)}"
            else:
                incidents[-1] = incidents[-1][0], each.at
        for run in broken:
            if (
                run.at < self.end + 10 * DAY
                and not (run.may_be_dropped or run.may_be_either)
                and not any(begin <= late(run.at, run.bound) and over >= run.at for begin, over in incidents)
            ):
                yield f"is forgotten at {shown(run.at)}"
        for begin, over in incidents:
            if not any(run.at <= begin <= late(run.at, run.bound) for run in broken):
                yield f"is false at {shown(begin)}"
            strict = [run for run in broken if not (run.may_be_either or run.may_be_dropped)]
            reported = [run for run in strict if begin - BOUND <= run.at and late(run.at, run.bound) < over < inf and over not in replaced]
            if any(run.until > over + BOUND for run in reported):
                yield f"is over too early at {shown(over)}"
            last = max((late(run.until, BOUND) for run in broken if run.at <= over), default=inf)
            if over > max(last, late(begin, BOUND)):
                yield f"opened at {shown(begin)} and is over too late"
        if len(incidents) > separate(broken, late) + len(edits):
            yield f"has {len(incidents)} incidents"


def separate(broken: list[Broken], late: Callable[[float, float], float]) -> int:
    """The largest number of incidents of which each may have a notice of its own."""
    count, until = 0, -inf
    for run in sorted(broken):
        if late(run.at, run.bound) >= until:
            count += 1
        until = max(until, run.until)
    return count


def next_on_the_wall(at: int, minute: int, zone: str) -> int:
    """The first minute after `at` in which the clock on the wall reaches the minute of the day, or jumps over it."""
    local, wall = zones.zone(zone), datetime.fromtimestamp(at / 1_000, UTC)
    before = wall.astimezone(local)
    while True:
        wall += timedelta(minutes=1)
        shown = wall.astimezone(local)
        now, last = shown.hour * 60 + shown.minute, before.hour * 60 + before.minute
        jumped = shown.utcoffset() > before.utcoffset() and last < minute <= now  # type: ignore[operator]
        if now == minute or jumped:
            return int(wall.timestamp() * 1_000)
        before = shown


def shown(at: float) -> str:
    return "never" if at == inf else datetime.fromtimestamp(at / 1_000, UTC).isoformat(timespec="seconds")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.alerting", description="Alerts in virtual years.")
    parser.add_argument("count", type=int, help="number of years")
    parser.add_argument("first", type=int, nargs="?", default=1, help="the first seed")
    options = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)
    wrong = 0
    for seed in range(options.first, options.first + options.count):
        year = Year(seed)
        violations = year.run()
        wrong += bool(violations)
        notices = sum(map(len, year.told.values()))
        print(f"seed {seed}: {len(year.courses):,} runs, {notices:,} notices, {len(violations)} violations", *violations[:5], sep="\n  ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
