"""The next runs of a task to store as jobs, and the time to plan again: pure decisions over its schedule.

All decisions follow from the task and the instant. A planner that continues the work of another one, or two planners at once, create
the same runs with the same ids. So no run is stored twice, and none is omitted.

After a long time without planning, the past runs are a `Gap` of the task. `further` ignores it and stores the future runs. `catch_up`
then processes it in steps, and one history entry represents all runs of a step whose start deadline has passed. An edit hands the gap
on, or stores the entry that represents it: see `hand_on`.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice, takewhile
from typing import NamedTuple

from scheduler.model import ids, lifecycle, slots
from scheduler.model.job import Job, JobKey, Lane, Misfire, Overlap, RunInfo, changed, new_job
from scheduler.model.misfire import missed_with, plan_start_by
from scheduler.model.rules import Rules
from scheduler.model.schedule import Once, Schedule
from scheduler.model.slots import MINUTE
from scheduler.model.task import Gap, Task
from scheduler.tasks.schedule import Run, after

PLAN_SHARDS = 8  # slots of a minute of the replenish index
RUNS_AHEAD, TIME_AHEAD = 10, 15 * MINUTE  # a top-up stores at least this many runs, and those of at least this time (ms)
RUNS_LEFT, TIME_LEFT = 4, 15 * MINUTE // 2  # the next top-up happens when only this many runs or this time is left
NEAREST = 2 * MINUTE  # a replenish minute is never nearer: plan may be processing the minutes before it
MOST = 1_000  # runs stored in one step
FEW, BEHIND = 10, 5 * MINUTE  # a task that missed more runs and time gets its future runs first; the missed ones become a gap
WALK, CAUGHT = 2_000, 100  # of a gap, the runs that one step decides on, and the runs that it stores
INHERITED = 10  # edits that hand a gap on: for each of them, `earlier_keys` has one more key of each run
HORIZON_MS = 366 * 24 * 60 * MINUTE  # a start deadline never depends on a run that is farther away


class Planned(NamedTuple):
    """The next step of planning: the runs to store, and the task with them."""

    runs: list[Job]
    task: Task  # the task after the runs are stored
    complete: bool  # False: further runs are to be stored at once
    missed: int = 0  # runs of a gap whose start deadline has passed; the first run of `runs` represents them


def further(task: Task, now: int, rules: Rules, *, most: int = MOST) -> Planned:
    """The runs after `planned_until` to store at `now`, including overdue ones; at most `most` of them."""
    if task.inactive_at is not None:
        return Planned([], replace(task, replenish=None), True)
    task = _with_gap(task, now)
    schedule = _schedule(task)
    if task.gap is not None and schedule.max_runs is not None:  # the number of remaining runs is known once the missed ones are counted
        return Planned([], replace(task, replenish=slots.slot(_nearest(now), task.id, PLAN_SHARDS)), True)
    stored, beyond = _split(after(replace(schedule, max_runs=None), min(now, task.planned_until - 1), seed=task.id), task.planned_until)
    if schedule.max_runs is not None:
        beyond = islice(beyond, max(0, schedule.max_runs - task.planned))
    ahead = [run.nominal for run in stored if run.nominal > now]
    new = list[Run]()
    while not (complete := _reaches(ahead, now)) and len(new) < most and (run := next(beyond, None)):
        new.append(run)
        ahead += [run.nominal] if run.nominal > now else []
    later = _following_runs(task, new, beyond)
    until = new[-1].nominal if new else task.planned_until
    minute = _replenish_minute(ahead, until, now) if complete and task.gap is None else _nearest(now)
    moved = replace(
        task,
        planned_until=until,
        planned=task.planned + len(new),
        replenish=slots.slot(minute, task.id, PLAN_SHARDS) if later or task.gap else None,
    )
    return Planned(_jobs(task, stored, new, later, now, rules), moved, complete or not later)


def catch_up(task: Task, now: int, rules: Rules, *, each: bool = False) -> Planned:
    """The next step through the gap of a task that has one: the runs that could still start, and an entry for those that could not.

    The last omitted run is that entry: a skipped job whose reason counts the others. The steps follow from the task alone. `each`: every
    run that could not start gets an entry of its own.
    """
    gap, schedule = task.gap, _schedule(task)
    if gap is None:
        return Planned([], task, True)
    previous, runs = _split(after(replace(schedule, max_runs=None), gap.after - 1, seed=task.id), gap.after)
    if schedule.max_runs is not None:
        runs = islice(runs, max(0, schedule.max_runs - task.planned))
    walked, beyond = _walk(runs, gap.until)
    instants = [run.at for run in (*walked, *(_following_runs(task, walked, beyond) if walked else ()))]
    reach = _reach(task)
    deadlines = [_start_by(task, run.at, instants[number + 1 : number + 1 + reach]) for number, run in enumerate(walked)]
    # The runs that could not start are the first ones: no deadline is before that of an earlier run.
    over = sum(1 for deadline in deadlines if deadline is not None and deadline <= gap.at)
    through = min(len(walked), over + CAUGHT)
    first = 0 if each else max(0, over - 1)
    before: list[int | None] = [previous[-1].at if previous else None, *instants]
    made = [
        _run(task, walked[number], before[number], instants[number + 1 : number + 1 + reach], now, rules)
        for number in range(first, through)
    ]
    if over and not each:
        made[0] = lifecycle.skip(made[0], now, reason=missed_with(made[0], over, walked[0].at), retention=rules.retention)
    for number in range(over if each else 0):
        made[number] = lifecycle.skip(made[number], now, reason=missed_with(made[number], 1, walked[number].at), retention=rules.retention)
    left = replace(gap, after=walked[through - 1].nominal) if through < len(walked) or len(walked) == WALK else None
    moved = replace(task, gap=left, planned=task.planned + through)
    if left is None and schedule.max_runs is not None:  # its runs may be used up before the end of the gap
        moved = replace(moved, planned_until=walked[-1].nominal if walked else gap.after)
    return Planned(made, moved, left is None, 0 if each else over)


def by_hand(task: Task, at: int, random: int, overlap: Overlap | None, now: int, rules: Rules) -> Job:
    """A manual run, requested for the instant `at` (ms), in the lane of one-time jobs.

    `random` fills its id: see `ids.new`. `overlap` None: the task's own rule applies.
    """
    rule, notify = overlap or task.overlap, task.notifications is not None
    origin = RunInfo(task.id, task.generation, overlap=rule, notify=notify)
    return changed(_job(task, ids.new(at, random), at, now, rules, origin), lane=Lane.ONE_TIME)


def as_requested(run: Job, rules: Rules) -> Job:
    """A manual run as it was when it was created, regardless of its present state."""
    return Job(
        owner=run.owner,
        id=run.id,
        spec=run.spec,
        scheduled_at=run.scheduled_at,
        due_at=run.created_at,
        created_at=run.created_at,
        slot=slots.place(run.created_at, run.created_at, run.id, rules.shards).slot,
        lane=Lane.ONE_TIME,
        origin=run.origin,
        group=run.group,
        member=run.member,
    )


def since(old: Task | None, schedule: Schedule | None, now: int) -> int:
    """The nominal time (ms) after which the runs of a new generation begin; `old` is the generation before it, if any.

    It is `now`, with two exceptions. A new schedule for an instant already past runs at once, unless `old` had the same schedule. Runs of
    `old` whose nominal time has passed, but which jitter delays beyond `now`, belong to the new generation, too.
    """
    if old is None or schedule != old.schedule:
        if schedule is None:
            return now - 1
        if isinstance(schedule.spec, Once):
            return min(now, schedule.spec.at - 1)
    if old is None or old.inactive_at is not None:
        return now
    put_off = next((run for run in _from(old, now) if run.at > now and run.nominal > old.created_at), None)
    return now if put_off is None else min(now, put_off.nominal - 1)


def hand_on(old: Task, new: Task, now: int, rules: Rules) -> tuple[Task, list[Job]]:
    """Settle the runs that `old` has missed, for the generation `new` that replaces it. Returns `new`, and the entries to store with it.

    If the schedule and the misfire rule stay, `new` inherits the missed runs as its gap. Otherwise an entry of the history represents them.
    """
    gap = _missed(old, now) if old.replenish is not None and old.inactive_at is None else None
    if gap is None:
        return new, []
    first = gap.generation or old.generation
    keeps = new.inactive_at is None and (new.schedule, new.misfire) == (old.schedule, old.misfire)
    if keeps and new.generation - first <= INHERITED:
        return replace(new, gap=replace(gap, generation=first)), []
    schedule = _schedule(old)
    taken = new.schedule.spec.at if new.schedule is not None and isinstance(new.schedule.spec, Once) else None  # has its run in `new`
    runs = after(replace(schedule, max_runs=None), gap.after, seed=old.id)
    runs = (run for run in takewhile(lambda run: run.nominal <= gap.until, runs) if run.at != taken)
    if schedule.max_runs is not None:
        runs = islice(runs, max(0, schedule.max_runs - new.planned))
    count, since, last = 0, 0, None
    for last in runs:
        count, since = count + 1, since or last.at
    if last is None:
        return new, []
    entry = _run(replace(old, generation=new.generation), last, None, [], now, rules)
    entry = changed(entry, id=ids.run(last.at, old.id, -new.generation))  # `new` may have a run of its own at this instant
    why = f"its task was {'paused' if new.inactive_at is not None else 'edited'}"
    entry = lifecycle.cancel(entry, now, reason=missed_with(entry, count, since, why), retention=rules.retention)
    return replace(new, planned=new.planned + count), [entry]


def earlier_keys(task: Task, run: Job) -> list[JobKey]:
    """The keys of a missed run under the generations before `task`, from which it inherits its gap: one of them may have stored it."""
    nominal = run.origin.nominal_at if run.origin is not None else None
    if task.gap is None or task.gap.generation is None or nominal is None or nominal > task.gap.until:
        return []
    generations = range(task.gap.generation, task.generation)
    return [JobKey(task.owner, ids.run(run.scheduled_at, task.id, generation)) for generation in generations]


def to_come(task: Task, now: int) -> list[Run]:
    """The stored runs of the task's present generation whose instant is later than `now`, computed from its schedule."""
    if task.inactive_at is not None:
        return []
    return [run for run in _stored(task, now) if run.at > now]


def to_withdraw(task: Task, now: int) -> list[JobKey]:
    """The keys of the runs of the task's present generation that may be stored and are due later than `now`.

    They include the runs of a top-up that may have happened since `task` was read.
    """
    growing = task.replenish is not None and slots.start_of(slots.minute(task.replenish)) <= now + 2 * NEAREST
    found, ahead = list[JobKey](), list[int]()
    for run in _from(task, now):
        if run.nominal > task.planned_until and (not growing or _reaches(ahead, now + MINUTE)):
            break
        ahead += [run.nominal] if run.nominal > now + MINUTE else []
        if run.at > now:
            found.append(JobKey(task.owner, ids.run(run.at, task.id, task.generation)))
    return found


def next_runs(task: Task, now: int, count: int) -> list[Run]:
    """The task's next `count` runs after `now`, stored or not; fewer if its schedule ends, none while it is inactive."""
    return [run for run, _ in islice(_to_come(task, now), count)]


def position(task: Task, now: int) -> tuple[int, int] | None:
    """The last instant before the nominal time of the task's next run, and the number of runs before it; None: no run is left."""
    return next(((run.nominal - 1, before) for run, before in _to_come(task, now)), None)


def _to_come(task: Task, now: int) -> Iterator[tuple[Run, int]]:
    """The runs after `now`, each with the number of runs before it, which `max_runs` includes."""
    if task.inactive_at is not None or task.schedule is None:
        return
    begin = max(min(now - task.schedule.jitter_ms, task.planned_until), task.created_at)
    planned = task.planned - sum(1 for run in _stored(task, begin) if run.nominal > begin)
    runs = enumerate(after(task.schedule, begin, seed=task.id, planned=planned), planned)
    yield from ((run, before) for before, run in runs if run.at > now)


def _with_gap(task: Task, now: int) -> Task:
    """The task with its missed runs in a gap, if they exceed `FEW` and `BEHIND`: `planned_until` is then the last missed run."""
    if not task.is_recurring or task.planned_until >= now - BEHIND or _is_used_up(task):
        return task
    missed = takewhile(lambda run: run.at <= now, after(replace(_schedule(task), max_runs=None), task.planned_until, seed=task.id))
    if len(list(islice(missed, FEW + 1))) <= FEW or (gap := _missed(task, now)) is None:
        return task
    return replace(task, planned_until=gap.until, gap=gap)


def _missed(task: Task, now: int) -> Gap | None:
    """The gap of the task with all further runs that are missed by now, None if there are none."""
    last = None if not task.is_recurring or _is_used_up(task) else _last_missed(task, now)
    if last is None:
        return task.gap
    if task.gap is None:
        return Gap(task.planned_until, last.nominal, now)
    return replace(task.gap, until=last.nominal, at=now)


def _is_used_up(task: Task) -> bool:
    """Whether the task has had all runs that its `max_runs` allows."""
    most = _schedule(task).max_runs
    return most is not None and task.planned >= most


def _last_missed(task: Task, now: int) -> Run | None:
    """The last run after `planned_until` whose instant is not later than `now`. It is searched backwards, in ever larger spans."""
    span, last = MINUTE, None
    while last is None:
        begin = max(now - span, task.planned_until)
        for run in takewhile(lambda run: run.at <= now, after(replace(_schedule(task), max_runs=None), begin, seed=task.id)):
            last = run
        if begin == task.planned_until:
            break
        span *= 4
    return last


def _walk(runs: Iterator[Run], until: int) -> tuple[list[Run], Iterator[Run]]:
    """Split runs into those up to the nominal time `until`, `WALK` of them at most, and the rest."""
    walked = list[Run]()
    for run in runs:
        if run.nominal > until or len(walked) == WALK:
            return walked, chain([run], runs)
        walked.append(run)
    return walked, iter(())


def _schedule(task: Task) -> Schedule:
    return task.schedule or Schedule(Once(task.updated_at))  # at once


def _stored(task: Task, instant: int) -> list[Run]:
    """The runs up to `planned_until` whose instant may be later than `instant`."""
    return list(takewhile(lambda run: run.nominal <= task.planned_until, _from(task, instant)))


def _from(task: Task, instant: int) -> Iterator[Run]:
    """The runs by the schedule whose instant may be later than `instant`, without regard to `max_runs`."""
    schedule = _schedule(task)
    return after(replace(schedule, max_runs=None), instant - schedule.jitter_ms, seed=task.id)


def _split(runs: Iterator[Run], until: int) -> tuple[list[Run], Iterator[Run]]:
    """Split runs into those up to the nominal time `until` and the rest."""
    stored = list[Run]()
    for run in runs:
        if run.nominal > until:
            return stored, chain([run], runs)
        stored.append(run)
    return stored, iter(())


def _reaches(ahead: list[int], now: int) -> bool:
    return len(ahead) >= RUNS_AHEAD and ahead[-1] >= now + TIME_AHEAD


def _following_runs(task: Task, new: list[Run], beyond: Iterator[Run]) -> list[Run]:
    """The runs after the new ones that determine the start deadlines of those; at least one, if there is any."""
    first = next(beyond, None)
    if first is None:
        return []
    horizon = (new[-1] if new else first).at + HORIZON_MS
    return [first, *takewhile(lambda run: run.at <= horizon, islice(beyond, _reach(task) - 1))]


def _replenish_minute(ahead: list[int], until: int, now: int) -> str:
    """The minute in which only `RUNS_LEFT` or `TIME_LEFT` of the stored runs are left, whichever comes first."""
    return max(slots.minute_of(min(ahead[-1 - RUNS_LEFT], until - TIME_LEFT)), _nearest(now))


def _nearest(now: int) -> str:
    return slots.minute_of(now + NEAREST + MINUTE - 1)


def _jobs(task: Task, previous: list[Run], new: list[Run], later: list[Run], now: int, rules: Rules) -> list[Job]:
    instants = [run.at for run in (*new, *later)]
    before: list[int | None] = [previous[-1].at if previous else None, *instants]
    reach = _reach(task)
    return [_run(task, run, before[number], instants[number + 1 : number + 1 + reach], now, rules) for number, run in enumerate(new)]


def _reach(task: Task) -> int:
    """The number of the following runs that determine the start deadline of a run."""
    return max(1, task.max_catch_up) if task.misfire is Misfire.RUN_ALL else 1


def _start_by(task: Task, at: int, following: list[int]) -> int | None:
    return plan_start_by(task.misfire, at, following, task.misfire_threshold_ms, task.max_catch_up)


def _run(task: Task, run: Run, previous: int | None, following: list[int], now: int, rules: Rules) -> Job:
    in_order = task.is_recurring and task.misfire is Misfire.RUN_ALL
    origin = RunInfo(
        task.id,
        task.generation,
        run.nominal,
        task.overlap,
        misfire=task.misfire if task.is_recurring else None,
        late_from=run.at + task.misfire_threshold_ms if in_order else None,
        previous_at=previous if in_order else None,
        next_at=following[0] if in_order and following else None,
        notify=task.notifications is not None,
    )
    start_by = _start_by(task, run.at, following) if task.is_recurring else None
    return _job(task, ids.run(run.at, task.id, task.generation), run.at, now, rules, origin, start_by)


def _job(task: Task, job_id: str, at: int, now: int, rules: Rules, origin: RunInfo, start_by: int | None = None) -> Job:
    due_at = max(at, now)
    return new_job(
        owner=task.owner,
        id=job_id,
        spec=task.spec,
        scheduled_at=at,
        due_at=due_at,
        created_at=now,
        slot=slots.place(due_at, now, job_id, rules.shards).slot,
        lane=task.lane,
        origin=origin,
        start_by=start_by,
    )
