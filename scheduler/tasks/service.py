"""What people do with tasks: create, edit, pause, resume, delete, run now, look ahead, search."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from scheduler.admission.ordering_queue import line_up
from scheduler.model import ids
from scheduler.model.errors import Conflict, Invalid, NotFound, Unavailable
from scheduler.model.job import Job, JobKey, Misfire, Overlap, Receipt, TaskKey
from scheduler.model.notifications import Notifications
from scheduler.model.paging import read_on, read_position
from scheduler.model.rules import Rules
from scheduler.model.spec import JobSpec
from scheduler.pipeline.enqueue import on_their_way
from scheduler.storage.ports import Clock, Jobs, Lanes, Orders, Receipts, Tasks
from scheduler.tasks import planning, schedule_form
from scheduler.tasks.schedule import Once, Run, Schedule
from scheduler.tasks.task import STORED_WITH_IT, Task, TaskPage, TaskStatus, status
from scheduler.tasks.top_up import TopUp
from scheduler.tasks.withdraw import withdraw_runs

TRIES = 5  # an edit that meets another one begins anew


@dataclass(frozen=True, slots=True)
class NewTask:
    """A task as its owner asks for it; all but `schedule` is validated already. None where the default is wanted."""

    owner: str
    name: str
    spec: JobSpec
    schedule: Mapping[str, object] | None = None  # as `schedule_form.parse` takes it; None: at once
    description: str | None = None
    overlap: Overlap | None = None  # recurring: skip; else allow
    misfire: Misfire | None = None  # of recurring tasks only
    misfire_threshold_ms: int | None = None
    max_catch_up: int | None = None
    notifications: Notifications | None = None


@dataclass(frozen=True, slots=True)
class World:
    """The ports that the verbs of this module need."""

    tasks: Tasks
    jobs: Jobs
    orders: Orders
    lanes: Lanes
    receipts: Receipts
    clock: Clock
    rules: Rules


@dataclass(frozen=True, slots=True)
class Search:
    """Which tasks of an owner. `name`: part of the name, in any case."""

    owner: str
    name: str | None = None
    tag: str | None = None
    type: str | None = None
    status: TaskStatus | None = None
    limit: int = 20
    cursor: str | None = None


def create(new: NewTask, world: World, *, random: int, receipt: Receipt | None = None) -> Task:
    """Store the task with its next runs, and hand over those that are due soon.

    With a `receipt` whose key was used before for the same request, the task as it was made then, and nothing is stored.
    Raises Invalid (fields of the schedule are led by `schedule.`), Conflict for a key used for another request, Unavailable.
    """
    now = world.clock.now() if receipt is None else receipt.at
    if receipt is not None and (earlier := world.receipts.find(receipt.owner, receipt.key, now)):
        return _made_before(new, receipt, earlier, world.rules)
    task = _first(new, now, random if receipt is None else receipt.random)
    plan = _store(None, task, world, now, receipt)
    if plan is None:
        earlier = world.receipts.find(receipt.owner, receipt.key, now) if receipt else None
        if receipt is None or earlier is None:
            raise Unavailable
        return _made_before(new, receipt, earlier, world.rules)
    return _filled(plan, world)


def edit(key: TaskKey, new: NewTask, world: World, *, generation: int | None = None) -> Task:
    """Replace the task; its runs that have not started are replaced by those of the new schedule when this returns.

    A schedule that is sent back as it was read is the same schedule: a rate keeps its beat, and an instant already past does not
    come again. Raises NotFound, Invalid, Unavailable, and Conflict if the task has another generation than the one given.
    """

    def edited(task: Task, now: int) -> Task:
        if generation not in (None, task.generation):
            raise Conflict(f"the task was changed meanwhile: its generation is {task.generation}")
        made = _made(new, task.id, _parsed(new.schedule, task, now), now)
        kept = replace(made, created_at=task.created_at, inactive_at=task.inactive_at, inactive_reason=task.inactive_reason)
        return replace(kept, planned_until=planning.since(task, kept.schedule, now))

    return _changed(key, edited, world)


def deactivate(key: TaskKey, reason: str | None, world: World) -> Task:
    """Pause: its future runs are taken away, and none starts any more when this returns. Idempotent. Raises NotFound, Unavailable."""

    def paused(task: Task, now: int) -> Task | None:
        if task.inactive_at is not None:
            return None
        return replace(task, inactive_at=now, inactive_reason=reason, planned_until=now)

    return _changed(key, paused, world)


def activate(key: TaskKey, world: World) -> Task:
    """Resume: plan from now on. What would have run meanwhile does not. Idempotent. Raises NotFound, Unavailable."""

    def resumed(task: Task, now: int) -> Task | None:
        if task.inactive_at is None:
            return None
        active = replace(task, inactive_at=None, inactive_reason=None, planned_until=now)
        return replace(active, planned_until=planning.since(active, active.schedule, now))

    return _changed(key, resumed, world)


def delete(key: TaskKey, world: World) -> Task:
    """Delete the task and its future runs; what has run stays in the history. Raises NotFound, Unavailable."""
    for _ in range(TRIES):
        task = find(key, world)
        if world.tasks.delete(task):
            withdraw_runs(task, jobs=world.jobs, orders=world.orders, clock=world.clock)
            return task
    raise Unavailable("the task keeps changing; try again")


def run_now(key: TaskKey, world: World, *, random: int, overlap: Overlap | None = None, receipt: Receipt | None = None) -> Job:
    """A run outside the schedule, now; `overlap` None: as the task says.

    With a `receipt` whose key was used before for the same request, the run as it was made then. Raises NotFound, Unavailable,
    Conflict if the task is inactive or the key was used for another request.
    """
    now = at = world.clock.now()
    if receipt is not None:
        (standing,) = world.receipts.keep([receipt], now)
        if standing is None:
            raise Unavailable
        _compare(receipt, standing)
        at, random = standing.at, standing.random
        if standing != receipt and (made := world.jobs.get(JobKey(key.owner, ids.new(at, random)))):
            return planning.as_asked(made, world.rules)
    task = find(key, world)
    if task.inactive_at is not None:
        raise Conflict("the task is inactive")
    run = planning.by_hand(task, at, random, overlap, now, world.rules)
    _line_up([run], now, world)
    world.jobs.put(run)  # False can only be an earlier, unanswered try
    return _handed_over([run], now, world)[0]


def find(key: TaskKey, world: World) -> Task:
    """One task. Raises NotFound."""
    task = world.tasks.get(key)
    if task is None:
        raise NotFound("there is no such task")
    return task


def search(query: Search, world: World) -> TaskPage:
    """A page of tasks, the newest first. Its cursor is None only if nothing more can match. Raises Invalid for a bad cursor."""
    now = world.clock.now()
    filtered = any(wanted is not None for wanted in (query.name, query.tag, query.type, query.status))

    def read(after: str | None, limit: int) -> tuple[list[Task], str | None]:
        page = world.tasks.page(query.owner, after=after, limit=limit)
        return page.tasks, page.cursor

    found, cursor = read_on(
        read,
        after=read_position(query.cursor),
        limit=query.limit,
        matches=(lambda task: _matches(task, query, now)) if filtered else None,
        position=lambda task: task.id,
        payload=lambda task: task.spec.payload,
    )
    return TaskPage(found, cursor)


def next_runs(task: Task, count: int, now: int) -> list[Run]:
    """Its next runs; none while it is inactive."""
    return planning.next_runs(task, now, count)


def _changed(key: TaskKey, change: Callable[[Task, int], Task | None], world: World) -> Task:
    """The task after `change` (None: it is so already) in a new generation, its old runs withdrawn, its new ones stored."""
    for _ in range(TRIES):
        task, now = find(key, world), world.clock.now()
        changed = change(task, now)
        if changed is None:
            return task
        left = task.planned - len(planning.to_come(task, now))
        changed = replace(changed, generation=task.generation + 1, updated_at=now, planned=left, replenish=None)
        if plan := _store(task, changed, world, now):
            withdraw_runs(task, jobs=world.jobs, orders=world.orders, clock=world.clock)
            return _filled(plan, world)
    raise Unavailable("the task keeps changing; try again")


def _store(before: Task | None, task: Task, world: World, now: int, receipt: Receipt | None = None) -> planning.Planned | None:
    """Store the task with its first runs and hand those over that are due soon. None if it was changed, or made, meanwhile."""
    plan = planning.further(task, now, world.rules, most=STORED_WITH_IT)
    _line_up(plan.runs, now, world)
    if not world.tasks.store(before, plan.task, plan.runs, receipt):
        return None
    _handed_over(plan.runs, now, world)
    return plan


def _filled(plan: planning.Planned, world: World) -> Task:
    """The task with all runs that are wanted now; what is refused here is made good by plan."""
    if plan.complete:
        return plan.task
    return next(iter(TopUp(world.tasks, world.jobs, world.orders, world.lanes, world.clock, world.rules).top_up([plan.task])), plan.task)


def _line_up(runs: list[Job], now: int, world: World) -> None:
    """Put their markers before they are stored, if they have an ordering key. Raises Unavailable."""
    if not all(line_up(runs, orders=world.orders, now=now)):
        raise Unavailable


def _handed_over(runs: list[Job], began: int, world: World) -> list[Job]:
    return on_their_way(runs, began, jobs=world.jobs, lanes=world.lanes, clock=world.clock, rules=world.rules)


def _made_before(new: NewTask, receipt: Receipt, earlier: Receipt, rules: Rules) -> Task:
    """The task as it was answered first: all of it follows from the request and its receipt."""
    _compare(receipt, earlier)
    return planning.further(_first(new, earlier.at, earlier.random), earlier.at, rules, most=STORED_WITH_IT).task


def _first(new: NewTask, at: int, random: int) -> Task:
    """The task that is asked for at the instant `at`, before any run is planned."""
    schedule = _parsed(new.schedule, None, at)
    return replace(_made(new, ids.new(at, random, partitions=1), schedule, at), planned_until=planning.since(None, schedule, at))


def _compare(receipt: Receipt, standing: Receipt) -> None:
    if receipt.fingerprint != standing.fingerprint:
        raise Conflict("the idempotency key was used for another request")


def _parsed(form: Mapping[str, object] | None, task: Task | None, now: int) -> Schedule | None:
    if form is None:
        return None
    if task is not None and task.schedule is not None:
        if {name: value for name, value in form.items() if value is not None} == schedule_form.write(task.schedule):
            return task.schedule
    try:
        return schedule_form.parse(form, now)
    except Invalid as error:
        (detail,) = error.details
        field = detail["field"]
        raise Invalid.field(field if field == "schedule" else f"schedule.{field}", detail["rule"]) from None


def _made(new: NewTask, task_id: str, schedule: Schedule | None, now: int) -> Task:
    recurring = schedule is not None and not isinstance(schedule.spec, Once)
    chosen = {"misfire": new.misfire, "misfire_threshold_ms": new.misfire_threshold_ms, "max_catch_up": new.max_catch_up}
    given: dict[str, Any] = {name: value for name, value in chosen.items() if value is not None}
    return Task(
        owner=new.owner,
        id=task_id,
        name=new.name,
        spec=new.spec,
        schedule=schedule,
        created_at=now,
        updated_at=now,
        description=new.description,
        overlap=new.overlap or (Overlap.SKIP if recurring else Overlap.ALLOW),
        notifications=new.notifications,
        **given,
    )


def _matches(task: Task, query: Search, now: int) -> bool:
    return (
        (query.name is None or query.name.casefold() in task.name.casefold())
        and (query.tag is None or query.tag in task.spec.tags)
        and query.type in (None, task.spec.type)
        and query.status in (None, status(task, now))
    )
