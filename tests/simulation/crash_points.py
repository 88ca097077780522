"""A crash after every effect of every service: `python -m tests.simulation.crash_points` prints the table.

Small worlds run without crashes first. Each pair of consecutive effects of an invocation, at its first occurrence, is a point.
Then the same world runs once per point: the invocation dies just after the first effect of the pair, and everything must recover
by itself. The oracles are those of the simulation. Each world runs as it is, and with dispatchers for which no job is one of few.
"""

import argparse
import logging
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple
from unittest.mock import patch

import greenlet

from lab.world.faults import Faults, Faulty, Rates
from lab.world.hub import Killed
from scheduler.model import operation, slots
from scheduler.model.errors import Unavailable
from scheduler.model.operation import Action, Filter
from scheduler.operations import requests
from scheduler.pipeline import dispatch
from tests.simulation.keyed import KeyedWorld
from tests.simulation.world import START, Report, World

SEEDS = (1, 2, 3, 4, 5, 13)  # a world for each; a point is tried in the first world that has it
KEYED_SEEDS = (1, 2)
FOLLOWED_SEEDS = (1, 2)
FOLLOWED = {"after": 60}  # jobs that wait for others, beside those of the scene
SCENE = {"jobs": 30, "minutes": 8, "tasks": 6, "ordered": 20, "groups": 8, "wind_down": 100}
# No crash, no refusal, no lost message: doubled and dead messages only exercise bury and the handling of duplicates.
RATES = Rates(double=0.1, dead=0.5, lag_ms=300, cancel=0.15, change=0.2, expire=0.1, retry=0.5, pause=1.0)
EFFECTS = {"put", "put_many", "claim", "change", "withdraw", "set_aside", "put_canary", "drop_canary", "set_mark"}  # jobs
EFFECTS |= {"take_keys", "prolong_key", "follow", "note_ends"}
EFFECTS |= {
    "advance",
    "open_unit",
    "change_unit",
    "close_unit",
    "replace_check",
    "set_lane_state",
    "set_plan_cursor",
    "set_breaker",
    "report_backlog",
    "drop_backlog",
    "set_sweep_cursor",
    "require_shards",
}  # ledger
EFFECTS |= {"store", "delete", "move_on", "hold", "enqueue", "set_heads", "leave", "keep", "use"}  # tasks, orders, receipts, limits
EFFECTS |= {"use_together", "join_queue", "change_queue", "note_queue_user", "drop_queue_user", "drop_queue"}  # target queues
EFFECTS |= {"add"}  # operations; a record of theirs also has a `change`
EFFECTS |= {"allocate", "enrol", "mark", "size_leaf", "size_node", "fill", "fill_head", "seal", "abandon", "end", "plan"}  # groups
EFFECTS |= {"send", "publish", "extend", "hide"}  # lanes, topic, work queue
OPERATIONS = (  # when each begins (minutes), its owner and action
    (3, "user", Action.CANCEL_JOBS),
    (4, "user0", Action.PAUSE_TASKS),
    (5, "user0", Action.RESUME_TASKS),
    (6, "user1", Action.DELETE_TASKS),
)
SERVICES = re.compile(r"/scheduler/(?!storage/|model/)")
WORKER = re.compile(r"/scheduler/pipeline/worker\.py$")  # it carries out steps of several services
END = "its end"


class Point(NamedTuple):
    """A crash of `service` between the effect `after` and the effect `before`, which would have followed."""

    service: str
    after: str
    before: str


@dataclass
class Watcher:
    """Counts the effects of a run in order, records which effect followed which, and kills the invocation of effect number `fatal`."""

    fatal: int | None = None
    count: int = 0
    died: str | None = None  # the killed service
    points: dict[Point, int] = field(default_factory=dict)  # each by the number of its first effect, at its first occurrence
    _last: dict[tuple[int, int], tuple[str, str, int]] = field(default_factory=dict)  # by invocation: service, effect, its number

    def done(self, effect: str) -> None:
        """Record an effect of the current invocation."""
        entry = _entry()
        if entry is None:
            return
        service, invocation = entry
        self.count += 1
        if last := self._last.get(invocation):
            former, before, number = last
            self.points.setdefault(Point(former, before, effect), number)
        self._last[invocation] = (service, effect, self.count)
        if self.count == self.fatal:
            self.died = service
            raise Killed

    def ended(self) -> dict[Point, int]:
        """Return all points, including those after the last effects of invocations."""
        for service, effect, number in self._last.values():
            self.points.setdefault(Point(service, effect, END), number)
        return self.points


def _entry() -> tuple[str, tuple[int, int]] | None:
    """Return the current service, and an identity of this call of it; None outside of services."""
    frame: FrameType | None = sys._getframe(1)
    found: Any = None
    step: Any = None
    while frame is not None:
        if SERVICES.search(frame.f_code.co_filename):
            found = frame
            step = step if WORKER.search(frame.f_code.co_filename) else frame
        frame = frame.f_back
    if found is None:
        return None
    current: Any = greenlet.getcurrent()
    if getattr(current, "entered", None) is not found:  # the reference is kept, so that no later call has the same address
        current.entered, current.calls = found, getattr(current, "calls", 0) + 1
    named = step or found
    name, verb = Path(named.f_code.co_filename).stem, named.f_code.co_name
    return name if verb in (name, "submit_all") else f"{name}.{verb}", (id(current), current.calls)


class Watched(Faulty):
    """A port whose effects a watcher records."""

    def __init__(self, port: object, faults: Faults, watcher: Watcher, *, freeze: int = 1) -> None:
        super().__init__(port, faults, freeze=freeze)
        self._watcher = watcher

    def around(self, name: str, effect: Callable[..., Any]) -> Callable[..., Any]:
        call = super().around(name, effect)
        if name not in EFFECTS:
            return call

        def watched(*args: Any, **kwargs: Any) -> Any:
            answer = call(*args, **kwargs)
            self._watcher.done(name)
            return answer

        return watched


class Scene(World):
    """The small world, with operations on many jobs and tasks.

    It keeps a reference to its invocations, so that each has its own identity.
    """

    def __init__(self, seed: int, watcher: Watcher) -> None:
        self._watcher = watcher
        super().__init__(seed, RATES)
        spawn, self.kept = self.hub.spawn, list[Any]()

        def keep(work: Callable[[], Any], when: int | None = None) -> None:
            def body() -> None:
                self.kept.append(greenlet.getcurrent())
                work()

            spawn(body, when)

        self.hub.spawn = keep  # type: ignore[method-assign]

    def run(
        self, jobs: int, minutes: int, *, tasks: int = 0, ordered: int = 0, groups: int = 0, after: int = 0, wind_down: int = 100
    ) -> Report:
        for minute, owner, action in OPERATIONS:
            self.hub.spawn(lambda owner=owner, action=action: self._operate(owner, action), START + minute * slots.MINUTE)  # type: ignore[misc]
        report = super().run(jobs, minutes, tasks=tasks, ordered=ordered, groups=groups, after=after, wind_down=wind_down)
        for record in self.plain.operations.running():
            self._violation("operation_open", record.id)
        return report

    def _operate(self, owner: str, action: Action) -> None:
        planned = operation.new(owner, self.hub.time, self._requests, action, Filter(), rate=8)
        try:
            requests.start(planned, self._ports())
        except Unavailable:
            return

    def _faulty(self, port: object, freeze: int = 1) -> Any:
        return self._seen.setdefault((id(port), 0), Watched(port, self.faults, self._watcher))


class KeyedScene(Scene, KeyedWorld):
    """The small world, with users who also name jobs by keys."""

    USES = 60


class Where(NamedTuple):
    """An effect of a world, by its number. `dense`: dispatchers publish each job at its time, however few there are.

    `keyed`: users also name jobs by keys. `followed`: users also post jobs that wait for others.
    """

    seed: int
    dense: bool
    number: int
    keyed: bool = False
    followed: bool = False


def points(seeds: Sequence[int] = SEEDS) -> dict[Point, Where]:
    """Return every point of these worlds, with the effect after which to try it."""
    found: dict[Point, Where] = {}
    for dense in (False, True):
        for seed in seeds:
            watcher = Watcher()
            report = _run(seed, dense, watcher)
            if report.violations:
                raise AssertionError(f"the scene fails without a crash: {report.examples}")
            for point, number in watcher.ended().items():
                found.setdefault(point, Where(seed, dense, number))
    return found


def points_of_keys(seeds: Sequence[int] = KEYED_SEEDS) -> dict[Point, Where]:
    """Return every point of the operations by key in the worlds where users name jobs."""
    found: dict[Point, Where] = {}
    for seed in seeds:
        watcher = Watcher()
        report = _run(seed, False, watcher, keyed=True)
        if report.violations:
            raise AssertionError(f"the scene fails without a crash: {report.examples}")
        for point, number in watcher.ended().items():
            if point.service.startswith("by_key."):
                found.setdefault(point, Where(seed, False, number, keyed=True))
    return found


def points_of_followers(seeds: Sequence[int] = FOLLOWED_SEEDS) -> dict[Point, Where]:
    """Return every point beside the effects of jobs that wait for others."""
    found: dict[Point, Where] = {}
    for seed in seeds:
        watcher = Watcher()
        report = _run(seed, False, watcher, followed=True)
        if report.violations:
            raise AssertionError(f"the scene fails without a crash: {report.examples}")
        for point, number in watcher.ended().items():
            if point.service == "follow_up.follow" or {"follow", "note_ends"} & {point.after, point.before} or point.before == "add":
                found.setdefault(point, Where(seed, False, number, followed=True))
    return found


def crash(where: Where) -> tuple[Report, str | None]:
    """Run the scene with a crash after this effect. Returns the report and the killed service."""
    watcher = Watcher(fatal=where.number)
    report = _run(where.seed, where.dense, watcher, where.keyed, where.followed)
    return report, watcher.died


def _run(seed: int, dense: bool, watcher: Watcher, keyed: bool = False, followed: bool = False) -> Report:
    scene = KeyedScene if keyed else Scene
    with patch("scheduler.pipeline.dispatch.SPARSE", -1 if dense else dispatch.SPARSE):
        return scene(seed, watcher).run(**SCENE | (FOLLOWED if followed else {}))


def main() -> int:
    parser = argparse.ArgumentParser(description="Crash every service after each of its effects, and check that everything recovers.")
    parser.add_argument("--only", default="", help="only services whose names contain this text")
    args = parser.parse_args()
    logging.disable(logging.CRITICAL)
    found = {point: where for point, where in (points() | points_of_keys() | points_of_followers()).items() if args.only in point.service}
    tried: Counter[str] = Counter()
    recovered: Counter[str] = Counter()
    for point, where in sorted(found.items()):
        report, _ = crash(where)
        tried[point.service] += 1
        recovered[point.service] += not report.violations
        for example in report.examples:
            print(f"{point.service}: after {point.after}, before {point.before} ({where}): {example}", flush=True)
    print(f"{'service':28} {'points':>6} {'recovered':>9}")
    for service, count in sorted(tried.items()):
        print(f"{service:28} {count:6} {recovered[service]:9}")
    print(f"{'all':28} {tried.total():6} {recovered.total():9}")
    return 0 if tried == recovered else 1


if __name__ == "__main__":
    sys.exit(main())
