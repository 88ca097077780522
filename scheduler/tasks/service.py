"""The operations on tasks: create, edit, pause, resume, delete, run now, list the next runs, search."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from scheduler.admission import key_limits
from scheduler.admission.ordering_queue import join_queues
from scheduler.groups import membership
from scheduler.model import ids
from scheduler.model.alerts import Alerts
from scheduler.model.calendar import Calendar
from scheduler.model.errors import Conflict, Invalid, NotFound, Unavailable
from scheduler.model.job import Job, JobKey, Misfire, Overlap, OwnKey, Receipt, TaskKey
from scheduler.model.notifications import Notifications
from scheduler.model.paging import read_on, read_position
from scheduler.model.rules import Rules
from scheduler.model.run_timer import RunTimer
from scheduler.model.schedule import Once, Schedule
from scheduler.model.spec import JobSpec
from scheduler.model.task import STORED_WITH_IT, Task, TaskPage, TaskStatus, planned_as, status
from scheduler.pipeline.enqueue import enqueue_if_due_soon
from scheduler.storage.ports import Ports
from scheduler.tasks import calendar_form, calendars, deadlines, planning, run_timers, schedule_form, watch
from scheduler.tasks.schedule import Run
from scheduler.tasks.top_up import TopUp
from scheduler.tasks.withdraw import withdraw_runs

TRIES = 5  # an edit that loses a race against another one starts from scratch
PUT_TRIES = 20
_NO_TIME = "requires a schedule: a task without one runs once, when it is created"


class PutOutcome(StrEnum):
    """The actual effect of a put by key."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class NewTask:
    """The draft of a task; all fields except `schedule` are already validated. None: the default."""

    owner: str
    name: str
    spec: JobSpec
    schedule: Mapping[str, object] | None = None  # as `schedule_form.parse` accepts it; None: run at once
    description: str | None = None
    overlap: Overlap | None = None  # default of a recurring task: skip; of others: allow
    misfire: Misfire | None = None  # of recurring tasks only
    misfire_threshold_ms: int | None = None
    max_catch_up: int | None = None
    notifications: Notifications | None = None
    alerts: Alerts | None = None
    paused: bool = False  # at its creation; an edit leaves pauses as they are
    pause_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Search:
    """A filter over the tasks of an owner. `name`: a part of the name, ignoring case."""

    owner: str
    name: str | None = None
    tags: tuple[str, ...] = ()  # all of these tags
    type: str | None = None
    statuses: tuple[TaskStatus, ...] = ()  # any of these; empty: of any status
    limit: int = 20
    cursor: str | None = None


def create(new: NewTask, ports: Ports, *, random: int, receipt: Receipt | None = None) -> Task:
    """Store the task with its next runs, and enqueue the runs that are due soon.

    With a `receipt` whose key was used before for the same request, return the task as created then, and store nothing.
    Raises Invalid (with `schedule.` before the name of a field of the schedule), TooLarge, Conflict for a key used for another request
    and for a key of another task, Unavailable.
    """
    now = ports.clock.now() if receipt is None else receipt.at
    if receipt is not None and (earlier := ports.receipts.find(receipt.owner, receipt.key, now)):
        return _made_before(new, receipt, earlier, ports)
    task = _first(new, now, random if receipt is None else receipt.random, ports)
    _check(task, ports, now)
    plan = _store(None, task, ports, now, receipt, _free(task.own_key, ports))
    if plan is None:
        _free(task.own_key, ports)
        earlier = ports.receipts.find(receipt.owner, receipt.key, now) if receipt else None
        if receipt is None or earlier is None:
            raise Unavailable
        return _made_before(new, receipt, earlier, ports)
    return _filled(plan, ports)


def put(new: NewTask, ports: Ports, *, random: int, generation: int | None = None) -> tuple[Task, PutOutcome]:
    """Create the task of the draft's key, or replace it as `edit` does; a task that already matches the request stays unchanged.

    Raises Invalid, TooLarge, Unavailable, and Conflict if the task has another generation than the one given, or if other requests
    keep changing it.
    """
    assert new.spec.key is not None
    own = OwnKey(new.owner, new.spec.key)
    for _ in range(PUT_TRIES):
        former = ports.tasks.of_key(own)
        stored = None if former is None else ports.tasks.get(TaskKey(own.owner, former))
        if stored is not None:
            check_generation(stored, generation)
            try:
                edited = edit(stored.key, new, ports, generation=stored.generation, keeps_same=True)
            except (Conflict, NotFound) as error:
                if error.details:
                    raise  # its limit is refused
                continue  # it was changed or deleted in between
            return edited, PutOutcome.UNCHANGED if edited.generation == stored.generation else PutOutcome.UPDATED
        now = ports.clock.now()
        task = _first(new, now, random, ports)
        _check(task, ports, now)
        plan = _store(None, task, ports, now, former=former)
        if plan is not None:
            return _filled(plan, ports), PutOutcome.CREATED
    raise Conflict("other requests keep changing the task of this key; try again")


def would_put(new: NewTask, ports: Ports, *, random: int, generation: int | None = None) -> tuple[Task | None, Task, PutOutcome]:
    """The stored task, the task after a `put` at this moment, and its outcome; nothing is changed.

    A stored task keeps its generation and times. Raises what `put` raises for the request.
    """
    assert new.spec.key is not None
    own, now = OwnKey(new.owner, new.spec.key), ports.clock.now()
    id = ports.tasks.of_key(own)
    stored = None if id is None else ports.tasks.get(TaskKey(own.owner, id))
    if stored is None:
        task = _first(new, now, random, ports)
        _check(task, ports, now)
        return None, _begun(task, now, ports.rules).task, PutOutcome.CREATED
    check_generation(stored, generation)
    edited = _replaced(stored, new, now, ports, keeps_same=True)
    if edited is None:
        return stored, stored, PutOutcome.UNCHANGED
    changed, entries = planning.hand_on(stored, _next_generation(stored, edited, now), now, ports.rules)
    after = _begun(changed, now, ports.rules, beside=len(entries)).task
    return stored, replace(after, updated_at=stored.updated_at, generation=stored.generation), PutOutcome.UPDATED


def find_by_key(own: OwnKey, ports: Ports) -> Task:
    """Return the task that has the key. Raises NotFound."""
    id = ports.tasks.of_key(own)
    task = None if id is None else ports.tasks.get(TaskKey(own.owner, id))
    if task is None:
        raise NotFound("no task has this key")
    return task


def edit(
    key: TaskKey,
    new: NewTask | Callable[[Task], NewTask | None],
    ports: Ports,
    *,
    generation: int | None = None,
    keeps_same: bool = False,
) -> Task:
    """Replace the task. When this returns, the runs of the new schedule have replaced all runs that had not started.

    `new` may depend on the stored task; None leaves it unchanged.

    A schedule sent back as it was read is the same schedule: a rate keeps its rhythm, and an instant that has passed does not
    run again. `keeps_same`: a task that already matches the request stays unchanged, with its generation, and a rate without a start that
    stays the same keeps its own, also if another field changes. The key of a task never changes.
    Raises NotFound, Invalid, TooLarge, Unavailable, and Conflict if the task has another generation than the one given.
    """

    def edited(task: Task, now: int) -> Task | None:
        check_generation(task, generation)
        request = new(task) if callable(new) else new
        if request is None:
            return None
        return _replaced(task, request, now, ports, keeps_same=keeps_same)

    return _changed(key, edited, ports)


def _replaced(task: Task, request: NewTask, now: int, ports: Ports, *, keeps_same: bool) -> Task | None:
    """The task after an edit at `now`, as `edit` describes it; None: it stays unchanged."""
    if request.spec.key not in (None, task.spec.key):
        raise Invalid.field("key", "cannot be changed: delete the task and create another one")
    if keeps_same and request.schedule is not None and task.schedule is not None:
        request = replace(request, schedule=schedule_form.with_start_of(task.schedule, request.schedule))
    known = calendars.named_in(request.schedule, task.owner, ports, used=task.calendars)
    same = keeps_same and _is_same(request.schedule, task, known)
    made = as_task(request, task.id, task.schedule if same else _parsed(request.schedule, task, now, known), now)
    made = replace(made, spec=replace(made.spec, key=task.spec.key))
    _check(made, ports, now)
    updated = replace(made, created_at=task.created_at, inactive_at=task.inactive_at, inactive_reason=task.inactive_reason)
    unchanged = planned_as(replace(updated, updated_at=task.updated_at, generation=task.generation), task) == task
    if keeps_same and unchanged and _written(updated) == _written(task):
        return None
    return replace(updated, planned_until=planning.since(task, updated.schedule, now))


def check_generation(task: Task, expected: int | None) -> None:
    """Raises Conflict if the task has another generation than the requested one; None: any."""
    if expected not in (None, task.generation):
        raise Conflict(f"the task was changed since you read it: its generation is {task.generation}")


def deactivate(key: TaskKey, reason: str | None, ports: Ports, *, settle: bool = True) -> Task:
    """Pause the task and remove its future runs; after this returns, no run starts. Idempotent. Raises NotFound, Unavailable.

    `settle` False: this does not wait for runs that are about to start: see `withdraw_runs`.
    """

    def paused(task: Task, now: int) -> Task | None:
        if task.inactive_at is not None:
            return None
        return replace(task, inactive_at=now, inactive_reason=reason, planned_until=now)

    return _changed(key, paused, ports, settle=settle)


def activate(key: TaskKey, ports: Ports) -> Task:
    """Resume the task from now on; the runs of the pause are not caught up. Idempotent. Raises NotFound, Unavailable."""

    def resumed(task: Task, now: int) -> Task | None:
        if task.inactive_at is None:
            return None
        active = replace(task, inactive_at=None, inactive_reason=None, planned_until=now)
        return replace(active, planned_until=planning.since(active, active.schedule, now))

    return _changed(key, resumed, ports)


def refresh(key: TaskKey, ports: Ports) -> bool:
    """Give the task the present dates of its calendars, and replace its future runs. Returns whether they differed.

    Runs that are about to start may still do so: see `withdraw.settle`. Raises NotFound, Unavailable.
    """
    changed = False

    def replanned(task: Task, now: int) -> Task | None:
        nonlocal changed
        present = calendars.refreshed(task, ports)
        changed = present != task
        return replace(present, planned_until=planning.since(task, present.schedule, now)) if changed else None

    _changed(key, replanned, ports, settle=False)
    return changed


def replan(key: TaskKey, ports: Ports, *, since: int) -> bool:
    """Replace the future runs of a task with the default alerts of its owner; they follow those of now. Returns whether it did.

    A task that was changed since an instant stays as it is, and so does one that is paused. Runs that are about to start may still do so:
    see `withdraw.settle`. Raises NotFound, Unavailable.
    """
    replaced = False

    def replanned(task: Task, now: int) -> Task | None:
        nonlocal replaced
        replaced = task.has_default_alerts and task.updated_at < since and status(task, now) is TaskStatus.ACTIVE
        return replace(task, planned_until=planning.since(task, task.schedule, now)) if replaced else None

    _changed(key, replanned, ports, settle=False)
    return replaced


def delete(key: TaskKey, ports: Ports, *, check: Callable[[Task], None] = lambda task: None, settle: bool = True) -> Task:
    """Delete the task and its future runs; past runs stay in the history. Raises NotFound, Unavailable.

    `check` raises an error if the task, as it is now, must not be deleted. `settle`: see `deactivate`.
    """
    for _ in range(TRIES):
        task = find(key, ports)
        check(task)
        if ports.tasks.delete(task):
            withdraw_runs(task, ports, settle=settle)
            return task
    raise Unavailable("the task keeps changing; try again")


def run_now(
    key: TaskKey,
    ports: Ports,
    *,
    random: int,
    overlap: Overlap | None = None,
    group: str | None = None,
    receipt: Receipt | None = None,
) -> Job:
    """Run the task now, outside its schedule; `overlap` None: the task's own setting applies. `group`: the id of the group that it joins.

    With a `receipt` whose key was used before for the same request, return the run as created then. Raises NotFound, Unavailable,
    and Conflict if the task is paused, the group can take no job, or the key was used for another request.
    """
    now = at = ports.clock.now()
    if receipt is not None:
        (stored,) = ports.receipts.keep([receipt], now)
        if stored is None:
            raise Unavailable
        _compare(receipt, stored)
        at, random = stored.at, stored.random
        if stored != receipt and (made := ports.jobs.get(JobKey(key.owner, ids.new(at, random)))):
            return planning.as_requested(made, ports.rules)
    task = find(key, ports)
    if task.inactive_at is not None:
        raise Conflict("the task is paused")
    ports.jobs.check(task.spec)
    alerts = watch.rules([task], ports).get(key)
    run = planning.by_hand(task, at, random, overlap, now, ports.rules)
    if alerts is not None:
        (run,) = watch.marked([run])
    if group is not None:
        run = membership.join_one(replace(run, group=group), ports, now=now)
    _line_up([run], now, ports)
    _arm(watch.timers_of(task, [run], alerts, now), ports, now)
    ports.jobs.put(run)  # False means only that an earlier try stored it without an answer
    return _handed_over([run], now, ports)[0]


def find(key: TaskKey, ports: Ports) -> Task:
    """Return one task. Raises NotFound."""
    task = ports.tasks.get(key)
    if task is None:
        raise NotFound("there is no such task")
    return task


def search(query: Search, ports: Ports) -> TaskPage:
    """Return a page of tasks, newest first. Its cursor is None only if no further task can match. Raises Invalid for a bad cursor."""
    now = ports.clock.now()
    filtered = bool(query.tags or query.statuses) or query.name is not None or query.type is not None

    def read(after: str | None, limit: int) -> tuple[list[Task], str | None]:
        page = ports.tasks.page(query.owner, after=after, limit=limit)
        return page.tasks, page.cursor

    found, cursor = read_on(
        read,
        after=read_position(query.cursor),
        limit=query.limit,
        matches=(lambda task: _matches(task, query, now)) if filtered else None,
        position=lambda task: task.id,
        parts=lambda task: [task.spec.payload, task.name, task.description],
    )
    return TaskPage(found, cursor)


def has_active(owner: str, ports: Ports) -> bool:
    """Whether a task of the owner is active."""
    cursor = None
    while True:
        page = search(Search(owner, statuses=(TaskStatus.ACTIVE,), limit=1, cursor=cursor), ports)
        if page.tasks or page.cursor is None:
            return bool(page.tasks)
        cursor = page.cursor


def next_runs(task: Task, count: int, now: int) -> list[Run]:
    """The next runs of the task; none while it is inactive."""
    return planning.next_runs(task, now, count)


def _changed(key: TaskKey, change: Callable[[Task, int], Task | None], ports: Ports, *, settle: bool = True) -> Task:
    """Apply `change` in a new generation, withdraw the old runs and store the new ones. A change of None leaves the task as it is."""
    for _ in range(TRIES):
        task, now = find(key, ports), ports.clock.now()
        changed = change(task, now)
        if changed is None:
            return task
        changed = calendars.refreshed(changed, ports)
        changed, entries = planning.hand_on(task, _next_generation(task, changed, now), now, ports.rules)
        if plan := _store(task, changed, ports, now, entries=entries):
            withdraw_runs(task, ports, settle=settle)
            return _filled(plan, ports)
    raise Unavailable("the task keeps changing; try again")


def _next_generation(task: Task, changed: Task, now: int) -> Task:
    left = task.planned - len(planning.to_come(task, now))
    return replace(changed, generation=task.generation + 1, updated_at=now, planned=left, replenish=None, gap=None)


def _store(
    before: Task | None,
    task: Task,
    ports: Ports,
    now: int,
    receipt: Receipt | None = None,
    former: str | None = None,
    entries: Sequence[Job] = (),
) -> planning.Planned | None:
    """Store the task with its first runs and enqueue runs that are due soon. None if another request changed or created it in between.

    Raises Conflict if its key has another limit.

    `entries`: those of the history that represent missed runs.
    """
    plan = _begun(task, now, ports.rules, beside=len(entries))
    alerts = watch.rules([task], ports).get(task.key)
    if alerts is not None:
        plan, entries = plan._replace(runs=watch.marked(plan.runs)), watch.marked(entries)
    if task.spec.limit is not None and (before is None or before.spec.limit != task.spec.limit):
        key_limits.check(key_limits.Claim(task.owner, task.spec.limit, f"task {task.id}", now), ports, now)
    _line_up(plan.runs, now, ports)
    _arm(watch.timers_of(task, plan.runs, alerts, now), ports, now)
    if not ports.tasks.store(before, plan.task, [*entries, *plan.runs], receipt, former=former):
        return None
    _handed_over(plan.runs, now, ports)
    return plan


def _begun(task: Task, now: int, rules: Rules, beside: int = 0) -> planning.Planned:
    """The runs to store in one transaction with the task and as many entries of the history as `beside`."""
    return planning.further(task, now, rules, most=STORED_WITH_IT - beside)


def _filled(plan: planning.Planned, ports: Ports) -> Task:
    """The task after storing all runs that it needs now; plan stores the runs that the table refuses here, and further ones of a gap."""
    work, task = TopUp(ports), plan.task
    if task.gap is not None:
        task = next(iter(work.catch_up([task])), task)
    elif plan.complete:
        return task
    return task if task.gap is not None else next(iter(work.top_up([task])), task)


def _line_up(runs: list[Job], now: int, ports: Ports) -> None:
    """Store the ordering entries of runs with an ordering key; the runs are stored afterwards. Raises Unavailable."""
    if not all(join_queues(runs, orders=ports.orders, now=now)):
        raise Unavailable


def _arm(timers: list[RunTimer], ports: Ports, now: int) -> None:
    """Store the timers of watched runs; the runs are stored afterwards. Raises Unavailable."""
    run_timers.arm(timers, ports)
    run_timers.wake_soon(timers, ports, now)


def _handed_over(runs: list[Job], began: int, ports: Ports) -> list[Job]:
    return enqueue_if_due_soon(runs, began, ports)


def _made_before(new: NewTask, receipt: Receipt, earlier: Receipt, ports: Ports) -> Task:
    """The task as first returned: it follows from the request, its receipt and the calendars."""
    _compare(receipt, earlier)
    return _begun(_first(new, earlier.at, earlier.random, ports), earlier.at, ports.rules).task


def _free(own: OwnKey | None, ports: Ports) -> str | None:
    """The id that the entry of a free key still has. Raises Conflict, naming the field, if a task has the key."""
    id = None if own is None else ports.tasks.of_key(own)
    if own is not None and id is not None and ports.tasks.get(TaskKey(own.owner, id)) is not None:
        rule = f"belongs to the task {id}; PUT by its key updates it"
        raise Conflict(f"key: {rule}", details=[{"field": "key", "rule": rule}])
    return id


def _first(new: NewTask, at: int, random: int, ports: Ports) -> Task:
    """The task as requested at the instant `at`, before any run is planned."""
    schedule = _parsed(new.schedule, None, at, calendars.named_in(new.schedule, new.owner, ports))
    task = as_task(new, ids.new(at, random, partitions=1), schedule, at)
    if new.paused:
        return replace(task, inactive_at=at, inactive_reason=new.pause_reason, planned_until=at)
    return replace(task, planned_until=planning.since(None, schedule, at))


def _check(task: Task, ports: Ports, now: int) -> None:
    """Raises TooLarge if the task, or a run of it, needs too many bytes in the table, and Invalid if no run can be done in time."""
    done_by = None if task.alerts is None else task.alerts.done_by
    if done_by is not None:
        rule = _NO_TIME if task.schedule is None else deadlines.refusal(done_by, task.schedule, now)
        if rule is not None:
            raise Invalid.field("alerts.done_by", rule)
    ports.tasks.check(task)
    ports.jobs.check(task.spec)


def _compare(receipt: Receipt, stored: Receipt) -> None:
    if receipt.fingerprint != stored.fingerprint:
        raise Conflict("the idempotency key was used for another request")


def _parsed(form: Mapping[str, object] | None, task: Task | None, now: int, known: Mapping[str, Calendar]) -> Schedule | None:
    if form is None:
        return None
    form = {name: value for name, value in form.items() if value is not None}
    try:
        if task is not None and task.schedule is not None and form == schedule_form.write(task.schedule):
            return replace(task.schedule, days=calendar_form.parse(form, known))
        return schedule_form.parse(form, now, known)
    except Invalid as error:
        (detail,) = error.details
        field = detail["field"]
        raise Invalid.field(field if field == "schedule" else f"schedule.{field}", detail["rule"]) from None


def _written(task: Task) -> str:
    """The payload as JSON, in which `true`, 1 and 1.0 differ; for Python they are equal."""
    return json.dumps(task.spec.payload, sort_keys=True)


def _is_same(form: Mapping[str, object] | None, task: Task, known: Mapping[str, Calendar]) -> bool:
    """Whether a form requests the present schedule of the task."""
    if form is None or task.schedule is None:
        return form is None and task.schedule is None
    try:
        return schedule_form.parse(form, task.created_at, known) == task.schedule
    except Invalid:
        return False


def as_task(new: NewTask, task_id: str, schedule: Schedule | None, now: int) -> Task:
    """The task of a draft with this id and schedule, its absent fields with their defaults."""
    recurring = schedule is not None and not isinstance(schedule.spec, Once)
    chosen = {"misfire": new.misfire, "misfire_threshold_ms": new.misfire_threshold_ms, "max_catch_up": new.max_catch_up}
    fields: dict[str, Any] = {name: value for name, value in chosen.items() if value is not None}
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
        alerts=new.alerts,
        **fields,
    )


def _matches(task: Task, query: Search, now: int) -> bool:
    return (
        (query.name is None or query.name.casefold() in task.name.casefold())
        and set(query.tags) <= set(task.spec.tags)
        and query.type in (None, task.spec.type)
        and (not query.statuses or status(task, now) in query.statuses)
    )
