"""`python -m tests.simulation.hostile [act+act ...]`: one owner does ten reasonable things at once, beside six quiet owners.

    key         20,000 jobs of one ordering key for one instant         failing     20,000 jobs that fail three times
    long        100 jobs of 14 minutes                                  callbacks   400 jobs that report by call-back to a limited target
    cancelled   900 jobs at a shared target of one a second, cancelled  debounced   a put by key each second
    bulk        five bulk cancels at one job a second                   redriven    10,000 dead letters at 1,000 a second
    tasks       2,000 minutely tasks                                    flood       100,000 jobs for now in 50 seconds

The whole engine runs in virtual time at the costs of `costs`, for an account of 100 executors. A scene is smaller by `--factor`:
executors, windows, pages and numbers of jobs. Steps of operations, rates of targets and durations stay as they are. The quiet owners
post small work for 15 minutes. Each kind of their jobs has a row: the median and the maximum of how late they started, and the number
of those that started `LATE_MS` late or not at all. The exit code is 1 if the oracle `others_late` or `planned_late` finds a violation.
"""

import argparse
import json
import logging
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from random import Random
from typing import Any
from unittest.mock import patch

from lab.world.faults import Rates
from scheduler.jobs import by_key
from scheduler.jobs.by_key import OnConflict, OnStarted, PutRules
from scheduler.model import operation, slots
from scheduler.model.errors import Conflict, Unavailable
from scheduler.model.job import Job, Lane, Misfire, Overlap
from scheduler.model.named_target import NamedTarget
from scheduler.model.operation import Action, Filter
from scheduler.model.rules import Rules
from scheduler.model.spec import CallBack, Jitter, JobSpec, Ordering, RetryPolicy
from scheduler.model.work import WorkDelivery
from scheduler.operations import requests
from scheduler.pipeline.submit import Accepted, NewJob, Submission, submit_all
from scheduler.tasks import service
from scheduler.tasks.service import NewTask
from tests.simulation import limited
from tests.simulation.stepped import CostlyWorld, scaled
from tests.simulation.world import START, Report

FACTOR = 20  # a default scene is smaller by this
EXECUTORS, STEPS = 100, 5  # of the one-time lane, and of the engine at once, in an account of 100
T = START + 12 * slots.MINUTE  # the instant of the hostile owner's crowds
LAST = T + 15 * slots.MINUTE  # the quiet owners post until then
END = T + 30 * slots.MINUTE
POSTED_AT = START + 2_000
ANTON = "anton"
LATE_MS = 10_000
LATE_SHARE = 0.01  # of the quiet owners' jobs that may start later than that
PLANNED_MS = 3_000  # a planned job of a quiet owner starts no later than this ...
SMALL_MS = 8_000  # ... or than this in a scene that is smaller by more than `SMALL`: its windows have a few jobs
SMALL = 4
HELD_MS = 3_300_000  # by all steps of `filling`: 2,700 s; 4,000 if a dispatcher stays while only barred jobs wait
SHARED = {"shared": NamedTarget("shared", "log", 0, 0, "ada", "ada", rate=1.0)}
REPORTING = {"reporting": NamedTarget("reporting", "log", 0, 0, "ada", "ada", concurrency=2)}
RETRY_MS = 1_000  # the base of the quiet retries


@dataclass(frozen=True, slots=True)
class Kind:
    """The jobs of a quiet owner: how many are posted at once and how often, for how long ahead, and the content of each."""

    every_ms: int
    together: int = 1
    offset_ms: int = 0
    planned: bool = False
    spec: Mapping[str, Any] = field(default_factory=dict)
    attempt: int = 0  # the attempt whose start counts
    wait_ms: int = 0  # until that attempt, if nothing is late


QUIET = {
    "planned": Kind(10_000, offset_ms=500, planned=True),
    "now": Kind(10_000, offset_ms=700),
    "bursts": Kind(30_000, together=30, offset_ms=900),
    "limited": Kind(60_000, offset_ms=1_100, spec={"target": "shared"}),
    "retry": Kind(
        20_000,
        offset_ms=1_300,
        planned=True,
        spec={"fails": 1, "retry": RetryPolicy(base_ms=RETRY_MS, jitter=Jitter.NONE)},
        attempt=1,
        wait_ms=RETRY_MS + 1,
    ),
}
RUNS = "task"  # the owner of five minutely tasks


@dataclass(frozen=True, slots=True)
class Row:
    """How late the jobs of one kind started (ms, sorted); `never`: they did not start until the end."""

    late_ms: Sequence[int]
    never: int

    @property
    def over(self) -> int:
        return sum(late > LATE_MS for late in self.late_ms) + self.never

    @property
    def count(self) -> int:
        return len(self.late_ms) + self.never

    def text(self) -> str:
        if not self.late_ms:
            return f"- / - / {self.over}"
        return f"{max(self.late_ms[len(self.late_ms) // 2], 0) / 1_000:.1f} / {max(self.late_ms[-1], 0) / 1_000:.0f} / {self.over}"


class HostileWorld(CostlyWorld):
    """A world without faults: a hostile owner does the `acts`. It is smaller than an account of `executors` by `factor`."""

    def __init__(
        self,
        seed: int,
        rates: Rates | None = None,
        *,
        acts: Sequence[str] | None = None,
        factor: int = FACTOR,
        executors: int = EXECUTORS,
        steps: int = STEPS,
    ) -> None:
        self.acts = list(ACTS) if acts is None else acts
        self.factor, self._steps, self._at_work, self._jitter = factor, steps, 0, Random(seed + 5)
        self.first: dict[tuple[str, str], list[int]] = defaultdict(list)  # the starts of each job (ms)
        self.slot_time_ms = 0  # by steps of the engine, together
        self._posted = 0
        most = max(executors // factor, 1)
        self.lanes_of = {Lane.ONE_TIME: most, Lane.RECURRING: max(most // 2, 1), Lane.RETRY: max(most // 5, 1)}
        windows = {lane: 10 * self.lanes_of[lane] for lane in (Lane.ONE_TIME, Lane.RECURRING)} | {Lane.RETRY: self.lanes_of[Lane.RETRY]}
        rules = Rules(shards=16, windows=windows, steps=steps)
        super().__init__(seed, rates or Rates(lag_ms=300), rules=rules, concurrency=most, slowness=float(factor))

    def run(self, *_: int, **__: int) -> Report:
        """Run the scene to its end and judge it; a default world of `make simulate` gets numbers of jobs, which this one ignores."""
        with scaled(self.factor), patch.dict(limited.TARGETS, SHARED | REPORTING):
            for target in (*SHARED.values(), *REPORTING.values()):
                self.limited.store.rows[target.name] = target
            self._schedule(self._tick, END)
            self._schedule(self._plan, END)
            for act in self.acts:
                ACTS[act](self)
            self._post_quiet()
            self.hub.run(END)
        self._judge_others()
        return self.report

    def rows(self) -> dict[str, Row]:
        """Return how late the quiet owners' jobs started, by kind."""
        made = dict[str, Row]()
        for kind in (*QUIET, RUNS):
            attempt, wait = (QUIET[kind].attempt, QUIET[kind].wait_ms) if kind in QUIET else (0, 0)
            jobs = [job for job in self.jobs.rows.values() if job.owner == kind and T <= _due(job) < LAST]
            starts = [(self.first[job.owner, job.id], _due(job)) for job in jobs]
            late = [at[attempt] - due - wait for at, due in starts if len(at) > attempt]
            made[kind] = Row(sorted(late), len(jobs) - len(late))
        return made

    def _judge_others(self) -> None:
        rows = self.rows()
        over, count = sum(row.over for row in rows.values()), sum(row.count for row in rows.values())
        self.report.jobs, self.report.delays = count, [late for row in rows.values() for late in row.late_ms]
        if over > LATE_SHARE * count:
            self._violation("others_late", f"{over} of {count} jobs by more than {LATE_MS} ms")
        latest = max(rows["planned"].late_ms, default=0)
        if rows["planned"].never or latest > (PLANNED_MS if self.factor <= SMALL else SMALL_MS):
            self._violation("planned_late", f"{latest} ms")

    def post(self, owner: str, count: int, at: int, execute_at: int | None = None, *, call: int = 500, takes: int = 1, **spec: Any) -> None:
        """Let `owner` post jobs at `at`, `call` in each request."""
        content = {"takes": takes, "fails": spec.pop("fails", 0)}
        made = NewJob(owner, JobSpec("log", content, **{"timeout_ms": 300_000} | spec), execute_at)
        for first in range(0, count, call):
            self.hub.spawn(partial(self._call, [made] * min(call, count - first)), at)

    def operate(self, action: Action, at: int, *, rate: int, **chosen: Any) -> None:
        """Let the hostile owner start an operation on what is `chosen`."""

        def start() -> None:
            self._posted += 1
            try:
                requests.start(operation.new(ANTON, self.hub.time, self._posted, action, Filter(**chosen), rate=rate), self._ports())
            except (Conflict, Unavailable):
                self.faults.counts["operations refused"] += 1

        self.hub.spawn(start, at)

    def keep_tasks(self, owner: str, count: int, at: int, takes: int, **options: Any) -> None:
        """Let `owner` create minutely tasks, 20 ms apart."""

        def create(number: int) -> None:
            spec = JobSpec("log", {"takes": takes, "fails": 0}, timeout_ms=60_000)
            task = NewTask(owner=owner, name=f"t{number}", schedule={"cron": "* * * * *"}, spec=spec, **options)
            service.create(task, self._ports(), random=self.random.getrandbits(60))

        for number in range(count):
            self.hub.spawn(partial(create, number), at + 20 * number)

    def _call(self, asked: Sequence[NewJob]) -> None:
        made = [Submission(each, self._posted + number) for number, each in enumerate(asked, 1)]
        self._posted += len(asked)
        for done in submit_all(made, self._ports(), direct=self._direct()):
            assert isinstance(done, Accepted)
            self._accepted.add(done.job.key)

    def _post_quiet(self) -> None:
        for owner, kind in QUIET.items():
            for at in range(T + kind.offset_ms, LAST, kind.every_ms):
                posted, due = (POSTED_AT + 500, at) if kind.planned else (at, None)
                self.post(owner, kind.together, posted, due, **kind.spec)
        self.keep_tasks(RUNS, 5, POSTED_AT + 200, 1, overlap=Overlap.ALLOW, misfire=Misfire.RUN_ALL)

    # the lanes and the steps of this account

    def _poll(self, lane: Lane) -> None:
        self._concurrency = self.lanes_of[lane]
        super()._poll(lane)

    def _step(self, delivery: WorkDelivery) -> None:
        while self._at_work >= self._steps:
            self.hub.sleep_until(self.hub.time + self._jitter.randint(20, 200))
        self._at_work += 1
        began = self.hub.time
        try:
            super()._step(delivery)
        finally:
            self._at_work -= 1
            self.slot_time_ms += self.hub.time - began

    def _started(self, job: Job, now: int) -> None:
        super()._started(job, now)
        self.first[job.owner, job.id].append(now)


def _due(job: Job) -> int:
    return max(job.scheduled_at, job.created_at)


def _key(world: HostileWorld) -> None:
    world.post(ANTON, 20_000 // world.factor, POSTED_AT, T, takes=200, ordering=Ordering("customer-7"))


def long_jobs(world: HostileWorld, apart_ms: int = 6_000, now: bool = False) -> None:
    """Post 100 jobs of 14 minutes, `apart_ms` from one to the next, for these instants or at them (`now`)."""
    for number in range(100 // world.factor):
        at = T - 2 * slots.MINUTE + number * apart_ms
        posted, due = (at, None) if now else (POSTED_AT, at)
        world.post(ANTON, 1, posted, due, takes=840_000, timeout_ms=900_000)


def _cancelled(world: HostileWorld) -> None:
    world.post(ANTON, 900, POSTED_AT, T - 4 * slots.MINUTE, target="shared", tags=("limited",))
    world.operate(Action.CANCEL_JOBS, T - 3 * slots.MINUTE, rate=1_000, tags=("limited",))


def _bulk(world: HostileWorld) -> None:
    world.post(ANTON, 1_000, POSTED_AT, START + 86_400_000, tags=("far",))
    for _ in range(5):
        world.operate(Action.CANCEL_JOBS, T - 2 * slots.MINUTE, rate=1, tags=("far",))


def _tasks(world: HostileWorld) -> None:
    world.keep_tasks(ANTON, 2_000 // world.factor, POSTED_AT, 1_000)


def _flood(world: HostileWorld) -> None:
    for second in range(50):
        world.post(ANTON, 2_000 // world.factor, T + second * 1_000, takes=1_000)


def _failing(world: HostileWorld) -> None:
    retry = RetryPolicy(base_ms=30_000, jitter=Jitter.FULL)
    world.post(ANTON, 20_000 // world.factor, POSTED_AT, T, takes=1_000, fails=9, retry=retry)


def _callbacks(world: HostileWorld) -> None:
    world.post(ANTON, 400 // world.factor, POSTED_AT, T, takes=100, target="reporting", callback=CallBack(300_000, 3_600_000))


def _debounced(world: HostileWorld) -> None:
    def put(number: int) -> None:
        job = NewJob(ANTON, JobSpec("log", {"takes": 1, "fails": 0}, timeout_ms=60_000, key="page"), delay_ms=3_000)
        rules = PutRules(OnConflict.EXTEND, OnStarted.FOLLOW)
        try:
            by_key.put(job, world._ports(), random=number, direct=world._direct(), rules=rules)
        except (Conflict, Unavailable):
            world.faults.counts["puts refused"] += 1

    for number in range(15 * 60):
        world.hub.spawn(partial(put, 700_000 + number), T + number * 1_000)


def _redriven(world: HostileWorld) -> None:
    world.post(ANTON, 10_000 // world.factor, POSTED_AT, T - 4 * slots.MINUTE, takes=1_000, fails=1, max_attempts=1)
    world.operate(Action.REDRIVE, T, rate=1_000)


Act = Callable[[HostileWorld], None]
ACTS: dict[str, Act] = {
    "key": _key,
    "long": long_jobs,
    "cancelled": _cancelled,
    "bulk": _bulk,
    "tasks": _tasks,
    "flood": _flood,
    "failing": _failing,
    "callbacks": _callbacks,
    "debounced": _debounced,
    "redriven": _redriven,
}


def pinning(seed: int) -> HostileWorld:
    """Return the world in which the hostile owner only has long jobs, after its run."""
    return _ran(seed, "long")


def filling(seed: int) -> HostileWorld:
    """Return the world in which jobs of the hostile owner wait until its long jobs end, after its run."""
    world = _ran(seed, "long", "failing")
    if world.slot_time_ms > HELD_MS:
        world._violation("steps_held", f"{world.slot_time_ms} ms")
    return world


def few_steps(seed: int) -> HostileWorld:
    """Return the same world in a new account, which has two steps, after its run."""
    return _ran(seed, "long", "key", "failing", "flood", steps=2)


def _ran(seed: int, *acts: str, steps: int = STEPS) -> HostileWorld:
    world = HostileWorld(seed, acts=acts, steps=steps)
    world.run()
    return world


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.hostile", description="One hostile owner beside quiet ones.")
    parser.add_argument("acts", nargs="*", default=["all"], help="acts joined by +, 'none' or 'all', a line each (default: all)")
    parser.add_argument("--factor", type=int, default=FACTOR, help=f"the scene is smaller by this (default {FACTOR}, 15 s; 4 takes 90 s)")
    parser.add_argument("--executors", type=int, default=EXECUTORS, help=f"of the one-time lane at full size (default {EXECUTORS})")
    parser.add_argument("--steps", type=int, default=STEPS, help=f"steps of the engine at once (default {STEPS})")
    parser.add_argument("--first", type=int, default=1, help="the first seed (default 1)")
    parser.add_argument("--seeds", type=int, default=1, help="number of runs of each line (default 1)")
    args = parser.parse_args()
    logging.disable(logging.CRITICAL)
    print("each cell: p50 s / max s / jobs that started more than 10 s late, or not at all")
    print("| acts | " + " | ".join((*QUIET, RUNS)) + " | later than 10 s | seconds |")
    results = []
    for name, seed in product(args.acts, range(args.first, args.first + args.seeds)):
        acts = {"none": [], "all": list(ACTS)}.get(name, name.split("+"))
        if unknown := [act for act in acts if act not in ACTS]:
            parser.error(f"no such act: {unknown[0]}; choose from {', '.join(ACTS)}")
        began = time.process_time()
        world = HostileWorld(seed, acts=acts, factor=args.factor, executors=args.executors, steps=args.steps)
        violations = dict(world.run().violations)
        rows = world.rows()
        over, count = sum(row.over for row in rows.values()), sum(row.count for row in rows.values())
        took = time.process_time() - began
        print(
            f"| {name}, seed {seed} | " + " | ".join(row.text() for row in rows.values()) + f" | {100 * over / count:.1f} % | {took:.0f} |",
            flush=True,
        )
        results.append({"acts": name, "over": over, "of": count, "violations": violations, "factor": args.factor, "seed": seed})
    print(json.dumps({"scene": "hostile", "rows": results}))
    return 1 if any(result["violations"] for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
